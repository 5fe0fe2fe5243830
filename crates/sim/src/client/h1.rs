//! An HTTP/1.1 client: pipelines, chunked uploads, early ends, garbage.

use std::collections::VecDeque;

use crate::ask::{SimAnswer, SimAsk, SimUpload, What};
use crate::client::pipe::{Pipe, Wrote};
use crate::client::secure::Waits;
use crate::client::{Base, Sabotage, SimAct, truth};
use crate::deeds::upload_byte;
use crate::kernel::{Kernel, SocketGot};
use crate::scenario::MILLI;
use crate::truth::Era;

/// Things that are no request; each is answered by an error, and the connection is over.
const NONSENSE: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nhost: site\r\nhost: site\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /\0 HTTP/1.1\r\nhost: site\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/9.1\r\nhost: site\r\n\r\n",
    b" / / /\r\n\r\n",
    b"POST /upload HTTP/1.1\r\nhost: site\r\ncontent-length: 5\r\n\
      transfer-encoding: chunked\r\n\r\n",
    b"POST /upload HTTP/1.1\r\nhost: site\r\ncontent-length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: site\r\nno colon\r\n\r\n",
];

#[derive(Debug)]
struct Conn {
    pipe: Pipe,
    /// Requests without an answer, and where each ends in what was sent.
    flight: VecDeque<(SimAsk, u64)>,
    depth: usize,
    /// The server said that it will close.
    last: bool,
    nonsense: bool,
    /// The last request asked for the end of the connection.
    said_close: bool,
    /// When the latest answer had arrived.
    quiet_since: u64,
    /// Something is done behind an answer, which holds the connection.
    has_post_action: bool,
}

/// Nanoseconds for which a connection may stand when both sides know that it is over.
const ANSWERED_MAX: u64 = 2000 * MILLI;
/// The same where a slow application is asked behind answers.
const POST_ACTION_MAX: u64 = 60_000 * MILLI;

/// A client that speaks HTTP/1.1.
#[derive(Debug)]
pub struct SimH1Client {
    pub(super) base: Base,
    conn: Option<Conn>,
}

impl SimH1Client {
    pub(super) const fn new(base: Base) -> Self {
        Self { base, conn: None }
    }

    pub(super) fn act(&mut self, kernel: &mut Kernel, eras: &[Era]) -> SimAct {
        let Some(mut conn) = self.conn.take() else { return self.connect(kernel, eras) };
        if conn.pipe.is_stalled() {
            return self.wait_for_the_end(kernel, conn);
        }
        let issued = self.issue(kernel, &mut conn);
        let Some(written) = self.write(kernel, &mut conn) else { return SimAct::Worked };
        let Some(got) = self.read(kernel, eras, &mut conn) else {
            self.base.rest(kernel.nanos);
            return SimAct::Worked;
        };
        if conn.flight.is_empty() && conn.pipe.is_flushed() && self.is_over(&conn) {
            kernel.client_leave(conn.pipe.fd, false);
            return SimAct::Worked;
        }
        self.conn = Some(conn);
        if issued || written || got {
            self.base.rest(kernel.nanos);
            return SimAct::Worked;
        }
        SimAct::Waits(None)
    }

    /// Whether nothing more is to be said or heard on the connection.
    fn is_over(&self, conn: &Conn) -> bool {
        self.base.todo.is_empty() && !conn.pipe.ended && !conn.nonsense
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
        let mut conn = Conn {
            flight: VecDeque::new(),
            depth: chance.between(1, habits.depth_max) as usize,
            pipe: Pipe::new(fd, port, Sabotage::any(chance, habits)),
            last: false,
            nonsense: false,
            said_close: false,
            quiet_since: 0,
            has_post_action: false,
        };
        self.base.dress(kernel, &mut conn.pipe, b"http/1.1");
        self.conn = Some(conn);
        SimAct::Worked
    }

