//! The faults that were injected, and the application's correct response. The oracles excuse a
//! failure only if the record has a fault that explains it.

use std::collections::BTreeMap;

/// An application's reaction to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppReaction {
    /// A correct response.
    Respond,
    /// Closes before the response.
    CloseEarly,
    /// Closes within the response.
    CloseInResponse,
    /// Stops within the response.
    Hang,
    /// A head that is too large.
    OversizedHead,
    /// A malformed record, head or chunk.
    Malformed,
    /// A body shorter than its Content-Length, and an orderly end.
    ShortBody,
    /// A 503 response.
    Unavailable,
    /// A 503 response before the request's body is read.
    Refuse,
    /// A body longer than its Content-Length.
    LongBody,
    /// The end of the request before that of the response.
    EndEarly,
    /// A correct response after a silence that may exceed the read timeout.
    Late,
}

/// The faults of upstreams and of the disk, as far as they excuse a failed response.
#[derive(Debug, Default)]
pub struct FaultRecord {
    app_faults: BTreeMap<String, Vec<AppReaction>>,
    /// Lengths that responses stated although their bodies were longer.
    stated_lengths: BTreeMap<String, Vec<usize>>,
    /// Idle connections that an application closed.
    pub closed_idle: u64,
    /// Connects of workers that failed.
    pub refused_connects: u64,
    /// TLS handshakes that an application did not complete and did not end.
    pub stalled_handshakes: u64,
    /// Connections to applications that the network broke.
    pub broken_links: u64,
    /// Failed reads and writes of files and temporary files.
    pub temp_file_errors: u64,
    /// Connects that failed on the worker's side; `refused_connects` counts them, too.
    pub local_connect_errors: u64,
    /// Cache files that were damaged, possibly while they were sent.
    pub damaged_files: u64,
}

impl FaultRecord {
    /// Records the reaction of an application to a request.
    pub(crate) fn record(&mut self, token: &str, reaction: AppReaction) {
        self.app_faults.entry(token.to_owned()).or_default().push(reaction);
    }

    /// The application's faults for this request.
    pub(crate) fn app_faults_of(&self, token: &str) -> &[AppReaction] {
        self.app_faults.get(token).map_or(&[], |all| all)
    }

    /// Records the length that a response with a longer body states.
    pub(crate) fn record_length(&mut self, token: &str, length: usize) {
        self.stated_lengths.entry(token.to_owned()).or_default().push(length);
    }

    /// Whether a response to this request stated this length although its body was longer.
    #[must_use]
    pub fn has_stated(&self, token: &str, length: usize) -> bool {
        self.stated_lengths.get(token).is_some_and(|all| all.contains(&length))
    }

    /// Whether the response to this request may be truncated.
    #[must_use]
    pub fn may_truncate(&self, token: &str) -> bool {
        let within = |reaction: &AppReaction| {
            matches!(
                reaction,
                AppReaction::CloseInResponse
                    | AppReaction::Hang
                    | AppReaction::Malformed
                    | AppReaction::ShortBody
                    | AppReaction::LongBody
                    | AppReaction::EndEarly
                    | AppReaction::Late
                    | AppReaction::Refuse
            )
        };
        self.broken_links + self.temp_file_errors + self.damaged_files > 0
            || self.app_faults_of(token).iter().any(within)
    }

    /// Whether an injected fault may make this request fail.
    #[must_use]
    pub fn may_fail(&self, token: &str) -> bool {
        self.refused_connects + self.stalled_handshakes + self.broken_links + self.temp_file_errors
            > 0
            || !self.app_faults_of(token).is_empty()
    }

    /// Whether this request may get this error status.
    #[must_use]
    pub fn allows_status(&self, token: &str, status: u16) -> bool {
        let app_faults = self.app_faults_of(token);
        match status {
            500 => self.temp_file_errors + self.local_connect_errors > 0,
            502 => {
                self.refused_connects + self.broken_links + self.temp_file_errors > 0
                    || !app_faults.is_empty()
            }
            503 => {
                let refuses = [AppReaction::Unavailable, AppReaction::Refuse];
                refuses.iter().any(|reaction| app_faults.contains(reaction))
            }
            504 => {
                // The body that is not read is sent until a timeout.
                let is_late = [AppReaction::Hang, AppReaction::Late, AppReaction::Refuse];
                self.stalled_handshakes > 0
                    || is_late.iter().any(|reaction| app_faults.contains(reaction))
            }
            _ => false,
        }
    }
}

/// The byte of a request body at this position.
#[must_use]
pub const fn upload_byte(at: usize) -> u8 {
    b'a' + ((at * 7 + at / 251) % 26) as u8
}

/// The body of a correct response: the token, length and hash of the request body, and `size`
/// filler bytes.
#[must_use]
pub fn application_response(token: &str, size: usize, uploaded: usize) -> Vec<u8> {
    let body: Vec<u8> = (0..uploaded).map(upload_byte).collect();
    response_to(token, size, &body)
}

/// The same for the bytes of a received body.
pub(crate) fn response_to(token: &str, size: usize, body: &[u8]) -> Vec<u8> {
    let hash = body.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut response = format!("{token} sent {} {hash:016x}\n", body.len()).into_bytes();
    response.extend((0..size).map(|at| b'A' + ((at * 5 + at / 97) % 26) as u8));
    response
}
