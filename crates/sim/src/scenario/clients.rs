//! The behaviour of the clients of each scenario.

use super::Scenario;
use crate::request::RequestMix;
use crate::time::MILLI;

/// The behaviour of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientProfile {
    /// The number of clients.
    pub clients: usize,
    /// Requests of one client, at most.
    pub requests_max: u64,
    /// Pipelined requests, at most.
    pub depth_max: u64,
    /// Bytes of one read, at most.
    pub read_max: usize,
    /// A client rests after a step, once in so many times.
    pub rest_in: u64,
    /// Nanoseconds of the longest rest.
    pub rest_max: u64,
    /// A connection has a client fault, once in so many times.
    pub client_fault_in: u64,
    /// A client speaks HTTP/2, once in so many times.
    pub http2_in: u64,
    /// The number of HTTP/3 clients among four.
    pub http3_of_4: u64,
    /// The kinds of requests.
    pub mix: RequestMix,
    /// A worker or client skips its turn, once in so many times.
    pub skip_in: u64,
    /// SETTINGS and PING frames of one connection, at most: few slow responses must not exhaust the
    /// server's limit of such frames.
    pub control_frames_max: u32,
    /// Nanoseconds between changes of files; 0 for none.
    pub change_every: u64,
}

impl ClientProfile {
    /// Polite clients.
    const DEFAULT: Self = Self {
        clients: 5,
        requests_max: 6,
        depth_max: 2,
        read_max: 128 * 1024,
        rest_in: 6,
        rest_max: 300 * MILLI,
        client_fault_in: 0,
        http2_in: 3,
        http3_of_4: 0,
        mix: RequestMix::Mixed,
        change_every: 0,
        control_frames_max: 20,
        skip_in: 3,
    };

    /// Many clients for few processes.
    const POOLS: Self = Self {
        mix: RequestMix::Pools,
        clients: 8,
        requests_max: 8,
        depth_max: 3,
        client_fault_in: 3,
        http2_in: 2,
        skip_in: 8,
        ..Self::DEFAULT
    };
}

impl Scenario {
    /// The behaviour of its clients.
    #[must_use]
    pub const fn profile(self) -> ClientProfile {
        let calm = ClientProfile::DEFAULT;
        let cache = ClientProfile {
            mix: RequestMix::Pages { purges: true, with_esi: false },
            clients: 10,
            requests_max: 10,
            skip_in: 15,
            ..calm
        };
        let quic =
            ClientProfile { http3_of_4: 3, requests_max: 8, depth_max: 4, skip_in: 12, ..calm };
        match self {
            Self::Quic => quic,
            Self::QuicRough => ClientProfile { client_fault_in: 3, read_max: 32 * 1024, ..quic },
            Self::QuicReload => ClientProfile { client_fault_in: 10, ..quic },
            Self::QuicDrain | Self::QuicDeath => quic,
            Self::QuicTangle => ClientProfile {
                mix: RequestMix::Apps,
                client_fault_in: 4,
                read_max: 32 * 1024,
                ..quic
            },
            Self::Calm | Self::Audiences => calm,
            Self::Apps | Self::Origin => ClientProfile { mix: RequestMix::Apps, ..calm },
            Self::Assembly => ClientProfile { mix: RequestMix::Assemblies, ..calm },
            Self::AssemblyTangle => ClientProfile {
                mix: RequestMix::Assemblies,
                client_fault_in: 4,
                read_max: 32 * 1024,
                ..calm
            },
            Self::Cache => cache,
            Self::CacheTight => ClientProfile { client_fault_in: 6, ..cache },
            Self::CacheEsi => ClientProfile {
                mix: RequestMix::Pages { purges: true, with_esi: true },
                client_fault_in: 8,
                ..cache
            },
            Self::CacheDisk => ClientProfile { requests_max: 20, client_fault_in: 20, ..cache },
            Self::CacheChange => ClientProfile { client_fault_in: 8, requests_max: 16, ..cache },
            Self::CacheOrigin => ClientProfile { client_fault_in: 4, read_max: 32 * 1024, ..cache },
            Self::Grpc | Self::ProxyHttp2 => ClientProfile {
                mix: RequestMix::Apps,
                client_fault_in: 4,
                read_max: 32 * 1024,
                http2_in: 2,
                ..calm
            },
            Self::Tangle | Self::Proxy | Self::Uwsgi | Self::Scgi => ClientProfile {
                mix: RequestMix::Apps,
                client_fault_in: 4,
                read_max: 32 * 1024,
                ..calm
            },
            Self::Dav => {
                ClientProfile { mix: RequestMix::Dav, client_fault_in: 8, requests_max: 16, ..calm }
            }
            Self::SyscallFaults => {
                ClientProfile { mix: RequestMix::SyscallFaults, requests_max: 12, ..calm }
            }
            Self::Upkeep => ClientProfile {
                mix: RequestMix::Upkeep,
                client_fault_in: 8,
                requests_max: 12,
                ..calm
            },
            Self::Secure => {
                ClientProfile { mix: RequestMix::Secure, client_fault_in: 4, depth_max: 3, ..calm }
            }
            Self::Pools => ClientProfile::POOLS,
            Self::Dns => ClientProfile { mix: RequestMix::Dns, client_fault_in: 6, ..calm },
            Self::Reload | Self::Drain => ClientProfile { depth_max: 4, ..calm },
            Self::Clients => ClientProfile { client_fault_in: 2, depth_max: 4, ..calm },
            Self::Disk => ClientProfile { change_every: 150 * MILLI, rest_in: 3, ..calm },
            Self::Slow => ClientProfile {
                clients: 4,
                requests_max: 8,
                depth_max: 8,
                read_max: 16 * 1024,
                mix: RequestMix::Large,
                change_every: 900 * MILLI,
                ..calm
            },
            Self::Mix => ClientProfile {
                client_fault_in: 4,
                depth_max: 6,
                http2_in: 2,
                change_every: 300 * MILLI,
                ..calm
            },
        }
    }
}
