//! Files: `try_files`, `index`, directory redirects, and the static answer itself.
//!
//! Every step may be made again after a look at the disk, so a step changes the request only when
//! it is done.

use std::rc::Rc;

use conf::model::location::TryFile;
use conf::model::{Fallback, Level, Mapping};
use files::{Failure, Kind, Known, OpenFile, Policy, Want};
use http::Method;
use http::escape::{UriPart, push_uri};

use crate::content::confine;
use crate::ctx::{Ctx, Effect};
use crate::exchange::{Exchange, Next, Step};
use crate::filter::compress::{self, Sibling};
use crate::filter::headers::push_absolute;
use crate::record;
use crate::site::{Location, Site};
use crate::vars::Scope;

/// What is known of a path.
pub(crate) enum Look {
    /// An open file.
    File(Rc<OpenFile>),
    /// A directory.
    Directory,
    /// Something else, or a file that was only asked about.
    Other,
    /// Nothing that may be used.
    Failed(Failure),
    /// Nothing yet; a look was asked for.
    Asked,
}

impl Exchange {
    /// `try_files`, from candidate `index` on.
    pub(crate) fn try_files(&mut self, index: usize, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let location = site.location(self.request.location);
        let Some(try_files) = &location.try_files else { return Next::Step(Step::Content) };
        if index == 0 && self.leaves_root(location, site, ctx) {
            return Next::Fail(404);
        }
        if self.request.rewritten_here && location.settings.root.mapping != Mapping::Whole {
            return self.alias_rewritten(site, ctx);
        }
        for (index, candidate) in try_files.files.iter().enumerate().skip(index) {
            let mut name = std::mem::take(&mut self.scratch);
            let is_below = self.candidate(candidate, location, &mut name, site, ctx);
            // What is found will be sent, most likely; so it is opened at once.
            let want = if candidate.directory { Want::Stat } else { Want::OPEN };
            let look = match is_below {
                true => self.look(location, want, site, ctx),
                false => Look::Failed(Failure::NotFound),
            };
            let fits = match look {
                Look::Asked => {
                    self.scratch = name;
                    return Next::Probe(Step::TryFiles(index));
                }
                Look::Directory => candidate.directory,
                Look::File(_) | Look::Other => !candidate.directory,
                Look::Failed(failure) => {
                    if !is_absence(failure) {
                        self.log_failure(Level::Crit, "stat()", failure, site, ctx);
                    }
                    false
                }
            };
            self.trace_try(&name, candidate.directory, fits, site);
            if fits {
                self.settle_on(&name, candidate, location);
            }
            self.scratch = name;
            if fits {
                return Next::Step(Step::Content);
            }
        }
        self.fall_back(&try_files.fallback, site, ctx)
    }

    /// Writes the candidate's name and the path it stands for; whether that is below the root, or
    /// the configuration itself leads elsewhere.
    fn candidate(
        &mut self,
        candidate: &TryFile,
        location: &Location,
        name: &mut Vec<u8>,
        site: &Site,
        ctx: &Ctx<'_>,
    ) -> bool {
        name.clear();
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let scope = Scope::new(&self.request, &self.answer, site, ctx);
        scope.expand(&candidate.path, name);
        // Under an alias an evaluated `$uri` still begins with the location's own prefix.
        if let Mapping::Without(len) = location.settings.root.mapping
            && candidate.path.as_text().is_none()
            && let Some(prefix) = self.request.uri.get(..len)
            && name.starts_with(prefix)
        {
            name.drain(..len);
        }
        scope.push_root(location, &mut path);
        let mark = path.len();
        path.extend_from_slice(name);
        let added = confine::climbs(&path);
        let is_below = added == 0
            || added <= confine::climbs(&path[..mark]) + confine::written_climbs(&candidate.path);
        self.path = path;
        is_below
    }

    /// A candidate is there: the path becomes its name, location and query stay.
    fn settle_on(&mut self, name: &[u8], candidate: &TryFile, location: &Location) {
        match location.settings.root.mapping {
            Mapping::Whole => self.request.uri.clear(),
            Mapping::Without(len) => self.request.uri.truncate(len),
            Mapping::Nothing if candidate.directory => return,
            Mapping::Nothing => {
                self.request.uri.clear();
                self.request.appends_uri = true;
            }
        }
        self.request.uri.extend_from_slice(name);
    }