    /// Puts the next request behind what is still to be sent.
    fn issue(&mut self, kernel: &mut Kernel, conn: &mut Conn) -> bool {
        let closed = conn.last || conn.pipe.ended || conn.nonsense || conn.said_close;
        if closed || conn.flight.len() >= conn.depth {
            return false;
        }
        if conn.pipe.sabotage == Sabotage::Garbage && self.base.chance.one_in(2) {
            let chosen = self.base.chance.index(NONSENSE.len());
            conn.pipe.out.extend_from_slice(NONSENSE[chosen]);
            conn.nonsense = true;
            return true;
        }
        let Some(mut ask) = self.base.next(kernel.nanos, conn.pipe.port) else { return false };
        conn.pipe.mark(&mut ask);
        let is_last = self.base.todo.is_empty() && self.base.chance.one_in(3);
        conn.encode(&ask, is_last, &mut self.base);
        conn.said_close |= is_last;
        if self.base.todo.is_empty() && !is_last && self.base.chance.one_in(4) {
            // The side is closed right behind the last request.
            conn.pipe.ended = true;
        }
        let end = conn.pipe.sent + conn.pipe.left() as u64;
        conn.flight.push_back((ask, end));
        true
    }

    /// Sends some of what is to be sent; `None` when that ended the connection.
    fn write(&mut self, kernel: &mut Kernel, conn: &mut Conn) -> Option<bool> {
        let left = conn.pipe.left();
        if conn.pipe.is_flushed() {
            return Some(false);
        }
        let mut n = if left > 0 { self.base.chance.size(left) } else { 0 };
        if left > 0 && self.base.chance.one_in(2) {
            n = left;
        }
        match conn.pipe.write(kernel, n) {
            Wrote::Leave { rude } => {
                self.forgive(conn);
                kernel.client_leave(conn.pipe.fd, rude);
                None
            }
            Wrote::Bytes(taken) => {
                if conn.pipe.ended && conn.pipe.is_flushed() && !conn.pipe.is_finished() {
                    conn.pipe.finish(kernel);
                    conn.quiet_since = kernel.nanos;
                }
                Some(taken > 0)
            }
        }
    }

    /// Reads and judges; `None` when the connection is over.
    fn read(&mut self, kernel: &mut Kernel, eras: &[Era], conn: &mut Conn) -> Option<bool> {
        let max = self.base.chance.size(self.base.habits.read_max);
        let Some(end) = conn.pipe.read(kernel, max) else { return Some(false) };
        while let Some((ask, _)) = conn.flight.front() {
            match parse(&conn.pipe.input, ask.head_only, end.as_ref() == Some(&SocketGot::End)) {
                ParsedResponse::Partial => break,
                ParsedResponse::Bad(problem) => {
                    self.base.complain(kernel, &problem);
                    kernel.client_leave(conn.pipe.fd, true);
                    return None;
                }
                ParsedResponse::Complete(answer, used) => {
                    conn.pipe.input.drain(..used);
                    if answer.status < 200 {
                        continue;
                    }
                    conn.last |= answer.field("connection") == Some("close");
                    let Some((ask, _)) = conn.flight.pop_front() else { break };
                    self.base.judge(kernel, eras, &ask, &answer);
                    conn.quiet_since = kernel.nanos;
                    conn.has_post_action |= matches!(ask.what, What::Paced);
                }
            }
        }
        let Some(end) = end else { return Some(true) };
        self.end(kernel, eras, conn, &end);
        kernel.client_leave(conn.pipe.fd, false);
        None
    }

