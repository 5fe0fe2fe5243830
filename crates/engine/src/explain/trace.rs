//! The steps of a request through the configuration, recorded in a trial run.
//!
//! Every hook does nothing for requests of clients: they have no trace.

use std::borrow::Cow;

use bolide_conf::SourcePlace;
use bolide_conf::model::{
    DirectiveFamily, Http, LocationConf, LocationId as ModelId, Matcher, RewriteOp, SetTarget,
    WrittenLocation,
};

use super::notes::{Trace, TraceStep};
use crate::caching::Caching;
use crate::exchange::NextStep;
use crate::phase::rewrite::{Op, RewriteOutcome};
use crate::request::Request;
use crate::route::{LocationIndex, LocationMatch};
use crate::site::Site;
use crate::site::location_label;

pub(super) fn show(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A location as it is written in the configuration.
pub(super) fn name_of(location: &LocationConf) -> String {
    match &location.matcher {
        Matcher::Root => "the server block itself".to_owned(),
        Matcher::If => "if".to_owned(),
        Matcher::Exact(_) | Matcher::Prefix { .. } | Matcher::Regex(_) | Matcher::Named(_) => {
            format!("location {}", location_label(location))
        }
    }
}

const fn why_this(matcher: &Matcher, found: LocationMatch) -> &'static str {
    match matcher {
        _ if matches!(found, LocationMatch::LacksSlash(_)) => {
            "the path is this one without its slash"
        }
        Matcher::Root => "no location matches",
        Matcher::If => "its condition is true",
        Matcher::Exact(_) => "the path is exactly this",
        Matcher::Prefix { no_regex: true, .. } => {
            "the longest prefix of the path; ^~ keeps regular expressions out"
        }
        Matcher::Prefix { .. } => {
            "the longest prefix of the path, and no regular expression matches"
        }
        Matcher::Regex(_) => "the first regular expression that matches",
        Matcher::Named(_) => "named by another directive",
    }
}

fn model(site: &Site, id: LocationIndex) -> Option<&LocationConf> {
    site.http()?.locations.get(id as usize)
}

/// The blocks that contain a location, itself first, its server block last.
pub(super) fn chain(http: &Http, root: ModelId, id: ModelId) -> Vec<&LocationConf> {
    let mut way = Vec::new();
    descend(http, root, id, &mut way);
    way
}

fn descend<'a>(http: &'a Http, at: ModelId, id: ModelId, way: &mut Vec<&'a LocationConf>) -> bool {
    let here = http.location(at);
    let inner = here.rewrite.iter().filter_map(|op| match op {
        RewriteOp::If { location, .. } => *location,
        _ => None,
    });
    // A nested `if` is listed in the outer one's program as well; no block contains itself.
    let below = here.nested.iter().copied().chain(inner).filter(|inner| *inner > at);
    let is_here = at == id || below.into_iter().any(|inner| descend(http, inner, id, way));
    if is_here {
        way.push(here);
    }
    is_here
}

/// The innermost of the directives `names` that applies in the location: its name and place.
pub(super) fn written<'a>(
    site: &'a Site,
    server: u32,
    id: LocationIndex,
    names: &[&str],
) -> Option<&'a WrittenLocation> {
    let http = site.http()?;
    let root = http.servers.get(server as usize)?.root;
    let way = chain(http, root, ModelId(id));
    let blocks = way.into_iter().map(|location| &location.written).chain([&http.written]);
    let known = |one: &&WrittenLocation| names.contains(&one.name);
    blocks.into_iter().find_map(|block| block.iter().rev().find(known))
}

/// The prefix of nginx's cache directives for the upstream of a location.
pub(super) fn family(site: &Site, id: LocationIndex) -> &'static str {
    match &site.location(id).pass {
        Some(pass) if pass.conf.protocol.has_caches() => pass.conf.protocol.family().prefix(),
        Some(_) | None => DirectiveFamily::Application.prefix(),
    }
}

impl Request {
    /// Whether this is a trial run, which must change no shared state.
    #[inline]
    pub(crate) const fn is_dry(&self) -> bool {
        self.trace.is_some()
    }

    fn record_step(&mut self, place: Option<SourcePlace>, text: impl FnOnce(&Self) -> String) {
        if self.trace.is_none() {
            return;
        }
        let text = text(self);
        if let Some(trace) = &mut self.trace {
            trace.steps.push(TraceStep { text, place });
        }
    }
}

/// Records a step before the configuration of the server applies.
pub(crate) fn trace_text(request: &mut Request, text: impl FnOnce() -> String) {
    request.record_step(None, |_| text());
}

#[inline]
pub(crate) fn trace_location(request: &mut Request, found: LocationMatch, site: &Site) {
    if request.is_dry()
        && let Some(location) = model(site, request.location)
    {
        let why = why_this(&location.matcher, found);
        let text = |request: &Request| {
            let path = show(&request.uri).into_owned();
            format!("\"{path}\" goes to {}: {why}", name_of(location))
        };
        request.record_step(Some(location.place.clone()), text);
    }
}

