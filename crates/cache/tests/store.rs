//! The store as an exchange uses it: fills, purges, sessions, limits.

use std::sync::Arc;

use bolide_cache::{
    AbandonReason, AskedBy, CacheKey, FillPermit, Follow, Freshness, Front, GrowthRead, KeyBuilder,
    Lookup, NamespaceId, Object, ObjectHead, ObjectVariant, SessionKey, Store, StoreLimits,
    TagPurge, TagScope, Tags, Times, Waited, Waiter, Wakes,
};
use bolide_http::negotiate::Coding;
use bolide_http::{FieldMap, Name};
use bytes::Bytes;

fn store() -> Arc<Store> {
    Store::new(StoreLimits { bytes: 1 << 20, front_entries: 64, ..StoreLimits::default() }, 7)
}

fn url(site: NamespaceId, path: &str) -> KeyBuilder {
    let mut keys = KeyBuilder::default();
    keys.start(site);
    keys.push_url(path.as_bytes());
    keys
}

fn head(expires_ms: u64) -> ObjectHead {
    let mut fields = FieldMap::new();
    fields.push(Name::ContentType, b"text/html");
    fields.push_text(b"X-Own", b"1");
    let times = Times { created_ms: 0, expires_ms, stale_seconds: 10, error_seconds: 100 };
    ObjectHead {
        status: 200,
        fields,
        times,
        etag: b"\"e\"".to_vec(),
        last_modified: Some(5),
        ..ObjectHead::default()
    }
}

fn tags(names: &[&str]) -> Tags {
    let mut tags = Tags::default();
    names.iter().for_each(|name| tags.push(name.as_bytes()));
    tags
}

fn permit(found: Lookup) -> FillPermit {
    match found {
        Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) => permit,
        other => panic!("{other:?} instead of a permit"),
    }
}

fn fill(permit: FillPermit, names: &[&str], body: &[u8]) -> Option<Arc<Object>> {
    let mut permit = permit;
    let _ = permit.begin(head(1000), &tags(names));
    let _ = permit.append(Bytes::copy_from_slice(body));
    permit.commit().object
}

fn filled(front: &mut Front, key: &CacheKey<'_>, names: &[&str]) -> Arc<Object> {
    let permit = permit(front.lookup(key, 0));
    fill(permit, names, b"body").expect("kept")
}

const ME: Waiter = Waiter { worker: 0, exchange: 1 };

#[test]
fn a_fill_knows_whether_it_has_a_reader() {
    let store = store();
    let (mut one, mut two) = (store.front(0), store.front(1));
    let keys = url(store.namespace(b"a"), "/");
    let permit = permit(one.lookup(&keys.public(), 0));
    assert!(!permit.is_joined());
    let Lookup::Join(first) = two.lookup(&keys.public(), 0) else { panic!("no join") };
    let Lookup::Join(second) = one.lookup(&keys.public(), 0) else { panic!("no join") };
    drop(first);
    assert!(permit.is_joined());
    drop(second);
    assert!(!permit.is_joined());
}

#[test]
fn a_filled_object_is_a_hit_with_all_that_it_said() {
    let store = store();
    let mut front = store.front(0);
    let site = store.namespace(b"a");
    let keys = url(site, "/");
    filled(&mut front, &keys.public(), &["x", "", "y", "x"]);
    for _ in 0..3 {
        let Lookup::Hit(object) = front.lookup(&keys.public(), 999) else { panic!("no hit") };
        let mut fields = FieldMap::new();
        object.fields(&mut fields);
        assert!(fields.is_identical(&head(0).fields));
        assert_eq!(object.body().unwrap(), "body");
        assert_eq!((object.etag(), object.last_modified()), (Some(&b"\"e\""[..]), Some(5)));
        assert_eq!((object.status(), object.url(), object.session()), (200, &b"/"[..], None));
        assert_eq!(store.tags().texts_of(&object), [&b""[..], b"x", b"y"]);
        assert_eq!(object.piece_at(1).unwrap(), "ody");
        assert!(object.piece_at(4).is_none());
    }
}

