//! Connection ids that contain their worker, and the rule that extracts it: in Rust for mailed
//! datagrams, as classic BPF for the kernel's choice of socket.
//!
//! An id is one block of a keyed cipher: the worker, two zero bytes, five random bytes. Without the
//! key an observer cannot tell whether two ids belong to one worker. Clients choose random ids for
//! their first datagrams, and one in 65,536 * 256 / workers decrypts to a valid worker; such a
//! connection only starts on another worker.
//!
//! INVARIANT: [`owner`] and [`bpf_program`] implement the same rule.

use aws_lc_rs::rand::fill;
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use std::time::Duration;

use crate::SharedKeys;
use crate::cipher::{Cipher, ROUNDS};

/// Bytes of the connection ids that we issue.
pub const CID_LEN: usize = 8;

/// Ids per draw of random bytes.
const DRAW: usize = 32;
/// Random bytes of an id.
const RANDOM: usize = 5;

/// Generates the ids of one worker.
pub(crate) struct Generator {
    worker: u8,
    cipher: Cipher,
    random: [u8; DRAW * RANDOM],
    used: usize,
}

impl Generator {
    pub(crate) fn new(worker: u8, keys: &SharedKeys) -> Self {
        let worker = keys.first.wrapping_add(worker);
        let cipher = keys.cid.clone();
        Self { worker, cipher, random: [0; DRAW * RANDOM], used: DRAW * RANDOM }
    }

    fn draw(&mut self) -> [u8; RANDOM] {
        if self.used >= self.random.len() {
            fill(&mut self.random).expect("a seeded random generator does not fail");
            self.used = 0;
        }
        let mut drawn = [0; RANDOM];
        drawn.copy_from_slice(&self.random[self.used..self.used + RANDOM]);
        self.used += RANDOM;
        drawn
    }
}

impl ConnectionIdGenerator for Generator {
    fn generate_cid(&mut self) -> ConnectionId {
        let [a, b, c, d, e] = self.draw();
        ConnectionId::new(&self.cipher.seal([self.worker, 0, 0, a, b, c, d, e]))
    }

    fn validate(&self, cid: &ConnectionId) -> Result<(), InvalidCid> {
        // The id of any worker is valid: after a change of the number of workers, its peer still
        // needs a stateless reset.
        read(cid, &self.cipher).map(|_| ()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        CID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The worker in an id, if the id is ours.
fn read(cid: &[u8], cipher: &Cipher) -> Option<u8> {
    match cipher.open(cid.try_into().ok()?) {
        [worker, 0, 0, ..] => Some(worker),
        _ => None,
    }
}

/// The worker that owns the connection of a datagram. `None` for a client's first datagram and for
/// other protocols: the receiving worker may keep it.
#[must_use]
pub fn owner(datagram: &[u8], keys: &SharedKeys, workers: u8) -> Option<u8> {
    let first = *datagram.first()?;
    let cid = if first & 0x80 != 0 {
        // RFC 8999 §5.1: the id follows the version in every version of QUIC.
        if usize::from(*datagram.get(5)?) != CID_LEN {
            return None;
        }
        datagram.get(6..6 + CID_LEN)?
    } else {
        datagram.get(1..1 + CID_LEN)?
    };
    let worker = read(cid, &keys.cid)?.checked_sub(keys.first)?;
    (worker < workers).then_some(worker)
}

/// The worker numbers of one process in connection ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerNumbers {
    /// The number of the first worker.
    pub first: u8,
    /// The number of workers.
    pub count: u8,
}

impl WorkerNumbers {
    /// Disjoint numbers for the `count` workers of a successor; `None` if too few are left.
    #[must_use]
    pub fn beside(self, count: u8) -> Option<Self> {
        let first = if count <= self.first { 0 } else { self.first.checked_add(self.count)? };
        first.checked_add(count).map(|_| Self { first, count })
    }
}

/// Which of two processes gets new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// The successor, until it is told to end.
    Successor,
    /// The predecessor: its successor ends first.
    Elder,
}

/// A predecessor, whose sockets are the first of the reuseport group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elder {
    /// The numbers of its workers.
    pub numbers: WorkerNumbers,
    /// Who gets new connections.
    pub admits: Admits,
}

