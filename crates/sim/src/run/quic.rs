//! The QUIC settings of the site in one run: listeners, limits, network.

use std::fmt::Write as _;

use bolide_tls::EarlyData;

use crate::chance::Chance;
use crate::kernel::{Kernel, QuicTimeouts};
use crate::scenario::Scenario;
use crate::time::MILLI;

/// A second in nanoseconds.
const SECOND: u64 = 1000 * MILLI;

/// The QUIC settings of one run.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) ports: Vec<u16>,
    /// Directives of the server.
    pub(super) words: String,
    pub(super) early_data: EarlyData,
}

impl Offer {
    /// Random settings for the scenario; the kernel gets the values that clients need.
    pub(super) fn any(scenario: Scenario, seed: u64, kernel: &mut Kernel) -> Self {
        if !scenario.has_quic() {
            return Self { ports: Vec::new(), words: String::new(), early_data: EarlyData::Off };
        }
        let mut chance = Chance::new(seed, 3);
        kernel.net.conditions = scenario.net_conditions(&mut chance);
        kernel.net.conditions.refuses_gso = Chance::new(seed, 10).one_in(4);
        let words = [
            ["", "", "keepalive_requests 1;", "keepalive_requests 3;"][chance.index(4)],
            ["", "", "keepalive_time 100ms;", "keepalive_time 2s;"][chance.index(4)],
            ["", "quic_retry on;"][chance.index(2)],
            ["", "quic_gso on;", "quic_gso off;"][chance.index(3)],
            ["", "", "http3_max_concurrent_streams 1;", "http3_max_concurrent_streams 3;"]
                [chance.index(4)],
            ["", "", "http3_stream_buffer_size 1k;", "http3_stream_buffer_size 16k;"]
                [chance.index(4)],
            ["", "quic_active_connection_id_limit 5;"][chance.index(2)],
        ];
        let mut words = words.concat();
        let mut timeouts = QuicTimeouts::default();
        let mut shorten = |name: &str, time: &mut u64, shortest: u64| {
            let seconds = [0, 0, shortest, 8][chance.index(4)];
            if seconds > 0 {
                let _ = write!(words, "{name} {seconds}s;");
                *time = seconds * SECOND;
            }
        };
        shorten("keepalive_timeout", &mut timeouts.idle, 1);
        shorten("send_timeout", &mut timeouts.send, 3);
        shorten("client_body_timeout", &mut timeouts.body, 3);
        kernel.quic_timeouts = timeouts;
        let network = kernel.net.conditions;
        kernel.trace(|| format!("{words} {network:?}"));
        let early_data = [EarlyData::Off, EarlyData::SingleUse][chance.index(2)];
        Self { ports: vec![8443], words, early_data }
    }
}
