//! `geoip2`, `geoip_country`, `geoip_city`, `geoip_org`: variables from databases in MaxMind's
//! format. Such a file is read into memory as a whole when the configuration is, and again when
//! `auto_reload` finds that it has changed; one that is damaged is refused, and an old one stays.

use std::path::PathBuf;

use bolide_base::limits::{GEO_NUMBERS_MAX, GEO_PATH_MAX};

use super::access::network;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, Inheritance, flag, leaf, list, value};
use crate::model::{ClassicGeo, Definition, GeoIpFile, GeoIpMetadata, GeoIpValue, GeoIpVar, Who};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_parameter, show};
use crate::value::{Unit, time};

const HTTP: Contexts = Contexts::HTTP;

pub(super) const TABLE: &[DirectiveSpec] = &[
    leaf("geoip2", HTTP, Args::ONE, Inheritance::Own, geoip2)
        .doc(
            "A database of addresses, and variables from it: `VARIABLE [default=TEXT] \
             [source=TEXT] WORD …;` is the value at that path of the record of an address, a \
             number in it being an index of an array. `VARIABLE metadata build_epoch | last_check \
             | last_change;` tells of the database, and `auto_reload SECONDS;` how often its file \
             is looked at.",
            "geoip2 /var/lib/GeoIP/GeoLite2-Country.mmdb { auto_reload 1h; \
             $country default=XX country iso_code; }",
        )
        .takes("FILE")
        .without("none"),
    list("geoip2_proxy", HTTP, Args::ONE, |r, node| {
        let who = trusted(r, node)?;
        r.http.geoip.geoip2.trusted.push(who);
        Ok(())
    })
    .doc(
        "A proxy whose `X-Forwarded-For` tells the address that `geoip2` looks up.",
        "geoip2_proxy 192.0.2.0/24;",
    )
    .takes("NETWORK")
    .without("none"),
    flag("geoip2_proxy_recursive", HTTP, |r| &mut r.http.geoip.geoip2.recursive).doc(
        "Whether `geoip2` takes the last address of `X-Forwarded-For` that is not itself a \
         `geoip2_proxy`.",
        "geoip2_proxy_recursive on;",
    ),
    value("geoip_country", HTTP, Args::between(1, 2), |r, node| {
        classic(r, node, "geoip_country", COUNTRY)
    })
    .doc(
        "The database for `$geoip_country_code`, `$geoip_country_code3` and \
         `$geoip_country_name`.",
        "geoip_country /var/lib/GeoIP/GeoLite2-Country.mmdb;",
    )
    .takes("FILE [utf8]")
    .without("none"),
    value("geoip_city", HTTP, Args::between(1, 2), |r, node| classic(r, node, "geoip_city", CITY))
        .doc(
            "The database for `$geoip_city`, `$geoip_region` and their kin.",
            "geoip_city /var/lib/GeoIP/GeoLite2-City.mmdb;",
        )
        .takes("FILE [utf8]")
        .without("none"),
    value("geoip_org", HTTP, Args::between(1, 2), |r, node| classic(r, node, "geoip_org", ORG))
        .doc("The database for `$geoip_org`.", "geoip_org /var/lib/GeoIP/GeoLite2-ASN.mmdb;")
        .takes("FILE [utf8]")
        .without("none"),
    list("geoip_proxy", HTTP, Args::ONE, |r, node| {
        let who = trusted(r, node)?;
        r.http.geoip.geoip.trusted.push(who);
        Ok(())
    })
    .doc(
        "A proxy whose `X-Forwarded-For` tells the address that `geoip_country` and its kin look \
         up.",
        "geoip_proxy 192.0.2.0/24;",
    )
    .takes("NETWORK")
    .without("none"),
    flag("geoip_proxy_recursive", HTTP, |r| &mut r.http.geoip.geoip.recursive).doc(
        "Whether `geoip_country` and its kin take the last address of `X-Forwarded-For` that is \
         not a `geoip_proxy`.",
        "geoip_proxy_recursive on;",
    ),
];

