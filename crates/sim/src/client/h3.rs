//! An HTTP/3 client over a QUIC connection of its own, from an address that may change.
//!
//! The guarantee is that of other clients: every request gets a response, unless the server
//! announced that it would not. A network that loses datagrams may break a connection; one that
//! only delays them may not.

mod conn;
mod credit;
mod frame;
mod mischief;
mod talk;

use std::sync::Arc;

use quinn_proto::ConnectionError;
use quinn_proto::crypto::rustls::QuicClientConfig;

use crate::client::{Base, SimAct, truth};
use crate::kernel::Kernel;
use crate::scenario::MILLI;
use crate::secrets;
use crate::truth::Era;
use conn::{SimH3Call, SimH3Conn, SimH3Transport, Tidings};
use frame::code;
use mischief::Manner;
use talk::{CANCELLED, FAREWELL, SimH3News, SimH3Stream, Talk};

/// Nanoseconds that a handshake may take.
const HANDSHAKE_MAX: u64 = 20_000 * MILLI;
/// Connections of one client, at most.
const CALLS_MAX: u32 = 300;

/// A client that speaks HTTP/3.
#[derive(Debug)]
pub struct SimH3Client {
    pub(super) base: Base,
    line: Option<Box<Line>>,
    /// Its side of TLS, with the sessions that it may take up again.
    tls: Option<Tls>,
    calls: u32,
}

/// What connections share that may take up each other's sessions.
#[derive(Clone)]
struct Tls(Arc<QuicClientConfig>);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// A connection with all that belongs to it.
#[derive(Debug)]
struct Line {
    conn: SimH3Conn,
    talk: Talk,
    manner: Manner,
    depth: usize,
    /// Nanoseconds between its signs of life; 0: none.
    pings: u64,
    /// Streams may be used.
    is_ready: bool,
    /// What is sent now may be refused as a whole.
    is_early: bool,
    /// Rules were broken: whatever comes is right.
    is_spoiled: bool,
    /// Some answer was complete.
    has_answers: bool,
    /// It has changed its keys.
    has_new_keys: bool,
    /// It asks nothing more before this time.
    asks_at: u64,
    /// It reads nothing more before this time.
    reads_at: u64,
    /// It leaves then, if it has nothing more to ask.
    leaves_at: Option<u64>,
    began: u64,
}

impl SimH3Client {
    pub(super) const fn new(base: Base) -> Self {
        Self { base, line: None, tls: None, calls: 0 }
    }

    pub(super) fn act(&mut self, kernel: &mut Kernel, eras: &[Era]) -> SimAct {
        let Some(mut line) = self.line.take() else { return self.call(kernel, eras) };
        let mut worked = line.conn.receive(kernel);
        while let Some(tidings) = line.conn.poll() {
            worked = true;
            if self.hear_transport(kernel, eras, &mut line, tidings) == Over::Yes {
                kernel.abandon_host(line.conn.host);
                return SimAct::Worked;
            }
        }
        if !line.is_ready {
            if kernel.nanos > line.began + HANDSHAKE_MAX {
                return self.give_up(kernel, &line);
            }
            worked |= line.conn.transmit(kernel);
            return self.keep(kernel, line, worked);
        }
        worked |= self.ask(kernel, &mut line);
        worked |= line.talk.write(&mut line.conn, &mut self.base.chance);
        match self.read(kernel, eras, &mut line) {
            Ok(any) => worked |= any,
            Err(problem) if line.is_spoiled => {
                kernel.tell(|| format!("a spoiled line: {problem}"));
                return self.hang_up(kernel, line);
            }
            Err(problem) => {
                self.base.complain(kernel, &problem);
                return self.hang_up(kernel, line);
            }
        }
        worked |= self.misbehave(kernel, &mut line);
        worked |= line.conn.transmit(kernel);
        if self.wants_to_leave(kernel, &mut line) {
            return self.leave(kernel, line);
        }
        self.keep(kernel, line, worked)
    }

    fn keep(&mut self, kernel: &Kernel, mut line: Box<Line>, worked: bool) -> SimAct {
        let now = kernel.nanos;
        let shaken_by = (!line.is_ready).then_some(line.began + HANDSHAKE_MAX + 1);
        let times = [Some(line.asks_at), Some(line.reads_at), line.leaves_at, shaken_by];
        let own = times.into_iter().flatten().filter(|at| *at > now);
        let next = own.chain(line.conn.deadline()).min();
        let waits = kernel.has_datagrams(line.conn.host);
        self.line = Some(line);
        if worked || waits { SimAct::Worked } else { SimAct::Waits(next) }
    }

