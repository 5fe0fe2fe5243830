//! Remedies for request patterns that the cache does not answer, with their directives.
//!
//! Owns the texts. Easiest to break: a directive that is named here must exist, and must help.

use bolide_cache::rules::{Bypass, StoreRefusal};

use crate::explain::why::Why;

/// The kind of cache that has to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheKind {
    /// `page_cache`
    Page,
    /// A zone of `proxy_cache` or `fastcgi_cache`.
    Zone,
}

/// How the requests of a pattern differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternShape {
    /// One URL with one key, repeated.
    Repeated,
    /// One URL with several keys.
    ManyKeys,
    /// URLs with different queries.
    ManyQueries,
    /// URLs with different paths.
    ManyPaths,
}

/// A diagnosis and its remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remedy {
    /// Why the cache does not answer.
    pub(crate) why: &'static str,
    /// The remedy.
    pub(crate) text: &'static str,
    /// The directives of the remedy; none if only the application can change it.
    pub(crate) directives: &'static [&'static str],
}

const fn remedy(
    why: &'static str,
    text: &'static str,
    directives: &'static [&'static str],
) -> Option<Remedy> {
    Some(Remedy { why, text, directives })
}

/// The remedy for requests with this decision; none if there is nothing to fix.
pub(crate) fn remedy_for(
    why: Why,
    refusal: Option<StoreRefusal>,
    shape: PatternShape,
    kind: CacheKind,
) -> Option<Remedy> {
    match (why, refusal) {
        (Why::Asked | Why::Remembered | Why::Anew, Some(refusal)) => of_refusal(refusal, kind),
        (Why::Asked, None) => of_shape(shape, kind),
        (Why::Rule(bypass), _) => of_rule(bypass, kind),
        (Why::Remembered, None) => remedy(
            "is fetched for each client, as earlier responses were not to be kept",
            "\"bolide explain\" with this URL tells why the response is not kept.",
            &[],
        ),
        (Why::Anew, None) => remedy(
            "is fetched anew, as the client's Cache-Control wants that",
            "\"page_cache_respect_request off\" has the cache answer such clients as well.",
            &["page_cache_respect_request"],
        ),
        (Why::Preset, _) => remedy(
            "is never cached by the preset: it has a cookie or an argument of a user",
            "If these pages are the same for all, replace \"page_cache_preset\" by rules of your \
             own: \"page_cache\" with \"page_cache_bypass\".",
            &["page_cache_preset", "page_cache", "page_cache_bypass"],
        ),
        (Why::Condition, _) => match kind {
            CacheKind::Page => remedy(
                "goes past the cache by a condition of the configuration",
                "Narrow the texts of \"page_cache_bypass\": any that is neither empty nor 0 keeps \
                 the request out.",
                &["page_cache_bypass"],
            ),
            CacheKind::Zone => remedy(
                "goes past the cache by a condition of the configuration",
                "Narrow the texts of \"proxy_cache_bypass\" or \"fastcgi_cache_bypass\".",
                &["proxy_cache_bypass", "fastcgi_cache_bypass"],
            ),
        },
        (Why::LongKey, _) => remedy(
            "has a key that is too long",
            "\"page_cache_drop_query\" leaves parameters out of the key.",
            &["page_cache_drop_query"],
        ),
        (Why::NoZone, _) => remedy(
            "names a zone that does not exist",
            "\"fastcgi_cache\" must give the name of a \"fastcgi_cache_path\".",
            &["fastcgi_cache", "fastcgi_cache_path"],
        ),
        (Why::NotPublic, _) => remedy(
            "is not looked up for clients without a session",
            "\"page_cache_lookup on\" allows it.",
            &["page_cache_lookup"],
        ),
        (Why::Busy, _) => remedy(
            "was asked for several times at once",
            "With \"proxy_cache_lock on\" or \"fastcgi_cache_lock on\" one request asks, and the \
             others wait for it.",
            &["proxy_cache_lock", "fastcgi_cache_lock"],
        ),
        (Why::Purge | Why::Tired | Why::Body | Why::StandsIn | Why::Refused, _) => None,
    }
}

