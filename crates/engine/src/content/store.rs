//! `proxy_store`: the path at which the response to a request is stored as a file.
//!
//! Owns which responses are stored. Refuses paths whose variables lead out of the configured
//! directory.

use std::sync::Arc;

use bolide_base::{FileRef, Now};
use bolide_conf::model::{FileAccess, LogLevel, Mapping, StorePlace, TempPath};
use bolide_conf::vars::Template;
use bolide_files::SymlinkPolicy;
use bolide_http::date::DateClock;
use bolide_http::{Method, Name, OriginHead};

use crate::answer::Answer;
use crate::content::climbs::climbs;
use crate::content::confine::{leads_out, written_climbs};
use crate::ctx::{SiteRef, StepCtx};
use crate::file_change::{FileChange, FileChangeKind, FilePlacement};
use crate::filter::passed_fields::is_buffered;
use crate::log_lines::{self, LoggedConn};
use crate::request::Request;
use crate::route::LocationIndex;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;
use bolide_log::Logs;

/// A response to be stored.
#[derive(Debug)]
pub struct StoreOrder {
    site: SiteRef,
    location: LocationIndex,
    to: Vec<u8>,
    access: FileAccess,
    /// The connection, and the context of log lines.
    conn: LoggedConn,
    circumstances: Vec<u8>,
}

impl StoreOrder {
    /// Where the temporary file is created.
    #[must_use]
    pub fn temp_path(&self) -> &Arc<TempPath> {
        &self.site.location(self.location).settings.origin.temp_path
    }

    /// Whether a response with this head is stored: only a 200 that is neither redirected
    /// internally nor streamed unbuffered.
    #[must_use]
    pub fn wants(&self, head: &OriginHead) -> bool {
        let origin = &self.site.location(self.location).settings.origin;
        let leads_away =
            !origin.ignore_headers.redirect && head.fields.get_text(b"X-Accel-Redirect").is_some();
        head.status_or_implied() == 200 && is_buffered(head, origin) && !leads_away
    }

    /// The change that moves the complete file to its path.
    #[must_use]
    pub fn place(&self, temporary: Box<[u8]>, file: FileRef, modified: Option<i64>) -> FileChange {
        let (to, access) = (self.to.clone(), self.access);
        let placement =
            FilePlacement { temporary, file, to, access, modified, makes_directories: true };
        FileChange { kind: FileChangeKind::Place(placement), symlinks: SymlinkPolicy::Follow }
    }

    /// Writes a line to the log of the location.
    pub fn log(&self, level: LogLevel, text: &[u8], now: Now, clock: &DateClock, logs: &mut Logs) {
        let text = [text, b" while reading upstream", &self.circumstances].concat();
        log_lines::error_at(&self.site, (self.location, self.conn), level, now, clock, logs, &text);
    }
}

impl Answer {
    /// The order to store the response of the upstream request that is about to start, if it is
    /// stored.
    pub(crate) fn store_order(
        &self,
        request: &Request,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Box<StoreOrder>> {
        let location = site.location(request.location);
        let origin = &location.settings.origin;
        let place = origin.store.as_ref()?;
        if request.method != Method::Get || request.head().method == Method::Head {
            return None;
        }
        let to = {
            let scope = VariableScope::new(request, self, site, ctx);
            match place {
                StorePlace::Mapped => mapped(&scope, location),
                StorePlace::Path(template) => expanded(&scope, template),
            }
        };
        let Some(to) = to else {
            request.log_error(site, ctx, |out| {
                out.extend_from_slice(b"the response is not stored: its path leads elsewhere");
            });
            return None;
        };
        Some(Box::new(StoreOrder {
            site: request.site.clone()?,
            location: request.location,
            to,
            access: origin.store_access,
            conn: LoggedConn::of(ctx.conn, site),
            circumstances: log_lines::circumstances(request, site, ctx),
        }))
    }
}

/// The path that the location maps the request to.
fn mapped(scope: &VariableScope<'_>, location: &CompiledLocation) -> Option<Vec<u8>> {
    let is_aliased = location.settings.root.mapping != Mapping::Whole;
    if scope.request.rewritten_here && is_aliased || leads_out(scope, location, &scope.request.uri)
    {
        return None;
    }
    let mut path = Vec::new();
    scope.push_path(location, &scope.request.uri, &mut path);
    Some(path)
}

/// A path with variables, relative to the prefix.
fn expanded(scope: &VariableScope<'_>, template: &Template) -> Option<Vec<u8>> {
    let mut path = Vec::new();
    scope.expand(template, &mut path);
    if path.first() != Some(&b'/') {
        let prefix = &scope.site.http()?.bases.prefix;
        path.splice(..0, prefix.iter().copied().chain([b'/']));
    }
    let is_sound = !path.contains(&0) && climbs(&path) <= written_climbs(template);
    is_sound.then_some(path)
}

/// `Last-Modified` of a head in seconds since 1970.
#[must_use]
pub fn stored_time(head: &OriginHead) -> Option<i64> {
    let text = head.fields.get(Name::LastModified)?;
    bolide_http::date::parse(text).map(|seconds| seconds as i64)
}