    fn call(&mut self, kernel: &mut Kernel, eras: &[Era]) -> SimAct {
        if self.base.todo.is_empty() {
            return SimAct::Done;
        }
        self.calls += 1;
        if self.calls > CALLS_MAX {
            self.base.complain(kernel, "calls and calls and comes to nothing");
            self.base.todo.clear();
            return SimAct::Done;
        }
        match self.dial(kernel, eras) {
            Ok(line) => self.line = Some(Box::new(line)),
            Err(problem) => {
                self.base.complain(kernel, &problem);
                self.base.todo.clear();
            }
        }
        SimAct::Worked
    }

    fn dial(&mut self, kernel: &mut Kernel, eras: &[Era]) -> Result<Line, String> {
        let ports = eras.last().map_or(&[][..], |era| &era.quic_ports);
        let Base { number: client, chance, habits, .. } = &mut self.base;
        let port = ports[chance.index(ports.len())];
        let forgets = chance.one_in(6);
        let tls = match self.tls.clone().filter(|_| !forgets) {
            Some(tls) => tls,
            None => Tls(secrets::client(b"h3")?),
        };
        self.tls = Some(tls.clone());
        let transport = SimH3Transport::any(chance);
        let conn = SimH3Conn::new(kernel, &SimH3Call { tls: tls.0, port }, transport, chance)?;
        let host = conn.host;
        kernel.tell(|| format!("client {client} at host {host} calls {port}: {transport:?}"));
        let manner = Manner::any(chance, habits);
        kernel.tell(|| format!("host {host}: {manner:?}"));
        Ok(Line {
            conn,
            talk: Talk::new(transport),
            manner,
            depth: chance.between(1, 2 * habits.depth_max) as usize,
            pings: transport.pings,
            is_ready: false,
            is_early: false,
            is_spoiled: false,
            has_answers: false,
            has_new_keys: false,
            asks_at: 0,
            reads_at: 0,
            leaves_at: None,
            began: kernel.nanos,
        })
    }

    fn hear_transport(
        &mut self,
        kernel: &mut Kernel,
        eras: &[Era],
        line: &mut Line,
        tidings: Tidings,
    ) -> Over {
        match tidings {
            Tidings::Ready { early } => {
                (line.is_ready, line.is_early) = (true, early);
                if !line.talk.begin(&mut line.conn, &mut self.base.chance) {
                    self.base.complain(kernel, "no streams of our own are allowed");
                }
            }
            Tidings::EarlyRefused => {
                for stream in line.talk.forget().into_values().rev() {
                    self.base.todo.push_front(stream.ask);
                }
                line.is_early = false;
                if !line.talk.begin(&mut line.conn, &mut self.base.chance) {
                    self.base.complain(kernel, "no streams of our own are allowed");
                }
            }
            Tidings::Readable(stream) => {
                line.talk.readable.insert(stream);
                while let Some(other) = line.conn.accept() {
                    line.talk.readable.insert(other);
                }
            }
            Tidings::Stopped(stream) => {
                // RFC 9000 §3.5: STOP_SENDING is answered with RESET_STREAM.
                line.conn.reset(stream, code::NO_ERROR);
                if let Some(stream) = line.talk.streams.get_mut(&stream) {
                    stream.mute();
                }
            }
            Tidings::Confirmed => line.is_early = false,
            Tidings::Writable => {}
            Tidings::Lost(reason) => {
                self.end(kernel, eras, line, &reason);
                return Over::Yes;
            }
        }
        Over::No
    }

    /// Makes another request, if the time has come for one.
    fn ask(&mut self, kernel: &mut Kernel, line: &mut Line) -> bool {
        let Base { chance, habits, .. } = &mut self.base;
        if line.is_spoiled || line.talk.goaway.is_some() || line.asks_at > kernel.nanos {
            return false;
        }
        if line.talk.streams.len() >= line.depth {
            return false;
        }
        if chance.one_in(habits.rest_in) {
            line.asks_at = kernel.nanos + chance.below(habits.rest_max);
            return true;
        }
        let port = line.conn.port;
        let Some(ask) = self.base.next(kernel.nanos, port) else { return false };
        let what = format!("{} {}", ask.method(), ask.target());
        let is_early = line.is_early;
        match line.talk.request(&mut line.conn, ask, is_early, &mut self.base.chance) {
            None => {
                let client = self.base.number;
                kernel.tell(|| format!("client {client} asks {what}"));
                true
            }
            // The server grants no more streams for now.
            Some(ask) => {
                self.base.todo.push_front(ask);
                false
            }
        }
    }

