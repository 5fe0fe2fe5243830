//! An HTTP/2 client with prior knowledge that counts every window.
//!
//! Its heads are literals without Huffman codes; the codec under test decodes what the server
//! sends, and has tests of its own with the examples of the RFC.

mod conn;

use crate::client::pipe::Wrote;
use crate::client::secure::Pending;
use crate::client::{ClientBase, ClientFault, StepResult, response_oracle};
use crate::h2_frame::{self as frame, PREFACE, kind};
use crate::kernel::{Kernel, SocketGot};
use crate::oracle::ConfigEpoch;
use crate::request::SimUpload;
use crate::time::MILLI;
use conn::{H2Event, SimH2Conn, SimH2Stream};

/// Frames that a server must treat as connection errors.
const MALFORMED: &[(u8, u8, u32, &[u8])] = &[
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
    pub(super) base: ClientBase,
    conn: Option<SimH2Conn>,
}

impl SimH2Client {
    pub(super) const fn new(base: ClientBase) -> Self {
        Self { base, conn: None }
    }

    pub(super) fn step(&mut self, kernel: &mut Kernel, epochs: &[ConfigEpoch]) -> StepResult {
        let Some(mut conn) = self.conn.take() else { return self.connect(kernel, epochs) };
        if conn.pipe.is_stalled() {
            return self.wait_for_the_end(kernel, conn);
        }
        let issued = self.issue(kernel, &mut conn)
            | conn.upload(&mut self.base.chance)
            | conn.credit(&mut self.base.chance);
        let Some(written) = self.write(kernel, &mut conn) else { return StepResult::Worked };
        let Some(got) = self.read(kernel, epochs, &mut conn) else {
            self.base.rest(kernel.nanos);
            return StepResult::Worked;
        };
        if conn.streams.is_empty()
            && conn.pipe.is_flushed()
            && !conn.malformed
            && self.is_over(&conn)
        {
            kernel.client_leave(conn.pipe.fd, false);
            return StepResult::Worked;
        }
        let owes = conn.owes_credit();
        self.conn = Some(conn);
        if issued || written || got || owes {
            self.base.rest(kernel.nanos);
            return StepResult::Worked;
        }
        StepResult::Waits(None)
    }

    fn is_over(&self, conn: &SimH2Conn) -> bool {
        self.base.todo.is_empty() || conn.goaway.is_some()
    }

    fn connect(&mut self, kernel: &mut Kernel, epochs: &[ConfigEpoch]) -> StepResult {
        if self.base.todo.is_empty() {
            return StepResult::Done;
        }
        let port = self.base.port(epochs);
        let Some(fd) = kernel.connect(port) else {
            self.base.excused += self.base.todo.len();
            self.base.todo.clear();
            return StepResult::Done;
        };
        let ClientBase { chance, profile, .. } = &mut self.base;
        let depth = chance.between(1, 2 * profile.depth_max) as usize;
        let mut conn = SimH2Conn::new(fd, port, depth, ClientFault::any(chance, profile));
        self.base.start_preface(kernel, &mut conn.pipe, b"h2");
        conn.pipe.out.extend_from_slice(PREFACE);
        conn.change_settings(&mut self.base.chance);
        self.conn = Some(conn);
        StepResult::Worked
    }

