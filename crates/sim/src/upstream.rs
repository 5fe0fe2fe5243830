//! Applications behind FastCGI or HTTP, with independent encoders, with or without faults.
//!
//! An application reads a request, draws its reaction, and records every fault, so that a client
//! knows which errors it may get. A correct response is a function of the request, body included:
//! bytes that were lost, duplicated or swapped in either direction are detected.

mod http;
mod page;
mod secure;

use crate::assembly::AssemblyPiece;
use crate::chance::Chance;
use crate::client::StepResult;
use crate::fault_record::{AppReaction, response_to};
use crate::kernel::{Kernel, SimSocket, SocketGot};
use crate::pages::PageLocation;
use crate::scenario::AppProtocol;
use crate::time::MILLI;

use page::PageReply;
use secure::{Configs, TlsIntake, UpstreamTls};

/// Record types of FastCGI.
const BEGIN: u8 = 1;
const ABORT: u8 = 2;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
/// The longest rest of an application, in nanoseconds.
const REST_MAX: u64 = 400 * MILLI;

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
    /// The framing of the request body (HTTP).
    coming: http::Coming,
    /// The request is for a cached page.
    is_page: bool,
    /// The output, and the next state after it.
    output: Vec<u8>,
    /// How many bytes of the output were sent. They are removed once they are the greater part, so
    /// that a large output is not moved for each byte.
    written: usize,
    after: After,
    rests_until: u64,
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
}

impl SimUpstream {
    /// The applications of a seed.
    #[must_use]
    pub const fn new(seed: u64, app_protocol: AppProtocol) -> Self {
        Self {
            chance: Chance::new(seed, 3),
            conns: Vec::new(),
            app_protocol,
            configs: Configs::new(),
        }
    }

