//! Nodes that share objects by an invented store and an invented stream: what was purged is served
//! by no node that was told, whatever is late, lost or killed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Waker};

use bolide_base::prng::Prng;
use bolide_cache::disk::journal::{self, JournalEntry};
use bolide_cache::{
    FillPermit, KeyBuilder, Lookup, NamespaceId, ObjectHead, SessionKey, SharedAnswer, SharedOffer,
    SharedOrder, SharedQuestion, SharedUnfit, Store, StoreLimits, StreamPlace, TagPurge, TagScope,
    Tags, Times,
};
use bytes::Bytes;

const NODES: usize = 3;
const PAGES: usize = 3;
const CLUSTER: &[u8] = b"shop";

/// An entry of the stream: a purge hits pages as they were at a time.
#[derive(Default)]
struct Entry {
    node: usize,
    life: u64,
    last: u64,
    bytes: Vec<u8>,
    hits: Vec<(usize, u64)>,
}

/// A question on its way, with what the store had for it.
type Question = (SharedQuestion, Option<Bytes>, Receiver<SharedAnswer>, usize);

struct Node {
    store: Arc<Store>,
    site: NamespaceId,
    life: u64,
    /// Purges of earlier processes may be missing before this place.
    fence: StreamPlace,
    /// Entries that it has carried out.
    heard: usize,
    confirmed: u64,
    /// What its purges hit, by their numbers.
    own: HashMap<u64, Vec<(usize, u64)>>,
    /// Fills: the page, and when its content was made.
    fills: Vec<(FillPermit, usize, u64)>,
    offers: Vec<SharedOffer>,
    questions: Vec<Question>,
    /// Content from before this time was purged as far as it was told, by page.
    told: [u64; PAGES],
}

fn process() -> (Arc<Store>, NamespaceId) {
    let store = Store::new(StoreLimits { front_entries: 16, ..StoreLimits::default() }, 1);
    let site = store.namespace(b"page:shop");
    store.outbox().open(1000);
    store.sharing().open(1000);
    store.sharing().set_answering(true);
    (store, site)
}

fn place(index: usize) -> StreamPlace {
    StreamPlace { ms: index as u64, number: 0 }
}

fn key(site: NamespaceId, page: usize) -> KeyBuilder {
    let mut keys = KeyBuilder::default();
    keys.start(site);
    keys.push_url(format!("/{page}").as_bytes());
    keys
}

fn begin(permit: &mut FillPermit, page: usize) {
    let mut tags = Tags::default();
    tags.push(format!("tag-{page}").as_bytes());
    let times = Times { expires_ms: 1000, ..Times::default() };
    let _ = permit.begin(ObjectHead { status: 200, times, ..ObjectHead::default() }, &tags);
}

impl Node {
    fn new(life: u64, heard: usize, told: [u64; PAGES]) -> Self {
        let (store, site) = process();
        let (confirmed, own, fence) = (0, HashMap::new(), StreamPlace::default());
        let (fills, offers, questions) = (Vec::new(), Vec::new(), Vec::new());
        Self { store, site, life, fence, heard, confirmed, own, fills, offers, questions, told }
    }

    fn tell(&mut self, hits: &[(usize, u64)]) {
        for &(page, time) in hits {
            self.told[page] = self.told[page].max(time);
        }
    }

    fn check(&self, page: usize, seed: u64) -> Option<u64> {
        let Lookup::Hit(object) = self.store.lookup(&key(self.site, page).public(), 0) else {
            return None;
        };
        let made = String::from_utf8(object.body().unwrap().to_vec()).unwrap();
        let made: u64 = made.parse().unwrap();
        let told = self.told[page];
        assert!(made >= told, "seed {seed}: page {page} of {made} was purged at {told}");
        Some(made)
    }

