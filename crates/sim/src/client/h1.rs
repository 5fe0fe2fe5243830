//! An HTTP/1.1 client: pipelines, chunked uploads, early ends, garbage.

use std::collections::VecDeque;

use crate::client::pipe::{Pipe, Wrote};
use crate::client::secure::Pending;
use crate::client::{ClientBase, ClientFault, StepResult, response_oracle};
use crate::fault_record::upload_byte;
use crate::kernel::{Kernel, SocketGot};
use crate::oracle::ConfigEpoch;
use crate::request::{RequestKind, SimRequest, SimUpload};
use crate::response::SimResponse;
use crate::time::MILLI;

/// Malformed requests. The server responds to each with an error and closes.
const MALFORMED: &[&[u8]] = &[
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
    /// Requests without a response, each with the position of its end in the bytes sent.
    flight: VecDeque<(SimRequest, u64)>,
    /// When the requests of `flight` began.
    begun: VecDeque<u64>,
    /// When the last request with a response began, and where it ends among the bytes that are
    /// sent.
    answered: (u64, u64),
    depth: usize,
    /// The server sent `Connection: close`.
    last: bool,
    malformed: bool,
    /// The last request had `Connection: close`.
    said_close: bool,
    /// When the latest response was complete.
    quiet_since: u64,
    /// The server runs a post action after a response and keeps the connection open for it.
    has_post_action: bool,
}

/// Nanoseconds for which the server may keep a connection open that both sides have ended.
const ANSWERED_MAX: u64 = 2000 * MILLI;
/// `lingering_time` and `lingering_timeout`: how long the rest of an answered request is discarded,
/// in all and in silence.
const LINGERING: (u64, u64) = (30_000 * MILLI, 5_000 * MILLI);
/// The same if a post action waits for a slow application.
const POST_ACTION_MAX: u64 = 60_000 * MILLI;

/// A client that speaks HTTP/1.1.
#[derive(Debug)]
pub struct SimH1Client {
    pub(super) base: ClientBase,
    conn: Option<Conn>,
}

impl SimH1Client {
    pub(super) const fn new(base: ClientBase) -> Self {
        Self { base, conn: None }
    }

    pub(super) fn step(&mut self, kernel: &mut Kernel, epochs: &[ConfigEpoch]) -> StepResult {
        let Some(mut conn) = self.conn.take() else { return self.connect(kernel, epochs) };
        if conn.pipe.is_stalled() {
            return self.wait_for_the_end(kernel, conn);
        }
        let issued = self.issue(kernel, &mut conn);
        let Some(written) = self.write(kernel, &mut conn) else { return StepResult::Worked };
        let Some(got) = self.read(kernel, epochs, &mut conn) else {
            self.base.rest(kernel.nanos);
            return StepResult::Worked;
        };
        if conn.flight.is_empty() && conn.pipe.is_flushed() && self.is_over(&conn) {
            kernel.client_leave(conn.pipe.fd, false);
            return StepResult::Worked;
        }
        self.conn = Some(conn);
        if issued || written || got {
            self.base.rest(kernel.nanos);
            return StepResult::Worked;
        }
        StepResult::Waits(None)
    }

    /// Whether the client has no further use for the connection.
    fn is_over(&self, conn: &Conn) -> bool {
        self.base.todo.is_empty() && !conn.pipe.ended && !conn.malformed
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
        let mut conn = Conn {
            flight: VecDeque::new(),
            begun: VecDeque::new(),
            answered: (0, 0),
            depth: chance.between(1, profile.depth_max) as usize,
            pipe: Pipe::new(fd, port, ClientFault::any(chance, profile)),
            last: false,
            malformed: false,
            said_close: false,
            quiet_since: 0,
            has_post_action: false,
        };
        self.base.start_preface(kernel, &mut conn.pipe, b"http/1.1");
        self.conn = Some(conn);
        StepResult::Worked
    }

