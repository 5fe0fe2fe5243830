//! The QUIC settings of the site in one run: listeners, limits, network.

use std::fmt::Write as _;

use bolide_tls::EarlyData;

use crate::chance::Chance;
use crate::kernel::{Kernel, KernelPatience};
use crate::scenario::{MILLI, Scenario};

/// A second in nanoseconds.
const SECOND: u64 = 1000 * MILLI;

/// What is offered.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) ports: Vec<u16>,
    /// Directives of the server.
    pub(super) words: String,
    pub(super) early_data: EarlyData,
}

impl Offer {
    /// Any offer that fits the scenario; what clients must know of it goes to the kernel.
    pub(super) fn any(scenario: Scenario, seed: u64, kernel: &mut Kernel) -> Self {
        if !scenario.has_quic() {
            return Self { ports: Vec::new(), words: String::new(), early_data: EarlyData::Off };
        }
        let mut chance = Chance::new(seed, 3);
        kernel.net.weather = scenario.weather(&mut chance);
        kernel.net.weather.refuses_trains = Chance::new(seed, 10).one_in(4);
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
        let mut patience = KernelPatience::default();
        let mut shorten = |name: &str, time: &mut u64, shortest: u64| {
            let seconds = [0, 0, shortest, 8][chance.index(4)];
            if seconds > 0 {
                let _ = write!(words, "{name} {seconds}s;");
                *time = seconds * SECOND;
            }
        };
        shorten("keepalive_timeout", &mut patience.idle, 1);
        shorten("send_timeout", &mut patience.send, 3);
        shorten("client_body_timeout", &mut patience.body, 3);
        kernel.patience = patience;
        let network = kernel.net.weather;
        kernel.tell(|| format!("{words} {network:?}"));
        let early_data = [EarlyData::Off, EarlyData::SingleUse][chance.index(2)];
        Self { ports: vec![8443], words, early_data }
    }
}
