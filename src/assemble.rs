//! From a parsed configuration to a generation that workers can run.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bolide_conf::model::{AccessTarget, Config, LogTargetConf, Workers};
use bolide_engine::Site;
use bolide_engine::metrics::SharedFigures;
use bolide_upstream::UpstreamGroups;
use bolide_worker::{Generation, GenerationSockets, Handout, ListenSettings, OpenLogs};

use crate::acme::{self, IssuedDraft};
use crate::adopted_sockets;
use crate::cluster::{ClusterDraft, ClusterThread, ExchangeDraft, ExchangeParts, ExchangeThread};
use crate::geo_databases::{GeoDatabases, GeoDraft};
use crate::otel::{OtelDraft, OtelExport};
use crate::sockets::OpenSocket;
use crate::stapling::StaplingDraft;
use crate::tls_setup::{self, CertificateEnds, ReadCertificates, TlsState};
use crate::upgrade;

/// The state that outlives generations.
#[derive(Debug)]
pub(crate) struct SharedParts {
    pub(crate) tls: TlsState,
    pub(crate) geo: GeoDatabases,
    pub(crate) otel: OtelExport,
    pub(crate) cluster: ClusterThread,
    pub(crate) exchange: ExchangeThread,
    /// Generations may have other tokens.
    pub(crate) quic_keys: Arc<bolide_quic::SharedKeys>,
    /// The store, from the first configuration on that caches; its limits stay in force.
    pub(crate) store: OnceLock<Arc<bolide_cache::Store>>,
    /// The zones of limits.
    pub(crate) zones: bolide_engine::Zones,
    /// The metrics of the process.
    pub(crate) figures: SharedFigures,
}

/// The state that outlives generations, made for the first.
///
/// # Errors
///
/// No keys can be made or taken over.
pub(crate) fn shared(open: &mut OpenSocket, config: &Config) -> Result<SharedParts, Vec<String>> {
    let tls = TlsState::new().map_err(|text| vec![text])?;
    let workers = worker_count(config);
    let mut figures = SharedFigures::new(token());
    if adopted_sockets::is_adopting() {
        figures = figures.counting();
    }
    let quic_keys = Arc::new(upgrade::quic_keys(open, config, workers).map_err(|text| vec![text])?);
    let zones = bolide_engine::Zones::default();
    let parts = ExchangeParts {
        rings: tls.ticket_rings().clone(),
        issued: tls.issued.clone(),
        zones: zones.clone(),
    };
    let exchange = ExchangeThread::new(parts);
    Ok(SharedParts {
        tls,
        exchange,
        geo: GeoDatabases::default(),
        otel: OtelExport::default(),
        cluster: ClusterThread::default(),
        quic_keys,
        store: OnceLock::new(),
        zones,
        figures,
    })
}

/// The secret of this process that authenticates its console page.
fn token() -> String {
    format!("{:016x}{:016x}", bolide_tls::random_seed(), bolide_tls::random_seed())
}

/// The number of workers that a configuration requests.
pub(crate) fn worker_count(config: &Config) -> u16 {
    let count = match config.main.worker_processes {
        Workers::Auto => bolide_io::process::cores(),
        Workers::Count(count) => count as usize,
    };
    // The number of a worker travels in one byte of QUIC connection ids, and in an upgrade as many
    // workers of a successor have others.
    u16::try_from(count.clamp(1, 127)).unwrap_or(1)
}

/// What a draft has for the threads that outlive generations. They learn of it when it comes into
/// force: a refused draft leaves no trace in [`SharedParts`].
#[derive(Debug, Default)]
pub(crate) struct PartDrafts {
    pub(crate) stapling: StaplingDraft,
    pub(crate) geo: GeoDraft,
    pub(crate) otel: OtelDraft,
    pub(crate) cluster: ClusterDraft,
    pub(crate) exchange: ExchangeDraft,
}

/// A generation without its sockets, which are opened only when everything else is right.
#[derive(Debug)]
pub(crate) struct GenerationDraft {
    pub(crate) site: Arc<Site>,
    pub(crate) listens: Vec<ListenSettings>,
    pub(crate) origin_tls: Vec<bolide_tls::OriginTls>,
    pub(crate) warnings: Vec<String>,
    pub(crate) certificate_ends: CertificateEnds,
    /// The certificates that were read, if reloads are watched: files may have changed when it is
    /// put back in force.
    pub(crate) certificates: ReadCertificates,
    /// The secret for QUIC tokens, unless it is the process's own.
    pub(crate) quic_tokens: Option<[u8; 32]>,
    pub(crate) issued: IssuedDraft,
    pub(crate) parts: PartDrafts,
}

