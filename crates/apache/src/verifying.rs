//! How the certificates of clients and of backends are verified, which Apache and nginx say of both
//! in the same words.

use crate::out::ConfText;
use crate::rules::{RuleLine, Unsaid};
use crate::tree::ApacheNode;
use crate::words::quoted;

/// Whose certificates are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertOf {
    Client,
    Backend,
}

/// What a word of `SSLVerifyClient` or `SSLProxyVerify` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerifyMode {
    Off,
    Optional,
    /// A certificate of an unknown authority is good.
    AnyAuthority,
    On,
}

impl VerifyMode {
    /// Reads the word as Apache does.
    pub(crate) fn of(node: &ApacheNode) -> Option<Self> {
        match &node.keyword()[..] {
            "none" | "off" => Some(Self::Off),
            "optional" => Some(Self::Optional),
            "optional_no_ca" => Some(Self::AnyAuthority),
            "require" | "on" => Some(Self::On),
            _ => None,
        }
    }
}

/// Writes `line`, which turns on what `asked` asks for, and what is verified: the authority, the
/// length of chains, revoked certificates. `last` finds the directive of a name that counts. What
/// cannot be said closes the place.
pub(crate) fn write<'a>(
    whose: CertOf,
    (asked, line): (&ApacheNode, String),
    last: &dyn Fn(&str) -> Option<&'a ApacheNode>,
    out: &mut ConfText,
) {
    let start = match whose {
        CertOf::Client => "ssl",
        CertOf::Backend => "sslproxy",
    };
    let find = |name: &str| last(&format!("{start}{name}"));
    match lines(whose, asked, &find) {
        Ok(lines) => {
            out.put(&asked.place, line);
            lines.iter().for_each(|(place, line)| out.put(place, line));
            if let Some(node) = find("carevocationcheck").filter(|node| !is_none(node)) {
                out.note(&node.place, format!("{} {}: whole chains", node.name, node.rest));
            }
        }
        Err((place, why)) => {
            out.comment_closed(&place, why);
            out.own("return 503;");
        }
    }
}

fn lines<'a>(
    whose: CertOf,
    asked: &ApacheNode,
    find: &dyn Fn(&str) -> Option<&'a ApacheNode>,
) -> Result<Vec<RuleLine>, Unsaid> {
    let (shown, authority, start) = match whose {
        CertOf::Client => ("SSL", "ssl_client_certificate", "ssl"),
        CertOf::Backend => ("SSLProxy", "proxy_ssl_trusted_certificate", "proxy_ssl"),
    };
    let Some(file) = find("cacertificatefile") else {
        let why = format!("{} without {shown}CACertificateFile", asked.name);
        return Err((asked.place.clone(), why));
    };
    let mut all = vec![(file.place.clone(), format!("{authority} {};", quoted(&file.first())))];
    let depth = find("verifydepth");
    let place = depth.map_or(&asked.place, |node| &node.place);
    all.push((place.clone(), format!("{start}_verify_depth {};", between(depth)?)));
    if let Some(node) = unlisted(find) {
        return Err((node.place.clone(), format!("{} {}", node.name, node.rest)));
    }
    // A file with lists is checked wherever it is named, unless the opposite is said.
    let is_off = find("carevocationcheck").is_some_and(is_none);
    if let Some(node) = find("carevocationfile").filter(|_| !is_off) {
        all.push((node.place.clone(), format!("{start}_crl {};", quoted(&node.first()))));
    }
    Ok(all)
}

/// How many certificates may lie between the peer's and the root. Apache counts the root, too, and
/// takes 1 where nothing is said; with 0 no authority is trusted but the peer itself.
fn between(node: Option<&ApacheNode>) -> Result<u32, Unsaid> {
    let Some(node) = node else { return Ok(0) };
    let count = node.first().parse::<u32>().ok().and_then(|count| count.checked_sub(1));
    count.ok_or_else(|| (node.place.clone(), format!("{} {}", node.name, node.rest)))
}

fn is_none(check: &ApacheNode) -> bool {
    check.keyword() == "none"
}

/// What asks for revoked certificates in a way that is not to be had.
fn unlisted<'a>(find: &dyn Fn(&str) -> Option<&'a ApacheNode>) -> Option<&'a ApacheNode> {
    let check = find("carevocationcheck").filter(|node| !is_none(node))?;
    match (find("carevocationpath"), find("carevocationfile")) {
        (Some(path), _) => Some(path),
        (None, None) => Some(check),
        (None, Some(_)) => None,
    }
}
