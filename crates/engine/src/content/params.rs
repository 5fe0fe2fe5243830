//! The CGI parameters of a request, and the script that it selects.
//!
//! Easiest to break: a parameter of the configuration takes precedence over the client's field of
//! the same name, even if the parameter itself is omitted.

mod plan;

use bolide_cache::rules::Environment;
use bolide_conf::model::{PageCache, PageMode, VaryBy};
use bolide_conf::regex::GroupSpans;
use bolide_conf::vars::Var;
use bolide_http::{FieldMap, Hops, HttpVersion, Name, Params, RequestBody};

use crate::caching::fronts::is_trusted;
use crate::filter::tunnel::may_ask_upgrade;
use crate::htaccess::ruling::HandlerProgram;
use crate::site::UpstreamPass;
use crate::vars::{VariableScope, trace};

pub(crate) use plan::ParamPlan;
use plan::{Planned, PlannedRest, SCRIPT_FILENAME};

impl Planned {
    fn write(&self, scope: &VariableScope<'_>, out: &mut Vec<u8>) {
        scope.expand(&self.value, out);
        match self.then {
            PlannedRest::Nothing => {}
            PlannedRest::AskedPath => {
                let target = &scope.request.head().target;
                let end = memchr::memchr(b'?', target).unwrap_or(target.len());
                bolide_http::uri::push_decoded(out, &target[..end]);
            }
            PlannedRest::ScriptFile => push_script_file(scope, out),
        }
    }
}

/// The conditional fields: they describe the client's copy, so that a fetch for the cache has none.
const CONDITIONS: [&[u8]; 6] = [
    b"IF_MODIFIED_SINCE",
    b"IF_UNMODIFIED_SINCE",
    b"IF_NONE_MATCH",
    b"IF_MATCH",
    b"RANGE",
    b"IF_RANGE",
];

/// Writes the parameters for the upstream of `pass`.
pub(crate) fn write(
    scope: &VariableScope<'_>,
    pass: &UpstreamPass,
    is_to_keep: bool,
    environment: &Environment,
    out: &mut Params,
) {
    let settings = &scope.location().settings.origin;
    let page = page(scope);
    let is_litespeed = page.is_some_and(|page| page.is_litespeed);
    let mut value = Vec::new();
    for param in &pass.plan.params {
        if is_litespeed && *param.name == *b"SERVER_SOFTWARE" {
            continue;
        }
        if param.if_not_empty {
            value.clear();
            param.write(scope, &mut value);
            if !value.is_empty() {
                out.push(&param.name, &value);
            }
        } else {
            out.push_writing(
                |out| out.extend_from_slice(&param.name),
                |out| param.write(scope, out),
            );
        }
    }
    if settings.pass_request_headers {
        let conditions = if is_to_keep { &CONDITIONS[..] } else { &[] };
        let is_believed = scope.site.store().is_none()
            || is_trusted(&scope.location().settings.cache.page, scope.conn);
        let forged: fn(&[u8]) -> bool =
            if is_believed { |_| false } else { bolide_cache::rules::is_forged };
        let passes_upgrade =
            pass.conf.protocol.has_tunnels() && !is_to_keep && may_ask_upgrade(scope.request);
        let left_out = LeftOut { decided: &pass.plan.decided, conditions, forged, passes_upgrade };
        write_fields(scope, &left_out, out);
    }
    if let Some(page) = page {
        if is_litespeed {
            out.push(b"SERVER_SOFTWARE", b"LiteSpeed");
        }
        push_cache_params(page, environment, out);
    }
    if scope.location().htaccess.is_some() {
        let fields = &scope.request.head().fields;
        let has_field = |name: &[u8]| {
            let field = name.strip_prefix(b"HTTP_");
            field.is_some_and(|name| fields.iter().any(|field| is_same(name, field.text)))
        };
        crate::htaccess::effects::push_params(scope, pass, has_field, out);
    }
    if let Some(program) = HandlerProgram::of(scope.request)
        && out.get(SCRIPT_FILENAME).is_some()
    {
        out.replace(SCRIPT_FILENAME, &program.file);
    }
    if let Some(lineage) = scope.request.role.fragment() {
        out.push(b"ESI_REFERER", lineage.page());
        out.push(b"ESI_CONTENT_TYPE", lineage.content_type());
    }
}

/// The page cache of the location, if it has one.
fn page<'a>(scope: &VariableScope<'a>) -> Option<&'a PageCache> {
    let caching = scope.site.location(scope.request.location).caching.as_ref()?;
    caching.is_page().then(|| &caching.conf.page)
}

