//! Decides which status, bytes and length of a representation are sent (RFC 9110 §13 to §15).
//!
//! [`decide`] is the only place that chooses between 200, 206, 304, 412 and 416. The differences
//! between sources of representations, and nginx's deviations, are data of [`SourceRules`]. Nothing
//! here touches a body, a clock or the configuration. Easiest to break: a representation that is
//! compressed or filtered while it is sent has no ranges.

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
    /// The same with one range at most, for slices, which are fetched one after another.
    pub(crate) fn single(self) -> Self {
        Self { max_ranges: self.max_ranges.min(1), ..self }
    }
}

/// Where a representation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepresentationSource {
    /// A file, as it is stored.
    File,
    /// A file that is compressed while it is sent.
    CodedFile,
    /// `empty_gif`: built-in bytes with a date.
    Pixel,
    /// A text that the server generates for this request: listings, `return`, error pages.
    Text,
    /// A complete cached response.
    Cached {
        /// Of the page cache, not of an nginx zone.
        page: bool,
    },
    /// An object that another exchange fills: its bytes are still arriving.
    Filling {
        /// Into the page cache, not into an nginx zone.
        page: bool,
    },
    /// A response of an upstream server that evaluated the client's preconditions and ranges
    /// itself.
    Upstream,
    /// A response of an upstream server that was asked without them, so that the whole can be
    /// stored.
    UpstreamWhole {
        /// For the page cache, not for an nginx zone.
        page: bool,
    },
    /// A page that is assembled from fragments: it has no validators.
    Assembled,
}

/// The rules that differ by source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SourceRules {
    /// Whether the client's preconditions are evaluated here.
    evaluates: bool,
    /// LIMIT: ranges that one response has.
    ranges_max: u32,
    /// What an entity tag counts in a response without `Last-Modified`.
    undated: UndatedTag,
    /// Whether `If-Modified-Since` may be later than our date (RFC 9110 §13.1.3). nginx requires
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
    /// Whether `Range` or a precondition may change the response.
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
    /// It is sent as it is.
    Identity,
    /// It is sent in a content coding that its source does not have.
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
    /// The status of the complete representation.
    pub(crate) status: u16,
    /// Its bytes before any coding, if known.
    pub(crate) length: Option<u64>,
    /// How it is coded while it is sent.
    pub(crate) transfer: Transfer,
    /// Its validators.
    pub(crate) validator: Validator<'a>,
    /// The date for `If-Range`; other preconditions use the validator, as in nginx.
    pub(crate) range_date: RangeDate,
    /// The location's rules for preconditions and ranges.
    pub(crate) rules: DeliveryRules,
    /// Whether a 200 sends `Accept-Ranges`.
    pub(crate) advertises_ranges: bool,
}

impl Representation<'_> {
    /// A generated text.
    pub(crate) fn text(status: u16, length: u64) -> Self {
        Self::bare(RepresentationSource::Text, status, Some(length))
    }

    /// A page that is assembled from fragments.
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

/// Which bytes of a representation are sent.
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

/// The decision: what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The status.
    pub(crate) status: u16,
    /// The bytes.
    pub(crate) bytes: DeliveredBytes,
    /// The length for framing. The length of several ranges depends on their boundary and is known
    /// when the body is built.
    pub(crate) length: BodyLen,
    /// Whether to send `Accept-Ranges: bytes`.
    pub(crate) accept_ranges: bool,
    /// Whether this is a 304 by the client's preconditions, not one of an upstream server.
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

    /// Whether only a part of the representation is sent.
    pub(crate) const fn is_partial(&self) -> bool {
        matches!(self.bytes, DeliveredBytes::Part(_) | DeliveredBytes::Parts)
    }

    /// The range that is sent, if it is exactly one.
    pub(crate) const fn range(&self) -> Option<ByteRange> {
        match self.bytes {
            DeliveredBytes::Part(range) => Some(range),
            _ => None,
        }
    }
}

/// Why the representation is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryRefusal {
    /// 412 (RFC 9110 §15.5.13).
    PreconditionFailed,
    /// 416 (RFC 9110 §15.5.17), with the length of the representation.
    RangeNotSatisfiable(u64),
}

/// Decides what is sent of `representation`. `ranges` stays empty unless the decision is
/// [`DeliveredBytes::Parts`].
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
    // Preconditions and ranges apply to what would be a 200 (RFC 9110 §13.2.1, §14.2).
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

/// The validators that preconditions are compared with.
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
        // The filter that changes the body sets the length later (`filter::body`).
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
