//! Decides from a response head whether to store the response, as public or private, how long, and
//! under which key.
//!
//! Owns the precedence of the sources: `X-LiteSpeed-Cache-Control`, then targeted fields (RFC
//! 9213), then `Surrogate-Control`, then `Cache-Control` and `Expires`, then the configuration.

use bolide_http::cache_control::{self, CacheControl, RequestControl};
use bolide_http::lscache::{self, CacheScope, LsCacheControl};
use bolide_http::negotiate::Coding;
use bolide_http::no_vary_search::NoVarySearch;
use bolide_http::vary::VaryField;
use bolide_http::{FieldMap, Method, Name, date};

use crate::rules::decision::{AnswerSource, StoreDecision, StoreRefusal, StoreVerdict};
use crate::rules::fresh;
use crate::rules::gate::Environment;
use crate::rules::identity::{self, Facts};
use crate::rules::line_protocol::{self, PurgeOrder, PurgeTarget};
use crate::rules::policy::{CachePolicy, Mode, SetCookie};
use crate::rules::{magento, redirect, validate, zone};

/// A response head with its circumstances.
#[derive(Clone, Copy, Debug)]
pub struct AnswerFacts<'a> {
    /// The status.
    pub status: u16,
    /// The fields as received.
    pub fields: &'a FieldMap,
    /// The length of the body in bytes, if it is known.
    pub body_len: Option<u64>,
    /// When the request was sent upstream, in milliseconds since 1970.
    pub asked: u64,
    /// When the head arrived, in milliseconds since 1970.
    pub arrived: u64,
}

/// Decides about a response. `has_session` says whether the request has a session, after merging
/// the cookies that the response sets ([`session`](super::session)).
#[must_use]
pub fn decide(
    policy: &CachePolicy,
    facts: &Facts<'_>,
    answer: &AnswerFacts<'_>,
    has_session: bool,
) -> StoreDecision {
    let mut decision = StoreDecision::new();
    decision.age = fresh::initial_age(answer.fields, answer.asked, answer.arrived);
    decision.purges = line_protocol::purges(policy, facts.method, answer.status, answer.fields);
    if policy.mode == Mode::Zone {
        decision.verdict = match zone::decide(policy, facts, answer, &mut decision) {
            Ok(()) => StoreVerdict::Keep(CacheScope::Public),
            Err(refusal) => StoreVerdict::Refuse(refusal),
        };
        return decision;
    }
    if policy.mode == Mode::Magento {
        decision.esi = is_esi(policy, facts, answer);
        decision.verdict = match magento::decide(policy, facts, answer, &mut decision) {
            Ok(()) => StoreVerdict::Keep(CacheScope::Public),
            Err(refusal) => StoreVerdict::Refuse(refusal),
        };
        return decision;
    }
    // An LSCache application names the pages that a change affects, and names them exactly: a POST
    // that adds to a cart and redirects to the front page does not change that page for other
    // clients.
    if policy.invalidates && !line_protocol::is_lscache(answer.fields) {
        for target in validate::invalidated(facts, answer) {
            let target = PurgeTarget::Url(target.into());
            let (scope, effect) = (CacheScope::Public, lscache::PurgeEffect::Dead);
            decision.purges.push(PurgeOrder { scope, effect, target });
        }
    }
    let said = Said::by(policy, facts, answer);
    decision.source = said.source;
    decision.esi = policy.esi && said.esi;
    decision.verdict = match keep(policy, facts, answer, &said, &mut decision) {
        Ok(CacheScope::Private) if !has_session => StoreVerdict::Refuse(StoreRefusal::NoSession),
        Ok(scope) => StoreVerdict::Keep(scope),
        Err(refusal) => StoreVerdict::Refuse(refusal),
    };
    if let Some(scope) = decision.scope() {
        let is_private = said.http.private || said.control.scope() == Some(CacheScope::Private);
        assert!(
            scope == CacheScope::Private || !is_private,
            "a private response is never stored as public"
        );
        debug_assert!(
            decision.ttl > 0
                || decision.stale_while_revalidate > 0
                || decision.source == AnswerSource::AccelExpires,
            "a stored response has a lifetime"
        );
        debug_assert!(
            !decision.no_vary || decision.vary.is_empty() && decision.vary_value.is_none(),
            "a response without vary part varies by nothing"
        );
    }
    decision
}

