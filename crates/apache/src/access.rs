//! Who may come in to what has no files (`proxy_pass`, a status page): `Require` and its kin in
//! nginx's words, where they say exactly that.

use crate::body::SectionKind;
use crate::names;
use crate::out::ConfText;
use crate::tree::ApacheNode;
use crate::words::{has_variable, quoted};

/// Rules of access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessWords {
    /// `allow`, `deny`, `auth_basic`, `auth_basic_user_file`
    pub(crate) lines: Vec<String>,
}

/// Directives about access in a section, flat.
fn is_about_access(lower: &str) -> bool {
    ["auth", "require", "<require", "allow", "deny", "order", "satisfy", "sslrequire", "<limit"]
        .iter()
        .any(|start| lower.starts_with(start))
        && lower != "allowoverride"
}

/// What `nodes` say about who may come in.
///
/// # Errors
///
/// What cannot be said.
pub(crate) fn words(nodes: &[ApacheNode]) -> Result<AccessWords, String> {
    let mut all = AccessWords::default();
    let (mut asks_user, mut realm, mut file) = (false, None, None);
    let (mut order, mut allows_all, mut denies_all) = (false, false, false);
    let (mut hosts, mut grants, mut denies) = (Vec::new(), false, false);
    for node in nodes.iter().filter(|node| is_about_access(&node.lower)) {
        let text = || format!("{} {}", node.name, node.rest);
        let args = node.words();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        match (&node.lower[..], &args[..]) {
            ("authtype", [kind]) if kind.eq_ignore_ascii_case("basic") => {}
            ("authbasicprovider", [kind]) if kind.eq_ignore_ascii_case("file") => {}
            ("authname", [name]) if !has_variable(name) => realm = Some((*name).to_owned()),
            ("authuserfile", [name]) if !has_variable(name) => file = Some((*name).to_owned()),
            ("require", ["all", "granted"]) => grants = true,
            ("require", ["all", "denied"]) => denies = true,
            ("require", ["valid-user"]) => asks_user = true,
            ("require", ["local"]) => {
                hosts.extend(["127.0.0.0/8", "::1"].map(str::to_owned));
            }
            ("require", ["ip", nets @ ..]) => {
                for net in nets {
                    hosts.push(network(net).ok_or_else(text)?);
                }
            }
            ("order", [_]) => order = true,
            ("allow", ["from", "all"]) => allows_all = true,
            ("deny", ["from", "all"]) => denies_all = true,
            _ => return Err(text()),
        }
    }
    match (order, allows_all, denies_all) {
        (_, false, true) => denies = true,
        (false, false, false) | (_, true, false) => {}
        (_, true, true) | (true, false, false) => return Err("Order, Allow and Deny".to_owned()),
    }
    // With both kinds of rules, both have to let a client in.
    if denies_all {
        (grants, asks_user) = (false, false);
        hosts.clear();
    }
    match (grants, asks_user, hosts.is_empty(), denies) {
        // One of several is enough.
        (true, ..) | (false, false, true, false) => {}
        (false, asks, is_open, _) => {
            if !is_open || !asks {
                all.lines.extend(hosts.iter().map(|net| format!("allow {net};")));
                all.lines.push("deny all;".to_owned());
            }
            if asks {
                let (Some(realm), Some(file)) = (realm, file) else {
                    return Err("AuthName or AuthUserFile are missing".to_owned());
                };
                if !is_open {
                    all.lines.push("satisfy any;".to_owned());
                }
                all.lines.push(format!("auth_basic {};", quoted(&realm)));
                all.lines.push(format!("auth_basic_user_file {};", quoted(&file)));
            }
        }
    }
    Ok(all)
}

/// A network in nginx's form.
fn network(text: &str) -> Option<String> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    if address.contains(':') {
        return address.parse::<std::net::Ipv6Addr>().ok().map(|_| text.to_owned());
    }
    let parts: Vec<&str> = address.trim_end_matches('.').split('.').collect();
    if parts.len() > 4 || parts.iter().any(|part| part.parse::<u8>().is_err()) {
        return None;
    }
    let full = parts.iter().copied().chain(std::iter::repeat_n("0", 4 - parts.len()));
    let full = full.collect::<Vec<_>>().join(".");
    let bits = match bits {
        None => 8 * parts.len(),
        Some(bits) if bits.contains('.') => {
            let mask = u32::from(bits.parse::<std::net::Ipv4Addr>().ok()?);
            let ones = mask.leading_ones();
            (mask.count_ones() == ones).then_some(ones as usize)?
        }
        Some(bits) => bits.parse().ok().filter(|bits| *bits <= 32)?,
    };
    Some(format!("{full}/{bits}"))
}

/// Writes what sections say about a place without files; it is closed where that cannot be said.
pub(crate) fn write(sections: &[&ApacheNode], out: &mut ConfText) {
    let (mut last, mut closes) = (None, false);
    for section in sections {
        match words(&section.children) {
            Ok(words) if section.children.iter().any(|node| is_about_access(&node.lower)) => {
                last = Some((section, words));
            }
            Ok(_) => {}
            Err(why) => {
                let what = format!("{} {}>: {why}", section.name, section.rest);
                out.note_closed(&section.place, what);
                closes = true;
            }
        }
        for node in &section.children {
            let is_imported = is_about_access(&node.lower)
                || matches!(&node.lower[..], "sethandler" | "options" | "allowoverride")
                || node.lower.starts_with("proxy")
                || node.lower.starts_with("header")
                || node.lower.starts_with("requestheader");
            if is_imported {
                continue;
            }
            if names::guards(&node.lower) {
                out.note_closed(&node.place, format_args!("{} {}", node.name, node.rest));
                closes = true;
            } else {
                out.note(&node.place, format!("{} {}: without effect here", node.name, node.rest));
            }
        }
    }
    if closes {
        out.own("return 503;");
    } else if let Some((section, words)) = last {
        words.lines.into_iter().for_each(|line| out.put(&section.place, line));
    }
}

/// Whether a section of this kind has a say about paths of requests.
pub(crate) fn is_location(node: &ApacheNode) -> bool {
    matches!(&node.lower[..], "<location" | "<locationmatch")
}

/// The kind of a section.
pub(crate) fn kind(node: &ApacheNode) -> SectionKind {
    match &node.lower[..] {
        "<directory" | "<directorymatch" => SectionKind::Directory,
        _ => SectionKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn networks_have_all_their_parts() {
        let rows = [
            ("10", Some("10.0.0.0/8")),
            ("192.168.", Some("192.168.0.0/16")),
            ("10.1.2.3", Some("10.1.2.3/32")),
            ("10.1.0.0/255.255.0.0", Some("10.1.0.0/16")),
            ("10.1.0.0/255.0.255.0", None),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("example.org", None),
        ];
        for (text, wanted) in rows {
            assert_eq!(network(text).as_deref(), wanted, "{text}");
        }
    }
}
