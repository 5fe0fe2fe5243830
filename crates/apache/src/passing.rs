//! What a location with `proxy_pass` has besides: fields, times, redirects.

use crate::access::PlaceSection;
use crate::backend_tls;
use crate::balancers;
use crate::body::is_line;
use crate::error_pages;
use crate::matching::Reach;
use crate::out::ConfText;
use crate::proxy::{ProxyEntry, Target, option_of};
use crate::redirect::covers;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::{escaped, quoted, with_lower_schemes, words};

/// What a location that passes requests on has besides.
pub(crate) fn write(
    server: &Server<'_>,
    one: &ProxyEntry<'_>,
    path: &str,
    target: &Target,
    sections: &[PlaceSection<'_>],
    out: &mut ConfText,
) {
    let whole = sections.iter().filter(|section| section.reach == Reach::All);
    let inner = whole.flat_map(|section| &section.node.children);
    let all: Vec<&ApacheNode> = server.main.iter().chain(server.own).chain(inner).collect();
    let last = |name: &str| all.iter().rfind(|node| node.lower == name).copied();
    let is_on = |name| last(name).is_some_and(|node: &ApacheNode| node.keyword() == "on");
    if let Some(node) = last("proxypreservehost").filter(|_| is_on("proxypreservehost")) {
        out.put(&node.place, "proxy_set_header Host $http_host;");
    } else if let Some(host) = &target.host {
        out.own(format!("proxy_set_header Host {};", quoted(host)));
    }
    if last("proxyaddheaders").is_none() || is_on("proxyaddheaders") {
        out.own("proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;");
        out.own("proxy_set_header X-Forwarded-Host $apache_forwarded_host;");
        out.own("proxy_set_header X-Forwarded-Server $apache_forwarded_server;");
    }
    if let Some(node) = last("proxyerroroverride").filter(|_| is_on("proxyerroroverride")) {
        error_pages::write(server, node, out);
    }
    let is_upgrade = target.upgrades || one.option("upgrade").is_some();
    if is_upgrade {
        out.own("proxy_http_version 1.1;");
        out.own("proxy_set_header Upgrade $http_upgrade;");
        out.own("proxy_set_header Connection $apache_connection;");
    }
    let timeout = one.option("timeout").map(str::to_owned);
    let timeout = timeout.map(|time| (&one.node.place, time));
    let timeout = timeout.or_else(|| last("proxytimeout").map(|node| (&node.place, node.first())));
    if let Some((place, time)) = timeout.filter(|(_, time)| time.parse::<u32>().is_ok()) {
        out.put(place, format!("proxy_read_timeout {time}s;"));
        out.put(place, format!("proxy_send_timeout {time}s;"));
    }
    for option in &one.options {
        if !["timeout", "upgrade"].iter().any(|name| option_of(option, name).is_some()) {
            out.note(&one.node.place, format!("ProxyPass … {option}: not translated"));
        }
    }
    reverse(server, &all, path, out);
    fields(&all, out);
    sometimes(server, sections, out);
    backend_tls::write(&all, sections, (&one.node.place, target), out);
}

/// `ProxyPassReverse` and its kin.
fn reverse(server: &Server<'_>, all: &[&ApacheNode], path: &str, out: &mut ConfText) {
    let mut has_one = false;
    // A balancer stands for all of its members.
    let from_of = |to: &str| -> Vec<String> {
        let Some(rest) = with_lower_schemes(to).strip_prefix("balancer://").map(str::to_owned)
        else {
            return vec![to.to_owned()];
        };
        let uri = rest.find('/').map_or("", |at| &rest[at..]);
        let members = balancers::upstream(server, &rest).map(|it| it.members).unwrap_or_default();
        members.iter().map(|url| format!("{url}{uri}")).collect()
    };
    for node in all {
        let words = words(&node.rest);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (&node.lower[..], &words[..]) {
            ("proxypassreverse", [from, to]) if covers(path, from) || covers(from, path) => {
                for to in from_of(to) {
                    let text = format!("proxy_redirect {} {};", quoted(&to), quoted(from));
                    out.put(&node.place, text);
                    has_one = true;
                }
            }
            ("proxypassreverse", [to]) => {
                for to in from_of(to) {
                    let text = format!("proxy_redirect {} {};", quoted(&to), quoted(path));
                    out.put(&node.place, text);
                    has_one = true;
                }
            }
            ("proxypassreversecookiepath", [from, to]) => {
                // What begins with the new path already is left as it is.
                let kept = match to.starts_with(from) {
                    true => format!("(?!{})", escaped(to)),
                    false => String::new(),
                };
                let regex = format!("~^{kept}{}(.*)$", escaped(from));
                let to = format!("{to}$1");
                out.put(
                    &node.place,
                    format!("proxy_cookie_path {} {};", quoted(&regex), quoted(&to)),
                );
            }
            ("proxypassreversecookiedomain", [from, to]) => {
                out.put(
                    &node.place,
                    format!("proxy_cookie_domain {} {};", quoted(from), quoted(to)),
                );
            }
            _ => {}
        }
    }
    if !has_one {
        out.own("proxy_redirect off;");
    }
}

/// `RequestHeader` for some of the requests: what a client says for itself must not get through in
/// its place.
fn sometimes(server: &Server<'_>, sections: &[PlaceSection<'_>], out: &mut ConfText) {
    let mut taken: Vec<String> = Vec::new();
    let mut visit = |node: &ApacheNode| {
        if node.lower != "requestheader" {
            return;
        }
        let words = node.words();
        let name = words.iter().filter(|word| !word.eq_ignore_ascii_case("early")).nth(1);
        let Some(name) = name.map(|name| name.trim_end_matches(':').to_owned()) else { return };
        out.note(&node.place, format!("RequestHeader {}: the field is taken away", node.rest));
        if !taken.contains(&name) {
            out.put(&node.place, format!("proxy_set_header {} \"\";", quoted(&name)));
            taken.push(name);
        }
    };
    for section in sections {
        for child in &section.node.children {
            if child.is_section() || section.reach != Reach::All {
                child.each(&mut visit);
            }
        }
    }
    let conditions = ["<if", "<elseif", "<else"];
    for node in server.main.iter().chain(server.own) {
        if conditions.contains(&&node.lower[..]) {
            node.children.iter().for_each(|child| child.each(&mut visit));
        }
    }
}

