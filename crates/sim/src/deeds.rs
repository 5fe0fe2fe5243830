//! What applications did, correctly and not, and what a correct response of theirs is.

use std::collections::BTreeMap;

/// What an application does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Answers.
    Good,
    /// Closes before it says anything.
    DieEarly,
    /// Closes somewhere within its answer.
    DieWithin,
    /// Says nothing any more from somewhere on.
    Hang,
    /// Sends a head that is too large.
    HugeHead,
    /// Sends what is no record, or no head.
    Nonsense,
    /// Sends less than it says, and ends in order.
    Short,
    /// Says that it has no time.
    Busy,
}

/// What went wrong with applications.
#[derive(Debug, Default)]
pub struct Deeds {
    bad: BTreeMap<String, Vec<Deed>>,
    /// Calls that were not taken.
    pub refusals: u64,
    /// Handshakes in which an application says nothing any more.
    pub stalls: u64,
    /// Connections to applications that the network cut.
    pub cuts: u64,
    /// Writes and reads of temporary files that failed.
    pub full_disks: u64,
    /// Calls of origins that failed on this side; they count as refusals, too.
    pub hindrances: u64,
    /// Files of the cache that broke, maybe while they were sent.
    pub broken_files: u64,
}

impl Deeds {
    /// Notes what an application did with a request.
    pub(crate) fn note(&mut self, token: &str, deed: Deed) {
        self.bad.entry(token.to_owned()).or_default().push(deed);
    }

    /// What was wrong with the answers to this request.
    pub(crate) fn of(&self, token: &str) -> &[Deed] {
        self.bad.get(token).map_or(&[], |all| all)
    }

    /// Whether the answer to this request may have been cut.
    #[must_use]
    pub fn cut(&self, token: &str) -> bool {
        let within = |deed: &Deed| {
            matches!(deed, Deed::DieWithin | Deed::Hang | Deed::Nonsense | Deed::Short)
        };
        self.cuts + self.full_disks + self.broken_files > 0 || self.of(token).iter().any(within)
    }

    /// Whether anything that could make this request fail has happened.
    #[must_use]
    pub fn spoils(&self, token: &str) -> bool {
        self.refusals + self.stalls + self.cuts + self.full_disks > 0 || !self.of(token).is_empty()
    }

    /// Whether this request may have been answered with an error.
    #[must_use]
    pub fn allows(&self, token: &str, status: u16) -> bool {
        let bad = self.of(token);
        match status {
            500 => self.full_disks + self.hindrances > 0,
            502 => self.refusals + self.cuts + self.full_disks > 0 || !bad.is_empty(),
            503 => bad.contains(&Deed::Busy),
            504 => self.stalls > 0 || bad.contains(&Deed::Hang),
            _ => false,
        }
    }
}

/// The byte of a request body at this place.
#[must_use]
pub const fn upload_byte(at: usize) -> u8 {
    b'a' + ((at * 7 + at / 251) % 26) as u8
}

/// The body of the right answer: what was asked, what arrived, and a filling of `size` bytes.
#[must_use]
pub fn application_answer(token: &str, size: usize, uploaded: usize) -> Vec<u8> {
    let body: Vec<u8> = (0..uploaded).map(upload_byte).collect();
    answer_to(token, size, &body)
}

/// The same for a body that arrived.
pub(crate) fn answer_to(token: &str, size: usize, body: &[u8]) -> Vec<u8> {
    let hash = body.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut answer = format!("{token} sent {} {hash:016x}\n", body.len()).into_bytes();
    answer.extend((0..size).map(|at| b'A' + ((at * 5 + at / 97) % 26) as u8));
    answer
}