    fn read(&mut self, kernel: &mut Kernel, eras: &[Era], line: &mut Line) -> Result<bool, String> {
        if line.talk.readable.is_empty() {
            return Ok(false);
        }
        let chance = &mut self.base.chance;
        let max = match line.manner {
            Manner::Stalls => 0,
            Manner::Sips { .. } if line.reads_at > kernel.nanos => 0,
            Manner::Sips { bytes, pause } => {
                line.reads_at = kernel.nanos + pause;
                bytes
            }
            _ => chance.size(self.base.habits.read_max),
        };
        self.read_some(kernel, eras, line, max)
    }

    fn read_some(
        &mut self,
        kernel: &mut Kernel,
        eras: &[Era],
        line: &mut Line,
        max: usize,
    ) -> Result<bool, String> {
        let (any, news) = line.talk.read(&mut line.conn, max, kernel.nanos)?;
        for news in news {
            match news {
                SimH3News::Answer(id) => self.hear_answer(kernel, eras, line, id),
                SimH3News::Reset(id, code) => self.hear_reset(kernel, eras, line, id, code),
                SimH3News::GoAway(from) => {
                    let host = line.conn.host;
                    kernel.tell(|| format!("host {host}: GOAWAY {from}"));
                    let unheard: Vec<u64> =
                        line.talk.streams.range(from..).map(|(id, _)| *id).collect();
                    for id in unheard.into_iter().rev() {
                        if let Some(stream) = line.talk.streams.remove(&id) {
                            line.conn.cancel(id, CANCELLED);
                            self.base.todo.push_front(stream.ask);
                        }
                    }
                }
            }
        }
        Ok(any)
    }

    fn hear_answer(&mut self, kernel: &mut Kernel, eras: &[Era], line: &mut Line, id: u64) {
        let Some(stream) = line.talk.streams.remove(&id) else { return };
        if !stream.is_sent() {
            // What is still to be uploaded is not wanted any more.
            line.conn.reset(id, code::NO_ERROR);
        }
        line.has_answers = true;
        // RFC 8470 §5.2: what might be a replay may have to be asked again.
        if stream.answer.status == 425 && stream.is_early {
            return self.base.todo.push_front(stream.ask);
        }
        self.base.judge(kernel, eras, &stream.ask, &stream.answer);
    }

    fn hear_reset(
        &mut self,
        kernel: &mut Kernel,
        eras: &[Era],
        line: &mut Line,
        id: u64,
        code: u64,
    ) {
        let Some(stream) = line.talk.streams.remove(&id) else { return };
        let is_excused = line.is_spoiled
            || self.may_be_late(kernel, line, &stream)
            || truth(kernel, eras).may_be_cut(&stream.ask, kernel.nanos);
        match code {
            code::REQUEST_REJECTED => self.base.todo.push_front(stream.ask),
            _ if is_excused => self.base.forgiven += 1,
            _ => {
                let target = stream.ask.target();
                let has = stream.answer.body.len();
                self.base.complain(kernel, &format!("{target} was reset with {code:x} at {has}"));
            }
        }
    }

    /// Whether the server may have been tired of waiting for us.
    fn may_be_late(&self, kernel: &Kernel, line: &Line, stream: &SimH3Stream) -> bool {
        match line.manner {
            Manner::Stalls => true,
            // What was lost again and again may not have come for as long as the server waits.
            _ if loses(kernel, line) => true,
            // A client that gives room now and then is slow, not timed out; words of it travel
            // faster or slower than others.
            _ => stream.silence(kernel.nanos) + kernel.net.weather.way.1 >= kernel.patience.send,
        }
    }

