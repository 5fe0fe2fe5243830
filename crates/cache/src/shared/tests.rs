//! The limits of questions, offers and leases.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bolide_base::Instant;
use bolide_base::limits::{SHARED_OFFERED_MAX, SHARED_ORDERS_MAX};
use bytes::Bytes;

use super::{SharedAnswer, SharedAsk, SharedOrder, SharedQuestion, StreamPlace};
use crate::key::{KeyBuilder, NamespaceId};
use crate::object::{ObjectHead, Times};
use crate::permit::FillPermit;
use crate::store::{Lookup, Store, StoreLimits};
use crate::tags::Tags;

const SIZE_MAX: u64 = 1 << 20;

fn process() -> (Arc<Store>, NamespaceId) {
    let store = Store::new(StoreLimits::default(), 1);
    let site = store.namespace(b"page:shop");
    store.outbox().open(1000);
    store.sharing().set_patience(Duration::from_secs(5));
    store.sharing().open(SIZE_MAX);
    store.sharing().set_answering(true);
    store.sharing().reset(StreamPlace { ms: 1, ..StreamPlace::default() }, store.generation());
    (store, site)
}

fn miss(store: &Arc<Store>, site: NamespaceId, page: usize) -> FillPermit {
    let mut keys = KeyBuilder::default();
    keys.start(site);
    keys.push_url(format!("/{page}").as_bytes());
    let Lookup::Miss(permit) = store.lookup(&keys.public(), 0) else { panic!("a miss") };
    permit
}

fn next(store: &Store) -> Option<SharedOrder> {
    match store.sharing().poll_order(&Context::from_waker(Waker::noop())) {
        Poll::Ready(order) => order,
        Poll::Pending => None,
    }
}

fn ask(permit: FillPermit) -> (SharedAsk, Receiver<SharedAnswer>) {
    let (reply, answer) = channel();
    (permit.ask_nodes(move |said| reply.send(said).unwrap()), answer)
}

fn asked(
    store: &Arc<Store>,
    permit: FillPermit,
) -> (SharedAsk, SharedQuestion, Receiver<SharedAnswer>) {
    let (ask, answer) = ask(permit);
    let Some(SharedOrder::Ask(question)) = next(store) else { panic!("a question") };
    (ask, question, answer)
}

fn leased(store: &Arc<Store>, site: NamespaceId, page: usize) -> FillPermit {
    let (_ask, question, answer) = asked(store, miss(store, site, page));
    question.give_back(Some((*b"token").into()));
    match answer.try_recv() {
        Ok(SharedAnswer::Absent(permit)) => *permit,
        other => panic!("{other:?}"),
    }
}

fn begin(permit: &mut FillPermit, length: Option<u64>) {
    let times = Times { expires_ms: 1000, ..Times::default() };
    let head = ObjectHead { status: 200, times, length, ..ObjectHead::default() };
    let _ = permit.begin(head, &Tags::default());
}

fn fill(permit: FillPermit, size: usize) {
    fill_with(permit, Bytes::from(vec![b'a'; size]));
}

fn fill_with(mut permit: FillPermit, body: Bytes) {
    begin(&mut permit, Some(body.len() as u64));
    let _ = permit.append(body);
    assert!(permit.commit().object.is_some());
}

/// What the shared store gets for an object with this body.
fn written(body: &Bytes) -> Bytes {
    let (store, site) = process();
    fill_with(miss(&store, site, 1), body.clone());
    let Some(SharedOrder::Offer(offer)) = next(&store) else { panic!("an offer") };
    offer.bytes(b"shop", 1).unwrap().0.into()
}

/// The body that a node takes from the shared store, if it takes one.
fn taken(bytes: &Bytes, size_max: u64) -> Option<Bytes> {
    let (store, site) = process();
    let (_ask, question, _answer) = asked(&store, miss(&store, site, 1));
    store.sharing().open(size_max);
    question.take(bytes, b"shop", 1).ok()?;
    let mut keys = KeyBuilder::default();
    keys.start(site);
    keys.push_url(b"/1");
    match store.lookup(&keys.public(), 0) {
        Lookup::Hit(object) => object.body(),
        _ => panic!("it is in memory"),
    }
}

#[test]
fn bodies_are_shared_in_the_form_that_takes_less_memory() {
    let text = Bytes::from("<p>a line of a page that repeats itself</p>\n".repeat(800));
    let noise = std::iter::successors(Some(1_u64), |n| {
        Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
    });
    let noise: Bytes = noise.map(|n| (n >> 56) as u8).take(30_000).collect();
    let (small, large) = (written(&text), written(&noise));
    assert!(small.len() < text.len() / 4, "{} of {}", small.len(), text.len());
    assert!(large.len() > noise.len(), "{} of {}", large.len(), noise.len());
    for (bytes, body) in [(&small, &text), (&large, &noise)] {
        assert_eq!(taken(bytes, SIZE_MAX).as_ref(), Some(body));
        let len = body.len() as u64;
        assert!(taken(bytes, len).is_some() && taken(bytes, len - 1).is_none(), "too large");
        for at in 0..bytes.len().min(400) {
            assert!(taken(&bytes.slice(..at), SIZE_MAX).is_none(), "cut at {at}");
            let mut other = bytes.to_vec();
            other[at] ^= 1;
            assert!(taken(&other.into(), SIZE_MAX).is_none(), "changed at {at}");
        }
        for at in (400..bytes.len()).step_by(997) {
            assert!(taken(&bytes.slice(..at), SIZE_MAX).is_none(), "cut at {at}");
        }
    }
}

