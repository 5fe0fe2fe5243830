//! Nodes that share objects by a simulated store and a simulated stream: what was purged is served
//! by no node that was told, whatever is late, lost or killed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Waker};

use bolide_base::prng::Prng;
use bolide_cache::disk::journal::{self, JournalEntry};
use bolide_cache::disk::{DiskPurge, DiskPurgeTarget};
use bolide_cache::{
    AbandonReason, AskedBy, FillPermit, KeyBuilder, Lookup, NamespaceId, ObjectHead, SessionKey,
    SharedAnswer, SharedOffer, SharedOrder, SharedQuestion, SharedUnfit, Store, StoreLimits,
    StreamPlace, TagPurge, TagScope, Tags, Times,
};
use bytes::Bytes;

const NODES: usize = 3;
const PAGES: usize = 3;
const CLUSTER: &[u8] = b"shop";
/// Purges of a node that wait at most.
const WAITING_MAX: usize = 3;

/// An entry of the stream: a purge hits pages as they were at a time.
#[derive(Clone, Debug, Default)]
struct Entry {
    /// Its place; a place that was lost does not come again.
    id: u64,
    life: u64,
    numbers: (u64, u64),
    bytes: Vec<u8>,
    hits: Vec<(usize, u64)>,
}

/// What a node left of itself beside the stream.
#[derive(Clone, Copy, Debug)]
struct Line {
    life: u64,
    position: u64,
    fence: StreamPlace,
    has_ended: bool,
}

/// What a process knows of the one before it on its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    None,
    Ended(u64),
    Unknown,
}

/// A question on its way, with what the store had for it.
type Question = (SharedQuestion, Option<Bytes>, Receiver<SharedAnswer>, usize);

struct Node {
    store: Arc<Store>,
    life: u64,
    last: Last,
    is_connected: bool,
    /// Purges of earlier processes may be missing before this place.
    fence: StreamPlace,
    /// The last entry that it has carried out, and the numbers of each process up to there.
    position: Option<u64>,
    heard: HashMap<u64, u64>,
    confirmed: u64,
    /// What is on the way to the stream.
    flight: Option<Entry>,
    /// It leaves no line before this purge has come back.
    owes: u64,
    /// What its purges hit elsewhere, by their numbers.
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

fn place(id: u64) -> StreamPlace {
    StreamPlace { ms: id, ..StreamPlace::default() }
}

/// All pages, at a time.
fn all(time: u64) -> Vec<(usize, u64)> {
    (0..PAGES).map(|page| (page, time)).collect()
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
    fn new(life: u64, last: Last, told: [u64; PAGES]) -> Self {
        let store = Store::new(StoreLimits { front_entries: 16, ..StoreLimits::default() }, 1);
        store.outbox().open(WAITING_MAX);
        store.sharing().open(1000);
        Self {
            store,
            life,
            last,
            is_connected: false,
            fence: StreamPlace::default(),
            position: None,
            heard: HashMap::new(),
            confirmed: 0,
            flight: None,
            owes: 0,
            own: HashMap::new(),
            fills: Vec::new(),
            offers: Vec::new(),
            questions: Vec::new(),
            told,
        }
    }

    /// A configuration comes to have it when it is first asked for.
    fn site(&self) -> NamespaceId {
        self.store.namespace(b"page:shop")
    }

    fn tell(&mut self, hits: &[(usize, u64)]) {
        for &(page, time) in hits {
            self.told[page] = self.told[page].max(time);
        }
    }

    /// Whether all its purges are in the stream.
    fn is_all_sent(&self) -> bool {
        self.confirmed == self.store.outbox().counts().last
    }

    fn begin_sharing(&self) {
        let counts = self.store.outbox().counts();
        let barrier = if counts.waiting > 0 { counts.last } else { 0 };
        self.store.sharing().begin(self.fence, barrier);
    }

    fn check(&self, page: usize, seed: u64) -> Option<u64> {
        let Lookup::Hit(object) = self.store.lookup(&key(self.site(), page).public(), 0) else {
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
                SharedOrder::Release(..) | SharedOrder::Move(..) => {}
            }
        }
    }
}

