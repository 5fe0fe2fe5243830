//! On-demand names, which clients request in handshakes: about which names to ask the operator's
//! program, how often, and its answers. A state machine without I/O and clock.
//!
//! ```text
//!   handshake -> wish -> question (rate-limited) -> allowed (stored) or refused (for a while)
//! ```
//! Easiest to break: all names come from untrusted clients, so everything that grows has a limit.

use std::collections::{BTreeMap, BTreeSet};

use crate::schedule::AcmeNow;

/// LIMIT: concurrent questions; names without orders have one less.
const ASKING_MAX: usize = 4;
/// LIMIT: recorded refusals.
const REFUSED_MAX: usize = 1000;
/// Seconds for which a refusal or a missing answer is recorded.
const REFUSED: u64 = 600;
const SILENT: u64 = 30;
/// Seconds for which a permission is valid for the renewal of a certificate.
const ALLOWED: u64 = 24 * 3600;
/// The first line of the file of names.
const VERSION: &str = "bolide-acme 1";

/// A rate: a number of questions per time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemandRate {
    /// The number, at least one.
    pub count: u32,
    /// The time in seconds, at least one.
    pub seconds: u32,
}

/// The answer of the operator's program about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemandAnswer {
    /// Status 200.
    Allowed,
    /// Any other status.
    Refused,
    /// It does not respond.
    Silent,
}

/// What to do about a requested name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemandStep {
    /// Ask the program.
    Ask,
    /// Nothing: the name is known, refused, or being asked about, or the rate is exceeded.
    Rest,
}

/// The names of one directive.
#[derive(Clone, Debug)]
pub struct DemandBook {
    rate: DemandRate,
    names_max: usize,
    /// Names with orders, and when each was last allowed, in seconds since 1970.
    allowed: BTreeMap<String, u64>,
    /// Refused names, and until when, by the process's clock.
    refused: BTreeMap<String, u64>,
    asking: BTreeSet<String>,
    /// The saved questions of the rate limit; one question is `seconds` units.
    saved: u64,
    saved_at: Option<u64>,
}

impl DemandBook {
    /// A book with known names.
    #[must_use]
    pub fn new(rate: DemandRate, names_max: usize, known: impl Iterator<Item = String>) -> Self {
        let allowed = known.take(names_max).map(|name| (name, 0)).collect();
        let (refused, asking) = (BTreeMap::new(), BTreeSet::new());
        Self { rate, names_max, allowed, refused, asking, saved: 0, saved_at: None }
    }

    /// Sets the limits of a new configuration.
    pub fn limit(&mut self, rate: DemandRate, names_max: usize) {
        (self.rate, self.names_max) = (rate, names_max);
    }

