//! What is fuzzed: one entry per target, each taking bytes and asserting what must always hold.
//!
//! The targets of this directory and `tests/fuzz_replay.rs` share this file.

use std::sync::{Arc, OnceLock};

/// A function that takes any bytes and panics when something that must hold does not.
pub(crate) type Entry = fn(&[u8]);

/// Every target by the name of its corpus.
pub(crate) const ALL: &[(&str, Entry)] = &[
    ("conf", conf),
    ("disk", cache::disk::fuzz::reader),
    ("engine", engine::fuzz::exchange),
    ("esi", esi),
    ("fcgi", wire::origin::fuzz::fcgi),
    ("files", files),
    ("h1", wire::h1::fuzz::fuzz),
    ("h1_client", wire::origin::fuzz::http),
    ("h2", wire::h2::fuzz::fuzz),
    ("h3", wire::h3::fuzz::conn),
    ("hpack", wire::hpack::fuzz::fuzz),
    ("http", http::fuzz::all),
    ("lsapi", wire::origin::fuzz::lsapi),
    ("proxy", wire::proxy::fuzz::header),
    ("qpack", qpack),
    ("quic", quic),
    ("rules", cache::rules::fuzz::rules),
    ("ssi", ssi::fuzz::page),
    ("tls", tls),
];

/// Gives `data` to the entry of this name.
#[allow(dead_code, reason = "the replay walks the table itself")]
pub(crate) fn run(name: &str, data: &[u8]) {
    let (_, entry) = ALL.iter().find(|(known, _)| *known == name).expect("a name of the table");
    entry(data);
}

fn conf(data: &[u8]) {
    conf::fuzz::config(data);
    conf::fuzz::lexer(data);
}

fn esi(data: &[u8]) {
    esi::fuzz::parser(data);
    esi::fuzz::splice(data);
}

fn files(data: &[u8]) {
    files::fuzz::listing(data);
    files::fuzz::encode(data);
}

fn qpack(data: &[u8]) {
    wire::qpack::fuzz::decode(data);
    wire::qpack::fuzz::encode(data);
}

fn quic(data: &[u8]) {
    type Made = (quic::SharedKeys, tls::Acceptor);
    static MADE: OnceLock<Made> = OnceLock::new();
    let (keys, acceptor) = MADE.get_or_init(|| {
        let (chain, key) = tls::self_signed(&["fuzz.example"]).expect("a certificate can be made");
        let cert = tls::Certificate::from_pem(chain.as_bytes(), key.as_bytes(), &[])
            .expect("a certificate that was just made is good");
        let mut certs = tls::ServerCerts::new();
        let set = certs.add(vec![cert]);
        certs.set_default(set);
        let acceptor = tls::Acceptor::new(&Arc::new(certs), &tls::AcceptorOptions::default())
            .expect("the default options are good");
        (quic::SharedKeys::from_secret([7; 32]), acceptor)
    });
    let clock = quic::Clock::starting_at(io::process::epoch());
    let tls = acceptor.quic().expect("TLS 1.3 is on by default");
    let mut endpoint = quic::Endpoint::new(&quic::Settings::default(), tls, 0, keys, clock)
        .expect("the default settings are good");
    quic::fuzz::endpoint(&mut endpoint, data);
    quic::fuzz::padding(data);
}

fn tls(data: &[u8]) {
    tls::fuzz::session(data);
    tls::fuzz::origin(data);
    tls::fuzz::records(data);
    tls::fuzz::names(data);
    tls::fuzz::pem(data);
}
