//! All directives: the tables of the features together, and the lookup by name.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::auto_https;
use crate::directive::{Contexts, DirectiveMatch, DirectiveSpec, DirectiveTable};
use crate::model::{SourcePlace, UpstreamKind};
use crate::reader::ConfReader;

mod access;
mod acme;
mod auth;
mod auth_request;
mod autoindex;
mod bind;
mod body;
mod brotli;
mod browsers;
mod cache;
mod cache_zone;
mod charset;
mod cluster;
mod console;
mod core;
mod dav;
mod errors;
mod events;
mod fastcgi;
mod fastcgi_store;
mod files;
mod filters;
mod geo;
mod geo_ranges;
mod geoip;
mod grpc;
mod grpc_tls;
mod gzip;
mod headers;
mod health;
mod htaccess;
mod http2;
mod http3;
mod later;
mod limit;
mod limit_except;
mod listen;
mod location;
mod log;
mod main;
mod map;
mod memcached;
mod metrics;
mod modules;
mod more_headers;
mod mp4;
mod origin;
mod origin_tls;
mod otel;
mod page_cache;
mod page_litespeed;
mod page_preset;
mod params;
mod pass;
mod peer;
mod php_pool;
mod post_action;
mod proxied;
mod proxy;
mod proxy_cache;
mod proxy_rewrite;
mod proxy_store;
mod proxy_tls;
mod real_ip;
mod referer;
mod rewrite;
mod scgi;
mod scgi_cache;
mod scgi_store;
mod secure_link;
mod server;
mod server_name;
mod split_clients;
mod ssi;
mod sticky;
mod store;
mod syslog;
mod tls;
mod types;
mod upstream;
mod user_id;
mod uwsgi;
mod uwsgi_cache;
mod uwsgi_store;
mod uwsgi_tls;
mod zstd;

pub use modules::configure_arguments;
pub use peer::{PeerAddressText, cut as cut_address};

pub(crate) use geoip::is_classic as is_classic_geo;
pub(crate) use log::combined;
pub(crate) use otel::check as check_traces;

/// Makes the list of the tables, each with the name of its file.
macro_rules! families {
    ($($name:ident::TABLE,)*) => {
        const FAMILIES: &[(&str, &[DirectiveSpec])] = &[$((stringify!($name), $name::TABLE)),*];
    };
}

families![
    main::TABLE,
    events::TABLE,
    core::TABLE,
    server::TABLE,
    listen::TABLE,
    server_name::TABLE,
    location::TABLE,
    mp4::TABLE,
    rewrite::TABLE,
    map::TABLE,
    geo::TABLE,
    geoip::TABLE,
    split_clients::TABLE,
    access::TABLE,
    real_ip::TABLE,
    auth::TABLE,
    auth_request::TABLE,
    referer::TABLE,
    browsers::TABLE,
    limit::TABLE,
    limit_except::TABLE,
    secure_link::TABLE,
    files::TABLE,
    body::TABLE,
    dav::TABLE,
    types::TABLE,
    errors::TABLE,
    post_action::TABLE,
    headers::TABLE,
    more_headers::TABLE,
    user_id::TABLE,
    log::TABLE,
    health::TABLE,
    metrics::TABLE,
    console::TABLE,
    otel::TABLE,
    charset::TABLE,
    autoindex::TABLE,
    htaccess::TABLE,
    gzip::TABLE,
    brotli::TABLE,
    zstd::TABLE,
    filters::TABLE,
    ssi::TABLE,
    tls::TABLE,
    acme::TABLE,
    http2::TABLE,
    http3::TABLE,
    upstream::TABLE,
    pass::TABLE,
    params::TABLE,
    fastcgi::TABLE,
    php_pool::TABLE,
    proxy::TABLE,
    proxied::TABLE,
    proxy_rewrite::TABLE,
    proxy_tls::TABLE,
    uwsgi::TABLE,
    uwsgi_tls::TABLE,
    scgi::TABLE,
    memcached::TABLE,
    grpc::TABLE,
    grpc_tls::TABLE,
    fastcgi_store::TABLE,
    proxy_store::TABLE,
    uwsgi_store::TABLE,
    scgi_store::TABLE,
    cache::TABLE,
    proxy_cache::TABLE,
    uwsgi_cache::TABLE,
    scgi_cache::TABLE,
    page_cache::TABLE,
    page_litespeed::TABLE,
    cluster::TABLE,
];

/// What the reader asks of all of them.
pub(crate) const TABLE: DirectiveTable =
    DirectiveTable { find, suggest, is_unbuilt, settle: headers::settle };

/// Directives that are read, checked and documented already, but have no effect yet: refused unless
/// [`crate::LoadOptions::reads_unbuilt`] allows them.
const UNBUILT: &[&str] = &[];

/// The tables by the name of their feature, in the order of the documentation.
pub fn families() -> impl Iterator<Item = (&'static str, &'static [DirectiveSpec])> {
    FAMILIES.iter().copied()
}

