//! Parts of a combined response (`combine`) on their way into the store.
//!
//! A part is stored as a response of its own would be, by the same decision, with the facts of the
//! response that it came in. Easiest to break: it is stored for no client that might not have got
//! that response, which later requests for the part do not ask for.

use bolide_cache::rules::{self, AnswerFacts};
use bolide_http::lscache::{CacheScope, LsCacheControl};
use bolide_http::{Name, OriginHead};
use bolide_upstream::OriginNews;

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::fill::Fill;
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::{CombinedHead, GivenFragment};

impl CombinedHead {
    /// That of an exchange, if it is a combined request.
    pub(crate) fn of(request: &Request, answer: &Answer, cache: &CacheTransaction) -> Option<Self> {
        let lineage = request.role.fragment()?;
        lineage.form()?;
        let mut environment = cache.environment.clone();
        // What the include says is about the response itself, which is never looked up.
        environment.control.no_cache &= !lineage.control.no_cache;
        environment.control.no_store &= !lineage.control.no_store;
        environment.is_authorized |= request.is_authorized;
        let sent = answer.origin.as_ref().map_or(&answer.head.fields, |origin| &origin.fields);
        Some(Self {
            status: answer.head.status,
            fields: sent.clone(),
            environment,
            location: request.location,
            checks: request.arrival.checks(),
            is_refused: request.arrival.is_refused(),
        })
    }

    /// Whether all who get the response to `request`, a part, would have got this response. Stored
    /// parts are found by clients that pass the checks of the part only.
    fn is_for_all_of(&self, request: &Request) -> bool {
        !self.is_refused
            && (self.checks == 0 || self.checks == request.arrival.checks())
            // Another location has other rules for keys and for what is not cached.
            && self.location == request.location
    }
}

impl GivenFragment {
    /// The fill of a part, and the events that a fetch of it would have reported.
    pub(crate) fn feed(
        &self,
        answer: &Answer,
        request: &Request,
        cache: &mut CacheTransaction,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> (Option<Box<Fill>>, Vec<OriginNews>) {
        let whole = &*self.whole;
        let mut control = LsCacheControl { no_cache: true, ..self.control };
        let caching = site.location(request.location).caching.as_ref();
        // In a zone it would be the response of its URL.
        let Some(caching) = caching.filter(|caching| caching.is_page()) else {
            cache.let_go();
            return (None, self.news(&control));
        };
        let mut fill = cache.take_fill(request, answer, site, ctx);
        if let Some(fill) = &mut fill {
            let question = &mut *fill.question;
            let environment = &mut question.environment;
            environment.narrow(&whole.environment);
            environment.control.no_vary &= !rules::varies(&whole.fields);
            environment.is_off |= !whole.is_for_all_of(request);
            // What names its reader is for no other, whatever the part says.
            environment.no_public |=
                environment.is_authorized || question.fields.get(Name::Authorization).is_some();
            let facts = question.facts();
            let head = AnswerFacts {
                status: whole.status,
                fields: &whole.fields,
                body_len: None,
                asked: ctx.now.unix_millis,
                arrived: ctx.now.unix_millis,
            };
            control = rules::part_control(&caching.policy, &facts, &head, self.control);
            control.private |= self.is_private;
            debug_assert!(
                !self.is_private || control.scope() != Some(CacheScope::Public),
                "an include for the session has no public part"
            );
        }
        (fill, self.news(&control))
    }

    fn news(&self, control: &LsCacheControl) -> Vec<OriginNews> {
        let mut head = OriginHead { status: 200, ..OriginHead::default() };
        if let Some(kind) = self.whole.fields.get(Name::ContentType) {
            head.fields.push(Name::ContentType, kind);
        }
        for name in rules::DISTINGUISHING {
            for value in self.whole.fields.all_text(name) {
                head.fields.push_text(name, value);
            }
        }
        head.fields.push_text(b"X-LiteSpeed-Cache-Control", &words(control));
        if !self.tags.is_empty() {
            head.fields.push_text(b"X-LiteSpeed-Tag", &self.tags);
        }
        let body = (!self.body.is_empty()).then(|| OriginNews::Body(self.body.clone()));
        let head = OriginNews::Head(head.into());
        [Some(head), body, Some(OriginNews::End)].into_iter().flatten().collect()
    }
}

/// The `X-LiteSpeed-Cache-Control` with these directives; `public` only if that was said.
fn words(control: &LsCacheControl) -> Vec<u8> {
    let mut words = Vec::new();
    let scope = control.scope();
    match scope {
        None => words.push("no-cache".to_owned()),
        Some(CacheScope::Private) => words.push("private".to_owned()),
        Some(CacheScope::Public) if control.says_public => words.push("public".to_owned()),
        Some(CacheScope::Public) => {}
    }
    let ages = [("max-age", control.max_age), ("s-maxage", control.s_maxage)];
    for (name, seconds) in ages.into_iter().filter(|_| scope.is_some()) {
        words.extend(seconds.map(|seconds| format!("{name}={seconds}")));
    }
    words.extend(control.max_stale.map(|seconds| format!("max-stale={seconds}")));
    if control.no_vary {
        words.push("no-vary".to_owned());
    }
    words.push(if control.esi == Some(false) { "esi=off" } else { "esi=on" }.to_owned());
    words.join(",").into_bytes()
}

#[cfg(test)]
mod tests {
    use bolide_http::lscache::LsCacheControl;

    use super::words;

    #[test]
    fn an_implied_public_stays_implied() {
        for (said, expected) in [
            ("public,max-age=60", "public,max-age=60,esi=on"),
            ("max-age=60", "max-age=60,esi=on"),
            ("s-maxage=60,max-age=5", "max-age=5,s-maxage=60,esi=on"),
            ("public,max-age=60,no-vary,esi=off", "public,max-age=60,no-vary,esi=off"),
            ("shared,max-age=60", "private,max-age=60,esi=on"),
            ("private,max-age=60,max-stale=5", "private,max-age=60,max-stale=5,esi=on"),
            ("private", "private,esi=on"),
            ("max-age=60,no-cache", "no-cache,esi=on"),
            ("", "no-cache,esi=on"),
        ] {
            let control = LsCacheControl::of(said.as_bytes());
            let words = String::from_utf8(words(&control)).unwrap();
            assert_eq!(words, expected, "{said}");
            assert_eq!(LsCacheControl::of(words.as_bytes()).scope(), control.scope(), "{said}");
        }
    }
}
