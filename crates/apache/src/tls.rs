//! mod_ssl's directives in nginx's words.

use crate::out::ConfText;
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::verifying::{self, CertOf, VerifyMode};
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
    let word = match VerifyMode::of(node) {
        Some(VerifyMode::Off) => return out.put(&node.place, "ssl_verify_client off;"),
        Some(VerifyMode::On) => "on",
        Some(VerifyMode::Optional) => "optional",
        Some(VerifyMode::AnyAuthority) => "optional_no_ca",
        None => {
            out.comment_closed(&node.place, format_args!("SSLVerifyClient {}", node.rest));
            return out.own("return 503;");
        }
    };
    // No authority is asked whether a certificate is still good.
    let asks = server.last("sslocspenable").filter(|node| node.keyword() != "off");
    if let Some(node) = asks {
        out.comment_closed(&node.place, format_args!("{} {}", node.name, node.rest));
        return out.own("return 503;");
    }
    let line = format!("ssl_verify_client {word};");
    verifying::write(CertOf::Client, (node, line), &|name| server.last(name), out);
}