type ClassicNames = &'static [(&'static str, ClassicGeo)];

const COUNTRY: ClassicNames = &[
    ("geoip_country_code", ClassicGeo::CountryCode),
    ("geoip_country_code3", ClassicGeo::CountryCode3),
    ("geoip_country_name", ClassicGeo::CountryName),
];
const CITY: ClassicNames = &[
    ("geoip_city_continent_code", ClassicGeo::ContinentCode),
    ("geoip_city_country_code", ClassicGeo::CountryCode),
    ("geoip_city_country_code3", ClassicGeo::CountryCode3),
    ("geoip_city_country_name", ClassicGeo::CountryName),
    ("geoip_region", ClassicGeo::Region),
    ("geoip_region_name", ClassicGeo::RegionName),
    ("geoip_city", ClassicGeo::City),
    ("geoip_postal_code", ClassicGeo::PostalCode),
    ("geoip_latitude", ClassicGeo::Latitude),
    ("geoip_longitude", ClassicGeo::Longitude),
    ("geoip_dma_code", ClassicGeo::DmaCode),
];
const ORG: ClassicNames = &[("geoip_org", ClassicGeo::Organization)];

/// Whether nginx's own module has a variable of this name, which has no value where no directive
/// names a database for it.
pub(crate) fn is_classic(name: &str) -> bool {
    [COUNTRY, CITY, ORG].iter().any(|names| names.iter().any(|(known, _)| *known == name))
}

fn trusted(r: &mut ConfReader, node: &Node) -> Result<Who, ReadFault> {
    let word = node.arg(0);
    let Some(read) = network(word) else {
        return Err(ReadFault::Text(format!("invalid network \"{}\"", show(word))));
    };
    if read.has_low_bits {
        r.warn(format!("low address bits of {} are meaningless", show(word)));
    }
    Ok(Who::Network(read.network))
}

/// The number of a new database.
fn database(
    r: &mut ConfReader,
    node: &Node,
    directive: &'static str,
    path: PathBuf,
) -> Result<u16, ReadFault> {
    let place = r.place(node);
    let databases = &mut r.http.geoip.databases;
    let Ok(number) = u16::try_from(databases.len()) else {
        return Err(ReadFault::Text("too many databases".to_owned()));
    };
    databases.push(GeoIpFile { path, directive, place, reload_seconds: 0 });
    Ok(number)
}

fn classic(
    r: &mut ConfReader,
    node: &Node,
    directive: &'static str,
    names: ClassicNames,
) -> ReadResult {
    if node.args_count() == 2 && node.arg(1) != b"utf8" {
        return Err(invalid_parameter(node.arg(1)));
    }
    let path = r.below_prefix(node.arg(0));
    let database = database(r, node, directive, path)?;
    for (name, what) in names {
        let var = GeoIpVar { database, value: GeoIpValue::Classic(*what), default: None };
        r.define_as(name, Definition::GeoIp(Box::new(var)))?;
    }
    Ok(())
}

fn geoip2(r: &mut ConfReader, node: &Node) -> ReadResult {
    let path = r.below_prefix(node.arg(0));
    let is_known = |file: &GeoIpFile| file.directive == "geoip2" && file.path == path;
    if r.http.geoip.databases.iter().any(is_known) {
        return Err(ReadFault::Text(format!("Duplicate GeoIP2 mmdb - {}", path.display())));
    }
    let number = database(r, node, "geoip2", path)?;
    for entry in node.block.as_ref().map_or(&[][..], |block| &block.nodes) {
        let parsed = row(r, number, entry);
        r.judge(entry, parsed);
    }
    Ok(())
}

