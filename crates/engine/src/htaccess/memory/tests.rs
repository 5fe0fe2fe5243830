//! What is kept has its bounds, and gives way in its order.

use std::collections::HashSet;
use std::rc::Rc;

use bolide_base::{Instant, Now};
use bolide_files::FileTable;
use bolide_htaccess::{Asked, EnvTable, RequestVariable};
use bolide_http::Name;

use super::{
    BYTES_MAX, HtaccessMemory, HtaccessRuling, KeptPath, KeptRuling, KeptWay, PATHS_MAX,
    RULING_BYTES_MAX, RULINGS_MAX, RULINGS_OF_PATH_MAX, RoundEntry, RoundOutcome,
};
use crate::htaccess::questions::{AskedText, Kept, Question, Reply, RequestTexts};

/// A request with this query.
struct Query(String);

impl RequestTexts for Query {
    fn text<'s>(&'s self, _: Asked<'_>, _: Name, _: &'s mut Vec<u8>) -> Option<&'s [u8]> {
        Some(self.0.as_bytes())
    }
}

fn at(millis: u64) -> Now {
    Now { mono: Instant::from_nanos(millis * 1_000_000), unix_millis: millis }
}

fn path(uri: &str, before: Option<Rc<HtaccessRuling>>) -> KeptPath {
    let entry = RoundEntry { is_head: false, is_index: false, before };
    let uri = uri.as_bytes().into();
    KeptPath { site: 1, server: 0, location: 3, entry, uri, kept: Kept::Nothing }
}

/// A memory, with what it needs to know of files.
struct Rig {
    memory: HtaccessMemory,
    files: FileTable,
}

impl Rig {
    fn new() -> Self {
        Self { memory: HtaccessMemory::new(5), files: FileTable::new(1) }
    }

    /// Keeps a ruling of `bytes` for a path and a query, from one moment to another.
    fn keep(&mut self, uri: &str, query: &str, bytes: usize, (from, until): (u64, u64)) {
        let exported = EnvTable::default();
        let ruling = KeptRuling {
            lapses: self.files.lapses(),
            relied: Box::default(),
            until: at(until).mono,
            ruling: None,
            outcome: RoundOutcome { way: KeptWay::Content, exported, is_unkeyed: false },
            bytes,
            serial: self.memory.kept,
        };
        let of = AskedText::Variable(RequestVariable::QueryString);
        let reply = Reply::Text(Some(query.as_bytes().into()));
        let replies = vec![(Question::Text(of), reply)];
        self.memory.store(path(uri, None), replies, ruling, &self.files, at(from));
    }

    /// Whether there is something for a path and a query.
    fn has(&mut self, uri: &str, query: &str) -> bool {
        let own = path(uri, None);
        let slot = self.memory.slot(&own.uri, own.location, &own.entry);
        let held = self.memory.slots[slot].as_mut().filter(|held| held.is_for(&own));
        let texts = Query(query.to_owned());
        held.is_some_and(|held| {
            held.kept.find(&texts, &mut Vec::new(), &Default::default()).is_some()
        })
    }

    /// What there is, counted anew.
    fn count(&self) -> (usize, usize) {
        let all = self.memory.slots.iter().flatten().map(KeptPath::tally);
        all.fold((0, 0), |sum, one| (sum.0 + one.rulings, sum.1 + one.bytes))
    }
}

#[test]
fn there_are_never_more_rulings_than_allowed() {
    let (mut rig, mut most) = (Rig::new(), 0);
    for query in 0..RULINGS_OF_PATH_MAX {
        for number in 0..PATHS_MAX {
            rig.keep(&format!("/{number}"), &format!("{query}"), 100, (1, 900));
            most = most.max(rig.memory.held().0);
        }
    }
    assert_eq!(rig.memory.held(), rig.count());
    assert_eq!(most, RULINGS_MAX);
}

#[test]
fn what_is_kept_has_a_bound_in_bytes_and_gives_them_back() {
    let mut rig = Rig::new();
    for number in 0..4 * PATHS_MAX {
        rig.keep(&format!("/{number}"), "q", RULING_BYTES_MAX, (1, 900));
        assert!(rig.memory.held().1 <= BYTES_MAX);
        assert!(rig.has(&format!("/{number}"), "q"), "what came last is there");
    }
    assert_eq!(rig.memory.held(), rig.count());
    assert!(rig.memory.held().0 > BYTES_MAX / RULING_BYTES_MAX / 2);
    // What holds no more is given back, whatever else is kept.
    for _ in 0..PATHS_MAX {
        rig.keep("/other", "q", 100, (1_000, 2_000));
    }
    assert_eq!(rig.memory.held(), (1, 100 + "/other".len()));
}

#[test]
fn one_ruling_more_takes_the_place_of_what_holds_no_more_or_of_the_oldest() {
    let mut rig = Rig::new();
    let queries: Vec<_> = (0..=RULINGS_OF_PATH_MAX).map(|number| format!("q{number}")).collect();
    let (ninth, eight) = queries.split_last().unwrap();
    let there =
        |rig: &mut Rig| -> Vec<bool> { queries.iter().map(|query| rig.has("/p", query)).collect() };
    for query in eight {
        // One of them holds for less time.
        rig.keep("/p", query, 100, (1, if query == "q5" { 10 } else { 900 }));
    }
    rig.keep("/p", ninth, 100, (20, 900));
    let expected: Vec<_> = queries.iter().map(|query| query != "q5").collect();
    assert_eq!(there(&mut rig), expected);
    rig.keep("/p", "q5", 100, (30, 900));
    let expected: Vec<_> = queries.iter().map(|query| query != "q0").collect();
    assert_eq!(there(&mut rig), expected);
    assert_eq!(rig.memory.held(), rig.count());
}

#[test]
fn rounds_that_lead_to_one_path_have_places_of_their_own() {
    let mut rig = Rig::new();
    rig.keep("/p", "q", 100, (1, 900));
    let all: Vec<_> = (0..PATHS_MAX).map(|_| Rc::new(HtaccessRuling::default())).collect();
    let slots = all.iter().map(|before| {
        let own = path("/index.php", Some(Rc::clone(before)));
        rig.memory.slot(&own.uri, own.location, &own.entry)
    });
    let slots: HashSet<_> = slots.collect();
    // By chance 63 of 100 places are taken.
    assert!(slots.len() > PATHS_MAX * 6 / 10, "{}", slots.len());
}