    /// The server has ended the connection: what is owed?
    fn end(&mut self, kernel: &mut Kernel, eras: &[Era], conn: &mut Conn, how: &SocketGot) {
        let Some(socket) = kernel.socket(conn.pipe.fd) else { return };
        let (killed, taken) = (socket.killed, socket.taken);
        // RFC 9112 §9.3.1: a request may meet the end of a connection that was idle for too long.
        let is_late = socket.idled >= kernel.patience.idle;
        // Who ends its side while the answer is not made yet has left, as with nginx.
        let may_wait = |(ask, _): &(SimAsk, u64)| ask.what.may_wait();
        let left = conn.pipe.ended && conn.flight.iter().any(may_wait);
        if !killed {
            let waits = if conn.flight.is_empty() { Waits::No } else { Waits::Yes };
            self.base.judge_end(kernel, &conn.pipe, how, waits);
        }
        if killed || left || conn.pipe.sabotage.is_ruinous() {
            return self.forgive(conn);
        }
        if conn.nonsense && !conn.last {
            if conn.flight.is_empty() && *how == SocketGot::End {
                let status = conn.pipe.input.get(9..12).map(String::from_utf8_lossy);
                if !status.as_deref().is_some_and(|text| text.starts_with(['4', '5'])) {
                    let answer = crate::scenario_log::excerpt(&conn.pipe.input);
                    self.base.complain(kernel, &format!("nonsense was answered {answer}"));
                }
                return;
            }
            conn.pipe.input.clear();
        }
        // A server that has to make room closes idle connections, whatever is under way to them.
        let shed = kernel.is_tight && *how == SocketGot::Reset;
        // A cut is made by a reset, which may take earlier answers with it.
        let cut = conn
            .flight
            .iter()
            .position(|(ask, _)| truth(kernel, eras).may_be_cut(ask, kernel.nanos))
            .filter(|at| *at == 0 || *how == SocketGot::Reset);
        if let Some(last) = cut {
            conn.flight.drain(..=last);
            self.base.forgiven += last + 1;
        } else if !conn.pipe.input.is_empty() && !shed {
            let rest = crate::scenario_log::excerpt(&conn.pipe.input);
            let wait = conn.flight.len();
            return self.base.complain(kernel, &format!("cut after {rest}, {wait} wait"));
        }
        let quiet = kernel.nanos.saturating_sub(conn.quiet_since);
        if cut.is_none()
            && conn.flight.is_empty()
            && (conn.pipe.ended || conn.last)
            && quiet > if conn.has_post_action { POST_ACTION_MAX } else { ANSWERED_MAX }
        {
            self.base.complain(kernel, &format!("kept open for {quiet} ns for nothing"));
        }
        if kernel.is_tight {
            self.base.rests_until = kernel.nanos + 100 * MILLI;
        }
        let foreseen = cut.is_some() || conn.last || conn.pipe.is_refused(kernel);
        for (ask, end) in std::mem::take(&mut conn.flight).into_iter().rev() {
            if foreseen || shed || end > taken && (kernel.draining || is_late) {
                self.base.todo.push_front(ask);
                continue;
            }
            let (method, target) = (ask.method(), ask.target());
            let what = if end > taken { "not read" } else { "lost" };
            self.base.complain(kernel, &format!("{method} {target} was {what} ({how:?})"));
        }
    }

    fn forgive(&mut self, conn: &mut Conn) {
        self.base.forgiven += conn.flight.len();
        conn.flight.clear();
    }

    /// A client that stalls only notices when the server has hung up.
    fn wait_for_the_end(&mut self, kernel: &mut Kernel, mut conn: Conn) -> SimAct {
        if conn.pipe.is_closed(kernel) {
            self.forgive(&mut conn);
            kernel.client_leave(conn.pipe.fd, true);
            return SimAct::Worked;
        }
        self.conn = Some(conn);
        SimAct::Waits(None)
    }
}