/// For requests whose responses were stored.
fn of_shape(shape: PatternShape, kind: CacheKind) -> Option<Remedy> {
    match (shape, kind) {
        (PatternShape::ManyPaths, _) => None,
        (PatternShape::Repeated, CacheKind::Page) => remedy(
            "is fetched again and again: its lifetime is short, or it has to make room",
            "\"page_cache_stale\" serves the old page while one request fetches the new one; \
             \"page_cache_valid\" sets a lifetime, \"page_cache_memory\" makes room.",
            &["page_cache_stale", "page_cache_valid", "page_cache_memory"],
        ),
        (PatternShape::Repeated, CacheKind::Zone) => remedy(
            "is fetched again and again: its lifetime is short, or it has to make room",
            "\"proxy_cache_use_stale updating\" with \"proxy_cache_background_update on\" (or \
             their fastcgi_ kin) serves the old response while one request fetches the new one.",
            &[
                "proxy_cache_use_stale",
                "proxy_cache_background_update",
                "fastcgi_cache_use_stale",
                "fastcgi_cache_background_update",
            ],
        ),
        (PatternShape::ManyKeys, CacheKind::Page) => remedy(
            "is kept once for each of many values of a cookie or field",
            "\"page_cache_vary\" and \"page_cache_key\" say what is in the key; the application's \
             Vary adds to it.",
            &["page_cache_vary", "page_cache_key"],
        ),
        (PatternShape::ManyKeys, CacheKind::Zone) => remedy(
            "is kept once for each of many keys",
            "\"proxy_cache_key\" or \"fastcgi_cache_key\" says what is in the key.",
            &["proxy_cache_key", "fastcgi_cache_key"],
        ),
        (PatternShape::ManyQueries, CacheKind::Page) => remedy(
            "is kept once for each of many queries",
            "\"page_cache_drop_query\" leaves out of the key what does not change the page: \
             \"tracking\" for the parameters of advertisers, and names.",
            &["page_cache_drop_query"],
        ),
        (PatternShape::ManyQueries, CacheKind::Zone) => remedy(
            "is kept once for each of many queries",
            "\"proxy_cache_key\" or \"fastcgi_cache_key\" can do without $args.",
            &["proxy_cache_key", "fastcgi_cache_key"],
        ),
    }
}

/// For requests that do not reach the cache.
fn of_rule(bypass: Bypass, kind: CacheKind) -> Option<Remedy> {
    match (bypass, kind) {
        (Bypass::Method, CacheKind::Zone) => remedy(
            "comes by a method whose responses are not kept",
            "\"proxy_cache_methods\" or \"fastcgi_cache_methods\" can name POST.",
            &["proxy_cache_methods", "fastcgi_cache_methods"],
        ),
        (Bypass::Off, _) => remedy(
            "is switched off for these requests",
            "\"page_cache\" and \"page_cache_control\" decide that.",
            &["page_cache", "page_cache_control"],
        ),
        (Bypass::Environment, _) => remedy(
            "has no-cache by the configuration",
            "Change the texts of \"page_cache_control\".",
            &["page_cache_control"],
        ),
        (Bypass::NoStore, _) => remedy(
            "comes with no-store, which applies here",
            "\"page_cache_respect_request off\" ignores what clients say.",
            &["page_cache_respect_request"],
        ),
        (Bypass::NoSpace, _) => remedy(
            "is looked up neither for all nor for its session",
            "\"page_cache_lookup on\" and \"page_cache_private on\" allow it.",
            &["page_cache_lookup", "page_cache_private"],
        ),
        // The clients' requests decide, and nothing here could change that.
        (
            Bypass::Method | Bypass::Query | Bypass::Cookies | Bypass::Unkeyed | Bypass::Magento,
            _,
        ) => None,
    }
}

/// For upstream responses that were not stored.
fn of_refusal(refusal: StoreRefusal, kind: CacheKind) -> Option<Remedy> {
    match kind {
        CacheKind::Zone => of_zone_refusal(refusal).or_else(|| of_any_refusal(refusal, kind)),
        CacheKind::Page => of_any_refusal(refusal, kind),
    }
}

/// For responses that a zone could store, but does not.
fn of_zone_refusal(refusal: StoreRefusal) -> Option<Remedy> {
    match refusal {
        StoreRefusal::Status => remedy(
            "has a status that is not kept",
            "\"proxy_cache_valid\" or \"fastcgi_cache_valid\" with this status keeps it for a \
             while.",
            &["proxy_cache_valid", "fastcgi_cache_valid"],
        ),
        StoreRefusal::NoStore
        | StoreRefusal::NoCache
        | StoreRefusal::Private
        | StoreRefusal::Stale => remedy(
            "is forbidden by the response's Cache-Control or Expires",
            "\"proxy_ignore_headers\" or \"fastcgi_ignore_headers\" with Cache-Control and \
             Expires, and a lifetime by \"proxy_cache_valid\", keep it: only where all clients \
             get the same.",
            &[
                "proxy_ignore_headers",
                "fastcgi_ignore_headers",
                "proxy_cache_valid",
                "fastcgi_cache_valid",
            ],
        ),
        StoreRefusal::SetCookie => remedy(
            "sets a cookie",
            "\"proxy_ignore_headers Set-Cookie\" keeps it, with \"proxy_hide_header Set-Cookie\" \
             so that no client gets another's cookie (or their fastcgi_ kin).",
            &[
                "proxy_ignore_headers",
                "proxy_hide_header",
                "fastcgi_ignore_headers",
                "fastcgi_hide_header",
            ],
        ),
        StoreRefusal::Vary => remedy(
            "varies on too much",
            "\"proxy_ignore_headers Vary\" or \"fastcgi_ignore_headers Vary\" keeps it, where all \
             clients get the same.",
            &["proxy_ignore_headers", "fastcgi_ignore_headers"],
        ),
        StoreRefusal::NoLifetime => remedy(
            "has no lifetime",
            "\"proxy_cache_valid\" or \"fastcgi_cache_valid\" gives it one.",
            &["proxy_cache_valid", "fastcgi_cache_valid"],
        ),
        _ => None,
    }
}