    fn fall_back(&mut self, fallback: &Fallback, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        self.trace_fallback(site);
        match fallback {
            Fallback::Status(status) => Next::Fail(*status),
            Fallback::Named(name) => self.enter_named(name, site, ctx),
            Fallback::Uri(template) => {
                let mut target = std::mem::take(&mut self.scratch);
                target.clear();
                Scope::new(&self.request, &self.answer, site, ctx).expand(template, &mut target);
                let next = match target.first() {
                    Some(b'@') => self.enter_named(&target, site, ctx),
                    _ => self.redirect_inside(&target, site, ctx),
                };
                if self.request.args.is_none() && matches!(next, Next::Step(Step::Server)) {
                    // As in nginx, an empty query, not none.
                    self.request.set_args(b"");
                }
                self.scratch = target;
                next
            }
        }
    }

    /// Which of nginx's content handlers takes the path.
    pub(crate) fn content(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let location = site.location(self.request.location);
        // The files of `try_files` have been judged one by one.
        let is_open = location.try_files.is_none() && !confine::is_proxied(location);
        if is_open && self.leaves_root(location, site, ctx) {
            return Next::Fail(404);
        }
        if location.purges_key
            && let Some(next) = self.purge_key(site, ctx)
        {
            return next;
        }
        if location.pass.is_some() {
            return Next::Step(Step::Origin);
        }
        if let Some(builtin) = location.builtin {
            return self.builtin(builtin, site, ctx);
        }
        if location.caching.is_some()
            && let Some(next) = self.purge_from_here(site, ctx)
        {
            return next;
        }
        if !matches!(self.request.method, Method::Get | Method::Head | Method::Post) {
            return Next::Fail(405);
        }
        if self.request.rewritten_here && location.settings.root.mapping != Mapping::Whole {
            return self.alias_rewritten(site, ctx);
        }
        let is_directory = self.request.uri.last() == Some(&b'/');
        Next::Step(if is_directory { Step::Index(0) } else { Step::File })
    }

    /// As in nginx: what of a rewritten path belongs to the location cannot be told.
    #[cold]
    fn alias_rewritten(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let http = site.http();
        let location = http.and_then(|http| http.locations.get(self.request.location as usize));
        record::error(&self.request, site, ctx, Level::Alert, |out| {
            out.extend_from_slice(b"\"alias\" cannot be used in location \"");
            out.extend_from_slice(location.map_or(&b""[..], |location| &location.name));
            out.extend_from_slice(b"\" where URI was rewritten");
        });
        Next::Fail(500)
    }

    /// `index`, from name `index` on.
    pub(crate) fn index(&mut self, index: usize, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let location = site.location(self.request.location);
        let Some(template) = location.settings.index.get(index) else {
            return Next::Step(Step::Listing);
        };
        let mut target = std::mem::take(&mut self.scratch);
        target.clear();
        target.extend_from_slice(&self.request.uri);
        let mark = target.len();
        Scope::new(&self.request, &self.answer, site, ctx).expand(template, &mut target);
        let next = if target.get(mark) == Some(&b'/') {
            self.go_to_index(&target[mark..], site, ctx)
        } else {
            self.map_path(site, ctx);
            self.path.extend_from_slice(&target[mark..]);
            match self.look(location, Want::OPEN, site, ctx) {
                Look::Asked => Next::Probe(Step::Index(index)),
                Look::File(_) | Look::Directory | Look::Other => {
                    self.go_to_index(&target, site, ctx)
                }
                Look::Failed(failure) => self.index_failed(index, failure, site, ctx),
            }
        };
        self.scratch = target;
        next
    }

    /// Starts over with the index's own path; the query stays.
    fn go_to_index(&mut self, target: &[u8], site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let args = self.request.args.take();
        let next = self.redirect_inside(target, site, ctx);
        if matches!(next, Next::Step(_)) {
            // A `?` in a name is part of the name here.
            self.request.uri.clear();
            self.request.uri.extend_from_slice(target);
            self.request.note_dots();
        }
        self.request.args = args;
        next
    }

    fn index_failed(
        &mut self,
        index: usize,
        failure: Failure,
        site: &Site,
        ctx: &mut Ctx<'_>,
    ) -> Next {
        match failure {
            Failure::Loop => Next::Fail(403),
            Failure::PermissionDenied | Failure::NotADirectory | Failure::NameTooLong => {
                self.log_index(failure, site, ctx);
                Next::Fail(if failure == Failure::PermissionDenied { 403 } else { 404 })
            }
            Failure::NotFound if index == 0 => Next::Step(Step::IndexDirectory(index)),
            Failure::NotFound => Next::Step(Step::Index(index + 1)),
            Failure::Other(_) => {
                self.log_failure(Level::Crit, "open()", failure, site, ctx);
                Next::Fail(500)
            }
        }
    }

