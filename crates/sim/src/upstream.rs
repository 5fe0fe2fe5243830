//! Applications behind FastCGI, LSAPI, HTTP, uwsgi, SCGI or gRPC, with independent encoders, with
//! or without faults.
//!
//! An application reads a request, draws its reaction, and records every fault, so that a client
//! knows which errors it may get. A correct response is a function of the request, body included:
//! bytes that were lost, duplicated or swapped in either direction are detected.

mod faults;
mod fcgi;
mod http;
mod http2;
mod lsapi;
mod page;
mod params;
mod per_request;
mod processes;
mod secure;

use crate::assembly::AssemblyPiece;
use crate::chance::Chance;
use crate::client::StepResult;
use crate::fault_record::{AppReaction, response_to};
use crate::kernel::{Kernel, SimSocket, SocketGot};
use crate::pages::PageLocation;
use crate::php_pools;
use crate::scenario::{AppProtocol, Scenario};
use crate::time::MILLI;

use page::PageReply;
use params::{param, push_pair};
use processes::Seat;
use secure::{Configs, TlsIntake, UpstreamTls};

/// An application decides before it has the request's body, once in so many times those of a
/// fault, if there are PHP pools.
const EARLY_IN: u64 = 6;
/// An application closes an idle connection, once in so many steps.
const IDLE_CLOSE_IN: u64 = 20;
/// The longest rest of an application, in nanoseconds.
const REST_MAX: u64 = 400 * MILLI;
/// The longest rest before it opens a window (HTTP/2), in nanoseconds.
const WINDOW_REST_MAX: u64 = 20 * MILLI;
/// About how long it rests within a response: a head must come before `fastcgi_read_timeout`.
const RESTED_MAX: u64 = 1500 * MILLI;

/// Records a fetch, and whether it violates coalescing.
fn count_fetch((place, page): (&str, &str), target: &str, conn: &Conn, kernel: &mut Kernel) {
    let which = PageLocation::named(place).zip(page.parse().ok());
    let Some(which) = which.filter(|_| kernel.fault_record.app_faults_of(target).is_empty()) else {
        return;
    };
    let (now, sockets) = (kernel.nanos, &kernel.sockets);
    let is_open = |fd| sockets.get(fd).is_some_and(SimSocket::is_whole);
    // The page cache's key has the port, where the application gets it.
    let target = format!("{target} {}", param(&conn.params, b"SERVER_PORT"));
    if kernel.pages.begin_fetch(which, &target, conn.fd, now, is_open) {
        kernel.violations.push(format!("{target} is asked for twice at once"));
    }
}

/// A connection of a worker.
#[derive(Debug)]
struct Conn {
    fd: i32,
    /// The address that the worker connected to.
    to: String,
    protocol: AppProtocol,
    /// The place in a PHP pool.
    seat: Option<Seat>,
    /// The TLS session, if the upstream has TLS.
    secured: Option<Box<UpstreamTls>>,
    input: Vec<u8>,
    params: Vec<u8>,
    /// All params have arrived.
    has_params: bool,
    body: Vec<u8>,
    has_body: bool,
    /// The worker wants to keep the connection open.
    keeps: bool,
    /// Bytes of the request body to come (LSAPI, uwsgi, SCGI).
    body_left: usize,
    /// Nothing more of the request is read.
    is_deaf: bool,
    /// Responses over this connection.
    served: u64,
    /// The framing of the request body (HTTP).
    coming: http::Coming,
    /// The HTTP/2 state.
    h2: Option<Box<http2::AppH2>>,
    /// The request is for a cached page.
    is_page: bool,
    /// The output, and the next state after it.
    output: Vec<u8>,
    /// How many bytes of the output were sent. They are removed once they are the greater part, so
    /// that a large output is not moved for each byte.
    written: usize,
    after: After,
    rests_until: u64,
    /// How long it has rested so far.
    rested: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// The connection reads a request.
    Read,
    /// The connection reads the next request after the output.
    Next,
    /// The connection is closed after the output; by a reset if `rude`.
    Close { rude: bool },
    /// The connection stays until the worker closes it.
    Nothing,
}

/// All applications.
#[derive(Debug)]
pub struct SimUpstream {
    chance: Chance,
    conns: Vec<Conn>,
    app_protocol: AppProtocol,
    configs: Configs,
    /// The number of children of each PHP pool, if there are pools. Then applications have more
    /// faults.
    children: Option<Vec<usize>>,
}

