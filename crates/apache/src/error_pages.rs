//! `ProxyErrorOverride`: error pages of backends, for which those of the server stand.

use crate::out::ConfText;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::quoted;

/// The location of the page for errors without a document.
const PAGE: &str = "@apache_error";

/// The target of an `ErrorDocument` that is an address, with its status.
pub(crate) fn document(node: &ApacheNode) -> Option<(u16, String)> {
    let words = node.words();
    let [status, to] = &words[..] else { return None };
    let is_address = to.starts_with('/') || to.contains("://");
    let status = status.parse().ok().filter(|_| node.lower == "errordocument")?;
    (is_address && !to.contains('$')).then(|| (status, to.clone()))
}

/// What a location has that passes requests on.
pub(crate) fn write(server: &Server<'_>, node: &ApacheNode, out: &mut ConfText) {
    out.put(&node.place, "proxy_intercept_errors on;");
    let only: Vec<u16> = node.words().iter().skip(1).filter_map(|it| it.parse().ok()).collect();
    let mut codes: Vec<u16> = if only.is_empty() { (400..600).collect() } else { only };
    codes.retain(|code| is_status(*code));
    // Those of a location stand for all of the server's.
    for one in server.own.iter().rev().chain(server.main.iter().rev()) {
        let Some((status, to)) = document(one) else { continue };
        if codes.contains(&status) {
            out.put(&one.place, format!("error_page {status} {};", quoted(&to)));
            codes.retain(|code| *code != status);
        }
    }
    let all: Vec<String> = codes.iter().map(ToString::to_string).collect();
    if !all.is_empty() {
        out.own(format!("error_page {} {PAGE};", all.join(" ")));
    }
}

/// Whether `error_page` knows a status: some of nginx's own are not sent.
fn is_status(code: u16) -> bool {
    !(494..=499).contains(&code)
}

/// The page of a server where backends' pages are replaced.
pub(crate) fn page(server: &Server<'_>, out: &mut ConfText) {
    let mut replaces = false;
    for node in server.main.iter().chain(server.own) {
        node.each(&mut |one| {
            replaces |= one.lower == "proxyerroroverride" && one.keyword() == "on";
        });
    }
    if replaces {
        out.own(format!("location {PAGE} {{"));
        out.own("    default_type text/html;");
        let text = "<html><head><title>Error</title></head><body><h1>Error</h1></body></html>";
        out.own(format!("    return 200 \"{text}\";"));
        out.own("}");
    }
}