    /// The connection is over: which requests are left without a response?
    fn end(
        &mut self,
        kernel: &mut Kernel,
        eras: &[Era],
        line: &mut Line,
        reason: &ConnectionError,
    ) {
        let (host, client) = (line.conn.host, self.base.number);
        kernel.tell(|| format!("client {client} at host {host} is cut off: {reason}"));
        // What has arrived may still be read.
        line.talk.readable.extend(line.talk.streams.keys());
        line.reads_at = 0;
        match self.read_some(kernel, eras, line, usize::MAX) {
            Err(problem) if !line.is_spoiled => self.base.complain(kernel, &problem),
            _ => {}
        }
        let streams = std::mem::take(&mut line.talk.streams);
        let verdict = self.verdict(kernel, line, reason);
        if let Verdict::Wrong(problem) = &verdict {
            self.base.complain(kernel, problem);
        }
        for (id, stream) in streams.into_iter().rev() {
            let is_unheard = line.talk.goaway.is_some_and(|from| id >= from);
            let ask = stream.ask;
            if is_unheard || verdict == Verdict::Again {
                self.base.todo.push_front(ask);
            } else if matches!(verdict, Verdict::Forgiven | Verdict::Refused)
                || truth(kernel, eras).may_be_cut(&ask, kernel.nanos)
            {
                self.base.forgiven += 1;
            } else {
                let (method, target) = (ask.method(), ask.target());
                let goaway = line.talk.goaway;
                let problem = format!("{method} {target} on {id} was lost ({reason}, {goaway:?})");
                self.base.complain(kernel, &problem);
            }
        }
        if verdict == Verdict::Refused {
            self.base.forgiven += self.base.todo.len();
            self.base.todo.clear();
        }
    }

    /// What is to be thought of the way a connection ended.
    fn verdict(&self, kernel: &Kernel, line: &Line, reason: &ConnectionError) -> Verdict {
        if line.is_spoiled || line.manner == Manner::Stalls {
            return Verdict::Forgiven;
        }
        let loses = loses(kernel, line);
        let silent = kernel.nanos.saturating_sub(line.conn.heard);
        match reason {
            // RFC 9000 §10.3: the next server knows what the last one promised.
            ConnectionError::Reset if kernel.net.deaths > 0 => return Verdict::Again,
            // A client whose handshake is confirmed gives signs of life well within the timeout,
            // and gets a reset for the first of them. Before, it may have no token to know one by
            // (RFC 9000 §10.3.1), and its packets may be those of a handshake that the next server
            // has no part in.
            ConnectionError::TimedOut
                if kernel.net.deaths > 0
                    && line.is_ready
                    && !line.is_early
                    && line.conn.is_confirmed()
                    && !line.conn.is_stuck()
                    && !kernel.has_lost_ports
                    && !loses
                    && (1..kernel.patience.idle / 4).contains(&line.pings) =>
            {
                return Verdict::Wrong("no reset tells of the server's death".to_owned());
            }
            ConnectionError::TimedOut if kernel.net.deaths > 0 => return Verdict::Again,
            _ => {}
        }
        match reason {
            // The server waited for what never left here.
            ConnectionError::Reset | ConnectionError::TimedOut if line.conn.is_stuck() => {
                Verdict::Again
            }
            ConnectionError::ApplicationClosed(close) => {
                let code = u64::from(close.error_code);
                match code {
                    code::NO_ERROR if !line.is_ready => Verdict::Again,
                    // GOAWAY may have been lost on the way.
                    code::NO_ERROR if loses => Verdict::Again,
                    code::NO_ERROR => Verdict::Owed,
                    // The handshake took too long.
                    0 if loses && (!line.is_ready || line.is_early) => Verdict::Again,
                    _ => Verdict::Wrong(format!("closed with {code:x}")),
                }
            }
            ConnectionError::ConnectionClosed(close) => match u64::from(close.error_code) {
                // CONNECTION_REFUSED, and APPLICATION_ERROR in a handshake.
                2 if kernel.draining => Verdict::Refused,
                // We may be done with the handshake before the server is.
                2 | 0xc if !line.talk.has_settings => Verdict::Again,
                // The server waited for what never left here, or never came, until its handshake
                // timed out.
                0xc if line.conn.is_stuck() || (loses && !line.conn.is_confirmed()) => {
                    Verdict::Again
                }
                // The server cannot know yet that its handshake was confirmed.
                0xe if loses && line.has_new_keys => Verdict::Again,
                // INVALID_TOKEN: the address has changed since.
                0xb if loses => Verdict::Again,
                code => Verdict::Wrong(format!("closed by the transport with {code:x}: {close}")),
            },
            // A request that left when the server's patience ended.
            ConnectionError::Reset | ConnectionError::TimedOut
                if loses || silent + kernel.net.weather.way.1 * 4 >= kernel.patience.idle =>
            {
                Verdict::Again
            }
            // FLOW_CONTROL_ERROR of the client's library, which counts the bytes of a stream again
            // where RESET_STREAM is sent again.
            ConnectionError::TransportError(error)
                if u64::from(error.code) == 3 && line.conn.resets_received() > 1 =>
            {
                Verdict::Again
            }
            // One bit makes version 1 the 0 of Version Negotiation, which nothing protects
            // (RFC 8999 §6), and what follows in the packet lists no version of the client's.
            ConnectionError::VersionMismatch if kernel.net.weather.flip_in > 0 => Verdict::Again,
            // Its socket may be gone.
            ConnectionError::Reset | ConnectionError::TimedOut if kernel.has_lost_ports => {
                Verdict::Again
            }
            reason => Verdict::Wrong(format!("the connection broke: {reason}")),
        }
    }