    /// Appends the next request to the output.
    fn issue(&mut self, kernel: &mut Kernel, conn: &mut Conn) -> bool {
        let closed = conn.last || conn.pipe.ended || conn.malformed || conn.said_close;
        if closed || conn.flight.len() >= conn.depth {
            return false;
        }
        if conn.pipe.client_fault == ClientFault::Garbage && self.base.chance.one_in(2) {
            let chosen = self.base.chance.index(MALFORMED.len());
            conn.pipe.out.extend_from_slice(MALFORMED[chosen]);
            conn.malformed = true;
            return true;
        }
        let Some(mut request) = self.base.next(kernel.nanos, conn.pipe.port) else { return false };
        conn.pipe.mark(&mut request);
        let is_last = self.base.todo.is_empty() && self.base.chance.one_in(3);
        conn.encode(&request, is_last, &mut self.base);
        conn.said_close |= is_last;
        if self.base.todo.is_empty() && !is_last && self.base.chance.one_in(4) {
            // The client shuts its sending side down right behind the last request.
            conn.pipe.ended = true;
        }
        let end = conn.pipe.sent + conn.pipe.left() as u64;
        conn.flight.push_back((request, end));
        conn.begun.push_back(kernel.nanos);
        true
    }

    /// Sends a part of the output; `None` if that ended the connection.
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
                self.excuse(conn);
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

    /// Reads and checks responses; `None` if the connection is closed.
    fn read(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        conn: &mut Conn,
    ) -> Option<bool> {
        let max = self.base.chance.size(self.base.profile.read_max);
        let Some(end) = conn.pipe.read(kernel, max) else { return Some(false) };
        while let Some((request, _)) = conn.flight.front() {
            match parse(&conn.pipe.input, request.head_only, end.as_ref() == Some(&SocketGot::End))
            {
                ParsedResponse::Partial => break,
                ParsedResponse::Bad(problem) => {
                    self.base.record_violation(kernel, &problem);
                    kernel.client_leave(conn.pipe.fd, true);
                    return None;
                }
                ParsedResponse::Complete(response, used) => {
                    conn.pipe.input.drain(..used);
                    if response.status < 200 {
                        continue;
                    }
                    conn.last |= response.field("connection") == Some("close");
                    let Some((request, end)) = conn.flight.pop_front() else { break };
                    conn.answered = (conn.begun.pop_front().unwrap_or_default(), end);
                    self.base.check_response(kernel, epochs, &request, &response);
                    conn.quiet_since = kernel.nanos;
                    conn.has_post_action |= matches!(request.what, RequestKind::Paced);
                }
            }
        }
        let Some(end) = end else { return Some(true) };
        self.end(kernel, epochs, conn, &end);
        kernel.client_leave(conn.pipe.fd, false);
        None
    }

