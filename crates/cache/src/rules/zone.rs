//! nginx's rules for its cache zones: `X-Accel-Expires` precedes `Expires` and `Cache-Control`,
//! then come the seconds by status; `Set-Cookie` and `Vary: *` prevent storing. A strict policy
//! adds the rules of RFC 9111 that nginx lacks.

use bolide_http::cache_control::{self, AccelExpires, CacheControl};
use bolide_http::{FieldMap, Method, Name, date};
use memchr::memmem;

use crate::rules::decide::AnswerFacts;
use crate::rules::decision::{AnswerSource, StoreDecision, StoreRefusal};
use crate::rules::identity::{Facts, SENT};
use crate::rules::policy::CachePolicy;

/// LIMIT: bytes of `Vary` with its lines joined, as in nginx.
const VARY_SIZE_MAX: usize = 128;

/// Whether the response is stored; fills in how.
pub(crate) fn decide(
    policy: &CachePolicy,
    facts: &Facts<'_>,
    answer: &AnswerFacts<'_>,
    decision: &mut StoreDecision,
) -> Result<(), StoreRefusal> {
    // nginx counts from the arrival and ignores the age of the response.
    let age = if policy.is_strict { decision.age } else { 0 };
    decision.age = 0;
    match facts.method {
        Method::Get => {}
        Method::Post if policy.with_post => {}
        _ => return Err(StoreRefusal::Method),
    }
    if matches!(answer.status, 0..200 | 304 | 416) || answer.status == 206 && !policy.with_ranges {
        return Err(StoreRefusal::Status);
    }
    if !policy.ignore.set_cookie && answer.fields.get(Name::SetCookie).is_some() {
        return Err(StoreRefusal::SetCookie);
    }
    if policy.is_strict && is_for_one(facts, answer.fields) {
        return Err(StoreRefusal::Authorization);
    }
    let (mut seconds, source) = lifetime(policy, answer, decision)?;
    if matches!(source, AnswerSource::CacheControl | AnswerSource::Expires) {
        decision.age = age;
        // The lifetime from `Expires` counts from the arrival already.
        seconds =
            seconds.saturating_sub(if source == AnswerSource::CacheControl { age } else { 0 });
    }
    // A moment that has passed is an answer that may only be used where old ones may.
    if seconds == 0 && source != AnswerSource::AccelExpires {
        return Err(StoreRefusal::Stale);
    }
    decision.ttl = seconds;
    decision.source = source;
    assert!(
        decision.expired_for == 0 || decision.ttl == 0,
        "what had expired when it arrived is not fresh"
    );
    if !policy.ignore.vary {
        decision.vary = varied(answer.fields).ok_or(StoreRefusal::Vary)?;
    }
    Ok(())
}

/// The fields that `Vary` names, by which requests are told apart as they were sent; none if that
/// is never the same, or too long. One stored variant has one coding, so `Accept-Encoding` counts.
fn varied(answer: &FieldMap) -> Option<Vec<Box<[u8]>>> {
    let size: usize = answer.all(Name::Vary).map(|line| line.len() + 2).sum();
    if size > VARY_SIZE_MAX + 2 {
        return None;
    }
    let mut names: Vec<Box<[u8]>> = Vec::new();
    let words = answer.all(Name::Vary).flat_map(|line| line.split(|byte| b", ".contains(byte)));
    for word in words.filter(|word| !word.is_empty()) {
        if word == b"*" || !word.iter().all(|&byte| bolide_http::structured::is_token(byte)) {
            return None;
        }
        let name = [SENT, &*word.to_ascii_lowercase()].concat().into_boxed_slice();
        if let Err(place) = names.binary_search(&name) {
            names.insert(place, name);
        }
    }
    Some(names)
}

/// RFC 9111 §3.5: a response to an authenticated request that does not allow shared storage.
fn is_for_one(facts: &Facts<'_>, answer: &FieldMap) -> bool {
    let is_proved =
        facts.environment.is_authorized || facts.fields.get(Name::Authorization).is_some();
    let said = CacheControl::of(answer.all(Name::CacheControl));
    is_proved && !(said.public || said.must_revalidate || said.s_maxage.is_some())
}

