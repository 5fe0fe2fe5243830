//! Selects the body filters of a response, by nginx's rules: `gunzip`, `sub_filter`, `charset_map`,
//! `ssi`, `addition`, compression; and by those of `.htaccess` files: `INFLATE`, `SUBSTITUTE`.
//!
//! Also adjusts the head; [`crate::answer::BodyFilters`] processes the body. Content handlers do
//! not change bodies (see [`MediaType::rewritten`]).

use bolide_conf::model::Filters;
use bolide_htaccess::SubstitutedLines;
use bolide_http::negotiate::Coding;
use bolide_http::{BodyLen, FieldMap, Method, Name};

use crate::answer::{
    Answer, BodyFilter, BodyFilters, ByteFilter, CharsetOutcome, CompressFilter, Pair, PartsFilter,
    Substitute, blur,
};
use crate::content::parts::added;
use crate::ctx::StepCtx;
use crate::filter::charset::charset_of;
use crate::filter::compress;
use crate::htaccess::searched::SearchOrder;
use crate::media_types::{MediaType, media};
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

impl Request {
    /// Whether a filter will change a response of this type and coding, so that ranges of it are of
    /// no use.
    pub(crate) fn filters_body(
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

/// Adds `Vary: Accept-Encoding`, if it is configured and missing.
fn vary(fields: &mut FieldMap, location: &CompiledLocation) {
    let is_said = fields.all(Name::Vary).any(|value| value == b"Accept-Encoding");
    if location.settings.gzip.vary && !is_said {
        fields.push(Name::Vary, b"Accept-Encoding");
    }
}

fn unknown_length(request: &Request) -> BodyLen {
    match request.head().method {
        Method::Head => BodyLen::None,
        _ => BodyLen::Unknown,
    }
}

/// The texts to search in this response, without those that variables make empty.
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

/// As [`Request::filters_body`] for a file: false if variables make all texts empty.
pub(crate) fn filters_file(
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
    request.filters_body(kind, encoding.as_bytes(), len, location) && (is_plain || looks())
}

/// Sets the filters of a response that is about to be sent.
pub(crate) fn filter_body(
    request: &mut Request,
    answer: &mut Answer,
    site: &Site,
    ctx: &StepCtx<'_>,
) {
    let location = site.location(request.location);
    let status = answer.head.status;
    if matches!(status, 101 | 204 | 304)
        || request.role.is_subrequest() && request.role.part().is_none()
    {
        let filters = &location.settings.filters;
        // As in nginx, a 304 has no type, which only `*` matches.
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
    let order = SearchOrder::of(request, answer, location, media(content_type));
    let could_gunzip = filters.gunzip && is_gzip(encoding);
    let gunzips = head.status != 206
        && (could_gunzip && !client.contains(Coding::Gzip) || order.inflates && is_gzip(encoding));
    let is_plain = encoding.is_empty() || gunzips;
    let includes = kind.included && head.body != BodyLen::Exact(0);
    let adds = kind.added && status == 200 && request.role.part().is_none();
    let pairs = match kind.replaced && head.body != BodyLen::Exact(0) {
        true => pairs(request, answer, filters, site, ctx),
        false => Vec::new(),
    };
    let is_there = head.body != BodyLen::Exact(0);
    let order = order.substitution(request).filter(|_| is_plain && is_there);
    let lines = order.map(SubstitutedLines::new);
    let recoder = answer.charset.as_deref().and_then(CharsetOutcome::recoder);
    let is_new = answer.body.is_put_together();
    let is_resized = recoder.as_ref().is_some_and(|recoder| !recoder.keeps_length());
    let is_changed =
        gunzips || includes || adds || is_resized || lines.is_some() || !pairs.is_empty();
    let len = if is_changed { None } else { exact(head.body) };
    let choice = match location.coded
        && is_plain
        && (gunzips || kind.is_coded_last() || recoder.is_some() || lines.is_some() || is_new)
    {
        true => compress::choose_last(request, location, kind, status, len, client),
        false => compress::CodingChoice::default(),
    };
    if could_gunzip || choice.varies {
        vary(&mut answer.head.fields, location);
    }
    let coding = choice.coding;
    let compress =
        coding.and_then(|coding| CompressFilter::new(coding, compress::level(location, coding)));
    let substitute = (!pairs.is_empty()).then(|| Substitute::new(pairs, filters.sub_once));
    let parts = (includes || adds).then(|| parts_of(request, filters, includes, adds));
    let mut list = BodyFilters::default();
    let mut bytes = |filter: Option<ByteFilter>| {
        filter.into_iter().for_each(|filter| list.push(BodyFilter::Bytes(filter)));
    };
    bytes(gunzips.then(ByteFilter::gunzip));
    bytes(substitute.map(|substitute| ByteFilter::Sub(substitute, filters.sub_last_modified)));
    bytes(lines.map(|lines| ByteFilter::Lines(Box::new(lines))));
    bytes(recoder.map(ByteFilter::Charset));
    parts.into_iter().for_each(|parts| list.push(BodyFilter::Parts(Box::new(parts))));
    let compress = compress.map(|filter| BodyFilter::Bytes(ByteFilter::Compress(filter)));
    compress.into_iter().for_each(|filter| list.push(filter));
    list.edit_head(&mut answer.head.fields);
    if (includes || adds) && !request.role.is_subrequest() {
        let content_type = answer.head.fields.get(Name::ContentType).unwrap_or_default();
        let charset = charset_of(content_type).map(|(_, charset)| charset.to_vec());
        *request.family().charset.borrow_mut() = charset;
    }
    put_behind(request, answer, list);
}

/// Puts the body behind its filters.
fn put_behind(request: &Request, answer: &mut Answer, filters: BodyFilters) {
    if !filters.keep_length() {
        answer.head.body = unknown_length(request);
    }
    if request.head().method != Method::Head {
        answer.body = filters.around(std::mem::take(&mut answer.body));
    }
}

/// The subrequests that this body includes. A response to HEAD has none.
fn parts_of(request: &mut Request, filters: &Filters, includes: bool, adds: bool) -> PartsFilter {
    debug_assert!(includes || adds, "SSI or `addition` puts bodies into this one");
    let Filters { ssi, addition, .. } = filters;
    let mut parts = PartsFilter::new(!includes || ssi.last_modified);
    if request.head().method == Method::Head {
        return parts;
    }
    if includes {
        parts.read(request.reader(ssi.value_length), request.take_stub());
    }
    if adds {
        parts.surround(added(addition.before.as_ref()), added(addition.after.as_ref()));
    }
    parts
}
