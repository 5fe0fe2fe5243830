//! Looks ahead: the result that an internal request would have, which rules query by `-U`, `-F`,
//! `%{LA-U:…}` and `%{LA-F:…}`.
//!
//! Owns their limits. A look changes nothing of the request. A path outside of the location's
//! directory is refused; if more than `.htaccess` files decides about a path, the request fails. No
//! password is checked: a user is known only if the same user file, realm and group file proved the
//! identity.

use std::rc::Rc;

use bolide_conf::model::LogLevel;
use bolide_htaccess::{
    Admission, Ahead, AheadKind, Applied, DirOptions, PassOutcome, PathTest, Rewritten,
    resolved_path,
};
use bolide_http::uri::push_decoded;
use bolide_patterns::Captures;

use super::admission::AdmissionJudge;
use super::decide::{Decided, HtaccessRequest};
use super::follow::DirOptionsGiven;
use super::looks::{LookOf, LookTarget};
use super::ruling::HtaccessRuling;
use super::target::{HtaccessTarget, TargetKind};
use super::unindexed::NAMES_MAX;
use crate::content::confine;
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::log_lines;
use crate::phase::rewrite::Op;
use crate::route::{LocationIndex, LocationMatch};
use crate::site::{Builtin, CompiledLocation, Site};
use crate::vars::VariableScope;

/// LIMIT: looks ahead of one pass, and of one step including nested ones. A step that waits for the
/// disk is repeated.
const LOOKS_MAX: u32 = 32;
/// LIMIT: nested looks ahead; one more fails, as in Apache.
const DEPTH_MAX: u8 = 4;

/// A path to look ahead to.
struct LookPath {
    uri: Vec<u8>,
    args: Option<Vec<u8>>,
    own: Vec<u8>,
    location: LocationIndex,
    captures: Captures,
}

/// Why a look is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoLook {
    /// Such a request has this status.
    Comes(u16),
    /// More than files decides about the result.
    Unclear,
}

/// `path` relative to the directory of `beside`, if it is not absolute.
fn beside(path: &[u8], beside: &[u8]) -> Vec<u8> {
    if path.first() == Some(&b'/') {
        return path.to_vec();
    }
    [directory_of(beside), path].concat()
}

/// Whether a path is one of files like `.htaccess`, which are not served.
fn is_hidden(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part.starts_with(b".ht"))
}

/// A path up to its last slash.
fn directory_of(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    &path[..end]
}

/// Whether a location decides about paths by more than `.htaccess` files and instructions.
fn judges_paths(location: &CompiledLocation) -> bool {
    location.except.is_some() || location.settings.auth_request.uri.is_some()
}

/// Whether a location has access checks, which the current request has not passed.
fn checks_clients(location: &CompiledLocation) -> bool {
    let settings = &location.settings;
    !settings.access.is_empty() || settings.auth_basic.is_some()
}

