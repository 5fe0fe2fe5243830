//! `index`: the names that are tried in a directory, and what is sent if none exists.
//!
//! Each step may be repeated after a file lookup, so it changes the request only when it completes.

use std::rc::Rc;

use bolide_conf::model::LogLevel;
use bolide_files::{OpenFailure, Want};

use crate::answer::Answer;
use crate::content::file::{FileLookup, open_call};
use crate::content::search::FileSearch;
use crate::ctx::StepCtx;
use crate::exchange::{NextStep, RequestStep};
use crate::htaccess::effects::{index_fallback, index_names};
use crate::log_lines;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

impl FileSearch {
    /// `index`, from name `index` on.
    pub(crate) fn index(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        index: usize,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert!(request.uri.ends_with(b"/"), "an index is looked for in a directory");
        let location = site.location(request.location);
        let mut target = std::mem::take(&mut answer.scratch);
        target.clear();
        target.extend_from_slice(&request.uri);
        let mark = target.len();
        let names = match location.htaccess {
            Some(_) => index_names(request, location),
            None => None,
        };
        // As in Apache, a fallback answers for the first missing name.
        let is_over =
            index > 0 && location.htaccess.is_some() && index_fallback(request, location).is_some();
        let has_name = match (&names, location.settings.index.get(index)) {
            _ if is_over => false,
            (Some(names), _) => {
                names.get(index).map(|name| target.extend_from_slice(name)).is_some()
            }
            (None, Some(template)) => {
                VariableScope::new(request, answer, site, ctx).expand(template, &mut target);
                true
            }
            (None, None) => false,
        };
        if !has_name {
            answer.scratch = target;
            return no_index(request, location, site, ctx);
        }
        let is_elsewhere = target.get(mark) == Some(&b'/');
        let next = if is_elsewhere && names.is_some() {
            self.index_elsewhere(request, answer, (index, &target[mark..]), site, ctx)
        } else if is_elsewhere {
            request.go_to_index(&target[mark..], site, ctx)
        } else {
            self.map_path(request, answer, site, ctx);
            self.path.extend_from_slice(&target[mark..]);
            match self.look(request, answer, location, Want::OPEN, site, ctx) {
                FileLookup::Asked => NextStep::Probe(RequestStep::Index(index)),
                FileLookup::File(_)
                | FileLookup::Directory
                | FileLookup::Other
                | FileLookup::Closed(..) => request.go_to_index(&target, site, ctx),
                FileLookup::Failed(failure) => {
                    self.index_failed(request, index, failure, site, ctx)
                }
            }
        };
        answer.scratch = target;
        next
    }

    /// An index that a `.htaccess` file gives as an absolute path: the directory has to exist.
    fn index_elsewhere(
        &mut self,
        request: &mut Request,
        answer: &Answer,
        (index, path): (usize, &[u8]),
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert_eq!(path.first(), Some(&b'/'), "an index elsewhere has its whole path");
        self.map_path(request, answer, site, ctx);
        self.end_without_slash();
        let location = site.location(request.location);
        match self.look(request, answer, location, Want::Stat, site, ctx) {
            FileLookup::Asked => NextStep::Probe(RequestStep::Index(index)),
            FileLookup::Directory => request.go_to_index(path, site, ctx),
            FileLookup::Failed(failure) | FileLookup::Closed(_, failure)
                if !failure.is_absence() =>
            {
                self.log_failure(request, LogLevel::Crit, "stat()", failure, site, ctx);
                NextStep::Fail(failure.status())
            }
            FileLookup::File(_)
            | FileLookup::Other
            | FileLookup::Failed(_)
            | FileLookup::Closed(..) => NextStep::Fail(404),
        }
    }
}

/// Continues for a directory without an index.
fn no_index(
    request: &mut Request,
    location: &CompiledLocation,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    if location.htaccess.is_some()
        && let Some(path) = index_fallback(request, location)
    {
        return request.go_to_index(&path, site, ctx);
    }
    NextStep::Step(match location.htaccess {
        Some(_) => RequestStep::NoIndex,
        None => RequestStep::Listing,
    })
}