fn row(r: &mut ConfReader, database: u16, entry: &Node) -> ReadResult {
    if entry.block.is_some() {
        return Err(ReadFault::Text("unexpected \"{\"".to_owned()));
    }
    let word = entry.name();
    if word == b"auto_reload" {
        return auto_reload(r, database, entry);
    }
    if word.first() != Some(&b'$') {
        return Err(ReadFault::Text(format!("invalid setting \"{}\"", show(word))));
    }
    let name = ConfReader::defined_name(word)?;
    let (mut default, mut source) = (None, None);
    let mut used = 0;
    for index in 0..entry.args_count() {
        let arg = entry.arg(index);
        let Some(mark) = arg.iter().position(|byte| *byte == b'=') else { break };
        used = index + 1;
        let setting =
            || ReadFault::Text(format!("invalid setting \"{}\" for \"{}\"", show(arg), show(word)));
        let (key, text) = (&arg[..mark], &arg[mark + 1..]);
        let is_again = match key {
            _ if text.is_empty() => return Err(setting()),
            b"default" => default.replace(Box::from(text)).is_some(),
            b"source" if text[0] != b'$' => {
                let text = format!("invalid source variable name \"{}\"", show(text));
                return Err(ReadFault::Text(text));
            }
            b"source" => source.replace(r.template(text)?).is_some(),
            _ => return Err(setting()),
        };
        if is_again {
            let (key, word) = (show(key), show(word));
            let text = format!("{key} has already been declared for  \"{word}\"");
            return Err(ReadFault::Text(text));
        }
    }
    let words = (used..entry.args_count()).map(|index| entry.arg(index));
    let value = if words.clone().next().is_some_and(|first| first == b"metadata") {
        GeoIpValue::Metadata(metadata(entry, used)?)
    } else {
        let path: Box<[Box<[u8]>]> = words.map(Box::from).collect();
        check_path(&path)?;
        GeoIpValue::Path(path, source)
    };
    let var = GeoIpVar { database, value, default };
    r.define_as(&name, Definition::GeoIp(Box::new(var)))?;
    Ok(())
}

/// Refuses what no database can have, or what would have to be looked for in too many places.
fn check_path(path: &[Box<[u8]>]) -> ReadResult {
    let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    let wrong = if path.iter().any(|word| std::str::from_utf8(word).is_err()) {
        "the path is not UTF-8".to_owned()
    } else if path.len() > GEO_PATH_MAX {
        format!("the path has more than {GEO_PATH_MAX} words")
    } else if path.iter().filter(|word| is_number(word)).count() > GEO_NUMBERS_MAX {
        format!("the path has more than {GEO_NUMBERS_MAX} numbers")
    } else {
        return Ok(());
    };
    Err(ReadFault::Text(wrong))
}

fn metadata(entry: &Node, at: usize) -> Result<GeoIpMetadata, ReadFault> {
    match (entry.args_count() - at, entry.args_count()) {
        (2, count) => match entry.arg(count - 1) {
            b"build_epoch" => Ok(GeoIpMetadata::BuildEpoch),
            b"last_check" => Ok(GeoIpMetadata::LastCheck),
            b"last_change" => Ok(GeoIpMetadata::LastChange),
            other => Err(ReadFault::Text(format!("unknown metadata \"{}\"", show(other)))),
        },
        _ => Err(ReadFault::Text("metadata has one name".to_owned())),
    }
}

fn auto_reload(r: &mut ConfReader, database: u16, entry: &Node) -> ReadResult {
    if entry.args_count() != 1 {
        let text = "invalid number of arguments for auto_reload";
        return Err(ReadFault::Text(text.to_owned()));
    }
    let word = entry.arg(0);
    let Some(every) = time(word, Unit::Seconds) else {
        let text = format!("invalid interval for auto_reload \"{}\"", show(word));
        return Err(ReadFault::Text(text));
    };
    r.http.geoip.databases[usize::from(database)].reload_seconds = every.as_secs();
    Ok(())
}
