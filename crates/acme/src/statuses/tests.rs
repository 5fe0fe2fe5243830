//! Owns: who is asked when, and that an answer about another certificate says nothing.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_800_000_000;

fn id(name: &str) -> OrderId {
    OrderId(name.to_owned())
}

fn of(serial: u8, source: &StatusSource) -> Option<WatchedCertificate> {
    Some(WatchedCertificate { serial: vec![serial], source: source.clone() })
}

fn responder(name: &str) -> StatusSource {
    StatusSource::Responder(format!("http://{name}/"))
}

fn list(name: &str) -> StatusSource {
    StatusSource::List(format!("http://{name}/"))
}

/// One answer for all that were picked.
fn all(picked: &[(OrderId, Vec<u8>)], answer: &StatusAnswer) -> Vec<AnsweredStatus> {
    picked.iter().map(|(id, serial)| (id.clone(), serial.clone(), answer.clone())).collect()
}

#[test]
fn a_certificate_is_asked_about_at_once_and_twice_a_day() {
    let (mut book, source) = (StatusBook::default(), responder("a"));
    book.watch(&id("a"), of(1, &source), NOW);
    let picked = book.pick(NOW).unwrap();
    assert_eq!(picked, (source.clone(), vec![(id("a"), vec![1])]));
    assert_eq!((book.pick(NOW), book.due()), (None, None));
    let news = book.answered(&source, all(&picked.1, &StatusAnswer::Good(None)), NOW);
    assert_eq!(news, StatusNews::default());
    let due = book.due().unwrap();
    assert!((NOW + 10 * HOUR..=NOW + 12 * HOUR).contains(&due), "{due}");
    // The same certificate is not new, the next one is.
    book.watch(&id("a"), of(1, &source), NOW + 5);
    assert_eq!(book.pick(NOW + 5), None);
    book.watch(&id("a"), of(2, &source), NOW + 5);
    assert!(book.pick(NOW + 5).is_some());
    book.watch(&id("a"), None, NOW + 5);
    assert_eq!(book.due(), None);
}

#[test]
fn a_revoked_certificate_is_told_of_once_and_one_that_was_replaced_is_not() {
    let (mut book, source) = (StatusBook::default(), responder("a"));
    let revoked = StatusAnswer::Revoked(Revocation { at: Some(7), reason: Some(1) });
    book.watch(&id("a"), of(1, &source), NOW);
    let (_, picked) = book.pick(NOW).unwrap();
    // It is replaced while the responder thinks.
    book.watch(&id("a"), of(2, &source), NOW + 1);
    let news = book.answered(&source, all(&picked, &revoked), NOW + 2);
    assert_eq!(news, StatusNews::default());
    let (_, picked) = book.pick(NOW + 2).expect("the new one is asked about");
    let news = book.answered(&source, all(&picked, &revoked), NOW + 3);
    assert_eq!(news.revoked.len(), 1);
    assert_eq!((book.pick(NOW + 90 * 24 * HOUR), book.due()), (None, None));
    let news = book.answered(&source, all(&picked, &revoked), NOW + 4);
    assert_eq!(news.revoked.len(), 0);
}

#[test]
fn certificates_of_one_list_fetch_it_once() {
    let (mut book, source) = (StatusBook::default(), list("a"));
    for serial in 0..9 {
        book.watch(&id(&serial.to_string()), of(serial, &source), NOW);
    }
    let (_, picked) = book.pick(NOW).unwrap();
    assert_eq!(picked.len(), 9);
    let until = NOW + 2 * HOUR;
    let news = book.answered(&source, all(&picked, &StatusAnswer::Good(Some(until))), NOW);
    assert_eq!((news, book.due()), (StatusNews::default(), Some(until)));
    // More of them soon after do not fetch it again at once, and then together.
    for serial in 9..12 {
        book.watch(&id(&serial.to_string()), of(serial, &source), NOW + 60);
    }
    assert_eq!((book.pick(NOW + HOUR - 1), book.due()), (None, Some(NOW + HOUR)));
    assert_eq!(book.pick(NOW + HOUR).unwrap().1.len(), 12);
    // One list at a time.
    book.watch(&id("b"), of(1, &list("b")), NOW);
    assert_eq!(book.pick(NOW + HOUR), None);
    book.watch(&id("c"), of(1, &responder("c")), NOW);
    assert!(book.pick(NOW + HOUR).is_some());
}

