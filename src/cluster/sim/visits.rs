//! Visitors: they request pages from nodes, and purge some. The served pages are checked.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bolide_cache::{
    BanKind, FillPermit, KeyBuilder, Lookup, NamespaceId, Object, ObjectHead, SessionKey,
    SharedAnswer, Store, TagPurge, TagScope, Tags, Times,
};
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::checks::Purge;
use super::{PAGES, SUBJECTS, VISITORS, World};

/// The sessions of visitors.
const SESSIONS: [&[u8]; VISITORS] = [b"sid=11111111111111111", b"sid=22222222222222222"];
/// How long objects are fresh.
const FRESH_MS: u64 = 3_600_000;

fn session(subject: usize) -> Option<SessionKey<'static>> {
    let visitor = subject.checked_sub(PAGES)?;
    SessionKey::new(SESSIONS[visitor])
}

/// The private page of all visitors has one URL.
fn keys(site: NamespaceId, subject: usize) -> KeyBuilder {
    let mut keys = KeyBuilder::default();
    keys.start(site);
    match subject < PAGES {
        true => keys.push_url(format!("/{subject}").as_bytes()),
        false => keys.push_url(b"/own"),
    }
    keys
}

fn look_up(store: &Arc<Store>, site: NamespaceId, subject: usize, now_ms: u64) -> Lookup {
    let keys = keys(site, subject);
    match session(subject) {
        Some(session) => store.lookup(&keys.private(session), now_ms),
        None => store.lookup(&keys.public(), now_ms),
    }
}

/// A process as a visitor sees it.
struct Seen {
    at: usize,
    life: u64,
    store: Arc<Store>,
    site: NamespaceId,
    now_ms: u64,
}

impl World {
    fn see(&self, at: usize) -> Option<Seen> {
        let members = self.members.borrow();
        let member = members.get(at).filter(|member| member.life > 0)?;
        let now_ms = member.clock.now().unix_millis;
        let (life, store, site) = (member.life, member.store.clone(), member.site());
        Some(Seen { at, life, store, site, now_ms })
    }

    /// Visits of one node, until faults end.
    pub(super) async fn visit(self: Rc<Self>, at: usize) {
        let mut under_way = tokio::task::JoinSet::new();
        while !self.is_over.get() {
            sleep(Duration::from_millis(1 + self.below(120))).await;
            match self.below(12) {
                0 => {
                    if let Some(purge) = self.purge(at)
                        && self.below(2) == 0
                    {
                        under_way.spawn_local(self.clone().wait_for(purge));
                    }
                }
                1 => {
                    // Several at once.
                    let subject = self.below(PAGES as u64) as usize;
                    for at in 0..self.plan.nodes {
                        under_way.spawn_local(self.clone().ask_for(at, subject));
                    }
                }
                _ => {
                    let subject = self.below(SUBJECTS as u64) as usize;
                    under_way.spawn_local(self.clone().ask_for(at, subject));
                }
            }
            while let Some(done) = under_way.try_join_next() {
                done.expect("a visitor sees no fault");
            }
        }
        while let Some(done) = under_way.join_next().await {
            done.expect("a visitor sees no fault");
        }
    }

    /// A request.
    pub(super) async fn ask_for(self: Rc<Self>, at: usize, subject: usize) {
        let Some(seen) = self.see(at) else { return };
        let permit = match look_up(&seen.store, seen.site, subject, seen.now_ms) {
            Lookup::Hit(object) => return self.check(&seen, subject, &object),
            Lookup::Miss(permit) => permit,
            _ => return,
        };
        if !permit.may_be_shared() {
            return self.fetch(&seen, subject, permit).await;
        }
        assert!(subject < PAGES, "seed {}: a private page is asked for", self.seed);
        let start = Instant::now();
        let answer = self.ask_others(&seen, permit).await;
        let waited = start.elapsed();
        assert!(waited <= self.plan.patience(), "seed {}: waited {waited:?}", self.seed);
        match answer {
            Some(SharedAnswer::Absent(permit)) => self.fetch(&seen, subject, *permit).await,
            Some(SharedAnswer::Kept(_)) => {
                self.tally.borrow_mut().taken += 1;
                self.say(|| format!("node {at} takes {subject}"));
                if let Some(seen) = self.see(at).filter(|now| now.life == seen.life)
                    && let Lookup::Hit(object) =
                        look_up(&seen.store, seen.site, subject, seen.now_ms)
                {
                    self.check(&seen, subject, &object);
                }
            }
            None => {}
        }
    }

