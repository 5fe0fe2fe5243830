//! A fetch in progress, and the state that belongs to it.

use std::sync::Arc;

use bolide_base::{Instant, Now, SlabKey};
use bolide_engine::{Fill, LimitHold};
use bolide_upstream::{Fetch, UpstreamGroups};
use bolide_wire::OriginConnSettings;

use crate::exchange_table::ActiveExchange;
use crate::lookups::NameLookup;
use crate::stored_answers::StoredAnswer;
use crate::upstream_link::UpstreamLink;

/// A fetch in progress.
#[derive(Debug)]
pub(crate) struct LiveFetch {
    pub(crate) fetch: Fetch,
    /// The exchange that waits; none when the client is gone and the fetch continues.
    pub(crate) exchange: Option<SlabKey<ActiveExchange>>,
    /// The fill that it feeds.
    pub(crate) fill: Option<Box<Fill>>,
    /// The file that stores the response.
    pub(crate) stored: Option<Box<StoredAnswer>>,
    /// Its connection.
    pub(crate) link: Option<SlabKey<UpstreamLink>>,
    /// The name lookup that it waits for.
    pub(crate) lookup: Option<NameLookup>,
    /// The upstream groups of its exchange's configuration.
    pub(crate) groups: Arc<UpstreamGroups>,
    /// The TLS settings of that configuration, if TLS is used.
    pub(crate) tls: Option<Arc<[bolide_tls::OriginTls]>>,
    /// Bytes of the request body sent in this attempt.
    pub(crate) pulled: u64,
    /// Bytes of the request body credited to the client's window.
    pub(crate) given: u64,
    pub(crate) answers_head: bool,
    /// Its next deadline.
    pub(crate) deadline: Option<Instant>,
    /// The `limit_conn` count of the request: held as long as the upstream works for it.
    pub(crate) _held: LimitHold,
}

impl LiveFetch {
    /// Whether the store, or a file, needs the rest of the response.
    pub(crate) fn is_filling(&self) -> bool {
        self.feeds_store() || self.is_storing()
    }

    /// Whether it goes on without a client: for the store or a file, or, where the request has
    /// arrived as a whole, for the purges that its response may order.
    pub(crate) fn is_needed(&self) -> bool {
        let awaits = self.fill.as_ref().is_some_and(|fill| fill.awaits_purges());
        self.is_filling() || awaits && self.fetch.request().body.is_complete()
    }

    /// Whether a file needs it.
    pub(crate) fn is_storing(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.is_storing())
    }

    /// Whether the store needs it, which limits how much it takes.
    pub(crate) fn feeds_store(&self) -> bool {
        self.fill.as_ref().is_some_and(|fill| fill.is_filling())
    }

    /// Whether requests that follow its fill have to take what has come before more is read.
    pub(crate) fn awaits_followers(&self, now: Now) -> bool {
        self.fill.as_ref().is_some_and(|fill| fill.awaits_followers(now))
    }

    /// The settings of the connection for this request.
    pub(crate) fn conn_settings(&self) -> OriginConnSettings {
        let settings = &self.fetch.request().settings;
        let fill_max = self.fill.as_ref().map_or(0, |fill| fill.head_max());
        OriginConnSettings {
            head_max: settings.buffer_size.max(fill_max),
            keep: self.fetch.keeps(),
            answers_head: self.answers_head,
        }
    }
}