/// Compiles a configuration and reads its certificates and databases; certificates in `known` are
/// not read again.
///
/// # Errors
///
/// One text per mistake.
pub(crate) fn draft(
    config: &Arc<Config>,
    shared: &SharedParts,
    known: ReadCertificates,
) -> Result<GenerationDraft, Vec<String>> {
    let site = Site::compile(config.clone())
        .map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?
        .on_host(&bolide_io::process::hostname().to_ascii_lowercase());
    let site = with_store(site, shared).with_zones(&shared.zones).map_err(|text| vec![text])?;
    let geo = shared.geo.load(config)?;
    let site = site.with_geo_databases(geo.databases()).with_figures(&shared.figures);
    let site =
        site.with_challenges(shared.tls.issued.http_challenges(), shared.tls.issued.certified());
    let otel = shared.otel.load(config, worker_count(config)).map_err(|text| vec![text])?;
    let site = Arc::new(site.with_spans(otel.queue()));
    let cluster = shared.cluster.load(config).map_err(|text| vec![text])?;
    let exchange = shared.exchange.load(config).map_err(|text| vec![text])?;
    let mut warnings = Vec::new();
    let has_cluster = config.http.as_ref().is_some_and(|http| http.cluster.is_some());
    if has_cluster && !exchange.shares() && site.store().is_none() {
        warnings.push("\"cluster\" has nothing to share: nothing is cached".to_owned());
    }
    let mut listens = Vec::new();
    let mut reader = tls_setup::CertificateReader::knowing(known);
    acme::check_issuers(config)?;
    let mut tls = shared.tls.draft(config);
    if let Some(http) = &config.http {
        for (at, listen) in http.listens.iter().enumerate() {
            let acceptor = tls_setup::acceptor(&site, at, &mut tls, &mut reader, &mut warnings)
                .map_err(|text| vec![text])?;
            listens.push(ListenSettings::new(http, listen, acceptor));
        }
    }
    let origin_tls = tls_setup::origins(&site, &mut reader, &mut warnings);
    let origin_tls = origin_tls.map_err(|text| vec![text])?;
    let mut known = HashSet::new();
    warnings.retain(|text| known.insert(text.clone()));
    let certificates = match config.main.reload_watch.is_zero() {
        true => ReadCertificates::default(),
        false => reader.read_so_far(),
    };
    let mut certificate_ends = reader.ends;
    warnings.extend(certificate_ends.warnings(bolide_io::process::now()));
    let quic_tokens = upgrade::quic_tokens(config).map_err(|text| vec![text])?;
    let (stapling, issued) = (tls.stapling, tls.issued);
    Ok(GenerationDraft {
        site,
        listens,
        origin_tls,
        warnings,
        certificate_ends,
        certificates,
        quic_tokens,
        issued,
        parts: PartDrafts { stapling, geo, otel, cluster, exchange },
    })
}

/// The site with the store of the process, if it caches.
fn with_store(site: Site, shared: &SharedParts) -> Site {
    if !site.keeps_answers() {
        return site;
    }
    let store = shared.store.get().cloned().unwrap_or_else(|| {
        let bytes = store_memory(site.config());
        let limits = bolide_cache::StoreLimits {
            bytes,
            // What zones keep; pages have `page_cache_max_object`.
            object_bytes: bytes / 4,
            ..bolide_cache::StoreLimits::default()
        };
        bolide_cache::Store::new(limits, bolide_tls::random_seed())
    });
    site.with_store(store)
}

/// Bytes of memory for cached responses.
pub(crate) fn store_memory(config: &Config) -> u64 {
    let page_store = config.http.as_ref().map(|http| http.page_store.clone()).unwrap_or_default();
    page_store.memory_limit(machine_memory())
}

/// Bytes of memory of the machine; a gigabyte if unknown.
fn machine_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.map_or(1 << 30, |kilobytes| kilobytes << 10)
}

