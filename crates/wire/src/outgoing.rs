//! The sending side of a request to an upstream: encoded bytes first, then the body as it is
//! pulled.
//!
//! FastCGI, LSAPI and HTTP/1 to upstreams share it. It counts and frames nothing; the protocols do.
//!
//! ```text
//! Idle ──begin──▶ Body ──end of body──▶ Sent
//!                  │ ╲──broken body──▶ Broken
//!                  └────response ends──▶ Stopped
//! ```
//!
//! INVARIANT: a connection may carry another request only after this one was sent completely. The
//! upstream would take the next request's bytes for the missing ones.

use bolide_base::SendChain;

/// LIMIT: bytes of the buffer that a connection keeps between requests.
const BUFFER_KEPT: usize = 4096;

/// How much of a request was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendingState {
    /// No request.
    #[default]
    Idle,
    /// The body is being pulled.
    Body,
    /// The whole request was handed to the caller or queued.
    Sent,
    /// The upstream no longer needs the rest.
    Stopped,
    /// The body failed, or the protocol cannot encode the request.
    Broken,
}

/// The sending side of a connection to an application.
#[derive(Debug, Default)]
pub(crate) struct OutgoingBody {
    /// Encoded bytes that wait for `flush`.
    pub(crate) buffer: Vec<u8>,
    pub(crate) sending: SendingState,
    /// The body source has no bytes available.
    pub(crate) is_pending: bool,
}

impl OutgoingBody {
    /// Forgets the previous request. The buffer keeps its capacity.
    pub(crate) fn begin(&mut self) {
        assert!(
            matches!(self.sending, SendingState::Idle) || self.is_sent(),
            "a connection carries a request only after the previous one was sent completely"
        );
        self.buffer.clear();
        (self.sending, self.is_pending) = (SendingState::Idle, false);
    }

    /// Appends the encoded bytes to `out`.
    pub(crate) fn flush(&mut self, out: &mut SendChain) {
        if !self.buffer.is_empty() {
            out.push_slice(&self.buffer);
            self.buffer.clear();
            self.buffer.shrink_to(BUFFER_KEPT);
        }
    }

    /// Whether the body may be pulled now.
    pub(crate) const fn pulls(&self) -> bool {
        matches!(self.sending, SendingState::Body) && !self.is_pending
    }

    /// Whether bytes can be sent now.
    pub(crate) const fn has_output(&self) -> bool {
        !self.buffer.is_empty() || self.pulls()
    }

    /// Whether the whole request was handed to the caller.
    pub(crate) const fn is_sent(&self) -> bool {
        matches!(self.sending, SendingState::Sent) && self.buffer.is_empty()
    }

    /// Whether the request cannot be completed.
    pub(crate) const fn is_broken(&self) -> bool {
        matches!(self.sending, SendingState::Broken)
    }

    /// Drops the bytes that are not sent yet.
    pub(crate) fn stop(&mut self) {
        if !self.is_sent() && !self.is_broken() {
            self.sending = SendingState::Stopped;
            self.buffer.clear();
        }
    }
}