#[test]
fn one_permit_per_key_and_the_others_join() {
    let store = store();
    let site = store.namespace(b"a");
    let (mut one, mut two) = (store.front(0), store.front(1));
    let keys = url(site, "/");
    let mut permit = permit(one.lookup(&keys.public(), 0));
    let Lookup::Join(mut follower) = two.lookup(&keys.public(), 0) else { panic!("no join") };
    assert_eq!(follower.poll(), Follow::Waiting);
    assert_eq!(follower.wait(ME), Waited::Registered);
    assert_eq!(permit.begin(head(9), &tags(&[])), Wakes(vec![ME]));
    assert_eq!(follower.wait(ME), Waited::Moved);
    assert_eq!((follower.poll(), follower.read()), (Follow::Head, GrowthRead::Pending));
    assert_eq!(follower.wait(ME), Waited::Registered);
    assert_eq!(permit.append(Bytes::from_static(b"ab")), Wakes(vec![ME]));
    assert_eq!(follower.read(), GrowthRead::Bytes(Bytes::from_static(b"ab")));
    assert_eq!(follower.wait(ME), Waited::Registered);
    let committed = permit.commit();
    assert_eq!(committed.wakes, Wakes(vec![ME]));
    assert_eq!(follower.read(), GrowthRead::End);
    assert_eq!(store.stats().fills, 0);
    assert_eq!(store.stats().filling_bytes, 0);
}

#[test]
fn a_patient_follower_is_woken_by_the_end_alone() {
    for commits in [true, false] {
        let store = store();
        let site = store.namespace(b"a");
        let (mut one, mut two) = (store.front(0), store.front(1));
        let keys = url(site, "/");
        let mut permit = permit(one.lookup(&keys.public(), 0));
        let Lookup::Join(follower) = two.lookup(&keys.public(), 0) else { panic!("no join") };
        assert_eq!(
            (follower.poll_end(), follower.wait_end(ME)),
            (Follow::Waiting, Waited::Registered)
        );
        assert_eq!(permit.begin(head(9), &tags(&[])), Wakes(Vec::new()));
        assert_eq!(follower.poll_end(), Follow::Waiting);
        assert_eq!(permit.append(Bytes::from_static(b"ab")), Wakes(Vec::new()));
        let wakes = match commits {
            true => permit.commit().wakes,
            false => permit.abandon(AbandonReason::Gone),
        };
        assert_eq!(wakes, Wakes(vec![ME]));
        assert_eq!(follower.wait_end(ME), Waited::Moved);
        assert_eq!(follower.poll_end(), if commits { Follow::Head } else { Follow::Again });
    }
}

#[test]
fn a_dropped_permit_leaves_its_waiters_to_the_next_turn() {
    let store = store();
    let mut front = store.front(0);
    let keys = url(store.namespace(b"a"), "/");
    let permit_one = permit(front.lookup(&keys.public(), 0));
    let mut follower = permit_one.follow();
    assert_eq!(permit_one.join(ME), Waited::Registered);
    drop(permit_one);
    assert_eq!(front.poll_orphans(), Wakes(vec![ME]));
    assert_eq!(front.poll_orphans(), Wakes(Vec::new()));
    assert_eq!(follower.poll(), Follow::Again);
    let _ = permit(front.lookup(&keys.public(), 0));
}

#[test]
fn an_uncacheable_answer_is_remembered_for_a_while() {
    let store = store();
    let mut front = store.front(0);
    let keys = url(store.namespace(b"a"), "/");
    let first = permit(front.lookup(&keys.public(), 0));
    let _ = first.abandon(AbandonReason::Uncacheable { until_ms: 50 });
    assert!(matches!(front.lookup(&keys.public(), 49), Lookup::Pass));
    assert!(matches!(front.lookup(&keys.public(), 50), Lookup::Miss(_)));
}