impl Elder {
    /// How far the places of `workers` sockets behind this predecessor's are turned: worker `i` has
    /// place `(i + turn) % workers` among them. When a socket of the predecessor is closed, the
    /// kernel moves the last one of the group to its place; in the end worker `i` has place `i`.
    #[must_use]
    pub const fn turn(&self, workers: u8) -> u32 {
        let workers = if workers == 0 { 1 } else { workers };
        ((workers - self.numbers.count % workers) % workers) as u32
    }
}

/// The rule of [`owner`] in classic BPF, as `(code, jt, jf, k)`. The program returns the worker's
/// index in the reuseport group. For ids that are not ours the index is out of range, so that the
/// kernel falls back to the hash of the addresses.
///
/// The group may begin with the sockets of a predecessor, `elder`, which keeps its connections.
#[must_use]
pub fn bpf_program(
    keys: &SharedKeys,
    workers: u8,
    elder: Option<Elder>,
) -> Vec<(u16, u8, u8, u32)> {
    use bpf::{
        ADD, AND, JEQ, JGE, JSET, JUMP, LD_BYTE, LD_MEM, LD_WORD, LD_WORD_AT_X, LDX, MOD, RET,
        RET_A, RSH, ST, SUB,
    };
    let own = WorkerNumbers { first: keys.first, count: workers };
    let before = elder.map_or(0, |elder| u32::from(elder.numbers.count));
    let turn = elder.map_or(0, |elder| elder.turn(workers));
    let sets = [elder.map(|elder| (elder.numbers, 0, 0)), Some((own, turn, before))];
    // The distance from the ids to the rule for first datagrams.
    let unmarked = 7 * sets.iter().flatten().count() as u8;
    let mut program = vec![
        (LD_BYTE, 0, 0, 0),
        (JSET, 2, 0, LONG),
        // Short header: the id follows the first byte.
        (LDX, 0, 0, 1),
        (JUMP, 0, 0, 4),
        // Long header: the id follows the version and its own length.
        (LD_BYTE, 0, 0, 5),
        (JEQ, 1, 0, CID_LEN as u32),
        (JUMP, 0, 0, 12 + OPENING as u32 + u32::from(unmarked)),
        (LDX, 0, 0, 6),
        // M[0] and M[1] are the halves of the block.
        (LD_WORD_AT_X, 0, 0, 0),
        (ST, 0, 0, 0),
        (LD_WORD_AT_X, 0, 0, 4),
        (ST, 0, 0, 1),
    ];
    keys.cid.0.iter().rev().for_each(|key| program.extend(undone(*key)));
    program.extend([
        (LD_MEM, 0, 0, 0),
        (RSH, 0, 0, 8),
        (AND, 0, 0, 0xffff),
        (JEQ, 0, 3 + unmarked, 0),
        // M[3] is the worker number.
        (LD_MEM, 0, 0, 0),
        (RSH, 0, 0, 24),
        (ST, 0, 0, 3),
    ]);
    for (numbers, turn, index) in sets.into_iter().flatten() {
        program.extend([
            (LD_MEM, 0, 0, 3),
            (SUB, 0, 0, u32::from(numbers.first)),
            (JGE, 4, 0, u32::from(numbers.count)),
            (ADD, 0, 0, turn),
            (MOD, 0, 0, u32::from(numbers.count.max(1))),
            (ADD, 0, 0, index),
            (RET_A, 0, 0, 0),
        ]);
    }
    if let Some(elder) = elder {
        let (count, index) = match elder.admits {
            Admits::Successor => (u32::from(workers), before),
            Admits::Elder => (before, 0),
        };
        // A first datagram: the id that the client chose decides, so that the next datagram of the
        // connection goes to the same worker.
        program.extend([
            (LD_BYTE, 0, 0, 0),
            (JSET, 0, 4, LONG),
            (LD_WORD, 0, 0, 6),
            (MOD, 0, 0, count.max(1)),
            (ADD, 0, 0, index),
            (RET_A, 0, 0, 0),
        ]);
    }
    program.push((RET, 0, 0, u32::MAX));
    program
}

