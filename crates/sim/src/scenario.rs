//! The world of a seed.

use crate::ask::Weights;
use crate::chance::Chance;
use crate::weather::Weather;

/// What applications speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// FastCGI
    FastCgi,
    /// HTTP/1.1
    Http,
}

/// A family of worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Polite clients, a quiet disk.
    Calm,
    /// Clients that abort, stall and send garbage; a network that breaks.
    Clients,
    /// Files that change, vanish and cannot be read.
    Disk,
    /// Configurations that change in the middle.
    Reload,
    /// The server is told to quit in the middle.
    Drain,
    /// Deep pipelines, slow readers, small buffers, large files.
    Slow,
    /// HTTP/2 beside HTTP/1.1, with everything going wrong at once.
    Mix,
    /// Applications that behave.
    Apps,
    /// Applications that die, hang and talk nonsense.
    Origin,
    /// The same with clients that leave, a network that breaks and a disk that is full.
    Tangle,
    /// The same with applications that speak HTTP.
    Proxy,
    /// Pages that are put together from fragments.
    Assembly,
    /// The same with everything that may happen to their parts.
    AssemblyTangle,
    /// Pages that are kept and dropped, asked for by many at once.
    Cache,
    /// The same with applications that die, hang, lie and talk nonsense, clients that leave and a
    /// network that breaks.
    CacheOrigin,
    /// The same in a store that is too small.
    CacheTight,
    /// The same while configurations change and the clock jumps.
    CacheChange,
    /// Pages that are put together from fragments, with everything going wrong.
    CacheEsi,
    /// Pages that lie on a bad disk most of the time, while the server dies and starts again.
    CacheDisk,
    /// HTTP/3 over a network that delivers, to many configurations.
    Quic,
    /// The same over a network that does not, with clients that break rules.
    QuicRough,
    /// The same while configurations change.
    QuicReload,
    /// The server is told to quit in the middle.
    QuicDrain,
    /// The server dies and starts again, between turns, while configurations change.
    QuicDeath,
    /// Applications behind it that die, hang and talk nonsense.
    QuicTangle,
    /// Ports with TLS and the PROXY protocol, clients with certificates, and applications that are
    /// spoken to by TLS.
    Secure,
    /// Logs, bodies under names, passwords and reloads that leave requests little time.
    Upkeep,
    /// Files that many change by WebDAV, responses that become files, mirrored and slowed ones.
    Dav,
    /// Every call of the door fails now and then.
    Dearth,
    /// Names of origins that are looked up, by servers that may do anything.
    Names,
    /// Whether the cache gives a client an answer for another audience; see [`crate::audiences`].
    Audiences,
}

/// How often things go wrong: once in so many times, 0 for never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A report of readiness comes later.
    pub late_in: u64,
    /// Accepting finds no descriptor left.
    pub accept_in: u64,
    /// A new connection cannot be watched.
    pub watch_in: u64,
    /// Opening fails.
    pub open_in: u64,
    /// A file is rewritten while it is opened.
    pub race_in: u64,
    /// Reading fails.
    pub read_in: u64,
    /// Reading gives less than there is.
    pub short_read_in: u64,
    /// The network cuts some connection, per round.
    pub cut_in: u64,
    /// A call to an origin is refused.
    pub refuse_in: u64,
    /// An application misbehaves.
    pub deed_in: u64,
    /// A temporary file cannot be made or written.
    pub spool_in: u64,
    /// A log cannot be opened or written to.
    pub log_in: u64,
    /// A call that is about files of the cache fails.
    pub store_in: u64,
    /// Bytes of the largest send buffer.
    pub outbound_max: usize,
}

/// How clients behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// How many there are.
    pub clients: usize,
    /// Requests of one client, at most.
    pub asks_max: u64,
    /// Requests ahead of their answers, at most.
    pub depth_max: u64,
    /// Bytes of one read, at most.
    pub read_max: usize,
    /// A client rests after an action, once in so many times.
    pub rest_in: u64,
    /// Nanoseconds of the longest rest.
    pub rest_max: u64,
    /// A connection is sabotaged by its client, once in so many times.
    pub sabotage_in: u64,
    /// A client speaks HTTP/2, once in so many times.
    pub http2_in: u64,
    /// Of four clients so many speak HTTP/3.
    pub http3_of_4: u64,
    /// What is asked.
    pub weights: Weights,
    /// Who could act passes, once in so many times.
    pub passes_in: u64,
    /// SETTINGS and PING frames of one connection, at most: answers that take long pay for few.
    pub chatter_max: u32,
    /// Nanoseconds between changes of files; 0 for no changes.
    pub change_every: u64,
}

