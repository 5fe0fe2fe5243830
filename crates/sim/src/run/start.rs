//! The start of a run: settings, files, configuration, server and clients.

use std::cell::RefCell;
use std::rc::Rc;

use bolide_cache::StoreLimits;

use super::server::{ServerSetup, SimServer};
use super::{World, administration, machine_faults, quic};
use crate::chance::Chance;
use crate::client::SimClient;
use crate::dns;
use crate::fault_rates::FaultRates;
use crate::kernel::Kernel;
use crate::kernel::disk::STORES;
use crate::oracle::ConfigEpoch;
use crate::php_pools;
use crate::request::RequestMix;
use crate::run_trace::TraceMode;
use crate::scenario::Scenario;
use crate::secure_ports::SECURE_PORTS;
use crate::sim_io::DescriptorSource;
use crate::site::{self, Layout};
use crate::site_files::{self, DIRECTORIES, FILES};
use crate::time::MILLI;
use crate::upstream::SimUpstream;
use crate::webdav;

/// Random limits of the store.
fn store_limits(scenario: Scenario, chance: &mut Chance) -> StoreLimits {
    let all = StoreLimits::default();
    match scenario {
        Scenario::CacheTight => StoreLimits {
            bytes: 2_000 + chance.size(200_000) as u64,
            object_bytes: 20_000 + chance.size(100_000) as u64,
            front_entries: 2,
        },
        Scenario::CacheDisk => StoreLimits {
            bytes: 2_000 + chance.size(100_000) as u64,
            object_bytes: 100_000,
            front_entries: 2,
        },
        Scenario::CacheOrigin | Scenario::CacheChange | Scenario::CacheEsi => {
            StoreLimits { front_entries: 4, ..all }
        }
        _ => all,
    }
}

/// The rates of faults of a run.
fn fault_rates(scenario: Scenario, seed: u64) -> FaultRates {
    let rates = scenario.fault_rates();
    match scenario {
        // A fault of the network would excuse too much.
        Scenario::Pools if seed.is_multiple_of(2) => {
            FaultRates { cut_in: 0, refuse_in: 0, ..rates }
        }
        _ => rates,
    }
}

/// Creates the files of the site.
fn prepare_disk(kernel: &mut Kernel, scenario: Scenario, chance: &mut Chance) {
    for directory in DIRECTORIES.iter().chain(&STORES) {
        kernel.disk.make_directory(directory);
    }
    for path in FILES {
        kernel.disk.replace(path, site_files::content(path, chance), 0);
    }
    kernel.disk.remove("/www/missing", 0);
    if scenario.has_dav() {
        let seed = kernel.seed;
        webdav::prepare(kernel, seed);
    }
}

/// The configuration at the start of a run.
fn first_epoch(layout: &Layout) -> ConfigEpoch {
    let (mut ports, quic_ports) = (layout.ports.clone(), layout.quic_ports.clone());
    if layout.has_secure_ports {
        ports.extend(SECURE_PORTS.map(|secure_port| secure_port.port));
    }
    ConfigEpoch { number: 1, ports, quic_ports, sent_at: 0, superseded_at: u64::MAX }
}

impl World {
    pub(super) fn new(
        scenario: Scenario,
        seed: u64,
        trace_mode: TraceMode,
    ) -> Result<Self, String> {
        let mut chance = Chance::new(seed, 2);
        let mut profile = scenario.profile();
        let count = if scenario.is_cache() { 2 + chance.index(3) } else { 1 + chance.index(2) };
        if scenario == Scenario::Cache && chance.one_in(3) {
            // Without purges, no page may be fetched twice at once.
            profile.mix = RequestMix::Pages { purges: false, with_esi: false };
        }
        let store = store_limits(scenario, &mut chance);
        let mut kernel = Kernel::new(seed, count, fault_rates(scenario, seed), trace_mode);
        let has_disk_cache = scenario.has_disk_cache();
        if has_disk_cache {
            kernel.fault_rates.store_in = [0, 1000, 8000][chance.index(3)];
            profile.rest_max = [100, 300, 1000][chance.index(3)] * MILLI;
        }
        kernel.age_max = if has_disk_cache { 300 } else { 3 };
        prepare_disk(&mut kernel, scenario, &mut chance);
        let words = |error: std::io::Error| error.to_string();
        let descriptors = DescriptorSource::new().map_err(words)?;
        let extra =
            ["sendfile on;", "keepalive_requests 3;", "open_file_cache off;", "sendfile off;"];
        let extra = extra[chance.index(extra.len())].to_owned();
        let page_path = if has_disk_cache { site::page_path(&mut chance) } else { "" };
        let is_tight = scenario == Scenario::Clients && chance.one_in(3);
        let connections = if is_tight { 3 } else { 512 };
        kernel.is_tight = is_tight;
        let quic = quic::Offer::any(scenario, seed, &mut kernel);
        if scenario.has_upkeep() {
            administration::prepare(&mut kernel, seed);
        }
        let layout = Layout {
            number: 1,
            ports: vec![8080, 8081],
            workers: count,
            connections,
            // A level that is too slow for a turn, so that a job compresses.
            gzip_level: if scenario == Scenario::CacheTight { 9 } else { 1 },
            extra,
            page_path,
            keeps_long: has_disk_cache,
            app_protocol: scenario.app_protocol(),
            quic_ports: quic.ports,
            quic: quic.words,
            early_data: quic.early_data,
            has_secure_ports: scenario.has_secure_ports(),
            has_upkeep: scenario.has_upkeep(),
            has_dav: scenario.has_dav(),
            resolver: if scenario.has_resolver() { dns::directives(seed) } else { String::new() },
            pools: php_pools::directives(scenario, seed),
            own: None,
        };
        let kernel = Rc::new(RefCell::new(kernel));
        let setup = ServerSetup {
            descriptors: &descriptors,
            limits: store,
            layout: &layout,
            has_disk_cache,
            seed,
            instance: 0,
        };
        let server = SimServer::start(&setup, &kernel)?;
        if scenario == Scenario::SyscallFaults {
            let mut kernel = kernel.borrow_mut();
            kernel.syscall_faults.once_in = [10, 40, 200, 1000][kernel.chance.index(4)];
        }
        let clients =
            (0..profile.clients).map(|number| SimClient::new(number, seed, profile)).collect();
        let first = first_epoch(&layout);
        let next_event = 5 * MILLI + chance.below(400 * MILLI);
        Ok(Self {
            scenario,
            profile,
            kernel,
            chance,
            descriptors,
            seed,
            server,
            deaths: 0,
            deaths_left: machine_faults::DEATHS_MAX,
            phase: 0,
            limits: store,
            layout,
            epochs: vec![first],
            clients,
            upstream: SimUpstream::new(seed, scenario),
            violations: Vec::new(),
            recalls: 0,
            next_change: 10 * MILLI,
            next_event,
            pending_holdings: Vec::new(),
        })
    }
}