#[test]
fn a_failure_is_remembered_for_a_while_and_can_be_purged() {
    let store = store();
    let mut front = store.front(0);
    let keys = url(store.namespace(b"a"), "/");
    let first = permit(front.lookup(&keys.public(), 0));
    let mut waiting = first.follow();
    let _ = first.abandon(AbandonReason::Refused { status: 502, until_ms: 50 });
    assert_eq!(waiting.poll(), Follow::Again);
    assert!(matches!(front.lookup(&keys.public(), 49), Lookup::Failed(502)));
    let again = permit(front.lookup(&keys.public(), 50));
    assert!(again.stale().is_none(), "a memory is nothing to confirm");
    let _ = again.abandon(AbandonReason::Refused { status: 504, until_ms: 100 });
    assert!(matches!(front.lookup(&keys.public(), 60), Lookup::Failed(504)));
    store.purge_url(&keys.public(), TagPurge::Dead);
    assert!(matches!(front.lookup(&keys.public(), 60), Lookup::Miss(_)));
}

#[test]
fn who_fills_for_too_long_gets_company_and_both_are_kept() {
    let store = store();
    let mut front = store.front(0);
    let keys = url(store.namespace(b"a"), "/");
    let slow = permit(front.lookup(&keys.public(), 10));
    let asked = bolide_base::Instant::from_nanos(10);
    slow.mark_sent(asked);
    let Lookup::Join(follower) = front.lookup(&keys.public(), 500) else { panic!("no fill") };
    assert_eq!(follower.growing().asked(), Some(asked));
    front.supersede(follower.growing());
    let quick = permit(front.lookup(&keys.public(), 500));
    front.supersede(follower.growing());
    assert!(matches!(front.lookup(&keys.public(), 500), Lookup::Join(_)), "the second one is on");
    assert!(fill(quick, &[], b"quick").is_some());
    assert!(fill(slow, &[], b"slow").is_some());
    let Lookup::Hit(object) = front.lookup(&keys.public(), 500) else { panic!("no hit") };
    assert_eq!(object.body().unwrap(), "slow");
}

#[test]
fn a_purge_of_its_url_reaches_a_fill_that_has_company() {
    for how in [TagPurge::Dead, TagPurge::Stale] {
        let store = store();
        let site = store.namespace(b"site");
        let (mut front, keys) = (store.front(0), url(site, "/slow"));
        let slow = permit(front.lookup(&keys.public(), 0));
        front.supersede(slow.growing());
        let mut other = url(site, "/slow");
        other.push_vary(b"gzip");
        let over = permit(front.lookup(&other.public(), 0));
        let moved =
            permit(front.lookup(&keys.public(), 0)).move_over(&other.public(), AskedBy::Others);
        let moved = moved.permit.expect("a permit");
        assert_eq!((store.stats().fills, store.floor()), (3, store.generation()));
        store.purge_url(&keys.public(), how);
        assert_eq!(store.floor(), store.generation() - 1, "they began before the purge");
        for (permit, body) in [(slow, b"a"), (over, b"b"), (moved, b"c")] {
            let kept = fill(permit, &["t"], body);
            match how {
                TagPurge::Dead => assert!(kept.is_none(), "purged"),
                TagPurge::Stale => assert!(kept.is_some_and(|object| object.is_softly_purged())),
            }
        }
        assert_eq!((store.stats().fills, store.floor()), (0, store.generation()));
    }
}

#[test]
fn a_fill_moves_over_another_one_if_it_may() {
    let store = store();
    let mut front = store.front(0);
    let site = store.namespace(b"a");
    let (keys, own) = (url(site, "/"), url(site, "/own"));
    let busy = permit(front.lookup(&keys.public(), 0));
    let heeding = permit(front.lookup(&own.public(), 0)).move_to(&keys.public(), AskedBy::Others);
    assert!(heeding.permit.is_none());
    let moved = permit(front.lookup(&own.public(), 0)).move_over(&keys.public(), AskedBy::Others);
    assert!(fill(moved.permit.unwrap(), &[], b"moved").is_some());
    assert!(fill(busy, &[], b"busy").is_some());
}

