//! An HTTP/3 client over a QUIC connection, from an address that may change.
//!
//! The guarantee is that of other clients: every request gets a response, unless the server
//! announced that it would not. A network that loses datagrams may break a connection; one that
//! only delays them may not.

mod close;
mod conn;
mod credit;
mod frame;
mod http_layer;
mod misbehaviour;

use std::sync::Arc;

use quinn_proto::crypto::rustls::QuicClientConfig;

use crate::client::{ClientBase, StepResult, response_oracle};
use crate::kernel::Kernel;
use crate::oracle::ConfigEpoch;
use crate::time::MILLI;
use crate::tls;
use close::may_lose;
use conn::{H3ConnEvent, H3ConnectParams, SimH3Conn, SimH3Transport};
use frame::code;
use http_layer::{CANCELLED, H3Event, HttpLayer, SimH3Stream};
use misbehaviour::H3Behaviour;

/// Nanoseconds that a handshake may take.
const HANDSHAKE_MAX: u64 = 20_000 * MILLI;
/// Connections of one client, at most.
const CONNECTIONS_MAX: u32 = 300;

/// A client that speaks HTTP/3.
#[derive(Debug)]
pub struct SimH3Client {
    pub(super) base: ClientBase,
    session: Option<Box<H3Session>>,
    /// TLS settings and the sessions that may be resumed.
    tls: Option<Tls>,
    connections: u32,
}

/// The TLS settings that the connections share, so that they can resume each other's sessions.
#[derive(Clone)]
struct Tls(Arc<QuicClientConfig>);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// A connection and its state.
#[derive(Debug)]
struct H3Session {
    conn: SimH3Conn,
    http: HttpLayer,
    behaviour: H3Behaviour,
    depth: usize,
    /// Nanoseconds between PINGs; 0 for none.
    pings: u64,
    /// The client may open streams.
    is_ready: bool,
    /// The server may reject all that is sent now (0-RTT).
    is_early: bool,
    /// The client has broken rules or has vanished: its responses are not checked.
    is_unchecked: bool,
    /// A response was complete.
    has_answers: bool,
    /// The client has updated its keys.
    has_new_keys: bool,
    /// It sends no request before this time.
    asks_at: u64,
    /// It reads nothing before this time.
    reads_at: u64,
    /// It disconnects at this time, if it has no request left.
    leaves_at: Option<u64>,
    began: u64,
}

impl SimH3Client {
    pub(super) const fn new(base: ClientBase) -> Self {
        Self { base, session: None, tls: None, connections: 0 }
    }

    pub(super) fn step(&mut self, kernel: &mut Kernel, epochs: &[ConfigEpoch]) -> StepResult {
        let Some(mut session) = self.session.take() else { return self.connect(kernel, epochs) };
        let mut worked = session.conn.receive(kernel);
        while let Some(event) = session.conn.poll() {
            worked = true;
            if self.handle_conn_event(kernel, epochs, &mut session, event) == Over::Yes {
                kernel.abandon_host(session.conn.host);
                return StepResult::Worked;
            }
        }
        if !session.is_ready {
            if kernel.nanos > session.began + HANDSHAKE_MAX {
                return self.fail_handshake(kernel, &session);
            }
            worked |= session.conn.transmit(kernel);
            return self.keep(kernel, session, worked);
        }
        worked |= self.request(kernel, &mut session);
        worked |= session.http.write(&mut session.conn, &mut self.base.chance);
        match self.read(kernel, epochs, &mut session) {
            Ok(any) => worked |= any,
            Err(problem) if session.is_unchecked => {
                kernel.trace(|| format!("after broken rules: {problem}"));
                return self.close_on_violation(kernel, session);
            }
            Err(problem) => {
                self.base.record_violation(kernel, &problem);
                return self.close_on_violation(kernel, session);
            }
        }
        worked |= self.misbehave(kernel, &mut session);
        worked |= session.conn.transmit(kernel);
        if self.wants_to_leave(kernel, &mut session) {
            return self.leave(kernel, session);
        }
        self.keep(kernel, session, worked)
    }

