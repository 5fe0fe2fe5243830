//! The charset of a response, and whether its body is recoded to it, by nginx's rules.
//!
//! Decides only: [`crate::exchange`] writes `Content-Type`, and [`crate::filter::body`] recodes the
//! body. Easiest to break: the head names the charset of what is sent, never one that the body
//! could not be recoded to.

use std::borrow::Cow;

use bolide_conf::model::CharsetOf;
use bolide_http::negotiate::Coding;
use bolide_http::{Name, OriginHead};

use crate::answer::{Answer, CharsetOutcome};
use crate::ctx::StepCtx;
use crate::filter::compress;
use crate::htaccess::searched::SearchOrder;
use crate::log_lines;
use crate::media_types::{MediaType, media};
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

/// A content type, and the other inputs of the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescribedType<'a> {
    value: &'a [u8],
    /// The length of `value` before its charset.
    bare_len: usize,
    charset: Option<&'a [u8]>,
    /// `X-Accel-Charset`
    wish: Option<&'a [u8]>,
    is_encoded: bool,
    status: u16,
}

/// The `Content-Type` to send, and its consequence for the body.
#[derive(Debug)]
pub(crate) struct CharsetRuling<'a> {
    pub(crate) value: Cow<'a, [u8]>,
    pub(crate) outcome: Option<CharsetOutcome>,
}

impl<'a> DescribedType<'a> {
    /// The type of a generated response.
    pub(crate) const fn own(value: &'a [u8], is_encoded: bool, status: u16) -> Self {
        let bare_len = value.len();
        Self { value, bare_len, charset: None, wish: None, is_encoded, status }
    }

    /// The type in a field, with its charset.
    pub(crate) fn field(value: &'a [u8], is_encoded: bool, status: u16) -> Self {
        let own = Self::own(value, is_encoded, status);
        match charset_of(value) {
            Some((bare_len, charset)) => Self { bare_len, charset: Some(charset), ..own },
            None => own,
        }
    }

    fn bare(&self) -> &'a [u8] {
        &self.value[..self.bare_len]
    }

    /// The type with the charset `name`; as in nginx, a redirect has none.
    fn with(&self, text: &[u8], name: &[u8]) -> Cow<'a, [u8]> {
        if name.is_empty() || matches!(self.status, 301 | 302) {
            return Cow::Owned(text.to_vec());
        }
        Cow::Owned([text, b"; charset=", name].concat())
    }
}

/// Where a charset begins in a content type, and its name, as nginx finds it: up to the end of the
/// value, whatever follows.
pub(crate) fn charset_of(value: &[u8]) -> Option<(usize, &[u8])> {
    let mut at = 0;
    while let Some(mark) = memchr::memchr(b';', &value[at..]).map(|mark| at + mark) {
        let rest = &value[mark + 1..];
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        let name = &rest[spaces..];
        if let Some(word) = name.get(..b"charset=".len())
            && word.eq_ignore_ascii_case(b"charset=")
        {
            let charset = &name[word.len()..];
            let charset = charset.strip_prefix(b"\"").unwrap_or(charset);
            return Some((mark, charset.strip_suffix(b"\"").unwrap_or(charset)));
        }
        // The byte here is not looked at again, even if it is a `;`.
        at = (mark + 2 + spaces).min(value.len());
    }
    None
}

/// Whether a charset depends on variables.
pub(crate) fn is_computed(charset: &CharsetOf) -> bool {
    matches!(charset, CharsetOf::Name(name) if name.as_text().is_none())
}

/// Decides the type to send, and whether the body has to be recoded for it.
pub(crate) fn rule_charset<'a>(
    answer: &Answer,
    request: &Request,
    described: DescribedType<'a>,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> CharsetRuling<'a> {
    let keep = |outcome| CharsetRuling { value: Cow::Borrowed(described.value), outcome };
    let Some(charsets) = site.http().map(|http| &http.charsets) else { return keep(None) };
    if described.value.is_empty() {
        return keep(None);
    }
    let settings = &site.location(request.location).settings.charset;
    let named = |charset: &CharsetOf| match charset {
        CharsetOf::Off => None,
        CharsetOf::Name(name) => {
            let mut text = Vec::new();
            VariableScope::new(request, answer, site, ctx).expand(name, &mut text);
            Some(text)
        }
    };
    let to = match (request.role.part(), described.wish) {
        (Some(part), _) => part.family.charset.borrow().clone(),
        (None, Some(wish)) if charsets.is_known(wish) => Some(wish.to_vec()),
        (None, Some(wish)) => return keep(Some(CharsetOutcome::Unknown(wish.to_vec()))),
        (None, None) => {
            let applies = settings.charset != CharsetOf::Off
                && match described.charset {
                    Some(_) => settings.overrides,
                    None => settings.types.contains(&described.bare().to_ascii_lowercase()),
                };
            if applies { named(&settings.charset) } else { None }
        }
    };
    let Some(to) = to else { return keep(None) };
    let Some(from) = described.charset.map(<[u8]>::to_vec).or_else(|| named(&settings.source))
    else {
        return CharsetRuling { value: described.with(described.value, &to), outcome: None };
    };
    debug_assert!(described.bare_len <= described.value.len(), "a type ends at its charset");
    let value = described.with(described.bare(), &to);
    if from.eq_ignore_ascii_case(&to) {
        return CharsetRuling { value, outcome: None };
    }
    let is_known = charsets.is_known(&from) && charsets.is_known(&to);
    if described.is_encoded && is_known {
        return keep(None);
    }
    match charsets.between(&from, &to) {
        Some((map, direction)) => {
            let outcome = CharsetOutcome::Recoded(map.clone(), direction);
            CharsetRuling { value, outcome: Some(outcome) }
        }
        None => keep(Some(CharsetOutcome::Unmapped { from, to, is_file: false })),
    }
}

