//! A directory without an index: as in Apache, rules are applied to each possible index name,
//! although there is no such file, before the directory is listed.

use std::rc::Rc;

use bolide_htaccess::Effort;

use super::decide::{AdmittedTarget, Decided, HtaccessRequest};
use super::effects::{has_handler, index_names};
use super::follow::RuleScope;
use super::ruling::HtaccessRuling;
use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::ctx::StepCtx;
use crate::exchange::{NextStep, RequestStep};
use crate::phase::checks::AccessChecks;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

/// LIMIT: index names that are evaluated; all evaluations share one limit of work.
pub(super) const NAMES_MAX: usize = 32;

/// The step that lists a directory: as in Apache, a handler for directories answers 404.
pub(crate) fn list_directory(request: &Request, location: &CompiledLocation) -> NextStep {
    match has_handler(request, location) {
        true => NextStep::Fail(404),
        false => NextStep::Step(RequestStep::Listing),
    }
}

/// The step for a directory without an index: the result of the last name that a rule applies to,
/// or a listing.
#[cold]
pub(crate) fn judge_missing_index(
    request: &mut Request,
    answer: &mut Answer,
    search: &mut FileSearch,
    access: &mut AccessChecks,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    debug_assert!(request.uri.ends_with(b"/"), "an index is one of a directory");
    let location = site.location(request.location);
    if request.htaccess.as_ref().is_none_or(|ruling| ruling.places.is_none()) {
        return NextStep::Step(RequestStep::Listing);
    }
    let names = candidates(request, answer, location, site, ctx);
    if names.len() > NAMES_MAX {
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"too many names of an index to ask about each");
        });
        return NextStep::Fail(500);
    }
    let (mut refusal, effort) = (None, Effort::of_request(request.jit_taken.get()));
    for uri in names {
        let mut asking = HtaccessRequest::new(request, answer, search, access, &effort);
        let judged = asking.judge_name(uri, site, ctx);
        asking.request.jit_taken.set(effort.jit_taken());
        match judged {
            Ok(()) => {}
            Err(NextStep::Probe(_)) => return NextStep::Probe(RequestStep::NoIndex),
            Err(NextStep::CheckPassword(_)) => {
                return NextStep::CheckPassword(RequestStep::NoIndex);
            }
            // A redirect is sent at once; a name that exceeded the limit ends the search.
            Err(next @ (NextStep::Redirect(_) | NextStep::Fail(500))) => return next,
            Err(next) => refusal = Some(next),
        }
    }
    refusal.unwrap_or_else(|| list_directory(request, location))
}

/// The possible paths of a directory's index.
fn candidates(
    request: &Request,
    answer: &Answer,
    location: &CompiledLocation,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Vec<Vec<u8>> {
    let path = |name: &[u8]| match name.first() {
        Some(b'/') => name.to_vec(),
        _ => [&request.uri[..], name].concat(),
    };
    if let Some(names) = index_names(request, location) {
        return names.iter().map(|name| path(name)).collect();
    }
    let scope = VariableScope::new(request, answer, site, ctx);
    let expanded = location.settings.index.iter().map(|template| {
        let mut name = Vec::new();
        scope.expand(template, &mut name);
        path(&name)
    });
    expanded.collect()
}

impl HtaccessRequest<'_> {
    /// Evaluates a path that does not exist.
    fn judge_name(&mut self, uri: Vec<u8>, site: &Site, ctx: &mut StepCtx<'_>) -> Decided<()> {
        let Some(held) = self.request.htaccess.clone() else { return Ok(()) };
        let mut ruling = held.of_missing_index();
        let directory = std::mem::replace(&mut self.request.uri, uri);
        let judged = self.judge_looked_for(&mut ruling, site, ctx);
        self.request.uri = directory;
        let has_keys = !ruling.varies.is_empty() || !ruling.cookies.is_empty();
        if let Some(held) = self.request.htaccess.as_mut().filter(|_| has_keys) {
            let held = Rc::make_mut(held);
            ruling.varies.retain(|name| !held.varies.contains(name));
            held.varies.append(&mut ruling.varies);
            held.add_cookies(ruling.cookies.drain(..), self.effort);
        }
        judged
    }

    fn judge_looked_for(
        &mut self,
        ruling: &mut HtaccessRuling,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let target = self.find_places(ruling, site, ctx)?;
        let Some(held) = ruling.places.clone() else { return Ok(()) };
        self.decide_access(ruling, &target, site, ctx)?;
        let held = ruling.places.clone().unwrap_or(held);
        let applied = held.applied();
        match self.send_on(ruling, &target, &applied, RuleScope::Answers, site, ctx)? {
            Some(AdmittedTarget::Elsewhere(next)) => Err(next),
            Some(AdmittedTarget::Content | AdmittedTarget::Inside(_)) | None => Ok(()),
        }
    }
}
