//! `geoip2` and `geoip_*`: variables from databases.

use std::net::IpAddr;

use bolide_conf::model::{ClassicGeo, GeoIp, GeoIpMetadata, GeoIpProxies, GeoIpValue, GeoIpVar};
use bolide_conf::vars::Template;
use bolide_geoip::{Decimals, GeoPath, LiveGeoDatabase};
use bolide_http::Name;
use bolide_http::digits::push_decimal;

use super::countries::three_letters;
use crate::ctx::ClientAddress;
use crate::forwarded;
use crate::vars::{VariableScope, VariableValue};

/// A variable from a database, compiled.
#[derive(Debug)]
pub(crate) struct GeoIpDerived {
    database: u16,
    lookup: GeoLookup,
    default: Option<Box<[u8]>>,
    proxies: GeoIpProxies,
}

#[derive(Debug)]
enum GeoLookup {
    /// The value at the first of these paths that has one, for the address in the text or the
    /// client's address.
    Value(Box<[GeoPath]>, Option<Template>, Decimals),
    /// The three-letter code of the two-letter one at this path.
    CountryCode3(GeoPath),
    Metadata(GeoIpMetadata),
}

impl GeoIpDerived {
    pub(super) fn new(var: &GeoIpVar, conf: &GeoIp) -> Self {
        // The reader of the configuration refuses invalid paths.
        let path = |words: &mut dyn Iterator<Item = &[u8]>| GeoPath::new(words);
        let classic = |what: ClassicGeo| {
            let paths = what.paths().iter();
            paths.filter_map(|words| path(&mut words.iter().map(|word| word.as_bytes()))).collect()
        };
        let (lookup, proxies) = match &var.value {
            GeoIpValue::Path(words, source) => {
                let paths = path(&mut words.iter().map(|word| &**word)).into_iter().collect();
                (GeoLookup::Value(paths, source.clone(), Decimals::Five), &conf.geoip2)
            }
            GeoIpValue::Metadata(what) => (GeoLookup::Metadata(*what), &conf.geoip2),
            GeoIpValue::Classic(what) => {
                let paths: Box<[GeoPath]> = classic(*what);
                let lookup = match (what, &*paths) {
                    (ClassicGeo::CountryCode3, [path]) => GeoLookup::CountryCode3(path.clone()),
                    _ => GeoLookup::Value(paths, None, Decimals::Four),
                };
                (lookup, &conf.geoip)
            }
        };
        Self {
            database: var.database,
            lookup,
            default: var.default.clone(),
            proxies: proxies.clone(),
        }
    }
}

impl GeoIpDerived {
    /// Appends the database's value, or the default.
    pub(super) fn write(&self, scope: &VariableScope<'_>, out: &mut Vec<u8>) -> VariableValue {
        let database = scope.site.geo_database(self.database);
        if database.is_some_and(|database| self.ask(scope, database, out)) {
            return VariableValue::Yes;
        }
        let Some(default) = &self.default else { return VariableValue::No };
        out.extend_from_slice(default);
        VariableValue::Yes
    }

    fn ask(
        &self,
        scope: &VariableScope<'_>,
        database: &LiveGeoDatabase,
        out: &mut Vec<u8>,
    ) -> bool {
        match &self.lookup {
            GeoLookup::Value(paths, source, decimals) => {
                let ip = match source {
                    Some(source) => written_address(scope, source),
                    None => believed_address(scope, &self.proxies),
                };
                let Some(ip) = ip else { return false };
                database.ask(|database| {
                    paths.iter().any(|path| database.write(ip, path, *decimals, out))
                })
            }
            GeoLookup::CountryCode3(path) => {
                let Some(ip) = believed_address(scope, &self.proxies) else { return false };
                let mut two = scope.spare();
                database.ask(|database| database.write(ip, path, Decimals::Four, &mut two));
                let three = three_letters(&two);
                scope.give_back(two);
                out.extend_from_slice(three.unwrap_or_default().as_bytes());
                three.is_some()
            }
            GeoLookup::Metadata(what) => {
                let times = database.times();
                let time = match what {
                    GeoIpMetadata::BuildEpoch => times.built,
                    GeoIpMetadata::LastCheck => times.checked,
                    GeoIpMetadata::LastChange => times.changed,
                };
                push_decimal(out, time);
                true
            }
        }
    }
}

/// The address in a text.
fn written_address(scope: &VariableScope<'_>, source: &Template) -> Option<IpAddr> {
    let mut text = scope.spare();
    scope.expand(source, &mut text);
    let ip = std::str::from_utf8(&text).ok().and_then(forwarded::ip);
    scope.give_back(text);
    ip.map(|ip| ip.to_canonical())
}

/// The client's address, or the one from a trusted proxy.
fn believed_address(scope: &VariableScope<'_>, proxies: &GeoIpProxies) -> Option<IpAddr> {
    let mut asker = scope.client();
    if !proxies.trusted.is_empty() {
        let fields = scope.request.head().fields.all(Name::XForwardedFor);
        let forwarded_for = forwarded::client(asker, fields, &proxies.trusted, proxies.recursive);
        asker = forwarded_for.unwrap_or(asker);
    }
    match asker {
        ClientAddress::Inet(addr) => Some(addr.ip().to_canonical()),
        ClientAddress::Unix => None,
    }
}
