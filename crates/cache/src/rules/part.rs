//! Parts of a response that are stored on their own: those of a combined response, and inlines of
//! a page.
//!
//! Easiest to break: a part is stored for no client that might not have got the response that it
//! came in, so what it says itself only narrows what that response permits.

use bolide_http::lscache::{CacheScope, LsCacheControl};
use bolide_http::vary::VaryField;
use bolide_http::{FieldMap, Name};

use crate::rules::decide::{self, AnswerFacts, judge_marked};
use crate::rules::decision::{AnswerSource, StoreRefusal, StoreVerdict};
use crate::rules::identity::Facts;
use crate::rules::line_protocol::is_lscache;
use crate::rules::policy::CachePolicy;

/// The fields of a response that distinguish the clients that get it: they hold for its parts, too.
pub const DISTINGUISHING: [&[u8]; 3] = [b"Vary", b"X-LiteSpeed-Vary", b"Set-Cookie"];

/// The directives of a part of the response `whole` to the request `facts`, from its own ones. Its
/// own `public` or `private` decides, as LiteSpeed documents; without such a word, the response
/// decides.
#[must_use]
pub fn part_control(
    policy: &CachePolicy,
    facts: &Facts<'_>,
    whole: &AnswerFacts<'_>,
    own: LsCacheControl,
) -> LsCacheControl {
    let mut control = own;
    let sets_cookies = whole.fields.get(Name::SetCookie).is_some();
    // A response that sets cookies may be private.
    control.no_cache |= sets_cookies && own.scope() == Some(CacheScope::Public);
    // LSCache's directives exempt a response from `Vary: Cookie`, which this one does not expect.
    control.no_cache |= !is_lscache(whole.fields)
        && VaryField::of(whole.fields).names().iter().any(|name| **name == *b"cookie");
    control.no_vary &= !varies(whole.fields);
    if own.says_public || own.private || own.shared || control.scope().is_none() {
        return control;
    }
    let decision = decide::decide(policy, facts, whole, true);
    match decision.verdict {
        StoreVerdict::Keep(CacheScope::Private) => control.private = true,
        StoreVerdict::Keep(CacheScope::Public) => {}
        // It says nothing.
        StoreVerdict::Refuse(StoreRefusal::NoLifetime) => {}
        StoreVerdict::Refuse(_) => control.no_cache = true,
    }
    let is_said = !matches!(
        decision.source,
        AnswerSource::Unspecified | AnswerSource::Heuristic | AnswerSource::Configuration
    );
    if decision.scope().is_some() && is_said {
        control.max_age = control.lifetime().map(|seconds| seconds.min(decision.ttl));
        control.s_maxage = None;
    }
    debug_assert!(
        control.scope() != Some(CacheScope::Public) || own.scope() == Some(CacheScope::Public),
        "a response makes no part public"
    );
    control
}

/// Whether a part with these directives may be stored for all who get the response to `facts`:
/// as for a response of its own, an implied `public` is not enough for an authenticated request.
#[must_use]
pub fn is_part_for_all(facts: &Facts<'_>, own: &LsCacheControl) -> bool {
    own.scope() == Some(CacheScope::Public) && judge_marked(facts, own).is_ok()
}

/// Whether a response without coding is another one for some clients.
#[must_use]
pub fn varies(fields: &FieldMap) -> bool {
    fields.get_text(b"X-LiteSpeed-Vary").is_some()
        || VaryField::of(fields).without(b"accept-encoding") != VaryField::Nothing
}

#[cfg(test)]
mod tests {
    use bolide_http::FieldMap;
    use bolide_http::lscache::{CacheScope, LsCacheControl};

    use super::{is_part_for_all, part_control};
    use crate::rules::tests::{facts, fields};
    use crate::rules::{AnswerFacts, CachePolicy, Environment, Mode, decide};