    /// Checks the close by the server: which requests did it owe a response?
    fn end(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        conn: &mut Conn,
        how: &SocketGot,
    ) {
        let Some(socket) = kernel.socket(conn.pipe.fd) else { return };
        let (killed, taken, silent) = (socket.killed, socket.taken, socket.idled);
        // RFC 9112 §9.3.1: a request may meet the close of a connection that was idle for too long.
        let is_late = silent >= kernel.quic_timeouts.idle;
        // nginx treats a client that shuts its side down before a response as gone.
        let may_wait = |(request, _): &(SimRequest, u64)| request.what.may_wait();
        let left = conn.pipe.ended && conn.flight.iter().any(may_wait);
        if !killed {
            let pending = if conn.flight.is_empty() { Pending::No } else { Pending::Yes };
            self.base.check_end(kernel, &conn.pipe, how, pending);
        }
        if killed || left || conn.pipe.client_fault.voids_responses() {
            return self.excuse(conn);
        }
        if conn.malformed && !conn.last {
            if conn.flight.is_empty() && *how == SocketGot::End {
                let status = conn.pipe.input.get(9..12).map(String::from_utf8_lossy);
                if !status.as_deref().is_some_and(|text| text.starts_with(['4', '5'])) {
                    let response = crate::run_trace::excerpt(&conn.pipe.input);
                    self.base.record_violation(
                        kernel,
                        &format!("a malformed request was answered {response}"),
                    );
                }
                return;
            }
            conn.pipe.input.clear();
        }
        // A server that must free connections closes idle ones, even if a request is in transit.
        let shed = kernel.is_tight && *how == SocketGot::Reset;
        // A request that meets the close of an idle connection is reset, which discards what the
        // client has not read.
        let is_unread = |(_, end): &(SimRequest, u64)| *end > taken;
        let meets_close = is_late && *how == SocketGot::Reset && conn.flight.iter().any(is_unread);
        // A server truncates by a reset, which may discard earlier responses.
        let cut = conn
            .flight
            .iter()
            .position(|(request, _)| {
                response_oracle(kernel, epochs).may_be_cut(request, kernel.nanos)
            })
            .filter(|at| *at == 0 || *how == SocketGot::Reset);
        if let Some(last) = cut {
            conn.flight.drain(..=last);
            self.base.excused += last + 1;
        } else if !conn.pipe.input.is_empty() && !shed && !meets_close {
            let rest = crate::run_trace::excerpt(&conn.pipe.input);
            let wait = conn.flight.len();
            return self.base.record_violation(kernel, &format!("cut after {rest}, {wait} wait"));
        }
        let (answered_from, answered_end) = conn.answered;
        let quiet = kernel.nanos.saturating_sub(conn.quiet_since);
        // The rest of a request that was answered early is read for `lingering_time`.
        let is_discarding =
            taken < answered_end && !conn.pipe.is_flushed() && quiet <= LINGERING.0 + ANSWERED_MAX;
        if cut.is_none()
            && !is_discarding
            && conn.flight.is_empty()
            && (conn.pipe.ended || conn.last)
            && quiet > if conn.has_post_action { POST_ACTION_MAX } else { ANSWERED_MAX }
        {
            self.base.record_violation(kernel, &format!("kept open for {quiet} ns for nothing"));
        }
        if kernel.is_tight {
            self.base.rests_until = kernel.nanos + 100 * MILLI;
        }
        let lingers = kernel.nanos.saturating_sub(answered_from) >= LINGERING.0;
        let is_late = is_late || taken < answered_end && (lingers || silent >= LINGERING.1);
        let foreseen = cut.is_some() || conn.last || conn.pipe.is_refused(kernel);
        for (request, end) in std::mem::take(&mut conn.flight).into_iter().rev() {
            if foreseen || shed || meets_close || end > taken && (kernel.draining || is_late) {
                self.base.todo.push_front(request);
                continue;
            }
            let (method, target) = (request.method(), request.target());
            let what = if end > taken { "not read" } else { "lost" };
            self.base.record_violation(kernel, &format!("{method} {target} was {what} ({how:?})"));
        }
    }

    fn excuse(&mut self, conn: &mut Conn) {
        self.base.excused += conn.flight.len();
        conn.flight.clear();
    }

    /// A client that has stopped reading only notices the close.
    fn wait_for_the_end(&mut self, kernel: &mut Kernel, mut conn: Conn) -> StepResult {
        if conn.pipe.is_closed(kernel) {
            self.excuse(&mut conn);
            kernel.client_leave(conn.pipe.fd, true);
            return StepResult::Worked;
        }
        self.conn = Some(conn);
        StepResult::Waits(None)
    }
}

