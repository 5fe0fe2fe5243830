//! The step: files are found and asked, first who may come in, then where the request goes.
//!
//! It is made again after every wait, from its beginning, so it changes the request only where it
//! leads on.

use bolide_conf::model::LogLevel;
use bolide_files::{Known, OpenFailure, ProbePolicy, SymlinkPolicy, Want};
use bolide_htaccess::{
    Admission, Applied, DirOptions, EnvTable, Evaluation, HeaderTimes, PassOutcome, RewritePlace,
    Rewritten, Stop,
};
use bolide_http::escape::{UriPart, push_uri};

use super::levels::{HtaccessTarget, TargetKind};
use super::password::challenge;
use super::ruling::HtaccessRuling;
use super::world::{RequestWorld, method_name, push_origin};
use crate::content::confine;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::log_lines;
use crate::pages::is_redirect;
use crate::phase::access::{beyond_htaccess, found};
use crate::request::Request;
use crate::site::{Builtin, Site};

/// What an evaluation comes to, or the next step.
type Decided<T> = Result<T, NextStep>;

/// Where a request goes that may come in.
enum Onward {
    /// To what the location has.
    Content,
    /// Elsewhere.
    Elsewhere(NextStep),
}

impl Exchange {
    /// Obeys the `.htaccess` files on the way to the request's file.
    pub(crate) fn obey_htaccess(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let location = site.location(self.request.location);
        let is_file = matches!(location.builtin, None | Some(Builtin::Flv | Builtin::Mp4));
        if !is_file || confine::is_proxied(location) {
            return beyond_htaccess(location);
        }
        if self.request.uri.split(|byte| *byte == b'/').any(|part| part.starts_with(b".ht")) {
            return denied(&self.request, site, ctx);
        }
        let mut ruling = self.request.htaccess.take().unwrap_or_default();
        ruling.begin_round();
        let next = match self.decide(&mut ruling, site, ctx) {
            Ok(Onward::Content) if ruling.is_found => found(location),
            Ok(Onward::Content) => beyond_htaccess(location),
            Ok(Onward::Elsewhere(next)) | Err(next) => next,
        };
        if !matches!(next, NextStep::Probe(_) | NextStep::CheckPassword(_)) {
            (ruling.is_index, ruling.is_found) = (false, false);
        }
        if !ruling.levels.is_empty() || ruling.is_carried() {
            self.request.htaccess = Some(ruling);
        }
        next
    }