    fn issue(&mut self, kernel: &mut Kernel, conn: &mut SimH2Conn) -> bool {
        let chance = &mut self.base.chance;
        if conn.goaway.is_some() || conn.malformed || conn.pipe.ended {
            return false;
        }
        if conn.pipe.client_fault == ClientFault::Garbage && chance.one_in(3) {
            let (kind, flags, stream, payload) = MALFORMED[chance.index(MALFORMED.len())];
            frame::push(&mut conn.pipe.out, kind, flags, stream, payload);
            conn.malformed = true;
            return true;
        }
        let may_send_control = conn.control_frames < self.base.profile.control_frames_max;
        if chance.one_in(40) && !conn.settings_are_open && may_send_control {
            conn.control_frames += 1;
            conn.change_settings(chance);
        }
        if chance.one_in(30) && may_send_control {
            conn.control_frames += 1;
            frame::push(&mut conn.pipe.out, kind::PING, 0, 0, b"12345678");
            conn.pings += 1;
        }
        let is_full = conn.streams.len() >= conn.depth.min(conn.streams_max);
        if is_full || !conn.pipe.is_flushed() {
            return false;
        }
        let Some(mut request) = self.base.next(kernel.nanos, conn.pipe.port) else { return false };
        conn.pipe.mark(&mut request);
        conn.request(request, &mut self.base.chance);
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
                self.excuse(conn);
                kernel.client_leave(conn.pipe.fd, rude);
                None
            }
            Wrote::Bytes(taken) => Some(taken > 0),
        }
    }

    fn read(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        conn: &mut SimH2Conn,
    ) -> Option<bool> {
        let max = self.base.chance.size(self.base.profile.read_max);
        let Some(end) = conn.pipe.read(kernel, max) else { return Some(false) };
        loop {
            match conn.poll(&mut self.base.chance) {
                Ok(None) => break,
                Ok(Some(event)) => self.handle_event(kernel, epochs, conn, event),
                Err(problem) => {
                    self.base.record_violation(kernel, &problem);
                    kernel.client_leave(conn.pipe.fd, true);
                    return None;
                }
            }
        }
        let Some(end) = end else { return Some(true) };
        self.end(kernel, epochs, conn, &end);
        kernel.client_leave(conn.pipe.fd, false);
        None
    }

    fn handle_event(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        conn: &mut SimH2Conn,
        event: H2Event,
    ) {
        match event {
            H2Event::Response(id) => {
                let Some(stream) = conn.streams.remove(&id) else { return };
                self.base.check_response(kernel, epochs, &stream.request, &stream.response);
                // The rest of the upload is not needed any more.
                if stream.upload_left > 0 {
                    frame::push(&mut conn.pipe.out, kind::RST_STREAM, 0, id, &[0, 0, 0, 8]);
                }
            }
            H2Event::Reset(id, code) => {
                let Some(stream) = conn.streams.remove(&id) else { return };
                self.handle_reset(kernel, epochs, stream, code, conn);
            }
            H2Event::GoAway(last, code) => {
                if code != 0 && !conn.malformed {
                    self.base.record_violation(kernel, &format!("GOAWAY with error {code}"));
                }
                let unprocessed: Vec<u32> =
                    conn.streams.range(last + 1..).map(|(id, _)| *id).collect();
                for id in unprocessed.into_iter().rev() {
                    if let Some(stream) = conn.streams.remove(&id) {
                        self.base.todo.push_front(stream.request);
                    }
                }
            }
        }
    }

    fn handle_reset(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        stream: SimH2Stream,
        code: u32,
        conn: &SimH2Conn,
    ) {
        let excused = conn.malformed
            || response_oracle(kernel, epochs).may_be_cut(&stream.request, kernel.nanos);
        // `send_timeout` and `client_body_timeout`: the credit or the body that the server waits
        // for is behind other unsent bytes.
        let is_slow = !conn.pipe.is_flushed();
        match code {
            1 if is_slow => self.base.excused += 1,
            7 => self.base.todo.push_front(stream.request),
            _ if excused => self.base.excused += 1,
            _ => {
                let target = stream.request.target();
                self.base.record_violation(kernel, &format!("{target} was reset with {code}"));
            }
        }
    }

    fn end(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        conn: &mut SimH2Conn,
        how: &SocketGot,
    ) {
        let Some(socket) = kernel.socket(conn.pipe.fd) else { return };
        let (killed, taken) = (socket.killed, socket.taken);
        let is_voided = conn.pipe.client_fault.voids_responses();
        if !killed {
            let pending = if conn.streams.is_empty() { Pending::No } else { Pending::Yes };
            self.base.check_end(kernel, &conn.pipe, how, pending);
        }
        let owes_goaway = conn.malformed && !killed && conn.goaway.is_none();
        if owes_goaway && *how == SocketGot::End && conn.pipe.is_flushed() {
            self.base.record_violation(kernel, "a malformed frame was not answered by GOAWAY");
        }
        // RFC 9113 §6.8: without GOAWAY a client cannot tell which requests it may retry.
        let is_unannounced = *how == SocketGot::End && conn.has_begun && conn.goaway.is_none();
        if is_unannounced && !killed && !is_voided && !conn.malformed {
            self.base.record_violation(kernel, "a connection was ended without GOAWAY");
        }
        if killed || conn.malformed || is_voided {
            return self.excuse(conn);
        }
        if kernel.is_tight {
            self.base.rests_until = kernel.nanos + 100 * MILLI;
        }
        for stream in std::mem::take(&mut conn.streams).into_values().rev() {
            if response_oracle(kernel, epochs).may_be_cut(&stream.request, kernel.nanos) {
                self.base.excused += 1;
            } else if kernel.is_tight
                || kernel.draining && stream.end > taken
                || conn.pipe.is_refused(kernel)
            {
                self.base.todo.push_front(stream.request);
            } else {
                let (method, target) = (stream.request.method(), stream.request.target());
                self.base
                    .record_violation(kernel, &format!("{method} {target} was lost ({how:?})"));
            }
        }
    }

    fn excuse(&mut self, conn: &mut SimH2Conn) {
        self.base.excused += conn.streams.len();
        conn.streams.clear();
    }

    fn wait_for_the_end(&mut self, kernel: &mut Kernel, mut conn: SimH2Conn) -> StepResult {
        if conn.pipe.is_closed(kernel) {
            self.excuse(&mut conn);
            kernel.client_leave(conn.pipe.fd, true);
            return StepResult::Worked;
        }
        self.conn = Some(conn);
        StepResult::Waits(None)
    }
}

/// The announced length of a request body.
const fn announced(upload: SimUpload) -> Option<usize> {
    match upload {
        SimUpload::Length(size) => Some(size),
        SimUpload::None | SimUpload::Pieces(_) => None,
    }
}