/// `RequestHeader` and `Header` for what has no files.
fn fields(all: &[&ApacheNode], out: &mut ConfText) {
    for node in all.iter().filter(|node| matches!(&node.lower[..], "requestheader" | "header")) {
        let mut words = node.words();
        if ["always", "onsuccess"].contains(&&node.keyword()[..]) {
            words.remove(0);
        }
        let plain = |text: &str| !text.contains(['%', '$', '\\']);
        let is_request = node.lower == "requestheader";
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let lower = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        match (is_request, &lower[..], &words[1.min(words.len())..]) {
            (true, "set", [name, value]) if plain(value) => {
                out.put(
                    &node.place,
                    format!(
                        "proxy_set_header {} {};",
                        quoted(name.trim_end_matches(':')),
                        quoted(value)
                    ),
                );
            }
            (true, "unset", [name]) => {
                out.put(
                    &node.place,
                    format!("proxy_set_header {} \"\";", quoted(name.trim_end_matches(':'))),
                );
            }
            // What a client says for itself must not get through in its place.
            (true, _, [name, ..]) => {
                out.note(
                    &node.place,
                    format!("RequestHeader {}: the field is taken away", node.rest),
                );
                out.put(
                    &node.place,
                    format!("proxy_set_header {} \"\";", quoted(name.trim_end_matches(':'))),
                );
            }
            (false, "set", [name, value]) if plain(value) => {
                let text = format!("{}: {value}", name.trim_end_matches(':'));
                out.put(&node.place, format!("more_set_headers {};", quoted(&text)));
            }
            (false, "unset", [name]) => {
                out.put(&node.place, format!("more_clear_headers {};", quoted(name)));
            }
            (false, "append" | "add" | "merge", [name, value]) if plain(value) => {
                let text =
                    format!("{} {} always;", quoted(name.trim_end_matches(':')), quoted(value));
                out.put(&node.place, format!("add_header {text}"));
            }
            _ if is_line(node) => {
                out.note(&node.place, format!("{} {}: not for the proxy", node.name, node.rest));
            }
            _ => out.note(&node.place, format!("{} {}: not translated", node.name, node.rest)),
        }
    }
}
