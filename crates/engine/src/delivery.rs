//! What leaves of a representation: its status, its bytes and their length (RFC 9110 §13 to §15).
//!
//! [`decide`] is the only place that chooses between 200, 206, 304, 412 and 416. Where a
//! representation comes from, and what nginx does differently for it, is data of its source.
//! Refuses to touch a body, a clock or the configuration. Easiest to break: a representation that
//! is compressed or filtered on its way has no ranges.

mod fields;
pub(crate) mod send;

pub(crate) use fields::{push_range, remove_content_fields};

use bolide_http::conditional::{Conditions, ModifiedSince, Precondition, Validator};
use bolide_http::range::{self, ByteRange, RangeOutcome};
use bolide_http::{BodyLen, Method};

/// What a location says about conditional and partial responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeliveryRules {
    /// `if_modified_since`
    pub(crate) since: ModifiedSince,
    /// LIMIT: ranges of one response, as `max_ranges` says; 0 for none.
    pub(crate) max_ranges: u32,
}

impl DeliveryRules {
    /// The same for what has one range at most: slices, which come one after another.
    pub(crate) fn single(self) -> Self {
        Self { max_ranges: self.max_ranges.min(1), ..self }
    }
}

/// Where a representation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepresentationSource {
    /// A file, as it is stored.
    File,
    /// A file that is compressed on its way.
    CodedFile,
    /// `empty_gif`: bytes of the server with a date.
    Pixel,
    /// A text that the server makes for this request: listings, `return`, error pages.
    Text,
    /// A complete cached response.
    Cached {
        /// Of the page cache, not of an nginx zone.
        page: bool,
    },
    /// A response that another request is filling the cache with: its bytes are still coming.
    Filling {
        /// Into the page cache, not into an nginx zone.
        page: bool,
    },
    /// A response of an upstream server that got the client's conditions and ranges.
    Upstream,
    /// A response of an upstream server that got neither, so that the whole could be stored.
    UpstreamWhole {
        /// For the page cache, not for an nginx zone.
        page: bool,
    },
    /// A page that is put together from fragments: it has no validators.
    Assembled,
}

/// What differs by source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SourceRules {
    /// Whether the client's preconditions are evaluated here.
    evaluates: bool,
    /// LIMIT: ranges that one response has.
    ranges_max: u32,
    /// Whether a tag is compared although there is no date. nginx compares neither then.
    undated: UndatedTag,
    /// Whether `If-Modified-Since` may be later than our date (RFC 9110 §13.1.3). nginx asks for
    /// equal dates.
    later_dates: bool,
}

/// What entity tags are worth in a response without `Last-Modified`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UndatedTag {
    /// No precondition is evaluated, as in nginx's not-modified filter.
    Ignored,
    /// A tag is compared if there is one.
    Compared,
    /// `If-Match` and `If-None-Match` are evaluated even without a tag, as nginx does for zones.
    Required,
}

impl RepresentationSource {
    /// Whether `Range` or a precondition may change what leaves.
    const fn is_conditional(self) -> bool {
        let rules = self.rules();
        rules.evaluates || rules.ranges_max > 0
    }

    const fn rules(self) -> SourceRules {
        let plain = SourceRules {
            evaluates: true,
            ranges_max: u32::MAX,
            undated: UndatedTag::Ignored,
            later_dates: false,
        };
        let page = SourceRules { undated: UndatedTag::Compared, later_dates: true, ..plain };
        let zone = SourceRules { undated: UndatedTag::Required, ..plain };
        match self {
            Self::File => plain,
            Self::CodedFile | Self::Pixel => SourceRules { ranges_max: 0, ..plain },
            Self::Text | Self::Assembled => {
                SourceRules { evaluates: false, ranges_max: 0, ..plain }
            }
            Self::Cached { page: true } => page,
            Self::Cached { page: false } => zone,
            Self::Filling { page: true } => SourceRules { ranges_max: 0, ..page },
            Self::Filling { page: false } => SourceRules { ranges_max: 0, ..zone },
            Self::Upstream => SourceRules { evaluates: false, ranges_max: 1, ..plain },
            Self::UpstreamWhole { page: true } => SourceRules { ranges_max: 1, ..page },
            Self::UpstreamWhole { page: false } => SourceRules { ranges_max: 1, ..zone },
        }
    }
}

/// How a representation is coded on its way (RFC 9110 §8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// It leaves as it is.
    Identity,
    /// It leaves in a content coding that it does not have where it comes from.
    Coded {
        /// Bytes of the coded form, if it is complete.
        length: Option<u64>,
    },
    /// A body filter changes it.
    Filtered,
}

