//! `<esi:inline>` in ESI pages that are being stored: inlines are cut out and stored for the
//! includes of the same page.
//!
//! Easiest to break: an inline may be private to the requesting session, so it must be gone before
//! another client gets the page; and it never becomes the object of its URL, because a page may
//! contain text of clients.

use bolide_base::Now;
use bolide_cache::rules::{self, KeyPiece};
use bolide_cache::{FillPermit, KeyBuilder, ObjectHead, SessionKey, Tags, Times, Wakes};
use bolide_esi::{Cutter, EsiLimits, Inline};
use bolide_http::cookies::Cookies;
use bolide_http::lscache::{self, CacheScope};
use bolide_http::{FieldMap, Name};
use bytes::Bytes;

use super::Fill;
use crate::caching::Caching;
use crate::caching::identity::page_id;
use crate::caching::identity::{for_inlines, key_of, page_key, push_piece, unvaried_key};
use crate::caching::reach::{tag_for_all, tag_with};
use crate::subrequest::is_same_site;

/// LIMIT: inlines of one page that are stored.
const INLINES_MAX: u32 = 64;

/// The lifetime of an inline of a page that is not stored, in seconds: until its includes are
/// there.
const UNSTORED_TTL: u32 = 10;

/// LIMIT: lifetime of a stored inline, in seconds.
const TTL_MAX: u32 = 24 * 60 * 60;

/// The state of an arriving ESI page.
#[derive(Debug)]
pub(crate) struct InlineCutting {
    cutter: Cutter,
    /// The fields of the page.
    fields: FieldMap,
    /// The session of the request; empty if it has none.
    session: Vec<u8>,
    /// Whether the page is public.
    is_public: bool,
    kept: u32,
}

impl InlineCutting {
    pub(super) fn new(fields: &FieldMap, session: &[u8], is_public: bool) -> Self {
        Self {
            cutter: Cutter::new(EsiLimits::default()),
            fields: fields.clone(),
            session: session.to_vec(),
            is_public,
            kept: 0,
        }
    }
}

impl Fill {
    /// Takes a piece of an ESI page; returns its text without inlines, the waiters to wake, and
    /// whether the page may be stored at all.
    pub(super) fn cut(&mut self, bytes: Bytes, now: Now) -> (Vec<Bytes>, Wakes, bool) {
        let Some(mut cutting) = self.cutting.take() else {
            return (vec![bytes], Wakes::default(), true);
        };
        let mut passed = Vec::new();
        cutting.cutter.feed(bytes, |piece| passed.push(piece));
        let wakes = self.keep_inlines(&mut cutting, now);
        let is_sure = !cutting.cutter.is_doubtful();
        self.cutting = Some(cutting);
        (passed, wakes, is_sure)
    }

    /// The rest of the page at its end.
    pub(super) fn finish_cut(&mut self, now: Now) -> (Vec<Bytes>, Wakes) {
        let Some(mut cutting) = self.cutting.take() else { return Default::default() };
        let mut passed = Vec::new();
        cutting.cutter.finish(|piece| passed.push(piece));
        let wakes = self.keep_inlines(&mut cutting, now);
        (passed, wakes)
    }

    fn keep_inlines(&self, cutting: &mut InlineCutting, now: Now) -> Wakes {
        let mut wakes = Wakes::default();
        for inline in cutting.cutter.take_inlines() {
            if cutting.kept >= INLINES_MAX {
                break;
            }
            cutting.kept += 1;
            let site = self.site.clone();
            if let Some(caching) = &site.location(self.location).caching {
                wakes.join(self.keep_inline(&inline, cutting, caching, now.unix_millis));
            }
        }
        wakes
    }

