//! The responses that nginx's zones store.

use bolide_http::{Method, Name};

use super::{Case, EARLIER, LATER, NOW};
use crate::rules::{AnswerSource, CachePolicy, Ignore, Mode, StoreRefusal, Valid, Valids};

fn policy() -> CachePolicy {
    let valid = |statuses: &[u16], seconds| Valid { statuses: statuses.to_vec(), seconds };
    let valids = vec![valid(&[200, 301], 600), valid(&[404], 60), valid(&[500], 0)];
    CachePolicy { mode: Mode::Zone, valid: Valids(valids), ..CachePolicy::default() }
}

#[test]
fn lifetimes_come_from_the_answer_and_then_by_status() {
    use AnswerSource::{AccelExpires, CacheControl, Configuration, Expires};
    let at = |delay: u64| format!("X-Accel-Expires: @{}", NOW / 1000 + delay);
    type Kept = Result<(u32, AnswerSource), StoreRefusal>;
    let rows: Vec<(u16, String, Kept)> = vec![
        (200, String::new(), Ok((600, Configuration))),
        (301, String::new(), Ok((600, Configuration))),
        (404, String::new(), Ok((60, Configuration))),
        (500, String::new(), Err(StoreRefusal::Stale)),
        (403, String::new(), Err(StoreRefusal::NoLifetime)),
        (403, "Cache-Control: max-age=9".into(), Ok((9, CacheControl))),
        (200, "Cache-Control: max-age=9".into(), Ok((9, CacheControl))),
        (200, "Cache-Control: max-age=9, s-maxage=7".into(), Ok((7, CacheControl))),
        (200, "Cache-Control: max-age=0".into(), Err(StoreRefusal::Stale)),
        (200, "Cache-Control: max-age=x".into(), Err(StoreRefusal::Stale)),
        (200, "Cache-Control: no-cache, max-age=9".into(), Err(StoreRefusal::NoCache)),
        (200, "Cache-Control: no-store".into(), Err(StoreRefusal::NoStore)),
        (200, "Cache-Control: private".into(), Err(StoreRefusal::Private)),
        (200, "Cache-Control: public".into(), Ok((600, Configuration))),
        (200, format!("Expires: {LATER}"), Ok((100, Expires))),
        (200, format!("Expires: {EARLIER}"), Err(StoreRefusal::Stale)),
        (200, "Expires: never".into(), Err(StoreRefusal::Stale)),
        (200, format!("Cache-Control: max-age=9|Expires: {EARLIER}"), Ok((9, CacheControl))),
        (200, "X-Accel-Expires: 5|Cache-Control: no-store".into(), Ok((5, AccelExpires))),
        (200, "X-Accel-Expires: 0|Cache-Control: max-age=9".into(), Err(StoreRefusal::NoStore)),
        (200, format!("{}|Expires: 0", at(50)), Ok((50, AccelExpires))),
        (200, at(0), Ok((0, AccelExpires))),
        (200, "X-Accel-Expires: @0|Cache-Control: max-age=9".into(), Ok((9, CacheControl))),
        (200, "X-Accel-Expires: off|Cache-Control: max-age=9".into(), Ok((9, CacheControl))),
        (200, "Set-Cookie: a=1".into(), Err(StoreRefusal::SetCookie)),
        (200, "Vary: *".into(), Err(StoreRefusal::Vary)),
        (200, "X-LiteSpeed-Cache-Control: no-cache".into(), Ok((600, Configuration))),
        (206, "Cache-Control: max-age=9".into(), Err(StoreRefusal::Status)),
        (200, "Age: 500|Cache-Control: max-age=9".into(), Ok((9, CacheControl))),
    ];
    for (status, answer, expected) in rows {
        let case = Case { policy: policy(), status, answer: &answer, ..Case::default() };
        let decision = case.decide();
        let found = case.refusal().map_or(Ok((decision.ttl, decision.source)), Err);
        assert_eq!(found, expected, "{status} {answer}");
    }
}

#[test]
fn a_moment_that_has_passed_is_kept_as_what_expired_then() {
    for line in ["stale-while-revalidate=7", "no-cache, stale-while-revalidate=7"] {
        for answer in [
            format!("X-Accel-Expires: @1|Cache-Control: {line}"),
            format!("Cache-Control: {line}|X-Accel-Expires: @1"),
        ] {
            let case = Case { policy: policy(), answer: &answer, ..Case::default() };
            assert_eq!(case.refusal(), None, "{answer}");
            let decision = case.decide();
            assert_eq!((decision.ttl, decision.stale_while_revalidate), (0, 7), "{answer}");
            assert_eq!(decision.times(NOW).expires_ms, 1000 + NOW % 1000);
        }
    }
}

#[test]
fn ignored_fields_say_nothing() {
    let all = Ignore {
        accel_expires: true,
        expires: true,
        cache_control: true,
        set_cookie: true,
        vary: true,
    };
    let policy = CachePolicy { ignore: all, ..policy() };
    let answer = "X-Accel-Expires: 0|Expires: 0|Cache-Control: no-store|Set-Cookie: a=1|Vary: *";
    let decision = Case { policy, answer, ..Case::default() }.decide();
    assert_eq!((decision.ttl, decision.source), (600, AnswerSource::Configuration));
    assert!(decision.vary.is_empty());
    assert!(answer.contains(Name::SetCookie.text()));
}

#[test]
fn methods_statuses_and_extensions() {
    let case = || Case { policy: policy(), ..Case::default() };
    assert_eq!(Case { method: Method::Head, ..case() }.refusal(), Some(StoreRefusal::Method));
    assert_eq!(Case { method: Method::Post, ..case() }.refusal(), Some(StoreRefusal::Method));
    let with_post = CachePolicy { with_post: true, ..policy() };
    let post = Case { method: Method::Post, policy: with_post, ..Case::default() };
    assert_eq!(post.refusal(), None);
    assert!(post.decide().purges.is_empty());
    let answer = "Cache-Control: max-age=5, stale-while-revalidate=7";
    let decision = Case { answer, ..case() }.decide();
    assert_eq!((decision.stale_while_revalidate, decision.stale_if_error), (7, 7));
    let answer = "Cache-Control: max-age=5, stale-while-revalidate=7, stale-if-error=9";
    assert_eq!(Case { answer, ..case() }.decide().stale_if_error, 9);
    let answer = "Vary: Accept-Encoding, X-Foo";
    let vary = Case { answer, ..case() }.decide().vary;
    let names = [&b"sent=accept-encoding"[..], b"sent=x-foo"];
    assert_eq!(vary.iter().map(|name| &**name).collect::<Vec<_>>(), names);
    for (answer, names) in [
        ("Vary: , accept-LANGUAGE ,|Vary: Accept-Language", Some("sent=accept-language")),
        ("Vary: b a|Content-Encoding: gzip", Some("sent=a,sent=b")),
        ("Vary: a, *", None),
        ("Vary: \"a\"", None),
    ] {
        let case = Case { answer, ..case() };
        let found = case.refusal().is_none().then(|| case.decide().vary.join(&b','));
        assert_eq!(found.as_deref(), names.map(str::as_bytes), "{answer}");
    }
    let any =
        CachePolicy { valid: Valids(vec![Valid { statuses: Vec::new(), seconds: 3 }]), ..policy() };
    assert_eq!(Case { policy: any, status: 503, ..Case::default() }.decide().ttl, 3);
}