#[test]
fn a_purged_tag_kills_and_says_how_many() {
    let store = store();
    let mut front = store.front(0);
    let (site, other) = (store.namespace(b"a"), store.namespace(b"b"));
    for path in ["/1", "/2", "/3"] {
        filled(&mut front, &url(site, path).public(), &["post", path]);
        filled(&mut front, &url(other, path).public(), &["post", path]);
    }
    assert_eq!(store.purge_tag(site, TagScope::Public, b"post", TagPurge::Dead), 3);
    assert_eq!(store.purge_tag(site, TagScope::Public, b"post", TagPurge::Dead), 0);
    for path in ["/1", "/2", "/3"] {
        assert!(matches!(front.lookup(&url(site, path).public(), 0), Lookup::Miss(_)));
        assert!(matches!(front.lookup(&url(other, path).public(), 0), Lookup::Hit(_)));
    }
    assert_eq!(store.purge_tag(other, TagScope::Public, b"/*", TagPurge::Dead), 3);
    assert!(matches!(front.lookup(&url(other, "/1").public(), 0), Lookup::Miss(_)));
    assert_eq!(store.purge_all(other, TagPurge::Dead), 2, "one was found dead and freed");
}

#[test]
fn a_soft_purge_serves_on_while_one_refreshes() {
    let store = store();
    let (mut one, mut two) = (store.front(0), store.front(1));
    let site = store.namespace(b"a");
    let keys = url(site, "/");
    filled(&mut one, &keys.public(), &["t"]);
    assert_eq!(store.purge_tag(site, TagScope::Public, b"t", TagPurge::Stale), 1);
    let refresher = permit(one.lookup(&keys.public(), 0));
    assert!(matches!(one.lookup(&keys.public(), 0), Lookup::Stale(_, None)));
    assert!(matches!(two.lookup(&keys.public(), 0), Lookup::Stale(_, None)));
    let new = fill(refresher, &["t"], b"new").unwrap();
    for front in [&mut one, &mut two] {
        let Lookup::Hit(object) = front.lookup(&keys.public(), 0) else { panic!("no hit") };
        assert!(Arc::ptr_eq(&object, &new));
    }
}

#[test]
fn a_failed_refresh_rests_and_the_stale_object_stays() {
    let store = store();
    let mut front = store.front(0);
    let keys = url(store.namespace(b"a"), "/");
    filled(&mut front, &keys.public(), &[]);
    let refresher = permit(front.lookup(&keys.public(), 1000));
    let _ = refresher.abandon(AbandonReason::Failed { now_ms: 1000, rest_until_ms: 2000 });
    assert!(matches!(front.lookup(&keys.public(), 1999), Lookup::Stale(_, None)));
    assert!(matches!(front.lookup(&keys.public(), 2000), Lookup::Stale(_, Some(_))));
    let late = permit(front.lookup(&keys.public(), 11_000));
    assert_eq!(late.stale().unwrap().body().unwrap(), "body");
    let mut fresh = head(20_000);
    fresh.fields.push_text(b"X-New", b"2");
    let kept = late.freshen(fresh, &tags(&[])).object.unwrap();
    assert_eq!(kept.body().unwrap(), "body");
    assert!(matches!(front.lookup(&keys.public(), 19_999), Lookup::Hit(_)));
}

