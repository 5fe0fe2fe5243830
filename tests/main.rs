//! Black-box tests of the real binary, one module per feature. Every test starts its own server on
//! its own ports, and uses clients of other projects.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::too_many_lines,
    reason = "a test fails by panicking, lives in real time, and a table is as long as it is"
)]

mod abandoned;
mod abuse;
mod access;
mod acme;
mod acme_files;
mod acme_hook;
mod acme_statuses;
mod adopt;
mod apache_handler;
mod audiences;
mod auth_request;
mod bans;
mod bodies;
mod browser;
mod cache;
mod cache_cli;
mod cache_deleted;
mod cache_disk;
mod caching_rfc9111;
mod charsets;
mod check;
mod client_cert;
mod cluster;
mod compare;
mod compression;
mod config;
mod console;
mod contrib;
mod dav;
mod descriptors;
mod docs_examples;
mod error_log;
mod errors;
mod esi;
mod explain;
mod filters;
mod framing;
mod fresh_files;
mod geo;
mod geoip;
mod grpc;
mod h1;
mod h2;
mod h3;
mod header_edits;
mod headers;
mod health;
mod held_uploads;
mod histories;
mod htaccess;
mod htaccess_ahead;
mod htaccess_bodies;
mod htaccess_kept;
mod htaccess_lscache;
mod htaccess_php;
mod htaccess_reach;
mod htaccess_rounds;
mod http2_directives;
mod identity;
mod import_apache;
mod json_logs;
mod key_collisions;
mod large_listings;
mod lifetimes;
mod limiting;
mod limits;
mod liveness;
mod log_files;
mod log_order;
mod log_targets;
mod logs;
mod lscache;
mod magento;
mod memcached;
mod metrics;
mod mirror;
mod otel;
mod overtime;
mod pace;
mod package;
mod page_cache;
mod patience;
mod php;
mod php_chaos;
mod php_ends;
mod php_pool;
mod php_pools;
mod php_scripts;
mod php_settings;
mod post_action;
mod process;
mod proxy;
mod proxy_protocol;
mod published;
mod purges;
mod purges_in_flight;
mod purges_that_reach;
mod quic_listens;
mod real_ip;
mod recalled;
mod reload;
mod reload_command;
mod reload_connections;
mod reload_watch;
mod resolver;
mod rewrite;
mod rfc9110;
mod rfc9112;
mod rights;
mod routing;
mod serve;
mod service_manager;
mod slices;
mod ssi;
mod stapling;
mod static_files;
mod status;
mod sticky;
mod store;
mod tls;
mod tls_alerts;
mod tls_baseline;
mod tls_certificates;
mod tls_computed;
mod tls_contexts;
mod tls_keys;
mod tls_origins;
mod truncated;
mod unfinished;
mod upgrade;
mod uwsgi;
mod variables;
mod videos;
mod visitors;
mod watchdog;
mod wordpress;
mod wordpress_cache;
mod yielding;
mod zones;

/// The program under test.
const BOLIDE: &str = env!("CARGO_BIN_EXE_bolide");

/// A server with one site and these directives.
fn site(directives: &str) -> bolide_testkit::TestServer {
    bolide_testkit::TestServer::site(BOLIDE, directives)
}

/// A server with this `http` block.
fn http(block: &str) -> bolide_testkit::TestServer {
    bolide_testkit::TestServer::with(BOLIDE, block)
}

/// Reports all failed rows of a table at once.
fn report(rows: usize, failures: &[String]) {
    let failed = failures.len();
    assert!(failures.is_empty(), "{failed} of {rows} rows:\n{}", failures.join("\n"));
}
