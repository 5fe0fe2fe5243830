//! The counts of requests for `bolide adopt`; the control thread answers it itself.

use bolide_engine::metrics::ServiceCounts;

/// Its name on the socket.
pub(crate) const COMMAND: &str = "service";

/// Requests and handshakes, each with the number of failures.
pub(crate) fn text(counts: &ServiceCounts) -> Vec<u8> {
    let (requests, handshakes) = (counts.requests, counts.handshakes);
    format!(
        "requests {} {}\nhandshakes {} {}\n",
        requests.all, requests.failed, handshakes.all, handshakes.failed
    )
    .into_bytes()
}
