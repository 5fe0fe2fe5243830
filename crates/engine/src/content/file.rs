//! Files: lookups, directory redirects, and static responses.
//!
//! Each step may be repeated after a file lookup, so it changes the request only when it completes.

use std::rc::Rc;

use bolide_conf::model::{LogLevel, Mapping};
use bolide_files::{FileKind, Known, OpenFailure, OpenFile, ProbePolicy, SymlinkPolicy, Want};
use bolide_http::Method;
use bolide_http::escape::{UriPart, push_uri};

use crate::answer::Answer;
use crate::caching::purge::purge_key;
use crate::content::confine;
use crate::content::confine::leaves_root;
use crate::content::dav::dav_method;
use crate::content::search::FileSearch;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::filter::compress::{self, Sibling};
use crate::htaccess::effects::redirects_to_slash;
use crate::htaccess::searched::is_searched;
use crate::htaccess::unindexed::list_directory;
use crate::log_lines;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::file_names::alias_complaint;
use crate::vars::{VariableScope, push_mapped};

/// The state of a path in the table of open files.
pub(crate) enum FileLookup {
    /// An open file.
    File(Rc<OpenFile>),
    /// A directory.
    Directory,
    /// Another kind, or a file of which only the metadata was requested.
    Other,
    /// It cannot be opened.
    Failed(OpenFailure),
    /// It exists, but cannot be opened.
    Closed(FileKind, OpenFailure),
    /// Unknown; a lookup was requested.
    Asked,
}

/// The system call that nginx names when a file cannot be opened: with `disable_symlinks` it opens
/// a path component by component.
pub(super) fn open_call(location: &CompiledLocation) -> &'static str {
    let follows = location.policy.symlinks == SymlinkPolicy::Follow;
    if follows && location.links_checked_from.is_none() { "open()" } else { "openat()" }
}

impl Exchange {
    /// Which of nginx's content handlers takes the path.
    pub(crate) fn content(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let location = site.location(self.request.location);
        // The candidates of `try_files` were checked one by one.
        let is_open = location.try_files.is_none() && !confine::is_proxied(location);
        if is_open && leaves_root(&self.request, &self.answer, site, ctx) {
            return NextStep::Fail(404);
        }
        if location.purges_key
            && let Some(next) = purge_key(&mut self.answer, &self.request, site, ctx)
        {
            return next;
        }
        if location.pass.is_some() {
            return NextStep::Step(RequestStep::Origin);
        }
        if let Some(builtin) = location.builtin {
            return self.builtin(builtin, site, ctx);
        }
        if location.caching.is_some()
            && let Some(next) =
                self.cache.purge_from_here(&mut self.request, &mut self.answer, site, ctx)
        {
            return next;
        }
        if !matches!(self.request.method, Method::Get | Method::Head | Method::Post) {
            if dav_method(&self.request, location).is_some() {
                return NextStep::Step(RequestStep::Dav);
            }
            return NextStep::Fail(405);
        }
        if self.request.rewritten_here && location.settings.root.mapping != Mapping::Whole {
            return alias_rewritten(&self.request, site, ctx);
        }
        let ends_in_slash = self.request.uri.last() == Some(&b'/');
        if ends_in_slash && location.settings.random_index {
            return NextStep::Step(RequestStep::RandomIndex);
        }
        NextStep::Step(if ends_in_slash { RequestStep::Index(0) } else { RequestStep::File })
    }
}

