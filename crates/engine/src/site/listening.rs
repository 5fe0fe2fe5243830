//! Compiles a listening address: its server names, and its `Alt-Svc`.

use std::collections::HashMap;

use bolide_conf::model::{AltSvc, Http, Listen, ListenTransport, ServerId, ServerName};
use bolide_patterns::{CapturePattern, Sieves};

use super::Listening;
use crate::names::{NameClaim, ServerNames};

/// Compiles one address.
pub(super) fn listening(http: &Http, listen: &Listen, sieves: &mut Sieves) -> Listening {
    let mut names = ServerNames::new(listen.default_server.0);
    for &id in &listen.servers {
        names.present(id.0);
        for name in &http.server(id).names {
            for claim in claims(http, name) {
                names.claim(claim, id.0);
            }
        }
    }
    let mut alt_svc = Vec::new();
    if listen.tls && listen.transport == ListenTransport::Tcp {
        let ports = quic_ports(http, listen.address.port());
        for &id in listen.servers.iter().filter(|id| http.server(**id).http3) {
            let port = ports.get(&id).and_then(|own| match http.server(id).settings.h3.alt_svc {
                AltSvc::Listener => Some(*own),
                AltSvc::Port(port) => Some(port),
                AltSvc::Off => None,
            });
            if let Some(port) = port {
                let text = format!("h3=\":{port}\"; ma=86400");
                alt_svc.push((id.0, text.into_bytes().into_boxed_slice()));
            }
        }
    }
    alt_svc.sort_unstable_by_key(|(server, _)| *server);
    Listening { names: names.seal(sieves), alt_svc: alt_svc.into() }
}

/// The port of a QUIC listener by server: `preferred` if there is one, else the first.
fn quic_ports(http: &Http, preferred: u16) -> HashMap<ServerId, u16> {
    let mut ports = HashMap::new();
    for listen in http.listens.iter().filter(|listen| listen.transport == ListenTransport::Quic) {
        let port = listen.address.port();
        for &id in listen.servers.iter().filter(|id| !http.server(**id).tls.refuses_quic()) {
            let known = ports.entry(id).or_insert(port);
            if port == preferred {
                *known = port;
            }
        }
    }
    ports
}

fn claims(http: &Http, name: &ServerName) -> Vec<NameClaim> {
    let boxed = |text: &str| text.as_bytes().into();
    match name {
        ServerName::Exact(text) => vec![NameClaim::Exact(boxed(text))],
        ServerName::Suffix(text) => vec![NameClaim::Suffix(boxed(text))],
        ServerName::SuffixOrSelf(text) => vec![
            NameClaim::Exact(boxed(text.strip_prefix('.').unwrap_or(text))),
            NameClaim::Suffix(boxed(text)),
        ],
        ServerName::Prefix(text) => vec![NameClaim::Prefix(boxed(text))],
        ServerName::Regex(regex) => vec![NameClaim::Regex(CapturePattern::new(regex, &http.named))],
    }
}
