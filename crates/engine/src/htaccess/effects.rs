//! The effects of `.htaccess` files on indexes, listings, errors, applications and response fields.

use std::borrow::Cow;
use std::rc::Rc;

use bolide_conf::model::Protocol;
use bolide_files::DirEntry;
use bolide_htaccess::{
    Applied, CodingsForbidden, DirOptions, Effort, ErrorAnswer, EtagParts, Evaluation, ExpiresFrom,
    FileNature, HeaderTimes, OutputFilter, PhpSetting,
};
use bolide_http::negotiate::{Coding, Codings};
use bolide_http::params::PHP_SETTING;
use bolide_http::{FieldMap, Name, Params};

use super::reason::push_reason;
use super::ruling::{
    FirstError, HtaccessPlaces, HtaccessRuling, method_name, received, round_of_error,
};
use super::target::HtaccessTarget;
use super::tls;
use super::world::RequestWorld;
use crate::request::{Request, RequestNote};
use crate::site::{CompiledLocation, UpstreamPass};
use crate::vars::VariableScope;

/// The ruling for a response of `location`, and the directives that apply.
fn ruling<'a>(
    request: &'a Request,
    location: &CompiledLocation,
) -> Option<(&'a HtaccessRuling, &'a HtaccessPlaces)> {
    let ruling = request.htaccess.as_deref().filter(|_| location.htaccess.is_some())?;
    Some((ruling, ruling.places.as_deref()?))
}

/// The directives that apply to a response of `location`.
fn applied<'a>(request: &'a Request, location: &CompiledLocation) -> Option<Applied<'a>> {
    Some(ruling(request, location)?.1.applied())
}

/// `DirectoryIndex`, if a directive sets it.
pub(crate) fn index_names(
    request: &Request,
    location: &CompiledLocation,
) -> Option<Vec<Box<[u8]>>> {
    applied(request, location)?.index().map(<[_]>::to_vec)
}

/// The path that answers for a directory without an index.
pub(crate) fn index_fallback(request: &Request, location: &CompiledLocation) -> Option<Vec<u8>> {
    let fallback = applied(request, location)?.fallback()?;
    (*fallback != *request.uri).then(|| fallback.to_vec())
}

/// Whether directives concern the coding of the response.
pub(crate) fn has_codings(request: &Request) -> bool {
    request.htaccess.as_ref().is_some_and(|ruling| ruling.has_codings)
}

/// The codings of a response of type `media`, of which the location permits `own`.
pub(crate) fn codings(
    request: &Request,
    location: &CompiledLocation,
    media: &[u8],
    status: u16,
    own: Codings,
) -> Codings {
    // As in Apache, directives do not compress built-in pages.
    if status >= 400 && !request.in_error_page {
        return own;
    }
    let Some((ruling, places)) = ruling(request, location).filter(|_| has_codings(request)) else {
        return own;
    };
    let applied = places.applied();
    let nature = match location.pass {
        Some(_) => FileNature::default(),
        None => applied.nature(&places.name),
    };
    if nature.encoding.is_some() {
        return Codings::NONE;
    }
    let asked = ruling.media_type.as_deref().filter(|_| location.pass.is_none());
    let media = asked.or(nature.media_type).unwrap_or(media);
    let of = |filter| match filter {
        OutputFilter::Brotli => Coding::Brotli,
        _ => Coding::Gzip,
    };
    let asked = applied
        .output_filters(&ruling.named_filters, media)
        .into_iter()
        .filter(|filter| filter.codes());
    let mut codings = asked.fold(own, |all, filter| all.with(of(filter)));
    let forbidden = CodingsForbidden::of(&ruling.env);
    for filter in [OutputFilter::Deflate, OutputFilter::Brotli] {
        if forbidden.forbids(filter, media) {
            // Apache has no zstd, and no directive that forbids it alone.
            codings = codings.without(of(filter)).without(Coding::Zstd);
            debug_assert!(!codings.contains(of(filter)), "what is forbidden is not made");
        }
    }
    codings
}