/// Every supported directive, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static DirectiveSpec> {
    families().flat_map(|(_, table)| table)
}

/// Opens an `upstream`, a `php_pool`, an `acme_issuer`, an `otel_exporter` and a `cluster`, so that
/// their rows have a place.
pub(crate) fn begin_blocks(r: &mut ConfReader) {
    let issuer = auto_https::issuer(&r.options, "", SourcePlace::default());
    r.http.acme.conf.issuers.push(issuer);
    let (kind, place) = (UpstreamKind::Block, SourcePlace::default());
    r.http.upstreams.push(upstream::empty("", kind, place.clone()));
    r.http.php_pools.push(php_pool::empty("", place));
    r.http.otel.exporter = Some(otel::empty());
    r.http.cluster = Some(cluster::empty());
}

/// Whether a row has no effect yet.
pub(crate) fn is_unbuilt(row: &DirectiveSpec) -> bool {
    UNBUILT.contains(&row.name)
}

type Index = HashMap<&'static [u8], Vec<(u16, &'static DirectiveSpec)>>;

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index::new();
        for (number, row) in all().enumerate() {
            index.entry(row.name.as_bytes()).or_default().push((number as u16, row));
        }
        index
    })
}

/// Finds the row for `name` in `context`.
pub(crate) fn find(name: &[u8], context: Contexts) -> DirectiveMatch {
    let Some(rows) = index().get(name) else {
        return if later::is_known(name) { DirectiveMatch::Later } else { DirectiveMatch::Unknown };
    };
    match rows.iter().find(|(_, row)| row.contexts.contains(context)) {
        Some((number, row)) => DirectiveMatch::Row(*number, row),
        None => DirectiveMatch::Elsewhere,
    }
}

/// The meaning of a name in any context.
pub(crate) fn find_anywhere(name: &[u8]) -> DirectiveMatch {
    match index().get(name) {
        Some(rows) => DirectiveMatch::Row(rows[0].0, rows[0].1),
        None if later::is_known(name) => DirectiveMatch::Later,
        None => DirectiveMatch::Unknown,
    }
}

/// Directives that nginx has removed, and what replaced them.
const REMOVED: [(&str, &str); 5] = [
    ("ssl", "listen ... ssl"),
    ("limit_zone", "limit_conn_zone"),
    ("open_file_cache_retest", "open_file_cache_valid"),
    ("optimize_server_names", "server_name_in_redirect"),
    ("satisfy_any", "satisfy any"),
];

/// The known name nearest to `name`, if it is near enough to be meant.
pub(crate) fn suggest(name: &[u8]) -> Option<&'static str> {
    if let Some((_, now)) = REMOVED.iter().find(|(old, _)| name == old.as_bytes()) {
        return Some(now);
    }
    let allowed = match name.len() {
        0..=2 => return None,
        3..=5 => 1,
        6..=32 => 2,
        _ => return None,
    };
    let names = all().map(|row| row.name).chain(later::names());
    names
        .filter(|known| known.len().abs_diff(name.len()) <= allowed)
        .map(|known| (distance(name, known.as_bytes()), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, known)| (*distance, known.len()))
        .map(|(_, known)| known)
}

/// Edits of one letter, transpositions included, that turn `a` into `b`.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut row = last.clone();
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(!a[i - 1].eq_ignore_ascii_case(&b[j - 1]));
            row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{all, distance, later, suggest};
    use crate::directive::Contexts;

    #[test]
    fn every_row_is_documented_and_no_name_is_both_here_and_later() {
        let mut seen = HashSet::new();
        for row in all() {
            assert!(row.doc.ends_with('.') && !row.doc.starts_with(row.name), "{}", row.name);
            assert!(row.example.contains(row.name), "{}", row.name);
            assert!(row.contexts.names().count() > 0 && row.args.min <= row.args.max);
            assert!(!later::is_known(row.name.as_bytes()), "{}", row.name);
            for (context, _) in Contexts::EACH {
                if row.contexts.contains(context) {
                    let fresh = seen.insert((row.name, format!("{context:?}")));
                    assert!(fresh, "{} is twice in one block", row.name);
                }
            }
        }
    }

    #[test]
    fn a_near_miss_is_recognised_and_nonsense_is_not() {
        assert_eq!(suggest(b"gzpi"), Some("gzip"));
        assert_eq!(suggest(b"sevrer_name"), Some("server_name"));
        assert_eq!(suggest(b"proxy_pas"), Some("proxy_pass"));
        assert_eq!(suggest(b"Root"), Some("root"));
        assert_eq!(suggest(b"ssl"), Some("listen ... ssl"));
        assert_eq!(suggest(b"frobnicate"), None);
        assert_eq!(suggest(b"xy"), None);
        assert_eq!((distance(b"ab", b"ba"), distance(b"", b"abc")), (1, 3));
    }
}
