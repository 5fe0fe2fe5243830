//! The doctor of the hit ratio: request patterns that the cache does not answer, with remedies.
//!
//! A pure function of recent decisions. Owns the definition of a pattern: URLs whose numbers and
//! identifiers are folded.

use std::collections::{HashMap, HashSet};

use bolide_cache::DecisionRecord;
use bolide_cache::rules::StoreRefusal;

use super::remedies::{CacheKind, PatternShape, Remedy, remedy_for};
use crate::explain::why::{Why, decode};

/// LIMIT: reported patterns.
pub(crate) const FINDINGS_MAX: usize = 10;
/// LIMIT: query parameters of a pattern.
const PARAMETERS_MAX: usize = 4;
/// Requests of one URL or pattern that count as a repetition.
const REPEATS: usize = 3;

/// A decision, as the doctor needs it.
#[derive(Clone, Debug)]
pub(crate) struct DoctorRecord {
    /// The namespace, by its index in the caller's list.
    pub(crate) space: usize,
    pub(crate) kind: CacheKind,
    pub(crate) why: Why,
    pub(crate) refusal: Option<StoreRefusal>,
    /// Whether it was a hit.
    pub(crate) is_hit: bool,
    /// The hash of the key; 0 if there was none.
    pub(crate) key: u128,
    /// The client's waiting time in milliseconds.
    pub(crate) millis: u64,
    /// The beginning of path and query.
    pub(crate) target: Vec<u8>,
}

impl DoctorRecord {
    /// Converts a recorded decision.
    pub(crate) fn new(noted: DecisionRecord, space: usize, is_zone: bool) -> Self {
        let (cached, why, refusal, is_kept) = decode(noted.codes);
        Self {
            space,
            kind: if is_zone { CacheKind::Zone } else { CacheKind::Page },
            why,
            refusal: refusal.filter(|_| !is_kept),
            is_hit: cached.is_kept(),
            key: noted.key,
            millis: noted.millis.into(),
            target: noted.target,
        }
    }
}

/// A costly pattern, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DoctorFinding {
    pub(crate) space: usize,
    pub(crate) why: Why,
    pub(crate) refusal: Option<StoreRefusal>,
    pub(crate) pattern: Vec<u8>,
    /// Requests of this pattern that were no hits.
    pub(crate) requests: u64,
    /// Their total waiting time in milliseconds.
    pub(crate) millis: u64,
    pub(crate) remedy: Remedy,
}

/// The key of a pattern.
type PatternKey = (usize, Why, Option<StoreRefusal>, Vec<u8>);

/// The totals of one pattern.
struct Pattern {
    kind: CacheKind,
    requests: u64,
    millis: u64,
    keys: HashSet<u128>,
    targets: HashSet<Vec<u8>>,
    paths: HashSet<Vec<u8>>,
}

/// The patterns with the highest cost, in descending order.
pub(crate) fn diagnose(records: &[DoctorRecord]) -> Vec<DoctorFinding> {
    let known: HashMap<u128, StoreRefusal> =
        records.iter().filter_map(|one| Some((one.key, one.refusal?))).collect();
    let mut patterns: HashMap<PatternKey, Pattern> = HashMap::new();
    for one in records.iter().filter(|one| !one.is_hit) {
        // A remembered refusal has the reason of the response that caused it.
        let refusal = match one.why {
            Why::Remembered => one.refusal.or_else(|| known.get(&one.key).copied()),
            _ => one.refusal,
        };
        let key = (one.space, one.why, refusal, fold(&one.target));
        let pattern = patterns.entry(key).or_insert_with(|| Pattern {
            kind: one.kind,
            requests: 0,
            millis: 0,
            keys: HashSet::new(),
            targets: HashSet::new(),
            paths: HashSet::new(),
        });
        pattern.requests += 1;
        pattern.millis += one.millis;
        pattern.keys.insert(one.key);
        pattern.paths.insert(path(&one.target).to_vec());
        pattern.targets.insert(one.target.clone());
    }
    let mut found: Vec<DoctorFinding> = patterns
        .into_iter()
        .filter_map(|((space, why, refusal, pattern), of)| {
            let remedy = remedy_for(why, refusal, of.shape(), of.kind)?;
            let Pattern { requests, millis, .. } = of;
            Some(DoctorFinding { space, why, refusal, pattern, requests, millis, remedy })
        })
        .collect();
    let cost = |one: &DoctorFinding| (one.millis, one.requests);
    found.sort_by(|one, other| {
        cost(other).cmp(&cost(one)).then_with(|| one.pattern.cmp(&other.pattern))
    });
    found.truncate(FINDINGS_MAX);
    found
}

impl Pattern {
    fn shape(&self) -> PatternShape {
        let requests = self.requests as usize;
        if requests >= REPEATS * self.keys.len() {
            PatternShape::Repeated
        } else if self.targets.len() == 1 && self.keys.len() >= REPEATS {
            PatternShape::ManyKeys
        } else if self.targets.len() >= REPEATS * self.paths.len() {
            PatternShape::ManyQueries
        } else {
            PatternShape::ManyPaths
        }
    }
}

fn path(target: &[u8]) -> &[u8] {
    target.split(|byte| *byte == b'?').next().unwrap_or_default()
}