    fn wants_to_leave(&mut self, kernel: &Kernel, line: &mut Line) -> bool {
        let is_idle = line.talk.streams.is_empty();
        let is_told = line.talk.goaway.is_some();
        if is_told && is_idle {
            // Some stay to see whether the server hangs up by itself.
            let chance = &mut self.base.chance;
            let stay = if chance.one_in(3) { 30_000 * MILLI } else { 0 };
            let leaves_at = *line.leaves_at.get_or_insert(kernel.nanos + stay);
            return leaves_at <= kernel.nanos;
        }
        if line.is_spoiled || line.manner == Manner::Stalls {
            let leaves_at = *line.leaves_at.get_or_insert(kernel.nanos + 60_000 * MILLI);
            return leaves_at <= kernel.nanos;
        }
        if !is_idle || !self.base.todo.is_empty() {
            return false;
        }
        let chance = &mut self.base.chance;
        let stay = if chance.one_in(3) { 90_000 * MILLI } else { 0 };
        let leaves_at = *line.leaves_at.get_or_insert_with(|| kernel.nanos + stay);
        leaves_at <= kernel.nanos
    }

    /// It leaves, with a word or without one.
    fn leave(&mut self, kernel: &mut Kernel, mut line: Box<Line>) -> SimAct {
        let says = !self.base.chance.one_in(4);
        let (host, client) = (line.conn.host, self.base.number);
        kernel.tell(|| format!("client {client} leaves host {host}, says so: {says}"));
        if says {
            line.conn.close(kernel, FAREWELL);
        }
        self.forgive(&mut line);
        kernel.abandon_host(host);
        SimAct::Worked
    }

    /// The server does not answer the handshake.
    fn give_up(&mut self, kernel: &mut Kernel, line: &Line) -> SimAct {
        let is_excused = kernel.has_lost_ports || kernel.draining || kernel.net.deaths > 0;
        if !kernel.net.weather.loses() && !is_excused {
            self.base.complain(kernel, "a handshake comes to nothing");
        }
        kernel.abandon_host(line.conn.host);
        SimAct::Worked
    }

    fn hang_up(&mut self, kernel: &mut Kernel, mut line: Box<Line>) -> SimAct {
        line.conn.close(kernel, code::GENERAL_PROTOCOL_ERROR);
        self.forgive(&mut line);
        kernel.abandon_host(line.conn.host);
        SimAct::Worked
    }

    fn forgive(&mut self, line: &mut Line) {
        self.base.forgiven += line.talk.streams.len();
        line.talk.streams.clear();
    }
}

/// Whether what is on its way to the client may be lost.
fn loses(kernel: &Kernel, line: &Line) -> bool {
    // A client that changes its address loses the datagrams sent to the old one.
    kernel.net.weather.loses() || matches!(line.manner, Manner::Moves(_))
}

/// Whether a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Yes,
    No,
}

/// What an end means for the requests under way.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// They may be asked again.
    Again,
    /// The client waits for no response.
    Forgiven,
    /// The client has left.
    Refused,
    /// They had to be answered.
    Owed,
    /// It should not have ended so.
    Wrong(String),
}
