//! The step of `.htaccess` files: finds them, then decides about access, then about the path.
//!
//! It is repeated from its beginning after every wait, so it changes the request only when it
//! completes.

use std::rc::Rc;

use bolide_conf::model::LogLevel;
use bolide_htaccess::{
    Admission, Applied, Effort, EnvTable, Evaluation, PathInfoRule, RequestVariable, Stop,
};
use bolide_http::escape::{UriPart, push_uri};

use super::admission::AdmissionJudge;
use super::asked::{AskedUrl, truth};
use super::depart::take_back;
use super::follow::{DirOptionsGiven, RuleScope, enter_inside};
use super::memory::{KeptWay, RoundEntry, RoundOutcome, RoundStart};
use super::password::challenge;
use super::program;
use super::questions::{AskedText, Question, Reply};
use super::reason::push_reason;
use super::reliance::Reliance;
use super::ruling::{HtaccessLevel, HtaccessPlaces, HtaccessRuling, UserProof, method_name};
use super::target::{HtaccessTarget, InsideTarget, TargetKind};
use super::world::RequestWorld;
use crate::answer::Answer;
use crate::content::confine;
use crate::content::search::FileSearch;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::log_lines;
use crate::phase::access::{beyond_htaccess, found, vouch_for_part};
use crate::phase::checks::AccessChecks;
use crate::request::Request;
use crate::site::{Builtin, Site};

/// The result of an evaluation, or the next step.
pub(super) type Decided<T> = Result<T, NextStep>;

/// Where an admitted request goes.
pub(super) enum AdmittedTarget {
    /// To the location's content.
    Content,
    /// To another internal path.
    Inside(Rc<InsideTarget>),
    /// To another step.
    Elsewhere(NextStep),
}

/// A request at this step.
pub(super) struct HtaccessRequest<'a> {
    pub(super) request: &'a mut Request,
    pub(super) answer: &'a mut Answer,
    pub(super) search: &'a mut FileSearch,
    pub(super) access: &'a mut AccessChecks,
    /// What the decision relied on.
    pub(super) reliance: Reliance,
    /// The limit that all evaluations of this step share.
    pub(super) effort: &'a Effort,
    /// Variables for applications that may differ between requests for one URL.
    pub(super) exported: EnvTable,
    /// Whether the response must not be cached, because of this round.
    pub(super) is_unkeyed: bool,
    /// The number of looks ahead.
    pub(super) looks: u32,
    /// Whether a refusal is no error: a listing leaves the entry out.
    pub(super) is_silent: bool,
}

/// Applies the `.htaccess` files on the path to a request's file.
pub(crate) fn obey(
    request: &mut Request,
    answer: &mut Answer,
    search: &mut FileSearch,
    access: &mut AccessChecks,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    let location = site.location(request.location);
    debug_assert!(location.htaccess.is_some(), "the step is for locations that read files");
    request.is_straight = false;
    if request.role.is_subrequest() {
        // Its files may ask for anything, and may change: this check is no other request's.
        request.arrival.check_at(request.id[1]);
    }
    let entry = RoundEntry::of(request);
    if let Some(entry) = &entry {
        let mut links = Vec::new();
        let kept = ctx.rulings.recall(
            entry,
            request,
            || RequestWorld::outside(request, ctx.conn, ctx.now, &mut links, site),
            site,
            ctx.files,
            ctx.now,
        );
        if let Some(kept) = kept.filter(|kept| kept.can_lead(request)) {
            return match kept.give(request) {
                KeptWay::Content => {
                    let ruling = request.htaccess.clone();
                    beyond_htaccess(program::enter(request, ruling.as_deref(), site))
                }
                KeptWay::Inside(target) => enter_inside(request, &target, site, ctx),
            };
        }
    }
    let start = entry.map(|entry| RoundStart::new(entry, request));
    let effort = Effort::of_request(request.jit_taken.get());
    let mut asking = HtaccessRequest::new(request, answer, search, access, &effort);
    let (next, way) = asking.obey_anew(site, ctx);
    asking.request.jit_taken.set(effort.jit_taken());
    if let Some((start, way)) = start.zip(way) {
        let HtaccessRequest { request, reliance, exported, is_unkeyed, .. } = asking;
        let outcome = RoundOutcome { way, exported, is_unkeyed };
        ctx.rulings.keep(start, reliance, outcome, request, site, (ctx.files, ctx.now));
    }
    next
}