/// Whether directories are listed.
pub(crate) fn lists(request: &Request, location: &CompiledLocation) -> bool {
    let own = location.settings.autoindex.on;
    let lists = |applied: &Applied<'_>| applied.options(DirOptions::new(own)).lists();
    applied(request, location).map_or(own, |applied| {
        lists(&applied) && applied.heeded(false).is_none_or(|heeded| lists(&heeded))
    })
}

/// Whether directories have a handler, so that they are not listed.
pub(crate) fn has_handler(request: &Request, location: &CompiledLocation) -> bool {
    let Some((ruling, places)) = ruling(request, location) else { return false };
    ruling.handler.is_some() || places.applied().nature(b"").handler.is_some()
}

/// Whether a directory's path gets its final slash by a redirect.
pub(crate) fn redirects_to_slash(request: &Request, location: &CompiledLocation) -> bool {
    applied(request, location).is_none_or(|applied| applied.redirects_to_slash())
}

/// The entries of a directory that a listing shows.
pub(crate) fn shown<'a>(
    request: &Request,
    location: &CompiledLocation,
    entries: &'a [DirEntry],
) -> Cow<'a, [DirEntry]> {
    if location.htaccess.is_none() {
        return Cow::Borrowed(entries);
    }
    let hidden = applied(request, location).map(|applied| applied.hidden());
    let is_shown = |entry: &&DirEntry| {
        let is_listed = hidden.as_ref().is_none_or(|hidden| !hidden.has(&entry.name));
        is_listed && !entry.name.starts_with(b".ht")
    };
    entries.iter().filter(is_shown).cloned().collect()
}

/// The error document for `status`.
pub(crate) fn error_answer(
    request: &mut Request,
    location: &CompiledLocation,
    status: u16,
    may_recurse: bool,
) -> Option<ErrorAnswer> {
    let found = applied(request, location)?.error_answer(status)?.clone();
    if matches!(found, ErrorAnswer::Inside(_)) && !may_recurse {
        return None;
    }
    if let Some(mut ruling) = request.htaccess.take() {
        let first = FirstError {
            status,
            location: request.location,
            uri: request.uri.clone(),
            ruling: Rc::clone(&ruling),
        };
        let own = Rc::make_mut(&mut ruling);
        own.next_env = round_of_error(own, request, status);
        (own.is_index, own.opens_round) = (false, false);
        own.stands_for = Some(Rc::new(first));
        own.before = own.places.clone();
        request.htaccess = Some(ruling);
    }
    Some(found)
}

/// The first error of a request whose error document failed; restores the request's state at that
/// time.
pub(crate) fn first_error(request: &mut Request) -> Option<u16> {
    let first = request.htaccess.as_ref()?.stands_for.clone()?;
    request.location = first.location;
    request.uri.clone_from(&first.uri);
    request.htaccess = Some(Rc::clone(&first.ruling));
    Some(first.status)
}

/// Passes environment variables and PHP settings to an application. Parameters of the configuration
/// that are sent, fields that `has_field` knows, and settings that the pool fixes are not replaced.
pub(crate) fn push_params(
    scope: &VariableScope<'_>,
    pass: &UpstreamPass,
    has_field: impl Fn(&[u8]) -> bool,
    out: &mut Params,
) {
    let Some((ruling, places)) = ruling(scope.request, scope.location()) else { return };
    for (name, value) in ruling.env.exported() {
        let shape = |byte: &u8| match byte {
            b'_' => b'_',
            byte if byte.is_ascii_alphanumeric() => *byte,
            _ => b'_',
        };
        let name: Vec<u8> = name.iter().map(shape).collect();
        match &name[..] {
            // The body decides the length.
            b"" | b"CONTENT_LENGTH" => {}
            own if own.starts_with(b"PHP_VALUE") || own.starts_with(b"PHP_ADMIN_VALUE") => {}
            // PHP takes away PATH_INFO where it has both.
            b"REDIRECT_URL" if out.get(b"PATH_INFO").is_some_and(|info| !info.is_empty()) => {}
            // The usual parameter always says 200.
            b"REDIRECT_STATUS" if out.get(&name).is_some() => out.replace(&name, value),
            name if out.get(name).is_some() || has_field(name) => {}
            name => out.push(name, value),
        }
    }
    let applied = places.applied();
    if applied.exports_tls() {
        tls::each_exported(scope.conn, scope.now, |name, value| {
            if out.get(name).is_none() {
                out.push(name, value);
            }
        });
    }
    let is_open = |setting: &&PhpSetting| {
        !pass.fixed_ini.iter().any(|fixed| *fixed.as_bytes() == *setting.name)
    };
    match pass.conf.protocol {
        Protocol::Lsapi => {
            for setting in applied.php().filter(is_open) {
                let mut name = PHP_SETTING.to_vec();
                name.extend_from_slice(&setting.name);
                out.push(&name, &setting.value);
            }
        }
        Protocol::FastCgi if out.get(b"PHP_VALUE").is_some() => {}
        Protocol::FastCgi => {
            let mut php = Vec::new();
            applied.php().filter(is_open).for_each(|setting| setting.push_ini_line(&mut php));
            if !php.is_empty() {
                out.push(b"PHP_VALUE", &php);
            }
        }
        Protocol::Http
        | Protocol::Uwsgi
        | Protocol::Scgi
        | Protocol::Memcached
        | Protocol::Http2 => {}
    }
}

