//! Which responses of Magento are stored, and for how long.
//!
//! Owns the order of the rules; they read `Cache-Control` and `Expires`, not the fields of LSCache.
//! Easiest to break: what makes a response one visitor's own is looked at before its lifetime.

use bolide_http::cache_control::{self, CacheControl};
use bolide_http::cookies::Cookies;
use bolide_http::{FieldMap, Method, Name, date};

use super::{CACHE_ID, VARY, is_graphql};
use crate::rules::decide::{AnswerFacts, Said, judge_authorization, vary};
use crate::rules::decision::{AnswerSource, StoreDecision, StoreRefusal};
use crate::rules::identity::Facts;
use crate::rules::policy::CachePolicy;
use crate::rules::redirect::leads_to_own_key;

/// Seconds of a response that says nothing, where its status allows to store it.
const DEFAULT_SECONDS: u32 = 120;
/// Seconds that it is remembered that a response was not to be stored, and that it was private.
const REMEMBERED_SECONDS: u32 = 120;
const PRIVATE_SECONDS: u32 = 24 * 60 * 60;
/// Seconds that a stale object may be served while it is fetched anew.
pub const STALE_SECONDS: u32 = 300;
/// Seconds that one may be served while the upstream fails.
pub const ERROR_SECONDS: u32 = 3 * 24 * 60 * 60;

/// Whether a response may have ESI markup in it.
pub(crate) fn is_markup(fields: &FieldMap) -> bool {
    let kind = fields.get(Name::ContentType).unwrap_or_default();
    [&b"text/html"[..], b"text/xml"]
        .iter()
        .any(|known| kind.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known)))
}

/// Decides about a response; fills in how it is stored, or how long it is remembered that it is
/// not.
pub(crate) fn decide(
    policy: &CachePolicy,
    facts: &Facts<'_>,
    answer: &AnswerFacts<'_>,
    decision: &mut StoreDecision,
) -> Result<(), StoreRefusal> {
    let environment = facts.environment;
    if facts.method != Method::Get {
        return Err(StoreRefusal::Method);
    }
    if environment.is_off
        || environment.no_public
        || environment.control.no_cache
        || environment.control.no_store
    {
        return Err(StoreRefusal::Environment);
    }
    let http = match policy.ignore.cache_control {
        true => CacheControl::default(),
        false => CacheControl::of(answer.fields.all(Name::CacheControl)),
    };
    decision.remembered = Some(REMEMBERED_SECONDS);
    if matches!(answer.status, 0..200 | 206 | 304 | 403 | 404 | 416 | 500..) {
        return Err(StoreRefusal::Status);
    }
    if leads_to_own_key(policy, facts, answer) {
        return Err(StoreRefusal::OwnRedirect);
    }
    if http.private {
        decision.remembered = Some(PRIVATE_SECONDS);
        return Err(StoreRefusal::Private);
    }
    // Varnish leaves this to its configuration.
    judge_authorization(facts, &http)?;
    if is_other_variant(facts, answer) {
        return Err(StoreRefusal::Variant);
    }
    let surrogate = cache_control::surrogate(answer.fields.all_text(b"Surrogate-Control"));
    // With ESI alone it says nothing about storing.
    let control =
        surrogate.map(|said| said.control).filter(|said| *said != CacheControl::default());
    match control {
        Some(said) if said.no_store => return Err(StoreRefusal::NoStore),
        None if http.no_store => return Err(StoreRefusal::NoStore),
        None if http.no_cache => return Err(StoreRefusal::NoCache),
        Some(_) | None => {}
    }
    let lifetime = lifetime(policy, answer, &http, decision)?;
    decision.ttl = lifetime.saturating_sub(decision.age);
    if decision.ttl == 0 {
        return Err(StoreRefusal::Stale);
    }
    if answer.body_len.is_some_and(|len| len > policy.object_max) {
        return Err(StoreRefusal::TooLarge);
    }
    if answer.status == 200 && answer.body_len == Some(0) {
        return Err(StoreRefusal::Empty);
    }
    debug_assert!(!http.private, "a private response is stored for no visitor");
    vary(policy, answer, &Said::of(AnswerSource::CacheControl), decision)?;
    decision.rekey = true;
    Ok(())
}

/// Whether a response is for another variant than its request asked for.
fn is_other_variant(facts: &Facts<'_>, answer: &AnswerFacts<'_>) -> bool {
    if is_graphql(facts.target)
        && let Some(asked) = facts.fields.get_text(CACHE_ID)
    {
        return answer.fields.get_text(CACHE_ID) != Some(asked);
    }
    let before = Cookies::of(facts.fields);
    let mut after = Cookies::of(facts.fields);
    after.merge(answer.fields, facts.cookie_url(), answer.arrived / 1000);
    let values = |cookies: &Cookies<'_>| -> Vec<Vec<u8>> {
        cookies.read_as(VARY).map(|(_, value)| value.to_vec()).collect()
    };
    values(&before) != values(&after)
}

/// The freshness lifetime in seconds; sets its source.
fn lifetime(
    policy: &CachePolicy,
    answer: &AnswerFacts<'_>,
    http: &CacheControl,
    decision: &mut StoreDecision,
) -> Result<u32, StoreRefusal> {
    let is_storable = matches!(answer.status, 200 | 203 | 204 | 300 | 301 | 302 | 307 | 410 | 414);
    if !is_storable {
        return Err(StoreRefusal::Status);
    }
    if let Some(seconds) = http.shared_lifetime() {
        decision.source = AnswerSource::CacheControl;
        return Ok(seconds);
    }
    if !policy.ignore.expires
        && let Some(expires) = cache_control::expires(answer.fields)
    {
        decision.source = AnswerSource::Expires;
        let date = answer.fields.get(Name::Date).and_then(date::parse);
        let from = date.unwrap_or(answer.arrived / 1000);
        let seconds = expires.saturating_sub(from).min(cache_control::SECONDS_MAX.into());
        return Ok(seconds as u32);
    }
    decision.source = AnswerSource::Configuration;
    decision.age = 0;
    if let Some(seconds) = policy.valid.seconds(answer.status) {
        return Ok(seconds);
    }
    match answer.status {
        302 | 307 => Err(StoreRefusal::NoLifetime),
        _ => Ok(DEFAULT_SECONDS),
    }
}
