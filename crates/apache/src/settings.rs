//! What `http` and `server` have alike, and which directives have no effect at all.

use crate::body::is_line;
use crate::logs::{self, Formats};
use crate::names;
use crate::out::ConfText;
use crate::tree::ApacheNode;
use crate::words::quoted;

/// Directives that have their effect outside of sections by this file and its neighbours.
const HANDLED: &[&str] = &[
    "requestheaderearly",
    "usecanonicalname",
    "<directory",
    "<directorymatch",
    "<files",
    "<filesmatch",
    "<if",
    "<elseif",
    "<else",
    "<location",
    "<locationmatch",
    "<proxy",
    "<proxymatch",
    "<virtualhost",
    "alias",
    "aliasmatch",
    "customlog",
    "documentroot",
    "errordocument",
    "errorlog",
    "group",
    "keepalive",
    "keepalivetimeout",
    "limitrequestbody",
    "listen",
    "logformat",
    "loglevel",
    "maxkeepaliverequests",
    "pidfile",
    "protocols",
    "proxypass",
    "proxypassmatch",
    "proxypassreverse",
    "proxypassreversecookiedomain",
    "proxypassreversecookiepath",
    "proxypreservehost",
    "proxyaddheaders",
    "proxytimeout",
    "proxyerroroverride",
    "redirect",
    "redirectmatch",
    "redirectpermanent",
    "redirecttemp",
    "remoteipheader",
    "remoteiptrustedproxy",
    "remoteipinternalproxy",
    "remoteipproxyprotocol",
    "remoteipproxyprotocolexceptions",
    "rewritecond",
    "rewriteengine",
    "rewriterule",
    "scriptalias",
    "scriptaliasmatch",
    "serveralias",
    "servername",
    "serverpath",
    "servertokens",
    "sslcacertificatefile",
    "sslcarevocationcheck",
    "sslcarevocationfile",
    "sslcarevocationpath",
    "sslcertificatechainfile",
    "sslcertificatefile",
    "sslcertificatekeyfile",
    "sslciphersuite",
    "sslengine",
    "sslocspenable",
    "sslprotocol",
    "sslproxycacertificatefile",
    "sslproxycarevocationcheck",
    "sslproxycarevocationfile",
    "sslproxycarevocationpath",
    "sslproxycheckpeercn",
    "sslproxycheckpeerexpire",
    "sslproxycheckpeername",
    "sslproxyengine",
    "sslproxyverify",
    "sslproxyverifydepth",
    "sslverifyclient",
    "sslverifydepth",
    "suexecusergroup",
    "assignuserid",
    "ruidgid",
    "suphp_usergroup",
    "timeout",
    "traceenable",
    "transferlog",
    "typesconfig",
    "user",
    "directoryindex",
    "options",
    "allowoverride",
    "fallbackresource",
    "php_admin_flag",
    "php_admin_value",
    "rewriteoptions",
];

