//! From `ssl_*` directives to what handshakes need: certificates by name, suites, tickets.

mod client_auth;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::model::{Config, Http, Listen, Server, ServerName, Transport};
use tls::{
    Acceptor, AcceptorOptions, CertError, CertSet, Certificate, CipherOrder, EarlyData,
    ServerCerts, Tickets,
};

/// What every generation of certificates shares.
#[derive(Debug)]
pub(crate) struct TlsState {
    tickets: Arc<Tickets>,
}

impl TlsState {
    /// Prepares ticket keys and wakes the cryptography up.
    ///
    /// # Errors
    ///
    /// The system gives no randomness.
    pub(crate) fn new() -> Result<Self, String> {
        tls::warm_up()?;
        Ok(Self { tickets: Arc::new(Tickets::new()?) })
    }
}

/// Certificates already read, by chain and key file.
type Read = HashMap<(PathBuf, PathBuf), Certificate>;

/// Makes the acceptor of one listen; none when it speaks no TLS. Warnings go to `warnings`.
///
/// # Errors
///
/// In nginx's words: a certificate cannot be read or does not fit its key, or nothing is left to
/// offer.
pub(crate) fn acceptor(
    config: &Config,
    http: &Http,
    listen: &Listen,
    state: &TlsState,
    warnings: &mut Vec<String>,
) -> Result<Option<Acceptor>, String> {
    if !listen.tls && listen.transport == Transport::Tcp {
        return Ok(None);
    }
    let mut certs = ServerCerts::new();
    let mut patterns = Vec::new();
    let sets = sets(http, listen, &mut certs, warnings)?;
    let default = listen.servers.iter().position(|id| *id == listen.default_server);
    let default = default.and_then(|at| sets[at]);
    if let Some(set) = default {
        certs.set_default(set);
    }
    for (&id, own) in listen.servers.iter().zip(&sets) {
        // A server without certificates of its own borrows the default server's, and all else.
        let Some(set) = own.or(default) else { continue };
        for name in &http.server(id).names {
            match name {
                ServerName::Exact(name) if name.is_empty() => {}
                ServerName::Exact(name) => certs.name(name, set),
                ServerName::Suffix(suffix) => certs.name(&format!("*{suffix}"), set),
                ServerName::SuffixOrSelf(suffix) => certs.name(suffix, set),
                ServerName::Prefix(prefix) => certs.name(&format!("{prefix}*"), set),
                ServerName::Regex(regex) => patterns.push((regex.clone(), set)),
            }
        }
    }
    if !patterns.is_empty() {
        certs.set_patterns(move |name| {
            patterns.iter().find(|(regex, _)| regex.is_match(name.as_bytes())).map(|(_, set)| *set)
        });
    }
    let server = http.server(listen.default_server);
    let options = options(config, server, listen, state, warnings);
    Acceptor::new(&Arc::new(certs), &options).map(Some).map_err(|error| error.to_string())
}

/// What handshakes of each server of a listen need; none for those without certificates.
fn sets(
    http: &Http,
    listen: &Listen,
    certs: &mut ServerCerts,
    warnings: &mut Vec<String>,
) -> Result<Vec<Option<CertSet>>, String> {
    let mut read = Read::new();
    let mut sets = Vec::new();
    for &id in &listen.servers {
        let conf = &http.server(id).tls;
        if conf.reject_handshake {
            sets.push(Some(certs.add(Vec::new())));
            continue;
        }
        if conf.certificates.is_empty() {
            sets.push(None);
            continue;
        }
        let mut own = Vec::new();
        for pair in conf.certificates.iter() {
            own.push(certificate(&mut read, &pair.chain, &pair.key)?);
        }
        let stapled = client_auth::stapled(conf, own, warnings)?;
        let set = certs.add(stapled);
        if let Some(auth) = client_auth::client_auth(conf)? {
            certs.ask_clients(set, auth);
        }
        sets.push(Some(set));
    }
    Ok(sets)
}

fn options(
    _config: &Config,
    server: &Server,
    listen: &Listen,
    state: &TlsState,
    warnings: &mut Vec<String>,
) -> AcceptorOptions {
    let conf = &server.tls;
    let mut options = AcceptorOptions {
        versions: tls::Versions { tls12: conf.protocols.tls12, tls13: conf.protocols.tls13 },
        order: CipherOrder::Server,
        tickets: conf.session_tickets.then(|| state.tickets.clone()),
        early_data: if conf.early_data { EarlyData::SingleUse } else { EarlyData::Off },
        ..AcceptorOptions::default()
    };
    if server.http2 || listen.http2 {
        options.alpn.push(b"h2".to_vec());
    }
    options.alpn.push(b"http/1.1".to_vec());
    options.alpn.push(b"http/1.0".to_vec());
    let mut unsupported = |directive: &str, names: Vec<String>| {
        for name in names {
            warnings.push(format!("\"{name}\" in \"{directive}\" is not supported, ignored"));
        }
    };
    let (ciphers, unknown) = tls::names::ciphers(&conf.ciphers);
    if !ciphers.is_empty() {
        options.ciphers = ciphers;
    }
    // The default string names families that nobody has any more; only what a person wrote is told.
    if conf.ciphers != "HIGH:!aNULL:!MD5" {
        unsupported("ssl_ciphers", unknown);
    }
    for (name, value) in conf.conf_commands.iter() {
        if name.eq_ignore_ascii_case("Ciphersuites") {
            let (suites, unknown) = tls::names::ciphersuites(value);
            if !suites.is_empty() {
                options.ciphersuites = suites;
            }
            unsupported("ssl_conf_command", unknown);
        } else if !name.eq_ignore_ascii_case("MinProtocol") {
            unsupported("ssl_conf_command", vec![name.clone()]);
        }
    }
    let (curves, unknown) = tls::names::curves(&conf.ecdh_curve);
    if !curves.is_empty() {
        options.curves = curves;
    }
    unsupported("ssl_ecdh_curve", unknown);
    options
}

fn certificate(read: &mut Read, chain: &Path, key: &Path) -> Result<Certificate, String> {
    let pair = (chain.to_path_buf(), key.to_path_buf());
    if let Some(known) = read.get(&pair) {
        return Ok(known.clone());
    }
    let cannot = |what: &str, path: &Path, why: &dyn std::fmt::Display| {
        format!("cannot load certificate{what} \"{}\": {why}", path.display())
    };
    let file = |what: &str, path: &Path| {
        std::fs::read(path).map_err(|error| cannot(what, path, &openssl_words(path, &error)))
    };
    let (chain_pem, key_pem) = (file("", chain)?, file(" key", key)?);
    let made = Certificate::from_pem(&chain_pem, &key_pem).map_err(|error| match error {
        CertError::NoCertificate | CertError::BadChain(_) | CertError::BadCertificate(_) => {
            cannot("", chain, &error)
        }
        _ => cannot(" key", key, &error),
    })?;
    read.insert(pair, made.clone());
    Ok(made)
}

/// A file that cannot be opened, as OpenSSL would have told nginx.
fn openssl_words(path: &Path, error: &std::io::Error) -> String {
    let number = error.raw_os_error().unwrap_or(0);
    let words = crate::sockets::describe(error);
    let words = words.split_once(": ").map_or("", |(_, text)| text);
    let path = path.display();
    let reason = if number == 2 { "no such file" } else { "system lib" };
    let code = if number == 2 { "10000080" } else { "10080002" };
    format!(
        "BIO_new_file() failed (SSL: error:8000{number:04X}:system library::{words}:calling \
         fopen({path}, r) error:{code}:BIO routines::{reason})"
    )
}
