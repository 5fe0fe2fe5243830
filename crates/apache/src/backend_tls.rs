//! TLS to backends: mod_ssl's `SSLProxy…` in the words of `proxy_ssl_…`.

use crate::access::PlaceSection;
use crate::import::ConfPlace;
use crate::matching::Reach;
use crate::out::ConfText;
use crate::proxy::Target;
use crate::tree::ApacheNode;
use crate::verifying::{self, CertOf, VerifyMode};
use crate::words::quoted;

/// Writes what a location has of TLS to its backend. `all` are the directives that hold there,
/// `sections` those about some of its requests, too, and `place` is the line that passes them on.
pub(crate) fn write<'a>(
    all: &[&'a ApacheNode],
    sections: &[PlaceSection<'a>],
    (place, target): (&ConfPlace, &Target),
    out: &mut ConfText,
) {
    if !target.is_tls {
        return;
    }
    let last = |name: &str| all.iter().rfind(|node| node.lower == name).copied();
    let is_on = |name: &str| last(name).is_some_and(|node| node.keyword() == "on");
    if let Some(node) = of_some(sections) {
        out.comment_closed(&node.place, format_args!("{} {}: for some", node.name, node.rest));
        return out.own("return 503;");
    }
    let Some(engine) = last("sslproxyengine").filter(|node| node.keyword() == "on") else {
        out.note(place, "https without SSLProxyEngine on is a 500 in Apache, too");
        return out.own("return 500;");
    };
    match (last("proxypreservehost").filter(|_| is_on("proxypreservehost")), &target.names[..]) {
        (None, [_, _, ..]) => out.note(&engine.place, "no name is sent to several backends (SNI)"),
        (host, names) => {
            out.put(&engine.place, "proxy_ssl_server_name on;");
            if let Some(node) = host {
                out.put(&node.place, "proxy_ssl_name $host;");
            } else if let [name] = names {
                out.own(format!("proxy_ssl_name {};", quoted(name)));
            }
        }
    }
    let asked = last("sslproxyverify");
    match asked.map(|node| (node, VerifyMode::of(node))) {
        None | Some((_, Some(VerifyMode::Off))) => {
            if let Some(node) = asked {
                out.put(&node.place, "proxy_ssl_verify off;");
            }
            unverified(&last, place, out);
        }
        // A backend always has a certificate.
        Some((node, Some(VerifyMode::On | VerifyMode::Optional))) => {
            if target.names.len() > 1 && !is_on("proxypreservehost") {
                out.comment_closed(&node.place, format_args!("{}: of several names", node.name));
                return out.own("return 503;");
            }
            let line = "proxy_ssl_verify on;".to_owned();
            verifying::write(CertOf::Backend, (node, line), &last, out);
            for node in CHECKS.iter().filter_map(|name| last(name)) {
                out.note(&node.place, format!("{} {}: both are checked", node.name, node.rest));
            }
        }
        Some((node, Some(VerifyMode::AnyAuthority) | None)) => {
            out.comment_closed(&node.place, format_args!("{} {}", node.name, node.rest));
            out.own("return 503;");
        }
    }
}

const CHECKS: [&str; 3] =
    ["sslproxycheckpeername", "sslproxycheckpeercn", "sslproxycheckpeerexpire"];

/// A directive that holds for some of the requests of a place.
fn of_some<'a>(sections: &[PlaceSection<'a>]) -> Option<&'a ApacheNode> {
    let some = sections.iter().filter(|section| section.reach != Reach::All);
    some.flat_map(|section| &section.node.children).find(|node| node.lower.starts_with("sslproxy"))
}

/// Tells what Apache checks of a certificate whose authority it does not ask for, and nginx does
/// not.
fn unverified<'a>(
    last: &dyn Fn(&str) -> Option<&'a ApacheNode>,
    place: &ConfPlace,
    out: &mut ConfText,
) {
    let [name, common_name, expire] = CHECKS.map(last);
    for node in [name, common_name, expire].into_iter().flatten() {
        out.note(&node.place, format!("{} {}: not checked alone", node.name, node.rest));
    }
    let is_off = |node: Option<&ApacheNode>| node.map(|node| node.keyword() == "off");
    // Of the two directives about the name the older one counts where the other is not written.
    let skips_name = is_off(name).or(is_off(common_name)).unwrap_or_default();
    let skips_expiry = is_off(expire).unwrap_or_default();
    let unchecked = match (skips_name, skips_expiry) {
        (true, true) => return,
        (true, false) => "the date",
        (false, true) => "the name",
        (false, false) => "the name and the date",
    };
    out.unverified(place, unchecked);
}