impl Request {
    /// Internal redirect to the path of the index; the query stays.
    pub(super) fn go_to_index(
        &mut self,
        target: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let args = self.args.take();
        if let Some(ruling) = &mut self.htaccess {
            Rc::make_mut(ruling).enter_index();
        }
        let next = self.redirect_inside(target, site, ctx);
        if matches!(next, NextStep::Step(_)) {
            // A `?` in a name is part of the name.
            self.uri.clear();
            self.uri.extend_from_slice(target);
            self.mark_dots();
        }
        self.args = args;
        next
    }
}

impl FileSearch {
    fn index_failed(
        &self,
        request: &Request,
        index: usize,
        failure: OpenFailure,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        match failure {
            OpenFailure::Loop => NextStep::Fail(403),
            OpenFailure::PermissionDenied
            | OpenFailure::NotADirectory
            | OpenFailure::NameTooLong => {
                self.log_index(request, failure, site, ctx);
                NextStep::Fail(if failure == OpenFailure::PermissionDenied { 403 } else { 404 })
            }
            OpenFailure::NotFound if index == 0 => {
                NextStep::Step(RequestStep::IndexDirectory(index))
            }
            OpenFailure::NotFound => NextStep::Step(RequestStep::Index(index + 1)),
            OpenFailure::Other(_) => {
                let call = open_call(site.location(request.location));
                self.log_failure(request, LogLevel::Crit, call, failure, site, ctx);
                NextStep::Fail(500)
            }
        }
    }

    /// Distinguishes a missing directory from a missing index, once.
    pub(crate) fn index_directory(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        index: usize,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        self.map_path(request, answer, site, ctx);
        self.end_without_slash();
        match self.look(request, answer, location, Want::Stat, site, ctx) {
            FileLookup::Asked => NextStep::Probe(RequestStep::IndexDirectory(index)),
            FileLookup::Directory | FileLookup::Failed(OpenFailure::PermissionDenied) => {
                NextStep::Step(RequestStep::Index(index + 1))
            }
            FileLookup::Failed(OpenFailure::NotFound) => {
                self.name_index(request, answer, index, site, ctx);
                self.log_index(request, OpenFailure::NotFound, site, ctx);
                NextStep::Fail(404)
            }
            FileLookup::Failed(failure) | FileLookup::Closed(_, failure) => {
                self.log_failure(request, LogLevel::Crit, "stat()", failure, site, ctx);
                NextStep::Fail(500)
            }
            FileLookup::File(_) | FileLookup::Other => {
                self.name_index(request, answer, index, site, ctx);
                let path = &self.path;
                log_lines::error(request, site, ctx, LogLevel::Alert, |out| {
                    out.push(b'"');
                    out.extend_from_slice(path);
                    out.extend_from_slice(b"\" is not a directory");
                });
                NextStep::Fail(500)
            }
        }
    }

    /// Sets the path to that of an index: nginx's messages name the one that it tried.
    fn name_index(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        index: usize,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        self.map_path(request, answer, site, ctx);
        if let Some(template) = site.location(request.location).settings.index.get(index) {
            let mut name = std::mem::take(&mut answer.scratch);
            name.clear();
            VariableScope::new(request, answer, site, ctx).expand(template, &mut name);
            self.path.extend_from_slice(&name);
            answer.scratch = name;
        }
    }

    fn log_index(
        &self,
        request: &Request,
        failure: OpenFailure,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        let words: &[u8] = match failure {
            OpenFailure::PermissionDenied => b"\" is forbidden ",
            _ if !site.location(request.location).settings.log_not_found => return,
            _ => b"\" is not found ",
        };
        let path = &self.path;
        request.log_error(site, ctx, |out| {
            out.push(b'"');
            out.extend_from_slice(path);
            out.extend_from_slice(words);
            log_lines::push_errno(out, failure.errno());
        });
    }
}