    /// Names with orders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.allowed.keys().map(String::as_str)
    }

    /// A client requested this name.
    pub fn wish(&mut self, name: &str, now: AcmeNow) -> DemandStep {
        let is_known = self.allowed.contains_key(name) || self.allowed.len() >= self.names_max;
        if is_known { DemandStep::Rest } else { self.question(name, now) }
    }

    /// Whether the certificate of a name may be renewed; otherwise the program is asked again.
    /// Clients cannot delay that: the rate applies to them only, and one concurrent question is
    /// reserved.
    pub fn renewal(&mut self, name: &str, now: AcmeNow) -> Result<(), DemandStep> {
        match self.allowed.get(name) {
            Some(when) if now.unix.saturating_sub(*when) < ALLOWED => Ok(()),
            _ => Err(self.question(name, now)),
        }
    }

    fn question(&mut self, name: &str, now: AcmeNow) -> DemandStep {
        self.refused.retain(|_, until| *until > now.mono);
        let is_open = !self.asking.contains(name) && !self.refused.contains_key(name);
        let has_order = self.allowed.contains_key(name);
        let most = if has_order { ASKING_MAX } else { ASKING_MAX - 1 };
        if !is_open || self.asking.len() >= most || !(has_order || self.spend(now)) {
            return DemandStep::Rest;
        }
        self.asking.insert(name.to_owned());
        DemandStep::Ask
    }

    /// Takes one question of the rate; false if it is exceeded.
    fn spend(&mut self, now: AcmeNow) -> bool {
        let (count, price) = (u64::from(self.rate.count), u64::from(self.rate.seconds));
        let full = count * price;
        let passed = self.saved_at.map_or(u64::MAX, |before| now.mono.saturating_sub(before));
        self.saved_at = Some(now.mono);
        self.saved = self.saved.saturating_add(passed.saturating_mul(count)).min(full);
        let is_enough = self.saved >= price;
        if is_enough {
            self.saved -= price;
        }
        is_enough
    }

    /// Handles an answer of the program; returns whether the list of names changed.
    pub fn answered(&mut self, name: &str, answer: DemandAnswer, now: AcmeNow) -> bool {
        if !self.asking.remove(name) {
            return false;
        }
        let was_known = self.allowed.contains_key(name);
        let (is_known, pause) = match answer {
            DemandAnswer::Allowed if was_known || self.allowed.len() < self.names_max => {
                self.allowed.insert(name.to_owned(), now.unix);
                return !was_known;
            }
            DemandAnswer::Allowed | DemandAnswer::Refused => {
                (self.allowed.remove(name).is_some(), REFUSED)
            }
            // A name that was allowed keeps its certificate.
            DemandAnswer::Silent => (false, SILENT),
        };
        if self.refused.len() >= REFUSED_MAX
            && let Some(first) =
                self.refused.iter().min_by_key(|(_, until)| **until).map(|(name, _)| name.clone())
        {
            self.refused.remove(&first);
        }
        self.refused.insert(name.to_owned(), now.mono.saturating_add(pause));
        is_known
    }

    /// The content of the file of names.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("{VERSION}\n");
        for name in self.names() {
            out.push_str(name);
            out.push('\n');
        }
        out
    }
}

/// Parses such a file with at most `most` names; `None` if it is damaged.
#[must_use]
pub fn parse_names(text: &str, most: usize) -> Option<Vec<String>> {
    let rest = text.strip_prefix(VERSION)?.strip_prefix('\n')?;
    if !rest.is_empty() && !rest.ends_with('\n') {
        return None;
    }
    let names: Vec<String> = rest.lines().take(most).map(str::to_owned).collect();
    names.iter().all(|name| is_demanded_name(name)).then_some(names)
}

