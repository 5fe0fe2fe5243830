//! The last part of the step: variables, request fields, the handler, symbolic links.

use bolide_conf::model::{LogLevel, Protocol};
use bolide_files::{Known, OpenFailure, ProbePolicy, SymlinkPolicy, Want};
use bolide_htaccess::{CodingsForbidden, DirOptions, HeaderTimes};
use bolide_http::{FieldMap, RequestBody};

use super::decide::{Decided, HtaccessRequest, denied};
use super::program;
use super::ruling::{HtaccessRuling, ReplacedField, received};
use super::target::{HtaccessTarget, TargetKind};
use super::tls;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep, refuse_body};
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;

impl HtaccessRequest<'_> {
    /// Checks symbolic links on the path to the file.
    pub(super) fn judge_links(
        &mut self,
        target: &HtaccessTarget,
        options: DirOptions,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        debug_assert!(target.file.starts_with(&target.root), "a file lies below its root");
        let from = target.root.len();
        let links = match (options.follows(), options.follows_own()) {
            (true, _) => SymlinkPolicy::Follow,
            (false, true) => SymlinkPolicy::RefuseForeign { from },
            (false, false) => SymlinkPolicy::Refuse { from },
        };
        match links != SymlinkPolicy::Follow && target.kind != TargetKind::Missing {
            true => self.refuse_links(target, links, site, ctx),
            false => Ok(()),
        }
    }

    /// Applies what is left before content: variables, the handler, request fields.
    pub(super) fn set_out(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let Some(places) = ruling.places.clone() else { return Ok(()) };
        let applied = places.applied();
        self.judge_body(ruling, applied.body_max(), site, ctx)?;
        let location = site.location(self.request.location);
        let pass = match &ruling.program {
            Some(program) => &site.location(program.location).pass,
            None => &location.pass,
        };
        let exported = ruling.exported_variables();
        let user = ruling.user.clone();
        let edits = applied.edits_request();
        let mut fields = FieldMap::default();
        if edits {
            fields.copy_from(&self.request.head().fields);
        }
        let times = HeaderTimes { received: received(self.request), duration: 0 };
        let whose = (user.as_deref(), None);
        ruling.named_filters = self.evaluate(ruling, target, whose, site, ctx, |by| {
            applied.set_env(by);
            if edits {
                applied.edit_request(&mut fields, times, by)?;
            }
            applied.filters_of_name(&places.name, by)
        })?;
        if edits {
            self.reliance.depends();
        }
        if edits && let Some(own) = self.request.head_mut().map(|head| &mut head.fields) {
            ruling.replaced = replaced(own, &fields);
            *own = fields;
        }
        for (name, value) in exported.iter() {
            self.request.arrival.record_variable(name, value);
        }
        self.exported = exported;
        if applied.exports_tls() {
            // A stored ruling holds for any connection, but applications get variables of this one.
            self.reliance.depends();
            tls::each_exported(ctx.conn, ctx.now, |name, value| {
                self.request.arrival.record_variable(name, value);
            });
        }
        let holds_one =
            places.choices.as_ref().is_some_and(|choices| choices.conditions.contains(&true));
        if !ruling.replaced.is_empty() || holds_one {
            self.request.arrival.leave_unkeyed();
            self.is_unkeyed = true;
        }
        let is_script = pass.is_some();
        let nature = applied.nature(&places.name);
        let is_coded = !is_script && nature.encoding.is_some();
        let is_filtered = applied.has_output_filters();
        ruling.has_codings = is_coded || is_filtered || CodingsForbidden::of(&ruling.env).is_some();
        if is_filtered && applied.reworks_bodies() {
            // Nothing that is stored reaches the response.
            self.reliance.depends();
            self.answer.may_be_searched = true;
        }
        let handler = program::handler(ruling, nature);
        let is_taken = handler.is_none() && (nature.is_unhandled || nature.is_untyped);
        if is_script && (applied.refuses_php() || is_taken) {
            return Err(denied(self.request, site, ctx));
        }
        if pass.as_ref().is_some_and(|pass| pass.conf.protocol == Protocol::FastCgi)
            && let Some(setting) = applied.php().find(|setting| setting.names_code())
        {
            log_lines::error(self.request, site, ctx, LogLevel::Error, |out| {
                out.extend_from_slice(b"\"php_value ");
                out.extend_from_slice(&setting.name);
                out.extend_from_slice(b"\": php-fpm would run the file for other directories, too");
            });
            return Err(NextStep::Fail(500));
        }
        if let Some(handler) = handler
            && ruling.program.is_none()
            && !is_answered(handler, is_script, target.kind)
        {
            log_lines::error(self.request, site, ctx, LogLevel::Error, |out| {
                out.extend_from_slice(b"no handler is called \"");
                out.extend_from_slice(handler);
                out.extend_from_slice(b"\" here");
            });
            return Err(NextStep::Fail(503));
        }
        Ok(())
    }

    /// `LimitRequestBody`; the rest of a body is checked when it arrives.
    fn judge_body(
        &mut self,
        ruling: &mut HtaccessRuling,
        max: u64,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        debug_assert_eq!(ruling.body_max, 0, "a round judges a body once");
        let declared = match self.request.head().body {
            RequestBody::Length(len) => len,
            RequestBody::None | RequestBody::Unknown => 0,
        };
        let len = declared.max(self.request.body_received);
        if max != 0 && len > max && !self.request.in_error_page {
            return Err(refuse_body(self.request, len, site, ctx));
        }
        ruling.body_max = max;
        Ok(())
    }

    /// Refuses a path with links that `Options` does not permit.
    fn refuse_links(
        &mut self,
        target: &HtaccessTarget,
        symlinks: SymlinkPolicy,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let policy = ProbePolicy { symlinks, ..ProbePolicy::default() };
        let path = target.file.strip_suffix(b"/").unwrap_or(&target.file);
        self.reliance.depends();
        match ctx.files.lookup(path, ctx.now, &policy) {
            Known::Stale | Known::Unknown => {
                let probe = ctx.files.probe(path, Want::Stat, &policy);
                ctx.effects.push(StepEffect::Probe(Box::new(probe)));
                Err(NextStep::Probe(RequestStep::Htaccess))
            }
            // What could not be looked at may be one.
            Known::Missing(OpenFailure::Loop | OpenFailure::Other(_)) => {
                self.request.log_error(site, ctx, |out| {
                    out.extend_from_slice(
                        b"Symbolic link not allowed or link target not accessible: ",
                    );
                    out.extend_from_slice(path);
                });
                Err(NextStep::Fail(403))
            }
            _ => Ok(()),
        }
    }
}

