//! From `ssl_*` directives to TLS settings: certificates by name, suites, tickets.

mod certificates;
mod client_auth;
mod computed;
mod expiry;
mod issued;
mod kept_objects;
mod offer;
mod origins;
mod sessions;

use std::sync::Arc;

use bolide_conf::model::{
    Config, Http, IssuerChallenge, Listen, ListenTransport, Pem, ServerConf, ServerName, TlsConf,
};
use bolide_engine::Site;
use bolide_tls::{
    Acceptor, AcceptorOptions, CHALLENGE_PROTOCOL, CertSet, CipherOrder, EarlyData, ServerCerts,
    StapleKey,
};

pub(crate) use certificates::openssl_words;
pub(crate) use client_auth::authorities;
pub(crate) use origins::origins;

use crate::acme::{IssuedCertificates, IssuedDraft};
use crate::stapling::{Stapling, StaplingDraft};
use sessions::KeptSessions;

pub(crate) use certificates::{CertificateReader, ReadCertificates};
pub(crate) use expiry::CertificateEnds;
pub(crate) use sessions::TicketRings;

/// The shared state of all generations of certificates.
#[derive(Debug)]
pub(crate) struct TlsState {
    kept: KeptSessions,
    pub(crate) stapling: Stapling,
    pub(crate) issued: IssuedCertificates,
}

/// The certificates of a draft beside that state, which does not know of them.
#[derive(Debug)]
pub(crate) struct CertificateDraft<'a> {
    state: &'a TlsState,
    pub(crate) stapling: StaplingDraft,
    pub(crate) issued: IssuedDraft,
}

impl TlsState {
    /// Prepares ticket keys and warms up the cryptographic library.
    ///
    /// # Errors
    ///
    /// The system supplies no randomness.
    pub(crate) fn new() -> Result<Self, String> {
        bolide_tls::warm_up()?;
        let (kept, stapling) = (KeptSessions::default(), Stapling::default());
        let issued = IssuedCertificates::new(stapling.issued());
        Ok(Self { kept, stapling, issued })
    }

    /// Begins a draft.
    pub(crate) fn draft(&self, config: &Config) -> CertificateDraft<'_> {
        let (stapling, issued) = (StaplingDraft::default(), self.issued.draft(config));
        CertificateDraft { state: self, stapling, issued }
    }

    /// The ticket keys of a cluster.
    pub(crate) fn ticket_rings(&self) -> &TicketRings {
        &self.kept.rings
    }
}

impl CertificateDraft<'_> {
    /// Has the certificates of a server that are ordered stapled, if it wants that; returns what
    /// names their staples.
    ///
    /// # Errors
    ///
    /// In nginx's words: a file is unreadable.
    fn staple_issued(
        &mut self,
        conf: &TlsConf,
        warnings: &mut Vec<String>,
    ) -> Result<Option<StapleKey>, String> {
        let rule = self.state.stapling.rule(&mut self.stapling, conf, warnings)?;
        let Some(rule) = rule else { return Ok(None) };
        for pair in conf.certificates.iter() {
            if let Pem::Issued(id) = pair.chain {
                self.issued.staple(id, &rule);
            }
        }
        Ok(Some(rule.key()))
    }
}

/// Makes the acceptor of one listen; `None` without TLS. Warnings go to `warnings`.
///
/// # Errors
///
/// In nginx's words: a certificate is unreadable or does not match its key, or no suite is left to
/// offer.
pub(crate) fn acceptor(
    site: &Arc<Site>,
    at: usize,
    draft: &mut CertificateDraft<'_>,
    reader: &mut CertificateReader,
    warnings: &mut Vec<String>,
) -> Result<Option<Acceptor>, String> {
    let Some(http) = &site.config().http else { return Ok(None) };
    let listen = &http.listens[at];
    if !listen.tls && listen.transport == ListenTransport::Tcp {
        return Ok(None);
    }
    let mut certs = ServerCerts::new();
    let sets = sets(site, at, &mut certs, draft, reader, warnings)?;
    if http.reads_offers {
        certs.record_offers();
    }
    if http.acme.uses(&IssuerChallenge::TlsAlpn) {
        certs.prove_names(draft.state.issued.tls_challenges().clone());
    }
    let default = listen.servers.iter().position(|id| *id == listen.default_server);
    let default = default.and_then(|at| sets[at]);
    if let Some(set) = default {
        certs.set_default(set);
    }
    // A server without certificates of its own uses the default server's, and all other settings.
    let sets: Vec<_> = sets.into_iter().map(|own| own.or(default)).collect();
    name_all(&mut certs, http, listen, &sets);
    let server = http.server(listen.default_server);
    let proves = http.acme.uses(&IssuerChallenge::TlsAlpn);
    let mut own = options(server, (server.http2 || listen.http2, proves), warnings)?;
    draft.state.kept.settle(server, &mut own)?;
    let certs = Arc::new(certs);
    let failed = |error: bolide_tls::AcceptorError| error.to_string();
    let mut acceptor = Acceptor::new(&certs, &own).map_err(failed)?;
    let is_own = |at: usize| sets[at].is_some() && sets[at] != default;
    if let Some((names, others)) = others(http, listen, is_own, &own, warnings)? {
        acceptor.vary(&certs, names, &others).map_err(failed)?;
    }
    Ok(Some(acceptor))
}