impl SimUpstream {
    /// The applications of a seed.
    #[must_use]
    pub fn new(seed: u64, scenario: Scenario) -> Self {
        Self {
            chance: Chance::new(seed, 3),
            conns: Vec::new(),
            app_protocol: scenario.app_protocol(),
            configs: Configs::new(),
            children: scenario.has_php_pools().then(|| php_pools::children(seed).to_vec()),
        }
    }

    /// One step of all applications.
    pub fn step(&mut self, kernel: &mut Kernel) -> StepResult {
        let mut any = false;
        while let Some((fd, to)) = kernel.pending_connects.pop_front() {
            let secured = self.secure(&to, kernel);
            let seat = self.children.as_ref().and_then(|_| Seat::at(&to, kernel.nanos));
            let protocol = match seat {
                Some(seat) if seat.has_lsapi() => AppProtocol::Lsapi,
                _ => self.app_protocol,
            };
            self.conns.push(Conn { protocol, secured, seat, to, ..Conn::new(fd) });
            any = true;
        }
        let mut next: Option<u64> = None;
        let mut conns = std::mem::take(&mut self.conns);
        if let Some(children) = &self.children {
            any |= processes::settle(&mut conns, children, kernel);
        }
        conns.retain_mut(|conn| {
            if conn.seat.is_some_and(|seat| seat.is_waiting()) {
                return true;
            }
            if conn.rests_until > kernel.nanos {
                next = Some(next.map_or(conn.rests_until, |at| at.min(conn.rests_until)));
                return true;
            }
            let (worked, stays) = self.work(conn, kernel);
            any |= worked;
            stays
        });
        self.conns = conns;
        if any { StepResult::Worked } else { StepResult::Waits(next) }
    }

    /// Reads, reacts and writes. Returns whether there was progress, and whether the connection
    /// stays open.
    fn work(&mut self, conn: &mut Conn, kernel: &mut Kernel) -> (bool, bool) {
        let mut worked = false;
        if conn.is_deaf && kernel.sockets.get(conn.fd).is_some_and(SimSocket::is_whole) {
            return self.write(conn, kernel, worked);
        }
        match kernel.client_read(conn.fd, self.chance.size(64 * 1024)) {
            SocketGot::Bytes(bytes) => {
                worked = true;
                let opened = match &mut conn.secured {
                    Some(secured) => secured.open(&bytes, &mut conn.input),
                    None => {
                        conn.input.extend_from_slice(&bytes);
                        TlsIntake::Taken
                    }
                };
                if opened == TlsIntake::Over {
                    conn.after = After::Close { rude: false };
                }
            }
            SocketGot::End | SocketGot::Reset => {
                kernel.client_leave(conn.fd, false);
                return (true, false);
            }
            SocketGot::Nothing => {}
        }
        match conn.protocol {
            AppProtocol::FastCgi => conn.parse(),
            AppProtocol::Lsapi => lsapi::parse(conn),
            AppProtocol::Http => http::parse(conn),
            AppProtocol::Uwsgi => per_request::parse_uwsgi(conn),
            AppProtocol::Scgi => per_request::parse_scgi(conn),
            AppProtocol::Grpc | AppProtocol::Http2 => match http2::parse(conn, &mut self.chance) {
                Ok(true) => {
                    worked = true;
                    conn.rests_until = kernel.nanos + self.chance.below(WINDOW_REST_MAX);
                }
                Ok(false) => {}
                Err(problem) => {
                    kernel.violations.push(format!("{}: {problem}", conn.to));
                    conn.after = After::Close { rude: true };
                }
            },
        }
        if self.children.is_some() && conn.is_idle() && self.chance.one_in(IDLE_CLOSE_IN) {
            kernel.fault_record.closed_idle += 1;
            kernel.client_leave(conn.fd, self.chance.one_in(2));
            return (true, false);
        }
        if conn.has_params && conn.after == After::Read {
            self.decide(conn, kernel);
            worked |= conn.after != After::Read;
        }
        if let Some(secured) = &mut conn.secured {
            let ends = matches!(conn.after, After::Close { .. });
            secured.seal(&mut conn.output, ends);
            worked |= secured.push(kernel, conn.fd, &mut self.chance) > 0;
        }
        self.write(conn, kernel, worked)
    }

