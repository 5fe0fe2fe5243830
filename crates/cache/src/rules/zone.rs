//! nginx's rules for its zones: `X-Accel-Expires` before `Expires` and `Cache-Control`, then the
//! seconds by status; `Set-Cookie` and `Vary: *` prevent.

use http::cache_control::{self, AccelExpires, CacheControl};
use http::vary::Vary;
use http::{Method, Name, date};

use crate::rules::decide::{Answer, Decision, Refusal, Source, varied};
use crate::rules::identity::Facts;
use crate::rules::policy::Policy;

/// Whether the answer is kept; fills in how.
pub(crate) fn decide(
    policy: &Policy,
    facts: &Facts<'_>,
    answer: &Answer<'_>,
    decision: &mut Decision,
) -> Result<(), Refusal> {
    // nginx counts from the arrival, whatever age the answer came with.
    decision.age = 0;
    match facts.method {
        Method::Get => {}
        Method::Post if policy.with_post => {}
        _ => return Err(Refusal::Method),
    }
    if matches!(answer.status, 0..200 | 206 | 304 | 416) {
        return Err(Refusal::Status);
    }
    if !policy.ignore.set_cookie && answer.fields.get(Name::SetCookie).is_some() {
        return Err(Refusal::SetCookie);
    }
    let (seconds, source) = lifetime(policy, answer, decision)?;
    if seconds == 0 {
        return Err(Refusal::Stale);
    }
    decision.ttl = seconds;
    decision.source = source;
    if answer.body_len.is_some_and(|len| len > policy.object_max) {
        return Err(Refusal::TooLarge);
    }
    if !policy.ignore.vary {
        let vary = varied(answer.fields);
        if vary == Vary::Anything {
            return Err(Refusal::Vary);
        }
        decision.vary = vary.names().to_vec();
    }
    Ok(())
}

fn lifetime(
    policy: &Policy,
    answer: &Answer<'_>,
    decision: &mut Decision,
) -> Result<(u32, Source), Refusal> {
    let now = answer.arrived / 1000;
    let until =
        |moment: u64| moment.saturating_sub(now).min(cache_control::SECONDS_MAX.into()) as u32;
    let accel = answer.fields.get_text(b"X-Accel-Expires").filter(|_| !policy.ignore.accel_expires);
    match accel.and_then(cache_control::accel_expires) {
        Some(AccelExpires::Off) => return Err(Refusal::NoStore),
        Some(AccelExpires::Seconds(seconds)) => return Ok((seconds, Source::AccelExpires)),
        Some(AccelExpires::Until(moment)) => return Ok((until(moment), Source::AccelExpires)),
        None => {}
    }
    if !policy.ignore.cache_control {
        let control = CacheControl::of(answer.fields.all(Name::CacheControl));
        decision.stale_while_revalidate = control.stale_while_revalidate.unwrap_or(0);
        let for_errors = control.stale_if_error.or(control.stale_while_revalidate);
        decision.stale_if_error = for_errors.unwrap_or(0);
        if control.no_store {
            return Err(Refusal::NoStore);
        }
        if control.no_cache {
            return Err(Refusal::NoCache);
        }
        if control.private {
            return Err(Refusal::Private);
        }
        if let Some(seconds) = control.shared_lifetime() {
            return Ok((seconds, Source::CacheControl));
        }
    }
    if !policy.ignore.expires
        && let Some(text) = answer.fields.get(Name::Expires)
    {
        return Ok((date::parse(text).map_or(0, until), Source::Expires));
    }
    let seconds = policy.valid.seconds(answer.status).ok_or(Refusal::NoLifetime)?;
    Ok((seconds, Source::Configuration))
}