/// Maps the names of each server of a listen to its set.
fn name_all(certs: &mut ServerCerts, http: &Http, listen: &Listen, sets: &[Option<CertSet>]) {
    let mut patterns = Vec::new();
    for (&id, set) in listen.servers.iter().zip(sets) {
        let Some(set) = *set else { continue };
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
}

/// Names, and the offer for each set of them.
type Others = (ServerCerts, Vec<(CertSet, AcceptorOptions)>);

/// The names of servers with another offer than the default server's, and their offers; `None` if
/// all agree. A server that borrows certificates (`is_own` is false for it) borrows their settings,
/// except HTTP/2.
fn others(
    http: &Http,
    listen: &Listen,
    is_own: impl Fn(usize) -> bool,
    usual: &AcceptorOptions,
    warnings: &mut Vec<String>,
) -> Result<Option<Others>, String> {
    let default = http.server(listen.default_server);
    // `listen … http2` applies to all of them.
    let is_like = |(one, http2): (&ServerConf, bool), (other, other_http2): (&ServerConf, bool)| {
        offer_alike(&one.tls, &other.tls) && (listen.http2 || http2 == other_http2)
    };
    let mut names = ServerCerts::new();
    let mut kinds = vec![((default, default.http2), names.add(Vec::new()))];
    names.set_default(kinds[0].1);
    let mut sets = Vec::with_capacity(listen.servers.len());
    for (at, id) in listen.servers.iter().enumerate() {
        let server = http.server(*id);
        let borrows = server.tls.reject_handshake || !is_own(at);
        let kind = (if borrows { default } else { server }, server.http2);
        let known = kinds.iter().find(|(known, _)| is_like(*known, kind)).map(|(_, set)| *set);
        sets.push(Some(known.unwrap_or_else(|| {
            let set = names.add(Vec::new());
            kinds.push((kind, set));
            set
        })));
    }
    if kinds.len() == 1 {
        return Ok(None);
    }
    name_all(&mut names, http, listen, &sets);
    let mut others = Vec::new();
    for ((server, http2), set) in kinds.drain(1..) {
        // Groups are the default server's, as in nginx.
        let curves = usual.curves.clone();
        let proves = http.acme.uses(&IssuerChallenge::TlsAlpn);
        let own = options(server, (http2 || listen.http2, proves), warnings)?;
        others.push((set, AcceptorOptions { curves, ..own }));
    }
    Ok(Some((names, others)))
}

/// The handshake settings of each server of a listen; `None` for those without certificates.
fn sets(
    site: &Arc<Site>,
    at: usize,
    certs: &mut ServerCerts,
    draft: &mut CertificateDraft<'_>,
    reader: &mut CertificateReader,
    warnings: &mut Vec<String>,
) -> Result<Vec<Option<CertSet>>, String> {
    let Some(http) = &site.config().http else { return Ok(Vec::new()) };
    let mut sets = Vec::new();
    let is_quic = http.listens[at].transport == ListenTransport::Quic;
    for &id in &http.listens[at].servers {
        let server = http.server(id);
        let conf = &server.tls;
        if conf.certificates.is_empty() && !conf.reject_handshake {
            sets.push(None);
            continue;
        }
        // Those of the default server count; others must be valid anyway.
        sessions::read_keys(server)?;
        certificates::check_dhparam(conf)?;
        if conf.reject_handshake {
            let _unused = client_auth::client_auth(conf)?;
            sets.push(Some(certs.add(Vec::new())));
            continue;
        }
        let set = if conf.computes_certificates() {
            let by = (&mut *reader, &mut *draft);
            let computed = computed::Computed::new(site, (at, id.0), conf, by, warnings)?;
            let set = certs.add(Vec::new());
            // Their text identifies them.
            let chains = conf.certificates.iter().map(|pair| &pair.chain);
            let words = format!("{:?}", chains.collect::<Vec<_>>());
            certs.load(set, &words, move |name| computed.load(name));
            set
        } else if conf.is_issued() {
            let issued = issued::Issued::new(conf, draft, reader, warnings)?;
            let set = certs.add(Vec::new());
            certs.load(set, &issued.words(), move |name| issued.load(name));
            set
        } else {
            let names = conf.certificates.iter().map(|pair| pair.chain.to_string());
            let own = names.zip(reader.read(conf)?).collect();
            certs.add(draft.state.stapling.attach(&mut draft.stapling, conf, own, warnings)?)
        };
        if let Some(auth) = client_auth::client_auth(conf)? {
            certs.ask_clients(set, auth);
        }
        // As in nginx, the server of a name fixes the versions, and without any there is no QUIC.
        let is_refused = is_quic && conf.refuses_quic();
        sets.push(Some(if is_refused { certs.add(Vec::new()) } else { set }));
    }
    Ok(sets)
}

/// The options of a server: HTTP/2, and `acme-tls/1` for issuers that validate names.
fn options(
    server: &ServerConf,
    (http2, proves): (bool, bool),
    warnings: &mut Vec<String>,
) -> Result<AcceptorOptions, String> {
    let conf = &server.tls;
    let mut options = AcceptorOptions {
        order: match conf.prefer_server_ciphers {
            Some(true) => CipherOrder::Server,
            None | Some(false) => CipherOrder::Client,
        },
        early_data: if conf.early_data { EarlyData::SingleUse } else { EarlyData::Off },
        ..AcceptorOptions::default()
    };
    if http2 {
        options.alpn.push(b"h2".to_vec());
    }
    options.alpn.extend([b"http/1.1", b"http/1.0", b"http/0.9"].map(|name| name.to_vec()));
    if proves {
        options.alpn.push(CHALLENGE_PROTOCOL.to_vec());
    }
    offer::offer(&**conf, &mut options, warnings)?;
    Ok(options)
}

/// Whether two servers of a listen offer the same versions and ciphers in the same order.
fn offer_alike(one: &TlsConf, other: &TlsConf) -> bool {
    one.protocols == other.protocols
        && one.ciphers == other.ciphers
        && one.conf_commands == other.conf_commands
        && one.prefer_server_ciphers.unwrap_or(false)
            == other.prefer_server_ciphers.unwrap_or(false)
}
