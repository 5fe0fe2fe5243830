//! Scenarios: which parts of the server a run is about, with which clients and faults.

mod clients;
mod faults;

use crate::chance::Chance;
use crate::net_conditions::NetConditions;
pub use clients::ClientProfile;

/// The protocol of the applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppProtocol {
    /// FastCGI
    FastCgi,
    /// LSAPI
    Lsapi,
    /// HTTP/1.1
    Http,
    /// uwsgi
    Uwsgi,
    /// SCGI
    Scgi,
    /// gRPC
    Grpc,
    /// HTTP/2
    Http2,
}

/// A family of simulated runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// No faults.
    Calm,
    /// Clients that abort, stall and send garbage; a network that breaks connections.
    Clients,
    /// Files that change, disappear and cannot be read.
    Disk,
    /// Reloads.
    Reload,
    /// The server gets the order to quit.
    Drain,
    /// Deep pipelines, slow readers, small buffers, large files.
    Slow,
    /// HTTP/2 beside HTTP/1.1, with all faults of clients, network and files.
    Mix,
    /// Applications without faults.
    Apps,
    /// Applications that close, hang and respond malformed.
    Origin,
    /// `Origin`, with clients that leave, a network that breaks connections, and a full disk.
    Tangle,
    /// `Tangle` with applications that speak HTTP.
    Proxy,
    /// `Tangle` with applications that speak uwsgi.
    Uwsgi,
    /// `Tangle` with applications that speak SCGI.
    Scgi,
    /// `Tangle` with applications that speak gRPC.
    Grpc,
    /// `Proxy` with applications that speak HTTP/2.
    ProxyHttp2,
    /// ESI pages.
    Assembly,
    /// ESI pages with all faults.
    AssemblyTangle,
    /// Cached pages and purges, with many requests at once.
    Cache,
    /// `Cache` with faults of applications, clients and network.
    CacheOrigin,
    /// `Cache` with a store that is too small.
    CacheTight,
    /// `Cache` with reloads and clock jumps.
    CacheChange,
    /// Cached ESI pages with all faults.
    CacheEsi,
    /// Pages in a disk cache with disk faults, while the server crashes and restarts.
    CacheDisk,
    /// HTTP/3 over a network without loss, with random settings.
    Quic,
    /// HTTP/3 over a network with loss, with clients that break rules.
    QuicRough,
    /// `Quic` with reloads.
    QuicReload,
    /// The server with QUIC gets the order to quit.
    QuicDrain,
    /// The server with QUIC crashes and restarts between turns, with reloads.
    QuicDeath,
    /// `Tangle` over HTTP/3.
    QuicTangle,
    /// Ports with TLS and the PROXY protocol, clients with certificates, and upstreams by TLS.
    Secure,
    /// Logs, request bodies in files, passwords, and reloads with a short
    /// `worker_shutdown_timeout`.
    Upkeep,
    /// Concurrent changes of files by WebDAV, stored responses, mirrored and rate-limited ones.
    Dav,
    /// Every system call fails now and then.
    SyscallFaults,
    /// Upstreams by name, with unreliable name servers.
    Dns,
    /// PHP pools and applications behind FastCGI, with all faults.
    Pools,
    /// The audience oracle; see [`crate::audiences`].
    Audiences,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 36] = [
        Self::Calm,
        Self::Clients,
        Self::Disk,
        Self::Reload,
        Self::Drain,
        Self::Slow,
        Self::Mix,
        Self::Apps,
        Self::Origin,
        Self::Tangle,
        Self::Assembly,
        Self::AssemblyTangle,
        Self::Cache,
        Self::CacheOrigin,
        Self::CacheTight,
        Self::CacheChange,
        Self::CacheEsi,
        Self::CacheDisk,
        Self::Proxy,
        Self::Uwsgi,
        Self::Scgi,
        Self::Grpc,
        Self::ProxyHttp2,
        Self::Quic,
        Self::QuicRough,
        Self::QuicReload,
        Self::QuicDrain,
        Self::QuicDeath,
        Self::QuicTangle,
        Self::Secure,
        Self::Upkeep,
        Self::Dav,
        Self::SyscallFaults,
        Self::Dns,
        Self::Pools,
        Self::Audiences,
    ];

    /// Its name on the command line and in `seeds.txt`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Clients => "clients",
            Self::Disk => "disk",
            Self::Reload => "reload",
            Self::Drain => "drain",
            Self::Slow => "slow",
            Self::Mix => "mix",
            Self::Apps => "apps",
            Self::Origin => "origin",
            Self::Tangle => "tangle",
            Self::Proxy => "proxy",
            Self::Uwsgi => "uwsgi",
            Self::Scgi => "scgi",
            Self::Grpc => "grpc",
            Self::ProxyHttp2 => "proxy-http2",
            Self::Assembly => "assembly",
            Self::AssemblyTangle => "assembly-tangle",
            Self::Cache => "cache",
            Self::CacheOrigin => "cache-origin",
            Self::CacheTight => "cache-tight",
            Self::CacheChange => "cache-change",
            Self::CacheEsi => "cache-esi",
            Self::CacheDisk => "cache-disk",
            Self::Quic => "quic",
            Self::QuicRough => "quic-rough",
            Self::QuicReload => "quic-reload",
            Self::QuicDrain => "quic-drain",
            Self::QuicDeath => "quic-death",
            Self::QuicTangle => "quic-tangle",
            Self::Secure => "secure",
            Self::Upkeep => "upkeep",
            Self::Dav => "dav",
            Self::SyscallFaults => "syscall-faults",
            Self::Dns => "dns",
            Self::Pools => "pools",
            Self::Audiences => "audiences",
        }
    }

    /// The scenario of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name)
    }

    /// Whether it is about cached pages.
    #[must_use]
    pub const fn is_cache(self) -> bool {
        matches!(
            self,
            Self::Cache
                | Self::CacheOrigin
                | Self::CacheTight
                | Self::CacheChange
                | Self::CacheEsi
                | Self::CacheDisk
        )
    }

    /// Whether it has a disk cache.
    #[must_use]
    pub const fn has_disk_cache(self) -> bool {
        matches!(self, Self::CacheDisk)
    }

    /// Whether it has QUIC.
    #[must_use]
    pub const fn has_quic(self) -> bool {
        matches!(
            self,
            Self::Quic
                | Self::QuicDeath
                | Self::QuicRough
                | Self::QuicReload
                | Self::QuicDrain
                | Self::QuicTangle
        )
    }

    /// Whether it has logs, request bodies in files and passwords.
    #[must_use]
    pub const fn has_upkeep(self) -> bool {
        matches!(self, Self::Upkeep | Self::SyscallFaults)
    }

    /// Whether files are changed by WebDAV.
    #[must_use]
    pub const fn has_dav(self) -> bool {
        matches!(self, Self::Dav)
    }

    /// Whether it has ports with TLS or the PROXY protocol.
    #[must_use]
    pub const fn has_secure_ports(self) -> bool {
        matches!(self, Self::Secure)
    }

    /// Whether it has upstreams by name.
    #[must_use]
    pub const fn has_resolver(self) -> bool {
        matches!(self, Self::Dns)
    }

    /// Whether it has PHP pools.
    #[must_use]
    pub const fn has_php_pools(self) -> bool {
        matches!(self, Self::Pools)
    }

    /// Whether the server gets the order to quit.
    #[must_use]
    pub const fn drains(self) -> bool {
        matches!(self, Self::Drain | Self::QuicDrain)
    }

    /// The conditions of its UDP network.
    #[must_use]
    pub fn net_conditions(self, chance: &mut Chance) -> NetConditions {
        match self {
            Self::QuicRough => NetConditions::lossy(chance),
            Self::QuicTangle if chance.one_in(2) => NetConditions::lossy(chance),
            _ if self.has_quic() => NetConditions::lossless(chance),
            _ => NetConditions::ideal(),
        }
    }

    /// The protocol of its applications.
    #[must_use]
    pub const fn app_protocol(self) -> AppProtocol {
        match self {
            Self::Proxy | Self::Secure | Self::Dns => AppProtocol::Http,
            Self::Uwsgi => AppProtocol::Uwsgi,
            Self::Scgi => AppProtocol::Scgi,
            Self::Grpc => AppProtocol::Grpc,
            Self::ProxyHttp2 => AppProtocol::Http2,
            _ => AppProtocol::FastCgi,
        }
    }

    /// Whether it has reloads.
    #[must_use]
    pub const fn reloads(self) -> bool {
        matches!(
            self,
            Self::Reload
                | Self::QuicReload
                | Self::Mix
                | Self::QuicDeath
                | Self::Upkeep
                | Self::Dav
                | Self::SyscallFaults
                | Self::Dns
                | Self::CacheChange
                | Self::CacheDisk
        )
    }
}
