//! What is known of the origins that were asked for one answer.

use bolide_base::Instant;
use bolide_http::FieldMap;
use bolide_upstream::Attempt;

/// What is known of the origins that were asked for one answer.
#[derive(Debug, Default)]
pub(crate) struct PassRequest {
    /// All attempts, in order.
    pub(crate) attempts: Vec<Attempt>,
    /// Where in `attempts` later requests to origins begin.
    pub(crate) later: Vec<usize>,
    /// The fields of the newest head.
    pub(crate) fields: FieldMap,
    /// What stood behind its body.
    pub(crate) trailers: FieldMap,
    /// When it came; until then, when the origin was asked.
    pub(crate) head_at: Instant,
    /// Whether a fetch is under way.
    pub(crate) is_running: bool,
    /// Whether its answer is the client's.
    pub(crate) is_answering: bool,
    /// Why its answer broke off, as a status, once it did.
    pub(crate) refused: Option<u16>,
    /// Whether what comes is for a cache, too, so that the whole was asked for.
    pub(crate) is_whole: bool,
    /// Bytes of heads that came before the answer's.
    pub(crate) early_size: usize,
    /// What is spoken.
    pub(crate) scheme: &'static str,
}

impl PassRequest {
    /// An origin is asked.
    pub(crate) fn begin(&mut self, scheme: &'static str, now: bolide_base::Now) {
        if !self.attempts.is_empty() {
            self.later.push(self.attempts.len());
        }
        self.fields.clear();
        self.trailers.clear();
        debug_assert!(!self.is_running, "a request has one fetch at a time");
        self.head_at = now.mono;
        self.is_running = true;
        (self.is_answering, self.is_whole) = (false, false);
        self.refused = None;
        self.early_size = 0;
        self.scheme = scheme;
    }

    /// Whether a fetch is under way.
    pub(crate) const fn is_running(&self) -> bool {
        self.is_running
    }

    /// Whether what the origin sends is what the client gets.
    pub(crate) const fn is_answering(&self) -> bool {
        self.is_answering
    }

    /// Notes that what the origin sends is what the client gets.
    pub(crate) const fn set_answering(&mut self) {
        self.is_answering = true;
    }

    /// Keeps the fields of a head.
    pub(crate) fn note_head(&mut self, fields: &FieldMap, now: bolide_base::Now) {
        self.fields.copy_from(fields);
        self.head_at = now.mono;
    }

    /// The rest of the answer is not used.
    pub(crate) fn close_attempt(&mut self, now: bolide_base::Now) {
        if let Some(last) = self.attempts.last_mut()
            && !last.is_over
        {
            last.is_over = true;
            let since = now.mono.since(self.head_at).as_millis() as u64;
            // Before a head, the attempt is as old as the request to it.
            last.response_ms = last.header_ms.unwrap_or(0) + since;
        }
    }

    /// Keeps how an attempt stands.
    pub(crate) fn note(&mut self, attempt: Attempt) {
        let first = self.later.last().copied().unwrap_or(0);
        let count = self.attempts.len();
        debug_assert!(first <= count, "a later request begins behind the attempts that were made");
        match self.attempts.get_mut(first..).and_then(<[_]>::last_mut) {
            Some(last) if !last.is_over => *last = attempt,
            _ if count < first + ATTEMPTS_MAX => self.attempts.push(attempt),
            _ => {}
        }
    }
}

/// Attempts that are remembered of one request to a group.
const ATTEMPTS_MAX: usize = 64;
