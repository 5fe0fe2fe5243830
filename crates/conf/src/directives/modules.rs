//! nginx's modules, and which of them this server has: a module is present when its characteristic
//! directive has a row in the tables. So the list cannot contradict the tables.

use super::find_anywhere;
use crate::directive::DirectiveMatch;

/// Modules that nginx has unless built without them, each with its characteristic directive.
const ALWAYS: &[(&str, &str)] = &[
    ("http_charset_module", "charset"),
    ("http_gzip_module", "gzip"),
    ("http_ssi_module", "ssi"),
    ("http_userid_module", "userid"),
    ("http_access_module", "allow"),
    ("http_auth_basic_module", "auth_basic"),
    ("http_mirror_module", "mirror"),
    ("http_autoindex_module", "autoindex"),
    ("http_geo_module", "geo"),
    ("http_map_module", "map"),
    ("http_split_clients_module", "split_clients"),
    ("http_referer_module", "valid_referers"),
    ("http_rewrite_module", "rewrite"),
    ("http_proxy_module", "proxy_pass"),
    ("http_fastcgi_module", "fastcgi_pass"),
    ("http_uwsgi_module", "uwsgi_pass"),
    ("http_scgi_module", "scgi_pass"),
    ("http_grpc_module", "grpc_pass"),
    ("http_memcached_module", "memcached_pass"),
    ("http_limit_conn_module", "limit_conn"),
    ("http_limit_req_module", "limit_req"),
    ("http_empty_gif_module", "empty_gif"),
    ("http_browser_module", "ancient_browser"),
    ("http_upstream_hash_module", "hash"),
    ("http_upstream_ip_hash_module", "ip_hash"),
    ("http_upstream_least_conn_module", "least_conn"),
    ("http_upstream_random_module", "random"),
    ("http_upstream_keepalive_module", "keepalive"),
    ("http_upstream_zone_module", "zone"),
    ("http_upstream_sticky_module", "sticky"),
];

/// Modules that nginx has when it is built with them.
const ON_REQUEST: &[(&str, &str)] = &[
    ("http_ssl_module", "ssl_certificate"),
    ("http_v2_module", "http2"),
    ("http_v3_module", "http3"),
    ("http_realip_module", "set_real_ip_from"),
    ("http_addition_module", "add_after_body"),
    ("http_xslt_module", "xslt_stylesheet"),
    ("http_image_filter_module", "image_filter"),
    ("http_geoip_module", "geoip_country"),
    ("http_sub_module", "sub_filter"),
    ("http_dav_module", "dav_methods"),
    ("http_flv_module", "flv"),
    ("http_mp4_module", "mp4"),
    ("http_gunzip_module", "gunzip"),
    ("http_gzip_static_module", "gzip_static"),
    ("http_auth_request_module", "auth_request"),
    ("http_random_index_module", "random_index"),
    ("http_secure_link_module", "secure_link"),
    ("http_degradation_module", "degradation"),
    ("http_slice_module", "slice"),
    ("http_stub_status_module", "stub_status"),
    ("http_perl_module", "perl"),
    ("mail", "mail"),
    ("stream", "stream"),
];

/// Modules that are loaded from files, without `ngx_` and `.so`, where their names differ from
/// those above.
const LOADED: &[(&str, &str)] = &[
    ("http_xslt_filter_module", "xslt_stylesheet"),
    ("http_brotli_filter_module", "brotli"),
    ("http_brotli_static_module", "brotli_static"),
    ("http_zstd_filter_module", "zstd"),
    ("http_zstd_static_module", "zstd_static"),
    ("http_cache_purge_module", "fastcgi_cache_purge"),
    ("http_geoip2_module", "geoip2"),
    ("http_acme_module", "acme_issuer"),
    ("otel_module", "otel_trace"),
];

/// Further module files of nginx and of Debian's packages, without `ngx_` and `.so`. A package
/// loads its module for every site; that no site uses one is no reason not to start.
const ELSEWHERE: &[&str] = &[
    "http_auth_pam_module",
    "http_dav_ext_module",
    "http_echo_module",
    "http_fancyindex_module",
    "http_headers_more_filter_module",
    "http_js_module",
    "http_lua_module",
    "http_memc_module",
    "http_modsecurity_module",
    "http_ndk_module",
    "http_passenger_module",
    "http_redis2_module",
    "http_set_misc_module",
    "http_srcache_filter_module",
    "http_subs_filter_module",
    "http_uploadprogress_module",
    "http_upstream_fair_module",
    "http_vhost_traffic_status_module",
    "mail_module",
    "nchan_module",
    "rtmp_module",
    "stream_geoip_module",
    "stream_geoip2_module",
    "stream_js_module",
    "stream_lua_module",
    "stream_module",
];

/// A module file as this server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModuleFile {
    /// This server implements the module.
    BuiltIn,
    /// Its directives are errors, and it is none itself.
    Unavailable,
    Unknown,
}

/// nginx's configure arguments for the directives that this server has.
pub fn configure_arguments() -> impl Iterator<Item = String> {
    let with = ON_REQUEST.iter().filter(|(_, directive)| is_here(directive));
    let without = ALWAYS.iter().filter(|(_, directive)| !is_here(directive));
    with.map(|(module, _)| format!("--with-{module}"))
        .chain(without.map(|(module, _)| format!("--without-{module}")))
}

/// What a module file, such as `ngx_http_brotli_static_module`, is to this server.
pub(super) fn module_file(file: &str) -> ModuleFile {
    let Some(name) = file.strip_prefix("ngx_") else {
        // The development kit that Debian's lua module loads first.
        return if file == "ndk_http_module" {
            ModuleFile::Unavailable
        } else {
            ModuleFile::Unknown
        };
    };
    let of_nginx = LOADED.iter().chain(ON_REQUEST).chain(ALWAYS);
    match of_nginx.clone().find(|(module, _)| *module == name) {
        Some((_, directive)) if is_here(directive) => ModuleFile::BuiltIn,
        Some(_) => ModuleFile::Unavailable,
        None if ELSEWHERE.contains(&name) => ModuleFile::Unavailable,
        None => ModuleFile::Unknown,
    }
}

fn is_here(directive: &str) -> bool {
    match find_anywhere(directive.as_bytes()) {
        DirectiveMatch::Row(_, row) => !super::is_unbuilt(row),
        DirectiveMatch::Elsewhere | DirectiveMatch::Later | DirectiveMatch::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{ALWAYS, LOADED, ON_REQUEST, configure_arguments, find_anywhere};
    use crate::directive::DirectiveMatch;

    #[test]
    fn every_module_is_known_by_a_directive_that_exists() {
        for (module, directive) in LOADED.iter().chain(ON_REQUEST).chain(ALWAYS) {
            let found = find_anywhere(directive.as_bytes());
            assert!(!matches!(found, DirectiveMatch::Unknown), "{module}: {directive}");
        }
    }

    #[test]
    fn what_is_here_is_with_and_nothing_that_nginx_always_has_is_without() {
        let all: Vec<String> = configure_arguments().collect();
        let has = |word: &str| all.iter().any(|one| one == word);
        assert!(has("--with-http_v2_module") && has("--with-http_realip_module"));
        assert!(!has("--with-stream"));
        assert!(!all.iter().any(|one| one.starts_with("--without")));
    }
}
