//! From a parsed configuration to a generation that workers can run.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use conf::model::{AccessTarget, Config, Http, Listen, LogTarget, Server, Settings, Workers};
use engine::Site;
use http::Scheme;
use worker::{Generation, ListenSettings, OpenLogs, Sockets};

use crate::tls_setup::{self, TlsState};

/// What outlives generations.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) tls: TlsState,
    pub(crate) quic_keys: Arc<quic::SharedKeys>,
}

/// How many workers a configuration asks for.
pub(crate) fn worker_count(config: &Config) -> u16 {
    let count = match config.main.worker_processes {
        Workers::Auto => io::process::cores(),
        Workers::Count(count) => count as usize,
    };
    // The number of a worker travels in one byte of QUIC connection ids.
    u16::try_from(count.clamp(1, 250)).unwrap_or(1)
}

/// A generation but for its sockets, which are opened only when everything else is right.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) site: Arc<Site>,
    pub(crate) listens: Vec<ListenSettings>,
    pub(crate) warnings: Vec<String>,
}

/// Compiles a configuration and reads its certificates.
///
/// # Errors
///
/// One text per mistake.
pub(crate) fn draft(config: &Arc<Config>, shared: &Shared) -> Result<Draft, Vec<String>> {
    let site = Site::compile(config.clone())
        .map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let mut warnings = Vec::new();
    let mut listens = Vec::new();
    if let Some(http) = &config.http {
        for listen in &http.listens {
            let acceptor = tls_setup::acceptor(config, http, listen, &shared.tls, &mut warnings)
                .map_err(|text| vec![text])?;
            listens.push(listen_settings(http, listen, acceptor));
        }
    }
    warnings.dedup();
    Ok(Draft { site: Arc::new(site), listens, warnings })
}

/// Completes a draft.
pub(crate) fn generation(
    number: u64,
    draft: Draft,
    sockets: Vec<Sockets>,
    logs: OpenLogs,
    shared: &Shared,
) -> Generation {
    let connections_max = draft.site.config().events.worker_connections;
    Generation {
        number,
        site: draft.site,
        listens: draft.listens,
        sockets,
        logs,
        quic_keys: shared.quic_keys.clone(),
        connections_max,
    }
}

fn listen_settings(http: &Http, listen: &Listen, tls: Option<tls::Acceptor>) -> ListenSettings {
    let server = http.server(listen.default_server);
    let settings = &http.location(server.root).settings;
    let scheme = if tls.is_some() { Scheme::Https } else { Scheme::Http };
    ListenSettings {
        http2: server.http2 || listen.http2,
        http3: server.http3,
        h1: h1_settings(server, settings, scheme),
        h2: h2_settings(server, settings, scheme),
        h3: h3_settings(server, settings),
        quic: quic_settings(server, settings),
        header_timeout: server.settings.client_header_timeout,
        body_timeout: settings.client_body_timeout,
        send_timeout: settings.send_timeout,
        keepalive_timeout: settings.keepalive_timeout,
        lingering_timeout: settings.lingering_timeout,
        reset_timedout: settings.reset_timedout_connection,
        tls,
    }
}

fn h1_settings(server: &Server, settings: &Settings, scheme: Scheme) -> wire::h1::Settings {
    let own = &server.settings;
    wire::h1::Settings {
        scheme,
        header_buffer_size: own.client_header_buffer_size,
        large_buffers: u16::try_from(own.large_client_header_buffers).unwrap_or(u16::MAX),
        large_buffer_size: own.large_client_header_buffer_size,
        underscores_in_headers: own.underscores_in_headers,
        ignore_invalid_headers: own.ignore_invalid_headers,
        keepalive_requests: settings.keepalive_requests,
    }
}

fn h2_settings(server: &Server, settings: &Settings, scheme: Scheme) -> wire::h2::Settings {
    let own = &server.settings;
    let buffers = own.large_client_header_buffers as usize;
    wire::h2::Settings {
        scheme,
        max_concurrent_streams: own.h2.max_concurrent_streams,
        head_size_max: buffers * own.large_client_header_buffer_size,
        field_size_max: own.large_client_header_buffer_size,
        chunk_size: base::limits::H2_FRAME_SIZE_MAX,
        recv_window: base::limits::BODY_WINDOW,
        underscores_in_headers: own.underscores_in_headers,
        ignore_invalid_headers: own.ignore_invalid_headers,
        keepalive_requests: settings.keepalive_requests,
    }
}

fn h3_settings(server: &Server, settings: &Settings) -> wire::h3::Settings {
    let own = &server.settings;
    let buffers = own.large_client_header_buffers as usize;
    wire::h3::Settings {
        max_concurrent_streams: own.h3.max_concurrent_streams,
        head_size_max: buffers * own.large_client_header_buffer_size,
        field_size_max: own.large_client_header_buffer_size,
        table_capacity: base::limits::FIELD_TABLE_SIZE,
        blocked_streams: 16,
        underscores_in_headers: own.underscores_in_headers,
        ignore_invalid_headers: own.ignore_invalid_headers,
        keepalive_requests: settings.keepalive_requests,
    }
}

fn quic_settings(server: &Server, settings: &Settings) -> quic::Settings {
    let mut quic = quic::Settings {
        bidi_streams_max: server.settings.h3.max_concurrent_streams,
        idle_timeout: settings.keepalive_timeout,
        ..quic::Settings::default()
    };
    if server.settings.h3.retry {
        quic.retry = quic::Retry::Always;
    }
    quic
}

/// Opens every log file that the configuration names.
///
/// # Errors
///
/// In nginx's words: `open() "P" failed (2: No such file or directory)`.
pub(crate) fn open_logs(config: &Config) -> Result<OpenLogs, String> {
    let mut paths: HashSet<&Path> = HashSet::new();
    let errors = |logs: &'_ [conf::model::ErrorLog]| -> Vec<std::path::PathBuf> {
        logs.iter()
            .filter_map(|log| match &log.target {
                LogTarget::File(path) => Some(path.clone()),
                LogTarget::Stderr | LogTarget::Syslog(_) => None,
            })
            .collect()
    };
    let mut owned: Vec<std::path::PathBuf> = errors(&config.main.error_log);
    if let Some(http) = &config.http {
        let all = http.locations.iter().map(|location| &location.settings);
        for settings in all.chain([&http.settings]) {
            owned.extend(errors(&settings.error_log));
            for log in settings.access_log.iter() {
                if let AccessTarget::File(path) = &log.target {
                    paths.insert(path);
                }
            }
        }
    }
    let mut open = HashMap::new();
    for path in paths.into_iter().chain(owned.iter().map(std::path::PathBuf::as_path)) {
        let name = path.as_os_str().as_bytes();
        if open.contains_key(name) {
            continue;
        }
        let file = io::file::open_append(name).map_err(|error| {
            format!("open() \"{}\" failed ({})", path.display(), crate::sockets::describe(&error))
        })?;
        open.insert(name.to_vec(), file);
    }
    Ok(Arc::new(open))
}