#[inline]
pub(crate) fn trace_named(request: &mut Request, site: &Site) {
    if request.is_dry()
        && let Some(location) = model(site, request.location)
    {
        let text = |_: &Request| format!("goes to {}", name_of(location));
        request.record_step(Some(location.place.clone()), text);
    }
}

#[inline]
pub(crate) fn trace_before(request: &mut Request) {
    if let Some(trace) = &mut request.trace {
        trace.before = (request.uri.clone(), request.args.clone().unwrap_or_default());
    }
}

/// Records an instruction of the rewrite phase; `redirect` is the target that it may have set.
#[inline]
pub(crate) fn trace_op(
    request: &mut Request,
    redirect: &[u8],
    (program, at): (LocationIndex, usize),
    op: &Op,
    outcome: &RewriteOutcome,
    site: &Site,
) {
    if request.is_dry() && !matches!(outcome, RewriteOutcome::Wait) {
        let place = model(site, program).and_then(|block| block.rewrite_places.get(at)).cloned();
        request.record_step(place, |request| op_text(request, redirect, op, outcome, site));
    }
}

fn op_text(
    request: &Request,
    redirect: &[u8],
    op: &Op,
    outcome: &RewriteOutcome,
    site: &Site,
) -> String {
    let (uri, args) = (&request.uri, request.args());
    let now = match args {
        b"" => show(uri).into_owned(),
        args => format!("{}?{}", show(uri), show(args)),
    };
    let same = |trace: &Trace| trace.before.0 == *uri && trace.before.1 == args;
    let is_same = request.trace.as_deref().is_some_and(same);
    match (op, outcome) {
        (Op::Rewrite(rule), RewriteOutcome::Leave(NextStep::Redirect(status))) => {
            let to = show(redirect);
            format!("rewrite {} matches: {status} to {to}", show(rule.pattern.source()))
        }
        (Op::Rewrite(rule), RewriteOutcome::Go(_)) if is_same => {
            format!("rewrite {} changes nothing", show(rule.pattern.source()))
        }
        (Op::Rewrite(rule), _) => {
            format!("rewrite {} makes it \"{now}\"", show(rule.pattern.source()))
        }
        (Op::Return(returned), _) => format!("return {}", returned.status),
        (Op::Set { target: SetTarget::Args, .. }, _) => format!("set makes it \"{now}\""),
        (Op::Set { target: SetTarget::LimitRate, .. }, _) => "set $limit_rate".to_owned(),
        (Op::Set { target: SetTarget::Named(slot), .. }, _) => {
            let name = site.http().and_then(|http| http.named.get(usize::from(*slot)));
            let captures = request.captures.borrow();
            let value = captures.named(*slot).unwrap_or_default();
            format!("set ${} to \"{}\"", name.map_or("", |name| name), show(value))
        }
        (Op::If { inner, .. }, RewriteOutcome::Go(further)) if *inner > 0 && *further > 1 => {
            "if: it is false".to_owned()
        }
        (Op::If { inner: 0, location, .. }, _) if *location != Some(request.location) => {
            "if: it is false".to_owned()
        }
        (Op::If { .. }, _) => "if: it is true".to_owned(),
        (Op::Break, _) => "break".to_owned(),
    }
}

#[inline]
pub(crate) fn trace_try(
    request: &mut Request,
    path: &[u8],
    name: &[u8],
    directory: bool,
    fits: bool,
    site: &Site,
) {
    if request.is_dry() {
        let is = match (directory, fits) {
            (false, true) => "is there",
            (false, false) => "is not there",
            (true, true) => "is a directory",
            (true, false) => "is no directory",
        };
        let place = place_of(request, "try_files", site);
        request
            .record_step(place, |_| format!("try_files: \"{}\" {is} ({})", show(name), show(path)));
    }
}

#[inline]
pub(crate) fn trace_fallback(request: &mut Request, site: &Site) {
    if request.is_dry() {
        let place = place_of(request, "try_files", site);
        request.record_step(place, |_| "try_files: its last word holds".to_owned());
    }
}

#[inline]
pub(crate) fn trace_jump(request: &mut Request, target: &[u8]) {
    request.record_step(None, |_| format!("starts over with \"{}\"", show(target)));
}

#[inline]
pub(crate) fn trace_failure(request: &mut Request, status: u16, site: &Site) {
    if request.is_dry() {
        let place = model(site, request.location).map(|location| location.place.clone());
        request.record_step(place, |_| format!("is to be answered with {status}"));
    }
}

/// Counts a use of a key for `…_min_uses`; returns whether it was used often enough to be stored.
pub(crate) fn count_use(request: &Request, key: u128, caching: &Caching) -> bool {
    if request.is_dry() { caching.would_keep(key) } else { caching.count_use(key) }
}

fn place_of(request: &Request, name: &str, site: &Site) -> Option<SourcePlace> {
    model(site, request.location)?.place_of(name).cloned()
}
