//! The schedule under any history of outcomes, clocks and restarts.

use bolide_base::prng::Prng;
use proptest::prelude::*;

use super::*;

fn id(n: usize) -> OrderId {
    OrderId(format!("o{n}"))
}

fn schedule(orders: usize, issuers: &[&str]) -> Schedule {
    let mut schedule = Schedule::default();
    for n in 0..orders {
        let issuers = issuers.iter().map(|name| (*name).to_owned()).collect();
        schedule.orders.insert(id(n), OrderSlot { issuers, ..OrderSlot::default() });
    }
    for name in issuers {
        schedule.accounts.insert((*name).to_owned(), AccountRecord::default());
    }
    schedule
}

/// A restart: only the text survives, and attempts that were under way are lost.
fn restarted(schedule: &Schedule, now: AcmeNow) -> Schedule {
    let mut next = schedule.clone();
    let mut lost = Vec::new();
    for (id, slot) in &mut next.orders {
        slot.record = OrderRecord::parse(&slot.record.text()).expect("a record");
        slot.running = None;
        slot.hold = 0;
        if slot.record.started.is_some() {
            lost.push(id.clone());
        }
    }
    for account in next.accounts.values_mut() {
        *account = AccountRecord::parse(&account.text()).expect("a record");
    }
    for id in lost {
        next.lost(&id, now);
    }
    next
}

fn refused() -> AttemptFailure {
    AttemptFailure { why: "no".into(), was_ordered: true, ..AttemptFailure::default() }
}

fn silent() -> AttemptFailure {
    AttemptFailure { why: "?".into(), is_silent: true, ..AttemptFailure::default() }
}

/// The most failures in any hour.
fn most_an_hour(times: &[u64]) -> usize {
    let within =
        |start: &u64| times.iter().filter(|t| (*start..*start + HOUR).contains(*t)).count();
    times.iter().map(within).max().unwrap_or(0)
}

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    /// Ends the attempt with this place among those that run.
    Issue(usize),
    Refuse(usize, Option<u64>),
    Silence(usize),
    Restart,
    /// The civil clock is set by so many seconds.
    Set(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u64..4000).prop_map(Step::Wait),
        1 => (0_usize..8).prop_map(Step::Issue),
        6 => (0_usize..8, proptest::option::of(0_u64..100_000))
            .prop_map(|(n, after)| Step::Refuse(n, after.filter(|after| after % 3 == 0))),
        2 => (0_usize..8).prop_map(Step::Silence),
        1 => Just(Step::Restart),
        1 => (-100_000_i64..100_000).prop_map(Step::Set),
    ]
}

struct History {
    schedule: Schedule,
    now: AcmeNow,
    /// True time of failures, by order and by issuer.
    failed: BTreeMap<String, Vec<u64>>,
    /// A clock that was set forward cannot be told from time after a restart.
    restarts: bool,
}

impl History {
    fn fail(&mut self, id: &OrderId) {
        let issuer = self.schedule.orders[id].running.clone().expect("it runs");
        self.failed.entry(id.0.clone()).or_default().push(self.now.mono);
        self.failed.entry(issuer).or_default().push(self.now.mono);
    }

    fn running(&self) -> Vec<OrderId> {
        let slots = self.schedule.orders.iter();
        slots.filter(|(_, slot)| slot.running.is_some()).map(|(id, _)| id.clone()).collect()
    }

    fn apply(&mut self, step: &Step) {
        let running = self.running();
        let nth = |n: &usize| running.get(n % running.len().max(1)).cloned();
        match step {
            Step::Wait(seconds) => {
                self.now.mono += seconds;
                self.now.unix += seconds;
            }
            Step::Set(by) if !self.restarts => {
                self.now.unix = self.now.unix.saturating_add_signed(*by);
            }
            Step::Restart if self.restarts => {
                for id in &running {
                    self.fail(id);
                }
                self.schedule = restarted(&self.schedule, self.now);
            }
            Step::Set(_) | Step::Restart => {}
            Step::Issue(n) => {
                let validity = Validity { from: self.now.unix, until: self.now.unix + 9000 };
                if let Some(id) = nth(n) {
                    self.schedule.ended(&id, AttemptEnd::Issued(validity), self.now);
                }
            }
            Step::Refuse(n, retry_after) => {
                if let Some(id) = nth(n) {
                    self.fail(&id);
                    let failure = AttemptFailure { retry_after: *retry_after, ..refused() };
                    self.schedule.ended(&id, AttemptEnd::Failed(failure), self.now);
                }
            }
            Step::Silence(n) => {
                if let Some(id) = nth(n) {
                    self.schedule.ended(&id, AttemptEnd::Failed(silent()), self.now);
                }
            }
        }
        while let Some((id, issuer)) = self.schedule.pick(self.now) {
            self.schedule.begin(&id, &issuer, self.now);
        }
    }
}