#[test]
fn a_purge_during_the_fill_kills_what_it_brings() {
    let store = store();
    let mut front = store.front(0);
    let site = store.namespace(b"a");
    let keys = url(site, "/");
    let purges: [&dyn Fn() -> u64; 5] = [
        &|| store.purge_tag(site, TagScope::Public, b"t", TagPurge::Dead),
        &|| store.purge_tag(site, TagScope::Public, b"tag*", TagPurge::Dead),
        &|| store.purge_all(site, TagPurge::Dead),
        &|| store.purge_url(&url(site, "/").public(), TagPurge::Dead),
        &|| (0..70).map(|_| store.purge_tag(site, TagScope::Public, b"o*", TagPurge::Dead)).sum(),
    ];
    for purge in purges {
        for begun in [true, false] {
            let mut permit_one = permit(front.lookup(&keys.public(), 0));
            if begun {
                let _ = permit_one.begin(head(1000), &tags(&["t", "tag1", "o"]));
            }
            purge();
            store.sweep(100_000, 0);
            let found = front.lookup(&keys.public(), 0);
            if begun {
                let _ = permit_one.append(Bytes::from_static(b"x"));
                assert!(permit_one.commit().object.is_none());
                let _ = permit(found);
            } else {
                let joined = match found {
                    Lookup::Join(follower) => Some(follower),
                    Lookup::Miss(_) => None,
                    other => panic!("{other:?}"),
                };
                assert!(fill(permit_one, &["t", "tag1", "o"], b"x").is_none());
                assert!(joined.is_none_or(|mut joined| joined.poll() == Follow::Again));
            }
        }
    }
    assert_eq!(store.stats().objects, 0);
    assert_eq!(store.bytes(), 0);
}

#[test]
fn a_purge_of_its_url_follows_a_fill_to_another_key() {
    let store = store();
    let site = store.namespace(b"site");
    let keys = url(site, "/page");
    let mut front = store.front(0);
    let first = permit(front.lookup(&keys.public(), 0));
    assert_eq!(store.purge_url(&keys.public(), TagPurge::Dead), 0);
    let mut copy = url(site, "/page");
    copy.push_vary(b"lang=de;");
    let moved =
        first.move_to(&copy.public(), AskedBy::Others).permit.expect("no other fill of the key");
    assert!(fill(moved, &[], b"older than the purge").is_none());
    drop(permit(front.lookup(&copy.public(), 0)));
}

#[test]
fn who_joined_a_fill_that_is_not_kept_after_all_reads_to_its_end() {
    let store = store();
    let site = store.namespace(b"site");
    let keys = url(site, "/page");
    let (mut front, key) = (store.front(0), keys.public());
    let mut first = permit(front.lookup(&key, 0));
    assert!(!first.pass_on(None), "it has no reader");
    drop(first);
    for until_ms in [None, Some(50)] {
        let mut filling = permit(front.lookup(&key, 100));
        let _ = filling.begin(head(1000), &tags(&["t"]));
        let _ = filling.append(Bytes::from_static(b"one "));
        let Lookup::Join(mut joined) = front.lookup(&key, 100) else { panic!("no fill") };
        store.purge_tag(site, TagScope::Public, b"t", TagPurge::Dead);
        assert!(!filling.is_storable());
        assert!(filling.pass_on(until_ms.map(|ms| 100 + ms)), "it has a reader");
        match until_ms {
            None => drop(permit(front.lookup(&key, 100))),
            Some(_) => assert!(matches!(front.lookup(&key, 100), Lookup::Pass)),
        }
        let _ = filling.append(Bytes::from_static(b"two"));
        assert!(filling.commit().object.is_none());
        assert_eq!(joined.poll(), Follow::Head);
        let mut whole = Vec::new();
        while let GrowthRead::Bytes(bytes) = joined.read() {
            whole.extend_from_slice(&bytes);
        }
        assert_eq!((&*whole, joined.read()), (&b"one two"[..], GrowthRead::End));
    }
    let stats = store.stats();
    assert_eq!((stats.fills, stats.filling_bytes), (0, 0));
}