/// Whether `gunzip` decompresses a response for its client, so that it can be recoded.
pub(crate) fn is_inflated(
    request: &Request,
    location: &CompiledLocation,
    status: u16,
    encoding: &[u8],
) -> bool {
    location.settings.filters.gunzip
        && status != 206
        && encoding.eq_ignore_ascii_case(b"gzip")
        && !compress::client_codings(request, location).contains(Coding::Gzip)
}

/// As [`rule_charset`] for an upstream response.
pub(crate) fn rule_origin_charset<'a>(
    answer: &Answer,
    request: &Request,
    head: &'a OriginHead,
    status: u16,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> CharsetRuling<'a> {
    let location = site.location(request.location);
    let encoding = head.fields.get(Name::ContentEncoding).unwrap_or_default();
    let value = head.fields.get(Name::ContentType).unwrap_or_default();
    let is_encoded = !encoding.is_empty() && !is_inflated(request, location, status, encoding);
    let ignores = location.settings.origin.ignore_headers.charset;
    let wish = head.fields.get_text(b"X-Accel-Charset");
    let described = DescribedType {
        wish: wish.filter(|wish| !ignores && !wish.is_empty()),
        ..DescribedType::field(value, is_encoded, status)
    };
    rule_charset(answer, request, described, site, ctx)
}

/// The changes of an upstream response by recoding, or by filters of `.htaccess` files.
pub(crate) fn recodes_origin(
    answer: &Answer,
    request: &Request,
    head: &OriginHead,
    status: u16,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> RecodedLength {
    let location = site.location(request.location);
    if answer.may_be_searched {
        let media = media(head.fields.get(Name::ContentType).unwrap_or_default());
        let encoding = head.fields.get(Name::ContentEncoding).unwrap_or_default();
        let order = SearchOrder::of(request, answer, location, media);
        if order.is_searched && encoding.is_empty() || status != 206 && order.changes(encoding) {
            return RecodedLength::Changed;
        }
    }
    if !location.recodes_passed {
        return RecodedLength::Untouched;
    }
    rule_origin_charset(answer, request, head, status, site, ctx).length()
}

/// Whether a file of `len` bytes is recoded so that it cannot have ranges.
pub(crate) fn recodes_file(
    answer: &Answer,
    request: &Request,
    (kind, encoding): (&MediaType, &'static str),
    len: u64,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> bool {
    let location = site.location(request.location);
    if !kind.recoded || !encoding.is_empty() {
        return false;
    }
    let status = answer.status_or(200);
    let described = DescribedType::own(&kind.media, false, status);
    if rule_charset(answer, request, described, site, ctx).length() == RecodedLength::Changed {
        return true;
    }
    let client = compress::client_codings(request, location);
    location.coded
        && compress::choose_last(request, location, kind, status, Some(len), client)
            .coding
            .is_some()
}

/// The effect of recoding on the length of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecodedLength {
    /// Not recoded.
    Untouched,
    /// Each byte becomes one byte.
    Kept,
    /// Unknown before the end.
    Changed,
}

impl CharsetRuling<'_> {
    fn length(&self) -> RecodedLength {
        match &self.outcome {
            Some(CharsetOutcome::Recoded(map, _)) if map.codes.keeps_length() => {
                RecodedLength::Kept
            }
            Some(CharsetOutcome::Recoded(..)) => RecodedLength::Changed,
            _ => RecodedLength::Untouched,
        }
    }
}

/// Records that the response is a file.
pub(crate) fn mark_file(answer: &mut Answer) {
    if let Some(CharsetOutcome::Unmapped { is_file, .. }) = answer.charset.as_deref_mut() {
        *is_file = true;
    }
}

/// Logs an error in the charset of an upstream response, unless its filters will do so.
#[inline]
pub(crate) fn complain_of_passed(
    request: &Request,
    answer: &mut Answer,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    if answer.charset.is_some() && !site.location(request.location).filters_bodies {
        let outcome = answer.charset.take();
        outcome.into_iter().for_each(|outcome| complain(request, answer, &outcome, site, ctx));
    }
}

/// Logs an error in the charset of a response.
#[cold]
pub(crate) fn complain(
    request: &Request,
    answer: &Answer,
    outcome: &CharsetOutcome,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    debug_assert!(answer.charset.is_none(), "the charset is set once");
    let is_passed = answer.is_from_origin();
    let write = |out: &mut Vec<u8>| {
        match outcome {
            CharsetOutcome::Recoded(..) => {}
            CharsetOutcome::Unmapped { from, to, .. } => {
                out.extend_from_slice(b"no \"charset_map\" between the charsets \"");
                bolide_http::escape::push_log(out, from);
                out.extend_from_slice(b"\" and \"");
                bolide_http::escape::push_log(out, to);
                out.push(b'"');
            }
            CharsetOutcome::Unknown(name) => {
                out.extend_from_slice(b"unknown charset \"");
                bolide_http::escape::push_log(out, name);
                out.extend_from_slice(b"\" to override");
            }
        }
        if is_passed {
            out.extend_from_slice(b" while reading response header from upstream");
        } else if matches!(outcome, CharsetOutcome::Unmapped { is_file: true, .. }) {
            out.extend_from_slice(b" while sending response to client");
        }
    };
    match (outcome, is_passed) {
        (CharsetOutcome::Recoded(..), _) => {}
        (_, true) => log_lines::error_at_origin(request, answer, site, ctx, write),
        (_, false) => request.log_error(site, ctx, write),
    }
}