    /// What was left on its desk.
    fn collect(
        &mut self,
        kept: &HashMap<u128, Bytes>,
        replies: &mut Vec<(Receiver<SharedAnswer>, usize)>,
    ) {
        let context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(order)) = self.store.sharing().poll_order(&context) {
            match order {
                SharedOrder::Offer(offer) => self.offers.push(offer),
                SharedOrder::Ask(question) => {
                    let (reply, page) = replies.remove(0);
                    let bytes = kept.get(&question.key()).cloned();
                    self.questions.push((question, bytes, reply, page));
                }
                SharedOrder::Release(..) => {}
            }
        }
    }
}

struct World {
    chance: Prng,
    seed: u64,
    time: u64,
    lives: u64,
    stream: Vec<Entry>,
    kept: HashMap<u128, Bytes>,
    nodes: Vec<Node>,
    /// Objects of other nodes that were served.
    taken: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let nodes: Vec<_> = (0..NODES as u64).map(|life| Node::new(life, 1, [0; PAGES])).collect();
        for node in &nodes {
            node.store.sharing().begin(StreamPlace::default(), 0);
            node.store.sharing().reset(place(1), node.store.generation());
        }
        let stream = vec![Entry { node: NODES, ..Entry::default() }];
        let (time, lives, kept, taken) = (1, NODES as u64, HashMap::new(), 0);
        Self { chance: Prng::new(seed), seed, time, lives, stream, kept, nodes, taken }
    }

    fn below(&mut self, n: usize) -> usize {
        self.chance.below(n as u64) as usize
    }

    /// A request for a page.
    fn look(&mut self, at: usize, page: usize) {
        let node = &mut self.nodes[at];
        if node.check(page, self.seed).is_some() {
            return;
        }
        let Lookup::Miss(permit) = node.store.lookup(&key(node.site, page).public(), 0) else {
            return;
        };
        if !permit.may_be_shared() {
            node.fills.push((permit, page, self.time));
            return;
        }
        let (reply, answer) = channel();
        permit.ask_nodes(move |said| reply.send(said).unwrap());
        node.collect(&self.kept, &mut vec![(answer, page)]);
    }

    /// The store's answer arrives.
    fn answer(&mut self, at: usize) {
        let count = self.nodes[at].questions.len();
        if count == 0 {
            return;
        }
        let number = self.below(count);
        let node = &mut self.nodes[at];
        let (question, bytes, reply, page) = node.questions.swap_remove(number);
        let open = match bytes {
            Some(bytes) => question.take(&bytes, CLUSTER, 0).err().map(|(open, _)| open),
            None => Some(question),
        };
        open.into_iter().for_each(|open| open.give_back(None));
        match reply.recv().unwrap() {
            SharedAnswer::Absent(permit) => node.fills.push((*permit, page, self.time)),
            SharedAnswer::Kept(_) => {
                self.taken += usize::from(node.check(page, self.seed).is_some());
            }
        }
    }

    fn commit(&mut self, at: usize) {
        let count = self.nodes[at].fills.len();
        if count == 0 {
            return;
        }
        let number = self.below(count);
        let node = &mut self.nodes[at];
        let (mut permit, page, made) = node.fills.swap_remove(number);
        begin(&mut permit, page);
        let _ = permit.append(Bytes::from(made.to_string()));
        let _ = permit.commit();
        node.collect(&self.kept, &mut Vec::new());
    }

    /// The store takes what was offered.
    fn offer(&mut self, at: usize) {
        let count = self.nodes[at].offers.len();
        if count == 0 {
            return;
        }
        let number = self.below(count);
        let offer = self.nodes[at].offers.swap_remove(number);
        if let Some((bytes, _)) = offer.bytes(CLUSTER, 0) {
            self.kept.insert(offer.key(), bytes.into());
        }
        offer.settle();
    }

    fn purge(&mut self, at: usize, page: usize) {
        self.time += 1;
        let what = self.below(9);
        let (time, node) = (self.time, &mut self.nodes[at]);
        let (tag, url) = (format!("tag-{page}"), format!("/{page}"));
        let one = vec![(page, time)];
        let all: Vec<_> = (0..PAGES).map(|page| (page, time)).collect();
        let (dead, public) = (TagPurge::Dead, TagScope::Public);
        let hits = match what {
            0 | 1 => {
                node.store.purge_tag(node.site, public, tag.as_bytes(), dead);
                one
            }
            2 | 3 => {
                node.store.purge_url(&key(node.site, page).public(), dead);
                one
            }
            4..=6 => {
                node.store.purge_urls_from(node.site, url.as_bytes(), dead);
                one
            }
            7 => {
                node.store.purge_tag(node.site, public, b"tag*", dead);
                all
            }
            _ => {
                node.store.purge_all(node.site, dead);
                all
            }
        };
        node.tell(&hits);
        node.own.insert(node.store.outbox().counts().last, hits);
    }

    fn send(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(batch) = node.store.outbox().take(1 << 20) else { return };
        let hits = (batch.first..=batch.last).filter_map(|number| node.own.get(&number)).flatten();
        let hits = hits.copied().collect();
        let (life, last, bytes) = (node.life, batch.last, batch.bytes);
        self.stream.push(Entry { node: at, life, last, bytes, hits });
    }

    fn receive(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(entry) = self.stream.get(node.heard) else { return };
        node.heard += 1;
        let before = node.store.generation();
        let is_own = entry.node == at && entry.life == node.life && entry.last > node.confirmed;
        if entry.node == at && entry.life == node.life {
            node.confirmed = node.confirmed.max(entry.last);
        } else {
            journal::read(&entry.bytes, |purge| {
                if let JournalEntry::Purge(order, _) = purge {
                    assert!(node.store.nodes().repeat(&order));
                }
            });
            node.tell(&entry.hits);
        }
        let before = (!is_own).then_some(before);
        node.store.nodes().note_entry(place(node.heard), before, node.confirmed);
    }

    /// It has missed what came up to now, and drops all.
    fn lose(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        for entry in &self.stream[node.heard..] {
            for &(page, time) in &entry.hits {
                node.told[page] = node.told[page].max(time);
            }
            if entry.node == at && entry.life == node.life {
                node.confirmed = node.confirmed.max(entry.last);
            }
        }
        node.heard = self.stream.len();
        node.store.drop_everything();
        node.store.sharing().reset(place(node.heard), node.store.generation());
    }

    /// Its process is killed and another one begins; purges that were not sent are lost.
    fn kill(&mut self, at: usize) {
        self.lives += 1;
        let old = &self.nodes[at];
        // Its farewell says that all its purges are in the stream, before its place.
        let is_whole = old.store.outbox().counts().last == old.confirmed;
        let mut node = Node::new(self.lives, old.heard, old.told);
        node.fence = old.fence;
        if is_whole {
            node.store.sharing().begin(node.fence, 0);
            for (index, entry) in self.stream[..node.heard].iter().enumerate() {
                let before = node.store.generation();
                journal::read(&entry.bytes, |purge| {
                    if let JournalEntry::Purge(order, _) = purge {
                        node.store.nodes().note_past_purge(&order);
                    }
                });
                node.store.nodes().note_entry(place(index + 1), Some(before), 0);
            }
        } else {
            self.stream.push(Entry { node: at, life: self.lives, ..Entry::default() });
            node.fence = place(self.stream.len());
            node.store.sharing().begin(node.fence, 0);
        }
        self.nodes[at] = node;
    }

    fn step(&mut self) {
        let (at, page) = (self.below(NODES), self.below(PAGES));
        self.time += 1;
        match self.below(100) {
            0..=23 => self.look(at, page),
            24..=39 => self.answer(at),
            40..=54 => self.commit(at),
            55..=67 => self.offer(at),
            68..=71 => self.purge(at, page),
            72..=78 => self.send(at),
            79..=98 => self.receive(at),
            _ if self.below(4) == 0 => self.lose(at),
            _ => self.kill(at),
        }
    }
}