    fn decide(
        &mut self,
        ruling: &mut HtaccessRuling,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<Onward> {
        let Self { request, answer, search, .. } = self;
        let target = search.htaccess_target(request, answer, site, ctx)?;
        search.htaccess_levels(request, &target, site, ctx, &mut ruling.levels)?;
        if ruling.levels.is_empty() {
            return Ok(Onward::Content);
        }
        let name = target.file.strip_suffix(b"/").unwrap_or(&target.file);
        ruling.name = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
        self.let_in(ruling, &target, site, ctx)?;
        self.lead_on(ruling, &target, site, ctx)
    }

    /// Judges who may come in.
    fn let_in(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let method = method_name(&self.request).to_vec();
        let (choices, admission) =
            self.ask(ruling, target, None, None, site, ctx, |applied, by| {
                applied.set_conditional_env(by)?;
                Ok((applied.choices().to_vec(), applied.admission(&method, by)?))
            })?;
        ruling.choices = choices;
        match admission {
            Admission::Open => return Ok(()),
            Admission::Forbidden => return Err(denied(&self.request, site, ctx)),
            Admission::Unclear => {
                log_lines::error(&self.request, site, ctx, LogLevel::Error, |out| {
                    out.extend_from_slice(
                        b"need AuthType Basic, AuthName and AuthUserFile for the Require of a \
                          .htaccess file",
                    );
                });
                return Err(NextStep::Fail(500));
            }
            Admission::AsksWho => {}
        }
        let held = ruling.clone();
        let Some(setup) = held.applied().auth_setup() else { return Err(NextStep::Fail(500)) };
        let Self { request, answer, search, access, .. } = self;
        let user = access.htaccess_user(request, answer, search, &setup, site, ctx)?;
        let groups = match setup.group_file {
            Some(file) => Some(search.htaccess_secret(request, file, site, ctx)?),
            None => None,
        };
        // Once more from the same beginning, with a user.
        ruling.env = ruling.next_env.clone();
        let (user_now, groups) = (Some(&user[..]), groups.as_deref());
        let admission = self.ask(ruling, target, user_now, groups, site, ctx, |applied, by| {
            applied.set_conditional_env(by)?;
            applied.admission(&method, by)
        })?;
        match admission {
            Admission::Open => {
                ruling.user = Some(user);
                Ok(())
            }
            Admission::Forbidden => Err(denied(&self.request, site, ctx)),
            Admission::AsksWho | Admission::Unclear => Err(challenge(&mut self.answer, &setup)),
        }
    }

    /// Evaluates something; where the disk has to be asked first, that is the next step.
    #[expect(clippy::too_many_arguments, reason = "one place where the request is lent")]
    fn ask<T>(
        &self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        user: Option<&[u8]>,
        groups: Option<&[u8]>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
        evaluate: impl FnOnce(&Applied<'_>, &mut Evaluation<'_>) -> Result<T, Stop>,
    ) -> Decided<T> {
        let mut env = std::mem::take(&mut ruling.env);
        let mut varies = std::mem::take(&mut ruling.varies);
        let mut world = RequestWorld {
            request: &self.request,
            conn: ctx.conn,
            now: ctx.now,
            utc_offset: ctx.clock.utc_offset(),
            files: Some(ctx.files),
            target,
            user,
            groups,
            wanted: None,
        };
        let mut by = Evaluation { world: &mut world, env: &mut env, varies: &mut varies };
        let levels = ruling.levels.iter().map(|level| (&level.directory[..], &*level.file));
        let result = match ruling.choices.is_empty() {
            true => Applied::new(levels, &ruling.name, &mut by),
            false => Ok(Applied::again(levels, &ruling.name, &ruling.choices)),
        };
        let result = result.and_then(|applied| evaluate(&applied, &mut by));
        let wanted = world.wanted.take();
        ruling.env = env;
        ruling.varies = varies;
        result.map_err(|stop| stopped(&self.request, stop, wanted, site, ctx))
    }

    /// Where the request goes: rewriting, `Redirect`, `FallbackResource`, or on.
    fn lead_on(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<Onward> {
        let held = ruling.clone();
        let applied = held.applied();
        let location = site.location(self.request.location);
        let options = applied.options(DirOptions::new(location.settings.autoindex.on));
        // The slash comes first.
        let lacks_slash = target.kind == TargetKind::Directory && target.file.last() != Some(&b'/');
        if applied.rewrites() && !lacks_slash && !ruling.is_final {
            if !options.follows_own() {
                self.request.log_error(site, ctx, |out| {
                    out.extend_from_slice(
                        b"Options FollowSymLinks and SymLinksIfOwnerMatch are both off, so the \
                          RewriteRule directive is also forbidden",
                    );
                });
                return Err(NextStep::Fail(403));
            }
            let outcome = self.rewrite_once(ruling, target, site, ctx)?;
            if let Some(next) = self.follow(ruling, outcome, site, ctx) {
                return Ok(Onward::Elsewhere(next));
            }
        }
        let args = self.request.args.as_deref().filter(|args| !args.is_empty());
        let redirect = applied.redirect(&self.request.uri, args);
        let redirect = redirect.map_err(|stop| stopped(&self.request, stop, None, site, ctx))?;
        if let Some(to) = redirect {
            let Some(address) = to.to else { return Err(NextStep::Fail(to.status)) };
            let mut whole = Vec::new();
            if address.first() == Some(&b'/') {
                push_origin(&self.request, ctx.conn, &mut whole);
            }
            whole.extend_from_slice(&address);
            self.answer.location = whole;
            return Ok(Onward::Elsewhere(NextStep::Redirect(to.status)));
        }
        if target.kind == TargetKind::Missing
            && !ruling.is_index
            && let Some(fallback) = applied.fallback()
            && *fallback != *self.request.uri
        {
            return Ok(Onward::Elsewhere(self.fall_back(ruling, fallback, site, ctx)));
        }
        self.set_out(ruling, target, options, site, ctx)?;
        Ok(Onward::Content)
    }

    fn rewrite_once(
        &self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<PassOutcome> {
        let mut origin = Vec::new();
        push_origin(&self.request, ctx.conn, &mut origin);
        let place = RewritePlace {
            file: &target.file,
            path_info: &target.path_info,
            args: self.request.args.as_deref(),
            target: &self.request.head().target,
            root: &target.root,
            prefix: &target.prefix,
            origin: &origin,
            is_inside: ruling.is_index || self.request.role.is_inside(),
            now: ctx.now.unix_seconds(),
        };
        let user = ruling.user.clone();
        self.ask(ruling, target, user.as_deref(), None, site, ctx, |applied, by| {
            applied.rewrite(&place, by)
        })
    }

    /// Does what rules came to; none where the request goes on.
    fn follow(
        &mut self,
        ruling: &mut HtaccessRuling,
        outcome: PassOutcome,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        ruling.is_final |= outcome.ends;
        for cookie in outcome.cookies {
            if !ruling.cookies.contains(&cookie) {
                ruling.cookies.push(cookie);
            }
        }
        ruling.media_type = outcome.media_type;
        ruling.handler = outcome.handler.map(|handler| handler.to_ascii_lowercase());
        match outcome.result {
            Rewritten::Nothing => None,
            Rewritten::Query(args) => {
                match args {
                    Some(args) => self.request.set_args(&args),
                    None => self.request.drop_args(),
                }
                None
            }
            Rewritten::Status(status) => Some(NextStep::Fail(status)),
            Rewritten::Redirect(status, address) => {
                self.answer.location = address;
                Some(NextStep::Redirect(if is_redirect(status) { status } else { 302 }))
            }
            // As in Apache, what becomes of the name of an index is thrown away.
            Rewritten::Inside { .. } if ruling.is_index => None,
            Rewritten::Inside { path, args } => {
                ruling.next_env = next_round(&ruling.env, &self.request, args.as_deref(), 200);
                let next = self.request.redirect_inside(&path, site, ctx);
                if matches!(next, NextStep::Step(_)) {
                    // A `?` of the path is part of a name here.
                    self.request.uri = path;
                    self.request.note_dots();
                    match args {
                        Some(args) => self.request.set_args(&args),
                        None => self.request.drop_args(),
                    }
                    self.request.arrival.bend();
                }
                Some(next)
            }
        }
    }

    fn fall_back(
        &mut self,
        ruling: &mut HtaccessRuling,
        fallback: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        ruling.next_env = ruling.env.clone();
        let args = self.request.args.take();
        let next = self.request.redirect_inside(fallback, site, ctx);
        if self.request.args.is_none() {
            self.request.args = args;
        }
        self.request.arrival.bend();
        next
    }

    /// What is left before content: variables, the handler, the client's fields.
    fn set_out(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        options: DirOptions,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let location = site.location(self.request.location);
        let user = ruling.user.clone();
        let mut fields = bolide_http::FieldMap::default();
        fields.copy_from(&self.request.head().fields);
        let times = HeaderTimes { received: received(&self.request), duration: 0 };
        let edits = self.ask(ruling, target, user.as_deref(), None, site, ctx, |applied, by| {
            applied.set_env(by);
            let edits = applied.edits_request();
            if edits {
                applied.edit_request(&mut fields, times, by)?;
            }
            Ok(edits)
        })?;
        if edits && let Some(own) = self.request.fields_mut() {
            *own = fields;
        }
        let applied = ruling.applied();
        let is_script = location.pass.is_some();
        let handler = ruling.handler.as_deref();
        let handler = handler.or_else(|| applied.nature(&ruling.name).handler);
        if is_script && applied.refuses_php() {
            return Err(denied(&self.request, site, ctx));
        }
        if let Some(handler) = handler
            && !is_answered(handler, is_script, target.kind)
        {
            log_lines::error(&self.request, site, ctx, LogLevel::Error, |out| {
                out.extend_from_slice(b"no handler is called \"");
                out.extend_from_slice(handler);
                out.extend_from_slice(b"\" here");
            });
            return Err(NextStep::Fail(503));
        }
        let from = target.root.len();
        let links = match (options.follows(), options.follows_own()) {
            (true, _) => SymlinkPolicy::Follow,
            (false, true) => SymlinkPolicy::RefuseForeign { from },
            (false, false) => SymlinkPolicy::Refuse { from },
        };
        if links != SymlinkPolicy::Follow && target.kind != TargetKind::Missing {
            self.refuse_links(target, links, site, ctx)?;
        }
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
        match ctx.files.lookup(path, ctx.now, &policy) {
            Known::Stale | Known::Unknown => {
                let probe = ctx.files.probe(path, Want::Stat, &policy);
                ctx.effects.push(StepEffect::Probe(Box::new(probe)));
                Err(NextStep::Probe(RequestStep::Htaccess))
            }
            Known::Missing(OpenFailure::Loop) => {
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

/// Whether what a handler is called means what answers here.
fn is_answered(handler: &[u8], is_script: bool, kind: TargetKind) -> bool {
    if matches!(handler, b"default-handler" | b"none") {
        return !is_script;
    }
    let contains = |word: &[u8]| handler.windows(word.len()).any(|part| part == word);
    let is_php = contains(b"php");
    if is_script {
        return is_php || contains(b"lsapi") || contains(b"fcgi");
    }
    // Other names mean nothing to Apache, which sends the file; but the source of what is to be
    // run is not sent.
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

/// What the environment is for the next round.
fn next_round(env: &EnvTable, request: &Request, args: Option<&[u8]>, status: u16) -> EnvTable {
    let mut next = env.redirected();
    next.set(b"REDIRECT_STATUS", status.to_string().as_bytes());
    next.set(b"REDIRECT_URL", &request.uri);
    if let Some(args) = args {
        next.set(b"REDIRECT_QUERY_STRING", args);
    }
    next
}

/// What the environment is for a page that stands in for an error.
pub(super) fn round_of_error(ruling: &HtaccessRuling, request: &Request, status: u16) -> EnvTable {
    next_round(&ruling.env, request, request.args.as_deref(), status)
}

/// When the request came, in microseconds.
pub(super) fn received(request: &Request) -> u64 {
    request.started.unix_seconds().saturating_mul(1_000_000)
}

fn denied(request: &Request, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"client denied by server configuration (.htaccess): ");
        push_uri(out, &request.uri, UriPart::Path);
    });
    NextStep::Fail(403)
}

/// The next step where an evaluation stopped.
fn stopped(
    request: &Request,
    stop: Stop,
    wanted: Option<bolide_files::Probe>,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    match (stop, wanted) {
        (Stop::Wait, Some(probe)) => {
            ctx.effects.push(StepEffect::Probe(Box::new(probe)));
            NextStep::Probe(RequestStep::Htaccess)
        }
        (Stop::Wait, None) => NextStep::Fail(500),
        (Stop::GaveUp(source), _) => {
            log_lines::error(request, site, ctx, LogLevel::Alert, |out| {
                out.extend_from_slice(b"a match took too many steps in .htaccess: \"");
                out.extend_from_slice(&source);
                out.push(b'"');
            });
            NextStep::Fail(500)
        }
        (Stop::Refused(status, why), _) => {
            log_lines::error(request, site, ctx, LogLevel::Error, |out| {
                out.extend_from_slice(b".htaccess: ");
                out.extend_from_slice(why.as_bytes());
            });
            NextStep::Fail(status)
        }
    }
}