    /// Writes a part of the output, and proceeds after its end.
    fn write(&mut self, conn: &mut Conn, kernel: &mut Kernel, mut worked: bool) -> (bool, bool) {
        if self.children.is_some() && conn.rests_until > kernel.nanos {
            return (worked, true);
        }
        if !conn.output.is_empty() && conn.secured.is_none() {
            let rest = &conn.output[conn.written..];
            let n = self.chance.size(rest.len());
            let n = if self.chance.one_in(2) { n } else { rest.len() };
            let taken = kernel.client_write(conn.fd, &rest[..n]).unwrap_or(n);
            conn.record_write(taken);
            worked |= taken > 0;
            if self.chance.one_in(if conn.is_page { 30 } else { 4 }) && conn.rested < RESTED_MAX {
                let rest = self.chance.below(REST_MAX);
                (conn.rests_until, conn.rested) = (kernel.nanos + rest, conn.rested + rest);
            }
        }
        if conn.is_flushed() {
            if let Some(seat) = &mut conn.seat {
                seat.is_over |= conn.after != After::Read && conn.after != After::Nothing;
            }
            match conn.after {
                After::Close { rude } => {
                    kernel.client_leave(conn.fd, rude);
                    return (true, false);
                }
                After::Next => {
                    kernel.pages.end_fetch(conn.fd);
                    conn.begin_next();
                    worked = true;
                }
                After::Read | After::Nothing => {}
            }
        }
        (worked, true)
    }

    /// Draws the reaction to the request that was read so far.
    fn decide(&mut self, conn: &mut Conn, kernel: &mut Kernel) {
        let query = param(&conn.params, b"QUERY_STRING");
        let (token, rest) = query.split_once('&').unwrap_or((&query, "0"));
        if let Some(problem) = conn.secured.as_ref().and_then(|secured| secured.check_client()) {
            kernel.violations.push(format!("{token}: {problem}"));
        }
        let path = param(&conn.params, b"PATH");
        let problem = kernel.dns.check_request(&path, &conn.to, kernel.nanos);
        kernel.violations.extend(problem);
        let file = param(&conn.params, b"BODY_FILE");
        if conn.has_body && !file.is_empty() && !kernel.disk.holds(&file, &conn.body) {
            kernel.violations.push(format!("{file} is not the body of {token}"));
        }
        let asked = (token, rest);
        let is_page = PageLocation::named(token).is_some() || token == "edit";
        // The faults of a page are recorded under its target.
        let target = format!("/{token}?{query}");
        let token = if is_page { &*target } else { token };
        let early_in = if self.children.is_some() { EARLY_IN } else { 50 };
        if !conn.has_body && !self.chance.one_in(early_in * kernel.fault_rates.app_fault_in) {
            return;
        }
        conn.is_page = is_page;
        let reaction = self.draw_reaction(conn, kernel);
        kernel.trace(|| {
            format!("application: {token}: {reaction:?} after {} bytes", conn.body.len())
        });
        if reaction != AppReaction::Respond {
            kernel.fault_record.record(token, reaction);
        }
        let is_head = param(&conn.params, b"REQUEST_METHOD") == "HEAD";
        if is_page && !is_head {
            count_fetch(asked, token, conn, kernel);
        }
        let page = page::answer(asked, &conn.params, reaction, &mut self.chance, kernel);
        let piece = AssemblyPiece::asked(token, rest);
        let piece =
            piece.map(|piece| PageReply { head: piece.head().to_owned(), body: piece.source() });
        let mut reply = page.or(piece).unwrap_or_else(|| PageReply {
            head: String::new(),
            body: response_to(token, rest.parse().unwrap_or(0), &conn.body),
        });
        if self.children.is_some() {
            self.make_odd(&mut reply, reaction);
        }
        let answer = self.head_and_body(&reply, reaction, is_head);
        let (mut records, may_keep) = self.encode(&answer, reaction, conn);
        if reaction == AppReaction::LongBody {
            kernel.fault_record.record_length(token, Self::stated_length(&answer));
        }
        let rude = self.chance.one_in(2);
        conn.after = match reaction {
            AppReaction::Respond
            | AppReaction::Unavailable
            | AppReaction::ShortBody
            | AppReaction::LongBody
            | AppReaction::Late
                if conn.keeps && may_keep =>
            {
                After::Next
            }
            AppReaction::Respond
            | AppReaction::Unavailable
            | AppReaction::ShortBody
            | AppReaction::LongBody
            | AppReaction::Late
            | AppReaction::EndEarly
            | AppReaction::Refuse
            | AppReaction::OversizedHead
            | AppReaction::Malformed => After::Close { rude: false },
            AppReaction::CloseEarly => After::Close { rude },
            AppReaction::CloseInResponse => {
                records.truncate(self.chance.index(records.len() - 16));
                After::Close { rude }
            }
            AppReaction::Hang => {
                records.truncate(self.chance.index(records.len() - 16));
                After::Nothing
            }
        };
        // Without the complete body the application cannot send a correct response.
        if reaction != AppReaction::CloseEarly && conn.has_body || reaction == AppReaction::Refuse {
            conn.output.extend_from_slice(&records);
        } else if conn.h2.is_some() && reaction == AppReaction::CloseEarly {
            self.push_refusal(conn);
        }
        conn.rests_until = kernel.nanos + self.chance.below(REST_MAX);
        if self.children.is_some() {
            self.prolong(conn, reaction, kernel.nanos);
        }
    }

