//! The close of a connection: whether the server may close it, and the responses that it owed.

use quinn_proto::ConnectionError;

use super::frame::code;
use super::http_layer::CLOSE_CODE;
use super::misbehaviour::H3Behaviour;
use super::{H3Session, SimH3Client};
use crate::client::{StepResult, response_oracle};
use crate::kernel::Kernel;
use crate::oracle::ConfigEpoch;
use crate::time::MILLI;

/// How a close affects the requests without a response.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CloseVerdict {
    /// The client may repeat them.
    Retry,
    /// The server did not owe a response.
    Excused,
    /// The server refuses new connections, so the client stops.
    Refused,
    /// The server owed a response.
    Owed,
    /// The server should not have closed.
    Violation(String),
}

impl SimH3Client {
    /// Checks the close of the connection: which requests did the server owe a response?
    pub(super) fn end(
        &mut self,
        kernel: &mut Kernel,
        epochs: &[ConfigEpoch],
        session: &mut H3Session,
        reason: &ConnectionError,
    ) {
        let (host, client) = (session.conn.host, self.base.number);
        kernel.trace(|| format!("client {client} at host {host} is cut off: {reason}"));
        // The received bytes can still be read.
        session.http.readable.extend(session.http.streams.keys());
        session.reads_at = 0;
        match self.read_some(kernel, epochs, session, usize::MAX) {
            Err(problem) if !session.is_unchecked => self.base.record_violation(kernel, &problem),
            _ => {}
        }
        let streams = std::mem::take(&mut session.http.streams);
        let verdict = self.verdict(kernel, session, reason);
        if let CloseVerdict::Violation(problem) = &verdict {
            self.base.record_violation(kernel, problem);
        }
        for (id, stream) in streams.into_iter().rev() {
            let is_unprocessed = session.http.goaway.is_some_and(|from| id >= from);
            let request = stream.request;
            if is_unprocessed || verdict == CloseVerdict::Retry {
                self.base.todo.push_front(request);
            } else if matches!(verdict, CloseVerdict::Excused | CloseVerdict::Refused)
                || response_oracle(kernel, epochs).may_be_cut(&request, kernel.nanos)
            {
                self.base.excused += 1;
            } else {
                let (method, target) = (request.method(), request.target());
                let goaway = session.http.goaway;
                let problem = format!("{method} {target} on {id} was lost ({reason}, {goaway:?})");
                self.base.record_violation(kernel, &problem);
            }
        }
        if verdict == CloseVerdict::Refused {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.base.excused += self.base.todo.len();
        self.base.todo.clear();
    }

    /// How a close affects the requests without a response.
    fn verdict(
        &self,
        kernel: &Kernel,
        session: &H3Session,
        reason: &ConnectionError,
    ) -> CloseVerdict {
        if session.is_unchecked || session.behaviour == H3Behaviour::StopsReading {
            return CloseVerdict::Excused;
        }
        let may_lose = may_lose(kernel, session);
        let silent = kernel.nanos.saturating_sub(session.conn.last_received_at);
        match reason {
            // RFC 9000 §10.3: the restarted server sends a stateless reset for connections of the
            // previous one.
            ConnectionError::Reset if kernel.net.deaths > 0 => return CloseVerdict::Retry,
            // A client whose handshake is confirmed sends PINGs well within the idle timeout, and
            // the first of them is answered by a stateless reset. Before that, the client may have
            // no reset token (RFC 9000 §10.3.1), or send packets of a handshake that the restarted
            // server does not know.
            ConnectionError::TimedOut
                if kernel.net.deaths > 0
                    && session.is_ready
                    && !session.is_early
                    && session.conn.is_confirmed()
                    && !session.conn.holds_back_finished()
                    && !kernel.has_lost_ports
                    && !may_lose
                    && (1..kernel.quic_timeouts.idle / 4).contains(&session.pings) =>
            {
                return CloseVerdict::Violation(
                    "no stateless reset after the death of the server".to_owned(),
                );
            }
            ConnectionError::TimedOut if kernel.net.deaths > 0 => return CloseVerdict::Retry,
            _ => {}
        }
        match reason {
            // Workers that drain close sockets without connections.
            ConnectionError::TimedOut if kernel.draining && !session.is_ready => {
                CloseVerdict::Refused
            }
            // The client's library held back its last handshake packet, so the server waited for
            // it.
            ConnectionError::Reset | ConnectionError::TimedOut
                if session.conn.holds_back_finished() =>
            {
                CloseVerdict::Retry
            }
            ConnectionError::ApplicationClosed(close) => {
                let code = u64::from(close.error_code);
                match code {
                    code::NO_ERROR if !session.is_ready => CloseVerdict::Retry,
                    // GOAWAY may have been lost.
                    code::NO_ERROR if may_lose => CloseVerdict::Retry,
                    code::NO_ERROR => CloseVerdict::Owed,
                    // The handshake timed out: the client's last packet of it may be lost, too.
                    0 if may_lose
                        && (!session.is_ready
                            || session.is_early
                            || !session.conn.is_confirmed()) =>
                    {
                        CloseVerdict::Retry
                    }
                    _ => CloseVerdict::Violation(format!("closed with {code:x}")),
                }
            }
            ConnectionError::ConnectionClosed(close) => match u64::from(close.error_code) {
                // CONNECTION_REFUSED, or APPLICATION_ERROR during the handshake.
                2 if kernel.draining => CloseVerdict::Refused,
                // The client may complete the handshake before the server does.
                2 | 0xc if !session.http.has_settings => CloseVerdict::Retry,
                // The client's last handshake packet was held back or lost, so the server's
                // handshake timed out.
                0xc if session.conn.holds_back_finished()
                    || (may_lose && !session.conn.is_confirmed()) =>
                {
                    CloseVerdict::Retry
                }
                // The server cannot know yet that its handshake was confirmed.
                0xe if may_lose && session.has_new_keys => CloseVerdict::Retry,
                // INVALID_TOKEN: the client's address has changed.
                0xb if may_lose => CloseVerdict::Retry,
                code => CloseVerdict::Violation(format!(
                    "closed by the transport with {code:x}: {close}"
                )),
            },
            // The request left when the server's idle timeout expired.
            ConnectionError::Reset | ConnectionError::TimedOut
                if may_lose
                    || silent + kernel.net.conditions.latency.1 * 4
                        >= kernel.quic_timeouts.idle =>
            {
                CloseVerdict::Retry
            }
            // FLOW_CONTROL_ERROR by the client's library, which counts the bytes of a stream twice
            // if RESET_STREAM is repeated.
            ConnectionError::TransportError(error)
                if u64::from(error.code) == 3 && session.conn.resets_received() > 1 =>
            {
                CloseVerdict::Retry
            }
            // One flipped bit turns version 1 into the 0 of Version Negotiation, which is not
            // protected (RFC 8999 §6); the rest of the packet lists no version of the client's.
            ConnectionError::VersionMismatch if kernel.net.conditions.bit_flip_in > 0 => {
                CloseVerdict::Retry
            }
            // The server may have closed the socket of this port.
            ConnectionError::Reset | ConnectionError::TimedOut if kernel.has_lost_ports => {
                CloseVerdict::Retry
            }
            reason => CloseVerdict::Violation(format!("the connection broke: {reason}")),
        }
    }

    pub(super) fn wants_to_leave(&mut self, kernel: &Kernel, session: &mut H3Session) -> bool {
        let is_idle = session.http.streams.is_empty();
        let has_goaway = session.http.goaway.is_some();
        if has_goaway && is_idle {
            // Some clients stay, so that the server must close.
            let chance = &mut self.base.chance;
            let stay = if chance.one_in(3) { 30_000 * MILLI } else { 0 };
            let leaves_at = *session.leaves_at.get_or_insert(kernel.nanos + stay);
            return leaves_at <= kernel.nanos;
        }
        if session.is_unchecked || session.behaviour == H3Behaviour::StopsReading {
            let leaves_at = *session.leaves_at.get_or_insert(kernel.nanos + 60_000 * MILLI);
            return leaves_at <= kernel.nanos;
        }
        if !is_idle || !self.base.todo.is_empty() {
            return false;
        }
        let chance = &mut self.base.chance;
        let stay = if chance.one_in(3) { 90_000 * MILLI } else { 0 };
        let leaves_at = *session.leaves_at.get_or_insert_with(|| kernel.nanos + stay);
        leaves_at <= kernel.nanos
    }

    /// The client disconnects, with CONNECTION_CLOSE or silently.
    pub(super) fn leave(&mut self, kernel: &mut Kernel, mut session: Box<H3Session>) -> StepResult {
        let says = !self.base.chance.one_in(4);
        let (host, client) = (session.conn.host, self.base.number);
        kernel.trace(|| format!("client {client} leaves host {host}, says so: {says}"));
        if says {
            session.conn.close(kernel, CLOSE_CODE);
        }
        self.excuse(&mut session);
        kernel.abandon_host(host);
        StepResult::Worked
    }

    /// The server does not answer the handshake.
    pub(super) fn fail_handshake(
        &mut self,
        kernel: &mut Kernel,
        session: &H3Session,
    ) -> StepResult {
        let is_excused = kernel.has_lost_ports || kernel.draining || kernel.net.deaths > 0;
        if !kernel.net.conditions.may_lose() && !is_excused {
            self.base.record_violation(kernel, "a handshake comes to nothing");
        }
        if kernel.draining {
            self.give_up();
        }
        kernel.abandon_host(session.conn.host);
        StepResult::Worked
    }

    pub(super) fn close_on_violation(
        &mut self,
        kernel: &mut Kernel,
        mut session: Box<H3Session>,
    ) -> StepResult {
        session.conn.close(kernel, code::GENERAL_PROTOCOL_ERROR);
        self.excuse(&mut session);
        kernel.abandon_host(session.conn.host);
        StepResult::Worked
    }
}

/// Whether datagrams to the client may be lost.
pub(super) fn may_lose(kernel: &Kernel, session: &H3Session) -> bool {
    // A client that migrates loses the datagrams sent to its old address.
    kernel.net.conditions.may_lose() || matches!(session.behaviour, H3Behaviour::Migrates(_))
}