/// Writes the parameters by which applications know which cache they may control.
fn push_cache_params(page: &PageCache, environment: &Environment, out: &mut Params) {
    if environment.is_off || page.mode == PageMode::Magento {
        return;
    }
    let words: &[u8] = match (page.crawler, page.esi) {
        (true, true) => b"on,crawler,esi,combine",
        (true, false) => b"on,crawler",
        (false, true) => b"on,esi,combine",
        (false, false) => b"on",
    };
    out.push(b"X-LSCACHE", words);
    if environment.litemage.unwrap_or(page.litemage) {
        out.push(b"X-LITEMAGE", b"1");
    }
    let cookies: Vec<&[u8]> = environment.vary_cookies.iter().map(|name| &**name).collect();
    let named = page.vary.iter().filter_map(|by| match by {
        VaryBy::Cookie(name) => Some(&**name),
        VaryBy::Cookies(_) | VaryBy::Value(_) | VaryBy::Header(_) => None,
    });
    let cookies = named.chain(cookies).collect::<Vec<_>>().join(&b","[..]);
    if !cookies.is_empty() {
        out.push(b"LSCACHE_VARY_COOKIE", &cookies);
    }
    if let Some(value) = &environment.vary_value {
        out.push(b"LSCACHE_VARY_VALUE", value);
    }
}

/// Makes the request conditional on the validators of `old` (RFC 9111 §4.3.1).
pub(crate) fn write_conditions(old: &bolide_cache::Object, out: &mut Params) {
    if let Some(etag) = old.etag() {
        out.push(b"HTTP_IF_NONE_MATCH", etag);
    }
    if let Some(at) = old.last_modified() {
        let mut text = Vec::new();
        text.extend_from_slice(&bolide_http::date::http_date(at as i64));
        out.push(b"HTTP_IF_MODIFIED_SINCE", &text);
    }
}

/// The client's fields that are not passed.
struct LeftOut<'a> {
    /// The parameters of the configuration.
    decided: &'a [Box<[u8]>],
    conditions: &'a [&'a [u8]],
    forged: fn(&[u8]) -> bool,
    /// Whether the application may switch to another protocol.
    passes_upgrade: bool,
}

/// Writes the client's fields as `HTTP_*`.
fn write_fields(scope: &VariableScope<'_>, left_out: &LeftOut<'_>, out: &mut Params) {
    let LeftOut { decided, conditions, forged: is_forged, passes_upgrade } = *left_out;
    let head = scope.request.head();
    let hops = Hops::of(&head.fields);
    let injects = scope.request.tracing.injects();
    if injects && !decided.iter().any(|name| **name == *b"TRACEPARENT") {
        out.push_writing(
            |name| name.extend_from_slice(b"HTTP_TRACEPARENT"),
            |value| trace::push_context(scope, value),
        );
    }
    for (at, field) in head.fields.iter().enumerate() {
        let is_decided = decided.iter().any(|name| is_same(name, field.text))
            || conditions.iter().any(|name| is_same(name, field.text))
            || is_forged(field.text)
            || injects && trace::replaces_field(scope, field.text)
            // nginx passes `Connection` to scripts, and some use it.
            || hops.has(field)
                && field.name != Name::Connection
                && !(passes_upgrade && field.name == Name::Upgrade);
        if is_decided
            || head.fields.iter().take(at).any(|other| is_same_field(other, field))
            || is_ambiguous(field.text, &head.fields, decided)
        {
            continue;
        }
        out.push_writing(
            |out| push_name(out, field.text),
            |out| push_all(out, &head.fields, at, field),
        );
    }
    // Framing has consumed these fields; nginx passes them as any other.
    let is_open = |name: &[u8]| !decided.iter().any(|decided| **decided == *name);
    match head.body {
        RequestBody::Length(len)
            if head.fields.get(Name::ContentLength).is_none() && is_open(b"CONTENT_LENGTH") =>
        {
            out.push_writing(
                |out| out.extend_from_slice(b"HTTP_CONTENT_LENGTH"),
                |out| bolide_http::digits::push_decimal(out, len),
            );
        }
        RequestBody::Unknown
            if head.version == HttpVersion::Http11 && is_open(b"TRANSFER_ENCODING") =>
        {
            out.push(b"HTTP_TRANSFER_ENCODING", b"chunked");
        }
        _ => {}
    }
}

type Field<'a> = bolide_http::fields::Field<'a>;

fn is_same_field(one: Field<'_>, other: Field<'_>) -> bool {
    one.name == other.name && (one.name != Name::Other || one.text.eq_ignore_ascii_case(other.text))
}

