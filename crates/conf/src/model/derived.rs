//! Variables that the configuration itself defines: `map`, `geo`, `split_clients`, `set`.

use super::Who;
use super::spans::Spans;
use crate::regex::Regex;
use crate::vars::Template;

/// What a variable of [`super::Http::named`] is worth where nothing was assigned to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Definition {
    /// Nothing: only captures assign to it.
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
}

/// A `map`.
#[derive(Clone, Debug, PartialEq)]
pub struct MapConf {
    /// What is looked up.
    pub source: Template,
    /// `hostnames`: keys may have wildcards, and a dot at the end does not matter.
    pub hostnames: bool,
    /// `volatile`: evaluated at every use.
    pub volatile: bool,
    /// What there is for everything else.
    pub default: Template,
    /// The rows, in file order.
    pub rows: Vec<(MapKey, Template)>,
}

/// What a row of a `map` is for. Texts are in lower case.
#[derive(Clone, Debug, PartialEq)]
pub enum MapKey {
    /// This text.
    Exact(Box<[u8]>),
    /// `*.a.com`, kept as `.a.com`.
    Suffix(Box<[u8]>),
    /// `.a.com`: `a.com` and all that ends so; with its dot.
    SuffixOrSelf(Box<[u8]>),
    /// `www.*`, kept as `www.`.
    Prefix(Box<[u8]>),
    /// `~re`, `~*re`
    Regex(Regex),
}

/// A `geo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geo {
    /// What gives the address; the client's own if absent.
    pub source: Option<Template>,
    /// Which of `values` each address has.
    pub v4: Spans<u32>,
    /// As `v4`.
    pub v6: Spans<u128>,
    /// The texts.
    pub values: Vec<Box<[u8]>>,
    /// `proxy`: who may say on whose behalf it asks.
    pub proxies: Vec<Who>,
    /// `proxy_recursive`
    pub recursive: bool,
    /// `volatile`: looked up at every use.
    pub volatile: bool,
}

/// A `split_clients`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitClients {
    /// What is hashed.
    pub source: Template,
    /// Hashes below the number take the text; where there is none, all the rest do.
    pub parts: Vec<(Option<u32>, Box<[u8]>)>,
}
