//! Certificates ordered from issuers that speak ACME (RFC 8555), and HTTPS without further words.

mod certificate;

use std::sync::Arc;
use std::time::Duration;

use crate::ast::Node;
use crate::auto_https::{self, LOCAL};
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, Inheritance, accepted, flag, leaf, own, value,
};
use crate::drafts::{AutoHttps, AutoIssuers};
use crate::model::{
    DemandedRate, IssuedKey, IssuerAccount, IssuerAuthority, IssuerChallenge, IssuerConf, IssuerKey,
};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_parameter, show};
use crate::value as values;
use certificate::certificate;
pub(super) use certificate::settle;

const I: Contexts = Contexts::ACME_ISSUER;
/// LIMIT: how long a certificate of a local authority lasts, in seconds: what clients take is
/// less, and a root lasts ten years.
const LIFETIME: std::ops::RangeInclusive<u64> = 10..=90 * 24 * 3600;

/// Directives of a local authority.
const LOCAL_HAS: [&[u8]; 5] =
    [b"local", b"state_path", b"on_demand_ask", b"on_demand_rate", b"on_demand_names"];
/// LIMIT: names of clients that have certificates, by one directive.
const DEMANDED_MAX: usize = 10_000;

pub(super) const TABLE: &[DirectiveSpec] = &[
    leaf("acme_issuer", Contexts::HTTP, Args::ONE, Inheritance::Own, issuer)
        .doc(
            "An issuer of certificates, asked by ACME.",
            "acme_issuer a { uri https://acme.a.com/directory; accept_terms_of_service; }",
        )
        .takes("NAME"),
    value("uri", I, Args::ONE, uri)
        .doc("The URL of the issuer's directory.", "uri https://acme.a.com/directory;")
        .takes("URL")
        .without("none: it must be written, unless `local` is"),
    value("local", I, Args::between(0, 1), local)
        .doc(
            "This server is the issuer, without any network: it makes a root, which clients have \
             to trust, and certificates for any names of that `lifetime`.",
            "local lifetime=1d;",
        )
        .takes("[lifetime=TIME]")
        .without("the issuer is asked by ACME"),
    value("account_key", I, Args::ONE, |r, node| {
        let key = match key_of(node.arg(0))? {
            Some(key @ IssuedKey::EcdsaP256) => IssuerKey::Made(key),
            Some(_) => {
                let text = format!(
                    "account key \"{}\" is not implemented yet: only \"ecdsa:256\" is made",
                    show(node.arg(0))
                );
                return Err(ReadFault::Text(text));
            }
            None => IssuerKey::File(r.beside_conf(node.arg(0))),
        };
        this(r).account_key = key;
        Ok(())
    })
    .doc("The key of the account: its algorithm, or its file.", "account_key ecdsa:256;")
    .takes("ecdsa[:256] | FILE")
    .default("ecdsa:256"),
    value("challenge", I, Args::between(1, 2), challenge)
        .doc(
            "How the issuer validates names: by a request on port 80, by a handshake on port 443, \
             or by a record that a program writes (`PROGRAM present|cleanup NAME TEXT`).",
            "challenge tls-alpn-01;",
        )
        .takes("http-01 | http | tls-alpn-01 | tls-alpn | dns FILE")
        .default("http-01"),
    own("contact", I, Args::ONE, |r, node| {
        let text = show(node.arg(0)).into_owned();
        let has_scheme = text.split_once(':').is_some_and(|(scheme, _)| {
            let mut bytes = scheme.bytes();
            bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
        this(r).contacts.push(if has_scheme { text } else { format!("mailto:{text}") });
        Ok(())
    })
    .doc("An address at which the issuer reaches the operator.", "contact admin@a.com;")
    .takes("URL | TEXT")
    .without("none"),
    value("external_account_key", I, Args::TWO, |r, node| {
        if node.arg(1).starts_with(b"data:") {
            let text = "keys in \"external_account_key\" itself are not implemented yet";
            return Err(ReadFault::Text(text.to_owned()));
        }
        let (kid, key_file) = (show(node.arg(0)).into_owned(), r.beside_conf(node.arg(1)));
        this(r).external_account = Some(IssuerAccount { kid, key_file });
        Ok(())
    })
    .doc(
        "An account that the issuer knows already: its name, and a file with its key in base64url.",
        "external_account_key kid-1 eab.key;",
    )
    .takes("NAME FILE")
    .without("none"),
    value("preferred_chain", I, Args::ONE, |r, node| {
        this(r).preferred_chain = Some(show(node.arg(0)).into_owned());
        Ok(())
    })
    .doc(
        "Of several chains, the one whose last certificate was issued by this common name.",
        "preferred_chain \"ISRG Root X1\";",
    )
    .takes("NAME")
    .without("the chain that the issuer sends first"),
    value("profile", I, Args::between(1, 2), |r, node| {
        let is_required = match node.args().nth(1) {
            None => false,
            Some(b"require") => true,
            Some(word) => return Err(invalid_parameter(word)),
        };
        this(r).profile = Some((show(node.arg(0)).into_owned(), is_required));
        Ok(())
    })
    .doc("The kind of certificate; `require` fails orders without it.", "profile shortlived;")
    .takes("NAME [require]")
    .without("the issuer's own choice"),
    value("ssl_trusted_certificate", I, Args::ONE, |r, node| {
        let path = r.beside_conf(node.arg(0));
        this(r).trusted_certificate = Some(path);
        Ok(())
    })
    .doc("The authorities of the issuer's own certificate.", "ssl_trusted_certificate ca.crt;")
    .takes("FILE")
    .without("the authorities of the system"),
    flag("ssl_verify", I, |r| &mut this(r).verify)
        .doc("Whether the issuer's own certificate is verified.", "ssl_verify on;"),
    value("state_path", I, Args::ONE, |r, node| {
        let path = match node.arg(0) {
            b"off" => None,
            path => Some(r.below_prefix(path)),
        };
        let issuer = this(r);
        (issuer.state_path, issuer.state_parent) = (path, None);
        Ok(())
    })
    .doc(
        "The directory of the account, keys and certificates; `off` forgets them at the end.",
        "state_path /var/lib/bolide/acme_a;",
    )
    .takes("DIRECTORY | off")
    .without(
        "`acme_NAME` below the prefix, or below `/var/lib/bolide` where the prefix is \
         `/etc/bolide`",
    ),
    value("accept_terms_of_service", I, Args::NONE, |r, _| {
        this(r).accepts_terms = true;
        Ok(())
    })
    .doc("Agrees to the issuer's terms of service.", "accept_terms_of_service;")
    .without("not agreed"),
    value("on_demand_ask", I, Args::ONE, ask)
        .doc(
            "Who allows names for which clients want a certificate (`on_demand`): each name is \
             asked about by `GET URL?domain=NAME` before it is ordered, and 200 allows it.",
            "on_demand_ask http://127.0.0.1:9000/allowed;",
        )
        .takes("URL")
        .without("`on_demand` is refused"),
    value("on_demand_rate", I, Args::ONE, |r, node| {
        this(r).on_demand_rate = rate(node.arg(0)).ok_or_else(|| invalid_parameter(node.arg(0)))?;
        Ok(())
    })
    .doc("How many names of clients are asked about in a time.", "on_demand_rate 30r/m;")
    .takes("NUMBERr/s | NUMBERr/m | NUMBERr/h")
    .default("10r/m"),
    value("on_demand_names", I, Args::ONE, |r, node| {
        let number = values::number(node.arg(0)).and_then(|number| usize::try_from(number).ok());
        let usable = number.filter(|number| (1..=DEMANDED_MAX).contains(number));
        this(r).on_demand_names = usable.ok_or_else(|| invalid_parameter(node.arg(0)))?;
        Ok(())
    })
    .doc(
        "How many names of clients get certificates; further ones get none.",
        "on_demand_names 50;",
    )
    .takes("NUMBER")
    .default("1000"),
    accepted("acme_shared_zone", Contexts::HTTP, Args::ONE, DirectiveForm::Check(shared_zone))
        .doc(
            "Without effect: workers are threads, which share certificates and challenges anyway.",
            "acme_shared_zone zone=acme:1M;",
        )
        .takes("zone=NAME:SIZE"),
    own("acme_certificate", Contexts::SERVER, Args::at_least(1), certificate)
        .doc(
            "Orders a certificate for these names, or those of `server_name`; `$acme_certificate` \
             and `$acme_certificate_key` stand for it in `ssl_certificate` and \
             `ssl_certificate_key`. Further issuers are asked where those before them fail. \
             `local` is an authority of this server, unless an `acme_issuer` has that name. \
             `on_demand` orders one for each name that clients ask for, if `on_demand_ask` of the \
             issuer allows it.",
            "acme_certificate a;",
        )
        .takes(
            "NAME [HOST… | on_demand] [key=ecdsa[:256|:384|:521] | key=rsa[:2048|:3072|:4096]] \
                [fallback=NAME…]",
        )
        .without("none"),
    value("auto_https", Contexts::HS, Args::at_least(1), auto)
        .doc(
            "HTTPS for the public names of the server: a certificate from the issuers, in this \
             order, or from Let's Encrypt, whose terms of service `on` agrees to; port 443 with \
             HTTP/2 and HTTP/3 where no `listen` has `ssl`; redirects from HTTP. `local` is an \
             authority of this server, for any names; with `on local` it serves servers without \
             a public name.",
            "auto_https on;",
        )
        .takes("on [local] | off | NAME…")
        .default("off"),
];

/// The issuer being read.
fn this(r: &mut ConfReader) -> &mut IssuerConf {
    r.http
        .acme
        .conf
        .issuers
        .last_mut()
        .expect("rows of the block are read after the block is added")
}

fn issuer(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (name, shown) = (node.arg(0), show(node.arg(0)));
    let is_fine = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    if !name.iter().all(is_fine) || name.is_empty() || matches!(name, b"on" | b"off") {
        return Err(ReadFault::Text(format!("invalid acme_issuer name \"{shown}\"")));
    }
    if find(r, name).is_some() {
        return Err(ReadFault::Text(format!("duplicate acme_issuer \"{shown}\"")));
    }
    let made = auto_https::issuer(&r.options, &shown, r.place(node));
    r.http.acme.conf.issuers.push(made);
    let scope = r.inner_scope(I);
    let _ = r.read_leaf(node, scope);
    let made = this(r).clone();
    if r.diagnostics.has_failed() {
        return Ok(());
    }
    if made.is_local() {
        check_local(&made, node)?;
    } else if made.uri.is_empty() {
        return Err(ReadFault::Text(format!("no \"uri\" in acme_issuer \"{shown}\"")));
    }
    let others = &r.http.acme.conf.issuers[..r.http.acme.conf.issuers.len() - 1];
    let same = others
        .iter()
        .find(|other| made.state_path.is_some() && other.state_path == made.state_path);
    if let (Some(other), Some(path)) = (same, &made.state_path) {
        let (path, other) = (path.display(), &other.name);
        let text = format!("the state_path \"{path}\" is that of acme_issuer \"{other}\"");
        return Err(ReadFault::Text(text));
    }
    Ok(())
}

/// What an authority of this server has no use for.
fn check_local(made: &IssuerConf, node: &Node) -> ReadResult {
    let inside = node.block.iter().flat_map(|block| &block.nodes).map(Node::name);
    let is_useless = |name: &&[u8]| !LOCAL_HAS.contains(name);
    let name = &made.name;
    if let Some(useless) = inside.into_iter().find(is_useless) {
        let text = format!("\"{}\" has no use in the local acme_issuer \"{name}\"", show(useless));
        return Err(ReadFault::Text(text));
    }
    if made.state_path.is_none() {
        let text = format!("the local acme_issuer \"{name}\" needs a \"state_path\" for its root");
        return Err(ReadFault::Text(text));
    }
    Ok(())
}

fn local(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut lifetime = auto_https::LOCAL_LIFETIME;
    if let Some(word) = node.args().next() {
        let text = word.strip_prefix(b"lifetime=").ok_or_else(|| invalid_parameter(word))?;
        let time = values::time(text, values::Unit::Seconds);
        let is_usable = |time: &Duration| LIFETIME.contains(&time.as_secs());
        lifetime = time.filter(is_usable).ok_or_else(|| invalid_parameter(word))?;
    }
    this(r).authority = IssuerAuthority::Local { lifetime };
    Ok(())
}

/// Whether a URL without its scheme begins with a host and, at most, a port (RFC 3986 §3.2).
fn has_authority(rest: &str) -> bool {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_host = match host.strip_prefix('[') {
        Some(rest) => {
            rest.strip_suffix(']').is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok())
        }
        None => !host.is_empty() && !host.contains(['@', ':', '[', ']', '\\']),
    };
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|n| n > 0)
    };
    is_host && port.is_none_or(is_port)
}