struct World {
    chance: Prng,
    seed: u64,
    time: u64,
    lives: u64,
    /// The id of the last entry that there ever was.
    last_id: u64,
    stream: Vec<Entry>,
    lines: [Option<Line>; NODES],
    marks: [Last; NODES],
    kept: HashMap<u128, Bytes>,
    nodes: Vec<Node>,
    /// Objects of other nodes that were served.
    taken: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let nodes = (0..NODES as u64).map(|life| Node::new(life, Last::None, [0; PAGES]));
        let mut world = Self {
            chance: Prng::new(seed),
            seed,
            time: 1,
            lives: NODES as u64,
            last_id: 0,
            stream: Vec::new(),
            lines: [None; NODES],
            marks: [Last::Unknown; NODES],
            kept: HashMap::new(),
            nodes: nodes.collect(),
            taken: 0,
        };
        world.add(Entry { life: u64::MAX, ..Entry::default() });
        (0..NODES).for_each(|at| world.connect(at));
        world
    }

    fn below(&mut self, n: usize) -> usize {
        self.chance.below(n as u64) as usize
    }

    fn add(&mut self, entry: Entry) -> u64 {
        self.last_id += 1;
        self.stream.push(Entry { id: self.last_id, ..entry });
        self.last_id
    }

    /// The least place behind all that the stream has.
    fn end(&self) -> StreamPlace {
        StreamPlace { number: 1, ..place(self.stream.last().unwrap().id) }
    }

    fn hello(&mut self, at: usize) {
        let life = self.nodes[at].life;
        let _id = self.add(Entry { life, ..Entry::default() });
    }

    /// A request for a page.
    fn look(&mut self, at: usize, page: usize) {
        let node = &mut self.nodes[at];
        if node.check(page, self.seed).is_some() {
            return;
        }
        let Lookup::Miss(permit) = node.store.lookup(&key(node.site(), page).public(), 0) else {
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
        let what = self.below(11);
        let (time, node) = (self.time, &mut self.nodes[at]);
        let (tag, url) = (format!("tag-{page}"), format!("/{page}"));
        let one = vec![(page, time)];
        let (dead, public, site) = (TagPurge::Dead, TagScope::Public, node.site());
        let overflows = node.store.outbox().counts().overflows;
        let hits = match what {
            0 | 1 => {
                node.store.purge_tag(site, public, tag.as_bytes(), dead);
                one
            }
            2 | 3 => {
                node.store.purge_url(&key(site, page).public(), dead);
                one
            }
            4..=6 => {
                node.store.purge_urls_from(site, url.as_bytes(), dead);
                one
            }
            7 => {
                node.store.purge_tag(site, public, b"tag*", dead);
                all(time)
            }
            8 => {
                // Others drop more than this node.
                node.store.nodes().send_purge(site, b"", DiskPurgeTarget::All, dead);
                node.own.insert(node.store.outbox().counts().last, all(time));
                node.store.strike_url(&key(site, page).public(), dead);
                one
            }
            _ => {
                node.store.purge_all(site, dead);
                all(time)
            }
        };
        node.tell(&hits);
        let counts = node.store.outbox().counts();
        // More waited than may, so that others hear of a purge of everything.
        let told = if counts.overflows > overflows { all(time) } else { hits };
        node.own.insert(counts.last, told);
    }

    fn send(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if !node.is_connected || node.flight.is_some() {
            return;
        }
        let Some(batch) = node.store.outbox().take(1 << 20) else { return };
        let hits = (batch.first..=batch.last).filter_map(|number| node.own.get(&number)).flatten();
        let hits = hits.copied().collect();
        let (life, numbers) = (node.life, (batch.first, batch.last));
        let entry = Entry { id: 0, life, numbers, bytes: batch.bytes, hits };
        let id = self.add(entry.clone());
        self.nodes[at].flight = Some(Entry { id, ..entry });
    }

    /// What was on the way may be lost.
    fn send_again(&mut self, at: usize) {
        if let Some(flight) = self.nodes[at].flight.take() {
            let id = self.add(flight.clone());
            self.nodes[at].flight = Some(Entry { id, ..flight });
        }
    }

    fn receive(&mut self, at: usize) {
        if !self.nodes[at].is_connected {
            return;
        }
        let position = self.nodes[at].position.unwrap();
        let Some(index) = self.stream.iter().position(|entry| entry.id == position) else {
            return self.roll_back(at);
        };
        let Some(entry) = self.stream.get(index + 1).cloned() else {
            let is_lost = |flight: &Entry| self.stream.iter().all(|entry| entry.id != flight.id);
            if self.nodes[at].flight.as_ref().is_some_and(is_lost) {
                self.send_again(at);
            }
            return;
        };
        let node = &mut self.nodes[at];
        node.position = Some(entry.id);
        let before = node.store.generation();
        let (first, last) = entry.numbers;
        let (mut is_own, mut is_gap) = (false, false);
        if entry.life == node.life {
            is_own = last > node.confirmed;
            node.confirmed = node.confirmed.max(last);
            node.flight.take_if(|flight| flight.numbers.1 <= last);
        } else if last > 0 {
            let known = node.heard.insert(entry.life, last);
            is_gap = known.is_some_and(|known| first > known + 1);
            journal::read(&entry.bytes, |purge| {
                if let JournalEntry::Purge(order, _) = purge {
                    node.store.nodes().repeat(&order);
                }
            });
            node.tell(&entry.hits);
        }
        let before = (!is_own).then_some(before);
        node.store.nodes().record_entry(place(entry.id), before, node.confirmed);
        if is_gap {
            self.drop_all(at, entry.id);
        }
        self.leave_line(at, false);
    }

    fn leave_line(&mut self, at: usize, has_ended: bool) {
        let is_late = self.below(4) == 0;
        let node = &self.nodes[at];
        if has_ended || !is_late && node.owes <= node.confirmed {
            let (life, position, fence) = (node.life, node.position.unwrap(), node.fence);
            self.lines[at] = Some(Line { life, position, fence, has_ended });
        }
    }

    /// It has missed what came up to an entry.
    fn drop_all(&mut self, at: usize, newest: u64) {
        let node = &mut self.nodes[at];
        let position = node.position.unwrap_or_default();
        for entry in self.stream.iter().filter(|entry| entry.id > position && entry.id <= newest) {
            node.tell(&entry.hits);
        }
        node.position = Some(newest);
        node.heard.clear();
        node.store.drop_everything();
        node.store.sharing().reset(place(newest), node.store.generation());
        self.send_again(at);
    }

    fn lose(&mut self, at: usize) {
        if self.nodes[at].is_connected {
            self.drop_all(at, self.stream.last().unwrap().id);
        }
    }

    /// The stream has lost what a node has heard, its own purges maybe.
    fn roll_back(&mut self, at: usize) {
        let (end, newest) = (self.end(), self.stream.last().unwrap().id);
        self.nodes[at].fence = end;
        self.nodes[at].begin_sharing();
        self.drop_all(at, newest);
        self.time += 1;
        let node = &mut self.nodes[at];
        node.store.outbox().push_everything();
        node.owes = node.store.outbox().counts().last;
        node.own.insert(node.owes, all(self.time));
        self.hello(at);
    }

    /// A process finds its place. It knows of all purges of earlier ones if the last one said so
    /// itself, or there was none.
    fn connect(&mut self, at: usize) {
        if std::mem::replace(&mut self.nodes[at].is_connected, true) {
            return;
        }
        let (line, end) = (self.lines[at], self.end());
        let whole = match (self.nodes[at].last, line) {
            (Last::None, None) => Some(StreamPlace::default()),
            (Last::Ended(life), Some(line)) if line.has_ended && line.life == life => {
                Some(line.fence)
            }
            _ => None,
        };
        self.nodes[at].fence = whole.unwrap_or(end);
        self.nodes[at].begin_sharing();
        if whole.is_none() {
            self.hello(at);
        }
        self.nodes[at].position = line.map(|line| line.position);
        let position = self.nodes[at].position;
        match position {
            None => self.drop_all(at, self.stream.last().unwrap().id),
            Some(id) if self.stream.iter().all(|entry| entry.id != id) => self.roll_back(at),
            Some(_) => {}
        }
        if whole.is_some() {
            self.read_past(at);
        }
        self.nodes[at].store.sharing().set_answering(true);
    }

    fn read_past(&self, at: usize) {
        let node = &self.nodes[at];
        node.begin_sharing();
        let mut heard = HashMap::new();
        for entry in self.stream.iter().filter(|entry| Some(entry.id) <= node.position) {
            let before = node.store.generation();
            let (first, last) = entry.numbers;
            let known = if last > 0 { heard.insert(entry.life, last) } else { None };
            journal::read(&entry.bytes, |purge| {
                if let JournalEntry::Purge(order, _) = purge {
                    node.store.nodes().record_past_purge(&order);
                }
            });
            node.store.nodes().record_entry(place(entry.id), Some(before), 0);
            if known.is_some_and(|known| first > known + 1) {
                node.store.sharing().reset(place(entry.id), node.store.generation());
            }
        }
    }

    /// Its process ends or is killed, and another one begins, which may be alone for a while;
    /// purges that were not sent are lost.
    fn replace(&mut self, at: usize) {
        self.lives += 1;
        let (is_clean, is_alone) = (self.below(3) > 0, self.below(3) == 0);
        let (is_forgotten, is_heard) = (self.below(16) == 0, self.below(8) > 0);
        let node = &self.nodes[at];
        if is_clean && node.is_connected && node.is_all_sent() {
            let life = node.life;
            self.leave_line(at, true);
            if is_heard {
                self.marks[at] = Last::Ended(life);
            }
        }
        if is_forgotten {
            self.lines[at] = None;
        }
        let last = std::mem::replace(&mut self.marks[at], Last::Unknown);
        self.nodes[at] = Node::new(self.lives, last, self.nodes[at].told);
        if !is_alone {
            self.connect(at);
        }
    }

    fn step(&mut self) {
        let (at, page) = (self.below(NODES), self.below(PAGES));
        self.time += 1;
        match self.below(100) {
            0..=23 => self.look(at, page),
            24..=39 => self.answer(at),
            40..=54 => self.commit(at),
            55..=66 => self.offer(at),
            67..=70 => self.purge(at, page),
            71..=77 => self.send(at),
            78..=96 => self.receive(at),
            97 => self.connect(at),
            _ => match self.below(10) {
                0 => self.lose(at),
                1 => {
                    // A replica without the last entries takes over.
                    let lost = self.below(3) + 1;
                    self.stream.truncate(self.stream.len().saturating_sub(lost).max(1));
                }
                2..=4 => self.replace(at),
                _ => self.receive(at),
            },
        }
    }

    /// All hear of all.
    fn settle(&mut self) {
        for _ in 0..2 {
            for at in 0..NODES {
                self.connect(at);
                self.send(at);
                while self.nodes[at].position != self.stream.last().map(|entry| entry.id) {
                    self.receive(at);
                }
            }
        }
    }
}

