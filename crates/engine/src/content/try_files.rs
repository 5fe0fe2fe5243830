//! `try_files`.
//!
//! Owns the order of the candidates, and the path that the one that exists gives the request.

use std::rc::Rc;

use bolide_conf::model::location::TryFile;
use bolide_conf::model::{Fallback, LogLevel, Mapping};
use bolide_conf::vars::Template;
use bolide_files::{FileKind, OpenFailure, Want};

use crate::answer::Answer;
use crate::content::climbs::climbs;
use crate::content::confine::{self, leaves_root};
use crate::content::file::{FileLookup, alias_rewritten};
use crate::content::proxied::is_as_asked;
use crate::content::search::FileSearch;
use crate::ctx::StepCtx;
use crate::exchange::{NextStep, RequestStep};
use crate::explain::trace::{trace_fallback, trace_try};
use crate::phase::access::found;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

impl FileSearch {
    /// `try_files`, from candidate `index` on.
    pub(crate) fn try_files(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        index: usize,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let Some(try_files) = &location.try_files else {
            return NextStep::Step(RequestStep::Content);
        };
        if index == 0 && leaves_root(request, answer, site, ctx) {
            return NextStep::Fail(404);
        }
        if request.rewritten_here && location.settings.root.mapping != Mapping::Whole {
            return alias_rewritten(request, site, ctx);
        }
        for (index, candidate) in try_files.files.iter().enumerate().skip(index) {
            let mut name = std::mem::take(&mut answer.scratch);
            let is_below = self.candidate(request, answer, candidate, &mut name, site, ctx);
            // The file will most likely be sent; so it is opened at once.
            let want = if candidate.directory { Want::Stat } else { Want::OPEN };
            let look = match is_below {
                true => self.look(request, answer, location, want, site, ctx),
                false => FileLookup::Failed(OpenFailure::NotFound),
            };
            let fits = match look {
                FileLookup::Asked => {
                    answer.scratch = name;
                    return NextStep::Probe(RequestStep::TryFiles(index));
                }
                FileLookup::Directory => candidate.directory,
                FileLookup::File(_) | FileLookup::Other => !candidate.directory,
                // As in nginx, which only looks: whether it can be opened is seen when it is sent.
                FileLookup::Closed(kind, _) => (kind == FileKind::Directory) == candidate.directory,
                FileLookup::Failed(failure) => {
                    if !failure.is_absence() {
                        self.log_failure(request, LogLevel::Crit, "stat()", failure, site, ctx);
                    }
                    false
                }
            };
            trace_try(request, &self.path, &name, candidate.directory, fits, site);
            let is_other = location.htaccess.is_some() && fits && name != request.uri;
            if fits {
                request.is_only_tried = location.pass.is_some()
                    && is_as_asked(&VariableScope::new(request, answer, site, ctx));
                settle_on(request, &name, candidate, location);
            }
            answer.scratch = name;
            if is_other {
                Rc::make_mut(request.htaccess.get_or_insert_default()).enter_found();
                return NextStep::Step(RequestStep::Htaccess);
            }
            if fits {
                return found(location);
            }
        }
        fall_back(request, answer, &try_files.fallback, site, ctx)
    }

    /// Writes the candidate's name and path. Returns whether the path is below the root, or the
    /// configuration itself leads elsewhere.
    fn candidate(
        &mut self,
        request: &Request,
        answer: &Answer,
        candidate: &TryFile,
        name: &mut Vec<u8>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> bool {
        let location = site.location(request.location);
        name.clear();
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let scope = VariableScope::new(request, answer, site, ctx);
        scope.expand(&candidate.path, name);
        cut_prefix(name, &candidate.path, request, location);
        scope.push_root(location, &mut path);
        let mark = path.len();
        path.extend_from_slice(name);
        let added = climbs(&path);
        let is_below =
            added == 0 || added <= climbs(&path[..mark]) + confine::written_climbs(&candidate.path);
        self.path = path;
        is_below
    }
}

/// Under an alias, an evaluated `$uri` begins with the location's prefix; as in nginx, the prefix
/// is cut off every argument of `try_files` that has variables, including the last.
fn cut_prefix(
    text: &mut Vec<u8>,
    template: &Template,
    request: &Request,
    location: &CompiledLocation,
) {
    if let Mapping::Without(len) = location.settings.root.mapping
        && template.as_text().is_none()
        && let Some(prefix) = request.uri.get(..len)
        && text.starts_with(prefix)
    {
        text.drain(..len);
    }
}

fn fall_back(
    request: &mut Request,
    answer: &mut Answer,
    fallback: &Fallback,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    trace_fallback(request, site);
    match fallback {
        Fallback::Status(status) => {
            answer.is_without_location = true;
            NextStep::Fail(*status)
        }
        Fallback::Named(name) => request.enter_named(name, site, ctx),
        Fallback::Uri(template) => {
            let mut target = std::mem::take(&mut answer.scratch);
            target.clear();
            VariableScope::new(request, answer, site, ctx).expand(template, &mut target);
            cut_prefix(&mut target, template, request, site.location(request.location));
            let next = match target.first() {
                Some(b'@') => request.enter_named(&target, site, ctx),
                _ => request.redirect_inside(&target, site, ctx),
            };
            if request.args.is_none() && matches!(next, NextStep::Step(RequestStep::Server)) {
                // As in nginx, an empty query, not none.
                request.set_args(b"");
            }
            answer.scratch = target;
            next
        }
    }
}

/// The candidate exists: sets the path to its name; location and query stay.
fn settle_on(request: &mut Request, name: &[u8], candidate: &TryFile, location: &CompiledLocation) {
    match location.settings.root.mapping {
        Mapping::Whole => request.uri.clear(),
        Mapping::Without(len) => request.uri.truncate(len),
        Mapping::Nothing if candidate.directory => return,
        Mapping::Nothing => {
            request.uri.clear();
            request.appends_uri = true;
        }
    }
    request.uri.extend_from_slice(name);
}