impl Conn {
    fn encode(&mut self, request: &SimRequest, is_last: bool, base: &mut ClientBase) {
        let out = &mut self.pipe.out;
        let mut line = |text: &str| {
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        };
        let is_old =
            is_last && !matches!(request.upload, SimUpload::Pieces(_)) && base.chance.one_in(2);
        let version = if is_old { "1.0" } else { "1.1" };
        line(&format!("{} {} HTTP/{version}", request.method(), request.target()));
        line("Host: site");
        if request.upload != SimUpload::None && base.chance.one_in(4) {
            // A client need not wait for the 100 response (RFC 9110 §10.1.1).
            line("Expect: 100-continue");
        }
        for (name, value) in request.fields() {
            line(&format!("{name}: {value}"));
        }
        if is_last {
            line("Connection: close");
        }
        match request.upload {
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

/// The response at the front of the input.
pub(crate) enum ParsedResponse {
    Partial,
    Complete(SimResponse, usize),
    Bad(String),
}

/// Parses one response at the front of `input`. `at_end`: the connection has ended.
pub(crate) fn parse(input: &[u8], head_only: bool, at_end: bool) -> ParsedResponse {
    let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") else {
        return ParsedResponse::Partial;
    };
    let bad = || ParsedResponse::Bad(format!("no response: {}", crate::run_trace::excerpt(input)));
    let Ok(head) = std::str::from_utf8(&input[..end]) else { return bad() };
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
    let Some(status) = status.and_then(|rest| rest.get(..3)?.parse().ok()) else { return bad() };
    let mut response = SimResponse { status, ..SimResponse::default() };
    for line in lines {
        let Some((name, value)) = line.split_once(": ") else { return bad() };
        response.fields.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let body = &input[end + 4..];
    response.has_no_trailers = response.field("transfer-encoding") != Some("chunked");
    if SimResponse::is_bodiless(status, head_only) {
        return ParsedResponse::Complete(response, end + 4);
    }
    if response.field("transfer-encoding") == Some("chunked") {
        return parse_chunks(body, response, end + 4);
    }
    match response.field("content-length").map(str::parse::<usize>) {
        Some(Ok(length)) if body.len() >= length => {
            response.body = body[..length].to_vec();
            ParsedResponse::Complete(response, end + 4 + length)
        }
        Some(Ok(_)) => ParsedResponse::Partial,
        Some(Err(_)) => bad(),
        None if at_end => {
            response.body = body.to_vec();
            ParsedResponse::Complete(response, input.len())
        }
        None => ParsedResponse::Partial,
    }
}

fn parse_chunks(body: &[u8], mut response: SimResponse, start: usize) -> ParsedResponse {
    let mut at = 0;
    loop {
        let rest = &body[at..];
        let Some(eol) = rest.windows(2).position(|two| two == b"\r\n") else {
            return ParsedResponse::Partial;
        };
        let size = std::str::from_utf8(&rest[..eol]).ok();
        let Some(size) = size.and_then(|text| usize::from_str_radix(text, 16).ok()) else {
            return ParsedResponse::Bad(format!("no chunk: {}", crate::run_trace::excerpt(rest)));
        };
        let (from, to) = (eol + 2, eol + 2 + size);
        if size == 0 {
            return parse_trailers(&rest[from..], response, start + at + from);
        }
        match rest.get(to..to + 2) {
            Some(b"\r\n") => {}
            Some(_) => return ParsedResponse::Bad("a chunk without an end".to_owned()),
            None => return ParsedResponse::Partial,
        }
        response.body.extend_from_slice(&rest[from..to]);
        at += to + 2;
    }
}

/// Lines up to an empty one.
fn parse_trailers(mut rest: &[u8], mut response: SimResponse, mut at: usize) -> ParsedResponse {
    loop {
        let Some(eol) = rest.windows(2).position(|two| two == b"\r\n") else {
            return ParsedResponse::Partial;
        };
        let line = String::from_utf8_lossy(&rest[..eol]).into_owned();
        (rest, at) = (&rest[eol + 2..], at + eol + 2);
        match line.split_once(": ") {
            Some((name, value)) => response.trailers.push((name.to_owned(), value.to_owned())),
            None if line.is_empty() => return ParsedResponse::Complete(response, at),
            None => return ParsedResponse::Bad(format!("no trailer: {line}")),
        }
    }
}
