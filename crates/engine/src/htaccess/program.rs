//! Programs: the location that answers for a file, by the file's handler (`apache_handler`).

use std::rc::Rc;

use bolide_conf::model::LogLevel;
use bolide_htaccess::{Applied, FileNature};

use super::decide::{Decided, HtaccessRequest, denied};
use super::ruling::{HandlerProgram, HtaccessRuling};
use super::target::{HtaccessTarget, TargetKind};
use crate::caching::InternalRedirect;
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::log_lines;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

/// The handler of a file.
pub(super) fn handler<'a>(ruling: &'a HtaccessRuling, nature: FileNature<'a>) -> Option<&'a [u8]> {
    let media_type = ruling.media_type.as_deref().or(nature.media_type);
    let own = ruling.handler.as_deref().or(nature.handler);
    own.or_else(|| media_type.filter(|name| is_script_type(name)))
}

/// Whether Apache treats this media type as a handler (`AddType application/x-httpd-php`): such
/// files are executed, never sent.
fn is_script_type(media_type: &[u8]) -> bool {
    let lower = media_type.to_ascii_lowercase();
    let runs = [&b"application/x-httpd-"[..], b"application/x-php", b"application/x-lsphp"];
    runs.iter().any(|start| lower.starts_with(start))
}

/// Whether PHP runs files of this name as usually configured.
fn is_script_name(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut extensions = lower.split(|byte| *byte == b'.').skip(1);
    extensions.any(|one| {
        let rest = one.strip_prefix(b"ph");
        rest.is_some_and(|rest| {
            matches!(rest, b"tml" | b"ar" | b"t" | b"ps") || rest.first() == Some(&b'p')
        })
    })
}

/// The location where a request goes on: that of its program, if it has one.
pub(super) fn enter<'s>(
    request: &mut Request,
    ruling: Option<&HtaccessRuling>,
    site: &'s Site,
) -> &'s CompiledLocation {
    if let Some(program) = ruling.and_then(|ruling| ruling.program.as_deref()) {
        request.location = program.location;
        request.arrival.turn(InternalRedirect::Htaccess);
    }
    site.location(request.location)
}

impl HtaccessRequest<'_> {
    /// Finds the program that the file's handler means. A location with an upstream of its own
    /// answers whatever the handler.
    pub(super) fn find_program(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        applied: &Applied<'_>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let location = site.location(self.request.location);
        let known = &location.settings.apache_handlers;
        if known.is_empty() || location.pass.is_some() || target.kind == TargetKind::Directory {
            return Ok(());
        }
        let name = target.file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let handler = handler(ruling, applied.nature(name)).unwrap_or_default();
        let of = |handler: &[u8]| known.iter().rfind(|it| it.name.eq_ignore_ascii_case(handler));
        let Some(found) = of(handler) else {
            // As Apache would send it: the source of a script, or a file that looks like one.
            let is_program = |handler: &[u8]| of(handler).is_some() || is_script_type(handler);
            let is_taken = target.kind == TargetKind::File
                && is_script_name(name)
                && applied.names_program(name, is_program);
            return if is_taken { Err(denied(self.request, site, ctx)) } else { Ok(()) };
        };
        let named = &site.server(self.request.server).named;
        let Some((_, at)) = named.iter().find(|(own, _)| **own == *found.location) else {
            log_lines::error(self.request, site, ctx, LogLevel::Error, |out| {
                out.extend_from_slice(b"could not find named location \"");
                out.extend_from_slice(&found.location);
                out.push(b'"');
            });
            return Err(NextStep::Fail(500));
        };
        if site.location(*at).pass.is_none() {
            log_lines::error(self.request, site, ctx, LogLevel::Error, |out| {
                out.extend_from_slice(b"the location of \"apache_handler\" has no upstream: \"");
                out.extend_from_slice(&found.location);
                out.push(b'"');
            });
            // The file would be sent as it is.
            return Err(NextStep::Fail(503));
        }
        let path_info = match self.request.uri.ends_with(&target.path_info) {
            true => target.path_info.len(),
            false => 0,
        };
        let file = target.file.clone().into();
        ruling.program = Some(Rc::new(HandlerProgram { location: *at, file, path_info }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{is_script_name, is_script_type};

    #[test]
    fn scripts_are_known_by_their_names_and_types() {
        for name in ["a.php", "a.PHP", "a.php5", "a.phtml", "a.php.bak", "a.phar", ".php"] {
            assert!(is_script_name(name.as_bytes()), "{name}");
        }
        for name in ["php", "a.txt", "a.photo", "a.css", ""] {
            assert!(!is_script_name(name.as_bytes()), "{name}");
        }
        assert!(is_script_type(b"Application/x-httpd-PHP") && !is_script_type(b"text/x-php"));
    }
}
