//! TLS to origins, as a request wants it: who the origin should be, and what it is shown.
//!
//! The handshake itself is the worker's business; nothing here reads files.

use conf::model::PemName;
use upstream::Secure;

use crate::site::Origin;
use crate::vars::Scope;

/// What TLS to the origin of this request is to be like; none if it is spoken to in the clear.
pub(crate) fn of(scope: &Scope<'_>, pass: &Origin) -> Option<Box<Secure>> {
    let url = scope.proxy_url().filter(|url| url.secure)?;
    let settings = pass.secure?;
    let conf = scope.site.origin_tls().get(settings as usize)?;
    let expanded = |pem: &PemName| {
        let mut text = Vec::new();
        scope.expand(&pem.template, &mut text);
        text.into_boxed_slice()
    };
    let mut name = Vec::new();
    match &conf.name {
        Some(template) => scope.expand(template, &mut name),
        None => name.extend_from_slice(&url.host),
    }
    name.truncate(without_port(&name));
    let pems = conf.certificate.as_ref().zip(conf.key.as_ref());
    let pems = pems.filter(|_| conf.computes_certificate());
    Some(Box::new(Secure {
        site: scope.site.serial(),
        settings,
        name: name.into(),
        certificate: pems.map(|(chain, key)| [expanded(chain), expanded(key)]),
    }))
}

/// Where the port of a name begins, with its colon; as in nginx, not within brackets.
fn without_port(name: &[u8]) -> usize {
    let is_bracketed = name.first() == Some(&b'[');
    let from = name.iter().position(|byte| *byte == b']').filter(|_| is_bracketed).unwrap_or(0);
    name[from..].iter().position(|byte| *byte == b':').map_or(name.len(), |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::without_port;

    #[test]
    fn a_port_is_no_part_of_a_name() {
        for (text, name) in [
            ("a.test", "a.test"),
            ("a.test:8443", "a.test"),
            ("[::1]:8443", "[::1]"),
            ("[::1]", "[::1]"),
            ("[::1", "["),
            (":1", ""),
            ("", ""),
        ] {
            assert_eq!(&text[..without_port(text.as_bytes())], name, "{text}");
        }
    }
}
