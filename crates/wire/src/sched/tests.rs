//! The scheduler against a naive model, and its rules one by one.

use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::{Priority, Sched};

const fn priority(urgency: u8, incremental: bool) -> Priority {
    Priority { urgency, incremental }
}

#[test]
fn priorities_are_read_and_what_is_wrong_is_ignored() {
    assert_eq!(Priority::parse(b""), priority(3, false));
    assert_eq!(Priority::parse(b"u=5, i"), priority(5, true));
    assert_eq!(Priority::parse(b"i=?1,u=0"), priority(0, true));
    assert_eq!(Priority::parse(b"u=2;x=1, i=?0"), priority(2, false));
    assert_eq!(Priority::parse(b"u=8, i=1, foo=\"bar\", u=?1"), priority(3, false));
    assert_eq!(Priority::parse(b"u=1,u=6"), priority(6, false));
}

#[test]
fn urgent_streams_come_first_and_equals_in_order() {
    let mut sched = Sched::new();
    sched.insert(2, 5, priority(3, false));
    sched.insert(0, 1, priority(5, false));
    sched.insert(1, 3, priority(3, false));
    sched.insert(3, 7, priority(0, false));
    let mut seen = Vec::new();
    while let Some(slot) = sched.first() {
        seen.push(slot);
        assert!(sched.remove(slot));
    }
    assert_eq!(seen, [3, 1, 2, 0]);
    assert!(!sched.remove(3));
}

#[test]
fn incremental_streams_share_and_others_finish_first() {
    let mut sched = Sched::new();
    sched.insert(0, 1, priority(3, true));
    sched.insert(1, 3, priority(3, true));
    sched.insert(2, 5, priority(3, false));
    let mut seen = Vec::new();
    for _ in 0..2 {
        let slot = sched.first().unwrap();
        seen.push(slot);
        sched.rotate(slot);
    }
    // The stream that is not incremental stays first until it is done.
    sched.rotate(2);
    assert_eq!(sched.first(), Some(2));
    // A later stream stands behind the waiting ones.
    sched.insert(3, 7, priority(3, false));
    sched.remove(2);
    for _ in 0..3 {
        let slot = sched.first().unwrap();
        seen.push(slot);
        sched.rotate(slot);
    }
    assert_eq!(seen, [0, 1, 0, 1, 3]);
}

#[test]
fn a_new_priority_moves_a_waiting_stream() {
    let mut sched = Sched::new();
    sched.insert(0, 1, priority(3, false));
    sched.insert(1, 3, priority(3, false));
    sched.reprioritise(1, priority(1, false));
    sched.reprioritise(9, priority(0, false));
    assert_eq!((sched.first(), sched.len()), (Some(1), 2));
    sched.remove(0);
    sched.remove(1);
    sched.shrink();
    assert!(sched.is_empty());
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Insert(u8, bool),
    Remove(u8),
    Rotate,
    Move(u8, u8, bool),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        (0..8_u8, any::<bool>()).prop_map(|(urgency, i)| Op::Insert(urgency, i)),
        any::<u8>().prop_map(Op::Remove),
        proptest::prelude::Just(Op::Rotate),
        (any::<u8>(), 0..8_u8, any::<bool>()).prop_map(|(nth, u, i)| Op::Move(nth, u, i)),
    ];
    proptest::collection::vec(op, 0..120)
}

/// One queue per urgency; the position in it is the order.
#[derive(Default)]
struct Model {
    queues: [Vec<(u64, u32, u32, bool)>; 8],
}

impl Model {
    fn first(&self) -> Option<u32> {
        self.queues.iter().find_map(|queue| queue.first()).map(|entry| entry.2)
    }

    fn insert(&mut self, urgency: u8, entry: (u64, u32, u32, bool)) {
        let queue = &mut self.queues[usize::from(urgency)];
        queue.push(entry);
        queue.sort_by_key(|entry| (entry.0, entry.1));
    }

    fn remove(&mut self, slot: u32) -> Option<(u64, u32, u32, bool)> {
        self.queues.iter_mut().find_map(|queue| {
            let at = queue.iter().position(|entry| entry.2 == slot)?;
            Some(queue.remove(at))
        })
    }

    fn rotate(&mut self) {
        let Some(queue) = self.queues.iter_mut().find(|queue| !queue.is_empty()) else { return };
        if queue.len() > 1 && queue[0].3 {
            let mut entry = queue.remove(0);
            let last = queue[queue.len() - 1];
            (entry.0, entry.1) = (last.0, last.1 + 1);
            queue.push(entry);
        }
    }
}

proptest! {
    #[test]
    fn the_scheduler_agrees_with_one_queue_per_urgency(ops in ops()) {
        let (mut sched, mut model, mut live, mut next) =
            (Sched::new(), Model::default(), Vec::new(), 0_u32);
        for op in ops {
            match op {
                Op::Insert(urgency, incremental) => {
                    sched.insert(next, u64::from(next), priority(urgency, incremental));
                    model.insert(urgency, (u64::from(next), 0, next, incremental));
                    live.push(next);
                    next += 1;
                }
                Op::Remove(nth) if !live.is_empty() => {
                    let slot = live.swap_remove(usize::from(nth) % live.len());
                    prop_assert_eq!(sched.remove(slot), model.remove(slot).is_some());
                }
                Op::Rotate => {
                    if let Some(slot) = sched.first() {
                        sched.rotate(slot);
                    }
                    model.rotate();
                }
                Op::Move(nth, urgency, incremental) if !live.is_empty() => {
                    let slot = live[usize::from(nth) % live.len()];
                    sched.reprioritise(slot, priority(urgency, incremental));
                    if let Some(mut entry) = model.remove(slot) {
                        entry.3 = incremental;
                        model.insert(urgency, entry);
                    }
                }
                Op::Remove(_) | Op::Move(..) => {}
            }
            prop_assert_eq!(sched.first(), model.first());
            prop_assert_eq!(sched.len(), live.len());
        }
    }
}