    fn keep(&mut self, kernel: &Kernel, mut session: Box<H3Session>, worked: bool) -> StepResult {
        let now = kernel.nanos;
        let shaken_by = (!session.is_ready).then_some(session.began + HANDSHAKE_MAX + 1);
        let times = [Some(session.asks_at), Some(session.reads_at), session.leaves_at, shaken_by];
        let own = times.into_iter().flatten().filter(|at| *at > now);
        let next = own.chain(session.conn.deadline()).min();
        let waits = kernel.has_datagrams(session.conn.host);
        self.session = Some(session);
        if worked || waits { StepResult::Worked } else { StepResult::Waits(next) }
    }

    fn connect(&mut self, kernel: &mut Kernel, epochs: &[ConfigEpoch]) -> StepResult {
        if self.base.todo.is_empty() {
            return StepResult::Done;
        }
        self.connections += 1;
        if self.connections > CONNECTIONS_MAX {
            self.base.record_violation(kernel, "connects again and again without a response");
            self.base.todo.clear();
            return StepResult::Done;
        }
        match self.open_session(kernel, epochs) {
            Ok(session) => self.session = Some(Box::new(session)),
            Err(problem) => {
                self.base.record_violation(kernel, &problem);
                self.base.todo.clear();
            }
        }
        StepResult::Worked
    }

    fn open_session(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
    ) -> Result<H3Session, String> {
        let ports = epochs.last().map_or(&[][..], |epoch| &epoch.quic_ports);
        let ClientBase { number: client, chance, profile, .. } = &mut self.base;
        let port = ports[chance.index(ports.len())];
        let forgets = chance.one_in(6);
        let tls = match self.tls.clone().filter(|_| !forgets) {
            Some(tls) => tls,
            None => Tls(tls::client(b"h3")?),
        };
        self.tls = Some(tls.clone());
        let transport = SimH3Transport::any(chance);
        let conn =
            SimH3Conn::new(kernel, &H3ConnectParams { tls: tls.0, port }, transport, chance)?;
        let host = conn.host;
        kernel
            .trace(|| format!("client {client} at host {host} connects to {port}: {transport:?}"));
        let behaviour = H3Behaviour::any(chance, profile);
        kernel.trace(|| format!("host {host}: {behaviour:?}"));
        Ok(H3Session {
            conn,
            http: HttpLayer::new(transport),
            behaviour,
            depth: chance.between(1, 2 * profile.depth_max) as usize,
            pings: transport.pings,
            is_ready: false,
            is_early: false,
            is_unchecked: false,
            has_answers: false,
            has_new_keys: false,
            asks_at: 0,
            reads_at: 0,
            leaves_at: None,
            began: kernel.nanos,
        })
    }

    fn handle_conn_event(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        session: &mut H3Session,
        event: H3ConnEvent,
    ) -> Over {
        match event {
            H3ConnEvent::Ready { early } => {
                (session.is_ready, session.is_early) = (true, early);
                if !session.http.open_streams(&mut session.conn, &mut self.base.chance) {
                    self.base.record_violation(kernel, "no streams of our own are allowed");
                }
            }
            H3ConnEvent::EarlyRefused => {
                for stream in session.http.reset().into_values().rev() {
                    self.base.todo.push_front(stream.request);
                }
                session.is_early = false;
                if !session.http.open_streams(&mut session.conn, &mut self.base.chance) {
                    self.base.record_violation(kernel, "no streams of our own are allowed");
                }
            }
            H3ConnEvent::Readable(stream) => {
                session.http.readable.insert(stream);
                while let Some(other) = session.conn.accept() {
                    session.http.readable.insert(other);
                }
            }
            H3ConnEvent::Stopped(stream) => {
                // RFC 9000 §3.5: the answer to STOP_SENDING is RESET_STREAM.
                session.conn.reset(stream, code::NO_ERROR);
                if let Some(stream) = session.http.streams.get_mut(&stream) {
                    stream.discard_output();
                }
            }
            H3ConnEvent::Confirmed => session.is_early = false,
            H3ConnEvent::Writable => {}
            H3ConnEvent::Lost(reason) => {
                self.end(kernel, epochs, session, &reason);
                return Over::Yes;
            }
        }
        Over::No
    }