/// Whether the body of a response is ESI, stored or not; as [`StoreDecision::esi`].
#[must_use]
pub fn is_esi(policy: &CachePolicy, facts: &Facts<'_>, answer: &AnswerFacts<'_>) -> bool {
    policy.esi
        && match policy.mode {
            Mode::Zone => false,
            Mode::Magento => magento::is_markup(answer.fields),
            Mode::Auto | Mode::LsCache => Said::by(policy, facts, answer).esi,
        }
}

/// The directives of the first source in order of precedence.
pub(super) struct Said {
    source: AnswerSource,
    /// LSCache directives of the configuration, the request and the response.
    control: LsCacheControl,
    /// HTTP directives.
    http: CacheControl,
    esi: bool,
}

impl Said {
    /// Nothing but a source.
    pub(super) fn of(source: AnswerSource) -> Self {
        let (control, http) = (LsCacheControl::default(), CacheControl::default());
        Self { source, control, http, esi: false }
    }

    fn by(policy: &CachePolicy, facts: &Facts<'_>, answer: &AnswerFacts<'_>) -> Self {
        let mut control = facts.environment.control;
        let mut said = Self {
            source: AnswerSource::Unspecified,
            control,
            http: CacheControl::default(),
            esi: control.esi == Some(true),
        };
        // What the body is does not depend on which field says how long it may be stored.
        let surrogate = cache_control::surrogate(answer.fields.all_text(b"Surrogate-Control"));
        said.esi |= surrogate.as_ref().is_some_and(|surrogate| surrogate.esi);
        let mut marks = answer.fields.all_text(b"X-LiteSpeed-Cache-Control").peekable();
        if marks.peek().is_some() {
            marks.for_each(|line| control.add(line));
            let esi = control.esi.unwrap_or(said.esi);
            return Self { source: AnswerSource::LiteSpeed, control, esi, ..said };
        }
        if policy.ignore.cache_control {
            return said;
        }
        for name in &policy.targets {
            if let Some(http) = cache_control::targeted(answer.fields.all_text(name)) {
                return Self { source: AnswerSource::Targeted, http, ..said };
            }
        }
        // `Surrogate-Control` with ESI alone has no directive about storing.
        if let Some(surrogate) = surrogate
            && surrogate.control != CacheControl::default()
        {
            return Self { source: AnswerSource::Surrogate, http: surrogate.control, ..said };
        }
        if answer.fields.get(Name::CacheControl).is_some() {
            said.source = AnswerSource::CacheControl;
            said.http = CacheControl::of(answer.fields.all(Name::CacheControl));
        }
        said
    }
}

