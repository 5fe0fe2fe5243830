//! A response in progress.

mod allowed;
mod assembly;
mod body;
mod combined;
mod compound;
mod compressed_file;
mod filtered;
mod filters;
mod fragment;
mod growth;
mod headed;
mod inflow;
mod outside;
mod pass_request;
mod piece;
mod recode;
mod script;
mod sliced;
mod span;
pub(crate) mod strand;
mod substitute;

use bolide_http::range::ByteRange;
use bolide_http::{FieldMap, Name, ResponseHead};

use crate::caching::{CacheReason, UpstreamCacheStatus};

pub use assembly::Pulled;
pub use piece::{BodyPiece, FileOwner};

pub(crate) use allowed::Allowed;
pub(crate) use assembly::PageAssembly;
pub(crate) use body::AnswerBody;
pub(crate) use compound::{Compound, CompoundReader, PartOrder, PartsFilter};
pub(crate) use compressed_file::CompressedFile;
pub(crate) use filtered::{AnswerHold, BodyStart, FilteredBody};
pub(crate) use filters::{BodyFilter, BodyFilters, ByteFilter, CompressFilter, blur, weaken};
pub(crate) use growth::Growth;
pub(crate) use headed::HeadedBytes;
pub(crate) use inflow::{Flush, Inflow};
pub(crate) use outside::FromFile;
pub(crate) use pass_request::{BindingCookie, PassRequest};
pub(crate) use recode::{CharsetOutcome, Recoder};
pub(crate) use sliced::SlicedBody;
pub(crate) use span::{ByteSpan, BytesFrom, MultipartBody};
pub(crate) use strand::Strand;
pub(crate) use substitute::{Pair, Substitute};

/// A representation that has none of the requested ranges (416).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsatisfiedRange {
    /// Its bytes.
    pub(crate) length: u64,
    /// When it changed, in seconds since 1970.
    pub(crate) modified_at: Option<u64>,
    /// Whether `Vary: Accept-Encoding` applies.
    pub(crate) varies: bool,
}

/// A response in progress. Its buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The head.
    pub(crate) head: ResponseHead,
    /// The body.
    pub(crate) body: AnswerBody,
    /// The status that `error_page` forces on the response of its target; 0 for none.
    pub(crate) forced_status: u16,
    /// The logged status of a request without a response head: 444, 499.
    pub(crate) bare_status: u16,
    /// Whether the head was sent.
    pub(crate) is_responded: bool,
    /// Whether the last byte was handed to the connection.
    pub(crate) is_complete: bool,
    /// Whether the body has failed, so that this server has cut the response off.
    pub(crate) is_cut_short: bool,
    /// Bytes of the body that were sent.
    pub(crate) body_sent: u64,
    /// Bytes of head and framing that were sent.
    pub(crate) head_sent: u64,
    /// Coding, size before and size after, if the body was compressed for this response.
    pub(crate) compression: Option<(&'static str, u64, u64)>,
    /// The upstream servers that were tried, and their results.
    pub(crate) origin: Option<Box<PassRequest>>,
    /// Seconds for `Retry-After` in a 503.
    pub(crate) retry_after: Option<u32>,
    /// Fields of an upstream response that its replacement has to carry.
    pub(crate) carried: FieldMap,
    /// The trailer fields.
    pub(crate) trailers: FieldMap,
    /// The methods that the location supports, for the `Allow` of a 405.
    pub(crate) allowed: Option<Allowed>,
    /// `$upstream_cache_status`
    pub(crate) cached: UpstreamCacheStatus,
    /// The reason of the cache status; set at the end if a log or a counter needs it.
    pub(crate) cache_reason: Option<CacheReason>,
    /// The cached object that is served.
    pub(crate) object: Option<std::sync::Arc<bolide_cache::Object>>,
    /// The target of a redirect; empty if there is none.
    pub(crate) location: Vec<u8>,
    /// Whether it is a redirect to an empty address: `Location` is sent, but empty.
    pub(crate) is_to_nowhere: bool,
    /// The length of scheme and authority in `location`, if its path is our own.
    pub(crate) location_origin: usize,
    /// Whether it replaces a response that the client's preconditions ruled out.
    pub(crate) fails_condition: bool,
    /// Whether a redirect without an address has no `Location` at all, not an empty one: it comes
    /// from the last argument of `try_files`.
    pub(crate) is_without_location: bool,
    /// Whether it is the built-in error page of its status.
    pub(crate) is_own_page: bool,
    /// Whether `SUBSTITUTE` or `INFLATE` of `.htaccess` files may apply to its body.
    pub(crate) may_be_searched: bool,
    /// What a finished head waits for.
    pub(crate) held: AnswerHold,
    /// `WWW-Authenticate`; empty if there is none.
    pub(crate) challenge: Vec<u8>,
    /// A buffer for intermediate texts.
    pub(crate) scratch: Vec<u8>,
    /// A buffer for ranges.
    pub(crate) ranges: Vec<ByteRange>,
    /// The representation of a 416.
    pub(crate) unsatisfied: Option<UnsatisfiedRange>,
    /// Whether it has waited for a compressed form already.
    pub(crate) waited_for_form: bool,
    /// The charset that was chosen when `Content-Type` was written.
    pub(crate) charset: Option<Box<CharsetOutcome>>,
}