    /// Looks up an object at other nodes, as a worker does, with its timeout.
    async fn ask_others(&self, seen: &Seen, permit: FillPermit) -> Option<SharedAnswer> {
        let (reply, answer) = oneshot::channel();
        let mut ask = permit.ask_nodes(move |said| drop(reply.send(said)));
        let now = self.members.borrow()[seen.at].clock.now().mono;
        let patience = ask.mark_sent(now).since(now);
        let mut answer = answer;
        if let Ok(answered) = timeout(patience, &mut answer).await {
            return answered.ok();
        }
        match ask.take_back() {
            Some(permit) => Some(SharedAnswer::Absent(permit)),
            // It was answered meanwhile.
            None => answer.try_recv().ok(),
        }
    }

    /// Fetches a page from the application.
    async fn fetch(&self, seen: &Seen, subject: usize, mut permit: FillPermit) {
        let made = self.tick();
        self.say(|| format!("node {} fetches {subject} of {made}", seen.at));
        self.fetches.set(self.fetches.get() + 1);
        sleep(Duration::from_millis(1 + self.below(60))).await;
        let mut tags = Tags::default();
        tags.push(format!("tag-{subject}").as_bytes());
        let now_ms = match self.see(seen.at).filter(|now| now.life == seen.life) {
            Some(now) => now.now_ms,
            // The process is gone, and so is its fill.
            None => return,
        };
        let times = Times { expires_ms: now_ms + FRESH_MS, ..Times::default() };
        let head = ObjectHead { status: 200, times, ..ObjectHead::default() };
        let _ = permit.begin(head, &tags);
        let _ = permit.append(Bytes::from(format!("subject {subject} of {made}")));
        let _ = permit.commit();
    }

    /// Checks a page that a node serves from its cache.
    fn check(&self, seen: &Seen, subject: usize, object: &Object) {
        let body = object.body().expect("a body").to_vec();
        let text = String::from_utf8(body).expect("a text");
        let (seed, at) = (self.seed, seen.at);
        let of = text.strip_prefix(&format!("subject {subject} of "));
        let made: u64 = of.and_then(|made| made.parse().ok()).unwrap_or_else(|| {
            panic!("seed {seed}: node {at} serves \"{text}\" as subject {subject}")
        });
        let purged = self.members.borrow()[at].purged[subject];
        assert!(
            made >= purged,
            "seed {seed}: node {at} serves subject {subject} of {made}, purged at {purged}"
        );
        self.tally.borrow_mut().hits += 1;
    }

    /// Purges something at a node.
    pub(super) fn purge(&self, at: usize) -> Option<Purge> {
        let seen = self.see(at)?;
        let page = self.below(PAGES as u64) as usize;
        let visitor = PAGES + self.below(VISITORS as u64) as usize;
        let (store, site, dead, public) =
            (&seen.store, seen.site, TagPurge::Dead, TagScope::Public);
        let tick = self.tick();
        let all: Vec<usize> = (0..PAGES).collect();
        let subjects = match self.below(10) {
            0 | 1 => {
                store.purge_tag(site, public, format!("tag-{page}").as_bytes(), dead);
                vec![page]
            }
            2 | 3 => {
                store.purge_url(&keys(site, page).public(), dead);
                vec![page]
            }
            4 => {
                store.purge_urls_from(site, format!("/{page}").as_bytes(), dead);
                vec![page]
            }
            5 => {
                let text = format!("^tag-{page}$");
                store.purge_matching(site, BanKind::Tag, text.as_bytes(), dead);
                vec![page]
            }
            6 => {
                let text = format!("req.url ~ ^/{page}$");
                store.purge_matching(site, BanKind::Expression, text.as_bytes(), dead);
                vec![page]
            }
            7 => {
                store.purge_tag(site, public, b"tag-*", dead);
                all
            }
            8 => {
                store.purge_private(site, session(visitor), dead);
                vec![visitor]
            }
            _ => {
                store.purge_all(site, dead);
                all
            }
        };
        let number = store.outbox().counts().last;
        self.say(|| {
            format!("node {at} ({}) purges {subjects:?} at {tick}, its {number}", seen.life)
        });
        self.members.borrow_mut()[at].record_purged(&subjects, tick);
        self.tally.borrow_mut().purges += 1;
        Some(Purge { at, life: seen.life, number, tick, subjects })
    }
}