/// Whether the response is stored; fills in how.
fn keep(
    policy: &CachePolicy,
    facts: &Facts<'_>,
    answer: &AnswerFacts<'_>,
    said: &Said,
    decision: &mut StoreDecision,
) -> Result<CacheScope, StoreRefusal> {
    let environment = facts.environment;
    if facts.method != Method::Get {
        return Err(StoreRefusal::Method);
    }
    if environment.is_off || environment.control.no_cache || environment.control.no_store {
        return Err(StoreRefusal::Environment);
    }
    let has_cookies = facts.fields.get(Name::Cookie).is_some();
    if (!policy.with_query && !facts.query().is_empty()) || (!policy.with_cookies && has_cookies) {
        return Err(StoreRefusal::Request);
    }
    if policy.honour_request && RequestControl::of(facts.fields).no_store {
        return Err(StoreRefusal::RequestNoStore);
    }
    // Partial content, a 304 and interim responses are not stored.
    if matches!(answer.status, 0..200 | 206 | 304 | 416) {
        return Err(StoreRefusal::Status);
    }
    if redirect::leads_to_own_key(policy, facts, answer) {
        return Err(StoreRefusal::OwnRedirect);
    }
    let scope = match said.source {
        AnswerSource::LiteSpeed => marked(policy, facts, said, decision)?,
        _ => standard(policy, facts, answer, said, decision)?,
    };
    let is_coded = answer.fields.get(Name::ContentEncoding).is_some();
    if scope == CacheScope::Public && said.esi && (!policy.esi || is_coded) {
        return Err(StoreRefusal::Unassembled);
    }
    let is_open = match scope {
        CacheScope::Public => policy.public && !environment.no_public,
        CacheScope::Private => policy.private && !environment.no_private,
    };
    if !is_open {
        return Err(StoreRefusal::Space);
    }
    if decision.ttl == 0 && decision.stale_while_revalidate == 0 {
        return Err(StoreRefusal::Stale);
    }
    if answer.body_len.is_some_and(|len| len > policy.object_max) {
        return Err(StoreRefusal::TooLarge);
    }
    if answer.status == 200 && answer.body_len == Some(0) {
        return Err(StoreRefusal::Empty);
    }
    let sets_cookies = !policy.ignore.set_cookie && answer.fields.get(Name::SetCookie).is_some();
    let is_marked = said.source == AnswerSource::LiteSpeed;
    match policy.set_cookie {
        SetCookie::Prevents if sets_cookies => return Err(StoreRefusal::SetCookie),
        SetCookie::NeedsMark if sets_cookies && !is_marked => return Err(StoreRefusal::SetCookie),
        _ => {}
    }
    vary(policy, answer, said, decision)?;
    decision.cookies = answer.fields.all_text(b"LSC-Cookie").map(Into::into).collect();
    decision.search = NoVarySearch::of(answer.fields);
    decision.rekey |= sets_cookies || decision.no_vary;
    Ok(scope)
}

/// Applies `X-LiteSpeed-Cache-Control`.
fn marked(
    policy: &CachePolicy,
    facts: &Facts<'_>,
    said: &Said,
    decision: &mut StoreDecision,
) -> Result<CacheScope, StoreRefusal> {
    let control = &said.control;
    if control.no_store {
        return Err(StoreRefusal::NoStore);
    }
    if control.no_cache {
        return Err(StoreRefusal::NoCache);
    }
    // `page_cache on` stores a response without a scope; `auto` does not.
    let by_default = by_default(policy, facts.environment);
    let scope = control.scope().or(by_default).ok_or(StoreRefusal::NoLifetime)?;
    if scope == CacheScope::Public {
        judge_marked(facts, control)?;
    }
    decision.ttl = control.lifetime().unwrap_or(match scope {
        CacheScope::Public => policy.ttl,
        CacheScope::Private => policy.private_ttl,
    });
    if decision.ttl == 0 {
        return Err(StoreRefusal::Stale);
    }
    decision.stale_while_revalidate = control.max_stale.unwrap_or(policy.max_stale);
    decision.says_refreshable = control.max_stale.is_some();
    if let Some(max_stale) = control.max_stale {
        // Behind that the page is gone, also where the application fails.
        (decision.stale_if_error, decision.says_for_errors) = (max_stale, true);
    }
    decision.no_vary = control.no_vary;
    // The age of the object begins when the application sent it.
    decision.age = 0;
    Ok(scope)
}

/// As [`judge_authorization`], by LSCache's directives.
pub(super) fn judge_marked(
    facts: &Facts<'_>,
    control: &LsCacheControl,
) -> Result<(), StoreRefusal> {
    match control.says_public || control.s_maxage.is_some() {
        true => Ok(()),
        false => judge_authorization(facts, &CacheControl::default()),
    }
}