fn ask(r: &mut ConfReader, node: &Node) -> ReadResult {
    let text = show(node.arg(0)).into_owned();
    let rest = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !is_plain || !rest.is_some_and(has_authority) {
        return Err(ReadFault::Text(format!("invalid URL \"{text}\" in \"on_demand_ask\"")));
    }
    this(r).on_demand_ask = Some(text);
    Ok(())
}

/// `10r/m`
fn rate(text: &[u8]) -> Option<DemandedRate> {
    let (unit, seconds) = [(&b"r/s"[..], 1), (b"r/m", 60), (b"r/h", 3600)]
        .into_iter()
        .find(|(unit, _)| text.ends_with(unit))?;
    let count = values::number(&text[..text.len() - unit.len()])?;
    let count = u32::try_from(count).ok().filter(|count| (1..=1000).contains(count))?;
    Some(DemandedRate { count, seconds })
}

fn uri(r: &mut ConfReader, node: &Node) -> ReadResult {
    let text = show(node.arg(0)).into_owned();
    // RFC 8555 §6.1: communication uses HTTPS.
    let is_https = text.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
    if !is_https || text.len() == 8 {
        return Err(ReadFault::Text(format!(
            "invalid uri \"{text}\", it must begin with https://"
        )));
    }
    this(r).uri = text;
    Ok(())
}