proptest! {
    #[test]
    fn no_history_has_more_than_five_failures_an_hour(
        steps in proptest::collection::vec(step(), 1..300),
        orders in 1_usize..9,
        restarts: bool,
        two: bool,
    ) {
        let issuers = if two { &["one", "two"][..] } else { &["one"][..] };
        let mut history = History {
            schedule: schedule(orders, issuers),
            now: AcmeNow { unix: 1_700_000_000, mono: 50 },
            failed: BTreeMap::new(),
            restarts,
        };
        for step in &steps {
            history.apply(step);
            prop_assert!(history.running().len() <= FAILURES_PER_HOUR * issuers.len());
        }
        for (who, times) in &history.failed {
            prop_assert!(most_an_hour(times) <= FAILURES_PER_HOUR, "{who}: {times:?}");
        }
        // Whatever happened: with an issuer that answers again, all have their certificates.
        let mut left: Vec<OrderId> = (0..orders).map(id).collect();
        for _ in 0..(2 * RETRY_AFTER_MAX / 600) {
            for id in history.running() {
                let validity = Validity { from: 0, until: u64::MAX / 2 };
                history.schedule.ended(&id, AttemptEnd::Issued(validity), history.now);
                left.retain(|other| *other != id);
            }
            history.apply(&Step::Wait(600));
        }
        // Certificates of a clock that was set back afterwards may have become due just now.
        left.retain(|id| history.schedule.orders[id].validity.is_none_or(|life| {
            renewal(life, None) + RETRY_AFTER_MAX <= history.now.unix
        }));
        prop_assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn renewal_is_within_the_life(from in 0_u64..1 << 40, life in 1_u64..1 << 30,
                                  start in 0_u64..1 << 41, length in 0_u64..1 << 30) {
        let validity = Validity { from, until: from + life };
        let usual = renewal(validity, None);
        prop_assert!(usual >= from + life / 3 * 2 - life / 30 && usual < validity.until);
        let window = RenewalWindow { start, end: start + length, until: validity.until };
        let asked = renewal(validity, Some(window));
        prop_assert!(asked < validity.until || life < 20);
        prop_assert_eq!(asked, renewal(validity, Some(window)));
        let is_early = start < from + life / WINDOW_EARLIEST;
        if length > 0 && !is_early && start + length < validity.until - life / 20 {
            prop_assert!((start..start + length).contains(&asked));
        }
        prop_assert!(asked >= from + life / WINDOW_EARLIEST);
        let other = RenewalWindow { until: validity.until + 1, ..window };
        prop_assert_eq!(renewal(validity, Some(other)), usual);
    }
}

#[test]
fn a_certificate_that_is_due_at_once_is_not_ordered_again_at_once() {
    let mut schedule = schedule(1, &["one"]);
    let mut now = AcmeNow { unix: 1_700_000_000, mono: 50 };
    let mut orders = 0;
    for _ in 0..86_400 {
        if let Some((id, issuer)) = schedule.pick(now) {
            schedule.begin(&id, &issuer, now);
            // The clock of the machine is a year ahead.
            let from = now.unix - 365 * 24 * HOUR;
            let validity = Validity { from, until: from + 90 * 24 * HOUR };
            schedule.ended(&id, AttemptEnd::Issued(validity), now);
            orders += 1;
        }
        now = AcmeNow { unix: now.unix + 1, mono: now.mono + 1 };
    }
    assert_eq!(orders, 4, "one in six hours");
    let slot = schedule.orders.get_mut(&id(0)).unwrap();
    slot.validity = None;
    assert_eq!(slot.due(), 0, "a certificate that is lost is ordered again at once");
}

#[test]
fn an_attempt_that_ends_its_process_is_not_continued_for_ever() {
    let mut schedule = schedule(1, &["one"]);
    let now = AcmeNow { unix: 1_700_000_000, mono: 50 };
    let (id, issuer) = schedule.pick(now).unwrap();
    schedule.begin(&id, &issuer, now);
    for resumes in 0.. {
        let slot = schedule.orders.get_mut(&id).unwrap();
        slot.record = OrderRecord::parse(&slot.record.text()).expect("a record");
        slot.running = None;
        if !slot.may_resume() {
            assert_eq!(resumes, RESUMES_MAX);
            break;
        }
        slot.is_resumable = true;
        schedule.begin(&id, &issuer, now);
    }
    schedule.lost(&id, now);
    assert_eq!(schedule.pick(now), None, "it pauses, as after each failure");
    assert_eq!(schedule.orders[&id].record.resumes, 0);
}

#[test]
fn issuers_that_answer_renew_before_the_end() {
    let mut schedule = schedule(40, &["one"]);
    let mut prng = Prng::new(7);
    let life = 6 * 24 * HOUR;
    let mut now = AcmeNow { unix: 1_700_000_000, mono: 0 };
    for tick in 0..20_000_u64 {
        while let Some((id, issuer)) = schedule.pick(now) {
            schedule.begin(&id, &issuer, now);
            let validity = Validity { from: now.unix, until: now.unix + life };
            // One of twenty fails.
            let end = match prng.below(20) {
                0 => AttemptEnd::Failed(refused()),
                _ => AttemptEnd::Issued(validity),
            };
            schedule.ended(&id, end, now);
        }
        if tick > 600 {
            for (id, slot) in &schedule.orders {
                assert!(slot.validity.is_some_and(|life| life.until > now.unix), "{id:?}");
            }
        }
        now.unix += 60;
        now.mono += 60;
    }
}

#[test]
fn the_next_issuer_is_asked_where_one_fails_or_is_silent() {
    for failure in [refused(), silent()] {
        let mut schedule = schedule(1, &["one", "two"]);
        let mut now = AcmeNow { unix: 1000, mono: 1000 };
        let mut asked = Vec::new();
        while asked.len() < 5 {
            if let Some((id, issuer)) = schedule.pick(now) {
                schedule.begin(&id, &issuer, now);
                asked.push(issuer);
                schedule.ended(&id, AttemptEnd::Failed(failure.clone()), now);
            }
            now.unix += 1;
            now.mono += 1;
        }
        let expected = if failure.is_silent {
            ["one", "two", "one", "two", "one"]
        } else {
            ["one", "one", "two", "two", "one"]
        };
        assert_eq!(asked, expected);
    }
}

#[test]
fn one_order_at_a_time_asks_a_silent_issuer() {
    let mut schedule = schedule(9, &["one"]);
    let now = AcmeNow { unix: 1000, mono: 1000 };
    let start = |schedule: &mut Schedule, now| {
        let mut begun = Vec::new();
        while let Some((id, issuer)) = schedule.pick(now) {
            schedule.begin(&id, &issuer, now);
            begun.push(id);
        }
        begun
    };
    let begun = start(&mut schedule, now);
    assert_eq!(begun.len(), FAILURES_PER_HOUR);
    for id in &begun {
        schedule.ended(id, AttemptEnd::Failed(silent()), now);
    }
    assert!(start(&mut schedule, now).is_empty());
    let later = AcmeNow { unix: now.unix + HOUR, mono: now.mono + HOUR };
    assert_eq!(start(&mut schedule, later).len(), 1);
}

#[test]
fn retry_after_holds_the_account() {
    let mut schedule = schedule(2, &["one"]);
    let mut now = AcmeNow { unix: 1000, mono: 1000 };
    let (first, issuer) = schedule.pick(now).expect("due");
    schedule.begin(&first, &issuer, now);
    let failure = AttemptFailure { retry_after: Some(5000), ..refused() };
    schedule.ended(&first, AttemptEnd::Failed(failure), now);
    for _ in 0..4999 {
        assert_eq!(schedule.pick(now), None);
        now.unix += 1;
        now.mono += 1;
    }
    now.unix += 1;
    assert!(schedule.pick(now).is_some());
}