#[test]
fn a_fill_that_is_not_stored_holds_what_its_slowest_reader_lacks() {
    let limits = StoreLimits { bytes: 1 << 20, object_bytes: 1 << 18, ..StoreLimits::default() };
    let store = Store::new(limits, 1);
    let site = store.namespace(b"site");
    let keys = url(site, "/video");
    let (mut front, key) = (store.front(0), keys.public());
    let mut filling = permit(front.lookup(&key, 100));
    let _ = filling.begin(head(1000), &tags(&["t"]));
    let join = |front: &mut Front| {
        let Lookup::Join(mut joined) = front.lookup(&key, 100) else { panic!("no fill") };
        assert_eq!(joined.poll(), Follow::Head);
        joined
    };
    let (mut quick, mut slow) = (join(&mut front), join(&mut front));
    let (mut taken, mut seconds) = (0, 0);
    for at in 0..256 {
        // Sixteen times the memory of the store.
        assert!(filling.is_storable() || filling.pass_on(None), "it has readers");
        while filling.awaits_followers(bolide_base::Instant::from_nanos(seconds * 1_000_000_000)) {
            seconds += 1;
        }
        let _ = filling.append(Bytes::from(vec![at as u8; 1 << 16]));
        match quick.read() {
            GrowthRead::Bytes(bytes) => assert!(bytes.iter().all(|byte| *byte == at as u8)),
            other => panic!("{other:?} in place of piece {at}"),
        }
        if at < 8 {
            assert!(matches!(slow.read(), GrowthRead::Bytes(_)));
            taken += 1;
        }
        assert!(store.stats().filling_bytes <= 3 << 20, "{at}");
    }
    assert_eq!((quick.read(), taken), (GrowthRead::Pending, 8));
    assert_eq!(slow.read(), GrowthRead::Broken, "what it lacks is not held for ever");
    assert_eq!(seconds, 10, "the fill has waited for it once");
    assert!(filling.commit().object.is_none());
    assert_eq!(quick.read(), GrowthRead::End);
    assert_eq!(store.stats().filling_bytes, 0);
}

#[test]
fn bodies_that_slow_readers_hold_count_when_they_have_left_the_index() {
    let limits = StoreLimits { bytes: 1 << 20, object_bytes: 1 << 18, ..StoreLimits::default() };
    let store = Store::new(limits, 1);
    let site = store.namespace(b"site");
    let mut front = store.front(0);
    let mut held = Vec::new();
    for at in 0..64 {
        let keys = url(site, &format!("/image/{at}"));
        let mut filling = permit(front.lookup(&keys.public(), 100));
        let _ = filling.begin(head(1000), &tags(&["t"]));
        let _ = filling.append(Bytes::from(vec![0; 1 << 17]));
        if filling.is_storable() {
            held.extend(filling.commit().object);
        }
    }
    assert!((8..=24).contains(&held.len()), "{}", held.len());
    let keys = url(site, "/small");
    let mut filling = permit(front.lookup(&keys.public(), 100));
    let _ = filling.begin(head(1000), &tags(&["t"]));
    let _ = filling.append(Bytes::from(vec![0; 1 << 12]));
    assert!(filling.commit().object.is_some(), "small bodies are stored all the same");
    held.clear();
    let keys = url(site, "/image/later");
    let mut filling = permit(front.lookup(&keys.public(), 100));
    let _ = filling.begin(head(1000), &tags(&["t"]));
    let _ = filling.append(Bytes::from(vec![0; 1 << 17]));
    assert!(filling.is_storable(), "the slow readers are gone");
}