#[test]
fn a_silent_source_is_asked_less_and_less_and_logged_once_a_day() {
    let (mut book, source) = (StatusBook::default(), responder("a"));
    (0..100).for_each(|n| book.watch(&id(&n.to_string()), of(n, &source), NOW));
    let (mut now, mut asked, mut lines) = (NOW, 0, 0);
    while now < NOW + 10 * 24 * HOUR {
        while let Some((_, picked)) = book.pick(now) {
            asked += 1;
            let silent = StatusAnswer::Silent("x".to_owned());
            let news = book.answered(&source, all(&picked, &silent), now);
            lines += usize::from(news.complaint.is_some());
        }
        now = book.due().unwrap().max(now + 1);
    }
    assert!((40..60).contains(&asked), "{asked}");
    assert!((9..=10).contains(&lines), "{lines}");
}

#[test]
fn a_certificate_that_a_responder_does_not_know_delays_no_other() {
    let (mut book, source) = (StatusBook::default(), responder("a"));
    (0..3).for_each(|n| book.watch(&id(&n.to_string()), of(n, &source), NOW));
    let unsaid = StatusAnswer::Unsaid("x".to_owned());
    let (_, first) = book.pick(NOW).unwrap();
    assert!(book.answered(&source, all(&first, &unsaid), NOW).complaint.is_some());
    for _ in 0..2 {
        let (_, picked) = book.pick(NOW).unwrap();
        assert_ne!(picked, first);
        assert_eq!(book.answered(&source, all(&picked, &unsaid), NOW).complaint, None);
    }
    assert_eq!((book.pick(NOW), book.due()), (None, Some(NOW + RETRY_FIRST)));
}

#[test]
fn sources_without_certificates_are_forgotten() {
    let mut book = StatusBook::default();
    for n in 0..50 {
        let source = responder(&n.to_string());
        book.watch(&id("a"), of(n, &source), NOW);
        let (_, picked) = book.pick(NOW).unwrap();
        book.answered(&source, all(&picked, &StatusAnswer::Good(None)), NOW);
        book.retain(|_| true);
        assert_eq!(book.sources.len(), 1);
    }
    book.retain(|_| false);
    assert!(book.sources.is_empty() && book.watches.is_empty());
}

proptest! {
    /// Whatever is answered and whatever the clock does: no source is asked twice at a time, none
    /// more often than its pauses permit, no certificate is forgotten, and each serial number is
    /// told of once at most.
    #[test]
    fn no_answer_has_a_source_asked_often_or_never(
        steps in proptest::collection::vec((0_u8..10, any::<u8>(), 0_u64..40_000), 1..80),
    ) {
        let sources = [responder("a"), list("a"), list("b")];
        let (mut book, mut now) = (StatusBook::default(), NOW);
        let mut open: Vec<StatusQuestion> = Vec::new();
        let mut told = BTreeSet::new();
        for (kind, number, seconds) in steps {
            let source = &sources[usize::from(number) % 3];
            match kind {
                0..3 => book.watch(&id(&(number % 5).to_string()), of(number, source), now),
                3 => book.watch(&id(&(number % 5).to_string()), None, now),
                4 => now = now.saturating_sub(seconds),
                5 => now += seconds,
                _ => {
                    while let Some(picked) = book.pick(now) {
                        prop_assert!(open.iter().all(|(known, _)| *known != picked.0));
                        open.push(picked);
                    }
                    if open.is_empty() {
                        continue;
                    }
                    let (source, picked) = open.remove(usize::from(number) % open.len());
                    let answer = match kind {
                        6 => StatusAnswer::Good(Some(seconds.rotate_left(9))),
                        7 => StatusAnswer::Revoked(Revocation::default()),
                        8 => StatusAnswer::Unsaid("x".to_owned()),
                        _ => StatusAnswer::Silent("x".to_owned()),
                    };
                    let news = book.answered(&source, all(&picked, &answer), now);
                    for (id, serial, _) in news.revoked {
                        let watch = &book.watches[&id];
                        prop_assert_eq!(&watch.certificate.serial, &serial);
                        told.insert(serial);
                    }
                    let pause = book.sources[&source].not_before.saturating_sub(now);
                    let least = match (&answer, &source) {
                        (StatusAnswer::Silent(_), _) => RETRY_FIRST,
                        (_, StatusSource::List(_)) => LIST_EVERY,
                        _ => 0,
                    };
                    prop_assert!((least..=RETRY_MAX).contains(&pause), "{}", pause);
                }
            }
        }
        // All that is not revoked is asked about within half a day.
        for (source, picked) in open {
            book.answered(&source, all(&picked, &StatusAnswer::Good(None)), now);
        }
        let mut left: BTreeSet<OrderId> = (book.watches.iter())
            .filter(|(_, watch)| watch.due.is_some())
            .map(|(id, _)| id.clone())
            .collect();
        for _ in 0..20 {
            now += AGAIN / 12;
            while let Some((source, picked)) = book.pick(now) {
                picked.iter().for_each(|(id, _)| { left.remove(id); });
                book.answered(&source, all(&picked, &StatusAnswer::Good(None)), now);
            }
        }
        prop_assert!(left.is_empty(), "{:?}", left);
    }
}
