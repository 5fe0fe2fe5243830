//! The rates of faults of each scenario.

use super::Scenario;
use crate::fault_rates::FaultRates;

impl Scenario {
    /// Its rates of faults.
    #[must_use]
    pub fn fault_rates(self) -> FaultRates {
        let calm = FaultRates { late_in: 4, outbound_max: 256 * 1024, ..FaultRates::default() };
        let disk = FaultRates { open_in: 8, race_in: 10, read_in: 60, short_read_in: 3, ..calm };
        match self {
            Self::Calm | Self::Reload | Self::Drain | Self::Audiences => calm,
            Self::Quic | Self::QuicReload | Self::QuicDrain | Self::QuicDeath => calm,
            Self::QuicRough => FaultRates { short_read_in: 4, ..calm },
            Self::Apps | Self::Assembly => FaultRates { short_read_in: 3, ..calm },
            Self::Cache | Self::CacheTight => FaultRates { short_read_in: 4, ..calm },
            Self::CacheEsi => {
                FaultRates { app_fault_in: 10, cut_in: 1500, short_read_in: 4, ..calm }
            }
            Self::CacheChange => FaultRates { app_fault_in: 12, short_read_in: 4, ..calm },
            Self::CacheDisk => FaultRates { store_in: 150, short_read_in: 4, ..calm },
            Self::CacheOrigin => FaultRates {
                app_fault_in: 4,
                refuse_in: 15,
                spool_in: 60,
                cut_in: 250,
                watch_in: 80,
                short_read_in: 4,
                outbound_max: 24 * 1024,
                ..calm
            },
            Self::Origin => FaultRates { app_fault_in: 3, refuse_in: 6, ..calm },
            Self::AssemblyTangle => FaultRates {
                app_fault_in: 12,
                refuse_in: 25,
                spool_in: 40,
                cut_in: 200,
                watch_in: 60,
                short_read_in: 3,
                outbound_max: 16 * 1024,
                ..calm
            },
            Self::Tangle
            | Self::Proxy
            | Self::Uwsgi
            | Self::Scgi
            | Self::Grpc
            | Self::ProxyHttp2
            | Self::QuicTangle => FaultRates {
                app_fault_in: 4,
                refuse_in: 10,
                spool_in: 20,
                cut_in: 150,
                watch_in: 60,
                short_read_in: 3,
                outbound_max: 16 * 1024,
                ..calm
            },
            Self::SyscallFaults => FaultRates { short_read_in: 3, outbound_max: 16 * 1024, ..calm },
            Self::Dav => FaultRates { short_read_in: 3, outbound_max: 64 * 1024, ..calm },
            Self::Upkeep => FaultRates { app_fault_in: 5, spool_in: 40, short_read_in: 3, ..calm },
            Self::Pools => FaultRates {
                app_fault_in: 4,
                refuse_in: 25,
                cut_in: 600,
                watch_in: 100,
                short_read_in: 3,
                outbound_max: 16 * 1024,
                ..calm
            },
            Self::Dns => FaultRates { app_fault_in: 12, refuse_in: 25, short_read_in: 3, ..calm },
            Self::Secure => FaultRates {
                app_fault_in: 8,
                refuse_in: 20,
                spool_in: 60,
                cut_in: 400,
                watch_in: 100,
                short_read_in: 3,
                outbound_max: 32 * 1024,
                ..calm
            },
            Self::Clients => FaultRates { accept_in: 8, watch_in: 40, cut_in: 60, ..calm },
            Self::Disk => disk,
            Self::Slow => FaultRates { late_in: 2, outbound_max: 8 * 1024, ..calm },
            Self::Mix => FaultRates { accept_in: 8, watch_in: 60, cut_in: 200, ..disk },
        }
    }
}