impl Conn {
    fn encode(&mut self, ask: &SimAsk, is_last: bool, base: &mut Base) {
        let out = &mut self.pipe.out;
        let mut line = |text: &str| {
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        };
        let is_old =
            is_last && !matches!(ask.upload, SimUpload::Pieces(_)) && base.chance.one_in(2);
        let version = if is_old { "1.0" } else { "1.1" };
        line(&format!("{} {} HTTP/{version}", ask.method(), ask.target()));
        line("Host: site");
        if ask.upload != SimUpload::None && base.chance.one_in(4) {
            // A client need not wait for the server to say so (RFC 9110 §10.1.1).
            line("Expect: 100-continue");
        }
        for (name, value) in ask.fields() {
            line(&format!("{name}: {value}"));
        }
        if is_last {
            line("Connection: close");
        }
        match ask.upload {
            SimUpload::None => line(""),
            SimUpload::Length(size) => {
                line(&format!("Content-Length: {size}"));
                line("");
                out.extend((0..size).map(upload_byte));
            }
            SimUpload::Pieces(size) => {
                line("Transfer-Encoding: chunked");
                line("");
                let mut left = size;
                while left > 0 {
                    let n = base.chance.size(left);
                    out.extend_from_slice(format!("{n:x}\r\n").as_bytes());
                    let at = size - left;
                    out.extend((at..at + n).map(upload_byte));
                    out.extend_from_slice(b"\r\n");
                    left -= n;
                }
                out.extend_from_slice(b"0\r\n\r\n");
            }
        }
    }
}

/// What is at the front of what came.
pub(crate) enum ParsedResponse {
    Partial,
    Complete(SimAnswer, usize),
    Bad(String),
}

/// Reads one answer from the front of `input`; `at_end` says that nothing follows.
pub(crate) fn parse(input: &[u8], head_only: bool, at_end: bool) -> ParsedResponse {
    let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") else {
        return ParsedResponse::Partial;
    };
    let bad = || ParsedResponse::Bad(format!("no answer: {}", crate::scenario_log::excerpt(input)));
    let Ok(head) = std::str::from_utf8(&input[..end]) else { return bad() };
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
    let Some(status) = status.and_then(|rest| rest.get(..3)?.parse().ok()) else { return bad() };
    let mut answer = SimAnswer { status, ..SimAnswer::default() };
    for line in lines {
        let Some((name, value)) = line.split_once(": ") else { return bad() };
        answer.fields.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let body = &input[end + 4..];
    if SimAnswer::is_bodiless(status, head_only) {
        return ParsedResponse::Complete(answer, end + 4);
    }
    if answer.field("transfer-encoding") == Some("chunked") {
        return parse_chunks(body, answer, end + 4);
    }
    match answer.field("content-length").map(str::parse::<usize>) {
        Some(Ok(length)) if body.len() >= length => {
            answer.body = body[..length].to_vec();
            ParsedResponse::Complete(answer, end + 4 + length)
        }
        Some(Ok(_)) => ParsedResponse::Partial,
        Some(Err(_)) => bad(),
        None if at_end => {
            answer.body = body.to_vec();
            ParsedResponse::Complete(answer, input.len())
        }
        None => ParsedResponse::Partial,
    }
}

fn parse_chunks(body: &[u8], mut answer: SimAnswer, start: usize) -> ParsedResponse {
    let mut at = 0;
    loop {
        let rest = &body[at..];
        let Some(eol) = rest.windows(2).position(|two| two == b"\r\n") else {
            return ParsedResponse::Partial;
        };
        let size = std::str::from_utf8(&rest[..eol]).ok();
        let Some(size) = size.and_then(|text| usize::from_str_radix(text, 16).ok()) else {
            return ParsedResponse::Bad(format!(
                "no chunk: {}",
                crate::scenario_log::excerpt(rest)
            ));
        };
        let (from, to) = (eol + 2, eol + 2 + size);
        match rest.get(to..to + 2) {
            Some(b"\r\n") => {}
            Some(_) => return ParsedResponse::Bad("a chunk without an end".to_owned()),
            None => return ParsedResponse::Partial,
        }
        answer.body.extend_from_slice(&rest[from..to]);
        at += to + 2;
        if size == 0 {
            return ParsedResponse::Complete(answer, start + at);
        }
    }
}
