//! Settings of HTTP upstreams only: the URL of `proxy_pass`, the form of requests, and the
//! rewriting of URLs and cookies in responses.

use std::sync::Arc;

use super::origin_tls::OriginTlsConf;
use crate::regex::Regex;
use crate::vars::Template;

/// The parts of `proxy_pass http://HOST:PORT/URI` beside the server address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl {
    /// Whether the scheme is `https`.
    pub secure: bool,
    /// `$proxy_host`: the host, with the port unless it is the scheme's default; `localhost` for a
    /// unix socket.
    pub host: Arc<[u8]>,
    /// `$proxy_port`: the port, or the scheme's default; empty for a unix socket.
    pub port: Arc<[u8]>,
    /// The URI as written; `None`: the client's own target is passed on.
    pub uri: Option<Arc<[u8]>>,
    /// The prefix of the request's path that `uri` replaces: that of the location.
    pub replaces: Arc<[u8]>,
    /// The whole address as written, for `proxy_redirect default`.
    pub written: Arc<[u8]>,
}

/// Settings of a location for HTTP upstreams.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxySettings {
    /// `proxy_http_version`
    pub version: ProxyVersion,
    /// `proxy_method`
    pub method: Option<Template>,
    /// `proxy_set_header`
    pub fields: Arc<Vec<ProxyField>>,
    /// `proxy_set_body`
    pub body: Option<Template>,
    /// `proxy_redirect`, in order; none is `off`.
    pub redirects: Arc<Vec<Redirect>>,
    /// `proxy_cookie_domain`, in order; none is `off`.
    pub cookie_domains: Arc<Vec<Replacement>>,
    /// `proxy_cookie_path`, in order; none is `off`.
    pub cookie_paths: Arc<Vec<Replacement>>,
    /// `proxy_cookie_flags`, in order; none is `off`.
    pub cookie_flags: Arc<Vec<CookieFlags>>,
    /// `proxy_pass_trailers`
    pub pass_trailers: bool,
    /// `proxy_cache_convert_head`
    pub convert_head: bool,
    /// `proxy_ssl_*`
    pub tls: Arc<OriginTlsConf>,
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self {
            version: ProxyVersion::default(),
            method: None,
            fields: Arc::default(),
            body: None,
            redirects: Arc::new(vec![Redirect::Default(None)]),
            cookie_domains: Arc::default(),
            cookie_paths: Arc::default(),
            cookie_flags: Arc::default(),
            pass_trailers: false,
            convert_head: true,
            tls: Arc::default(),
        }
    }
}

/// `proxy_http_version`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyVersion {
    /// `1.0`
    V10,
    /// `1.1`
    #[default]
    V11,
    /// `2`
    V2,
}

/// A `proxy_set_header`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyField {
    /// The name as written.
    pub name: Arc<[u8]>,
    /// The value; an empty one omits the field.
    pub value: Template,
}

/// A `proxy_redirect`.
#[derive(Clone, Debug, PartialEq)]
pub enum Redirect {
    /// `default`: the URL of `proxy_pass` becomes the prefix of the location; those of the block
    /// that it was inherited from, if there is one.
    Default(Option<Arc<ProxyUrl>>),
    /// One text becomes another.
    Rule(Replacement),
}

/// A replacement of `proxy_redirect`, `proxy_cookie_domain` or `proxy_cookie_path`.
#[derive(Clone, Debug, PartialEq)]
pub enum Replacement {
    /// Replaces a prefix, or a domain equal to this one (ignoring a leading dot).
    Text {
        /// The upstream's text.
        from: Template,
        /// As the client gets it.
        to: Template,
    },
    /// Replaces the match of an expression.
    Pattern {
        /// The expression.
        regex: Regex,
        /// The replacement; `$1` and named groups are those of the expression.
        to: Template,
    },
}

/// A `proxy_cookie_flags`.
#[derive(Clone, Debug, PartialEq)]
pub struct CookieFlags {
    /// The cookies whose flags change.
    pub name: CookieName,
    /// `secure`, `nosecure`, `httponly`, `nohttponly`, `samesite=…`, `nosamesite`, as texts.
    pub flags: Vec<Template>,
}

/// The cookies that a rule applies to.
#[derive(Clone, Debug, PartialEq)]
pub enum CookieName {
    /// The cookie of this name, case-insensitive.
    Text(Template),
    /// Cookies whose name it matches.
    Pattern(Regex),
}