#[test]
fn what_was_purged_is_served_by_no_node_that_was_told() {
    let one = std::env::var("BOLIDE_SHARING_SEED").ok().and_then(|text| text.parse().ok());
    let mut taken = 0;
    for seed in one.map_or(1..=400, |seed: u64| seed..=seed) {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step();
        }
        for at in 0..NODES {
            while world.nodes[at].heard < world.stream.len() {
                world.receive(at);
            }
            for page in 0..PAGES {
                let _made = world.nodes[at].check(page, seed);
            }
        }
        taken += world.taken;
    }
    assert!(one.is_some() || taken > 400, "objects are shared at all: {taken}");
}

/// A store that has asked and the store's side of it.
fn ask(store: &Arc<Store>, site: NamespaceId) -> (SharedQuestion, Receiver<SharedAnswer>) {
    let Lookup::Miss(permit) = store.lookup(&key(site, 0).public(), 0) else { panic!("a miss") };
    let (reply, answer) = channel();
    permit.ask_nodes(move |said| reply.send(said).unwrap());
    let context = Context::from_waker(Waker::noop());
    match store.sharing().poll_order(&context) {
        Poll::Ready(Some(SharedOrder::Ask(question))) => (question, answer),
        other => panic!("{other:?}"),
    }
}

fn absent(answer: &Receiver<SharedAnswer>) -> FillPermit {
    match answer.try_recv() {
        Ok(SharedAnswer::Absent(permit)) => *permit,
        other => panic!("{other:?}"),
    }
}