/// The date that `If-Range` is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeDate {
    /// That of the representation.
    Own,
    /// What `add_header Last-Modified` put in its place, if that is a date.
    Added(Option<u64>),
}

/// A representation that was selected for a request (RFC 9110 §3.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Representation<'a> {
    /// Where it comes from.
    pub(crate) source: RepresentationSource,
    /// The status that the whole of it has.
    pub(crate) status: u16,
    /// Its bytes before any coding, if known.
    pub(crate) length: Option<u64>,
    /// How it is coded on its way.
    pub(crate) transfer: Transfer,
    /// What tells its versions apart.
    pub(crate) validator: Validator<'a>,
    /// What `If-Range` is compared with; other preconditions go by the validator, as in nginx.
    pub(crate) range_date: RangeDate,
    /// What the location says of conditions and ranges.
    pub(crate) rules: DeliveryRules,
    /// Whether a 200 says that ranges are to be had.
    pub(crate) advertises_ranges: bool,
}

impl Representation<'_> {
    /// A text of the server.
    pub(crate) fn text(status: u16, length: u64) -> Self {
        Self::bare(RepresentationSource::Text, status, Some(length))
    }

    /// A page that is put together from fragments.
    pub(crate) fn assembled(status: u16, length: Option<u64>) -> Self {
        Self::bare(RepresentationSource::Assembled, status, length)
    }

    fn bare(source: RepresentationSource, status: u16, length: Option<u64>) -> Self {
        Self {
            source,
            status,
            length,
            transfer: Transfer::Identity,
            validator: Validator::default(),
            range_date: RangeDate::Own,
            rules: DeliveryRules { max_ranges: 0, ..DeliveryRules::default() },
            advertises_ranges: false,
        }
    }
}

/// Which bytes of a representation leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveredBytes {
    /// None: the status has no content.
    Nothing,
    /// All of them.
    Whole,
    /// One range.
    Part(ByteRange),
    /// Several ranges as `multipart/byteranges`; [`decide`] has written them to its `ranges`.
    Parts,
}

/// What leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The status.
    pub(crate) status: u16,
    /// The bytes.
    pub(crate) bytes: DeliveredBytes,
    /// The length that framing says. That of several ranges depends on their boundary and is
    /// known when the body is made.
    pub(crate) length: BodyLen,
    /// Whether `Accept-Ranges: bytes` is due.
    pub(crate) accept_ranges: bool,
    /// Whether this is a 304 that the client's conditions led to, not one of an upstream server.
    pub(crate) is_not_modified: bool,
}

impl Delivery {
    /// A response without conditions, ranges and codings.
    pub(crate) const fn whole(status: u16) -> Self {
        Self {
            status,
            bytes: DeliveredBytes::Whole,
            length: BodyLen::Unknown,
            accept_ranges: false,
            is_not_modified: false,
        }
    }

    /// Whether a part of the representation leaves.
    pub(crate) const fn is_partial(&self) -> bool {
        matches!(self.bytes, DeliveredBytes::Part(_) | DeliveredBytes::Parts)
    }

    /// The range that leaves, if it is one.
    pub(crate) const fn range(&self) -> Option<ByteRange> {
        match self.bytes {
            DeliveredBytes::Part(range) => Some(range),
            _ => None,
        }
    }
}

/// Why nothing of a representation leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryRefusal {
    /// 412 (RFC 9110 §15.5.13).
    PreconditionFailed,
    /// 416 (RFC 9110 §15.5.17), with the length of the representation.
    RangeNotSatisfiable(u64),
}

