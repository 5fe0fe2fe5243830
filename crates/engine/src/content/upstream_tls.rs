//! The TLS settings of an upstream request: the expected name, and our certificate.
//!
//! The worker does the handshake; nothing here reads files.

use std::sync::Arc;

use bolide_conf::model::{OriginTlsConf, PemName};
use bolide_upstream::Secure;

use crate::content::proxied::pass_url;
use crate::exchange::NextStep;
use crate::site::UpstreamPass;
use crate::vars::VariableScope;

/// The TLS settings of this request; none for plain text.
///
/// # Errors
///
/// TLS is required, but there are no settings for it.
pub(crate) fn of(
    scope: &VariableScope<'_>,
    pass: &UpstreamPass,
) -> Result<Option<Arc<Secure>>, NextStep> {
    let Some(url) = pass_url(scope).filter(|url| url.secure) else { return Ok(None) };
    let (settings, conf) = find(scope.site.origin_tls(), pass.secure)?;
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
    Ok(Some(Arc::new(Secure {
        site: scope.site.serial(),
        settings,
        name: name.into(),
        certificate: pems.map(|(chain, key)| [expanded(chain), expanded(key)]),
    })))
}

/// The settings at this index.
fn find(all: &[Arc<OriginTlsConf>], index: Option<u32>) -> Result<(u32, &OriginTlsConf), NextStep> {
    let found = index.and_then(|index| Some((index, &**all.get(index as usize)?)));
    found.ok_or(NextStep::Fail(500))
}

/// Where the port begins, with its colon; as in nginx, not within brackets.
fn without_port(name: &[u8]) -> usize {
    let is_bracketed = name.first() == Some(&b'[');
    let from = name.iter().position(|byte| *byte == b']').filter(|_| is_bracketed).unwrap_or(0);
    name[from..].iter().position(|byte| *byte == b':').map_or(name.len(), |at| from + at)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{NextStep, find, without_port};

    #[test]
    fn without_settings_nothing_is_said_in_the_clear() {
        let all = [Arc::default()];
        assert!(matches!(find(&all, Some(0)), Ok((0, _))));
        for index in [None, Some(1)] {
            assert!(matches!(find(&all, index), Err(NextStep::Fail(500))));
        }
    }

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