    const OWN: [&str; 10] = [
        "max-age=60",
        "s-maxage=60",
        "public",
        "public,max-age=60,no-vary",
        "private,max-age=60",
        "shared,private",
        "no-cache",
        "no-store,public",
        "no-vary",
        "",
    ];
    const WHOLE: [&str; 16] = [
        "",
        "X-LiteSpeed-Cache-Control: public,max-age=9",
        "X-LiteSpeed-Cache-Control: max-age=9",
        "X-LiteSpeed-Cache-Control: private,max-age=9",
        "X-LiteSpeed-Cache-Control: no-cache",
        "X-LiteSpeed-Cache-Control: no-store",
        "X-LiteSpeed-Cache-Control: no-cache|Vary: Cookie",
        "X-LiteSpeed-Vary: cookie=cur",
        "Cache-Control: max-age=9",
        "Cache-Control: private",
        "Cache-Control: no-store",
        "Cache-Control: max-age=9|Set-Cookie: a=b",
        "Cache-Control: max-age=9|Vary: Cookie",
        "Surrogate-Control: no-store",
        "Vary: *",
        "Vary: Accept-Language",
    ];

    fn answer(fields: &FieldMap) -> AnswerFacts<'_> {
        AnswerFacts { status: 200, fields, body_len: None, asked: 0, arrived: 0 }
    }

    #[test]
    fn a_part_without_a_word_is_stored_no_wider_than_its_response() {
        let environment = Environment::default();
        let modes = [(Mode::Auto, true), (Mode::LsCache, true), (Mode::Auto, false)];
        for (mode, private) in modes {
            let policy = CachePolicy { mode, private, ..CachePolicy::default() };
            for (request, whole, own) in
                ["", "Authorization: Basic dTpw"].iter().flat_map(|request| {
                    WHOLE.iter().flat_map(move |whole| OWN.map(|own| (request, whole, own)))
                })
            {
                let (request, said) = (fields(request), fields(whole));
                let facts = facts(&request, "/", &environment);
                let own = LsCacheControl::of(own.as_bytes());
                let whole_decision = decide(&policy, &facts, &answer(&said), true);
                let part = part_control(&policy, &facts, &answer(&said), own);
                let context = format!("{request:?} {whole} {own:?}: {part:?}");
                let says_nothing = whole.is_empty() || whole.contains("ary: ");
                let is_explicit = own.says_public || own.private || own.shared;
                match (part.scope(), own.scope()) {
                    (Some(CacheScope::Public), Some(CacheScope::Public)) if !is_explicit => {
                        let is_public = whole_decision.scope() == Some(CacheScope::Public);
                        assert!(is_public || says_nothing, "{context}");
                    }
                    (Some(CacheScope::Public), own) => {
                        assert_eq!(own, Some(CacheScope::Public), "{context}");
                    }
                    (Some(CacheScope::Private), own) => assert!(own.is_some(), "{context}"),
                    (None, _) => {}
                }
                assert!(!(part.no_vary && whole.contains("X-LiteSpeed-Vary")), "{context}");
                assert!(!part.no_vary || own.no_vary, "{context}");
                assert!(part.lifetime() <= own.lifetime(), "{context}");
            }
        }
    }

    #[test]
    fn an_implied_public_is_not_enough_for_a_known_reader() {
        let (environment, known) =
            (Environment::default(), Environment { is_authorized: true, ..Environment::default() });
        let (bare, named) = (FieldMap::new(), fields("Authorization: Basic dTpw"));
        for (own, request, environment, expected) in [
            ("max-age=60", &bare, &environment, true),
            ("max-age=60", &named, &environment, false),
            ("max-age=60", &bare, &known, false),
            ("public", &named, &known, true),
            ("s-maxage=60", &named, &known, true),
            ("private,max-age=60", &bare, &environment, false),
            ("", &bare, &environment, false),
        ] {
            let own = LsCacheControl::of(own.as_bytes());
            let facts = facts(request, "/", environment);
            assert_eq!(is_part_for_all(&facts, &own), expected, "{own:?}");
        }
    }
}