fn next(store: &Store) -> Option<SharedOrder> {
    match store.sharing().poll_order(&Context::from_waker(Waker::noop())) {
        Poll::Ready(order) => order,
        Poll::Pending => None,
    }
}

/// The bytes of an object of another node.
fn bytes_of(body: &str) -> Bytes {
    let (store, site) = process();
    store.sharing().reset(place(1), store.generation());
    let Lookup::Miss(mut permit) = store.lookup(&key(site, 0).public(), 0) else { panic!() };
    begin(&mut permit, 0);
    let _ = permit.append(Bytes::from(body.to_owned()));
    assert!(permit.commit().object.is_some());
    let Some(SharedOrder::Offer(offer)) = next(&store) else { panic!("an offer") };
    offer.bytes(CLUSTER, 0).unwrap().0.into()
}

#[test]
fn bytes_that_are_not_whole_ours_or_of_the_page_are_of_no_use() {
    let good = bytes_of("7");
    let (store, site) = process();
    store.sharing().reset(place(1), store.generation());
    let (mut question, answer) = ask(&store, site);
    let mut bad: Vec<Bytes> = (0..good.len()).step_by(3).map(|at| good.slice(..at)).collect();
    for at in 0..good.len() {
        let mut changed = good.to_vec();
        changed[at] ^= 0x10;
        bad.push(changed.into());
    }
    bad.push([&good[..], b"x"].concat().into());
    for bytes in &bad {
        let (open, unfit) = question.take(bytes, CLUSTER, 0).unwrap_err();
        assert_eq!(unfit, SharedUnfit::Useless, "{bytes:?}");
        assert!(SharedQuestion::mark(bytes).len() <= 200);
        question = open;
    }
    for (cluster, now_ms) in [(&b"other"[..], 0), (CLUSTER, 1000)] {
        let (open, unfit) = question.take(&good, cluster, now_ms).unwrap_err();
        assert_eq!(unfit, SharedUnfit::Useless);
        question = open;
    }
    question.take(&good, CLUSTER, 0).unwrap();
    assert!(matches!(answer.try_recv(), Ok(SharedAnswer::Kept(_))));
    assert!(matches!(store.lookup(&key(site, 0).public(), 0), Lookup::Hit(_)));
    let counts = store.sharing().counts();
    assert_eq!((counts.taken, counts.unfit, counts.asked), (1, bad.len() as u64 + 2, 1));
}