/// Decides what leaves of `representation`. `ranges` is empty unless [`DeliveredBytes::Parts`]
/// leave.
///
/// PERF: callers name the source, so inlined its rules are constants.
#[inline]
pub(crate) fn decide(
    representation: &Representation<'_>,
    method: Method,
    conditions: &Conditions<'_>,
    ranges: &mut Vec<ByteRange>,
) -> Result<Delivery, DeliveryRefusal> {
    ranges.clear();
    let rules = representation.source.rules();
    let mut delivery = Delivery::whole(representation.status);
    // Conditions and ranges are about what would be a 200 (RFC 9110 §13.2.1, §14.2).
    if representation.status == 200 {
        let validator = comparable(representation, rules, conditions);
        if rules.evaluates {
            match conditions.evaluate(validator, since(representation.rules.since, rules)) {
                Precondition::Proceed => {}
                Precondition::PreconditionFailed => {
                    return Err(DeliveryRefusal::PreconditionFailed);
                }
                Precondition::NotModified => {
                    delivery.status = 304;
                    delivery.is_not_modified = true;
                }
            }
        }
        if delivery.status == 200 {
            let (bytes, has_ranges) = select(representation, rules, validator, conditions, ranges)?;
            delivery.bytes = bytes;
            delivery.status = if bytes == DeliveredBytes::Whole { 200 } else { 206 };
            delivery.accept_ranges =
                has_ranges && representation.advertises_ranges && bytes == DeliveredBytes::Whole;
        }
    }
    if has_no_content(delivery.status) {
        delivery.bytes = DeliveredBytes::Nothing;
    }
    delivery.length = length(&delivery, representation, method);
    debug_assert!(
        delivery.is_partial() == (delivery.status == 206)
            || representation.status == 206 && !delivery.is_partial(),
        "a 206 of ours has a part, and nothing else has (RFC 9110 §15.3.7)"
    );
    debug_assert!(
        !delivery.is_partial() || representation.transfer == Transfer::Identity,
        "what is compressed or filtered on its way has no ranges"
    );
    debug_assert!(
        delivery.bytes == DeliveredBytes::Parts || ranges.len() <= 1,
        "several ranges leave as several parts"
    );
    Ok(delivery)
}

/// Whether a response with this status has no content (RFC 9110 §15.3.5, §15.4.5).
pub(crate) const fn has_no_content(status: u16) -> bool {
    matches!(status, 204 | 304)
}

/// The validators that conditions are compared with.
#[inline]
fn comparable<'a>(
    representation: &Representation<'a>,
    rules: SourceRules,
    conditions: &Conditions<'_>,
) -> Validator<'a> {
    let mut validator = representation.validator;
    let names_tag = conditions.if_none_match.is_some() || conditions.if_match.is_some();
    let compares = match rules.undated {
        UndatedTag::Ignored => false,
        UndatedTag::Compared => validator.etag.is_some(),
        UndatedTag::Required => true,
    };
    if compares && names_tag && validator.last_modified.is_none() {
        // `evaluate` compares nothing without a date.
        validator.last_modified = Some(0);
    }
    validator
}

#[inline]
fn since(configured: ModifiedSince, rules: SourceRules) -> ModifiedSince {
    match configured {
        ModifiedSince::Exact if rules.later_dates => ModifiedSince::Before,
        other => other,
    }
}

/// The bytes that `Range` selects, and whether the representation has ranges at all.
#[inline]
fn select(
    representation: &Representation<'_>,
    rules: SourceRules,
    validator: Validator<'_>,
    conditions: &Conditions<'_>,
    ranges: &mut Vec<ByteRange>,
) -> Result<(DeliveredBytes, bool), DeliveryRefusal> {
    let max = rules.ranges_max.min(representation.rules.max_ranges);
    let Some(length) = representation.length else { return Ok((DeliveredBytes::Whole, false)) };
    if max == 0 || representation.transfer != Transfer::Identity {
        return Ok((DeliveredBytes::Whole, false));
    }
    let validator = match representation.range_date {
        RangeDate::Own => validator,
        RangeDate::Added(last_modified) => Validator { last_modified, ..validator },
    };
    let Some(field) = conditions.range.filter(|_| conditions.range_applies(validator)) else {
        return Ok((DeliveredBytes::Whole, true));
    };
    let bytes = match range::parse(field, length, max, ranges) {
        RangeOutcome::Whole => DeliveredBytes::Whole,
        RangeOutcome::Unsatisfiable => return Err(DeliveryRefusal::RangeNotSatisfiable(length)),
        RangeOutcome::Partial => match ranges[..] {
            [range] => DeliveredBytes::Part(range),
            _ => DeliveredBytes::Parts,
        },
    };
    Ok((bytes, true))
}

#[inline]
fn length(delivery: &Delivery, representation: &Representation<'_>, method: Method) -> BodyLen {
    let known = match (delivery.bytes, representation.transfer) {
        (DeliveredBytes::Nothing, _) => return BodyLen::None,
        (DeliveredBytes::Part(range), _) => Some(range.len()),
        (DeliveredBytes::Parts, _) => None,
        (DeliveredBytes::Whole, Transfer::Identity) => representation.length,
        (DeliveredBytes::Whole, Transfer::Coded { length }) => length,
        // The filter that changes the body says so later (`filter::body`).
        (DeliveredBytes::Whole, Transfer::Filtered) => representation.length,
    };
    match known {
        Some(length) => BodyLen::Exact(length),
        None if method == Method::Head => BodyLen::None,
        None => BodyLen::Unknown,
    }
}

#[cfg(test)]
mod tests;
