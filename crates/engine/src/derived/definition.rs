//! The compiled definitions of configured variables.

use bolide_conf::model::{Definition, Geo, Http, MapKey, SplitClients};
use bolide_conf::vars::Template;

use super::databases::GeoIpDerived;
use crate::keys::VariableKeys;
use bolide_patterns::CapturePattern;
use bolide_patterns::{Patterns, Sieves};

/// The value of a variable that was not assigned.
#[derive(Debug)]
pub(crate) enum Derived {
    Captured,
    Assigned,
    Map(Box<CompiledMap>),
    Geo(Box<Geo>),
    Split(Box<SplitClients>),
    GeoIp(Box<GeoIpDerived>),
}

/// A `map`.
#[derive(Debug)]
pub(crate) struct CompiledMap {
    pub(super) source: Template,
    pub(super) hostnames: bool,
    pub(super) volatile: bool,
    pub(super) default: Template,
    pub(super) keys: VariableKeys,
    pub(super) regexes: Patterns<u32>,
    pub(super) values: Vec<Template>,
}

impl Derived {
    /// Compiles all definitions of a configuration.
    pub(crate) fn all(http: &Http, sieves: &mut Sieves) -> Vec<Self> {
        let definitions = http.definitions.iter();
        definitions.map(|definition| Self::new(definition, http, sieves)).collect()
    }

    fn new(definition: &Definition, http: &Http, sieves: &mut Sieves) -> Self {
        let Definition::Map(map) = definition else {
            return match definition {
                Definition::Assigned => Self::Assigned,
                Definition::Geo(geo) => Self::Geo(geo.clone()),
                Definition::Split(split) => Self::Split(split.clone()),
                Definition::GeoIp(geo) => {
                    Self::GeoIp(Box::new(GeoIpDerived::new(geo, &http.geoip)))
                }
                _ => Self::Captured,
            };
        };
        let mut keys = VariableKeys::default();
        let mut regexes = Patterns::default();
        for (index, (key, _)) in map.rows.iter().enumerate() {
            match key {
                MapKey::Regex(regex) => {
                    regexes.push(CapturePattern::new(regex, &http.named), index as u32);
                }
                key => keys.add(key, index as u32),
            }
        }
        regexes.seal(sieves);
        Self::Map(Box::new(CompiledMap {
            source: map.source.clone(),
            hostnames: map.hostnames,
            volatile: map.volatile,
            default: map.default.clone(),
            keys,
            regexes,
            values: map.rows.iter().map(|(_, value)| value.clone()).collect(),
        }))
    }

    /// Whether reading it may change `$1`.
    pub(crate) fn captures(&self) -> bool {
        matches!(self, Self::Map(map) if !map.regexes.is_empty())
    }
}