#[test]
fn what_was_purged_is_served_by_no_node_that_was_told() {
    let one = std::env::var("BOLIDE_SHARING_SEED").ok().and_then(|text| text.parse().ok());
    let mut taken = 0;
    for seed in one.map_or(1..=2000, |seed: u64| seed..=seed) {
        let mut world = World::new(seed);
        for _ in 0..400 {
            world.step();
        }
        world.settle();
        for at in 0..NODES {
            for page in 0..PAGES {
                let _made = world.nodes[at].check(page, seed);
            }
        }
        taken += world.taken;
    }
    assert!(one.is_some() || taken > 1000, "objects are shared at all: {taken}");
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
    for (namespace, target, hits) in [
        (&b"page:shop"[..], DiskPurgeTarget::Tag(b"tag-0"), true),
        (b"page:shop", DiskPurgeTarget::Tag(b"tag-1"), false),
        (b"", DiskPurgeTarget::Everything, true),
    ] {
        let store = Store::new(StoreLimits::default(), 1);
        store.outbox().open(10);
        store.sharing().open(1000);
        store.sharing().set_answering(true);
        store.sharing().reset(place(1), store.generation());
        let (session, how, before) = (&b""[..], TagPurge::Dead, store.generation());
        let order = DiskPurge { namespace, session, target, how, sequence: 1 };
        let is_here = store.nodes().repeat(&order);
        assert_eq!(is_here, target == DiskPurgeTarget::Everything);
        store.nodes().record_entry(place(2), Some(before), 0);
        let site = store.namespace(b"page:shop");
        let (question, _answer) = ask(&store, site);
        assert_eq!(question.take(&good, CLUSTER, 0).is_err(), hits, "{target:?}");
    }
}