#[test]
fn a_private_object_answers_its_own_session_only() {
    let store = store();
    let mut front = store.front(0);
    let site = store.namespace(b"a");
    let keys = url(site, "/cart");
    let (ann, bob) = (SessionKey::new(b"ann").unwrap(), SessionKey::new(b"bob").unwrap());
    for session in [ann, bob] {
        let mut own = tags(&["cart"]);
        own.push_public(b"all_carts");
        let mut permit = permit(front.lookup(&keys.private(session), 0));
        let _ = permit.begin(head(1000), &own);
        let _ = permit.append(Bytes::copy_from_slice(session.text()));
        let _ = permit.commit();
    }
    let mut is_hit = |session| {
        matches!(front.lookup(&keys.private(session), 0), Lookup::Hit(object)
        if object.is_for(Some(session)) && object.body().unwrap() == session.text())
    };
    assert!(is_hit(ann) && is_hit(bob));
    assert_eq!(store.purge_tag(site, TagScope::Session(ann), b"cart", TagPurge::Dead), 1);
    assert!(!is_hit(ann) && is_hit(bob));
    assert_eq!(store.purge_all(site, TagPurge::Dead), 0);
    assert_eq!(store.purge_tag(site, TagScope::Public, b"cart", TagPurge::Dead), 0);
    assert!(is_hit(bob));
    assert_eq!(store.purge_tag(site, TagScope::Public, b"all_carts", TagPurge::Dead), 1);
    assert!(!is_hit(bob));
    assert!(matches!(front.lookup(&keys.public(), 0), Lookup::Miss(_)));
}

#[test]
fn a_purged_url_takes_all_its_copies() {
    let store = store();
    let mut front = store.front(0);
    let site = store.namespace(b"a");
    let mut keys = url(site, "/");
    for mobile in ["", "mobile", "tablet"] {
        keys.clear_vary();
        keys.push_vary(mobile.as_bytes());
        filled(&mut front, &keys.public(), &[]);
    }
    filled(&mut front, &url(site, "/x").public(), &[]);
    assert_eq!(store.purge_url(&url(site, "/").public(), TagPurge::Dead), 3);
    assert!(matches!(front.lookup(&keys.public(), 0), Lookup::Miss(_)));
    assert!(matches!(front.lookup(&url(site, "/x").public(), 0), Lookup::Hit(_)));
}

#[test]
fn a_url_remembers_what_it_varies_by() {
    let store = store();
    let mut front = store.front(0);
    let site = store.namespace(b"a");
    let mut keys = url(site, "/");
    let first = permit(front.lookup(&keys.public(), 0));
    let base = keys.clone();
    assert!(store.remember_vary(&base.public(), &[b"accept-language", b"x-y"], AskedBy::Others));
    keys.push_vary(b"de");
    let moved = first.move_to(&keys.public(), AskedBy::Others);
    assert!(fill(moved.permit.unwrap(), &[], b"de").is_some());
    for _ in 0..2 {
        let Lookup::Vary(names) = front.lookup(&base.public(), 0) else { panic!("no names") };
        assert!(names.vary_names().eq([&b"accept-language"[..], b"x-y"]));
    }
    assert!(matches!(front.lookup(&keys.public(), 0), Lookup::Hit(_)));
    assert!(!store.remember_vary(&base.public(), &[&b"x"[..]; 17], AskedBy::Others));
}

#[test]
fn a_url_has_a_bounded_number_of_copies() {
    let limits = StoreLimits { bytes: 1 << 26, ..StoreLimits::default() };
    let store = Store::new(limits, 7);
    let mut front = store.front(0);
    let mut keys = url(store.namespace(b"a"), "/");
    assert!(store.remember_vary(&keys.public(), &[b"x"], AskedBy::Others));
    for value in 0..600_u32 {
        keys.clear_vary();
        keys.push_vary(&value.to_le_bytes());
        filled(&mut front, &keys.public(), &[]);
    }
    assert!(store.stats().objects <= 513);
    assert!(matches!(front.lookup(&keys.public(), 0), Lookup::Hit(_)));
    keys.clear_vary();
    assert!(matches!(front.lookup(&keys.public(), 0), Lookup::Vary(_)));
}