/// Whether a certificate may be ordered for the name in a handshake: a host name in lower case.
#[must_use]
pub fn is_demanded_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(is_inner)
    };
    let is_numeric = name.rsplit('.').next().is_some_and(|top| top.parse::<u64>().is_ok());
    name.len() <= 253 && !is_numeric && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE: DemandRate = DemandRate { count: 5, seconds: 60 };

    fn at(seconds: u64) -> AcmeNow {
        AcmeNow { unix: 1_700_000_000 + seconds, mono: seconds }
    }

    fn book() -> DemandBook {
        DemandBook::new(RATE, 3, std::iter::empty())
    }

    #[test]
    fn a_name_is_asked_about_once_and_a_refusal_is_remembered() {
        let mut book = book();
        assert_eq!(book.wish("a.com", at(0)), DemandStep::Ask);
        assert_eq!(book.wish("a.com", at(0)), DemandStep::Rest);
        assert!(!book.answered("a.com", DemandAnswer::Refused, at(1)));
        assert_eq!(book.wish("a.com", at(REFUSED)), DemandStep::Rest);
        assert_eq!(book.wish("a.com", at(REFUSED + 1)), DemandStep::Ask);
        assert!(book.answered("a.com", DemandAnswer::Allowed, at(REFUSED + 1)));
        assert_eq!(book.wish("a.com", at(REFUSED + 2)), DemandStep::Rest);
        assert_eq!(book.names().collect::<Vec<_>>(), ["a.com"]);
    }

    #[test]
    fn a_renewal_wants_a_fresh_permission_and_silence_takes_none_away() {
        let mut book = book();
        assert_eq!(book.wish("a.com", at(0)), DemandStep::Ask);
        book.answered("a.com", DemandAnswer::Allowed, at(0));
        assert_eq!(book.renewal("a.com", at(ALLOWED - 1)), Ok(()));
        assert_eq!(book.renewal("a.com", at(ALLOWED)), Err(DemandStep::Ask));
        assert!(!book.answered("a.com", DemandAnswer::Silent, at(ALLOWED)));
        let later = ALLOWED + SILENT;
        assert_eq!(book.renewal("a.com", at(later)), Err(DemandStep::Ask));
        assert!(book.answered("a.com", DemandAnswer::Refused, at(later)));
        assert_eq!(book.names().count(), 0);
    }

    #[test]
    fn a_flood_of_invented_names_does_not_hold_up_a_renewal() {
        let mut book = DemandBook::new(RATE, 9, std::iter::once("a.com".to_owned()));
        let wish = |book: &mut DemandBook, n: u32| book.wish(&format!("n{n}.com"), at(0));
        for n in 0..2 {
            assert_eq!(wish(&mut book, n), DemandStep::Ask);
            book.answered(&format!("n{n}.com"), DemandAnswer::Refused, at(0));
        }
        for n in 2..5 {
            assert_eq!(wish(&mut book, n), DemandStep::Ask);
        }
        assert_eq!(wish(&mut book, 5), DemandStep::Rest, "three are under way");
        book.answered("n4.com", DemandAnswer::Refused, at(0));
        assert_eq!(wish(&mut book, 6), DemandStep::Rest, "the rate permits no more");
        assert_eq!(book.renewal("a.com", at(0)), Err(DemandStep::Ask));
        assert_eq!(book.renewal("a.com", at(0)), Err(DemandStep::Rest), "it is under way");
    }

    #[test]
    fn a_clock_that_was_set_back_spends_no_more() {
        let mut book = book();
        for n in 0..5 {
            let name = format!("n{n}.com");
            assert_eq!(book.wish(&name, at(100)), DemandStep::Ask);
            book.answered(&name, DemandAnswer::Refused, at(100));
        }
        assert_eq!(book.wish("x.com", at(0)), DemandStep::Rest);
        assert_eq!(book.wish("x.com", at(11)), DemandStep::Rest);
        assert_eq!(book.wish("x.com", at(12)), DemandStep::Ask);
    }

    #[test]
    fn names_of_handshakes_are_host_names() {
        for name in ["a", "a.com", "xn--bcher-kva.de", "1.a"] {
            assert!(is_demanded_name(name), "{name}");
        }
        let long = format!("{}.com", "a".repeat(64));
        for name in
            ["", "A.com", "a..b", "*.a", "a b", "-a", "10.0.0.1", "a.1", "a/b", "a\n", &long]
        {
            assert!(!is_demanded_name(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_flood_of_names_costs_more_than_its_limits(
            steps in proptest::collection::vec((0_u16..3000, 0_u64..30, 0_u8..4), 1..600),
        ) {
            let mut book = book();
            let (mut now, mut asked) = (0, Vec::new());
            for (name, pause, answer) in steps {
                now += pause;
                let name = format!("n{name}.com");
                if book.wish(&name, at(now)) == DemandStep::Ask {
                    asked.push(now);
                    let answer = match answer {
                        0 => DemandAnswer::Allowed,
                        1 => DemandAnswer::Refused,
                        2 => DemandAnswer::Silent,
                        _ => continue,
                    };
                    book.answered(&name, answer, at(now));
                }
                prop_assert!(book.allowed.len() <= 3 && book.asking.len() <= ASKING_MAX);
                prop_assert!(book.refused.len() <= REFUSED_MAX);
            }
            for start in &asked {
                let within = asked.iter().filter(|when| (*start..start + 60).contains(*when));
                prop_assert!(within.count() <= 10, "a burst, and what comes in between");
            }
            let names: Vec<String> = book.names().map(str::to_owned).collect();
            prop_assert_eq!(parse_names(&book.text(), 10), Some(names));
        }

        #[test]
        fn any_file_of_names_is_read_or_refused(text in "(bolide-acme 1\n)?[a-z.\n *]{0,80}") {
            if let Some(names) = parse_names(&text, 5) {
                prop_assert!(names.len() <= 5 && names.iter().all(|name| is_demanded_name(name)));
            }
        }
    }
}
