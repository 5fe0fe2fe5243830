//! `acme_certificate`: the names of a certificate, and what issuers can validate.

use std::net::IpAddr;
use std::sync::Arc;

use super::{key_of, known};
use crate::ast::Node;
use crate::auto_https::is_dns_name;
use crate::diagnostic::Diagnostic;
use crate::drafts::{AcmeDraft, WantedCertificate};
use crate::model::{IssuedConf, IssuedId, IssuedKey, IssuerConf, LogLevel, ServerName};
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, show};

pub(super) fn certificate(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.again {
        return Err(DUPLICATE);
    }
    let mut issuers = vec![known(r, node, node.arg(0))?];
    let (mut names, mut key) = (Vec::new(), IssuedKey::default());
    let mut on_demand = false;
    for word in node.args().skip(1) {
        if let Some(text) = word.strip_prefix(b"key=") {
            let invalid = || ReadFault::Text(format!("unsupported key \"{}\"", show(text)));
            key = key_of(text)?.ok_or_else(invalid)?;
        } else if let Some(name) = word.strip_prefix(b"fallback=") {
            let next = known(r, node, name)?;
            if !issuers.contains(&next) {
                issuers.push(next);
            }
        } else if word == b"on_demand" {
            on_demand = true;
        } else {
            names.push(show(word).to_ascii_lowercase().into_boxed_str());
        }
    }
    if on_demand {
        check_demand(r, &issuers, &names)?;
    }
    let place = r.place(node);
    let wanted = WantedCertificate { issuers, names, on_demand, key, place };
    r.scope.acme.wanted = Some(Arc::new(wanted));
    Ok(())
}

/// Names of strangers are ordered only with a permission for each.
fn check_demand(r: &ConfReader, issuers: &[usize], names: &[Box<str>]) -> ReadResult {
    let first = issuers.first().map(|at| &r.http.acme.conf.issuers[*at]);
    if let Some(first) = first.filter(|first| first.on_demand_ask.is_none()) {
        let name = &first.name;
        let text = format!("\"on_demand\" needs \"on_demand_ask\" in acme_issuer \"{name}\"");
        return Err(ReadFault::Text(text));
    }
    match names.first() {
        Some(name) => Err(ReadFault::Text(format!("\"on_demand\" and the name \"{name}\""))),
        None => Ok(()),
    }
}

/// What `$acme_certificate` stands for in the server block that ends; `None` after an error, and
/// where no `acme_certificate` is.
pub(crate) fn settle(
    r: &mut ConfReader,
    draft: &AcmeDraft,
    names: &[ServerName],
) -> Option<IssuedId> {
    let wanted = draft.wanted.as_ref()?;
    if wanted.on_demand {
        let (issuers, key, place) = (wanted.issuers.clone(), wanted.key, wanted.place.clone());
        return Some(r.http.acme.order(IssuedConf { issuers, names: Vec::new(), key, place }));
    }
    let names = match wanted.names.is_empty() {
        true => names_of(names),
        false => wanted.names.iter().map(|name| Ok(name.clone())).collect(),
    };
    let asked = || wanted.issuers.iter().map(|at| &r.http.acme.conf.issuers[*at]);
    let kinds = IdentifierKinds {
        wildcards: asked().all(IssuerConf::takes_wildcards),
        addresses: asked().all(IssuerConf::takes_addresses),
    };
    let mut all: Vec<Box<str>> = Vec::new();
    let mut fault = None;
    for name in names {
        match name.and_then(|name| judge(name, kinds)) {
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

/// What issuers validate beside names.
#[derive(Clone, Copy)]
struct IdentifierKinds {
    wildcards: bool,
    addresses: bool,
}

/// The name, if a certificate can have it.
fn judge(name: Box<str>, kinds: IdentifierKinds) -> Result<Box<str>, String> {
    let bare = name.strip_prefix("*.").unwrap_or(&name);
    if bare.len() < name.len() && !kinds.wildcards {
        let text = format!("a certificate for \"{name}\" needs issuers with the \"dns\" challenge");
        return Err(text);
    }
    match bare.parse::<IpAddr>() {
        Ok(ip) if bare.len() == name.len() && kinds.addresses => Ok(ip.to_string().into()),
        Ok(_) => Err(format!("the \"dns\" challenge does not validate the address \"{name}\"")),
        Err(_) if is_dns_name(bare) => Ok(name),
        Err(_) => Err(format!("invalid identifier \"{name}\" of a certificate")),
    }
}

#[cfg(test)]
mod tests {
    use super::{IdentifierKinds, judge};

    #[test]
    fn a_certificate_has_dns_names_and_addresses() {
        let kinds = |wild| IdentifierKinds { wildcards: wild, addresses: !wild };
        let is_fine = |name: &str, wild| judge(name.into(), kinds(wild)).is_ok();
        assert!(
            is_fine("a.com", false) && is_fine("x", false) && is_fine("xn--bcher-kva.de", false)
        );
        assert!(is_fine("10.0.0.1", false) && is_fine("::1", false) && !is_fine("::1", true));
        assert!(is_fine("*.a.com", true) && !is_fine("*.a.com", false) && !is_fine("*.*.a", true));
        for wrong in ["_", "a..b", "-a.com", "a b", "b\u{fc}cher.de", "a.com.", "a/b", ""] {
            assert!(!is_fine(wrong, true), "{wrong}");
        }
        assert_eq!(judge("2001:DB8:0::1".into(), kinds(false)), Ok("2001:db8::1".into()));
        let any = IdentifierKinds { wildcards: true, addresses: true };
        assert!(judge("*.a".into(), any).is_ok() && judge("::1".into(), any).is_ok());
        assert!(judge("*.10.0.0.1".into(), any).is_err());
    }
}