    /// Tells an absent directory from an absent index, once.
    pub(crate) fn index_directory(&mut self, index: usize, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let location = site.location(self.request.location);
        self.map_path(site, ctx);
        if self.path.len() > 1 && self.path.last() == Some(&b'/') {
            self.path.pop();
        }
        match self.look(location, Want::Stat, site, ctx) {
            Look::Asked => Next::Probe(Step::IndexDirectory(index)),
            Look::Directory | Look::Failed(Failure::PermissionDenied) => {
                Next::Step(Step::Index(index + 1))
            }
            Look::Failed(Failure::NotFound) => {
                self.path.push(b'/');
                // nginx names the index that it looked for.
                if let Some(template) = location.settings.index.get(index) {
                    let mut name = std::mem::take(&mut self.scratch);
                    name.clear();
                    Scope::new(&self.request, &self.answer, site, ctx).expand(template, &mut name);
                    self.path.extend_from_slice(&name);
                    self.scratch = name;
                }
                self.log_index(Failure::NotFound, site, ctx);
                Next::Fail(404)
            }
            Look::Failed(failure) => {
                self.log_failure(Level::Crit, "stat()", failure, site, ctx);
                Next::Fail(500)
            }
            Look::File(_) | Look::Other => {
                let path = &self.path;
                record::error(&self.request, site, ctx, Level::Alert, |out| {
                    out.push(b'"');
                    out.extend_from_slice(path);
                    out.extend_from_slice(b"\" is not a directory");
                });
                Next::Fail(500)
            }
        }
    }

    /// A path that does not end in a slash.
    pub(crate) fn file(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let location = site.location(self.request.location);
        self.map_path(site, ctx);
        let original = match self.look(location, Want::OPEN, site, ctx) {
            Look::Asked => return Next::Probe(Step::File),
            Look::Directory => return self.directory_redirect(site, ctx),
            Look::Other => return self.not_regular(site, ctx),
            Look::Failed(Failure::NotFound) if location.coded => Err(Failure::NotFound),
            Look::Failed(failure) => return self.open_failed(failure, site, ctx),
            Look::File(file) => Ok(file),
        };
        if self.request.method == Method::Post {
            return match original {
                Ok(_) => Next::Fail(405),
                Err(failure) => self.open_failed(failure, site, ctx),
            };
        }
        let client = if location.coded {
            compress::client_codings(&self.request, location)
        } else {
            http::negotiate::Codings::NONE
        };
        let mut has_sibling = false;
        if location.coded {
            for coding in compress::ORDER {
                let good_for = compress::sibling(location, client, coding);
                if good_for == Sibling::Useless {
                    continue;
                }
                match self.sibling(coding, original.as_ref().ok(), site, ctx) {
                    Look::Asked => return Next::Probe(Step::File),
                    Look::File(file) if good_for == Sibling::Wanted => {
                        let varies = compress::depends_on_client(location, coding);
                        return self.send_stored(&file, coding, varies, site, ctx);
                    }
                    Look::File(_) => has_sibling = true,
                    Look::Directory | Look::Other | Look::Failed(_) => {}
                }
            }
        }
        match original {
            Ok(file) => self.send(&file, client, has_sibling, site, ctx),
            Err(failure) => self.open_failed(failure, site, ctx),
        }
    }

    /// What is known of the file's sibling with the suffix of `coding`.
    fn sibling(
        &mut self,
        coding: http::negotiate::Coding,
        original: Option<&Rc<OpenFile>>,
        site: &Site,
        ctx: &mut Ctx<'_>,
    ) -> Look {
        let location = site.location(self.request.location);
        if original.is_some_and(|file| file.lacks_sibling(coding)) {
            return Look::Failed(Failure::NotFound);
        }
        let len = self.path.len();
        self.path.extend_from_slice(coding.suffix().as_bytes());
        let look = self.look(location, Want::OPEN, site, ctx);
        self.path.truncate(len);
        if let (Look::Failed(_), Some(file)) = (&look, original) {
            file.note_missing_sibling(coding);
        }
        look
    }

