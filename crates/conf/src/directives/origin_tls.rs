//! TLS to upstreams: `proxy_ssl_*`, `uwsgi_ssl_*` and `grpc_ssl_*`.

use std::path::PathBuf;
use std::sync::Arc;

use super::tls::{plain_file, push_command, read_certificate_cache, read_protocols};
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, number, value};
use crate::model::{OPENSSL_COMMANDS, OriginTlsConf, PemName};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};

const HSL: Contexts = Contexts::HSL;

/// The rows of each family.
macro_rules! rows {
    ($family:literal) => {
        &[
            value(concat!($family, "_ssl_certificate"), HSL, Args::ONE, |r, node| {
                pem(r, node, |conf| &mut conf.certificate)
            })
            .doc(
                "The client certificate for upstreams that request one.",
                concat!($family, "_ssl_certificate client.crt;"),
            )
            .takes("FILE | TEXT")
            .without("none"),
            value(concat!($family, "_ssl_certificate_key"), HSL, Args::ONE, |r, node| {
                pem(r, node, |conf| &mut conf.key)
            })
            .doc(
                "The key of that certificate.",
                concat!($family, "_ssl_certificate_key client.key;"),
            )
            .takes("FILE | TEXT")
            .without("none"),
            value(
                concat!($family, "_ssl_certificate_cache"),
                HSL,
                Args::between(1, 3),
                |r, node| {
                    tls(r).certificate_cache = read_certificate_cache(node)?;
                    Ok(())
                },
            )
            .doc(
                "The cache of certificates named by variables.",
                concat!($family, "_ssl_certificate_cache max=100;"),
            )
            .takes("max=NUMBER [inactive=SECONDS] [valid=SECONDS] | off")
            .default("off"),
            value(concat!($family, "_ssl_password_file"), HSL, Args::ONE, |r, node| {
                let file = (r.beside_conf(node.arg(0)), r.place(node));
                tls(r).password_file = Some(file);
                Ok(())
            })
            .doc(
                "The file with pass phrases for the key.",
                concat!($family, "_ssl_password_file passwords;"),
            )
            .takes("FILE")
            .without("none"),
            list(concat!($family, "_ssl_protocols"), HSL, Args::at_least(1), |r, node| {
                read_protocols(r, node, |r| &mut tls(r).protocols)
            })
            .doc("The TLS versions for upstreams.", concat!($family, "_ssl_protocols TLSv1.3;"))
            .takes("SSLv2 | SSLv3 | TLSv1 | TLSv1.1 | TLSv1.2 | TLSv1.3…")
            .default("TLSv1.2 TLSv1.3"),
            value(concat!($family, "_ssl_ciphers"), HSL, Args::ONE, |r, node| {
                tls(r).ciphers = show(node.arg(0)).into_owned();
                Ok(())
            })
            .doc(
                "The TLS 1.2 ciphers for upstreams, as an OpenSSL cipher string.",
                concat!($family, "_ssl_ciphers HIGH;"),
            )
            .takes("CIPHERS")
            .default("DEFAULT"),
            list(concat!($family, "_ssl_conf_command"), HSL, Args::TWO, conf_command)
                .doc(
                    "An OpenSSL configuration command for upstreams.",
                    concat!(
                        $family,
                        "_ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;"
                    ),
                )
                .takes("NAME TEXT")
                .without("none"),
            value(concat!($family, "_ssl_name"), HSL, Args::ONE, |r, node| {
                let name = r.template(node.arg(0))?;
                tls(r).name = Some(name);
                Ok(())
            })
            .doc(
                "The expected name in the upstream's certificate, also sent with SNI.",
                concat!($family, "_ssl_name $host;"),
            )
            .takes("TEXT")
            .without("the host of the `_pass` directive"),
            flag(concat!($family, "_ssl_server_name"), HSL, |r| &mut tls(r).server_name).doc(
                "Whether the server name is sent to upstreams (SNI).",
                concat!($family, "_ssl_server_name on;"),
            ),
            flag(concat!($family, "_ssl_session_reuse"), HSL, |r| &mut tls(r).session_reuse).doc(
                "Whether TLS sessions with upstreams are resumed.",
                concat!($family, "_ssl_session_reuse on;"),
            ),
            flag(concat!($family, "_ssl_verify"), HSL, |r| &mut tls(r).verify).doc(
                "Whether certificates of upstreams are verified.",
                concat!($family, "_ssl_verify off;"),
            ),
            number(concat!($family, "_ssl_verify_depth"), HSL, |r| &mut tls(r).verify_depth).doc(
                "The longest certificate chain of an upstream.",
                concat!($family, "_ssl_verify_depth 2;"),
            ),
            value(concat!($family, "_ssl_trusted_certificate"), HSL, Args::ONE, |r, node| {
                file(r, node, |conf| &mut conf.trusted_certificate)
            })
            .doc(
                "The trusted authorities of upstream certificates.",
                concat!($family, "_ssl_trusted_certificate ca.crt;"),
            )
            .takes("FILE")
            .without("none"),
            value(concat!($family, "_ssl_crl"), HSL, Args::ONE, |r, node| {
                file(r, node, |conf| &mut conf.crl)
            })
            .doc(
                "The revocation lists for upstream certificates.",
                concat!($family, "_ssl_crl revoked.pem;"),
            )
            .takes("FILE")
            .without("none"),
        ]
    };
}

pub(super) const PROXY: &[DirectiveSpec] = rows!("proxy");
pub(super) const UWSGI: &[DirectiveSpec] = rows!("uwsgi");
pub(super) const GRPC: &[DirectiveSpec] = rows!("grpc");

fn tls(r: &mut ConfReader) -> &mut OriginTlsConf {
    Arc::make_mut(&mut super::proxy::settings(r).tls)
}

fn pem(
    r: &mut ConfReader,
    node: &Node,
    slot: fn(&mut OriginTlsConf) -> &mut Option<PemName>,
) -> ReadResult {
    plain_file(node)?;
    let name = PemName { written: node.arg(0).into(), template: r.template(node.arg(0))? };
    let beside = r.beside_conf(b"");
    tls(r).beside = beside;
    *slot(tls(r)) = Some(name);
    Ok(())
}

fn file(
    r: &mut ConfReader,
    node: &Node,
    slot: fn(&mut OriginTlsConf) -> &mut Option<PathBuf>,
) -> ReadResult {
    let path = r.beside_conf(node.arg(0));
    *slot(tls(r)) = Some(path);
    Ok(())
}

/// Refuses OpenSSL settings that are not implemented. Settings that OpenSSL does not know either
/// are reported where they are used.
fn conf_command(r: &mut ConfReader, node: &Node) -> ReadResult {
    const DONE: [&str; 6] =
        ["CipherString", "Ciphersuites", "Curves", "Groups", "MaxProtocol", "MinProtocol"];
    let name = show(node.arg(0));
    let is_among = |all: &[&str]| all.iter().any(|known| known.eq_ignore_ascii_case(&name));
    if is_among(&OPENSSL_COMMANDS) && !is_among(&DONE) {
        let text = format!("\"{} {name}\" is not implemented yet", show(node.name()));
        return Err(ReadFault::Text(text));
    }
    push_command(r, node, |r| &mut tls(r).conf_commands)
}
