//! The cache rules with any fields, and their invariants.

use bolide_http::cookies::Cookies;
use bolide_http::lscache::CacheScope;
use bolide_http::message::Scheme;
use bolide_http::{FieldMap, Method};

use bolide_cache::rules::{
    AnswerFacts, AnswerSource, CachePolicy, Environment, Facts, FreshState, Mode, StoreRefusal,
    StoreVerdict, decide, gate, named, session, tags, url, vary_base,
};

/// Parses `data` as lines `name: value` of a response, of a request if they begin with `>`, or of
/// rewrite variables if they begin with `=`. The first byte chooses mode, session and status.
///
/// # Panics
///
/// An invariant does not hold.
pub fn rules(data: &[u8]) {
    let Some((&pick, text)) = data.split_first() else { return };
    let (mut request, mut answer) = (FieldMap::new(), FieldMap::new());
    let mut environment = Environment::default();
    for line in text.split(|&byte| byte == b'\n').take(64) {
        let (side, line) = match line {
            [side @ (b'>' | b'='), rest @ ..] => (*side, rest),
            _ => (b' ', line),
        };
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        match side {
            b'>' => request.push_text(name, value),
            b'=' => drop(environment.set(name, value)),
            _ => answer.push_text(name, value),
        }
    }
    let mode = [Mode::Auto, Mode::LsCache, Mode::Zone, Mode::Magento][usize::from(pick % 4)];
    let has_session = pick & 4 == 0;
    let policy = CachePolicy { mode, ..CachePolicy::default() };
    let facts = Facts {
        method: if pick & 8 == 0 { Method::Get } else { Method::Post },
        fields: &request,
        scheme: Scheme::Https,
        host: b"a.test",
        port: 443,
        server: b"a.test",
        target: b"/page?x=1&utm_source=2",
        authority: b"a.test",
        arrival: b"",
        environment: &environment,
    };
    let status = [200, 404, 301, 500, 206, 304, 103, 299][usize::from(pick >> 5)];
    let head = AnswerFacts { status, fields: &answer, body_len: Some(9), asked: 1, arrived: 2_000 };
    let decision = decide(&policy, &facts, &head, has_session);
    match decision.verdict {
        StoreVerdict::Keep(scope) => {
            assert!(scope == CacheScope::Public || (has_session && mode != Mode::Zone));
            let is_past = decision.source == AnswerSource::AccelExpires;
            assert!(decision.ttl > 0 || decision.stale_while_revalidate > 0 || is_past);
            assert!(facts.method == Method::Get && !matches!(status, 103 | 206 | 304));
            assert!(!environment.is_off || mode == Mode::Zone);
        }
        StoreVerdict::Refuse(refusal) => assert!(refusal != StoreRefusal::TooLarge),
    }
    let times = decision.times(5_000);
    assert!(times.state(4_999) == FreshState::Fresh || decision.ttl == 0);
    assert!(times.age_seconds(0) <= times.age_seconds(u64::MAX / 2));
    let mut out = Vec::new();
    url(&mut out, &facts, &policy);
    assert!(out.starts_with(b"https://a.test:443/page"));
    let mut cookies = Cookies::of(&request);
    cookies.merge(&answer, facts.cookie_url(), 0);
    let value = decision.vary_value.as_deref();
    vary_base(&policy, &environment, &cookies, value, |part| part.push(&mut out));
    decision.vary.iter().for_each(|name| named(&mut out, name, &request, &cookies));
    let mut count = 0;
    tags(&answer, |_| count += 1);
    assert!(count <= text.len() * 2 + 1);
    out.clear();
    let found = session(&mut out, &cookies, |name| name.len() > 2);
    assert_eq!(found, !out.is_empty());
    let _ = gate(&policy, &facts, found);
}
