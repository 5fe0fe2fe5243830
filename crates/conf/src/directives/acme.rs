//! Certificates ordered from issuers that speak ACME (RFC 8555), and HTTPS without further words.

use std::net::IpAddr;
use std::sync::Arc;

use crate::ast::Node;
use crate::auto_https::{self, is_dns_name};
use crate::diagnostic::Diagnostic;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, Inheritance, accepted, flag, leaf, own, value,
};
use crate::drafts::{AcmeDraft, AutoHttps, AutoIssuers, WantedCertificate};
use crate::model::{
    IssuedConf, IssuedId, IssuedKey, IssuerAccount, IssuerChallenge, IssuerConf, IssuerKey,
    LogLevel, ServerName,
};
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, invalid_parameter, show};
use crate::value as values;

const I: Contexts = Contexts::ACME_ISSUER;

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
        .without("none: it must be written"),
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
             `ssl_certificate_key`. Further issuers are asked where those before them fail.",
            "acme_certificate a;",
        )
        .takes(
            "NAME [HOST…] [key=ecdsa[:256|:384|:521] | key=rsa[:2048|:3072|:4096]] \
                [fallback=NAME…]",
        )
        .without("none"),
    value("auto_https", Contexts::HS, Args::at_least(1), auto)
        .doc(
            "HTTPS for the public names of the server: a certificate from the issuers, in this \
             order, or from Let's Encrypt, whose terms of service `on` agrees to; port 443 with \
             HTTP/2 and HTTP/3 where no `listen` has `ssl`; redirects from HTTP.",
            "auto_https on;",
        )
        .takes("on | off | NAME…")
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
    if made.uri.is_empty() && !r.diagnostics.has_failed() {
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

fn known(r: &ConfReader, name: &[u8]) -> Result<usize, ReadFault> {
    let unknown = || ReadFault::Text(format!("unknown acme_issuer \"{}\"", show(name)));
    find(r, name).ok_or_else(unknown)
}

fn certificate(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.again {
        return Err(DUPLICATE);
    }
    let mut issuers = vec![known(r, node.arg(0))?];
    let (mut names, mut key) = (Vec::new(), IssuedKey::default());
    for word in node.args().skip(1) {
        if let Some(text) = word.strip_prefix(b"key=") {
            let invalid = || ReadFault::Text(format!("unsupported key \"{}\"", show(text)));
            key = key_of(text)?.ok_or_else(invalid)?;
        } else if let Some(name) = word.strip_prefix(b"fallback=") {
            let next = known(r, name)?;
            if !issuers.contains(&next) {
                issuers.push(next);
            }
        } else {
            names.push(show(word).to_ascii_lowercase().into_boxed_str());
        }
    }
    let place = r.place(node);
    r.scope.acme.wanted = Some(Arc::new(WantedCertificate { issuers, names, key, place }));
    Ok(())
}

fn auto(r: &mut ConfReader, node: &Node) -> ReadResult {
    let place = r.place(node);
    let issuers = match node.arg(0) {
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
                let next = known(r, word)?;
                if !issuers.contains(&next) {
                    issuers.push(next);
                }
            }
            AutoIssuers::Named(issuers)
        }
    };
    let is_own = r.scope.context == Contexts::SERVER;
    r.scope.acme.auto = Some(Arc::new(AutoHttps { issuers, place, is_own }));
    Ok(())
}

/// What `$acme_certificate` stands for in the server block that ends; `None` after an error, and
/// where no `acme_certificate` is.
pub(super) fn settle(
    r: &mut ConfReader,
    draft: &AcmeDraft,
    names: &[ServerName],
) -> Option<IssuedId> {
    let wanted = draft.wanted.as_ref()?;
    let names = match wanted.names.is_empty() {
        true => names_of(names),
        false => wanted.names.iter().map(|name| Ok(name.clone())).collect(),
    };
    let accepts_wildcards = wanted
        .issuers
        .iter()
        .all(|at| matches!(r.http.acme.conf.issuers[*at].challenge, IssuerChallenge::Dns(_)));
    let mut all: Vec<Box<str>> = Vec::new();
    let mut fault = None;
    for name in names {
        match name.and_then(|name| judge(name, accepts_wildcards)) {
            Ok(name) if !all.contains(&name) => all.push(name),
            Ok(_) => {}
            Err(text) => fault = fault.or(Some(text)),
        }
    }
    if all.is_empty() && fault.is_none() {
        fault = Some("no names for \"acme_certificate\"".to_owned());
    }
    if let Some(text) = fault {
        let place = Some(wanted.place.clone());
        r.note(r.http.closed, Diagnostic::new(LogLevel::Emerg, text, place));
        return None;
    }
    let (issuers, key, place) = (wanted.issuers.clone(), wanted.key, wanted.place.clone());
    Some(r.http.acme.order(IssuedConf { issuers, names: all, key, place }))
}

/// The names of a server as identifiers, or why one is none.
fn names_of(names: &[ServerName]) -> Vec<Result<Box<str>, String>> {
    let one = |name: &ServerName| match name {
        ServerName::Exact(text) => Ok(text.clone()),
        ServerName::SuffixOrSelf(text) => Ok(text[1..].into()),
        ServerName::Suffix(text) => Ok(format!("*{text}").into()),
        ServerName::Prefix(text) => Err(format!("{text}*")),
        ServerName::Regex(regex) => Err(format!("~{}", show(regex.source()))),
    };
    let text = |name: String| {
        format!("\"acme_certificate\" cannot take the server name \"{name}\", name the identifiers")
    };
    let named = names.iter().filter(|name| **name != ServerName::Exact("".into()));
    named.map(|name| one(name).map_err(text)).collect()
}

/// The name, if a certificate can have it.
fn judge(name: Box<str>, accepts_wildcards: bool) -> Result<Box<str>, String> {
    let bare = name.strip_prefix("*.").unwrap_or(&name);
    if bare.len() < name.len() && !accepts_wildcards {
        let text = format!("a certificate for \"{name}\" needs issuers with the \"dns\" challenge");
        return Err(text);
    }
    match bare.parse::<IpAddr>() {
        Ok(ip) if bare.len() == name.len() && !accepts_wildcards => Ok(ip.to_string().into()),
        Ok(_) => Err(format!("the \"dns\" challenge does not validate the address \"{name}\"")),
        Err(_) if is_dns_name(bare) => Ok(name),
        Err(_) => Err(format!("invalid identifier \"{name}\" of a certificate")),
    }
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_certificate_has_dns_names_and_addresses() {
        let is_fine = |name: &str, wild| judge(name.into(), wild).is_ok();
        assert!(
            is_fine("a.com", false) && is_fine("x", false) && is_fine("xn--bcher-kva.de", false)
        );
        assert!(is_fine("10.0.0.1", false) && is_fine("::1", false) && !is_fine("::1", true));
        assert!(is_fine("*.a.com", true) && !is_fine("*.a.com", false) && !is_fine("*.*.a", true));
        for wrong in ["_", "a..b", "-a.com", "a b", "b\u{fc}cher.de", "a.com.", "a/b", ""] {
            assert!(!is_fine(wrong, true), "{wrong}");
        }
        assert_eq!(judge("2001:DB8:0::1".into(), false), Ok("2001:db8::1".into()));
    }
}