fn challenge(r: &mut ConfReader, node: &Node) -> ReadResult {
    let chosen = match (node.arg(0), node.args().nth(1)) {
        (b"http-01" | b"http", None) => IssuerChallenge::Http,
        (b"tls-alpn-01" | b"tls-alpn", None) => IssuerChallenge::TlsAlpn,
        (b"dns-01" | b"dns", Some(program)) => IssuerChallenge::Dns(r.below_prefix(program)),
        (b"dns-01" | b"dns", None) => {
            return Err(ReadFault::Text("the \"dns\" challenge needs a program".to_owned()));
        }
        (word, _) => {
            let text = format!("unsupported challenge \"{}\"", show(word));
            return Err(ReadFault::Text(text));
        }
    };
    this(r).challenge = chosen;
    Ok(())
}

fn shared_zone(_: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    let zone = word.strip_prefix(b"zone=").ok_or_else(|| invalid_parameter(word))?;
    let colon = zone.iter().position(|byte| *byte == b':').unwrap_or(0);
    let is_sized = zone.get(colon + 1..).and_then(values::size).is_some_and(|size| size > 0);
    if colon == 0 || !is_sized {
        return Err(ReadFault::Text(format!("invalid zone size \"{}\"", show(word))));
    }
    Ok(())
}