/// What `http` and `server` have alike.
pub(crate) fn common(nodes: &[ApacheNode], formats: &Formats, out: &mut ConfText) {
    let last = |name: &str| nodes.iter().rfind(|node| node.lower == name);
    let seconds = |node: &ApacheNode| node.first().parse::<u32>().ok();
    if let Some(node) = last("timeout")
        && let Some(time) = seconds(node)
    {
        for name in [
            "client_header_timeout",
            "client_body_timeout",
            "send_timeout",
            "proxy_read_timeout",
            "fastcgi_read_timeout",
        ] {
            out.put(&node.place, format!("{name} {time}s;"));
        }
    }
    match (last("keepalive"), last("keepalivetimeout")) {
        (Some(node), _) if node.keyword() == "off" => {
            out.put(&node.place, "keepalive_timeout 0;");
        }
        (_, Some(node)) => {
            let word = node.first();
            let text = if word.ends_with("ms") { word } else { format!("{word}s") };
            out.put(&node.place, format!("keepalive_timeout {};", quoted(&text)));
        }
        _ => {}
    }
    if let Some(node) = last("maxkeepaliverequests") {
        let most = seconds(node).filter(|most| *most > 0).unwrap_or(1_000_000_000);
        out.put(&node.place, format!("keepalive_requests {most};"));
    }
    if let Some(node) = last("servertokens") {
        let is_full = matches!(&node.keyword()[..], "full" | "os" | "min" | "minimal");
        out.put(&node.place, format!("server_tokens {};", if is_full { "on" } else { "off" }));
    }
    let mut least: Option<(u64, &ApacheNode)> = None;
    for node in nodes {
        node.each(&mut |node| {
            if node.lower == "limitrequestbody"
                && let Ok(size) = node.first().parse::<u64>()
                && (size > 0 || least.is_none())
                && least.is_none_or(|(known, _)| known == 0 || size < known)
            {
                least = Some((size, node));
            }
        });
    }
    if let Some((size, node)) = least {
        out.put(&node.place, format!("client_max_body_size {size};"));
    }
    if let Some(node) = last("errorlog") {
        logs::error_log(node, last("loglevel"), out);
    }
    for node in nodes.iter().filter(|node| matches!(&node.lower[..], "customlog" | "transferlog")) {
        logs::access_log(node, formats, out);
    }
    for node in nodes.iter().filter(|node| node.lower == "errordocument") {
        let words = node.words();
        match &words[..] {
            [status, to] if to.starts_with('/') || to.contains("://") => {
                let is_plain = !to.contains('$') && status.parse::<u16>().is_ok();
                match is_plain {
                    true => out.put(&node.place, format!("error_page {status} {};", quoted(to))),
                    false => out.note(&node.place, format!("ErrorDocument {}", node.rest)),
                }
            }
            // Texts are said below, with what files have.
            _ => {}
        }
    }
}

/// Directives that name trusted proxies.
pub(crate) const PROXIES: [&str; 2] = ["remoteipinternalproxy", "remoteiptrustedproxy"];

/// `RemoteIPHeader` of a server, which inherits what the main server has.
pub(crate) fn real_ip(nodes: &[ApacheNode], main: &[ApacheNode], out: &mut ConfText) {
    let is_own =
        |node: &&ApacheNode| node.lower == "remoteipheader" || PROXIES.contains(&&node.lower[..]);
    if !nodes.iter().any(|node| is_own(&node)) {
        return;
    }
    let find = |nodes: &'_ [ApacheNode]| {
        nodes.iter().rfind(|node| node.lower == "remoteipheader").cloned()
    };
    let Some(header) = find(nodes).or_else(|| find(main)) else { return };
    let is_proxy = |node: &&ApacheNode| PROXIES.contains(&&node.lower[..]);
    let mut proxies: Vec<&ApacheNode> = nodes.iter().filter(is_proxy).collect();
    if proxies.is_empty() {
        proxies = main.iter().filter(is_proxy).collect();
    }
    for node in &proxies {
        for word in node.words() {
            out.put(&node.place, format!("set_real_ip_from {};", quoted(&word)));
        }
    }
    if proxies.is_empty() {
        out.note(&header.place, "RemoteIPHeader without a list of proxies: any is trusted");
        out.own("set_real_ip_from 0.0.0.0/0;");
        out.own("set_real_ip_from ::/0;");
    }
    // Apache takes all lines of a field for one.
    let words = match &header.keyword()[..] {
        "x-forwarded-for" => "X-Forwarded-For".to_owned(),
        _ => format!("{} all", quoted(&header.first())),
    };
    out.put(&header.place, format!("real_ip_header {words};"));
    out.own("real_ip_recursive on;");
}

/// Tells of directives that are not understood; whether one of them may restrict.
pub(crate) fn unknown(nodes: &[ApacheNode], out: &mut ConfText) -> bool {
    let mut closes = false;
    for node in nodes {
        let reads_others =
            node.lower == "accessfilename" && node.words() != [".htaccess".to_owned()];
        if reads_others {
            out.comment_closed(&node.place, format_args!("{} {}", node.name, node.rest));
            closes = true;
        } else if let Some(why) = names::idle(&node.lower) {
            out.note(&node.place, format!("{}: {why}", node.name));
        } else if HANDLED.contains(&&node.lower[..]) || is_line(node) {
            // It has its effect.
        } else if names::guards(&node.lower) {
            out.comment_closed(&node.place, format_args!("{} {}", node.name, node.rest));
            closes = true;
        } else {
            out.note(&node.place, format!("{} {}: not translated", node.name, node.rest));
        }
    }
    closes
}