    /// The response in the protocol of the connection, and whether the protocol lets it be kept.
    fn encode(&mut self, answer: &[u8], reaction: AppReaction, conn: &Conn) -> (Vec<u8>, bool) {
        let bytes = match conn.protocol {
            AppProtocol::FastCgi if self.children.is_some() => {
                return self.odd_records(answer, reaction);
            }
            AppProtocol::FastCgi => self.records(answer, reaction),
            AppProtocol::Lsapi => self.packets(answer, reaction),
            AppProtocol::Http => self.message(answer, reaction, &conn.params),
            AppProtocol::Uwsgi | AppProtocol::Scgi => self.said(answer, reaction, &conn.params),
            AppProtocol::Grpc | AppProtocol::Http2 => return self.frames(answer, reaction, conn),
        };
        (bytes, true)
    }

    fn draw_reaction(&mut self, conn: &Conn, kernel: &Kernel) -> AppReaction {
        if conn.has_body && !self.chance.one_in(kernel.fault_rates.app_fault_in) {
            return AppReaction::Respond;
        }
        if self.children.is_some() {
            return self.draw_odd_reaction(conn.has_body);
        }
        let all = [
            AppReaction::CloseEarly,
            AppReaction::Hang,
            AppReaction::CloseInResponse,
            AppReaction::OversizedHead,
            AppReaction::Malformed,
            AppReaction::ShortBody,
            AppReaction::Unavailable,
        ];
        let known = if conn.is_page { all.len() } else { 5 };
        let known = if conn.has_body { known } else { 2 };
        all[self.chance.index(known)]
    }

    fn head_and_body(
        &mut self,
        reply: &PageReply,
        reaction: AppReaction,
        is_head: bool,
    ) -> Vec<u8> {
        let PageReply { head, body } = reply;
        let mut answer = Vec::new();
        if reaction == AppReaction::Malformed && self.chance.one_in(2) {
            answer.extend_from_slice(b"this is no head\r\n\r\n");
        }
        answer.extend_from_slice(b"Content-Type: text/plain\r\n");
        answer.extend_from_slice(head.as_bytes());
        let has_length = self.chance.one_in(2) && !head.starts_with("Status: 304");
        if matches!(reaction, AppReaction::LongBody | AppReaction::EndEarly) {
            let length = match reaction {
                AppReaction::LongBody => self.chance.index(body.len()),
                _ => body.len(),
            };
            answer.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
        } else if reaction == AppReaction::ShortBody {
            let length = body.len() + 1 + self.chance.index(1000);
            answer.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
        } else if has_length {
            answer.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        if reaction == AppReaction::OversizedHead {
            answer.extend_from_slice(b"X-Huge: ");
            answer.resize(answer.len() + 20_000, b'h');
            answer.extend_from_slice(b"\r\n");
        }
        answer.extend_from_slice(b"\r\n");
        if !is_head {
            answer.extend_from_slice(body);
        }
        answer
    }
}

impl Conn {
    fn record_write(&mut self, bytes: usize) {
        self.written += bytes;
        if let Some(seat) = &mut self.seat {
            seat.has_written |= bytes > 0;
        }
        if 2 * self.written >= self.output.len() {
            self.output.drain(..self.written);
            self.written = 0;
        }
    }

    const fn new(fd: i32) -> Self {
        Self {
            fd,
            to: String::new(),
            protocol: AppProtocol::FastCgi,
            seat: None,
            secured: None,
            input: Vec::new(),
            params: Vec::new(),
            has_params: false,
            body: Vec::new(),
            has_body: false,
            keeps: false,
            body_left: 0,
            is_deaf: false,
            served: 0,
            coming: http::Coming::Length(0),
            h2: None,
            is_page: false,
            output: Vec::new(),
            written: 0,
            after: After::Read,
            rests_until: 0,
            rested: 0,
        }
    }

    /// Whether the connection is kept and without a request.
    const fn is_idle(&self) -> bool {
        self.served > 0
            && self.input.is_empty()
            && self.params.is_empty()
            && matches!(self.after, After::Read)
    }

    fn begin_next(&mut self) {
        self.served += 1;
        self.rested = 0;
        self.params.clear();
        self.body.clear();
        (self.has_params, self.has_body, self.after) = (false, false, After::Read);
    }
}
