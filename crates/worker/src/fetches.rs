//! A request to an upstream server in flight, and what belongs to it.

use std::sync::Arc;

use bolide_base::{Instant, SlabKey};
use bolide_engine::{Fill, LimitHold};
use bolide_upstream::{Fetch, UpstreamGroups};
use bolide_wire::OriginConnSettings;

use crate::exchange_table::ActiveExchange;
use crate::lookups::NameLookup;
use crate::stored_answers::StoredAnswer;
use crate::upstream_link::UpstreamLink;

/// A request to an origin in flight.
#[derive(Debug)]
pub(crate) struct LiveFetch {
    pub(crate) fetch: Fetch,
    /// The exchange that waits for the answer; none when the client left and the fetch goes on.
    pub(crate) exchange: Option<SlabKey<ActiveExchange>>,
    /// What listens for the store.
    pub(crate) fill: Option<Box<Fill>>,
    /// What writes the answer to a file.
    pub(crate) stored: Option<Box<StoredAnswer>>,
    /// The connection that it uses.
    pub(crate) link: Option<SlabKey<UpstreamLink>>,
    /// The name that it waits for.
    pub(crate) lookup: Option<NameLookup>,
    /// The groups of the configuration that its exchange is answered by.
    pub(crate) groups: Arc<UpstreamGroups>,
    /// What TLS to origins is like there, if it is wanted.
    pub(crate) tls: Option<Arc<[bolide_tls::OriginTls]>>,
    /// Bytes of the request body that left in this attempt.
    pub(crate) pulled: u64,
    /// Bytes of the request body whose room was given back.
    pub(crate) given: u64,
    pub(crate) answers_head: bool,
    /// When it wants to be woken.
    pub(crate) deadline: Option<Instant>,
    /// Where `limit_conn` counts who asked: as long as the origin works for him.
    pub(crate) _held: LimitHold,
}

impl LiveFetch {
    /// Whether the store, or a file, wants the rest of the answer.
    pub(crate) fn is_filling(&self) -> bool {
        self.feeds_store() || self.is_storing()
    }

    /// Whether a file does.
    pub(crate) fn is_storing(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.is_storing())
    }

    /// Whether the store does, which bounds how much it takes.
    pub(crate) fn feeds_store(&self) -> bool {
        self.fill.as_ref().is_some_and(|fill| fill.is_filling())
    }

    /// What the connection is told with the request.
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