impl FileSearch {
    /// Serves a path that does not end in a slash.
    pub(crate) fn file(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert!(!request.uri.ends_with(b"/"), "a file's path does not end with a slash");
        let location = site.location(request.location);
        self.map_path(request, answer, site, ctx);
        let original = match self.look(request, answer, location, Want::OPEN, site, ctx) {
            FileLookup::Asked => return NextStep::Probe(RequestStep::File),
            FileLookup::Directory
                if location.htaccess.is_some() && !redirects_to_slash(request, location) =>
            {
                return list_directory(request, location);
            }
            FileLookup::Directory => return answer.directory_redirect(request),
            FileLookup::Other => return self.not_regular(request, site, ctx),
            FileLookup::Failed(OpenFailure::NotFound) if location.coded => {
                Err(OpenFailure::NotFound)
            }
            FileLookup::Failed(failure) | FileLookup::Closed(_, failure) => {
                return self.open_failed(request, failure, site, ctx);
            }
            FileLookup::File(file) => Ok(file),
        };
        if request.method == Method::Post {
            return match original {
                Ok(_) => NextStep::Fail(405),
                Err(failure) => self.open_failed(request, failure, site, ctx),
            };
        }
        let client = compress::wanted_codings(request, location);
        let mut has_sibling = false;
        // A filter needs the plain file, not its precompressed sibling.
        let is_searched = answer.may_be_searched && original.is_ok() && {
            let kind = location.kinds.of_path(&request.uri);
            is_searched(answer, request, (&kind.media, b""), location)
        };
        if location.coded && !is_searched {
            for coding in compress::ORDER {
                let good_for = compress::sibling(location, client, coding);
                if good_for == Sibling::Useless {
                    continue;
                }
                match self.sibling(request, answer, coding, original.as_ref().ok(), site, ctx) {
                    FileLookup::Asked => return NextStep::Probe(RequestStep::File),
                    FileLookup::File(file) if good_for == Sibling::Wanted => {
                        let varies = compress::depends_on_client(location, coding);
                        return answer.send_stored(request, &file, coding, varies, site, ctx);
                    }
                    FileLookup::File(_) => has_sibling = true,
                    FileLookup::Directory
                    | FileLookup::Other
                    | FileLookup::Failed(_)
                    | FileLookup::Closed(..) => {}
                }
            }
        }
        match original {
            Ok(file) => answer.send(request, &file, client, has_sibling, site, ctx),
            Err(failure) => self.open_failed(request, failure, site, ctx),
        }
    }

    /// The state of the file's sibling with the suffix of `coding`.
    fn sibling(
        &mut self,
        request: &Request,
        answer: &Answer,
        coding: bolide_http::negotiate::Coding,
        original: Option<&Rc<OpenFile>>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> FileLookup {
        let location = site.location(request.location);
        if original.is_some_and(|file| file.lacks_sibling(coding)) {
            return FileLookup::Failed(OpenFailure::NotFound);
        }
        let len = self.path.len();
        self.path.extend_from_slice(coding.suffix().as_bytes());
        let look = self.look(request, answer, location, Want::OPEN, site, ctx);
        match (&look, original) {
            (FileLookup::Failed(failure), Some(file)) if failure.is_absence() => {
                file.record_missing_sibling(coding);
            }
            (FileLookup::Failed(failure) | FileLookup::Closed(_, failure), _)
                if !failure.is_absence() =>
            {
                let is_forbidden = failure.status() == 403;
                let level = if is_forbidden { LogLevel::Error } else { LogLevel::Crit };
                self.log_failure(request, level, open_call(location), *failure, site, ctx);
            }
            _ => {}
        }
        self.path.truncate(len);
        look
    }
}

impl Answer {
    /// Redirects the client to the path with a slash appended.
    pub(crate) fn directory_redirect(&mut self, request: &Request) -> NextStep {
        let mut target = std::mem::take(&mut self.scratch);
        target.clear();
        push_uri(&mut target, &request.uri, UriPart::Path);
        target.push(b'/');
        if let Some(args) = &request.args
            && !args.is_empty()
        {
            target.push(b'?');
            target.extend_from_slice(args);
        }
        self.write_redirect(&target);
        self.scratch = target;
        NextStep::Redirect(301)
    }
}

impl FileSearch {
    fn not_regular(&self, request: &Request, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let path = &self.path;
        log_lines::error(request, site, ctx, LogLevel::Crit, |out| {
            out.push(b'"');
            out.extend_from_slice(path);
            out.extend_from_slice(b"\" is not a regular file");
        });
        NextStep::Fail(404)
    }

