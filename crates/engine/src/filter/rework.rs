//! `sub_filter`, `gunzip`, `charset_map`, `ssi`, `addition`: which answers are changed on their
//! way, and what that means for their heads, by nginx's rules: the length is unknown, what tells
//! versions apart goes or becomes weak.
//!
//! An answer that is changed is coded last; content handlers leave it as it is (see
//! [`MediaType::rewritten`]).

use bolide_conf::model::Filters;
use bolide_files::{CodingDecoder, CodingEncoder};
use bolide_http::negotiate::Coding;
use bolide_http::{BodyLen, FieldMap, Method, Name};

use crate::answer::Answer;
use crate::answer::CharsetOutcome;
use crate::answer::{AnswerBody, Compound, Pair, Reworked, Substitute, Work};
use crate::content::parts::added;
use crate::ctx::StepCtx;
use crate::filter::charset::charset_of;
use crate::filter::compress;
use crate::media_types::MediaType;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

impl Request {
    /// Whether an answer of this kind and coding will be changed, so that there is no use in parts
    /// of it.
    pub(crate) fn reworks(
        &self,
        kind: &MediaType,
        encoding: &[u8],
        len: u64,
        location: &CompiledLocation,
    ) -> bool {
        let takes_gzip = || compress::client_codings(self, location).contains(Coding::Gzip);
        kind.rewritten && len > 0
            || location.settings.filters.gunzip && is_gzip(encoding) && !takes_gzip()
    }
}

const fn is_gzip(encoding: &[u8]) -> bool {
    encoding.eq_ignore_ascii_case(b"gzip")
}

const fn exact(len: BodyLen) -> Option<u64> {
    match len {
        BodyLen::Exact(len) => Some(len),
        _ => None,
    }
}

/// What tells versions apart was made for what is not sent.
fn blur(fields: &mut FieldMap, keeps_last_modified: bool) {
    if keeps_last_modified {
        weaken(fields);
    } else {
        fields.remove(Name::LastModified);
        fields.remove(Name::Etag);
    }
}

/// `Vary: Accept-Encoding`, if it is wanted and not said already.
fn vary(fields: &mut FieldMap, location: &CompiledLocation) {
    let is_said = fields.all(Name::Vary).any(|value| value == b"Accept-Encoding");
    if location.settings.gzip.vary && !is_said {
        fields.push(Name::Vary, b"Accept-Encoding");
    }
}

/// RFC 9110 §8.8.1: what was changed is at most equivalent to what the tag was made for.
fn weaken(fields: &mut FieldMap) {
    let Some(etag) = fields.get(Name::Etag) else { return };
    if etag.starts_with(b"W/") {
        return;
    }
    let weak = etag.starts_with(b"\"").then(|| [b"W/", etag].concat());
    fields.remove(Name::Etag);
    if let Some(weak) = weak {
        fields.push(Name::Etag, &weak);
    }
}

fn wrap(request: &Request, answer: &mut Answer, work: Work) {
    let keeps_length =
        work.decoder.is_none() && work.substitute.is_none() && work.encoder.is_none();
    match &work.recoder {
        None if keeps_length => return,
        Some(recoder) if keeps_length && recoder.keeps_length() => {}
        _ => answer.head.body = unknown_length(request),
    }
    let is_head = request.head().method == Method::Head;
    if !is_head {
        let inner = std::mem::take(&mut answer.body);
        answer.body = AnswerBody::Reworked(Box::new(Reworked::new(inner, work)));
    }
}

fn unknown_length(request: &Request) -> BodyLen {
    match request.head().method {
        Method::Head => BodyLen::None,
        _ => BodyLen::Unknown,
    }
}