/// The instructions that invert all rounds of the cipher.
const OPENING: usize = UNDOING * ROUNDS;
/// The instructions that invert one round.
const UNDOING: usize = 21;

/// One round of [`Cipher::open`], on `M[0]` and `M[1]`.
const fn undone(key: u32) -> [(u16, u8, u8, u32); UNDOING] {
    use bpf::{LD_MEM, LDX_MEM, LSH, OR_X, RSH, ST, SUB_X, TAX, XOR, XOR_X};
    [
        // y = (x ^ y) >>> 3
        (LDX_MEM, 0, 0, 0),
        (LD_MEM, 0, 0, 1),
        (XOR_X, 0, 0, 0),
        (ST, 0, 0, 2),
        (RSH, 0, 0, 3),
        (TAX, 0, 0, 0),
        (LD_MEM, 0, 0, 2),
        (LSH, 0, 0, 29),
        (OR_X, 0, 0, 0),
        (ST, 0, 0, 1),
        // x = ((x ^ key) - y) <<< 8
        (TAX, 0, 0, 0),
        (LD_MEM, 0, 0, 0),
        (XOR, 0, 0, key),
        (SUB_X, 0, 0, 0),
        (ST, 0, 0, 2),
        (RSH, 0, 0, 24),
        (TAX, 0, 0, 0),
        (LD_MEM, 0, 0, 2),
        (LSH, 0, 0, 8),
        (OR_X, 0, 0, 0),
        (ST, 0, 0, 0),
    ]
}

/// The bit of the first byte that marks a long header (RFC 8999 §5.1).
const LONG: u32 = 0x80;

/// The classic BPF instructions in use.
mod bpf {
    pub(super) const LD_BYTE: u16 = 0x30;
    pub(super) const LD_WORD: u16 = 0x20;
    pub(super) const LD_WORD_AT_X: u16 = 0x40;
    pub(super) const LD_MEM: u16 = 0x60;
    pub(super) const LDX: u16 = 0x01;
    pub(super) const LDX_MEM: u16 = 0x61;
    pub(super) const ST: u16 = 0x02;
    pub(super) const ADD: u16 = 0x04;
    pub(super) const SUB: u16 = 0x14;
    pub(super) const SUB_X: u16 = 0x1c;
    pub(super) const OR_X: u16 = 0x4c;
    pub(super) const LSH: u16 = 0x64;
    pub(super) const XOR: u16 = 0xa4;
    pub(super) const TAX: u16 = 0x07;
    pub(super) const MOD: u16 = 0x94;
    pub(super) const RSH: u16 = 0x74;
    pub(super) const AND: u16 = 0x54;
    pub(super) const XOR_X: u16 = 0xac;
    pub(super) const JUMP: u16 = 0x05;
    pub(super) const JEQ: u16 = 0x15;
    pub(super) const JGE: u16 = 0x35;
    pub(super) const JSET: u16 = 0x45;
    pub(super) const RET: u16 = 0x06;
    pub(super) const RET_A: u16 = 0x16;
}

#[cfg(test)]
mod tests {
    use super::{Admits, CID_LEN, Elder, Generator, WorkerNumbers, bpf_program, owner};
    use crate::SharedKeys;
    use bolide_base::prng::Prng;
    use proptest::prelude::{any, proptest};
    use quinn_proto::ConnectionIdGenerator as _;

