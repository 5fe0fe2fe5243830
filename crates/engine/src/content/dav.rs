//! `dav_methods`: `PUT`, `DELETE`, `MKCOL`, `COPY` and `MOVE`.
//!
//! Owns the checks that need no disk, with nginx's order and messages; `bolide_worker` does the
//! rest when it makes the change. Easiest to break: a destination is mapped by the request's
//! location, and must not leave its directory.

mod destination;

use bolide_conf::model::{DavMethod, Mapping};
use bolide_http::{Method, Name, RequestBody};

use crate::answer::Answer;
use crate::body::FileHolds;
use crate::content::collecting::{collected_in, file_with_name};
use crate::content::file::alias_rewritten;
use crate::content::search::FileSearch;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep, RequestStep, refuse_rest};
use crate::file_change::{
    DavDepth, FileChange, FileChangeKind, FileOutcome, FilePlacement, FileTransfer,
};
use crate::log_lines;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

use destination::read_destination;

/// The method of a request that the location's `dav_methods` names.
pub(crate) fn dav_method(request: &Request, location: &CompiledLocation) -> Option<DavMethod> {
    let methods = location.settings.dav.methods;
    if methods.is_empty() {
        return None;
    }
    let method = match request.method {
        Method::Put => DavMethod::Put,
        Method::Delete => DavMethod::Delete,
        Method::Other => match &*request.head().method_text {
            b"MKCOL" => DavMethod::Mkcol,
            b"COPY" => DavMethod::Copy,
            b"MOVE" => DavMethod::Move,
            _ => return None,
        },
        _ => return None,
    };
    methods.has(method).then_some(method)
}

/// A request that changes files.
#[derive(Debug)]
pub(crate) struct DavRequest<'a> {
    request: &'a mut Request,
    answer: &'a mut Answer,
    search: &'a mut FileSearch,
}

impl<'a> DavRequest<'a> {
    /// Borrows what it needs of an exchange.
    pub(crate) const fn of(exchange: &'a mut Exchange) -> Self {
        let Exchange { request, answer, search, .. } = exchange;
        Self { request, answer, search }
    }

    /// Requests the change, or refuses it.
    pub(crate) fn answer(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let location = site.location(self.request.location);
        let Some(method) = dav_method(self.request, location) else { return NextStep::Fail(405) };
        if self.request.rewritten_here && location.settings.root.mapping != Mapping::Whole {
            return alias_rewritten(self.request, site, ctx);
        }
        let kind = match method {
            DavMethod::Put => return self.put(site, ctx),
            DavMethod::Delete => self.delete(site, ctx),
            DavMethod::Mkcol => self.make_collection(site, ctx),
            DavMethod::Copy | DavMethod::Move => self.transfer(method, site, ctx),
        };
        match kind {
            Ok(kind) => self.change(kind, site, ctx),
            Err(status) => NextStep::Fail(status),
        }
    }

    fn change(&self, kind: FileChangeKind, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let location = site.location(self.request.location);
        let symlinks = match &location.links_checked_from {
            None => location.policy.symlinks,
            Some(from) => {
                let mut start = Vec::new();
                VariableScope::new(self.request, self.answer, site, ctx).expand(from, &mut start);
                location.policy.symlinks.beginning_at(&self.search.path, &start)
            }
        };
        ctx.effects.push(StepEffect::ChangeFiles(Box::new(FileChange { kind, symlinks })));
        NextStep::ChangeFiles
    }

    /// `PUT`: the body is written to a temporary file first.
    fn put(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let location = site.location(self.request.location);
        if self.request.uri.ends_with(b"/") {
            return self.refuse(409, b"cannot PUT to a collection", site, ctx);
        }
        let fields = &self.request.head().fields;
        if fields.get(Name::ContentRange).is_some() {
            return self.refuse(501, b"PUT with range is unsupported", site, ctx);
        }
        self.request.send_continue(ctx);
        if let Some(next) = refuse_rest(self.request, site, ctx) {
            return next;
        }
        let head = self.request.head();
        let has_body =
            head.body != RequestBody::None || head.fields.get(Name::ContentLength).is_some();
        let is_collected = self.request.upload.spool().is_some();
        if has_body && !is_collected && !self.request.upload.is_refused() {
            if let Some(next) = self.request.refuse_early(site, ctx) {
                return next;
            }
            if self.request.head().body == RequestBody::None {
                self.request.upload.finish();
            }
            let holds = FileHolds::Always { is_removed: true };
            let progress = self.request.upload.collect(0, holds, ctx.effects);
            let place = file_with_name(location);
            return collected_in(self.request, progress, RequestStep::Dav, place, ctx);
        }
        let Some((temporary, file)) = self.request.upload.hand_over() else {
            return self.refuse(500, b"PUT request body must be in a file", site, ctx);
        };
        self.search.map_path(self.request, self.answer, site, ctx);
        let date = self.request.head().fields.get(Name::Date);
        let kind = FileChangeKind::Place(FilePlacement {
            temporary,
            file,
            to: self.search.path.clone(),
            access: location.settings.dav.access,
            modified: date.and_then(bolide_http::date::parse).map(|seconds| seconds as i64),
            makes_directories: location.settings.dav.creates_directories,
        });
        self.change(kind, site, ctx)
    }

