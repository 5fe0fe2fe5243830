//! `<Proxy balancer://…>` as `upstream`.

use crate::access;
use crate::out::ConfText;
use crate::tree::ApacheNode;

/// Writes the `upstream` of each balancer.
pub(crate) fn write(nodes: &[&ApacheNode], out: &mut ConfText) {
    for node in nodes {
        let Some(name) = node.first().strip_prefix("balancer://").map(bare_name) else { continue };
        out.open(&node.place, format!("upstream {name}"));
        let mut has_member = false;
        for child in &node.children {
            let words = child.words();
            match (&child.lower[..], words.first()) {
                ("balancermember", Some(url)) => {
                    has_member |= member(child, url, &words[1..], out);
                }
                ("proxyset", _) if child.rest.contains("lbmethod=bybusyness") => {
                    out.put(&child.place, "least_conn;");
                }
                (lower, _) if access::is_about_access(lower) => {
                    let text = format!("{} {}: where it is passed on", child.name, child.rest);
                    out.note(&child.place, text);
                }
                _ => {
                    out.note(
                        &child.place,
                        format!("{} {}: not translated", child.name, child.rest),
                    );
                }
            }
        }
        if !has_member {
            // An upstream without servers is an error.
            out.own("server 127.0.0.1:9 down;");
        }
        out.close();
    }
}

pub(crate) fn bare_name(rest: &str) -> String {
    let name = rest.split('/').next().unwrap_or_default();
    format!(
        "balancer_{}",
        name.replace(|one: char| !one.is_ascii_alphanumeric() && one != '-', "_")
    )
}

fn member(node: &ApacheNode, url: &str, options: &[String], out: &mut ConfText) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        out.note(&node.place, format!("BalancerMember {url}: not understood"));
        return false;
    };
    let host = rest.split('/').next().unwrap_or_default();
    let port = match (
        host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()),
        scheme,
    ) {
        (true, _) => "",
        (false, "https") => ":443",
        (false, _) => ":80",
    };
    let mut text = format!("server {host}{port}");
    for option in options {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "loadfactor" if value.parse::<u32>().is_ok() => {
                text.push_str(&format!(" weight={value}"));
            }
            "status" if value.contains('H') => text.push_str(" backup"),
            "status" if value.contains('D') => text.push_str(" down"),
            "retry" if value.parse::<u32>().is_ok() => {
                text.push_str(&format!(" fail_timeout={value}"));
            }
            _ => out.note(&node.place, format!("BalancerMember … {option}: not translated")),
        }
    }
    out.put(&node.place, format!("{text};"));
    true
}