/// The names whose values differ in `new`, with their values in `old`.
fn replaced(old: &FieldMap, new: &FieldMap) -> Vec<ReplacedField> {
    let mut all: Vec<ReplacedField> = Vec::new();
    for field in old.iter().chain(new.iter()) {
        let is_known = all.iter().any(|(name, _)| name.eq_ignore_ascii_case(field.text));
        if !is_known && !old.all_text(field.text).eq(new.all_text(field.text)) {
            let values = old.all_text(field.text).map(Box::from).collect();
            all.push((field.text.into(), values));
        }
    }
    all
}

/// Undoes `RequestHeader` of the previous round: only that of the last round applies.
pub(super) fn take_back(request: &mut Request, ruling: &mut HtaccessRuling) {
    if ruling.replaced.is_empty() {
        return;
    }
    if let Some(fields) = request.head_mut().map(|head| &mut head.fields) {
        for (name, values) in ruling.replaced.drain(..) {
            fields.remove_text(&name);
            values.iter().for_each(|value| fields.push_text(&name, value));
        }
    }
    debug_assert!(ruling.replaced.is_empty(), "a client's fields are given back once");
}

/// Whether a handler name means the handler of this location.
fn is_answered(handler: &[u8], is_script: bool, kind: TargetKind) -> bool {
    if matches!(handler, b"default-handler" | b"none") {
        return !is_script;
    }
    let contains = |word: &[u8]| handler.windows(word.len()).any(|part| part == word);
    let is_php = contains(b"php");
    if is_script {
        return is_php || contains(b"lsapi") || contains(b"fcgi");
    }
    // Apache ignores other names and sends the file; but the source of a script is not sent.
    let runs = is_php
        || [
            &b"cgi"[..],
            b"proxy:",
            b"script",
            b"wsgi",
            b"server-",
            b"send-as-is",
            b"lsapi",
            b"type-map",
            b"imap",
        ]
        .iter()
        .any(|word| contains(word));
    !runs || kind == TargetKind::Directory
}
