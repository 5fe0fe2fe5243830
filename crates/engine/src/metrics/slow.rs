//! The slowest requests of the last minutes, by worker.
//!
//! Owns their selection. Its lock is held for a copy, by requests over the threshold and by
//! readers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::counters::ConnProtocol;

/// The threshold in nanoseconds.
pub(crate) const SLOW_NANOS: u64 = 500_000_000;
/// LIMIT: slow requests stored by each worker, and reported together.
pub(crate) const SLOW_MAX: usize = 32;
/// How long they are reported, in milliseconds: 15 minutes.
const KEPT_MS: u64 = 15 * 60 * 1000;
/// LIMIT: stored bytes of host and target, each.
const TEXT_MAX: usize = 160;

/// A slow request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlowRequest {
    /// When it ended; milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Its duration in microseconds.
    pub(crate) micros: u64,
    /// The status that the client got.
    pub(crate) status: u16,
    /// Its protocol.
    pub(crate) protocol: ConnProtocol,
    /// `$request_id`
    pub(crate) id: [u64; 2],
    /// The method as sent.
    pub(crate) method: Vec<u8>,
    /// The requested host.
    pub(crate) host: Vec<u8>,
    /// The first bytes of path and query as sent.
    pub(crate) target: Vec<u8>,
}

/// The stored beginning of a text.
pub(crate) fn kept(text: &[u8]) -> Vec<u8> {
    text[..text.len().min(TEXT_MAX)].to_vec()
}

/// The slowest requests of one worker.
#[derive(Debug, Default)]
pub(crate) struct SlowRequests(Mutex<Vec<SlowRequest>>);

impl SlowRequests {
    fn lock(&self) -> MutexGuard<'_, Vec<SlowRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a request if it is among the slowest.
    #[cold]
    pub(crate) fn note(&self, request: SlowRequest) {
        debug_assert!(request.target.len() <= TEXT_MAX, "long texts are cut");
        let mut all = self.lock();
        debug_assert!(all.len() <= SLOW_MAX, "no more are kept than may be");
        if all.len() < SLOW_MAX {
            return all.push(request);
        }
        let old = all.iter_mut().find(|one| !is_recent(one, request.at_ms));
        let place = match old {
            Some(old) => Some(old),
            None => {
                let fastest = all.iter_mut().min_by_key(|one| one.micros);
                fastest.filter(|one| one.micros < request.micros)
            }
        };
        if let Some(place) = place {
            *place = request;
        }
    }

    /// Appends its requests of the last minutes to `all`.
    pub(crate) fn add_to(&self, all: &mut Vec<SlowRequest>, now_ms: u64) {
        all.extend(self.lock().iter().filter(|one| is_recent(one, now_ms)).cloned());
    }
}

const fn is_recent(one: &SlowRequest, now_ms: u64) -> bool {
    now_ms.saturating_sub(one.at_ms) < KEPT_MS
}

#[cfg(test)]
mod tests {
    use super::{KEPT_MS, SLOW_MAX, SlowRequest, SlowRequests, TEXT_MAX, kept};
    use crate::counters::ConnProtocol;

    fn request(at_ms: u64, micros: u64) -> SlowRequest {
        let protocol = ConnProtocol::H1;
        let (method, host, target) = (b"GET".to_vec(), Vec::new(), b"/".to_vec());
        SlowRequest { at_ms, micros, status: 200, protocol, id: [1, 2], method, host, target }
    }

    fn read(slow: &SlowRequests, now_ms: u64) -> Vec<u64> {
        let mut all = Vec::new();
        slow.add_to(&mut all, now_ms);
        let mut micros: Vec<u64> = all.iter().map(|one| one.micros).collect();
        micros.sort_unstable();
        micros
    }

    #[test]
    fn the_slowest_stay_and_the_old_give_way() {
        let slow = SlowRequests::default();
        let many = SLOW_MAX as u64;
        (0..2 * many).for_each(|number| slow.note(request(5, 1000 + number)));
        assert_eq!(read(&slow, 5), (1000 + many..1000 + 2 * many).collect::<Vec<_>>());
        slow.note(request(6, 1));
        assert_eq!(read(&slow, 6).len(), SLOW_MAX);
        assert!(!read(&slow, 6).contains(&1), "a faster one finds no place");
        let later = 5 + KEPT_MS;
        assert_eq!(read(&slow, later), []);
        slow.note(request(later, 2));
        assert_eq!(read(&slow, later), [2]);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(kept(&[b'a'; 2 * TEXT_MAX]).len(), TEXT_MAX);
        assert_eq!(kept(b"/a"), b"/a");
    }
}
