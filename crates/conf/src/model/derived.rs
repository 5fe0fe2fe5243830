//! Variables that the configuration itself defines: `map`, `geo`, `geoip2`, `split_clients`,
//! `set`.

use super::Who;
use super::geoip::GeoIpVar;
use super::spans::Spans;
use crate::regex::Regex;
use crate::vars::Template;

/// The definition of a variable of [`super::Http::named`], used where no value was assigned.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Definition {
    /// No definition: only captures assign to it.
    #[default]
    Captured,
    /// The empty text, with a warning: `set` assigns to it.
    Assigned,
    /// `map`
    Map(Box<MapConf>),
    /// `geo`
    Geo(Box<Geo>),
    /// `split_clients`
    Split(Box<SplitClients>),
    /// A variable from a database of addresses.
    GeoIp(Box<GeoIpVar>),
}

/// A `map`.
#[derive(Clone, Debug, PartialEq)]
pub struct MapConf {
    /// The text to look up.
    pub source: Template,
    /// `hostnames`: keys may have wildcards, and a final dot is ignored.
    pub hostnames: bool,
    /// `volatile`: evaluated at every use.
    pub volatile: bool,
    /// The value for everything else.
    pub default: Template,
    /// The rows, in file order.
    pub rows: Vec<(MapKey, Template)>,
}

/// The key of a row of a `map`. Texts are in lower case.
#[derive(Clone, Debug, PartialEq)]
pub enum MapKey {
    /// This text.
    Exact(Box<[u8]>),
    /// `*.a.com`, stored as `.a.com`.
    Suffix(Box<[u8]>),
    /// `.a.com`: `a.com` and its subdomains; stored with its dot.
    SuffixOrSelf(Box<[u8]>),
    /// `www.*`, stored as `www.`.
    Prefix(Box<[u8]>),
    /// `~re`, `~*re`
    Regex(Regex),
}

/// A `geo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geo {
    /// The source of the address; the client's own if absent.
    pub source: Option<Template>,
    /// Which of `values` each address has.
    pub v4: Spans<u32>,
    /// As `v4`.
    pub v6: Spans<u128>,
    /// The texts.
    pub values: Vec<Box<[u8]>>,
    /// `proxy`: trusted proxies.
    pub proxies: Vec<Who>,
    /// `proxy_recursive`
    pub recursive: bool,
    /// `volatile`: evaluated at every use.
    pub volatile: bool,
}

/// A `split_clients`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitClients {
    /// The text to hash.
    pub source: Template,
    /// Hashes below the number select the text; `None` takes all the rest.
    pub parts: Vec<(Option<u32>, Box<[u8]>)>,
}