#[test]
fn bytes_stay_within_the_limits_of_store_and_namespace() {
    let store = store();
    let mut front = store.front(0);
    let (large, small) = (store.namespace(b"a"), store.namespace(b"b"));
    store.namespaces().set_limit(small, 50_000);
    for index in 0..2000 {
        for site in [large, small] {
            let keys = url(site, &format!("/{index}"));
            let permit = permit(front.lookup(&keys.public(), 0));
            assert!(fill(permit, &["t"], &[0; 2000]).is_some());
            assert!(store.bytes() <= 1 << 20);
        }
    }
    let accounts = store.namespaces().stats();
    assert!(accounts[1].bytes <= 50_000 && accounts[1].objects >= 20);
    assert!(accounts[0].bytes > 900_000);
    assert_eq!(accounts.iter().map(|a| a.bytes).sum::<u64>(), store.bytes());
    assert_eq!(store.purge_all(large, TagPurge::Dead), accounts[0].objects);
    store.purge_all(small, TagPurge::Dead);
    store.sweep(1_000_000, 0);
    store.sweep(1_000_000, 0);
    assert_eq!((store.bytes(), store.stats().objects), (0, 0));
    for _ in 0..256 {
        store.sweep(1, 0);
    }
    assert_eq!(store.stats().tags, 0);
}

#[test]
fn compressed_forms_are_made_once_and_counted() {
    let store = store();
    let mut front = store.front(0);
    let site = store.namespace(b"a");
    let object = filled(&mut front, &url(site, "/").public(), &[]);
    let before = store.bytes();
    assert!(object.claim_variant(Coding::Gzip) && !object.claim_variant(Coding::Gzip));
    object.unclaim_variant(Coding::Gzip);
    assert!(object.claim_variant(Coding::Gzip) && object.claim_variant(Coding::Brotli));
    let form = ObjectVariant::Ready(Bytes::from_static(b"gz"));
    assert!(store.set_variant(&object, Coding::Gzip, form.clone()));
    assert_eq!(object.variant(Coding::Gzip), Some(&form));
    assert_eq!(store.bytes(), before + 2);
    store.purge_url(&url(site, "/").public(), TagPurge::Dead);
    assert!(!store.set_variant(&object, Coding::Brotli, form));
    assert_eq!(store.bytes(), 0);
}

#[test]
fn a_large_body_is_whole_in_its_pieces() {
    let limits = StoreLimits { bytes: 1 << 26, ..StoreLimits::default() };
    let store = Store::new(limits, 7);
    let mut front = store.front(0);
    let keys = url(store.namespace(b"a"), "/");
    let body: Vec<u8> = (0..3_000_000_u32).map(|index| (index / 7) as u8).collect();
    let mut permit_one = permit(front.lookup(&keys.public(), 0));
    let _ = permit_one.begin(head(1000), &tags(&[]));
    for chunk in body.chunks(70_001) {
        let _ = permit_one.append(Bytes::copy_from_slice(chunk));
    }
    let object = permit_one.commit().object.unwrap();
    assert_eq!(object.body_len(), 3_000_000);
    assert!(object.body().is_none());
    assert_eq!(object.pieces().collect::<Vec<_>>().concat(), body);
    assert_eq!(object.piece_at(2_999_999).unwrap(), &body[2_999_999..]);
    let other = url(store.namespace(b"a"), "/b");
    let mut permit_two = permit(front.lookup(&other.public(), 0));
    let _ = permit_two.begin(head(1000), &tags(&[]));
    let _ = permit_two.append(Bytes::from(vec![0; 10_000_001]));
    assert!(!permit_two.is_storable());
    assert!(permit_two.commit().object.is_none());
}

#[test]
fn a_clock_that_jumps_back_kills_nothing() {
    let store = store();
    let mut front = store.front(0);
    let keys = url(store.namespace(b"a"), "/");
    let permit_one = permit(front.lookup(&keys.public(), 900));
    let object = fill(permit_one, &[], b"x").unwrap();
    assert!(matches!(front.lookup(&keys.public(), 0), Lookup::Hit(_)));
    assert_eq!(object.times().age_seconds(0), 0);
    assert_eq!(store.judge(&object, 1000), Freshness::Stale);
    assert_eq!(store.judge(&object, 0), Freshness::Fresh);
}