#[test]
fn a_purge_of_a_namespace_that_comes_later_counts() {
    let good = bytes_of("7");
    let store = Store::new(StoreLimits::default(), 1);
    store.outbox().open(10);
    store.sharing().open(1000);
    store.sharing().set_answering(true);
    store.sharing().reset(place(1), store.generation());
    let (namespace, session, target) =
        (&b"page:shop"[..], &b""[..], bolide_cache::disk::DiskPurgeTarget::Tag(b"tag-0"));
    let how = TagPurge::Dead;
    let before = store.generation();
    let order = bolide_cache::disk::DiskPurge { namespace, session, target, how, sequence: 1 };
    assert!(!store.nodes().repeat(&order));
    store.nodes().note_entry(place(2), Some(before), 0);
    let site = store.namespace(b"page:shop");
    let (question, _answer) = ask(&store, site);
    assert!(question.take(&good, CLUSTER, 0).is_err());
}

#[test]
fn an_object_whose_fill_is_ahead_is_waited_for() {
    let good = bytes_of("7");
    let (store, site) = process();
    store.sharing().reset(place(0), store.generation());
    let (question, _answer) = ask(&store, site);
    let (question, unfit) = question.take(&good, CLUSTER, 0).unwrap_err();
    assert_eq!(unfit, SharedUnfit::Ahead);
    store.nodes().note_entry(place(1), Some(store.generation()), 0);
    question.take(&good, CLUSTER, 0).unwrap();
}

#[test]
fn a_question_gives_its_permit_back_and_a_lease_is_returned() {
    let (store, site) = process();
    let (question, answer) = ask(&store, site);
    drop(question);
    drop(absent(&answer));
    let (question, answer) = ask(&store, site);
    question.give_back(Some((*b"token").into()));
    drop(absent(&answer));
    let Some(SharedOrder::Release(_, token)) = next(&store) else { panic!("it is returned") };
    assert_eq!(&*token, b"token");
    // One that is asked when there are no answers any more.
    let (question, _unheard) = ask(&store, site);
    store.sharing().set_answering(false);
    drop(question);
    let Lookup::Miss(permit) = store.lookup(&key(site, 1).public(), 0) else { panic!() };
    assert!(!permit.may_be_shared());
    let (reply, answer) = channel();
    permit.ask_nodes(move |said| reply.send(said).unwrap());
    drop(absent(&answer));
}

#[test]
fn the_lease_goes_with_the_fill_and_is_used_up_by_the_offer() {
    let (store, site) = process();
    store.sharing().reset(place(1), store.generation());
    let (question, answer) = ask(&store, site);
    question.give_back(Some((*b"token").into()));
    let to = key(site, 2);
    let mut permit = absent(&answer).move_to(&to.public()).permit.unwrap();
    begin(&mut permit, 2);
    let _ = permit.append(Bytes::from_static(b"1"));
    assert!(permit.commit().object.is_some());
    let Some(SharedOrder::Offer(offer)) = next(&store) else { panic!("an offer") };
    let (lease, token) = offer.lease().unwrap();
    assert!(lease != offer.key() && token == b"token");
    offer.settle();
    assert!(next(&store).is_none(), "it is used up");
}

#[test]
fn private_and_large_objects_are_not_offered() {
    let (store, site) = process();
    store.sharing().reset(place(1), store.generation());
    let session = SessionKey::new(b"sid=12345678901234567").unwrap();
    let keys = key(site, 0);
    for (key, size) in [(keys.private(session), 1), (keys.public(), 1001)] {
        let Lookup::Miss(mut permit) = store.lookup(&key, 0) else { panic!() };
        assert_eq!(permit.may_be_shared(), size == 1001, "private ones are not asked for");
        begin(&mut permit, 0);
        let _ = permit.append(Bytes::from(vec![b'x'; size]));
        assert!(permit.commit().object.is_some());
        assert!(next(&store).is_none());
    }
}
