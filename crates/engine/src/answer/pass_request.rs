//! The upstream requests of one response.

use bolide_base::Instant;
use bolide_conf::model::UpstreamId;
use bolide_http::FieldMap;
use bolide_upstream::Attempt;

/// The upstream requests of one response.
#[derive(Debug, Default)]
pub(crate) struct PassRequest {
    /// All attempts, in order.
    pub(crate) attempts: Vec<Attempt>,
    /// The indices in `attempts` at which later upstream requests begin.
    pub(crate) later: Vec<usize>,
    /// The group of the last upstream request, if it has one.
    pub(crate) group: Option<UpstreamId>,
    /// The cookies of `sticky cookie`: of each upstream request, that for the last server.
    pub(crate) bonds: Vec<BindingCookie>,
    /// The fields of the last head.
    pub(crate) fields: FieldMap,
    /// The trailers of its body.
    pub(crate) trailers: FieldMap,
    /// When it arrived; before that, when the request began.
    pub(crate) head_at: Instant,
    /// Whether a fetch is running.
    pub(crate) is_running: bool,
    /// Whether its response is sent to the client.
    pub(crate) is_answering: bool,
    /// The status that says why its response broke off; none if it did not.
    pub(crate) refused: Option<u16>,
    /// Whether the response may be stored, so that the whole was requested.
    pub(crate) is_whole: bool,
    /// Bytes of interim heads.
    pub(crate) early_size: usize,
    /// The protocol's name.
    pub(crate) scheme: &'static str,
    /// Whether the upstream speaks HTTP/2.
    pub(crate) has_http2: bool,
}

impl PassRequest {
    /// An upstream request begins.
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

    /// Whether a fetch is running.
    pub(crate) const fn is_running(&self) -> bool {
        self.is_running
    }

    /// Whether the client gets the upstream response.
    pub(crate) const fn is_answering(&self) -> bool {
        self.is_answering
    }

    /// Records that the client gets the upstream response.
    pub(crate) const fn set_answering(&mut self) {
        self.is_answering = true;
    }

    /// Stores the fields of a head.
    pub(crate) fn record_head(&mut self, fields: &FieldMap, now: bolide_base::Now) {
        self.fields.copy_from(fields);
        self.head_at = now.mono;
    }

    /// The rest of the response is not used.
    pub(crate) fn close_attempt(&mut self, now: bolide_base::Now) {
        if let Some(last) = self.attempts.last_mut()
            && !last.is_over
        {
            last.is_over = true;
            let since = now.mono.since(self.head_at).as_millis() as u64;
            // Before a head, the time since the request counts.
            last.response_ms = last.header_ms.unwrap_or(0) + since;
        }
    }

    /// Stores the state of an attempt; whether it is a new one.
    pub(crate) fn note(&mut self, attempt: Attempt) -> bool {
        let first = self.later.last().copied().unwrap_or(0);
        let count = self.attempts.len();
        debug_assert!(first <= count, "a later request begins behind the attempts that were made");
        match self.attempts.get_mut(first..).and_then(<[_]>::last_mut) {
            Some(last) if !last.is_over => {
                *last = attempt;
                false
            }
            _ => {
                let is_new = !attempt.is_over;
                if count < first + ATTEMPTS_MAX {
                    self.attempts.push(attempt);
                }
                is_new
            }
        }
    }
}

/// The cookie that binds the client to a server.
#[derive(Debug)]
pub(crate) struct BindingCookie {
    /// The upstream request, by its number.
    pub(crate) request: usize,
    /// The value of `Set-Cookie`.
    pub(crate) cookie: Vec<u8>,
}

/// LIMIT: remembered attempts of one request to a group.
const ATTEMPTS_MAX: usize = 64;