/// Applies `Header` and the other directives about response fields.
pub(crate) fn decorate(
    fields: &mut FieldMap,
    scope: &VariableScope<'_>,
    status: u16,
    last_modified: Option<u64>,
) {
    let location = scope.location();
    let Some((ruling, places)) = ruling(scope.request, location) else {
        // Directives of another path applied before.
        if let Some(own) = scope.request.htaccess.as_deref().filter(|_| location.htaccess.is_some())
        {
            own.cookies.iter().for_each(|cookie| fields.push(Name::SetCookie, cookie));
            own.varies.iter().for_each(|name| vary_by(fields, name));
        }
        return;
    };
    debug_assert!((100..1000).contains(&status), "a status has three digits");
    let is_silent = !places.describes
        && ruling.varies.is_empty()
        && ruling.cookies.is_empty()
        && ruling.media_type.is_none()
        && !ruling.has_codings;
    if is_silent {
        return;
    }
    let applied = places.applied();
    let is_own = scope.answer.is_own_page;
    if location.pass.is_none() && !is_own {
        let nature = applied.nature(&places.name);
        let is_file = scope.request.uri.last() != Some(&b'/');
        let known = location.kinds.of_any_extension(&places.name);
        describe(fields, ruling, nature, is_file.then_some(&known.value), status);
        let languages = applied.languages(&places.name);
        if !languages.is_empty() && is_file && !matches!(status, 204 | 304) {
            fields.set(Name::ContentLanguage, &languages);
        }
        if applied.etag() == EtagParts::None {
            fields.remove(Name::Etag);
        }
    }
    // As in Apache, redirects as well, but no other built-in page.
    if status < 400 && (!is_own || status >= 300) {
        let media_type = fields.get(Name::ContentType).unwrap_or_default();
        if fields.get(Name::Expires).is_none()
            && let Some(rule) = applied.expires(media_type)
        {
            let now = scope.now.unix_seconds() as i64;
            let base = match rule.from {
                ExpiresFrom::Access => Some(now),
                ExpiresFrom::Modification => last_modified.map(|at| at as i64),
            };
            if let Some(base) = base {
                let at = base.saturating_add(rule.seconds);
                let age = at.saturating_sub(now).max(0);
                fields.push(Name::CacheControl, format!("max-age={age}").as_bytes());
                fields.push(Name::Expires, &bolide_http::date::http_date(at.max(0)));
            }
        }
    }
    if ruling.has_codings && !is_own {
        let media_type = fields.get(Name::ContentType).unwrap_or_default();
        let forbidden = CodingsForbidden::of(&ruling.env);
        let varies = applied
            .output_filters(&ruling.named_filters, media_type)
            .into_iter()
            .any(|filter| filter.codes() && !forbidden.forbids(filter, media_type));
        // As in Apache, independent of the configuration.
        if varies {
            vary_by(fields, b"Accept-Encoding");
        }
    }
    for cookie in &ruling.cookies {
        fields.push(Name::SetCookie, cookie);
    }
    edit(fields, scope, status, (ruling, &applied), is_own);
}

