//! An answer in the making.

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
pub use combined::CombinedHead;
pub(crate) use compound::{Compound, CompoundReader, PartOrder, PartsFilter};
pub(crate) use compressed_file::CompressedFile;
pub(crate) use filtered::{AnswerHold, BodyStart, FilteredBody};
pub(crate) use filters::{BodyFilter, BodyFilters, ByteFilter, CompressFilter, blur, weaken};
pub(crate) use growth::Growth;
pub(crate) use headed::HeadedBytes;
pub(crate) use inflow::{Flush, Inflow};
pub(crate) use outside::FromFile;
pub(crate) use pass_request::PassRequest;
pub(crate) use recode::{CharsetOutcome, Recoder};
pub(crate) use sliced::SlicedBody;
pub(crate) use span::{ByteSpan, BytesFrom, MultipartBody};
pub(crate) use strand::Strand;
pub(crate) use substitute::{Pair, Substitute};

/// A representation of which ranges were asked that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsatisfiedRange {
    /// Its bytes.
    pub(crate) length: u64,
    /// When it changed, in seconds since 1970.
    pub(crate) modified_at: Option<u64>,
    /// Whether another client may get it in another coding.
    pub(crate) varies: bool,
}

/// An answer in the making. Its buffers are kept between requests.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The head.
    pub(crate) head: ResponseHead,
    /// The body.
    pub(crate) body: AnswerBody,
    /// The status that an error page forces on what it leads to; 0 for none.
    pub(crate) forced_status: u16,
    /// What is logged when no head was made: 444, 499.
    pub(crate) bare_status: u16,
    /// Whether the head was handed over.
    pub(crate) is_responded: bool,
    /// Whether the last byte was handed over.
    pub(crate) is_complete: bool,
    /// Body bytes that left.
    pub(crate) body_sent: u64,
    /// Other bytes that left.
    pub(crate) head_sent: u64,
    /// Coding, size before and size after, if the body was compressed on the fly.
    pub(crate) compression: Option<(&'static str, u64, u64)>,
    /// What is known of the origins that were asked.
    pub(crate) origin: Option<Box<PassRequest>>,
    /// Seconds for `Retry-After` in a 503.
    pub(crate) retry_after: Option<u32>,
    /// Fields of an origin's answer that another answer of ours has to carry.
    pub(crate) carried: FieldMap,
    /// What stood behind the body.
    pub(crate) trailers: FieldMap,
    /// What the location knows that refused the method.
    pub(crate) allowed: Option<Allowed>,
    /// What the store had to do with it.
    pub(crate) cached: UpstreamCacheStatus,
    /// Why, if something asks and the request is over.
    pub(crate) cache_reason: Option<CacheReason>,
    /// The kept answer that it is.
    pub(crate) object: Option<std::sync::Arc<bolide_cache::Object>>,
    /// The address of a redirect; empty if there is none.
    pub(crate) location: Vec<u8>,
    /// Whether there is a redirect, though to nowhere: its `Location` is empty.
    pub(crate) is_to_nowhere: bool,
    /// How many bytes of it stand before a path of ours.
    pub(crate) location_origin: usize,
    /// Whether it stands for one that the client's conditions ruled out.
    pub(crate) fails_condition: bool,
    /// Without an address a redirect has no `Location`, not an empty one: it is the last word of
    /// `try_files`.
    pub(crate) is_without_location: bool,
    /// Whether it is a page that the server itself wrote for its status.
    pub(crate) is_own_page: bool,
    /// Whether `.htaccess` files may have its body searched.
    pub(crate) may_be_searched: bool,
    /// What its head waits for that is ready.
    pub(crate) held: AnswerHold,
    /// `WWW-Authenticate`; empty if there is none.
    pub(crate) challenge: Vec<u8>,
    /// For whatever is written on the way to it.
    pub(crate) scratch: Vec<u8>,
    /// For ranges.
    pub(crate) ranges: Vec<ByteRange>,
    /// Of what impossible ranges were asked.
    pub(crate) unsatisfied: Option<UnsatisfiedRange>,
    /// Whether a compressed form was waited for already.
    pub(crate) waited_for_form: bool,
    /// What was found about its charset when its type was written.
    pub(crate) charset: Option<Box<CharsetOutcome>>,
}

impl Answer {
    /// Forgets the last answer and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.body.clear();
        self.forced_status = 0;
        self.bare_status = 0;
        self.is_responded = false;
        self.is_complete = false;
        self.body_sent = 0;
        self.head_sent = 0;
        self.compression = None;
        self.origin = None;
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

    /// Forgets what was noted for an answer that another one takes the place of.
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

    /// Keeps fields of an origin's answer for the one that takes its place.
    pub(crate) fn carry(&mut self, fields: &FieldMap, which: impl Fn(Name) -> bool) {
        self.carried.clear();
        for field in fields.iter().filter(|field| which(field.name)) {
            self.carried.push_parsed(field.name, field.text, field.value);
        }
    }

    /// Whether what an origin sends is what the client gets.
    pub(crate) fn is_from_origin(&self) -> bool {
        self.origin.as_ref().is_some_and(|asked| asked.is_answering())
    }

    /// `$status`
    pub(crate) const fn logged_status(&self) -> u16 {
        if self.bare_status | self.forced_status == 0 {
            return self.head.status;
        }
        match (self.bare_status, self.head.status) {
            // Before there is a head, what an error page forces is known already.
            (0, 0) => self.forced_status,
            // As in nginx, `error_page ... =200` says what is logged, also of a part of its page.
            (0, 206 | 304 | 416) if self.forced_status == 200 => 200,
            (0, status) => status,
            // As in nginx, what an error page forces counts more than how it went.
            (bare, _) if self.forced_status == 0 => bare,
            _ => self.forced_status,
        }
    }

    /// The status of an answer that would be `status` were it not for an error page.
    pub(crate) const fn status_or(&self, status: u16) -> u16 {
        if self.forced_status != 0 { self.forced_status } else { status }
    }
}