/// The pattern of a URL: numbers and identifiers of its path become stars, and of its query only
/// the names stay.
fn fold(target: &[u8]) -> Vec<u8> {
    let (path, query) = match target.iter().position(|byte| *byte == b'?') {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    };
    let mut out = Vec::with_capacity(target.len());
    for (at, segment) in path.split(|byte| *byte == b'/').enumerate() {
        if at > 0 {
            out.push(b'/');
        }
        fold_segment(segment, &mut out);
    }
    let Some(query) = query else { return out };
    let parts = query.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    let mut names: Vec<&[u8]> =
        parts.map(|part| part.split(|byte| *byte == b'=').next().unwrap_or_default()).collect();
    names.sort_unstable();
    names.dedup();
    for (at, name) in names.iter().take(PARAMETERS_MAX).enumerate() {
        out.push(if at == 0 { b'?' } else { b'&' });
        out.extend_from_slice(name);
        out.extend_from_slice(b"=*");
    }
    out
}

fn fold_segment(segment: &[u8], out: &mut Vec<u8>) {
    if is_identifier(segment) {
        return out.push(b'*');
    }
    let mut is_number = false;
    for byte in segment {
        match byte.is_ascii_digit() {
            true if is_number => {}
            true => out.push(b'*'),
            false => out.push(*byte),
        }
        is_number = byte.is_ascii_digit();
    }
}

/// Whether a segment is a hash, a UUID or the like: long, with digits, and only of hexadecimal
/// digits and hyphens.
fn is_identifier(segment: &[u8]) -> bool {
    segment.len() >= 8
        && segment.iter().any(u8::is_ascii_digit)
        && segment.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use bolide_cache::rules::StoreRefusal;
    use proptest::prelude::*;

    use super::{DoctorRecord, FINDINGS_MAX, diagnose, fold};
    use crate::console::remedies::CacheKind;
    use crate::explain::why::Why;

    fn record(why: Why, key: u128, target: &str) -> DoctorRecord {
        DoctorRecord {
            space: 1,
            kind: CacheKind::Page,
            why,
            refusal: None,
            is_hit: false,
            key,
            millis: 10,
            target: target.into(),
        }
    }

    #[test]
    fn addresses_are_folded() {
        for (target, pattern) in [
            ("/", "/"),
            ("/post/12", "/post/*"),
            ("/post-12/page/3.html", "/post-*/page/*.html"),
            ("/u/3f2504e0-4f89-11d3-9a0c-0305e82c3301/x", "/u/*/x"),
            ("/deadbeef1", "/*"),
            ("/facade", "/facade"),
            ("/a?utm_source=b&id=7", "/a?id=*&utm_source=*"),
            ("/a?x&x=1&&y", "/a?x=*&y=*"),
            ("/a?e=1&d=1&c=1&b=1&a=1", "/a?a=*&b=*&c=*&d=*"),
        ] {
            assert_eq!(fold(target.as_bytes()), pattern.as_bytes(), "{target}");
        }
    }

    #[test]
    fn what_costs_most_comes_first_with_what_mends_it() {
        let mut all = vec![];
        // Many queries of one page, each kept.
        all.extend((0..9).map(|n| record(Why::Asked, n, &format!("/p?utm_x={n}"))));
        // A page without a lifetime, asked again and again.
        let no_lifetime = Some(StoreRefusal::NoLifetime);
        all.extend((0..2).map(|_| {
            let refused = record(Why::Asked, 99, "/slow");
            DoctorRecord { refusal: no_lifetime, millis: 5000, ..refused }
        }));
        all.extend((0..5).map(|_| record(Why::Remembered, 99, "/slow")));
        // First requests of pages, hits, and what nothing mends.
        all.extend((0..50).map(|n| record(Why::Asked, 1000 + n, &format!("/new/{n}"))));
        all.extend((0..50).map(|_| record(Why::Body, 0, "/api")));
        all.extend((0..50).map(|_| {
            let hit = record(Why::Asked, 5, "/hit");
            DoctorRecord { is_hit: true, ..hit }
        }));
        let found = diagnose(&all);
        let rows: Vec<_> = found
            .iter()
            .map(|one| {
                let pattern = String::from_utf8_lossy(&one.pattern).into_owned();
                (pattern, one.why.word(), one.requests, one.millis, one.remedy.directives[0])
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("/slow".to_owned(), "asked", 2, 10_000, "page_cache"),
                ("/p?utm_x=*".to_owned(), "asked", 9, 90, "page_cache_drop_query"),
                ("/slow".to_owned(), "hit-for-miss", 5, 50, "page_cache"),
            ]
        );
        assert!(found.iter().all(|one| one.why != Why::Remembered || one.refusal == no_lifetime));
        assert_eq!(diagnose(&[]), []);
    }

    proptest! {
        #[test]
        fn any_decisions_give_few_findings(
            targets in prop::collection::vec("[/a-z0-9?&=]{0,20}", 0..99),
        ) {
            let all = (0..).zip(&targets).map(|(n, target)| record(Why::Preset, n, target));
            let all: Vec<_> = all.collect();
            let found = diagnose(&all);
            prop_assert!(found.len() <= FINDINGS_MAX);
            prop_assert!(found.iter().map(|one| one.requests).sum::<u64>() <= all.len() as u64);
            prop_assert!(found.is_sorted_by_key(|one| std::cmp::Reverse(one.millis)));
        }
    }
}