/// RFC 9111 §3.5: whether a response to an authenticated request may be stored.
pub(super) fn judge_authorization(
    facts: &Facts<'_>,
    http: &CacheControl,
) -> Result<(), StoreRefusal> {
    let is_allowed = http.public || http.must_revalidate || http.s_maxage.is_some();
    let is_proved =
        facts.environment.is_authorized || facts.fields.get(Name::Authorization).is_some();
    match is_proved && !is_allowed {
        true => Err(StoreRefusal::Authorization),
        false => Ok(()),
    }
}

/// Applies HTTP directives, the heuristic or the configuration (RFC 9111 §3).
fn standard(
    policy: &CachePolicy,
    facts: &Facts<'_>,
    answer: &AnswerFacts<'_>,
    said: &Said,
    decision: &mut StoreDecision,
) -> Result<CacheScope, StoreRefusal> {
    let http = &said.http;
    if http.no_store && !http.must_understand {
        return Err(StoreRefusal::NoStore);
    }
    // RFC 9111 §5.2.2.3: only a cache that understands the status may store the response; it then
    // ignores `no-store`.
    if http.must_understand && bolide_http::status::reason(answer.status).is_empty() {
        return Err(StoreRefusal::Status);
    }
    if http.private {
        return Err(StoreRefusal::Private);
    }
    if http.no_cache {
        return Err(StoreRefusal::NoCache);
    }
    judge_authorization(facts, http)?;
    let by_default = by_default(policy, facts.environment);
    let (lifetime, source) =
        lifetime(policy, answer, said, by_default).ok_or(StoreRefusal::NoLifetime)?;
    decision.source = source;
    let is_explicit = !matches!(source, AnswerSource::Heuristic | AnswerSource::Configuration);
    if source == AnswerSource::Configuration {
        decision.age = 0;
    }
    decision.ttl = lifetime.saturating_sub(decision.age);
    // RFC 9111 §4.2.4: these directives forbid stale responses. `s-maxage` does, too, but a
    // response with both s-maxage and stale-while-revalidate means both.
    decision.must_revalidate = http.forbids_stale();
    if is_explicit && !(http.must_revalidate || http.proxy_revalidate) {
        // The excess age reduces the window after the lifetime, too.
        let over = decision.age.saturating_sub(lifetime);
        let rest = |window: Option<u32>| window.unwrap_or(0).saturating_sub(over);
        decision.stale_while_revalidate = rest(http.stale_while_revalidate);
        decision.stale_if_error = rest(http.stale_if_error);
        decision.says_refreshable = http.stale_while_revalidate.is_some();
        decision.says_for_errors = http.stale_if_error.is_some();
    }
    Ok(match said.control.scope() {
        Some(scope) => scope,
        None if source == AnswerSource::Configuration => by_default.unwrap_or(CacheScope::Public),
        None => CacheScope::Public,
    })
}

/// The scope of a response without directives; `None` means not stored.
fn by_default(policy: &CachePolicy, environment: &Environment) -> Option<CacheScope> {
    environment.by_default.or((policy.mode == Mode::LsCache).then_some(CacheScope::Public))
}

