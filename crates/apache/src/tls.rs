//! mod_ssl's directives in nginx's words.

use crate::out::ConfText;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::quoted;

/// Writes what a server has of TLS.
pub(crate) fn write(server: &Server<'_>, out: &mut ConfText) {
    let chain = server.last("sslcertificatechainfile");
    for node in server.all(&["sslcertificatefile"]) {
        out.put(&node.place, format!("ssl_certificate {};", quoted(&node.first())));
        if let Some(chain) = chain {
            out.note(
                &chain.place,
                format!("SSLCertificateChainFile {}: append it to {}", chain.rest, node.first()),
            );
        }
    }
    let mut has_key = false;
    for node in server.all(&["sslcertificatekeyfile"]) {
        out.put(&node.place, format!("ssl_certificate_key {};", quoted(&node.first())));
        has_key = true;
    }
    if !has_key {
        // Apache finds it in the file of the certificate.
        for node in server.all(&["sslcertificatefile"]) {
            out.put(&node.place, format!("ssl_certificate_key {};", quoted(&node.first())));
        }
    }
    if let Some(node) = server.last("sslprotocol") {
        protocols(node, out);
    }
    if let Some(node) = server.last("sslciphersuite") {
        let words = node.words();
        match &words[..] {
            [one] => out.put(&node.place, format!("ssl_ciphers {};", quoted(one))),
            _ => out.note(&node.place, format!("SSLCipherSuite {}: not translated", node.rest)),
        }
    }
    verify(server, out);
}

fn protocols(node: &ApacheNode, out: &mut ConfText) {
    const ALL: [&str; 4] = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
    let mut on: Vec<&str> = Vec::new();
    for word in node.words() {
        let (removes, name) = match word.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, word.trim_start_matches('+')),
        };
        let named: Vec<&str> = match name.eq_ignore_ascii_case("all") {
            true => ALL.to_vec(),
            false => ALL.into_iter().filter(|one| one.eq_ignore_ascii_case(name)).collect(),
        };
        on.retain(|one| !named.contains(one));
        if !removes {
            on.extend(named);
        }
    }
    // The two oldest ones are not spoken.
    on.retain(|one| matches!(*one, "TLSv1.2" | "TLSv1.3"));
    match on.is_empty() {
        true => out.note(&node.place, format!("SSLProtocol {}: TLSv1.2 and TLSv1.3", node.rest)),
        false => out.put(&node.place, format!("ssl_protocols {};", on.join(" "))),
    }
}

fn verify(server: &Server<'_>, out: &mut ConfText) {
    let Some(node) = server.last("sslverifyclient") else { return };
    let word = match &node.first().to_ascii_lowercase()[..] {
        "none" => return out.put(&node.place, "ssl_verify_client off;"),
        "require" => "on",
        "optional" => "optional",
        "optional_no_ca" => "optional_no_ca",
        _ => {
            out.note_closed(&node.place, format_args!("SSLVerifyClient {}", node.rest));
            return out.own("return 503;");
        }
    };
    if let Some(node) = unchecked(server) {
        out.note_closed(&node.place, format_args!("{} {}", node.name, node.rest));
        return out.own("return 503;");
    }
    let Some(authority) = server.last("sslcacertificatefile") else {
        out.note_closed(&node.place, "SSLVerifyClient without SSLCACertificateFile");
        return out.own("return 503;");
    };
    out.put(&authority.place, format!("ssl_client_certificate {};", quoted(&authority.first())));
    out.put(&node.place, format!("ssl_verify_client {word};"));
    if let Some(node) = server.last("sslverifydepth") {
        out.put(&node.place, format!("ssl_verify_depth {};", quoted(&node.first())));
    }
    if let Some(node) = server.last("sslcarevocationfile") {
        out.put(&node.place, format!("ssl_crl {};", quoted(&node.first())));
    }
}

/// What asks for revoked certificates in a way that is not to be had.
fn unchecked<'a>(server: &Server<'a>) -> Option<&'a ApacheNode> {
    let is_off =
        |node: &&ApacheNode| matches!(&node.first().to_ascii_lowercase()[..], "none" | "off" | "");
    let asked = |name| server.last(name).filter(|node| !is_off(node));
    if let Some(node) = asked("sslocspenable") {
        return Some(node);
    }
    let check = asked("sslcarevocationcheck")?;
    // Files with lists are checked wherever they are named.
    match (server.last("sslcarevocationpath"), server.last("sslcarevocationfile")) {
        (Some(path), _) => Some(path),
        (None, None) => Some(check),
        (None, Some(_)) => None,
    }
}