    /// Whether `self.path`, whose metadata was requested, is a regular file.
    pub(crate) fn is_regular(&self, location: &CompiledLocation, ctx: &mut StepCtx<'_>) -> bool {
        let known = ctx.files.lookup(&self.path, ctx.now, &location.policy);
        matches!(known, Known::Seen(meta) | Known::Closed(meta, _) if meta.kind == FileKind::File)
    }

    pub(crate) fn open_failed(
        &self,
        request: &Request,
        failure: OpenFailure,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let status = failure.status();
        if status != 404 || location.settings.log_not_found {
            let level = if status == 500 { LogLevel::Crit } else { LogLevel::Error };
            self.log_failure(request, level, open_call(location), failure, site, ctx);
        }
        NextStep::Fail(status)
    }

    /// Writes the path of the file that the request maps to.
    #[inline]
    pub(crate) fn map_path(
        &mut self,
        request: &Request,
        answer: &Answer,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let location = site.location(request.location);
        match &location.fixed_root {
            // PERF: hardly any directory has a variable.
            Some(root) => path.extend_from_slice(root),
            None => {
                let scope = VariableScope::new(request, answer, site, ctx);
                scope.push_root(location, &mut path);
            }
        }
        push_mapped(request, location, &request.uri, &mut path);
        self.path = path;
    }

    /// Looks up `self.path` in the table; requests a file lookup if it does not know enough.
    #[inline]
    pub(crate) fn look(
        &self,
        request: &Request,
        answer: &Answer,
        location: &CompiledLocation,
        want: Want,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> FileLookup {
        let special;
        let policy = match &location.links_checked_from {
            None => &location.policy,
            Some(from) => {
                let mut start = Vec::new();
                VariableScope::new(request, answer, site, ctx).expand(from, &mut start);
                let symlinks = location.policy.symlinks.beginning_at(&self.path, &start);
                special = ProbePolicy { symlinks, ..location.policy };
                &special
            }
        };
        match ctx.files.lookup(&self.path, ctx.now, policy) {
            Known::File(file) => return FileLookup::File(file),
            Known::Directory(_) => return FileLookup::Directory,
            Known::Missing(failure) => return FileLookup::Failed(failure),
            Known::Closed(meta, _) if want == Want::Stat => match meta.kind {
                FileKind::Directory => return FileLookup::Directory,
                FileKind::File | FileKind::Other => return FileLookup::Other,
            },
            Known::Closed(meta, failure) => return FileLookup::Closed(meta.kind, failure),
            // A regular file of which only the metadata is known has to be opened.
            Known::Seen(meta) if meta.kind != FileKind::File || want == Want::Stat => {
                return FileLookup::Other;
            }
            Known::Seen(_) | Known::Stale | Known::Unknown => {}
        }
        if self.path.contains(&0) {
            return FileLookup::Failed(OpenFailure::NotFound);
        }
        ctx.effects.push(StepEffect::Probe(Box::new(ctx.files.probe(&self.path, want, policy))));
        FileLookup::Asked
    }

    pub(crate) fn log_failure(
        &self,
        request: &Request,
        level: LogLevel,
        call: &str,
        failure: OpenFailure,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        let path = &self.path;
        log_lines::error(request, site, ctx, level, |out| {
            out.extend_from_slice(call.as_bytes());
            out.extend_from_slice(b" \"");
            out.extend_from_slice(path);
            out.extend_from_slice(b"\" failed ");
            log_lines::push_errno(out, failure.errno());
        });
    }
}

/// As in nginx: the part of a rewritten path that belongs to the location is unknown.
#[cold]
pub(super) fn alias_rewritten(request: &Request, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
    let line = alias_complaint(request, site);
    log_lines::error(request, site, ctx, LogLevel::Alert, |out| out.extend_from_slice(&line));
    NextStep::Fail(500)
}
