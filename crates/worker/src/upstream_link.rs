//! An upstream connection with its output.

use std::collections::VecDeque;

use bolide_base::{Segment, SlabKey};
use bolide_io::Fd;
use bolide_upstream::Secure;
use bolide_wire::OriginConn;

use crate::fetches::LiveFetch;
use crate::throttle::Throttle;
use crate::tls_conn::LinkTls;

/// An upstream connection.
#[derive(Debug)]
pub(crate) struct UpstreamLink {
    pub(crate) fd: Fd,
    pub(crate) conn: OriginConn,
    /// The fetch that it carries; the pool's if none.
    pub(crate) fetch: Option<SlabKey<LiveFetch>>,
    /// The TLS state; none for plain text.
    pub(crate) secured: Option<Box<LinkTls>>,
    /// Whether it is connected.
    pub(crate) stands: bool,
    /// Whether a request is in progress.
    pub(crate) is_started: bool,
    /// Bytes that the socket did not take.
    pub(crate) unsent: VecDeque<Segment>,
    /// Whether the socket may have bytes to read.
    pub(crate) readable: bool,
    /// Whether the last send was incomplete.
    pub(crate) blocked: bool,
    /// Whether nothing more is sent: a send has failed, or the sending side was shut down. The
    /// server may respond.
    pub(crate) is_deaf: bool,
    /// Whether epoll reported that the server closed its side.
    pub(crate) hung_up: bool,
    /// Whether it is in the list of those that may write in this turn.
    pub(crate) dirty: bool,
    /// Whether it is in the list of those that are read again.
    pub(crate) queued: bool,
    /// The rate limit of reading, if there is one.
    pub(crate) throttle: Option<Throttle>,
    /// Whether the rate limit delays it, and the fetch knows.
    pub(crate) is_slowed: bool,
}

impl UpstreamLink {
    /// Whether a request with the TLS settings `secure` may use it.
    pub(crate) fn is_as_secret(&self, secure: Option<&Secure>) -> bool {
        self.secured.as_ref().map(|secured| &*secured.wanted) == secure
    }

    /// Whether it is connected and its handshake is not complete.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.stands && self.secured.as_ref().is_some_and(|secured| !secured.is_good)
    }

    /// The plain bytes in `n` sent bytes; all that are outstanding once nothing is queued.
    pub(crate) fn credit(&mut self, n: u64) -> u64 {
        let Some(secured) = &mut self.secured else { return n };
        let credit = if self.unsent.is_empty() { secured.owed } else { n.min(secured.owed) };
        secured.owed -= credit;
        credit
    }

    /// Queues encrypted bytes in place of `plain`; false for plain text.
    pub(crate) fn queue_sealed(&mut self, plain: &[u8]) -> bool {
        let Some(secured) = &mut self.secured else { return false };
        self.unsent.push_back(secured.seal(plain));
        true
    }

    /// Queues the session's own output.
    pub(crate) fn queue_own_words(&mut self) {
        let words = self.secured.as_mut().and_then(|secured| secured.take_output());
        self.unsent.extend(words);
    }

    /// Queues the close_notify.
    pub(crate) fn queue_goodbye(&mut self) {
        let words = self.secured.as_mut().and_then(|secured| secured.close_notify());
        self.unsent.extend(words);
    }
}