    /// Stores an inline for the includes of its page: publicly only if the page is public.
    fn keep_inline(
        &self,
        inline: &Inline,
        cutting: &InlineCutting,
        caching: &Caching,
        now_ms: u64,
    ) -> Wakes {
        let facts = self.question.facts();
        let is_for_all = cutting.is_public && rules::is_part_for_all(&facts, &inline.control);
        let scope = match inline.control.scope() {
            Some(CacheScope::Public) if caching.policy.public && is_for_all => CacheScope::Public,
            Some(_) if caching.policy.private => CacheScope::Private,
            Some(_) | None => return Wakes::default(),
        };
        // Without a cache key, the page has no includes that could find it.
        if self.url.is_empty() {
            return Wakes::default();
        }
        let session = match scope {
            CacheScope::Public => None,
            CacheScope::Private => match SessionKey::new(&cutting.session) {
                Some(session) => Some(session),
                None => return Wakes::default(),
            },
        };
        let is_own =
            |authority: &[u8]| is_same_site(authority, facts.host, [facts.port, facts.port]);
        let Ok(target) = bolide_esi::source::resolve(&inline.name, facts.target, is_own) else {
            return Wakes::default();
        };
        let mut url = Vec::new();
        rules::url_of(&mut url, &facts, &target, &caching.policy);
        let facts = for_inlines(&facts);
        let mut keys = KeyBuilder::default();
        if inline.control.no_vary {
            unvaried_key(&mut keys, (self.namespace, &url), &facts);
        } else {
            let mut cookies = Cookies::of(facts.fields);
            cookies.merge(&cutting.fields, facts.cookie_url(), now_ms / 1000);
            page_key(&mut keys, (self.namespace, &url), &facts, caching, &cookies, None);
        }
        push_piece(&mut keys, KeyPiece::Inline(&page_id(self.id)));
        let ttl = inline.control.lifetime().unwrap_or(match scope {
            CacheScope::Public => caching.policy.ttl,
            CacheScope::Private => caching.policy.private_ttl,
        });
        let most = caching.conf.page.max_ttl.map_or(TTL_MAX, |max| max.as_secs() as u32);
        let most = most.min(facts.environment.times_max[0].unwrap_or(TTL_MAX));
        // Nothing else finds it, once the page is replaced.
        let of_page = self.ttl.unwrap_or(UNSTORED_TTL);
        let ttl = ttl.min(most).min(of_page).min(TTL_MAX);
        debug_assert!(
            session.is_some() || scope == CacheScope::Public && cutting.is_public,
            "only a public page has public inlines"
        );
        let key = key_of(&keys, session);
        // It is as old as the page's request: purges since then count.
        let Some(permit) = self.moment.as_ref().and_then(|moment| moment.permit(&key)) else {
            return Wakes::default();
        };
        let mut tags = Tags::default();
        tag_with(&mut tags, &target, facts.host, session.is_some());
        // The page is private, not the inline: public purges reach the copies of all sessions.
        let is_for_all = session.is_some() && inline.control.scope() == Some(CacheScope::Public);
        if is_for_all {
            tag_for_all(&mut tags, &target, facts.host);
        }
        put_inline(
            permit,
            (tags, is_for_all),
            inline,
            cutting,
            (now_ms, ttl, caching.policy.max_stale),
        )
    }
}

/// Stores an inline.
fn put_inline(
    mut permit: FillPermit,
    (mut tags, is_for_all): (Tags, bool),
    inline: &Inline,
    cutting: &InlineCutting,
    (now_ms, ttl, stale): (u64, u32, u32),
) -> Wakes {
    debug_assert!(ttl <= TTL_MAX, "an inline lives no longer than its page");
    let mut fields = FieldMap::new();
    if let Some(value) = cutting.fields.get(Name::ContentType) {
        fields.push(Name::ContentType, value);
    }
    if inline.control.esi != Some(false) {
        fields.push_text(bolide_cache::ESI_MARK.0, bolide_cache::ESI_MARK.1);
    }
    let words = inline.tags.iter().flat_map(|line| lscache::tags(line, CacheScope::Private));
    for tag in words {
        match tag.scope {
            CacheScope::Public => tags.push_public(tag.text),
            CacheScope::Private => {
                tags.push(tag.text);
                if is_for_all {
                    tags.push_public(tag.text);
                }
            }
        }
    }
    let head = ObjectHead {
        status: 200,
        fields,
        times: Times {
            created_ms: now_ms,
            expires_ms: now_ms.saturating_add(u64::from(ttl) * 1000),
            stale_seconds: inline.control.max_stale.unwrap_or(stale),
            error_seconds: stale,
        },
        length: Some(inline.body.len() as u64),
        ..ObjectHead::default()
    };
    let mut wakes = permit.begin(head, &tags);
    // A copy: the inline outlives the page.
    wakes.join(permit.append(Bytes::copy_from_slice(&inline.body)));
    wakes.join(permit.commit().wakes);
    wakes
}
