//! Ports with bytes before HTTP: TLS, the PROXY protocol header, or both.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_base::Now;
use bolide_conf::model::Pem;
use bolide_engine::{Site, handshake};
use bolide_tls::{Acceptor, LoadedCertificate};

use crate::chance::Chance;
use crate::kernel::Kernel;
use crate::tls::streams;

/// The port's requirement for client certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// The port has no TLS.
    NoTls,
    /// A client certificate is optional.
    Optional,
    /// A verified client certificate is required.
    Required,
}

/// A port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimPort {
    /// Its number.
    pub port: u16,
    /// Its requirement for client certificates.
    pub certificates: Certificates,
    /// Whether it expects a PROXY protocol header.
    pub proxied: bool,
}

/// All secure ports.
pub const SECURE_PORTS: [SimPort; 3] = [
    SimPort { port: 8440, certificates: Certificates::Optional, proxied: false },
    SimPort { port: 8441, certificates: Certificates::Required, proxied: true },
    SimPort { port: 8442, certificates: Certificates::NoTls, proxied: true },
];

/// The first server's directives: it loads its certificate for each handshake.
pub const FIRST_SERVER: &str = "        listen 8440 ssl; listen 8442 proxy_protocol;
        ssl_certificate $ssl_server_name-$remote_addr.pem; ssl_certificate_key k.pem;
        ssl_verify_client optional_no_ca; ssl_client_certificate authority.pem;
";

/// The second server's directives.
pub const SECOND_SERVER: &str = "        listen 8441 ssl proxy_protocol;
        ssl_certificate c.pem; ssl_certificate_key k.pem;
        ssl_verify_client on; ssl_client_certificate authority.pem;
";

/// The upstreams by TLS.
pub const UPSTREAMS: &str = "
    upstream safe { server 192.0.2.9:443 max_fails=0; server unix:/run/safe.sock max_fails=0;
        keepalive 2; keepalive_timeout 10s; }
    proxy_ssl_trusted_certificate authority.pem; proxy_ssl_verify on; proxy_ssl_name app;";

/// The locations of those upstreams, and of the server's facts about the client.
pub const LOCATIONS: &str = "        location = /who { return 200
            $proxy_protocol_addr:$proxy_protocol_port:$ssl_protocol:$ssl_client_verify; }
        location /safe { proxy_pass https://safe; }
        location /shown { proxy_pass https://192.0.2.11; proxy_request_buffering off;
            proxy_ssl_certificate member.pem; proxy_ssl_certificate_key member.key.pem; }
        location /false { proxy_pass https://192.0.2.10; }
";

/// A certificate is not found, once in so many handshakes.
const MISSING_IN: u64 = 20;

/// The TLS settings of a port.
///
/// # Errors
///
/// The certificates are not usable.
pub fn acceptor(site: &Arc<Site>, at: usize, kernel: &Kernel) -> Result<Acceptor, String> {
    let Some(http) = &site.config().http else { return Err("no http block".to_owned()) };
    let id = http.listens[at].default_server;
    let pair = http.server(id).tls.certificates.first();
    let Some(Pem::Computed { template, .. }) = pair.map(|pair| &pair.chain) else {
        return streams::acceptor(
            None::<fn(Option<&str>) -> Result<Vec<LoadedCertificate>, String>>,
        );
    };
    // The loader lives as long as its connections, so it must not own the site.
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

/// The secure port of this number.
#[must_use]
pub fn at(port: u16) -> Option<SimPort> {
    SECURE_PORTS.into_iter().find(|secure_port| secure_port.port == port)
}

/// A PROXY protocol header, and the client's address and port in it.
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
    let client_facts = format!("{from}:{port}");
    match chance.below(4) {
        0 => (b"PROXY UNKNOWN whatever\r\n".to_vec(), ":".to_owned()),
        1 => (binary(0x20, from, port, chance), ":".to_owned()),
        2 => (binary(0x21, from, port, chance), client_facts),
        _ => (format!("PROXY {family} {from} {from} {port} 443\r\n").into_bytes(), client_facts),
    }
}

/// A header of version 2, with a TLV behind the addresses.
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