/// A millisecond in nanoseconds.
pub const MILLI: u64 = 1_000_000;

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 31] = [
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
        Self::Quic,
        Self::QuicRough,
        Self::QuicReload,
        Self::QuicDrain,
        Self::QuicDeath,
        Self::QuicTangle,
        Self::Secure,
        Self::Upkeep,
        Self::Dav,
        Self::Dearth,
        Self::Names,
        Self::Audiences,
    ];

    /// Its name on the command line.
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
            Self::Dearth => "dearth",
            Self::Names => "names",
            Self::Audiences => "audiences",
        }
    }

    /// The scenario of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name)
    }

    /// Whether it is about kept answers.
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

    /// Whether answers are kept on a disk.
    #[must_use]
    pub const fn has_trees(self) -> bool {
        matches!(self, Self::CacheDisk)
    }

    /// Whether QUIC is spoken.
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

    /// Whether logs, bodies under names and passwords are in it.
    #[must_use]
    pub const fn has_upkeep(self) -> bool {
        matches!(self, Self::Upkeep | Self::Dearth)
    }

    /// Whether files are changed by WebDAV.
    #[must_use]
    pub const fn has_dav(self) -> bool {
        matches!(self, Self::Dav)
    }

    /// Whether there are ports where something comes before HTTP.
    #[must_use]
    pub const fn has_gates(self) -> bool {
        matches!(self, Self::Secure)
    }

    /// Whether names are looked up.
    #[must_use]
    pub const fn has_names(self) -> bool {
        matches!(self, Self::Names)
    }

    /// Whether the server is told to quit.
    #[must_use]
    pub const fn drains(self) -> bool {
        matches!(self, Self::Drain | Self::QuicDrain)
    }

    /// How its network treats datagrams.
    #[must_use]
    pub fn weather(self, chance: &mut Chance) -> Weather {
        match self {
            Self::QuicRough => Weather::rough(chance),
            Self::QuicTangle if chance.one_in(2) => Weather::rough(chance),
            _ if self.has_quic() => Weather::changeable(chance),
            _ => Weather::calm(),
        }
    }

    /// What its applications speak.
    #[must_use]
    pub const fn speech(self) -> Speech {
        if matches!(self, Self::Proxy | Self::Secure | Self::Names) {
            Speech::Http
        } else {
            Speech::FastCgi
        }
    }

    /// Whether configurations change in it.
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
                | Self::Dearth
                | Self::Names
                | Self::CacheChange
                | Self::CacheDisk
        )
    }

    /// What goes wrong in it.
    #[must_use]
    pub fn faults(self) -> Faults {
        let calm = Faults { late_in: 4, outbound_max: 256 * 1024, ..Faults::default() };
        let disk = Faults { open_in: 8, race_in: 10, read_in: 60, short_read_in: 3, ..calm };
        match self {
            Self::Calm | Self::Reload | Self::Drain | Self::Audiences => calm,
            Self::Quic | Self::QuicReload | Self::QuicDrain | Self::QuicDeath => calm,
            Self::QuicRough => Faults { short_read_in: 4, ..calm },
            Self::Apps | Self::Assembly => Faults { short_read_in: 3, ..calm },
            Self::Cache | Self::CacheTight => Faults { short_read_in: 4, ..calm },
            Self::CacheEsi => Faults { deed_in: 10, cut_in: 1500, short_read_in: 4, ..calm },
            Self::CacheChange => Faults { deed_in: 12, short_read_in: 4, ..calm },
            Self::CacheDisk => Faults { store_in: 150, short_read_in: 4, ..calm },
            Self::CacheOrigin => Faults {
                deed_in: 4,
                refuse_in: 15,
                spool_in: 60,
                cut_in: 250,
                watch_in: 80,
                short_read_in: 4,
                outbound_max: 24 * 1024,
                ..calm
            },
            Self::Origin => Faults { deed_in: 3, refuse_in: 6, ..calm },
            Self::AssemblyTangle => Faults {
                deed_in: 12,
                refuse_in: 25,
                spool_in: 40,
                cut_in: 200,
                watch_in: 60,
                short_read_in: 3,
                outbound_max: 16 * 1024,
                ..calm
            },
            Self::Tangle | Self::Proxy | Self::QuicTangle => Faults {
                deed_in: 4,
                refuse_in: 10,
                spool_in: 20,
                cut_in: 150,
                watch_in: 60,
                short_read_in: 3,
                outbound_max: 16 * 1024,
                ..calm
            },
            Self::Dearth => Faults { short_read_in: 3, outbound_max: 16 * 1024, ..calm },
            Self::Dav => Faults { short_read_in: 3, outbound_max: 64 * 1024, ..calm },
            Self::Upkeep => Faults { deed_in: 5, spool_in: 40, short_read_in: 3, ..calm },
            Self::Names => Faults { deed_in: 12, refuse_in: 25, short_read_in: 3, ..calm },
            Self::Secure => Faults {
                deed_in: 8,
                refuse_in: 20,
                spool_in: 60,
                cut_in: 400,
                watch_in: 100,
                short_read_in: 3,
                outbound_max: 32 * 1024,
                ..calm
            },
            Self::Clients => Faults { accept_in: 8, watch_in: 40, cut_in: 60, ..calm },
            Self::Disk => disk,
            Self::Slow => Faults { late_in: 2, outbound_max: 8 * 1024, ..calm },
            Self::Mix => Faults { accept_in: 8, watch_in: 60, cut_in: 200, ..disk },
        }
    }

    /// How its clients behave.
    #[must_use]
    pub const fn habits(self) -> Habits {
        let calm = Habits {
            clients: 5,
            asks_max: 6,
            depth_max: 2,
            read_max: 128 * 1024,
            rest_in: 6,
            rest_max: 300 * MILLI,
            sabotage_in: 0,
            http2_in: 3,
            http3_of_4: 0,
            weights: Weights::Mixed,
            change_every: 0,
            chatter_max: 20,
            passes_in: 3,
        };
        let cache = Habits {
            weights: Weights::Pages { purges: true, wholes: false },
            clients: 10,
            asks_max: 10,
            passes_in: 15,
            ..calm
        };
        let quic = Habits { http3_of_4: 3, asks_max: 8, depth_max: 4, passes_in: 12, ..calm };
        match self {
            Self::Quic => quic,
            Self::QuicRough => Habits { sabotage_in: 3, read_max: 32 * 1024, ..quic },
            Self::QuicReload => Habits { sabotage_in: 10, ..quic },
            Self::QuicDrain | Self::QuicDeath => quic,
            Self::QuicTangle => {
                Habits { weights: Weights::Apps, sabotage_in: 4, read_max: 32 * 1024, ..quic }
            }
            Self::Calm | Self::Audiences => calm,
            Self::Apps | Self::Origin => Habits { weights: Weights::Apps, ..calm },
            Self::Assembly => Habits { weights: Weights::Assemblies, ..calm },
            Self::AssemblyTangle => {
                Habits { weights: Weights::Assemblies, sabotage_in: 4, read_max: 32 * 1024, ..calm }
            }
            Self::Cache => cache,
            Self::CacheTight => Habits { sabotage_in: 6, ..cache },
            Self::CacheEsi => Habits {
                weights: Weights::Pages { purges: true, wholes: true },
                sabotage_in: 8,
                ..cache
            },
            Self::CacheDisk => Habits { asks_max: 20, sabotage_in: 20, ..cache },
            Self::CacheChange => Habits { sabotage_in: 8, asks_max: 16, ..cache },
            Self::CacheOrigin => Habits { sabotage_in: 4, read_max: 32 * 1024, ..cache },
            Self::Tangle | Self::Proxy => {
                Habits { weights: Weights::Apps, sabotage_in: 4, read_max: 32 * 1024, ..calm }
            }
            Self::Dav => Habits { weights: Weights::Dav, sabotage_in: 8, asks_max: 16, ..calm },
            Self::Dearth => Habits { weights: Weights::Dearth, asks_max: 12, ..calm },
            Self::Upkeep => {
                Habits { weights: Weights::Upkeep, sabotage_in: 8, asks_max: 12, ..calm }
            }
            Self::Secure => {
                Habits { weights: Weights::Secure, sabotage_in: 4, depth_max: 3, ..calm }
            }
            Self::Names => Habits { weights: Weights::Names, sabotage_in: 6, ..calm },
            Self::Reload | Self::Drain => Habits { depth_max: 4, ..calm },
            Self::Clients => Habits { sabotage_in: 2, depth_max: 4, ..calm },
            Self::Disk => Habits { change_every: 150 * MILLI, rest_in: 3, ..calm },
            Self::Slow => Habits {
                clients: 4,
                asks_max: 8,
                depth_max: 8,
                read_max: 16 * 1024,
                weights: Weights::Large,
                change_every: 900 * MILLI,
                ..calm
            },
            Self::Mix => Habits {
                sabotage_in: 4,
                depth_max: 6,
                http2_in: 2,
                change_every: 300 * MILLI,
                ..calm
            },
        }
    }
}
