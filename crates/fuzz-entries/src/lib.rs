//! The fuzz targets: each takes bytes and asserts invariants.
//!
//! The targets in `fuzz/` and `tests/fuzz_replay.rs` call these; no part of the server does. An
//! entry uses the public interface of its crate. If private parts generate the inputs of a
//! property, the tests of that crate include the file of the entry (`mod fuzz`).

pub mod cluster;
pub mod conf;
pub mod disk;
pub mod engine;
pub mod esi;
pub mod files;
pub mod geoip;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod hpack;
pub mod htaccess;
pub mod http;
pub mod mp4;
pub mod proxy;
pub mod qpack;
pub mod quic;
pub mod resolver;
pub mod rules;
pub mod ssi;
pub mod tls;
pub mod upstream;

use std::sync::{Arc, OnceLock};

/// A function that takes any bytes and panics if an invariant is violated.
pub type Entry = fn(&[u8]);

/// Every target by the name of its corpus.
pub const ALL: &[(&str, Entry)] = &[
    ("cluster", cluster::stream),
    ("conf", configuration),
    ("disk", disk::reader),
    ("engine", engine::exchange),
    ("esi", markup),
    ("fcgi", upstream::fcgi),
    ("files", listing_and_coding),
    ("geoip", geoip::database),
    ("h1", h1::fuzz),
    ("h1_client", upstream::http),
    ("h2", h2::fuzz),
    ("h2_client", upstream::http2),
    ("h3", h3::conn),
    ("hpack", hpack::fuzz),
    ("htaccess", htaccess::file),
    ("http", http::all),
    ("lsapi", upstream::lsapi),
    ("memcached", upstream::memcached),
    ("per_request", upstream::per_request),
    ("mp4", mp4::video),
    ("proxy", proxy::header),
    ("qpack", field_sections),
    ("quic", datagrams),
    ("resolver", resolver::script),
    ("rules", rules::rules),
    ("ssi", ssi::page),
    ("tls", handshakes),
];

/// Runs the target of this name with `data`.
pub fn run(name: &str, data: &[u8]) {
    let (_, entry) = ALL.iter().find(|(known, _)| *known == name).expect("a name of the table");
    entry(data);
}

fn configuration(data: &[u8]) {
    conf::config(data);
    conf::lexer(data);
}

fn markup(data: &[u8]) {
    esi::parser(data);
    esi::splice(data);
}

fn listing_and_coding(data: &[u8]) {
    files::listing(data);
    files::encode(data);
}

fn field_sections(data: &[u8]) {
    qpack::decode(data);
    qpack::encode(data);
}

fn datagrams(data: &[u8]) {
    type Made = (bolide_quic::SharedKeys, bolide_tls::Acceptor);
    static MADE: OnceLock<Made> = OnceLock::new();
    let (keys, acceptor) = MADE.get_or_init(|| {
        let (chain, key) =
            bolide_tls::self_signed(&["fuzz.example"]).expect("a certificate can be made");
        let cert = bolide_tls::LoadedCertificate::from_pem(chain.as_bytes(), key.as_bytes(), &[])
            .expect("a certificate that was just made is good");
        let mut certs = bolide_tls::ServerCerts::new();
        let set = certs.add(vec![cert]);
        certs.set_default(set);
        let acceptor =
            bolide_tls::Acceptor::new(&Arc::new(certs), &bolide_tls::AcceptorOptions::default())
                .expect("the default options are good");
        (bolide_quic::SharedKeys::from_secret([7; 32]), acceptor)
    });
    let clock = bolide_quic::QuicClock::starting_at(bolide_io::process::epoch());
    let tls = acceptor.quic().expect("TLS 1.3 is on by default");
    let mut endpoint =
        bolide_quic::Endpoint::new(&bolide_quic::QuicSettings::default(), tls, 0, keys, clock)
            .expect("the default settings are good");
    quic::endpoint(&mut endpoint, data);
    quic::padding(data);
}

fn handshakes(data: &[u8]) {
    tls::session(data);
    tls::origin(data);
    tls::records(data);
    tls::names(data);
    tls::pem(data);
    tls::statuses(data);
}