#[test]
fn offers_under_way_are_bounded_by_their_bytes_wherever_they_are() {
    let (store, site) = process();
    let mut under_way = Vec::new();
    for page in 0..100 {
        fill(miss(&store, site, page), SIZE_MAX as usize);
        // The thread has taken it, and Valkey has not.
        match next(&store) {
            Some(SharedOrder::Offer(offer)) => under_way.push(offer),
            None => break,
            other => panic!("{other:?}"),
        }
    }
    // Each counts with its copies.
    let most = SHARED_OFFERED_MAX / SIZE_MAX / 4;
    assert!((1..=most).contains(&(under_way.len() as u64)), "{}", under_way.len());
    let before = under_way.len();
    drop(under_way.pop());
    fill(miss(&store, site, 200), SIZE_MAX as usize);
    let Some(SharedOrder::Offer(offer)) = next(&store) else { panic!("there is room again") };
    under_way.push(offer);
    assert_eq!(under_way.len(), before);
    // One that is given up gives its room back, and one without room its lease.
    fill(leased(&store, site, 300), SIZE_MAX as usize);
    assert!(matches!(next(&store), Some(SharedOrder::Release(..))));
    drop(under_way);
    for page in 400..402 {
        fill(miss(&store, site, page), SIZE_MAX as usize);
    }
    store.sharing().set_answering(false);
    store.sharing().set_answering(true);
    assert_eq!(store.sharing().offered.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn many_questions_keep_no_end_of_a_lease_and_no_offer_out() {
    let (store, site) = process();
    let leased = [leased(&store, site, 1), leased(&store, site, 2)];
    let asks: Vec<_> =
        (0..SHARED_ORDERS_MAX + 1).map(|page| ask(miss(&store, site, 10 + page))).collect();
    let refused = asks.iter().filter(|(_, answer)| answer.try_recv().is_ok()).count();
    assert_eq!(refused, 1);
    let [first, second] = leased;
    drop(first);
    fill(second, 10);
    let orders: Vec<_> = std::iter::from_fn(|| next(&store)).collect();
    assert_eq!(orders.len(), SHARED_ORDERS_MAX + 2);
    let count = |is: fn(&SharedOrder) -> bool| orders.iter().filter(|order| is(order)).count();
    assert_eq!(count(|order| matches!(order, SharedOrder::Release(..))), 1);
    assert_eq!(count(|order| matches!(order, SharedOrder::Offer(_))), 1);
}

#[test]
fn the_lease_of_what_is_too_large_ends_before_its_fill() {
    let (store, site) = process();
    let mut declared = leased(&store, site, 1);
    begin(&mut declared, Some(SIZE_MAX + 1));
    assert!(matches!(next(&store), Some(SharedOrder::Release(..))));
    let mut open = leased(&store, site, 2);
    begin(&mut open, None);
    let _ = open.append(Bytes::from(vec![b'a'; SIZE_MAX as usize]));
    assert!(next(&store).is_none(), "it may still be shared");
    let _ = open.append(Bytes::from_static(b"a"));
    assert!(matches!(next(&store), Some(SharedOrder::Release(..))));
    let _wakes = (declared.finish(), open.finish());
    assert!(next(&store).is_none());
}

#[test]
fn a_question_is_taken_back_once_and_its_lease_is_returned() {
    let (store, site) = process();
    let (mut ask, question, answer) = asked(&store, miss(&store, site, 1));
    let now = Instant::from_nanos(7);
    assert_eq!(question.asked(), None);
    assert_eq!(ask.mark_sent(now), now.after(Duration::from_secs(5)));
    assert_eq!((ask.until(), question.asked()), (now.after(Duration::from_secs(5)), Some(now)));
    assert!(question.is_wanted());
    let permit = ask.take_back().unwrap();
    assert!(ask.take_back().is_none() && !question.is_wanted());
    question.give_back(Some((*b"token").into()));
    assert!(matches!(next(&store), Some(SharedOrder::Release(..))), "no other node waits for it");
    assert!(answer.try_recv().is_err(), "there is no answer");
    // It goes on as any other.
    fill(*permit, 10);
    assert!(matches!(next(&store), Some(SharedOrder::Offer(_))));
    // What is answered is not taken back.
    let (ask, question, answer) = asked(&store, miss(&store, site, 2));
    drop(question);
    assert!(ask.take_back().is_none() && answer.try_recv().is_ok());
}