/// Drops what is there. PERF: in most cases nothing is, and dropping nothing is a call.
#[inline]
pub(crate) fn drop_any<T>(slot: &mut Option<T>) {
    if slot.is_some() {
        *slot = None;
    }
}

impl Answer {
    /// Clears the last response and keeps its buffers.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.body.clear();
        self.forced_status = 0;
        self.bare_status = 0;
        (self.is_responded, self.is_cut_short) = (false, false);
        self.is_complete = false;
        self.body_sent = 0;
        self.head_sent = 0;
        self.compression = None;
        drop_any(&mut self.origin);
        self.retry_after = None;
        self.carried.clear();
        self.trailers.clear();
        self.allowed = None;
        self.cached = UpstreamCacheStatus::No;
        self.cache_reason = None;
        self.object = None;
        self.charset = None;
        self.forget_draft();
    }

    /// Clears what was noted for a response that another one replaces.
    #[inline]
    pub(crate) fn forget_draft(&mut self) {
        self.location.clear();
        (self.location_origin, self.is_to_nowhere) = (0, false);
        (self.is_without_location, self.is_own_page) = (false, false);
        (self.may_be_searched, self.held) = (false, AnswerHold::No);
        self.fails_condition = false;
        self.challenge.clear();
        self.unsatisfied = None;
        self.waited_for_form = false;
    }

    /// Keeps fields of an upstream response for its replacement.
    pub(crate) fn carry(&mut self, fields: &FieldMap, which: impl Fn(Name) -> bool) {
        self.carried.clear();
        for field in fields.iter().filter(|field| which(field.name)) {
            self.carried.push_parsed(field.name, field.text, field.value);
        }
    }

    /// Whether the client gets the response of an upstream server.
    pub(crate) fn is_from_origin(&self) -> bool {
        self.origin.as_ref().is_some_and(|asked| asked.is_answering())
    }

    /// `$status`
    pub(crate) const fn logged_status(&self) -> u16 {
        if self.bare_status | self.forced_status == 0 {
            return self.head.status;
        }
        match (self.bare_status, self.head.status) {
            // Before there is a head, the forced status is known already.
            (0, 0) => self.forced_status,
            // As in nginx, `error_page ... =200` says what is logged, also of a part of its page.
            (0, 206 | 304 | 416) if self.forced_status == 200 => 200,
            (0, status) => status,
            // As in nginx, a forced status takes precedence over the outcome.
            (bare, _) if self.forced_status == 0 => bare,
            _ => self.forced_status,
        }
    }

    /// The status of a response: `status`, unless `error_page` forces another one.
    pub(crate) const fn status_or(&self, status: u16) -> u16 {
        if self.forced_status != 0 { self.forced_status } else { status }
    }
}
