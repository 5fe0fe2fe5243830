//! Ports of the site with something before HTTP: TLS, the header of the PROXY protocol, or both.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_base::Now;
use bolide_conf::model::Pem;
use bolide_engine::{Site, handshake};
use bolide_tls::{Acceptor, LoadedCertificate};

use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::secrets::streams;

/// What a port wants of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// No TLS is spoken.
    No,
    /// Clients may show one.
    Welcome,
    /// Only clients with one that is vouched for are answered.
    Demanded,
}

/// A port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimPort {
    /// Its number.
    pub port: u16,
    /// What TLS is like there.
    pub certificates: Certificates,
    /// Whether a header of the PROXY protocol is due.
    pub proxied: bool,
}

/// All of them.
pub const GATES: [SimPort; 3] = [
    SimPort { port: 8440, certificates: Certificates::Welcome, proxied: false },
    SimPort { port: 8441, certificates: Certificates::Demanded, proxied: true },
    SimPort { port: 8442, certificates: Certificates::No, proxied: true },
];

/// What the first server says of its ports: its certificate is found out for each client.
pub const WELCOME: &str = "        listen 8440 ssl; listen 8442 proxy_protocol;
        ssl_certificate $ssl_server_name-$remote_addr.pem; ssl_certificate_key k.pem;
        ssl_verify_client optional_no_ca; ssl_client_certificate authority.pem;
";

/// What the other one says of its own.
pub const DEMANDS: &str = "        listen 8441 ssl proxy_protocol;
        ssl_certificate c.pem; ssl_certificate_key k.pem;
        ssl_verify_client on; ssl_client_certificate authority.pem;
";

/// Where applications are that are spoken to by TLS.
pub const UPSTREAMS: &str = "
    upstream safe { server 192.0.2.9:443 max_fails=0; server unix:/run/safe.sock max_fails=0;
        keepalive 2; keepalive_timeout 10s; }
    proxy_ssl_trusted_certificate authority.pem; proxy_ssl_verify on; proxy_ssl_name app;";

/// What they are asked for, and who the client is.
pub const LOCATIONS: &str = "        location = /who { return 200
            $proxy_protocol_addr:$proxy_protocol_port:$ssl_protocol:$ssl_client_verify; }
        location /safe { proxy_pass https://safe; }
        location /shown { proxy_pass https://192.0.2.11; proxy_request_buffering off;
            proxy_ssl_certificate member.pem; proxy_ssl_certificate_key member.key.pem; }
        location /false { proxy_pass https://192.0.2.10; }
";

/// A certificate is not found, once in so many handshakes.
const MISSING_IN: u64 = 20;

/// The TLS side of a port.
///
/// # Errors
///
/// In words, when nothing can be made of the certificates.
pub fn acceptor(site: &Arc<Site>, at: usize, kernel: &Kernel) -> Result<Acceptor, String> {
    let Some(http) = &site.config().http else { return Err("no http block".to_owned()) };
    let id = http.listens[at].default_server;
    let pair = http.server(id).tls.certificates.first();
    let Some(Pem::Computed { template, .. }) = pair.map(|pair| &pair.chain) else {
        return streams::acceptor(
            None::<fn(Option<&str>) -> Result<Vec<LoadedCertificate>, String>>,
        );
    };
    // What lives as long as connections do must not hold the site.
    let (weak, template) = (Arc::downgrade(site), template.clone());
    let missing = kernel.missing_certificates.clone();
    let chance = Mutex::new(Chance::new(kernel.seed, 5));
    streams::acceptor(Some(move |name: Option<&str>| {
        let site = weak.upgrade().ok_or("the site is gone")?;
        let path = handshake::expand(&site, (at, id.0), name, Now::default(), &template);
        if path != b"site-192.0.2.1.pem" {
            return Err(format!("the wrong client: {}", path.escape_ascii()));
        }
        if chance.lock().unwrap_or_else(PoisonError::into_inner).one_in(MISSING_IN) {
            missing.fetch_add(1, Ordering::Relaxed);
            return Err("no such certificate".to_owned());
        }
        streams::certificate().map(|certificate| vec![certificate])
    }))
}

/// What a port wants before HTTP, if anything.
#[must_use]
pub fn at(port: u16) -> Option<SimPort> {
    GATES.into_iter().find(|gate| gate.port == port)
}

/// A header of the PROXY protocol, and what it says of the client: its address and port.
pub fn preface(is_broken: bool, chance: &mut Chance) -> (Vec<u8>, String) {
    if is_broken {
        let all: [&[u8]; 6] = [
            b"GET / HTTP/1.1\r\nhost: site\r\n\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n",
            b"PROXY SCTP 192.0.2.1 192.0.2.2 1 2\r\n",
            b"\r\n\r\n\0\r\nQUIT\n\x31\x11\x00\x0cabcdefghijkl",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x04abcd",
        ];
        return (all[chance.index(all.len())].to_vec(), ":".to_owned());
    }
    let port = 1024 + chance.below(60_000) as u16;
    let v4 = IpAddr::from([203, 0, 113, 7]);
    let v6 = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 7]);
    let from = if chance.one_in(2) { v4 } else { v6 };
    let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
    let told = format!("{from}:{port}");
    match chance.below(4) {
        0 => (b"PROXY UNKNOWN whatever\r\n".to_vec(), ":".to_owned()),
        1 => (binary(0x20, from, port, chance), ":".to_owned()),
        2 => (binary(0x21, from, port, chance), told),
        _ => (format!("PROXY {family} {from} {from} {port} 443\r\n").into_bytes(), told),
    }
}

/// Version 2, with fields behind the addresses.
fn binary(command: u8, from: IpAddr, port: u16, chance: &mut Chance) -> Vec<u8> {
    let mut rest = match from {
        IpAddr::V4(ip) => [ip.octets(), ip.octets()].concat(),
        IpAddr::V6(ip) => [ip.octets(), ip.octets()].concat(),
    };
    rest.extend_from_slice(&port.to_be_bytes());
    rest.extend_from_slice(&443_u16.to_be_bytes());
    let filling = chance.below(300) as u16;
    rest.push(4);
    rest.extend_from_slice(&filling.to_be_bytes());
    rest.resize(rest.len() + usize::from(filling), 0);
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend_from_slice(&[command, if from.is_ipv4() { 0x11 } else { 0x21 }]);
    header.extend_from_slice(&(rest.len() as u16).to_be_bytes());
    header.extend_from_slice(&rest);
    header
}