impl<'a> HtaccessRequest<'a> {
    /// A request that is evaluated for the first time.
    #[inline]
    pub(super) fn new(
        request: &'a mut Request,
        answer: &'a mut Answer,
        search: &'a mut FileSearch,
        access: &'a mut AccessChecks,
        effort: &'a Effort,
    ) -> Self {
        let (reliance, exported) = (Reliance::default(), EnvTable::default());
        Self {
            request,
            answer,
            search,
            access,
            reliance,
            effort,
            exported,
            is_unkeyed: false,
            looks: 0,
            is_silent: false,
        }
    }
}

impl HtaccessRequest<'_> {
    /// The next step, and its result for other requests if it applies to them.
    #[cold]
    fn obey_anew(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> (NextStep, Option<KeptWay>) {
        vouch_for_part(self.request);
        let is_asked =
            AskedUrl(self.request).is_current(site.server(self.request.server).merge_slashes);
        let location = site.location(self.request.location);
        let is_file = matches!(location.builtin, None | Some(Builtin::Flv | Builtin::Mp4));
        if !is_file || confine::is_proxied(location) {
            // The ruling of another path does not hold here.
            if let Some(mut ruling) = self.request.htaccess.take() {
                let own = Rc::make_mut(&mut ruling);
                take_back(self.request, own);
                own.begin_round(is_asked);
                self.request.htaccess = Some(ruling);
            }
            return (beyond_htaccess(location), None);
        }
        // Nothing restricts writing at the destination of a copy.
        let copies = matches!(method_name(self.request), b"COPY" | b"MOVE");
        let is_hidden = |part: &[u8]| part.starts_with(b".ht");
        if copies || self.request.uri.split(|byte| *byte == b'/').any(is_hidden) {
            return (denied(self.request, site, ctx), None);
        }
        let mut held = self.request.htaccess.take().unwrap_or_default();
        let ruling = Rc::make_mut(&mut held);
        take_back(self.request, ruling);
        ruling.begin_round(is_asked);
        let decided = self.decide(ruling, site, ctx);
        let is_left = matches!(decided, Ok(AdmittedTarget::Inside(_)));
        let (next, way) = match decided {
            Ok(AdmittedTarget::Content) => {
                let location = program::enter(self.request, Some(ruling), site);
                match ruling.is_found {
                    true => (found(location), None),
                    false => (beyond_htaccess(location), Some(KeptWay::Content)),
                }
            }
            Ok(AdmittedTarget::Inside(target)) => {
                let next = enter_inside(self.request, &target, site, ctx);
                let is_entered = matches!(next, NextStep::Step(_)) && !ruling.is_found;
                (next, is_entered.then_some(KeptWay::Inside(target)))
            }
            Ok(AdmittedTarget::Elsewhere(next)) | Err(next) => (next, None),
        };
        if matches!(next, NextStep::Fail(_)) {
            self.request.arrival.refuse();
        }
        if !matches!(next, NextStep::Probe(_) | NextStep::CheckPassword(_)) {
            self.record_asked_path(ruling);
            ruling.keep_cache_orders(is_left);
            let was_looked_for = ruling.is_looked_for();
            ruling.is_index = std::mem::take(&mut ruling.leads_to_index);
            ruling.is_found = false;
            ruling.links.clear();
            ruling.ahead = None;
            ruling.followed = None;
            let is_refused = matches!(next, NextStep::Fail(_));
            if is_refused && was_looked_for && ruling.before.is_some() {
                // As in Apache, the directory determines the error document.
                ruling.places = ruling.before.take();
            }
            ruling.before = ruling.places.clone().filter(|_| !is_refused);
        }
        if ruling.places.is_some() || ruling.is_carried() {
            self.request.htaccess = Some(held);
        }
        (next, way)
    }

    /// Records whether the path is the client's, if that decided about the page cache.
    fn record_asked_path(&self, ruling: &HtaccessRuling) {
        let orders = ruling.cache_orders();
        if orders.asks_whether_path_is_asked() {
            let of = AskedText::Variable(RequestVariable::IsAskedUri);
            let text = truth(orders.is_of_asked_path());
            self.reliance.asked(|| Question::Text(of), || Reply::Text(Some(text.into())));
        }
    }

    fn decide(
        &mut self,
        ruling: &mut HtaccessRuling,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<AdmittedTarget> {
        let target = self.find_places(ruling, site, ctx)?;
        if ruling.places.is_none() {
            return Ok(AdmittedTarget::Content);
        }
        self.decide_access(ruling, &target, site, ctx)?;
        self.decide_path(ruling, &target, site, ctx)
    }

    /// Resolves the path of the request, and collects the sections that apply.
    pub(super) fn find_places(
        &mut self,
        ruling: &mut HtaccessRuling,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<HtaccessTarget> {
        let Self { request, answer, search, reliance, .. } = self;
        let target = search.htaccess_target(request, answer, site, ctx, reliance)?;
        let mut places = HtaccessPlaces::default();
        search.htaccess_levels(request, &target, site, ctx, &mut places.levels, reliance)?;
        if places.levels.is_empty() {
            return Ok(target);
        }
        // As in Apache, a directory that is requested with its slash has no name.
        let name = target.file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        // `fastcgi_index`: this script runs.
        let location = site.location(request.location);
        let runs = location.pass.is_some() && target.file.last() == Some(&b'/');
        let script = location.settings.origin.index.as_deref().filter(|_| runs);
        let script = script.and_then(|script| script.rsplit(|byte| *byte == b'/').next());
        places.name = script.unwrap_or(name).to_vec();
        debug_assert!(!places.name.contains(&b'/'), "a name is the last part of a path");
        ruling.places = Some(Rc::new(places));
        Ok(target)
    }

    /// Decides about access.
    pub(super) fn decide_access(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<()> {
        let judge = AdmissionJudge::new(ruling, self.request);
        let name = ruling.places.as_ref().map(|places| places.name.clone()).unwrap_or_default();
        let let_in_before = ruling.settled_before();
        let (choices, describes, admission) =
            self.ask(ruling, target, None, None, site, ctx, |applied, by| {
                let admission = judge.admit(applied, by)?;
                let is_settled = let_in_before.as_ref() == Some(applied.choices());
                let admission = match admission {
                    Admission::Open => Admission::Open,
                    _ if is_settled && applied.heeded(judge.is_first).is_none() => {
                        self.reliance.depends();
                        Admission::Open
                    }
                    other => other,
                };
                Ok((applied.choices().clone(), applied.describes(&name), admission))
            })?;
        if let Some(places) = &mut ruling.places {
            let places = Rc::make_mut(places);
            (places.choices, places.describes) = (Some(choices), describes);
        }
        match admission {
            Admission::Open => return Ok(()),
            Admission::Forbidden => return Err(denied(self.request, site, ctx)),
            Admission::Unclear => {
                log_lines::error(self.request, site, ctx, LogLevel::Error, |out| {
                    out.extend_from_slice(
                        b"need AuthType Basic and AuthName for the Require of a .htaccess file",
                    );
                });
                return Err(NextStep::Fail(500));
            }
            Admission::AsksWho => self.reliance.depends(),
        }
        let Some(held) = ruling.places.clone() else { return Err(NextStep::Fail(500)) };
        let Some(setup) = held.applied().auth_setup() else { return Err(NextStep::Fail(500)) };
        // The group file is read first, so that the password is checked once.
        let groups = self.groups(&setup, site, ctx)?;
        let Self { request, answer, search, access, .. } = self;
        let user = access.htaccess_user(request, answer, search, &setup, site, ctx)?;
        let known = (user, Rc::new(UserProof::new(&setup)), groups);
        match self.admit_user(ruling, target, &judge, known, site, ctx)? {
            true => Ok(()),
            false => Err(challenge(self.answer, &setup)),
        }
    }

    /// Evaluates a part of the directives that apply, as [`Self::evaluate`] does.
    #[expect(clippy::too_many_arguments, reason = "one place where the request is lent")]
    pub(super) fn ask<T>(
        &self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        user: Option<&[u8]>,
        groups: Option<&[u8]>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
        evaluate: impl FnOnce(&Applied<'_>, &mut Evaluation<'_>) -> Result<T, Stop>,
    ) -> Decided<T> {
        let places = ruling.places.clone();
        self.evaluate(ruling, target, (user, groups), site, ctx, |by| {
            let applied = match places.as_deref() {
                Some(places) if places.choices.is_none() => {
                    let levels = places.levels.iter().map(HtaccessLevel::parts);
                    Applied::new(levels, &places.name, by)?
                }
                Some(places) => places.applied(),
                None => Applied::default(),
            };
            evaluate(&applied, by)
        })
    }

    /// Evaluates a part; if it needs a file lookup first, that is the next step.
    pub(super) fn evaluate<T>(
        &self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        (user, groups): (Option<&[u8]>, Option<&[u8]>),
        site: &Site,
        ctx: &mut StepCtx<'_>,
        evaluate: impl FnOnce(&mut Evaluation<'_>) -> Result<T, Stop>,
    ) -> Decided<T> {
        let mut env = std::mem::take(&mut ruling.env);
        let mut varies = std::mem::take(&mut ruling.varies);
        let mut links = std::mem::take(&mut ruling.links);
        let method = ruling.method(self.request);
        let is_inside = ruling.is_part() || self.request.role.is_inside();
        let mut ahead = ruling.ahead.take();
        let mut world = RequestWorld {
            request: self.request,
            merge: site.server(self.request.server).merge_slashes,
            conn: ctx.conn,
            now: ctx.now,
            utc_offset: ctx.clock.utc_offset(),
            files: Some(ctx.files),
            target,
            method,
            is_inside,
            user,
            groups,
            places: &site.location(self.request.location).settings.apache_directories,
            prng: Some(ctx.prng),
            reliance: Some(&self.reliance),
            links: &mut links,
            ahead: ahead.as_deref_mut(),
            wanted: None,
        };
        let mut by = Evaluation::new(&mut world, &mut env, &mut varies, self.effort);
        let result = evaluate(&mut by);
        let wanted = world.wanted.take();
        ruling.env = env;
        ruling.varies = varies;
        ruling.links = links;
        ruling.ahead = ahead;
        result.map_err(|stop| stopped(self.request, stop, wanted, site, ctx))
    }

    /// Decides about the path: rewriting, `Redirect`, `FallbackResource`, or none of them.
    fn decide_path(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<AdmittedTarget> {
        let Some(held) = ruling.places.clone() else { return Ok(AdmittedTarget::Content) };
        let applied = held.applied();
        let location = site.location(self.request.location);
        let options = DirOptionsGiven::new(&applied, ruling, location);
        if ruling.followed.as_ref() != Some(&target.file) {
            for options in options.all() {
                self.judge_links(target, options, site, ctx)?;
            }
            ruling.followed = Some(target.file.clone());
        }
        // If this step has to wait after the rules, they are applied to the same request again.
        let before = (self.request.args.clone(), ruling.is_final);
        if let Some(onward) = self.send_on(ruling, target, &applied, RuleScope::All, site, ctx)? {
            return Ok(onward);
        }
        self.find_program(ruling, target, &applied, site, ctx)?;
        if target.kind == TargetKind::File && !target.path_info.is_empty() {
            let is_script = location.pass.is_some() || ruling.program.is_some();
            match applied.path_info() {
                _ if ruling.drops_path_info => {
                    return Ok(AdmittedTarget::Elsewhere(self.cut_path(ruling, target, site, ctx)));
                }
                PathInfoRule::Refuse => return Err(NextStep::Fail(404)),
                PathInfoRule::Accept if !is_script => {
                    return Ok(AdmittedTarget::Elsewhere(self.cut_path(ruling, target, site, ctx)));
                }
                PathInfoRule::Accept | PathInfoRule::Default => {}
            }
        }
        if target.kind == TargetKind::Missing
            && !ruling.is_index
            && ruling.handler.is_none()
            && applied.nature(ruling.name()).handler.is_none()
            && let Some(fallback) = applied.fallback()
            && *fallback != *self.request.uri
        {
            // As in Apache, it is searched for like an index.
            ruling.leads_to_index = true;
            return Ok(AdmittedTarget::Elsewhere(self.fall_back(ruling, fallback, site, ctx)));
        }
        if let Err(next) = self.set_out(ruling, target, site, ctx) {
            if matches!(next, NextStep::Probe(_) | NextStep::CheckPassword(_)) {
                (self.request.args, ruling.is_final) = before;
            }
            return Err(next);
        }
        Ok(AdmittedTarget::Content)
    }
}

impl HtaccessRequest<'_> {
    /// The refusal of a path that is judged for another request.
    pub(super) fn refusal(&self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        match self.is_silent {
            true => NextStep::Fail(403),
            false => denied(self.request, site, ctx),
        }
    }
}

pub(super) fn denied(request: &Request, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"client denied by server configuration (.htaccess): ");
        push_uri(out, &request.uri, UriPart::Path);
    });
    NextStep::Fail(403)
}

/// The next step after a stopped evaluation.
pub(super) fn stopped(
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
        (stop, _) => {
            let level = match stop {
                Stop::GaveUp(_) => LogLevel::Alert,
                _ => LogLevel::Error,
            };
            log_lines::error(request, site, ctx, level, |out| push_reason(&stop, out));
            NextStep::Fail(match stop {
                Stop::Refused(status, _) | Stop::RefusedAt(status, ..) => status,
                Stop::Wait | Stop::GaveUp(_) => 500,
            })
        }
    }
}