/// What is looked for in this answer; texts that variables make empty are not.
fn pairs(
    request: &Request,
    answer: &Answer,
    filters: &Filters,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Vec<Pair> {
    let scope = VariableScope::new(request, answer, site, ctx);
    let text = |template: &bolide_conf::Template| {
        let mut text = Vec::new();
        scope.expand(template, &mut text);
        text
    };
    let mut pairs = Vec::with_capacity(filters.sub.len());
    for pair in filters.sub.iter() {
        let mut search = text(&pair.search);
        search.make_ascii_lowercase();
        if !search.is_empty() {
            pairs.push(Pair { search, replacement: text(&pair.replacement) });
        }
    }
    pairs
}

/// The same for a file; where variables make all texts empty, there is nothing to look for.
pub(crate) fn reworks_file(
    request: &Request,
    answer: &Answer,
    kind: &MediaType,
    encoding: &'static str,
    len: u64,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> bool {
    let location = site.location(request.location);
    let filters = &location.settings.filters;
    let looks = || {
        let mut texts = filters.sub.iter().map(|pair| &pair.search);
        texts.any(|text| text.as_text().is_some())
            || !pairs(request, answer, filters, site, ctx).is_empty()
    };
    let is_plain = !kind.rewritten || kind.included || kind.added;
    request.reworks(kind, encoding.as_bytes(), len, location) && (is_plain || looks())
}

/// Changes the answer that is about to leave.
pub(crate) fn rework(request: &mut Request, answer: &mut Answer, site: &Site, ctx: &StepCtx<'_>) {
    let location = site.location(request.location);
    let status = answer.head.status;
    if matches!(status, 101 | 204 | 304)
        || request.role.is_subrequest() && request.role.part().is_none()
    {
        let filters = &location.settings.filters;
        // As in nginx, a 304 has no type, which only `*` is about.
        if status == 304 && filters.rewrites(b"") {
            blur(&mut answer.head.fields, filters.sub_last_modified);
        }
        if status == 304 && filters.includes(b"") {
            blur(&mut answer.head.fields, filters.ssi.last_modified);
        }
        return;
    }
    let head = &answer.head;
    let content_type = head.fields.get(Name::ContentType).unwrap_or_default();
    let kind = &*location.kinds.of_value(content_type, &location.settings);
    let filters = &location.settings.filters;
    let now = ctx.now.unix_seconds();
    let client = compress::codings_for_origin(request, location, &head.fields, now);
    let encoding = head.fields.get(Name::ContentEncoding).unwrap_or_default();
    let could_gunzip = filters.gunzip && is_gzip(encoding);
    let gunzips = could_gunzip && head.status != 206 && !client.contains(Coding::Gzip);
    let is_plain = encoding.is_empty() || gunzips;
    let includes = kind.included && head.body != BodyLen::Exact(0);
    let adds = kind.added && status == 200 && request.role.part().is_none();
    let pairs = match kind.replaced && head.body != BodyLen::Exact(0) {
        true => pairs(request, answer, filters, site, ctx),
        false => Vec::new(),
    };
    let recoder = answer.charset.as_deref().and_then(CharsetOutcome::recoder);
    let is_sliced = answer.body.sliced().is_some();
    let is_resized = recoder.as_ref().is_some_and(|recoder| !recoder.keeps_length());
    let is_changed = gunzips || includes || adds || is_resized || !pairs.is_empty();
    let len = if is_changed { None } else { exact(head.body) };
    let choice = match location.coded
        && is_plain
        && (gunzips || kind.is_coded_last() || recoder.is_some() || is_sliced)
    {
        true => compress::choose_last(location, kind, status, len, client),
        false => compress::CodingChoice::default(),
    };
    let level = |coding| compress::level(location, coding);
    let work = Work {
        decoder: gunzips.then(CodingDecoder::gzip),
        encoder: choice.coding.and_then(|coding| CodingEncoder::new(coding, level(coding)).ok()),
        recoder,
        substitute: (!pairs.is_empty()).then(|| Substitute::new(pairs, filters.sub_once)),
    };
    let fields = &mut answer.head.fields;
    if could_gunzip || choice.varies {
        vary(fields, location);
    }
    if work.decoder.is_some() {
        fields.remove(Name::ContentEncoding);
        fields.remove(Name::AcceptRanges);
        weaken(fields);
    }
    if adds {
        fields.remove(Name::AcceptRanges);
        weaken(fields);
    }
    if work.substitute.is_some() {
        blur(fields, filters.sub_last_modified);
    }
    if includes {
        fields.remove(Name::AcceptRanges);
        blur(fields, filters.ssi.last_modified);
    }
    if let Some(coding) = choice.coding.filter(|_| work.encoder.is_some()) {
        fields.push(Name::ContentEncoding, coding.token().as_bytes());
        fields.remove(Name::AcceptRanges);
        weaken(fields);
    }
    if (includes || adds) && !request.role.is_subrequest() {
        let content_type = answer.head.fields.get(Name::ContentType).unwrap_or_default();
        let charset = charset_of(content_type).map(|(_, charset)| charset.to_vec());
        *request.family().charset.borrow_mut() = charset;
    }
    if includes || adds {
        compound(request, answer, work, includes, adds, location);
    } else {
        wrap(request, answer, work);
    }
}

/// Puts other answers into the body: after it was decoded and texts were replaced, before it is
/// coded again.
fn compound(
    request: &mut Request,
    answer: &mut Answer,
    mut work: Work,
    includes: bool,
    adds: bool,
    location: &CompiledLocation,
) {
    debug_assert!(includes || adds, "only what has other answers in it is a compound");
    let encoder = work.encoder.take();
    wrap(request, answer, work);
    answer.head.body = unknown_length(request);
    if request.head().method != Method::Head {
        let Filters { ssi, addition, .. } = &*location.settings.filters;
        let reader = includes.then(|| request.reader(ssi.value_length));
        let inner = std::mem::take(&mut answer.body);
        let [before, after] =
            [&addition.before, &addition.after].map(|uri| added(uri.as_ref().filter(|_| adds)));
        let mut compound = Compound::new(inner, reader, before, after);
        if includes && let Some(stub) = request.take_stub() {
            compound.use_stub(stub);
        }
        answer.body = AnswerBody::Compound(Box::new(compound));
    }
    wrap(request, answer, Work { encoder, ..Work::default() });
}
