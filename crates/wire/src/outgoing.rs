//! What leaves for an application: encoded bytes first, then the body of the request as it is
//! pulled.
//!
//! Shared by all protocols for applications. It counts and frames nothing: that is theirs.
//!
//! ```text
//!  Idle ──begin──▶ Body ──end of body──▶ Sent
//!                   │ ╲──broken body──▶ Broken
//!                   └────answer over──▶ Stopped
//! ```
//!
//! INVARIANT: only a request that was sent completely leaves a connection that may carry another;
//! what is missing would be taken from the next one.

use bolide_base::SendChain;

/// Bytes of the buffer that are kept between requests.
const BUFFER_KEPT: usize = 4096;

/// How far a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendingState {
    /// There is none.
    #[default]
    Idle,
    /// The body is being pulled.
    Body,
    /// All of it was handed over or queued.
    Sent,
    /// The rest is not wanted any more.
    Stopped,
    /// The body broke, or the protocol cannot carry the request.
    Broken,
}

/// The sending side of a connection to an application.
#[derive(Debug, Default)]
pub(crate) struct OutgoingBody {
    /// Encoded bytes that nobody took yet.
    pub(crate) buffer: Vec<u8>,
    pub(crate) sending: SendingState,
    /// The body has nothing for now.
    pub(crate) is_pending: bool,
}

impl OutgoingBody {
    /// Forgets the request before; the buffer stays as large as it was.
    pub(crate) fn begin(&mut self) {
        self.buffer.clear();
        (self.sending, self.is_pending) = (SendingState::Idle, false);
    }

    /// Appends the encoded bytes.
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

    /// Whether something can be sent now.
    pub(crate) const fn has_output(&self) -> bool {
        !self.buffer.is_empty() || self.pulls()
    }

    /// Whether all of the request was handed over.
    pub(crate) const fn is_sent(&self) -> bool {
        matches!(self.sending, SendingState::Sent) && self.buffer.is_empty()
    }

    /// Whether the request cannot be completed.
    pub(crate) const fn is_broken(&self) -> bool {
        matches!(self.sending, SendingState::Broken)
    }

    /// Lets go of what had not left.
    pub(crate) fn stop(&mut self) {
        if !self.is_sent() && !self.is_broken() {
            self.sending = SendingState::Stopped;
            self.buffer.clear();
        }
    }
}