    /// One step of all applications.
    pub fn step(&mut self, kernel: &mut Kernel) -> StepResult {
        let mut any = false;
        while let Some((fd, to)) = kernel.pending_connects.pop_front() {
            let secured = self.secure(&to, kernel);
            self.conns.push(Conn { secured, to, ..Conn::new(fd) });
            any = true;
        }
        let mut next: Option<u64> = None;
        let mut conns = std::mem::take(&mut self.conns);
        conns.retain_mut(|conn| {
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
        match self.app_protocol {
            AppProtocol::FastCgi => conn.parse(),
            AppProtocol::Http => http::parse(conn),
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
        if !conn.output.is_empty() && conn.secured.is_none() {
            let rest = &conn.output[conn.written..];
            let n = self.chance.size(rest.len());
            let n = if self.chance.one_in(2) { n } else { rest.len() };
            let taken = kernel.client_write(conn.fd, &rest[..n]).unwrap_or(n);
            conn.note_written(taken);
            worked |= taken > 0;
            if self.chance.one_in(if conn.is_page { 30 } else { 4 }) {
                conn.rests_until = kernel.nanos + self.chance.below(REST_MAX);
            }
        }
        if conn.is_flushed() {
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
        if !conn.has_body && !self.chance.one_in(50 * kernel.fault_rates.app_fault_in) {
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
        let reply = page.or(piece).unwrap_or_else(|| PageReply {
            head: String::new(),
            body: response_to(token, rest.parse().unwrap_or(0), &conn.body),
        });
        let answer = self.head_and_body(&reply, reaction, is_head);
        let mut records = match self.app_protocol {
            AppProtocol::FastCgi => self.records(&answer, reaction),
            AppProtocol::Http => self.message(&answer, reaction, &conn.params),
        };
        let rude = self.chance.one_in(2);
        conn.after = match reaction {
            AppReaction::Respond | AppReaction::Unavailable | AppReaction::ShortBody
                if conn.keeps =>
            {
                After::Next
            }
            AppReaction::Respond
            | AppReaction::Unavailable
            | AppReaction::ShortBody
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
        if reaction != AppReaction::CloseEarly && conn.has_body {
            conn.output = records;
        }
        conn.rests_until = kernel.nanos + self.chance.below(REST_MAX);
    }

    fn draw_reaction(&mut self, conn: &Conn, kernel: &Kernel) -> AppReaction {
        if conn.has_body && !self.chance.one_in(kernel.fault_rates.app_fault_in) {
            return AppReaction::Respond;
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
        if reaction == AppReaction::ShortBody {
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

    /// The response in records of random size and padding, with STDERR records in between.
    fn records(&mut self, answer: &[u8], reaction: AppReaction) -> Vec<u8> {
        let mut records = Vec::new();
        let mut rest = answer;
        while !rest.is_empty() {
            let n = self.chance.size(rest.len().min(65_535));
            self.push(&mut records, STDOUT, &rest[..n]);
            rest = &rest[n..];
            if self.chance.one_in(8) {
                self.push(&mut records, STDERR, b"PHP message: a notice");
            }
        }
        if reaction == AppReaction::Malformed {
            records.extend_from_slice(b"\x09\x06\x00\x01\xff\xff\xff\x00 no record");
        }
        self.push(&mut records, STDOUT, b"");
        self.push(&mut records, END, &[0; 8]);
        records
    }

    fn push(&mut self, out: &mut Vec<u8>, kind: u8, content: &[u8]) {
        let padding = if self.chance.one_in(2) { 0 } else { self.chance.below(256) as u8 };
        out.extend_from_slice(&[1, kind, 0, 1]);
        out.extend_from_slice(&(content.len() as u16).to_be_bytes());
        out.extend_from_slice(&[padding, 0]);
        out.extend_from_slice(content);
        out.resize(out.len() + usize::from(padding), 0);
    }
}

impl Conn {
    fn note_written(&mut self, bytes: usize) {
        self.written += bytes;
        if 2 * self.written >= self.output.len() {
            self.output.drain(..self.written);
            self.written = 0;
        }
    }

    const fn new(fd: i32) -> Self {
        Self {
            fd,
            to: String::new(),
            secured: None,
            input: Vec::new(),
            params: Vec::new(),
            has_params: false,
            body: Vec::new(),
            has_body: false,
            keeps: false,
            coming: http::Coming::Length(0),
            is_page: false,
            output: Vec::new(),
            written: 0,
            after: After::Read,
            rests_until: 0,
        }
    }

    fn begin_next(&mut self) {
        self.params.clear();
        self.body.clear();
        (self.has_params, self.has_body, self.after) = (false, false, After::Read);
    }

    /// Takes complete records.
    fn parse(&mut self) {
        while let Some(header) = self.input.first_chunk::<8>() {
            let [_, kind, _, _, high, low, padding, _] = *header;
            let len = usize::from(u16::from_be_bytes([high, low]));
            let end = 8 + len + usize::from(padding);
            if self.input.len() < end || self.after == After::Next {
                return;
            }
            let content: Vec<u8> = self.input[8..8 + len].to_vec();
            self.input.drain(..end);
            match kind {
                BEGIN => self.keeps = content.get(2).is_some_and(|flags| flags & 1 == 1),
                PARAMS if content.is_empty() => self.has_params = true,
                PARAMS => self.params.extend_from_slice(&content),
                STDIN if content.is_empty() => self.has_body = true,
                STDIN => self.body.extend_from_slice(&content),
                ABORT => {
                    self.output.clear();
                    self.written = 0;
                    self.after = After::Close { rude: false };
                }
                _ => {}
            }
        }
    }
}

/// The value of a param.
fn param(mut pairs: &[u8], wanted: &[u8]) -> String {
    fn length(bytes: &mut &[u8]) -> Option<usize> {
        let first = *bytes.first()?;
        if first < 128 {
            *bytes = &bytes[1..];
            return Some(usize::from(first));
        }
        let four = bytes.first_chunk::<4>()?;
        let len = u32::from_be_bytes(*four) & 0x7fff_ffff;
        *bytes = &bytes[4..];
        Some(len as usize)
    }
    while let (Some(name), Some(value)) = (length(&mut pairs), length(&mut pairs)) {
        let Some((pair, rest)) = pairs.split_at_checked(name + value) else { break };
        if &pair[..name] == wanted {
            return String::from_utf8_lossy(&pair[name..]).into_owned();
        }
        pairs = rest;
    }
    String::new()
}