/// The values of all fields with this name from `at` on, joined as nginx does.
fn push_all(out: &mut Vec<u8>, fields: &FieldMap, at: usize, field: Field<'_>) {
    out.extend_from_slice(field.value);
    let separator: &[u8] = if field.name == Name::Cookie { b"; " } else { b", " };
    for later in fields.iter().skip(at + 1).filter(|later| is_same_field(*later, field)) {
        out.extend_from_slice(separator);
        out.extend_from_slice(later.value);
    }
}

const fn shaped(byte: u8) -> u8 {
    if byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }
}

fn push_name(out: &mut Vec<u8>, field: &[u8]) {
    out.extend_from_slice(b"HTTP_");
    out.extend(field.iter().map(|byte| shaped(*byte)));
}

/// Whether a field becomes the parameter `HTTP_` followed by this name.
fn is_same(decided: &[u8], field: &[u8]) -> bool {
    decided.len() == field.len()
        && decided.iter().zip(field).all(|(name, byte)| *name == shaped(*byte))
}

/// Whether PHP would take a field for another one, or for a parameter of the configuration: it
/// equates `.` and `_` with `-`. Of such fields only the one with `-` is passed.
fn is_ambiguous(field: &[u8], all: &FieldMap, decided: &[Box<[u8]>]) -> bool {
    // PERF: almost no name has such a byte.
    if memchr::memchr2(b'.', b'_', field).is_none() {
        return false;
    }
    let read = |byte: u8| if byte == b'.' { b'_' } else { shaped(byte) };
    let collides = |name: &[u8]| {
        name.len() == field.len()
            && name.iter().zip(field).all(|(one, other)| read(*one) == read(*other))
    };
    decided.iter().any(|name| collides(name))
        || all.iter().any(|other| collides(other.text) && !other.text.eq_ignore_ascii_case(field))
}

/// The split of the path into `$fastcgi_script_name` and `$fastcgi_path_info`.
pub(crate) struct ScriptName<'a> {
    /// The script's part of the path.
    pub(crate) name: &'a [u8],
    /// The text appended to it: `fastcgi_index` if the path ends in a slash.
    pub(crate) index: &'a [u8],
    /// What follows the script in the path.
    pub(crate) path_info: &'a [u8],
}

/// Splits the path as `fastcgi_split_path_info` says.
pub(crate) fn script<'a>(scope: &VariableScope<'a>) -> ScriptName<'a> {
    let request = scope.request;
    if let Some(program) = HandlerProgram::of(request) {
        let (name, path_info) = program.split(&request.uri);
        return ScriptName { name, index: b"", path_info };
    }
    let settings = &scope.site.location(request.location).settings.origin;
    let whole = ScriptName { name: &request.uri, index: b"", path_info: b"" };
    if let Some(split) = &settings.split_path_info {
        let mut groups = GroupSpans::default();
        if split.find(&request.uri, &mut groups) == Ok(true) {
            let group = |at: usize| groups.get(at).and_then(|(a, b)| request.uri.get(a..b));
            return ScriptName {
                name: group(1).unwrap_or_default(),
                index: b"",
                path_info: group(2).unwrap_or_default(),
            };
        }
    }
    match &settings.index {
        Some(index) if request.uri.last() == Some(&b'/') => ScriptName { index, ..whole },
        _ => whole,
    }
}

/// Appends the path of the script that PHP will run, which the parameters name. None if they name
/// none.
pub(crate) fn push_script(
    scope: &VariableScope<'_>,
    pass: &UpstreamPass,
    out: &mut Vec<u8>,
) -> Option<()> {
    // `.htaccess` overrides the parameters.
    if let Some(program) = HandlerProgram::of(scope.request) {
        out.extend_from_slice(&program.file);
        return Some(());
    }
    for param in pass.plan.scripts() {
        param.write(scope, out);
        if !param.if_not_empty || !out.is_empty() {
            return Some(());
        }
    }
    None
}

/// Appends the file that `$fastcgi_script_name` maps to.
fn push_script_file(scope: &VariableScope<'_>, out: &mut Vec<u8>) {
    let mut name = Vec::new();
    scope.write(&Var::FastcgiScriptName, &mut name);
    scope.push_path(scope.location(), &name, out);
}

#[cfg(test)]
mod tests {
    use super::{is_same, push_name};

    #[test]
    fn fields_become_names_in_capitals_with_underscores() {
        let mut out = Vec::new();
        push_name(&mut out, b"X-Forwarded-for");
        assert_eq!(out, b"HTTP_X_FORWARDED_FOR");
        assert!(is_same(b"X_A", b"x-A") && is_same(b"X_A", b"X_a") && !is_same(b"X_A", b"X-AB"));
    }
}
