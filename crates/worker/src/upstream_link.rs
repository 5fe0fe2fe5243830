//! A connection to an upstream server, with what it has to say.

use std::collections::VecDeque;

use bolide_base::{Segment, SlabKey};
use bolide_io::Fd;
use bolide_upstream::Secure;
use bolide_wire::OriginConn;

use crate::fetches::LiveFetch;
use crate::throttle::Throttle;
use crate::tls_conn::LinkTls;

/// A connection to an origin.
#[derive(Debug)]
pub(crate) struct UpstreamLink {
    pub(crate) fd: Fd,
    pub(crate) conn: OriginConn,
    /// Whose request it carries; the pool's if none.
    pub(crate) fetch: Option<SlabKey<LiveFetch>>,
    /// Who seals and opens; none: it is spoken in the clear.
    pub(crate) secured: Option<Box<LinkTls>>,
    /// The call was answered.
    pub(crate) stands: bool,
    /// A request is under way.
    pub(crate) is_started: bool,
    /// What the socket did not take.
    pub(crate) unsent: VecDeque<Segment>,
    /// The socket may hold bytes to read.
    pub(crate) readable: bool,
    /// The last send was not taken whole.
    pub(crate) blocked: bool,
    /// A send has failed: the origin takes no more, but may have answered.
    pub(crate) is_deaf: bool,
    /// The origin was reported to have ended its side.
    pub(crate) hung_up: bool,
    /// It stands in the list of those that may write this turn.
    pub(crate) dirty: bool,
    /// It stands in the list of those that are read again.
    pub(crate) queued: bool,
    /// The pace at which the origin may be read, if that is limited.
    pub(crate) throttle: Option<Throttle>,
    /// The pace holds it, and the fetch was told.
    pub(crate) is_slowed: bool,
}

impl UpstreamLink {
    /// Whether a request that wants `secure` may use it.
    pub(crate) fn is_as_secret(&self, secure: Option<&Secure>) -> bool {
        self.secured.as_ref().map(|secured| &*secured.wanted) == secure
    }

    /// Whether it stands and the origin was not judged yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.stands && self.secured.as_ref().is_some_and(|secured| !secured.is_good)
    }

    /// Plain bytes of `n` that left; all that is owed once nothing waits any more.
    pub(crate) fn credit(&mut self, n: u64) -> u64 {
        let Some(secured) = &mut self.secured else { return n };
        let credit = if self.unsent.is_empty() { secured.owed } else { n.min(secured.owed) };
        secured.owed -= credit;
        credit
    }

    /// Queues sealed bytes in place of `plain`; false if it is no secret link.
    pub(crate) fn queue_sealed(&mut self, plain: &[u8]) -> bool {
        let Some(secured) = &mut self.secured else { return false };
        self.unsent.push_back(secured.seal(plain));
        true
    }

    /// Queues what the session itself has to say.
    pub(crate) fn queue_own_words(&mut self) {
        let words = self.secured.as_mut().and_then(|secured| secured.take_output());
        self.unsent.extend(words);
    }

    /// Queues the last words.
    pub(crate) fn queue_goodbye(&mut self) {
        let words = self.secured.as_mut().and_then(|secured| secured.close_notify());
        self.unsent.extend(words);
    }
}