/// The freshness lifetime in seconds, and its source.
fn lifetime(
    policy: &CachePolicy,
    answer: &AnswerFacts<'_>,
    said: &Said,
    by_default: Option<CacheScope>,
) -> Option<(u32, AnswerSource)> {
    if let Some(seconds) = said.http.shared_lifetime() {
        return Some((seconds, said.source));
    }
    let is_targeted = matches!(said.source, AnswerSource::Targeted | AnswerSource::Surrogate);
    // RFC 9213 §2.2: a targeted field replaces Cache-Control and Expires.
    if !is_targeted
        && !policy.ignore.expires
        && let Some(expires) = cache_control::expires(answer.fields)
    {
        let date = answer.fields.get(Name::Date).and_then(date::parse);
        let from = date.unwrap_or(answer.arrived / 1000);
        let seconds = expires.saturating_sub(from).min(cache_control::SECONDS_MAX.into());
        return Some((seconds as u32, AnswerSource::Expires));
    }
    if let Some(heuristic) = policy.heuristic
        && is_heuristic(answer.status, said.http.public)
        && let Some(modified) = answer.fields.get(Name::LastModified).and_then(date::parse)
    {
        let since = (answer.arrived / 1000).saturating_sub(modified);
        let guess = since.saturating_mul(heuristic.percent.into()) / 100;
        return Some((guess.min(heuristic.max.into()) as u32, AnswerSource::Heuristic));
    }
    if let Some(seconds) = policy.valid.seconds(answer.status) {
        return Some((seconds, AnswerSource::Configuration)).filter(|_| seconds > 0);
    }
    if let Some(seconds) = said.control.lifetime() {
        return Some((seconds, AnswerSource::Configuration)).filter(|_| answer.status == 200);
    }
    let seconds = match said.control.scope().or(by_default)? {
        CacheScope::Public => policy.ttl,
        CacheScope::Private => policy.private_ttl,
    };
    (answer.status == 200 && seconds > 0).then_some((seconds, AnswerSource::Configuration))
}

/// Statuses with a heuristic lifetime (RFC 9110 §15.1), or any with `public`.
const fn is_heuristic(status: u16, is_public: bool) -> bool {
    is_public || matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// The names that the key depends on beyond its base.
pub(super) fn vary(
    policy: &CachePolicy,
    answer: &AnswerFacts<'_>,
    said: &Said,
    decision: &mut StoreDecision,
) -> Result<(), StoreRefusal> {
    for line in answer.fields.all_text(b"X-LiteSpeed-Vary") {
        for word in lscache::varies(line) {
            match word {
                lscache::LsVary::Cookie(name) => {
                    let name = [identity::COOKIE, name].concat().into_boxed_slice();
                    if !decision.vary.contains(&name) {
                        decision.vary.push(name);
                    }
                    if decision.vary.len() > bolide_http::vary::NAMES_MAX {
                        return Err(StoreRefusal::Vary);
                    }
                }
                lscache::LsVary::Value(value) => decision.vary_value = Some(value.into()),
            }
            decision.rekey = true;
        }
    }
    let vary = if policy.ignore.vary { VaryField::Nothing } else { varied(answer.fields) };
    let vary = match said.source {
        // The application declares dependencies on cookies by LSCache's fields.
        AnswerSource::LiteSpeed => vary.without(b"cookie"),
        _ => vary,
    };
    if vary == VaryField::Anything {
        return Err(StoreRefusal::Vary);
    }
    if decision.no_vary && vary.names().iter().any(|name| **name == *b"origin") {
        // One copy cannot be valid for every origin (Fetch, CORS protocol and HTTP caches).
        return Err(StoreRefusal::Vary);
    }
    if decision.no_vary {
        decision.vary.clear();
        decision.vary_value = None;
    } else {
        let is_common = has_common_coding(answer.fields);
        decision.vary.extend(vary.names().iter().map(|name| match &**name {
            b"accept-encoding" if is_common => identity::CODINGS.into(),
            _ => name.clone(),
        }));
    }
    Ok(())
}

/// Whether the response has one of the content codings that keys distinguish.
fn has_common_coding(answer: &FieldMap) -> bool {
    let mut codings = answer.all(Name::ContentEncoding);
    let coding = codings.next().unwrap_or_default();
    let known = [Coding::Gzip, Coding::Brotli, Coding::Zstd];
    codings.next().is_none()
        && known.iter().any(|known| coding.eq_ignore_ascii_case(known.token().as_bytes()))
}

/// `Vary` without the fields by which one object has all variants.
fn varied(answer: &FieldMap) -> VaryField {
    let vary = VaryField::of(answer);
    // A response that the upstream compressed exists in that coding only.
    let is_coded = answer
        .get(Name::ContentEncoding)
        .is_some_and(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"));
    if is_coded { vary } else { vary.without(b"accept-encoding") }
}