/// Completes a draft, which comes into force.
pub(crate) fn generation(
    number: u64,
    draft: GenerationDraft,
    sockets: Vec<GenerationSockets>,
    shared: &SharedParts,
    previous: Option<&Generation>,
) -> Generation {
    // Before this point it could still be refused.
    draft.site.come_into_force(&shared.zones);
    if let Some(store) = draft.site.store() {
        shared.store.get_or_init(|| store.clone());
    }
    // Before the first handshake.
    shared.tls.issued.commit(draft.issued);
    let config = draft.site.config();
    let connections_max = config.events.worker_connections;
    let upstreams = config.http.as_ref().map_or(&[][..], |http| &http.upstreams);
    let groups = UpstreamGroups::new(upstreams, previous.map(|previous| &*previous.groups));
    let listens = config.http.as_ref().map_or(&[][..], |http| &http.listens);
    let addresses = bolide_worker::Addresses::new(listens);
    Generation {
        number,
        site: draft.site,
        groups: Arc::new(groups),
        origin_tls: draft.origin_tls.into(),
        listens: draft.listens,
        addresses,
        sockets: Handout::new(sockets),
        quic_keys: match draft.quic_tokens {
            Some(secret) => Arc::new((*shared.quic_keys).clone().with_tokens_of(secret)),
            None => shared.quic_keys.clone(),
        },
        connections_max,
    }
}

/// Opens every log file that the configuration names.
///
/// # Errors
///
/// In nginx's words: `open() "P" failed (2: No such file or directory)`.
pub(crate) fn open_logs(config: &Config) -> Result<OpenLogs, String> {
    open_logs_anew(config, &OpenLogs::default())
}

/// As [`open_logs`]; files that are open in `old` are not held twice.
///
/// # Errors
///
/// As [`open_logs`].
pub(crate) fn open_logs_anew(config: &Config, old: &OpenLogs) -> Result<OpenLogs, String> {
    let (open, mut failed) = reopen_logs(&[config], old);
    if failed.is_empty() { Ok(open) } else { Err(failed.swap_remove(0)) }
}

/// As [`open_logs`] for several configurations; a log that cannot be opened stays as it is in
/// `old`, and is reported.
pub(crate) fn reopen_logs(configs: &[&Config], old: &OpenLogs) -> (OpenLogs, Vec<String>) {
    let (mut open, mut failed) = (HashMap::new(), Vec::new());
    for path in log_paths(configs) {
        let name = path.as_os_str().as_bytes();
        match bolide_worker::LogFile::open(name) {
            Ok(file) => {
                // Thousands of servers have thousands of logs, and a process that may open that
                // many may not be allowed twice as many.
                let known = old
                    .get(name)
                    .filter(|known| bolide_io::file::is_same(known.file(), file.file()));
                open.insert(name.to_vec(), known.cloned().unwrap_or(file));
            }
            Err(error) => {
                let (shown, why) = (path.display(), bolide_base::errno::describe(&error));
                failed.push(format!("open() \"{shown}\" failed ({why})"));
                if let Some(file) = old.get(name) {
                    open.insert(name.to_vec(), file.clone());
                }
            }
        }
    }
    (Arc::new(open), failed)
}

/// Whether every log file could be opened; files created for the check are removed.
///
/// # Errors
///
/// As [`open_logs`].
pub(crate) fn check_logs(config: &Config) -> Result<(), String> {
    let new: Vec<_> = log_paths(&[config]).into_iter().filter(|path| !path.exists()).collect();
    let opened = open_logs(config).map(drop);
    // A file that cannot be removed is used later.
    new.into_iter().for_each(|path| drop(bolide_io::file::remove(path)));
    opened
}

/// Every log file, each once, in the order of the configurations.
fn log_paths<'a>(configs: &[&'a Config]) -> Vec<&'a Path> {
    fn errors(logs: &[bolide_conf::model::ErrorLog]) -> impl Iterator<Item = &Path> {
        logs.iter().filter_map(|log| match &log.target {
            LogTargetConf::File(path) => Some(path.as_path()),
            _ => None,
        })
    }
    let mut known: HashSet<&Path> = HashSet::new();
    let mut paths = Vec::new();
    let mut add = |path| {
        if known.insert(path) {
            paths.push(path);
        }
    };
    for config in configs {
        errors(&config.main.error_log).for_each(&mut add);
        let Some(http) = &config.http else { continue };
        errors(&http.settings.error_log).for_each(&mut add);
        // The access log of `http` counts where a location has it.
        for settings in http.locations.iter().map(|location| &location.settings) {
            errors(&settings.error_log).for_each(&mut add);
            for log in settings.access_log.iter() {
                if let AccessTarget::File(path) = &log.target {
                    add(path);
                }
            }
        }
    }
    paths
}