    fn delete(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> Result<FileChangeKind, u16> {
        let location = site.location(self.request.location);
        self.refuse_body(b"DELETE with body is unsupported", site, ctx)?;
        let least = location.settings.dav.delete_depth_min;
        if let Some(depth) = lacking_depth(&self.request.uri, least) {
            self.request.log_error(site, ctx, |out| {
                out.extend_from_slice(b"insufficient URI depth:");
                bolide_http::digits::push_decimal(out, u64::from(depth));
                out.extend_from_slice(b" to DELETE");
            });
            return Err(409);
        }
        let depth = self.depth(site, ctx);
        self.search.map_path(self.request, self.answer, site, ctx);
        Ok(FileChangeKind::Delete { path: self.search.path.clone(), depth })
    }

    fn make_collection(
        &mut self,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<FileChangeKind, u16> {
        self.refuse_body(b"MKCOL with body is unsupported", site, ctx)?;
        if !self.request.uri.ends_with(b"/") {
            self.say(b"MKCOL can create a collection only", site, ctx);
            return Err(409);
        }
        self.search.map_path(self.request, self.answer, site, ctx);
        self.search.end_without_slash();
        let access = site.location(self.request.location).settings.dav.access;
        Ok(FileChangeKind::MakeDirectory { path: self.search.path.clone(), access })
    }

    fn transfer(
        &mut self,
        method: DavMethod,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<FileChangeKind, u16> {
        let location = site.location(self.request.location);
        self.refuse_body(b"COPY and MOVE with body are unsupported", site, ctx)?;
        let to_uri = read_destination(self.request, site, ctx)?;
        let to = destination::map(self.request, self.answer, &to_uri, site, ctx)?;
        match (method, self.depth(site, ctx)) {
            (_, DavDepth::Absent | DavDepth::Infinity) | (DavMethod::Copy, DavDepth::Zero) => {}
            (DavMethod::Copy, _) => {
                self.say(b"\"Depth\" header must be 0 or infinity", site, ctx);
                return Err(400);
            }
            _ => {
                self.say(b"\"Depth\" header must be infinity", site, ctx);
                return Err(400);
            }
        }
        let overwrites = match self.request.head().fields.get_text(b"Overwrite") {
            None | Some(b"T" | b"t") => true,
            Some(b"F" | b"f") => false,
            Some(value) => {
                invalid_field(self.request, "Overwrite", value, site, ctx);
                return Err(400);
            }
        };
        self.search.map_path(self.request, self.answer, site, ctx);
        let transfer = FileTransfer {
            from: self.search.path.clone(),
            to,
            from_uri: self.request.uri.clone(),
            to_uri,
            overwrites,
            access: location.settings.dav.access,
        };
        Ok(match method {
            DavMethod::Copy => FileChangeKind::Copy(transfer),
            _ => FileChangeKind::Move(transfer),
        })
    }

    /// Answers with the result of the change.
    pub(crate) fn changed(
        &mut self,
        outcome: &FileOutcome,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let Self { request, answer, .. } = self;
        for (level, text) in &outcome.notes {
            log_lines::error(request, site, ctx, *level, |out| out.extend_from_slice(text));
        }
        if outcome.status >= 300 {
            return NextStep::Fail(outcome.status);
        }
        debug_assert!(matches!(outcome.status, 201 | 204), "a change that was made says no more");
        answer.location.clear();
        let method = dav_method(request, site.location(request.location));
        if outcome.status == 201 && matches!(method, Some(DavMethod::Put | DavMethod::Mkcol)) {
            let mut path = Vec::new();
            bolide_http::escape::push_uri(
                &mut path,
                &request.uri,
                bolide_http::escape::UriPart::Path,
            );
            answer.write_redirect(&path);
        }
        NextStep::Page(outcome.status)
    }

    fn refuse_body(&self, text: &[u8], site: &Site, ctx: &mut StepCtx<'_>) -> Result<(), u16> {
        match self.request.head().body {
            RequestBody::None | RequestBody::Length(0) => Ok(()),
            RequestBody::Length(_) | RequestBody::Unknown => {
                self.say(text, site, ctx);
                Err(415)
            }
        }
    }

    fn depth(&self, site: &Site, ctx: &mut StepCtx<'_>) -> DavDepth {
        match self.request.head().fields.get_text(b"Depth") {
            None => DavDepth::Absent,
            Some(b"0") => DavDepth::Zero,
            Some(b"1") => DavDepth::One,
            Some(b"infinity") => DavDepth::Infinity,
            Some(value) => {
                invalid_field(self.request, "Depth", value, site, ctx);
                DavDepth::Invalid
            }
        }
    }

    fn refuse(&self, status: u16, text: &[u8], site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        self.say(text, site, ctx);
        NextStep::Fail(status)
    }

    fn say(&self, text: &[u8], site: &Site, ctx: &mut StepCtx<'_>) {
        self.request.log_error(site, ctx, |out| out.extend_from_slice(text));
    }
}

/// Logs that a field of the request is invalid.
fn invalid_field(request: &Request, name: &str, value: &[u8], site: &Site, ctx: &mut StepCtx<'_>) {
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"client sent invalid \"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\" header: \"");
        bolide_http::escape::push_log(out, value);
        out.push(b'"');
    });
}

/// The number of slashes in a path with fewer than `least` elements.
fn lacking_depth(uri: &[u8], least: u32) -> Option<u32> {
    let slashes = uri.iter().filter(|byte| **byte == b'/').count() as u32;
    // A final slash begins no element.
    let elements = slashes - u32::from(uri.ends_with(b"/")).min(slashes);
    (elements < least).then_some(slashes)
}

#[cfg(test)]
mod tests {
    use super::lacking_depth;

    #[test]
    fn a_slash_at_the_end_begins_no_element() {
        for (uri, least, lacks) in [
            ("/a", 0, None),
            ("/a", 1, None),
            ("/", 1, Some(1)),
            ("/a/", 2, Some(2)),
            ("/a/b", 2, None),
            ("/deep/a/", 3, Some(3)),
            ("/deep/a/b/", 3, None),
        ] {
            assert_eq!(lacking_depth(uri.as_bytes(), least), lacks, "{uri} {least}");
        }
    }
}