/// Sets type, charset and coding of a file. If its last extension has no type, an earlier one may.
fn describe(
    fields: &mut FieldMap,
    ruling: &HtaccessRuling,
    nature: FileNature<'_>,
    known: Option<&[u8]>,
    status: u16,
) {
    // Without content there is no type.
    if matches!(status, 204 | 304) {
        return;
    }
    // As in Apache, a listing has its own type.
    let is_file = known.is_some();
    if nature.is_untyped && ruling.media_type.is_none() && is_file {
        fields.remove(Name::ContentType);
        return;
    }
    let asked = ruling.media_type.as_deref().or(nature.media_type).filter(|_| is_file);
    let current = fields.get(Name::ContentType).unwrap_or_default().to_vec();
    let known = if current.is_empty() { known } else { None };
    let mut value = asked.or(known).map_or_else(|| current.clone(), <[u8]>::to_vec);
    let is_text = matches!(
        &value
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or_default()
            .trim_ascii()
            .to_ascii_lowercase()[..],
        b"text/html" | b"text/plain"
    );
    let charset = nature.charset.filter(|_| !value.is_empty());
    let charset = charset.or_else(|| nature.default_charset.filter(|_| is_text));
    let has_one = value.windows(8).any(|part| part.eq_ignore_ascii_case(b"charset="));
    if let Some(charset) = charset.filter(|_| !has_one) {
        value.extend_from_slice(b"; charset=");
        value.extend_from_slice(charset);
    }
    if value.iter().any(u8::is_ascii_control) {
        return;
    }
    if value != current && !value.is_empty() {
        fields.set(Name::ContentType, &value);
    }
    if let Some(encoding) = nature.encoding
        && fields.get(Name::ContentEncoding).is_none()
    {
        fields.push(Name::ContentEncoding, encoding);
    }
}

/// Applies `Header`, and adds the request fields that the response depends on.
fn edit(
    fields: &mut FieldMap,
    scope: &VariableScope<'_>,
    status: u16,
    (ruling, applied): (&HtaccessRuling, &Applied<'_>),
    is_own: bool,
) {
    let mut varies = ruling.varies.clone();
    if applied.edits_response() {
        let mut env = ruling.env.clone();
        let target = HtaccessTarget::default();
        let mut world = RequestWorld {
            request: scope.request,
            merge: scope.site.server(scope.request.server).merge_slashes,
            conn: scope.conn,
            now: scope.now,
            utc_offset: scope.clock.utc_offset(),
            files: None,
            target: &target,
            method: method_name(scope.request),
            is_inside: scope.request.role.is_inside(),
            user: ruling.user.as_deref(),
            groups: None,
            places: &[],
            prng: None,
            reliance: None,
            links: &mut Vec::new(),
            ahead: None,
            wanted: None,
        };
        let effort = Effort::of_request(scope.request.jit_taken.get());
        let mut by = Evaluation::new(&mut world, &mut env, &mut varies, &effort);
        let received = received(scope.request);
        let elapsed = scope.now.unix_seconds().saturating_mul(1_000_000).saturating_sub(received);
        let times = HeaderTimes { received, duration: elapsed };
        let mut always = FieldMap::default();
        let edited = applied.edit_response(fields, &mut always, (status, is_own), times, &mut by);
        scope.request.jit_taken.set(effort.jit_taken());
        if let Err(stop) = edited {
            // The error page that follows is edited, too.
            if !scope.request.has_logged_edit.replace(true) {
                let mut line = Vec::new();
                push_reason(&stop, &mut line);
                scope.request.notes.borrow_mut().push(RequestNote::Error(line));
            }
            // Omitted edits may have been restrictions, so the request fails; an error is sent as
            // it is.
            scope.request.is_undecided.set(!(500..600).contains(&status));
        }
        for field in always.iter() {
            fields.push_parsed(field.name, field.text, field.value);
        }
    }
    varies.iter().for_each(|name| vary_by(fields, name));
}

/// Adds a name to `Vary`.
fn vary_by(fields: &mut FieldMap, name: &[u8]) {
    let has_it = fields.all(Name::Vary).any(|line| {
        line.split(|byte| *byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(name))
    });
    if !has_it {
        fields.push(Name::Vary, name);
    }
}
