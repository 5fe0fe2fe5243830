//! `geoip2`, `geoip_country` and their kin: databases of addresses, and variables from them.

use std::path::PathBuf;

use super::{SourcePlace, Who};
use crate::vars::Template;

/// The databases of the `http` block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeoIp {
    /// The databases in file order; [`GeoIpVar::database`] is an index.
    pub databases: Vec<GeoIpFile>,
    /// `geoip2_proxy`, `geoip2_proxy_recursive`
    pub geoip2: GeoIpProxies,
    /// `geoip_proxy`, `geoip_proxy_recursive`
    pub geoip: GeoIpProxies,
}

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeoIpFile {
    /// Its file.
    pub path: PathBuf,
    /// The directive that names it.
    pub directive: &'static str,
    /// Where that stands.
    pub place: SourcePlace,
    /// `auto_reload`: seconds between two looks at the file; 0 means none.
    pub reload_seconds: u64,
}

/// Proxies that are believed about the client's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeoIpProxies {
    /// The trusted proxies.
    pub trusted: Vec<Who>,
    /// Whether the last address that is not trusted counts.
    pub recursive: bool,
}

/// A variable from a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeoIpVar {
    /// An index into [`GeoIp::databases`].
    pub database: u16,
    /// What it is.
    pub value: GeoIpValue,
    /// `default=`
    pub default: Option<Box<[u8]>>,
}

/// The value of such a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeoIpValue {
    /// The value at a path, for the address that `source=` names, else the client's.
    Path(Box<[Box<[u8]>]>, Option<Template>),
    /// What is known of the database.
    Metadata(GeoIpMetadata),
    /// A variable of nginx's own module.
    Classic(ClassicGeo),
}

/// `metadata …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeoIpMetadata {
    /// `build_epoch`
    BuildEpoch,
    /// `last_check`
    LastCheck,
    /// `last_change`
    LastChange,
}

/// The variables of nginx's own module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassicGeo {
    /// Two letters of the country.
    CountryCode,
    /// Three letters of the country.
    CountryCode3,
    /// The country's name.
    CountryName,
    /// Two letters of the continent.
    ContinentCode,
    /// The code of the region.
    Region,
    /// The region's name.
    RegionName,
    /// The city's name.
    City,
    /// The postal code.
    PostalCode,
    /// Degrees north.
    Latitude,
    /// Degrees east.
    Longitude,
    /// The code of the metropolitan area in the USA.
    DmaCode,
    /// The organization.
    Organization,
}

impl ClassicGeo {
    /// Where MaxMind's databases have it; the first path at which there is something counts.
    #[must_use]
    pub const fn paths(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::CountryCode | Self::CountryCode3 => &[&["country", "iso_code"]],
            Self::CountryName => &[&["country", "names", "en"]],
            Self::ContinentCode => &[&["continent", "code"]],
            Self::Region => &[&["subdivisions", "0", "iso_code"]],
            Self::RegionName => &[&["subdivisions", "0", "names", "en"]],
            Self::City => &[&["city", "names", "en"]],
            Self::PostalCode => &[&["postal", "code"]],
            Self::Latitude => &[&["location", "latitude"]],
            Self::Longitude => &[&["location", "longitude"]],
            Self::DmaCode => &[&["location", "metro_code"]],
            Self::Organization => &[
                &["organization"],
                &["autonomous_system_organization"],
                &["isp"],
                &["traits", "organization"],
                &["traits", "autonomous_system_organization"],
                &["traits", "isp"],
            ],
        }
    }
}