fn lifetime(
    policy: &CachePolicy,
    answer: &AnswerFacts<'_>,
    decision: &mut StoreDecision,
) -> Result<(u32, AnswerSource), StoreRefusal> {
    let now = answer.arrived / 1000;
    let until =
        |moment: u64| moment.saturating_sub(now).min(cache_control::SECONDS_MAX.into()) as u32;
    let said = match policy.ignore.cache_control {
        true => Said::default(),
        false => Said::by(answer.fields),
    };
    decision.stale_while_revalidate = said.updating;
    decision.stale_if_error = said.errors;
    let accel = answer.fields.get_text(b"X-Accel-Expires").filter(|_| !policy.ignore.accel_expires);
    match accel.and_then(cache_control::accel_expires) {
        Some(AccelExpires::Off) => return Err(StoreRefusal::NoStore),
        Some(AccelExpires::Seconds(seconds)) => return Ok((seconds, AnswerSource::AccelExpires)),
        // As in nginx, the first moment of all is none.
        Some(AccelExpires::Until(0)) | None => {}
        Some(AccelExpires::Until(moment)) => {
            decision.expired_for = now.saturating_sub(moment);
            return Ok((until(moment), AnswerSource::AccelExpires));
        }
    }
    if let Some(refusal) = said.refusal {
        return Err(refusal);
    }
    if let Some(seconds) = said.seconds {
        return Ok((seconds, AnswerSource::CacheControl));
    }
    if !policy.ignore.expires
        && let Some(text) = answer.fields.get(Name::Expires)
    {
        return Ok((date::parse_strictly(text).map_or(0, until), AnswerSource::Expires));
    }
    let seconds = policy.valid.seconds(answer.status).ok_or(StoreRefusal::NoLifetime)?;
    Ok((seconds, AnswerSource::Configuration))
}

/// Seconds after its lifetime in which a response may be sent while it is revalidated, and on
/// errors, by its own directives.
#[must_use]
pub fn grace(answer: &FieldMap) -> (u32, u32) {
    let said = Said::by(answer);
    (said.updating, said.errors)
}

/// `Cache-Control` as nginx parses it: it searches its words anywhere in a line.
#[derive(Debug, Default)]
struct Said {
    refusal: Option<StoreRefusal>,
    seconds: Option<u32>,
    updating: u32,
    errors: u32,
}

impl Said {
    fn by(answer: &FieldMap) -> Self {
        let mut said = Self::default();
        for line in answer.all(Name::CacheControl) {
            said.add(&line.to_ascii_lowercase()).unwrap_or_else(|refusal| {
                said.refusal = Some(refusal);
            });
        }
        said
    }

    fn add(&mut self, line: &[u8]) -> Result<(), StoreRefusal> {
        // These count where `X-Accel-Expires` outweighs the rest.
        if let Some(seconds) = number_behind(line, b"stale-while-revalidate=")? {
            (self.updating, self.errors) = (seconds, seconds);
        }
        if let Some(seconds) = number_behind(line, b"stale-if-error=")? {
            self.errors = seconds;
        }
        let words = [
            (&b"no-cache"[..], StoreRefusal::NoCache),
            (b"no-store", StoreRefusal::NoStore),
            (b"private", StoreRefusal::Private),
        ];
        for (word, refusal) in words {
            if memmem::find(line, word).is_some() {
                return Err(refusal);
            }
        }
        let own = number_behind(line, b"s-maxage=")?;
        if let Some(seconds) =
            own.map_or_else(|| number_behind(line, b"max-age="), |own| Ok(Some(own)))?
        {
            if seconds == 0 {
                return Err(StoreRefusal::Stale);
            }
            self.seconds = Some(seconds);
        }
        Ok(())
    }
}

/// The number behind the first `word`, if the line has it.
fn number_behind(line: &[u8], word: &[u8]) -> Result<Option<u32>, StoreRefusal> {
    let Some(at) = memmem::find(line, word) else { return Ok(None) };
    let mut sum: u32 = 0;
    for byte in &line[at + word.len()..] {
        match byte {
            b',' | b';' | b' ' => break,
            b'0'..=b'9' => sum = sum.saturating_mul(10).saturating_add(u32::from(byte - b'0')),
            _ => return Err(StoreRefusal::Stale),
        }
    }
    Ok(Some(sum.min(cache_control::SECONDS_MAX)))
}