#[test]
fn a_namespace_whose_name_says_nothing_to_others_is_not_shared() {
    let (store, site) = process();
    store.sharing().reset(place(1), store.generation());
    store.namespaces().keep_here(site);
    let Lookup::Miss(mut permit) = store.lookup(&key(site, 0).public(), 0) else { panic!() };
    assert!(!permit.may_be_shared());
    begin(&mut permit, 0);
    let _ = permit.append(Bytes::from_static(b"1"));
    assert!(permit.commit().object.is_some());
    assert!(next(&store).is_none());
}

#[test]
fn an_object_whose_fill_is_ahead_is_waited_for() {
    let good = bytes_of("7");
    let (store, site) = process();
    store.sharing().reset(place(0), store.generation());
    let (question, _answer) = ask(&store, site);
    let (question, unfit) = question.take(&good, CLUSTER, 0).unwrap_err();
    assert_eq!(unfit, SharedUnfit::Ahead);
    store.nodes().record_entry(place(1), Some(store.generation()), 0);
    question.take(&good, CLUSTER, 0).unwrap();
}

#[test]
fn an_object_that_is_larger_than_this_node_shares_is_of_no_use() {
    let good = bytes_of("1234");
    let (store, site) = process();
    store.sharing().reset(place(1), store.generation());
    store.sharing().open(3);
    let (question, _answer) = ask(&store, site);
    let (question, unfit) = question.take(&good, CLUSTER, 0).unwrap_err();
    assert_eq!(unfit, SharedUnfit::Useless);
    store.sharing().open(4);
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
fn the_lease_is_where_other_nodes_ask_and_is_used_up_by_the_offer() {
    for asked_by in [None, Some(AskedBy::Waiting), Some(AskedBy::Others), Some(AskedBy::NoNode)] {
        let (store, site) = process();
        store.sharing().reset(place(1), store.generation());
        let (question, answer) = ask(&store, site);
        let leased = question.key();
        question.give_back(Some((*b"token").into()));
        let (mut permit, to) = (absent(&answer), key(site, 2));
        if let Some(asked_by) = asked_by {
            permit = permit.move_to(&to.public(), asked_by).permit.unwrap();
        }
        // Before the response has begun: other nodes do not wait for what does not come.
        let moved = next(&store);
        begin(&mut permit, 2);
        let _ = permit.append(Bytes::from_static(b"1"));
        assert!(permit.commit().object.is_some());
        let offered = next(&store);
        let end = |offer: Option<SharedOrder>| match offer {
            Some(SharedOrder::Offer(offer)) => {
                let lease = offer.lease().map(|(lease, token)| (lease, token.to_vec()));
                let key = offer.key();
                offer.settle();
                Some((key, lease))
            }
            None => None,
            other => panic!("{other:?}"),
        };
        match (asked_by, moved) {
            (None, None) => {
                assert_eq!(end(offered), Some((leased, Some((leased, b"token".to_vec())))));
            }
            (Some(AskedBy::Waiting), Some(SharedOrder::Move(from, to, token))) => {
                assert!(from == leased && *token == *b"token");
                assert_eq!(end(offered), Some((to, Some((to, b"token".to_vec())))));
            }
            (Some(AskedBy::Others), Some(SharedOrder::Release(key, _))) => {
                assert!(key == leased && end(offered).is_some_and(|(_, lease)| lease.is_none()));
            }
            (Some(AskedBy::NoNode), Some(SharedOrder::Release(key, _))) => {
                assert!(key == leased && offered.is_none());
            }
            other => panic!("{other:?}"),
        }
        assert!(next(&store).is_none(), "it is used up");
    }
}

#[test]
fn a_released_lease_is_neither_used_nor_released_again() {
    for commits in [true, false] {
        let (store, site) = process();
        store.sharing().reset(place(1), store.generation());
        let (question, answer) = ask(&store, site);
        let leased = question.key();
        question.give_back(Some((*b"token").into()));
        let mut permit = absent(&answer);
        assert_eq!(store.sharing().take_leases(), [(leased, (*b"token").into())]);
        assert_eq!(store.sharing().take_leases(), []);
        begin(&mut permit, 0);
        if commits {
            assert!(permit.commit().object.is_some());
            let Some(SharedOrder::Offer(offer)) = next(&store) else { panic!("an offer") };
            assert_eq!(offer.lease(), None);
            offer.settle();
        } else {
            let _ = permit.abandon(AbandonReason::Gone);
        }
        assert!(next(&store).is_none());
    }
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