/// The algorithm that a word names; `None` if it is no such word.
fn key_of(word: &[u8]) -> Result<Option<IssuedKey>, ReadFault> {
    Ok(Some(match word {
        b"ecdsa" | b"ecdsa:256" => IssuedKey::EcdsaP256,
        b"ecdsa:384" => IssuedKey::EcdsaP384,
        b"ecdsa:521" => IssuedKey::EcdsaP521,
        b"rsa" | b"rsa:2048" => IssuedKey::Rsa2048,
        b"rsa:3072" => IssuedKey::Rsa3072,
        b"rsa:4096" => IssuedKey::Rsa4096,
        _ if word.starts_with(b"ecdsa:") || word.starts_with(b"rsa:") => {
            return Err(ReadFault::Text(format!("unsupported key \"{}\"", show(word))));
        }
        _ => return Ok(None),
    }))
}

/// The issuer of that name.
fn find(r: &ConfReader, name: &[u8]) -> Option<usize> {
    r.http.acme.conf.issuers.iter().position(|one| one.name.as_bytes() == name)
}

/// The issuer of that name; `local` needs no block.
fn known(r: &mut ConfReader, node: &Node, name: &[u8]) -> Result<usize, ReadFault> {
    if let Some(found) = find(r, name) {
        return Ok(found);
    }
    if name != LOCAL.as_bytes() {
        return Err(ReadFault::Text(format!("unknown acme_issuer \"{}\"", show(name))));
    }
    let mut made = auto_https::issuer(&r.options, LOCAL, r.place(node));
    made.authority = IssuerAuthority::Local { lifetime: auto_https::LOCAL_LIFETIME };
    let issuers = &mut r.http.acme.conf.issuers;
    issuers.push(made);
    Ok(issuers.len() - 1)
}

fn auto(r: &mut ConfReader, node: &Node) -> ReadResult {
    let place = r.place(node);
    let mut private = None;
    let issuers = match node.arg(0) {
        b"on" if node.arg(1) == LOCAL.as_bytes() && node.args_count() == 2 => {
            private = Some(known(r, node, node.arg(1))?);
            AutoIssuers::Implied
        }
        b"on" | b"off" if node.args_count() > 1 => {
            return Err(invalid_parameter(node.args().nth(1).unwrap_or_default()));
        }
        b"off" => {
            r.scope.acme.auto = None;
            return Ok(());
        }
        b"on" => AutoIssuers::Implied,
        _ => {
            let mut issuers = Vec::new();
            for word in node.args() {
                let next = known(r, node, word)?;
                if !issuers.contains(&next) {
                    issuers.push(next);
                }
            }
            AutoIssuers::Named(issuers)
        }
    };
    let is_own = r.scope.context == Contexts::SERVER;
    r.scope.acme.auto = Some(Arc::new(AutoHttps { issuers, private, place, is_own }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DemandedRate, rate};

    #[test]
    fn a_rate_is_a_number_of_questions_in_a_time() {
        let of = |text: &str| rate(text.as_bytes()).map(|rate| (rate.count, rate.seconds));
        assert_eq!(
            (of("1r/s"), of("10r/m"), of("5r/h")),
            (Some((1, 1)), Some((10, 60)), Some((5, 3600)))
        );
        for wrong in ["", "r/m", "0r/m", "1r/d", "1.5r/m", "-1r/m", "1001r/s", "10"] {
            assert_eq!(of(wrong), None::<(u32, u32)>, "{wrong}");
        }
        assert_eq!(rate(b"2r/m"), Some(DemandedRate { count: 2, seconds: 60 }));
    }
}