    /// Interprets a program as the kernel does.
    fn interpret(program: &[(u16, u8, u8, u32)], packet: &[u8]) -> u32 {
        let load = |at: u32, size: usize| {
            let at = at as usize;
            packet
                .get(at..at + size)
                .map(|bytes| bytes.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)))
        };
        let (mut a, mut x, mut m, mut at) = (0_u32, 0_u32, [0_u32; 16], 0_usize);
        loop {
            let (code, jt, jf, k) = program[at];
            at += 1;
            let mut branch = |yes: bool| at += usize::from(if yes { jt } else { jf });
            let loaded = match code {
                0x30 => Some(load(k, 1)),
                0x20 => Some(load(k, 4)),
                0x40 => Some(load(x.wrapping_add(k), 4)),
                _ => None,
            };
            match (code, loaded) {
                (_, Some(Some(word))) => a = word,
                // The kernel ends a program that reads past the packet with 0.
                (_, Some(None)) => return 0,
                (0x60, _) => a = m[k as usize],
                (0x01, _) => x = k,
                (0x61, _) => x = m[k as usize],
                (0x02, _) => m[k as usize] = a,
                (0x04, _) => a = a.wrapping_add(k),
                (0x14, _) => a = a.wrapping_sub(k),
                (0x1c, _) => a = a.wrapping_sub(x),
                (0x4c, _) => a |= x,
                (0x64, _) => a <<= k,
                (0xa4, _) => a ^= k,
                (0x07, _) => x = a,
                (0x94, _) => a %= k,
                (0x74, _) => a >>= k,
                (0x54, _) => a &= k,
                (0xac, _) => a ^= x,
                (0x05, _) => at += k as usize,
                (0x15, _) => branch(a == k),
                (0x35, _) => branch(a >= k),
                (0x45, _) => branch(a & k != 0),
                (0x06, _) => return k,
                (0x16, _) => return a,
                other => panic!("not an instruction we use: {other:?}"),
            }
        }
    }

    fn short(cid: &[u8]) -> Vec<u8> {
        [&[0x40], cid, &[7; 30]].concat()
    }

    fn long(cid: &[u8]) -> Vec<u8> {
        [&[0xc0, 0, 0, 0, 1, cid.len() as u8], cid, &[8], &[7; 30]].concat()
    }

    #[test]
    fn every_worker_is_found_by_the_rule_and_by_the_program() {
        let keys = SharedKeys::generate().unwrap();
        for workers in [1, 4, 64, 255] {
            let program = bpf_program(&keys, workers, None);
            for worker in 0..workers {
                let mut generator = Generator::new(worker, &keys);
                for _ in 0..40 {
                    let cid = generator.generate_cid();
                    assert!(generator.validate(&cid).is_ok());
                    for datagram in [short(&cid), long(&cid)] {
                        assert_eq!(owner(&datagram, &keys, workers), Some(worker));
                        assert_eq!(interpret(&program, &datagram), u32::from(worker));
                    }
                    assert_eq!(owner(&short(&cid), &keys, worker), None);
                }
            }
        }
    }

    #[test]
    fn ids_that_clients_choose_are_left_to_the_hash() {
        let keys = SharedKeys::from_secret([3; 32]);
        let program = bpf_program(&keys, 4, None);
        let mut prng = Prng::new(5);
        let strays = (0..20_000)
            .filter(|_| {
                let datagram = long(&prng.next_u64().to_be_bytes());
                let program_says = interpret(&program, &datagram);
                assert_eq!(program_says < 4, owner(&datagram, &keys, 4).is_some());
                program_says < 4
            })
            .count();
        assert_eq!(strays, 0);
        for len in [0, 7, 9, 20] {
            assert_eq!(interpret(&program, &long(&vec![0; len])), u32::MAX);
        }
    }

    #[test]
    fn while_a_predecessor_lives_each_keeps_its_own_and_new_ones_come_to_the_successor() {
        let elders_keys = SharedKeys::from_secret([4; 32]);
        let elder = WorkerNumbers { first: 0, count: 3 };
        let own = elder.beside(2).unwrap();
        let keys = elders_keys.clone().numbered_from(own.first);
        let beside = |admits| bpf_program(&keys, own.count, Some(Elder { numbers: elder, admits }));
        let program = beside(Admits::Successor);
        let ending = beside(Admits::Elder);
        for (of, count, before) in [(&elders_keys, 3, 0), (&keys, 2, 3)] {
            for worker in 0..count {
                let cid = Generator::new(worker, of).generate_cid();
                for datagram in [short(&cid), long(&cid)] {
                    // Behind three sockets, the second of two is the first place.
                    let place = if before == 0 { worker } else { (worker + 1) % 2 };
                    assert_eq!(interpret(&program, &datagram), u32::from(before + place));
                    assert_eq!(interpret(&ending, &datagram), u32::from(before + place));
                    assert_eq!(owner(&datagram, of, count), Some(worker));
                }
                let other = if before == 0 { (&keys, 2) } else { (&elders_keys, 3) };
                assert_eq!(owner(&short(&cid), other.0, other.1), None);
            }
        }
        let mut prng = Prng::new(6);
        for len in [8, 12, 20] {
            let chosen: Vec<u8> = (0..len).map(|_| prng.next_u64() as u8).collect();
            let index = interpret(&program, &long(&chosen));
            assert!((3..5).contains(&index), "{index}");
            assert_eq!(index, interpret(&program, &long(&chosen)), "twice the same");
            assert!((0..3).contains(&interpret(&ending, &long(&chosen))));
        }
        assert_eq!(interpret(&program, &short(&[1; 8])), u32::MAX);
    }

    #[test]
    fn sockets_are_in_order_when_those_of_the_predecessor_are_closed() {
        for (count, workers) in (1..9).flat_map(|a| (1..9).map(move |b| (a, b))) {
            let numbers = WorkerNumbers { first: 0, count };
            let turn = Elder { numbers, admits: Admits::Successor }.turn(workers);
            // The group: the predecessor's sockets, then the place of each worker.
            let mut own = vec![0; usize::from(workers)];
            for worker in 0..workers {
                own[(u32::from(worker) + turn) as usize % usize::from(workers)] = worker;
            }
            let mut group: Vec<Option<u8>> = vec![None; usize::from(count)];
            group.extend(own.into_iter().map(Some));
            for place in (0..usize::from(count)).rev() {
                group.swap_remove(place);
            }
            let wanted: Vec<_> = (0..workers).map(Some).collect();
            assert_eq!(group, wanted, "{workers} behind {count}");
        }
    }

    #[test]
    fn numbers_of_successors_do_not_meet() {
        let mut numbers = WorkerNumbers { first: 0, count: 100 };
        for count in [100, 50, 100, 40, 7] {
            let next = numbers.beside(count).unwrap();
            let end = |of: WorkerNumbers| of.first + of.count;
            let apart = next.first >= end(numbers) || end(next) <= numbers.first;
            assert!(apart && next.count == count, "{numbers:?} {next:?}");
            numbers = next;
        }
        assert_eq!(WorkerNumbers { first: 0, count: 200 }.beside(100), None);
    }

    #[test]
    fn ids_differ_and_other_keys_do_not_know_them() {
        let (keys, others) = (SharedKeys::from_secret([1; 32]), SharedKeys::from_secret([2; 32]));
        let mut generator = Generator::new(3, &keys);
        let cids: Vec<_> = (0..100).map(|_| generator.generate_cid()).collect();
        for (index, cid) in cids.iter().enumerate() {
            assert!(!cids[..index].contains(cid) && cid.len() == CID_LEN);
        }
        assert!(cids.iter().all(|cid| owner(&short(cid), &others, 255).is_none()));
    }

    proptest! {
        #[test]
        fn the_rule_and_the_program_agree_on_anything(
            mut bytes in proptest::collection::vec(any::<u8>(), 14..40), ours in any::<bool>(),
            workers in 1_u8..,
        ) {
            let keys = SharedKeys::from_secret([9; 32]);
            if ours {
                let at = if bytes[0] & 0x80 == 0 { 1 } else { 6 };
                let cid = Generator::new(200, &keys).generate_cid();
                bytes[at..at + CID_LEN].copy_from_slice(&cid);
            }
            let program = interpret(&bpf_program(&keys, workers, None), &bytes);
            let program = u8::try_from(program).ok().filter(|index| *index < workers);
            assert_eq!(program, owner(&bytes, &keys, workers));
        }
    }
}
