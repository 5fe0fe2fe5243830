//! An HTTP/2 client with prior knowledge that counts every window.
//!
//! Its heads are literals without Huffman codes; the codec under test decodes what the server
//! sends, and has tests of its own with the examples of the RFC.

mod conn;
mod frame;

use crate::ask::SimUpload;
use crate::client::pipe::Wrote;
use crate::client::secure::Waits;
use crate::client::{Base, Sabotage, SimAct, truth};
use crate::kernel::{Kernel, SocketGot};
use crate::scenario::MILLI;
use crate::truth::Era;
use conn::{SimH2Conn, SimH2News, SimH2Stream};
use frame::{PREFACE, kind};

/// Frames that no server may let pass.
const NONSENSE: &[(u8, u8, u32, &[u8])] = &[
    (kind::HEADERS, 4, 0, b"\x82"),
    (kind::DATA, 0, 9999, b"early"),
    (kind::WINDOW_UPDATE, 0, 0, b"\0\0\0\0"),
    (kind::CONTINUATION, 4, 1, b"\x82"),
    (kind::SETTINGS, 0, 0, b"\0\x04\xff\xff\xff\xff"),
    (kind::HEADERS, 4, 2, b"\x82"),
    (kind::PUSH_PROMISE, 4, 1, b"\0\0\0\x02\x82"),
    (kind::PING, 0, 0, b"short"),
];

/// A client that speaks HTTP/2.
#[derive(Debug)]
pub struct SimH2Client {
    pub(super) base: Base,
    conn: Option<SimH2Conn>,
}

impl SimH2Client {
    pub(super) const fn new(base: Base) -> Self {
        Self { base, conn: None }
    }

    pub(super) fn act(&mut self, kernel: &mut Kernel, eras: &[Era]) -> SimAct {
        let Some(mut conn) = self.conn.take() else { return self.connect(kernel, eras) };
        if conn.pipe.is_stalled() {
            return self.wait_for_the_end(kernel, conn);
        }
        let issued = self.issue(kernel, &mut conn)
            | conn.upload(&mut self.base.chance)
            | conn.credit(&mut self.base.chance);
        let Some(written) = self.write(kernel, &mut conn) else { return SimAct::Worked };
        let Some(got) = self.read(kernel, eras, &mut conn) else {
            self.base.rest(kernel.nanos);
            return SimAct::Worked;
        };
        if conn.streams.is_empty()
            && conn.pipe.is_flushed()
            && !conn.nonsense
            && self.is_over(&conn)
        {
            kernel.client_leave(conn.pipe.fd, false);
            return SimAct::Worked;
        }
        let owes = conn.owes_credit();
        self.conn = Some(conn);
        if issued || written || got || owes {
            self.base.rest(kernel.nanos);
            return SimAct::Worked;
        }
        SimAct::Waits(None)
    }

    fn is_over(&self, conn: &SimH2Conn) -> bool {
        self.base.todo.is_empty() || conn.goaway.is_some()
    }

    fn connect(&mut self, kernel: &mut Kernel, eras: &[Era]) -> SimAct {
        if self.base.todo.is_empty() {
            return SimAct::Done;
        }
        let port = self.base.port(eras);
        let Some(fd) = kernel.connect(port) else {
            self.base.forgiven += self.base.todo.len();
            self.base.todo.clear();
            return SimAct::Done;
        };
        let Base { chance, habits, .. } = &mut self.base;
        let depth = chance.between(1, 2 * habits.depth_max) as usize;
        let mut conn = SimH2Conn::new(fd, port, depth, Sabotage::any(chance, habits));
        self.base.dress(kernel, &mut conn.pipe, b"h2");
        conn.pipe.out.extend_from_slice(PREFACE);
        conn.change_settings(&mut self.base.chance);
        self.conn = Some(conn);
        SimAct::Worked
    }

    fn issue(&mut self, kernel: &mut Kernel, conn: &mut SimH2Conn) -> bool {
        let chance = &mut self.base.chance;
        if conn.goaway.is_some() || conn.nonsense || conn.pipe.ended {
            return false;
        }
        if conn.pipe.sabotage == Sabotage::Garbage && chance.one_in(3) {
            let (kind, flags, stream, payload) = NONSENSE[chance.index(NONSENSE.len())];
            frame::push(&mut conn.pipe.out, kind, flags, stream, payload);
            conn.nonsense = true;
            return true;
        }
        let chatters = conn.chatter < self.base.habits.chatter_max;
        if chance.one_in(40) && !conn.settings_are_open && chatters {
            conn.chatter += 1;
            conn.change_settings(chance);
        }
        if chance.one_in(30) && chatters {
            conn.chatter += 1;
            frame::push(&mut conn.pipe.out, kind::PING, 0, 0, b"12345678");
            conn.pings += 1;
        }
        let is_full = conn.streams.len() >= conn.depth.min(conn.streams_max);
        if is_full || !conn.pipe.is_flushed() {
            return false;
        }
        let Some(mut ask) = self.base.next(kernel.nanos, conn.pipe.port) else { return false };
        conn.pipe.mark(&mut ask);
        conn.request(ask, &mut self.base.chance);
        true
    }

    fn write(&mut self, kernel: &mut Kernel, conn: &mut SimH2Conn) -> Option<bool> {
        let left = conn.pipe.left();
        if conn.pipe.is_flushed() {
            return Some(false);
        }
        let n = if left > 0 { self.base.chance.size(left) } else { 0 };
        match conn.pipe.write(kernel, n) {
            Wrote::Leave { rude } => {
                self.forgive(conn);
                kernel.client_leave(conn.pipe.fd, rude);
                None
            }
            Wrote::Bytes(taken) => Some(taken > 0),
        }
    }

