//! Shortcuts from an ESI page to the cached objects of its fragments, found by a recent request.
//!
//! Owns the proof that the fragment does not depend on the client. Easiest to break: whatever could
//! give another client another response (access control, rewriting, a cookie, a session) forbids
//! the shortcut.

use std::sync::Arc;

use bolide_cache::rules::is_of_address;
use bolide_cache::{Front, Object, Whole};
use bolide_http::negotiate::Coding;

use crate::answer::Answer;
use crate::answer::strand;
use crate::caching::CacheTransaction;
use crate::caching::Caching;
use crate::caching::UpstreamCacheStatus;
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::site::Site;

/// The lifetime of a shortcut in milliseconds: files that influence it may come and go.
const LASTS_MS: u64 = 1000;

/// The proof that a fragment is public: the settings of its lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenShortcut(usize);

impl OpenShortcut {
    fn of(caching: &Caching) -> Option<Self> {
        let page = &caching.conf.page;
        let is_open = caching.is_page()
            && page.key.is_none()
            && page.bypass.is_empty()
            && page.vary.is_empty()
            && page.never.is_none()
            && page.lookup.public
            && !caching.policy.honour_request
            && caching.policy.with_cookies
            && caching.policy.with_query;
        is_open.then(|| Self(Arc::as_ptr(&caching.conf).addr()))
    }
}

/// A page, and the number of the include in it.
#[derive(Debug)]
pub struct Shortcut {
    page: Arc<Object>,
    number: u32,
    tag: [u64; 2],
}

impl Shortcut {
    /// Stores `object` as the fragment.
    pub fn keep(&self, object: Arc<Object>, front: &mut Front, now_ms: u64) {
        debug_assert!(object.session().is_none(), "a shortcut leads to what every client may have");
        debug_assert!(self.page.session().is_none(), "and stands in what every client may have");
        front.keep_shortcut(&self.page, (self.number, self.tag), now_ms + LASTS_MS, object);
    }
}

fn opens(request: &Request, site: &Site) -> Option<OpenShortcut> {
    OpenShortcut::of(site.location(request.location).caching.as_ref()?)
}

impl CacheTransaction {
    /// For a fragment that is a cached object: the proof that it is public.
    pub(crate) fn open_shortcut(&self, request: &Request, answer: &Answer) -> Option<OpenShortcut> {
        let object = answer.object.as_ref()?;
        let is_open = request.is_straight
            && self.session.is_empty()
            && answer.cached == UpstreamCacheStatus::Hit
            && object.session().is_none()
            && is_of_address(object.vary())
            && !object.is_esi()
            && object.iter_fields().all(|(name, _)| !name.eq_ignore_ascii_case(b"set-cookie"));
        opens(request, request.site.as_deref()?).filter(|_| is_open)
    }

    /// For a cached page: where a shortcut to the fragment `child` would be stored.
    pub(crate) fn shortcut_to(
        &self,
        request: &Request,
        answer: &Answer,
        child: u64,
        open: OpenShortcut,
    ) -> Option<Shortcut> {
        let site = request.site.as_deref()?;
        let page =
            answer.object.as_ref().filter(|page| takes_shortcuts(request, answer, self, page))?;
        let assembly = answer.body.assembly()?;
        let number = assembly.number_of(child)?;
        let tag = [site.serial(), u64::from(request.location)];
        (opens(request, site) == Some(open)).then(|| Shortcut { page: page.clone(), number, tag })
    }

    /// Uses the stored shortcuts for the fragments of a cached page.
    pub(crate) fn take_shortcuts(
        &self,
        request: &Request,
        answer: &mut Answer,
        page: &Arc<Object>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        if !takes_shortcuts(request, answer, self, page) || opens(request, site).is_none() {
            return;
        }
        let tag = [site.serial(), u64::from(request.location)];
        let Some(assembly) = answer.body.assembly_mut() else { return };
        let Some(front) = ctx.cache.as_deref_mut() else { return };
        let now_ms = ctx.now.unix_millis;
        assembly.place(|number| Some(front.shortcut(page, (number, tag), now_ms)?.0));
    }

    /// A cached page with all its fragments, if there is a shortcut to each: as it was assembled
    /// last under the conditions of `tag`, or assembled now.
    pub(crate) fn whole(
        &self,
        request: &Request,
        answer: &Answer,
        page: &Arc<Object>,
        (tag, coding): ([u64; 2], Option<(Coding, i8)>),
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Arc<Whole>> {
        if !takes_shortcuts(request, answer, self, page) || opens(request, site).is_none() {
            return None;
        }
        let front = ctx.cache.as_deref_mut()?;
        let now_ms = ctx.now.unix_millis;
        if let Some(whole) = front.whole(page, tag, now_ms) {
            return Some(whole);
        }
        let place = [site.serial(), u64::from(request.location)];
        let found = |number| front.shortcut(page, (number, place), now_ms);
        let whole = Arc::new(strand::put_together(page, coding, found)?);
        front.keep_whole(page, tag, &whole);
        Some(whole)
    }
}

/// Whether nothing in a cache key distinguishes this client from others.
fn takes_shortcuts(
    request: &Request,
    answer: &Answer,
    cache: &CacheTransaction,
    page: &Object,
) -> bool {
    !request.role.is_subrequest()
        && answer.cached == UpstreamCacheStatus::Hit
        && cache.session.is_empty()
        && page.session().is_none()
        && is_of_address(page.vary())
}