impl HtaccessRequest<'_> {
    /// Runs rules that look ahead, again after each missing look.
    #[cold]
    pub(super) fn rewrite_ahead(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        applied: &Applied<'_>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<PassOutcome> {
        let (env, mut varies) = (ruling.env.clone(), ruling.varies.clone());
        ruling.ahead.get_or_insert_default();
        loop {
            let outcome = self.rewrite_once(ruling, target, applied, site, ctx);
            let wanted = ruling.ahead.as_mut().and_then(|ahead| ahead.take_wanted());
            let Some(wanted) = wanted else { return outcome };
            self.effort.resume();
            // A look begins with a copy, and so does its continuation.
            self.effort.spend(env.bytes().saturating_mul(2));
            let mut cookies = Vec::new();
            let collected = (&mut varies, &mut cookies);
            let found = self.look(ruling, target, &wanted, collected, site, ctx)?;
            ruling.add_cookies(cookies.into_iter(), self.effort);
            let ahead = ruling.ahead.as_mut();
            if !ahead.is_none_or(|ahead| ahead.keep(wanted, found)) {
                self.log_error(b".htaccess: looks ahead come to too many texts", site, ctx);
                return Err(NextStep::Fail(500));
            }
            ruling.env.clone_from(&env);
            ruling.varies.clone_from(&varies);
        }
    }

    fn look(
        &mut self,
        asking: &HtaccessRuling,
        target: &HtaccessTarget,
        wanted: &LookTarget,
        (varies, cookies): (&mut Vec<Box<[u8]>>, &mut Vec<Vec<u8>>),
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<Ahead> {
        self.looks += 1;
        let known = asking.ahead.as_ref().map_or(0, |ahead| ahead.known());
        if self.looks > LOOKS_MAX || known >= LOOKS_MAX as usize {
            self.log_error(b".htaccess: rules look ahead too often in one pass", site, ctx);
            return Err(NextStep::Fail(500));
        }
        let of = asking.ahead.as_ref().and_then(|ahead| ahead.of());
        let depth = of.map_or(0, |of| of.depth) + 1;
        let parent = of.map_or_else(|| self.request.uri.clone(), |of| of.own.clone());
        let way = match wanted.kind {
            _ if depth > DEPTH_MAX => Err(NoLook::Comes(500)),
            AheadKind::Url => self.way_of_url(&wanted.path, site),
            AheadKind::File => self.way_of_file(&wanted.path, target, site),
        };
        let way = match way {
            Ok(way) => way,
            Err(NoLook::Comes(status)) => return Ok(Ahead { status, ..Ahead::default() }),
            Err(NoLook::Unclear) => {
                let why = b".htaccess: rules look ahead to where the configuration has checks or \
                            instructions of its own";
                self.log_error(why, site, ctx);
                return Err(NextStep::Fail(500));
            }
        };
        let of = LookOf { kind: wanted.kind, parent, own: way.own.clone(), depth };
        let from = self.request.location;
        // Everything of the request and its response that a look changes.
        let request = &mut *self.request;
        let uri = std::mem::replace(&mut request.uri, way.uri);
        let args = std::mem::replace(&mut request.args, way.args);
        let has_dots = std::mem::replace(&mut request.has_dots, false);
        let to = std::mem::take(&mut self.answer.location);
        let origin = self.answer.location_origin;
        let captures = request.captures.replace(way.captures);
        request.location = way.location;
        let mut ruling = asking.of_look(of);
        let found = self.look_at(&mut ruling, asking, site, ctx);
        let request = &mut *self.request;
        (request.uri, request.args, request.has_dots) = (uri, args, has_dots);
        request.location = from;
        request.captures.replace(captures);
        debug_assert!(request.uri.starts_with(b"/"), "a look leaves the request as it was");
        (self.answer.location, self.answer.location_origin) = (to, origin);
        ruling.varies.retain(|name| !varies.contains(name));
        varies.append(&mut ruling.varies);
        cookies.append(&mut ruling.cookies);
        let status = match found {
            Ok(found) => return Ok(found),
            Err(NextStep::Fail(status) | NextStep::Redirect(status) | NextStep::Page(status)) => {
                status
            }
            Err(wait) => return Err(wait),
        };
        Ok(Ahead { status, ..Ahead::default() })
    }

    /// The path of a URL, or the status of an invalid one.
    fn way_of_url(&self, text: &[u8], site: &Site) -> Result<LookPath, NoLook> {
        let mark = text.iter().position(|byte| *byte == b'?');
        let (path, args) = text.split_at(mark.unwrap_or(text.len()));
        let args = args.get(1..).map(<[u8]>::to_vec);
        let mut decoded = Vec::new();
        push_decoded(&mut decoded, &beside(path, &self.request.uri));
        if decoded.contains(&0) {
            return Err(NoLook::Comes(404));
        }
        let uri = resolved_path(&decoded).ok_or(NoLook::Comes(400))?;
        if is_hidden(&uri) {
            return Err(NoLook::Comes(403));
        }
        let (location, captures) = self.location_of(&uri, site)?;
        Ok(LookPath { own: uri.clone(), uri, args, location, captures })
    }

    /// The location of a path, and the captures of its expressions. Fails if more than files
    /// decides about the path.
    fn location_of(&self, uri: &[u8], site: &Site) -> Result<(LocationIndex, Captures), NoLook> {
        let server = site.server(self.request.server);
        // Variables of the server's instructions were set for this request.
        let sets = |op: &Op| matches!(op, Op::Set { .. });
        if !site.location(server.root).program.iter().all(sets) {
            return Err(NoLook::Unclear);
        }
        let mut captures = self.request.captures.borrow().clone();
        let found = server.level.find(uri, &mut captures);
        if captures.take_failure().is_some() {
            return Err(NoLook::Unclear);
        }
        let id = match found {
            LocationMatch::Location(id) | LocationMatch::LacksSlash(id) => id,
            LocationMatch::Nothing => server.root,
        };
        let location = site.location(id);
        let is_elsewhere = id != self.request.location;
        if is_elsewhere && location.internal {
            return Err(NoLook::Comes(404));
        }
        let has_program = id != server.root && !location.program.is_empty();
        let is_judged = has_program || judges_paths(location);
        match is_judged || is_elsewhere && checks_clients(location) {
            true => Err(NoLook::Unclear),
            false => Ok((id, captures)),
        }
    }

    /// The path of a URL that maps to a file, or the status of a file without one.
    fn way_of_file(
        &self,
        text: &[u8],
        target: &HtaccessTarget,
        site: &Site,
    ) -> Result<LookPath, NoLook> {
        let forbidden = NoLook::Comes(403);
        let path = resolved_path(&beside(text, &target.file)).ok_or(forbidden)?;
        debug_assert!(!target.root.ends_with(b"/"), "a root has no slash at its end");
        let rest = path.strip_prefix(&target.root[..]).filter(|rest| rest.first() == Some(&b'/'));
        let rest = rest.filter(|rest| !rest.contains(&0)).ok_or(forbidden)?;
        let is_beside = directory_of(&path) == directory_of(&target.file);
        let name = &path[directory_of(&path).len()..];
        let own = match is_beside && !name.is_empty() {
            true => beside(name, &self.request.uri),
            false => Vec::new(),
        };
        let uri = [&target.prefix[..], rest].concat();
        if is_hidden(&uri) {
            return Err(forbidden);
        }
        // Access rules of the file's own URL apply.
        self.location_of(&uri, site)?;
        let captures = self.request.captures.borrow().clone();
        Ok(LookPath { uri, args: None, own, location: self.request.location, captures })
    }

    /// Evaluates the request, which has the target of the look for now.
    fn look_at(
        &mut self,
        ruling: &mut HtaccessRuling,
        asking: &HtaccessRuling,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<Ahead> {
        let location = site.location(self.request.location);
        let own = ruling.ahead.as_ref().and_then(|ahead| ahead.of());
        // As in Apache, a directory without a URL has no final slash.
        let is_file_alone = own.is_some_and(|of| of.kind == AheadKind::File);
        let mut found = Ahead {
            status: 200,
            uri: own.map_or_else(Vec::new, |of| of.own.clone()),
            args: self.request.args().to_vec(),
            ..Ahead::default()
        };
        let is_file = matches!(location.builtin, None | Some(Builtin::Flv | Builtin::Mp4));
        if !is_file || confine::is_proxied(location) {
            found.file.clone_from(&self.request.uri);
            return Ok(found);
        }
        let target = self.find_places(ruling, site, ctx)?;
        found.file.clone_from(&target.file);
        found.path_info.clone_from(&target.path_info);
        found.is_there = target.kind != TargetKind::Missing;
        if ruling.places.is_none() {
            return Ok(found);
        }
        self.admit_look(ruling, asking, &target, site, ctx)?;
        let Some(held) = ruling.places.clone() else { return Ok(found) };
        let applied = held.applied();
        let options = DirOptionsGiven::new(&applied, ruling, location);
        for options in options.all() {
            self.judge_links(&target, options, site, ctx)?;
        }
        found.user.clone_from(&ruling.user);
        if applied.rewrites(&target.file) {
            if !options.all().all(DirOptions::follows_own) {
                return Err(NextStep::Fail(403));
            }
            let mut outcome = self.pass_of_rules(ruling, &target, &applied, site, ctx)?;
            ruling.add_cookies(outcome.cookies.drain(..), self.effort);
            if let Some(status) = rewritten(outcome.result, &mut found) {
                found.env = ruling.env.clone();
                return Ok(Ahead { status, ..found });
            }
        }
        found.env = ruling.env.clone();
        let args = self.request.args.clone();
        if let Some(next) = self.redirected(&applied, args.as_deref(), site, ctx) {
            return Err(next.unwrap_or_else(|next| next));
        }
        match (target.kind, is_file_alone || target.lacks_slash()) {
            (TargetKind::Directory, true) if applied.redirects_to_slash() => found.status = 301,
            (TargetKind::Directory, false) => {
                self.find_index(ruling, &target, &applied, &mut found, site, ctx)?;
            }
            _ => {}
        }
        Ok(found)
    }

    /// Decides about access to the target, with the user of the current request.
    pub(super) fn admit_look(
        &mut self,
        ruling: &mut HtaccessRuling,
        asking: &HtaccessRuling,
        target: &HtaccessTarget,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let judge = AdmissionJudge::new(ruling, self.request);
        let before = ruling.settled_before();
        let (choices, admission) =
            self.ask(ruling, target, None, None, site, ctx, |applied, by| {
                let admission = judge.admit(applied, by)?;
                let is_settled = before.as_ref() == Some(applied.choices());
                let is_settled = is_settled && applied.heeded(judge.is_first).is_none();
                Ok((applied.choices().clone(), (admission, is_settled)))
            })?;
        if let Some(places) = &mut ruling.places {
            Rc::make_mut(places).choices = Some(choices);
        }
        match admission {
            (_, true) => {
                ruling.user.clone_from(&asking.user);
                ruling.proof.clone_from(&asking.proof);
                return Ok(());
            }
            (Admission::Open, _) => return Ok(()),
            (Admission::Forbidden, _) => return Err(self.refusal(site, ctx)),
            (Admission::Unclear, _) => return Err(NextStep::Fail(500)),
            (Admission::AsksWho, _) => {}
        }
        let (Some(held), Some(user), Some(proof)) =
            (ruling.places.clone(), asking.user.clone(), asking.proof.clone())
        else {
            return Err(NextStep::Fail(401));
        };
        let Some(setup) = held.applied().auth_setup().filter(|own| proof.is_by(own)) else {
            return Err(NextStep::Fail(401));
        };
        let groups = self.groups(&setup, site, ctx)?;
        match self.admit_user(ruling, target, &judge, (user, proof, groups), site, ctx)? {
            true => Ok(()),
            false => Err(NextStep::Fail(401)),
        }
    }

    /// As in Apache, a directory leads to its index.
    fn find_index(
        &self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        applied: &Applied<'_>,
        found: &mut Ahead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let names: Vec<Vec<u8>> = match applied.index() {
            Some(names) => names.iter().map(|name| name.to_vec()).collect(),
            None => {
                let scope = VariableScope::new(self.request, self.answer, site, ctx);
                let settings = &site.location(self.request.location).settings;
                let expanded = settings.index.iter().map(|template| {
                    let mut name = Vec::new();
                    scope.expand(template, &mut name);
                    name
                });
                expanded.collect()
            }
        };
        if names.len() > NAMES_MAX {
            self.log_error(b"too many names of an index to ask about each", site, ctx);
            return Err(NextStep::Fail(500));
        }
        for name in names.iter().filter(|name| !name.starts_with(b"/") && !name.is_empty()) {
            let path = [&target.file[..], name].concat();
            let is_there = self.evaluate(ruling, target, (None, None), site, ctx, |by| {
                by.world.test(PathTest::File, &path)
            })?;
            if is_there {
                found.file = path;
                found.uri.extend_from_slice(name);
                return Ok(());
            }
        }
        Ok(())
    }
}

impl HtaccessRequest<'_> {
    fn log_error(&self, why: &[u8], site: &Site, ctx: &mut StepCtx<'_>) {
        log_lines::error(self.request, site, ctx, LogLevel::Error, |out| {
            out.extend_from_slice(why);
        });
    }
}

/// Records the result of rules; returns the status if that is final.
fn rewritten(result: Rewritten, found: &mut Ahead) -> Option<u16> {
    let (status, file) = match result {
        Rewritten::Nothing => return None,
        Rewritten::Query(args) => {
            found.args = args.unwrap_or_default();
            return None;
        }
        Rewritten::Status(status) => return Some(status),
        Rewritten::Redirect(status, address) => (status, address),
        // As in Apache, it is not followed.
        Rewritten::Inside { path, .. } => (200, [b"redirect:", &path[..]].concat()),
        Rewritten::Proxied { origin, path, .. } => {
            (200, [b"proxy:", &origin[..], &path[..]].concat())
        }
    };
    (found.file, found.is_there) = (file, false);
    Some(status)
}