    /// Sends another request, if one is due.
    fn request(&mut self, kernel: &mut Kernel, session: &mut H3Session) -> bool {
        let ClientBase { chance, profile, .. } = &mut self.base;
        if session.is_unchecked || session.http.goaway.is_some() || session.asks_at > kernel.nanos {
            return false;
        }
        if session.http.streams.len() >= session.depth {
            return false;
        }
        if chance.one_in(profile.rest_in) {
            session.asks_at = kernel.nanos + chance.below(profile.rest_max);
            return true;
        }
        let port = session.conn.port;
        let Some(request) = self.base.next(kernel.nanos, port) else { return false };
        let what = format!("{} {}", request.method(), request.target());
        let is_early = session.is_early;
        match session.http.request(&mut session.conn, request, is_early, &mut self.base.chance) {
            None => {
                let client = self.base.number;
                kernel.trace(|| format!("client {client} requests {what}"));
                true
            }
            // The server grants no further stream now.
            Some(request) => {
                self.base.todo.push_front(request);
                false
            }
        }
    }

    fn read(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        session: &mut H3Session,
    ) -> Result<bool, String> {
        if session.http.readable.is_empty() {
            return Ok(false);
        }
        let chance = &mut self.base.chance;
        let max = match session.behaviour {
            H3Behaviour::StopsReading => 0,
            H3Behaviour::SlowReads { .. } if session.reads_at > kernel.nanos => 0,
            H3Behaviour::SlowReads { bytes, pause } => {
                session.reads_at = kernel.nanos + pause;
                bytes
            }
            _ => chance.size(self.base.profile.read_max),
        };
        self.read_some(kernel, epochs, session, max)
    }

    fn read_some(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        session: &mut H3Session,
        max: usize,
    ) -> Result<bool, String> {
        let (any, events) = session.http.read(&mut session.conn, max, kernel.nanos)?;
        for event in events {
            match event {
                H3Event::Response(id) => self.handle_response(kernel, epochs, session, id),
                H3Event::Reset(id, code) => self.handle_reset(kernel, epochs, session, id, code),
                H3Event::GoAway(from) => {
                    let host = session.conn.host;
                    kernel.trace(|| format!("host {host}: GOAWAY {from}"));
                    let unprocessed: Vec<u64> =
                        session.http.streams.range(from..).map(|(id, _)| *id).collect();
                    for id in unprocessed.into_iter().rev() {
                        if let Some(stream) = session.http.streams.remove(&id) {
                            session.conn.cancel(id, CANCELLED);
                            self.base.todo.push_front(stream.request);
                        }
                    }
                }
            }
        }
        Ok(any)
    }

    fn handle_response(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        session: &mut H3Session,
        id: u64,
    ) {
        let Some(stream) = session.http.streams.remove(&id) else { return };
        if !stream.is_sent() {
            // The rest of the upload is not needed any more.
            session.conn.reset(id, code::NO_ERROR);
        }
        session.has_answers = true;
        // RFC 8470 §5.2: after 425 the client repeats the request.
        if stream.response.status == 425 && stream.is_early {
            return self.base.todo.push_front(stream.request);
        }
        self.base.check_response(kernel, epochs, &stream.request, &stream.response);
    }

    fn handle_reset(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        session: &mut H3Session,
        id: u64,
        code: u64,
    ) {
        let Some(stream) = session.http.streams.remove(&id) else { return };
        let is_excused = session.is_unchecked
            || self.may_be_late(kernel, session, &stream)
            || response_oracle(kernel, epochs).may_be_cut(&stream.request, kernel.nanos);
        match code {
            code::REQUEST_REJECTED => self.base.todo.push_front(stream.request),
            _ if is_excused => self.base.excused += 1,
            _ => {
                let target = stream.request.target();
                let has = stream.response.body.len();
                self.base.record_violation(
                    kernel,
                    &format!("{target} was reset with {code:x} at {has}"),
                );
            }
        }
    }

    /// Whether the server may have timed out while it waited for this client.
    fn may_be_late(&self, kernel: &Kernel, session: &H3Session, stream: &SimH3Stream) -> bool {
        match session.behaviour {
            H3Behaviour::StopsReading => true,
            // Repeated losses may have exceeded the server's timeout.
            _ if may_lose(kernel, session) => true,
            // A client that grants credit now and then is slow, not timed out; datagrams that grant
            // it differ in latency.
            _ => {
                stream.longest_credit_gap(kernel.nanos) + kernel.net.conditions.latency.1
                    >= kernel.quic_timeouts.send
            }
        }
    }

    fn excuse(&mut self, session: &mut H3Session) {
        self.base.excused += session.http.streams.len();
        session.http.streams.clear();
    }
}

/// Whether a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Yes,
    No,
}
