//! Pages with ESI on their way into the store: inlines are taken out and kept as answers of their
//! own.
//!
//! Owns what `<esi:inline>` means. Easiest to break: an inline may be for the session that asked
//! alone, so that it must be gone before anybody else sees the page.

use base::Now;
use bytes::Bytes;
use cache::{Key, KeyBuilder, Lookup, ObjectHead, Session, Tags, Times, Wakes};
use esi::{Cutter, Inline, Limits};
use http::cookies::Cookies;
use http::lscache::{self, Scope};
use http::{Fields, Name};

use super::{Fill, key_of};
use crate::content::page::{push_base, push_unvaried};
use crate::site::Caching;

/// LIMIT: inlines of one page that are kept.
const INLINES_MAX: u32 = 64;

/// A page with ESI that comes.
#[derive(Debug)]
pub(crate) struct Cutting {
    cutter: Cutter,
    /// The fields of its answer.
    fields: Fields,
    /// The session that asked; empty if it has none.
    session: Vec<u8>,
    kept: u32,
}

impl Cutting {
    pub(super) fn new(fields: &Fields, session: &[u8]) -> Self {
        Self {
            cutter: Cutter::new(Limits::default()),
            fields: fields.clone(),
            session: session.to_vec(),
            kept: 0,
        }
    }
}

impl Fill {
    /// Takes part of a page with ESI: what of it may be kept, and whether it may be at all.
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

    /// What is left of the page at its end.
    pub(super) fn finish_cut(&mut self, now: Now) -> (Vec<Bytes>, Wakes) {
        let Some(mut cutting) = self.cutting.take() else { return Default::default() };
        let mut passed = Vec::new();
        cutting.cutter.finish(|piece| passed.push(piece));
        let wakes = self.keep_inlines(&mut cutting, now);
        (passed, wakes)
    }

    fn keep_inlines(&self, cutting: &mut Cutting, now: Now) -> Wakes {
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

    /// Keeps an inline as the answer of its address.
    fn keep_inline(
        &self,
        inline: &Inline,
        cutting: &Cutting,
        caching: &Caching,
        now_ms: u64,
    ) -> Wakes {
        let scope = match inline.control.scope() {
            Some(Scope::Private) if caching.policy.private => Scope::Private,
            Some(Scope::Public) if caching.policy.public => Scope::Public,
            Some(_) | None => return Wakes::default(),
        };
        let session = match scope {
            Scope::Public => None,
            Scope::Private => match Session::new(&cutting.session) {
                Some(session) => Some(session),
                None => return Wakes::default(),
            },
        };
        let facts = self.question.facts();
        let is_own = |authority: &[u8]| {
            crate::content::esi::is_same_site(authority, facts.host, [facts.port, facts.port])
        };
        let Ok(target) = esi::source::resolve(&inline.name, facts.target, is_own) else {
            return Wakes::default();
        };
        let mut url = Vec::new();
        cache::rules::url_of(&mut url, &facts, &target, &caching.policy);
        let mut keys = KeyBuilder::default();
        keys.start(self.namespace);
        keys.push_url(&url);
        let fields = &self.question.fields;
        if inline.control.no_vary {
            push_unvaried(&mut keys, fields);
        } else {
            let mut cookies = Cookies::of(fields);
            cookies.merge(&cutting.fields, now_ms / 1000);
            push_base(&mut keys, caching, &self.question.environment, &cookies, fields, None);
        }
        let ttl = inline.control.lifetime().unwrap_or(match scope {
            Scope::Public => caching.policy.ttl,
            Scope::Private => caching.policy.private_ttl,
        });
        let key = key_of(&keys, session);
        self.put_inline(&key, inline, cutting, (now_ms, ttl, caching.policy.max_stale))
    }

    fn put_inline(
        &self,
        key: &Key<'_>,
        inline: &Inline,
        cutting: &Cutting,
        (now_ms, ttl, stale): (u64, u32, u32),
    ) -> Wakes {
        // A key of its own, from which the fill moves to that of the address: what is kept there
        // is replaced.
        let mut own = KeyBuilder::default();
        own.start(self.namespace);
        own.push_url(&self.question.target);
        own.push_vary(b"inline");
        own.push_vary(&inline.name);
        own.push_vary(&cutting.session);
        let Lookup::Miss(permit) = self.store.lookup(&own.public(), now_ms) else {
            return Wakes::default();
        };
        let moved = permit.move_to(key);
        let mut wakes = moved.wakes;
        let Some(mut permit) = moved.permit else { return wakes };
        let mut fields = Fields::new();
        if let Some(value) = cutting.fields.get(Name::ContentType) {
            fields.push(Name::ContentType, value);
        }
        if inline.control.esi != Some(false) {
            fields.push_text(cache::ESI_MARK.0, cache::ESI_MARK.1);
        }
        let mut tags = Tags::default();
        let words = inline.tags.iter().flat_map(|line| lscache::tags(line, Scope::Private));
        for tag in words {
            match tag.scope {
                Scope::Public => tags.push_public(tag.text),
                Scope::Private => tags.push(tag.text),
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
        wakes.join(permit.begin(head, &tags));
        // Bytes of its own: it outlives the page.
        wakes.join(permit.append(Bytes::copy_from_slice(&inline.body)));
        wakes.join(permit.commit().wakes);
        wakes
    }
}
