//! `acme_certificate`: the names of a certificate, and what issuers can validate.

use std::net::IpAddr;
use std::sync::Arc;

use super::{key_of, known};
use crate::ast::Node;
use crate::diagnostic::Diagnostic;
use crate::drafts::{AcmeDraft, WantedCertificate};
use crate::identifiers::{is_dns_name, of_dotted, only_www};
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
    let asked = || wanted.issuers.iter().map(|at| &r.http.acme.conf.issuers[*at]);
    let kinds = IdentifierKinds {
        wildcards: asked().all(IssuerConf::takes_wildcards),
        addresses: asked().all(IssuerConf::takes_addresses),
    };
    let mut gathered = Gathered::default();
    if wanted.names.is_empty() {
        names.iter().for_each(|name| gathered.server_name(name, kinds));
    } else {
        wanted.names.iter().for_each(|name| gathered.name(name, kinds));
    }
    let mut say = |level, text| {
        r.note(r.http.closed, Diagnostic::new(level, text, Some(wanted.place.clone())));
    };
    let (names, left_out) = match gathered.end() {
        Ok(gathered) => gathered,
        Err(text) => {
            say(LogLevel::Emerg, text);
            return None;
        }
    };
    left_out.into_iter().for_each(|text| say(LogLevel::Warn, text));
    let (issuers, key, place) = (wanted.issuers.clone(), wanted.key, wanted.place.clone());
    Some(r.http.acme.order(IssuedConf { issuers, names, key, place }))
}

/// The identifiers of a certificate, as they are collected.
#[derive(Default)]
struct Gathered {
    names: Vec<Box<str>>,
    /// Why there is no certificate.
    fault: Option<String>,
    /// What the certificate lacks.
    left_out: Vec<String>,
}

impl Gathered {
    fn server_name(&mut self, name: &ServerName, kinds: IdentifierKinds) {
        let text = |name: String| {
            format!(
                "\"acme_certificate\" cannot take the server name \"{name}\", name the identifiers"
            )
        };
        match name {
            ServerName::Exact(name) if name.is_empty() => {}
            ServerName::Exact(name) | ServerName::SuffixOrSelf(name) => self.name(name, kinds),
            ServerName::Suffix(name) => self.name(&format!("*{name}"), kinds),
            ServerName::Prefix(name) => self.fail(text(format!("{name}*"))),
            ServerName::Regex(regex) => {
                self.left_out.push(text(format!("~{}", show(regex.source()))));
            }
        }
    }

    fn name(&mut self, name: &str, kinds: IdentifierKinds) {
        let Some(host) = name.strip_prefix('.') else { return self.add(name.into(), kinds) };
        if host.parse::<IpAddr>().is_ok() {
            return self.add(host.into(), kinds);
        }
        for one in of_dotted(host, kinds.wildcards) {
            self.add(one, kinds);
        }
        if !kinds.wildcards {
            self.left_out.push(only_www("acme_certificate", host));
        }
    }

    fn add(&mut self, name: Box<str>, kinds: IdentifierKinds) {
        match judge(name, kinds) {
            Ok(name) if !self.names.contains(&name) => self.names.push(name),
            Ok(_) => {}
            Err(text) => self.fail(text),
        }
    }

    fn fail(&mut self, text: String) {
        self.fault.get_or_insert(text);
    }

    /// The names, and what the certificate lacks; or why there is no certificate.
    fn end(mut self) -> Result<(Vec<Box<str>>, Vec<String>), String> {
        match self.fault {
            Some(text) => Err(text),
            None if self.names.is_empty() && self.left_out.is_empty() => {
                Err("no names for \"acme_certificate\"".to_owned())
            }
            None if self.names.is_empty() => Err(self.left_out.swap_remove(0)),
            None => Ok((self.names, self.left_out)),
        }
    }
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