    fn read(&mut self, kernel: &mut Kernel, eras: &[Era], conn: &mut SimH2Conn) -> Option<bool> {
        let max = self.base.chance.size(self.base.habits.read_max);
        let Some(end) = conn.pipe.read(kernel, max) else { return Some(false) };
        loop {
            match conn.poll(&mut self.base.chance) {
                Ok(None) => break,
                Ok(Some(news)) => self.hear(kernel, eras, conn, news),
                Err(problem) => {
                    self.base.complain(kernel, &problem);
                    kernel.client_leave(conn.pipe.fd, true);
                    return None;
                }
            }
        }
        let Some(end) = end else { return Some(true) };
        self.end(kernel, eras, conn, &end);
        kernel.client_leave(conn.pipe.fd, false);
        None
    }

    fn hear(&mut self, kernel: &mut Kernel, eras: &[Era], conn: &mut SimH2Conn, news: SimH2News) {
        match news {
            SimH2News::Answer(id) => {
                let Some(stream) = conn.streams.remove(&id) else { return };
                self.base.judge(kernel, eras, &stream.ask, &stream.answer);
                // What is still to be uploaded is not wanted any more.
                if stream.upload_left > 0 {
                    frame::push(&mut conn.pipe.out, kind::RST_STREAM, 0, id, &[0, 0, 0, 8]);
                }
            }
            SimH2News::Reset(id, code) => {
                let Some(stream) = conn.streams.remove(&id) else { return };
                self.hear_reset(kernel, eras, stream, code, conn);
            }
            SimH2News::GoAway(last, code) => {
                if code != 0 && !conn.nonsense {
                    self.base.complain(kernel, &format!("GOAWAY with error {code}"));
                }
                let unheard: Vec<u32> = conn.streams.range(last + 1..).map(|(id, _)| *id).collect();
                for id in unheard.into_iter().rev() {
                    if let Some(stream) = conn.streams.remove(&id) {
                        self.base.todo.push_front(stream.ask);
                    }
                }
            }
        }
    }

    fn hear_reset(
        &mut self,
        kernel: &mut Kernel,
        eras: &[Era],
        stream: SimH2Stream,
        code: u32,
        conn: &SimH2Conn,
    ) {
        let excused = conn.nonsense || truth(kernel, eras).may_be_cut(&stream.ask, kernel.nanos);
        match code {
            7 => self.base.todo.push_front(stream.ask),
            _ if excused => self.base.forgiven += 1,
            _ => {
                let target = stream.ask.target();
                self.base.complain(kernel, &format!("{target} was reset with {code}"));
            }
        }
    }

    fn end(&mut self, kernel: &mut Kernel, eras: &[Era], conn: &mut SimH2Conn, how: &SocketGot) {
        let Some(socket) = kernel.socket(conn.pipe.fd) else { return };
        let (killed, taken) = (socket.killed, socket.taken);
        let spoiled = conn.pipe.sabotage.is_ruinous();
        if !killed {
            let waits = if conn.streams.is_empty() { Waits::No } else { Waits::Yes };
            self.base.judge_end(kernel, &conn.pipe, how, waits);
        }
        let owes_goaway = conn.nonsense && !killed && conn.goaway.is_none();
        if owes_goaway && *how == SocketGot::End && conn.pipe.is_flushed() {
            self.base.complain(kernel, "nonsense was not answered by GOAWAY");
        }
        // RFC 9113 §6.8: else a client cannot tell which of its requests may be asked again.
        let is_wordless = *how == SocketGot::End && conn.has_begun && conn.goaway.is_none();
        if is_wordless && !killed && !spoiled && !conn.nonsense {
            self.base.complain(kernel, "a connection was ended without GOAWAY");
        }
        if killed || conn.nonsense || spoiled {
            return self.forgive(conn);
        }
        if kernel.is_tight {
            self.base.rests_until = kernel.nanos + 100 * MILLI;
        }
        for stream in std::mem::take(&mut conn.streams).into_values().rev() {
            if truth(kernel, eras).may_be_cut(&stream.ask, kernel.nanos) {
                self.base.forgiven += 1;
            } else if kernel.is_tight
                || kernel.draining && stream.end > taken
                || conn.pipe.is_refused(kernel)
            {
                self.base.todo.push_front(stream.ask);
            } else {
                let (method, target) = (stream.ask.method(), stream.ask.target());
                self.base.complain(kernel, &format!("{method} {target} was lost ({how:?})"));
            }
        }
    }

    fn forgive(&mut self, conn: &mut SimH2Conn) {
        self.base.forgiven += conn.streams.len();
        conn.streams.clear();
    }

    fn wait_for_the_end(&mut self, kernel: &mut Kernel, mut conn: SimH2Conn) -> SimAct {
        if conn.pipe.is_closed(kernel) {
            self.forgive(&mut conn);
            kernel.client_leave(conn.pipe.fd, true);
            return SimAct::Worked;
        }
        self.conn = Some(conn);
        SimAct::Waits(None)
    }
}

/// Bytes of a request body that are announced.
const fn announced(upload: SimUpload) -> Option<usize> {
    match upload {
        SimUpload::Length(size) => Some(size),
        SimUpload::None | SimUpload::Pieces(_) => None,
    }
}