    /// Sends the client to the same path with a slash behind it.
    pub(crate) fn directory_redirect(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let mut target = std::mem::take(&mut self.scratch);
        target.clear();
        push_uri(&mut target, &self.request.uri, UriPart::Path);
        target.push(b'/');
        if let Some(args) = &self.request.args
            && !args.is_empty()
        {
            target.push(b'?');
            target.extend_from_slice(args);
        }
        self.location.clear();
        let scope = Scope::new(&self.request, &self.answer, site, ctx);
        push_absolute(&scope, &target, &mut self.location);
        self.scratch = target;
        Next::Redirect(301)
    }

    fn not_regular(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let path = &self.path;
        record::error(&self.request, site, ctx, Level::Crit, |out| {
            out.push(b'"');
            out.extend_from_slice(path);
            out.extend_from_slice(b"\" is not a regular file");
        });
        Next::Fail(404)
    }

    /// Whether `self.path`, of which only the kind is known, is a regular file.
    pub(crate) fn is_regular(&self, location: &Location, ctx: &mut Ctx<'_>) -> bool {
        let known = ctx.files.lookup(&self.path, ctx.now, &location.policy);
        matches!(known, Known::Seen(meta) if meta.kind == Kind::File)
    }

    pub(crate) fn open_failed(&mut self, failure: Failure, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let location = site.location(self.request.location);
        let status = failure.status();
        if status != 404 || location.settings.log_not_found {
            let level = if status == 500 { Level::Crit } else { Level::Error };
            self.log_failure(level, "open()", failure, site, ctx);
        }
        Next::Fail(status)
    }

    /// Writes the path of the file that the request maps to.
    #[inline]
    pub(crate) fn map_path(&mut self, site: &Site, ctx: &Ctx<'_>) {
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let scope = Scope::new(&self.request, &self.answer, site, ctx);
        scope.push_path(scope.location(), &self.request.uri, &mut path);
        self.path = path;
    }

    /// What the table knows of `self.path`; asks for a look where it does not know enough.
    #[inline]
    pub(crate) fn look(
        &self,
        location: &Location,
        want: Want,
        site: &Site,
        ctx: &mut Ctx<'_>,
    ) -> Look {
        let special;
        let policy = match &location.links_checked_from {
            None => &location.policy,
            Some(from) => {
                let mut start = Vec::new();
                Scope::new(&self.request, &self.answer, site, ctx).expand(from, &mut start);
                let symlinks = location.policy.symlinks.beginning_at(&self.path, &start);
                special = Policy { symlinks, ..location.policy };
                &special
            }
        };
        match ctx.files.lookup(&self.path, ctx.now, policy) {
            Known::File(file) => return Look::File(file),
            Known::Directory(_) => return Look::Directory,
            Known::Missing(failure) => return Look::Failed(failure),
            // A regular file of which only the meta was asked for has to be opened yet.
            Known::Seen(meta) if meta.kind != Kind::File || want == Want::Stat => {
                return Look::Other;
            }
            Known::Seen(_) | Known::Stale | Known::Unknown => {}
        }
        if self.path.contains(&0) {
            return Look::Failed(Failure::NotFound);
        }
        ctx.effects.push(Effect::Probe(ctx.files.probe(&self.path, want, policy)));
        Look::Asked
    }

    pub(crate) fn log_failure(
        &self,
        level: Level,
        call: &str,
        failure: Failure,
        site: &Site,
        ctx: &mut Ctx<'_>,
    ) {
        let path = &self.path;
        record::error(&self.request, site, ctx, level, |out| {
            out.extend_from_slice(call.as_bytes());
            out.extend_from_slice(b" \"");
            out.extend_from_slice(path);
            out.extend_from_slice(b"\" failed ");
            record::push_errno(out, failure.errno());
        });
    }

    fn log_index(&self, failure: Failure, site: &Site, ctx: &mut Ctx<'_>) {
        let words: &[u8] = match failure {
            Failure::PermissionDenied => b"\" is forbidden ",
            _ if !site.location(self.request.location).settings.log_not_found => return,
            _ => b"\" is not found ",
        };
        let path = &self.path;
        self.log_error(site, ctx, |out| {
            out.push(b'"');
            out.extend_from_slice(path);
            out.extend_from_slice(words);
            record::push_errno(out, failure.errno());
        });
    }
}

/// Whether a failure only means that the candidate is not there.
const fn is_absence(failure: Failure) -> bool {
    matches!(failure, Failure::NotFound | Failure::NotADirectory | Failure::NameTooLong)
}