fn of_any_refusal(refusal: StoreRefusal, kind: CacheKind) -> Option<Remedy> {
    match refusal {
        StoreRefusal::Method | StoreRefusal::Empty => None,
        StoreRefusal::Status => remedy(
            "has a status that is not kept",
            "\"page_cache_valid\" with this status keeps it for a while.",
            &["page_cache_valid"],
        ),
        StoreRefusal::Environment => of_rule(Bypass::Environment, kind),
        StoreRefusal::RequestNoStore => of_rule(Bypass::NoStore, kind),
        StoreRefusal::Request => None,
        StoreRefusal::Private => remedy(
            "is private, and not of a session that may keep it",
            "\"page_cache_private on\" keeps it by session; what is the same for all should be \
             public.",
            &["page_cache_private"],
        ),
        StoreRefusal::NoStore | StoreRefusal::NoCache => remedy(
            "is forbidden by the application (no-store or no-cache)",
            "The application must send s-maxage, or X-LiteSpeed-Cache-Control, which counts more.",
            &[],
        ),
        StoreRefusal::Stale => {
            remedy("is stale when it comes", "The application must give it a longer lifetime.", &[])
        }
        StoreRefusal::Authorization => remedy(
            "is asked for with a password",
            "The application must send public or s-maxage where the page is the same for all.",
            &[],
        ),
        StoreRefusal::SetCookie => remedy(
            "sets a cookie",
            "The application must not, or must send X-LiteSpeed-Cache-Control: public.",
            &[],
        ),
        StoreRefusal::Vary => {
            remedy("varies on too much", "The application's Vary must name fewer fields.", &[])
        }
        StoreRefusal::NoLifetime => remedy(
            "has no lifetime",
            "\"page_cache on\" with \"page_cache_default_ttl\" gives it one, or \
             \"page_cache_heuristic\", or the application (s-maxage).",
            &["page_cache", "page_cache_default_ttl", "page_cache_heuristic"],
        ),
        StoreRefusal::TooLarge => remedy(
            "is too large",
            "\"page_cache_max_object\" is the most that is kept.",
            &["page_cache_max_object"],
        ),
        StoreRefusal::NoSession => remedy(
            "is private and comes without a session",
            "\"page_cache_session\" names the cookies of sessions.",
            &["page_cache_session"],
        ),
        StoreRefusal::Space => remedy(
            "belongs to a part of the cache that is off here",
            "\"page_cache_private on\" and \"page_cache_lookup on\" allow it.",
            &["page_cache_private", "page_cache_lookup"],
        ),
        // The next response to its client has the right variant.
        StoreRefusal::Variant => None,
        StoreRefusal::OwnRedirect => remedy(
            "redirects to a URL that has the same key",
            "\"page_cache_drop_query\" names parameters by which the application redirects.",
            &["page_cache_drop_query"],
        ),
        StoreRefusal::Unassembled => remedy(
            "has ESI, which is off here or impossible",
            "\"page_cache_esi on\", and an application that does not compress.",
            &["page_cache_esi"],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheKind, PatternShape, remedy_for};
    use crate::explain::why::{REFUSALS, WHYS};

    #[test]
    fn every_remedy_names_only_directives_that_exist_and_its_text_has_them() {
        let all = bolide_conf::directives::all();
        let known: std::collections::HashSet<_> = all.map(|directive| directive.name).collect();
        let mut found = 0;
        for why in WHYS {
            for refusal in REFUSALS.map(Some).into_iter().chain([None]) {
                for shape in [
                    PatternShape::Repeated,
                    PatternShape::ManyKeys,
                    PatternShape::ManyQueries,
                    PatternShape::ManyPaths,
                ] {
                    for kind in [CacheKind::Page, CacheKind::Zone] {
                        let Some(remedy) = remedy_for(why, refusal, shape, kind) else { continue };
                        found += 1;
                        for name in remedy.directives {
                            assert!(known.contains(name), "{name}");
                        }
                        // What looks like a directive in the text is one of those that are listed.
                        for word in remedy.text.split('"').skip(1).step_by(2) {
                            let name = word.split(' ').next().unwrap();
                            let is_listed = remedy.directives.contains(&name);
                            assert!(is_listed || name == "tracking" || name == "bolide", "{name}");
                        }
                        assert!(remedy.text.ends_with('.'), "{}", remedy.text);
                    }
                }
            }
        }
        assert!(found > 500, "{found}");
    }
}
