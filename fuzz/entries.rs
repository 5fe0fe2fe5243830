//! What is fuzzed: one entry per target, each taking bytes and asserting what must always hold.
//!
//! The targets of this directory and `tests/fuzz_replay.rs` share this file.

use std::sync::{Arc, OnceLock};

/// A function that takes any bytes and panics when something that must hold does not.
pub(crate) type Entry = fn(&[u8]);

/// Every target by the name of its corpus.
pub(crate) const ALL: &[(&str, Entry)] = &[
    ("conf", conf),
    ("disk", bolide_cache::disk::fuzz::reader),
    ("engine", bolide_engine::fuzz::exchange),
    ("esi", esi),
    ("fcgi", bolide_wire::origin::fuzz::fcgi),
    ("files", files),
    ("geoip", bolide_geoip::fuzz::database),
    ("h1", bolide_wire::h1::fuzz::fuzz),
    ("h1_client", bolide_wire::origin::fuzz::http),
    ("h2", bolide_wire::h2::fuzz::fuzz),
    ("h3", bolide_wire::h3::fuzz::conn),
    ("hpack", bolide_wire::hpack::fuzz::fuzz),
    ("http", bolide_http::fuzz::all),
    ("lsapi", bolide_wire::origin::fuzz::lsapi),
    ("memcached", bolide_wire::origin::fuzz::memcached),
    ("mp4", bolide_files::mp4::fuzz::video),
    ("proxy", bolide_wire::proxy::fuzz::header),
    ("qpack", qpack),
    ("quic", quic),
    ("resolver", bolide_resolver::fuzz::script),
    ("rules", bolide_cache::rules::fuzz::rules),
    ("ssi", bolide_ssi::fuzz::page),
    ("tls", tls),
];

/// Gives `data` to the entry of this name.
#[allow(dead_code, reason = "the replay walks the table itself")]
pub(crate) fn run(name: &str, data: &[u8]) {
    let (_, entry) = ALL.iter().find(|(known, _)| *known == name).expect("a name of the table");
    entry(data);
}

fn conf(data: &[u8]) {
    bolide_conf::fuzz::config(data);
    bolide_conf::fuzz::lexer(data);
}

fn esi(data: &[u8]) {
    bolide_esi::fuzz::parser(data);
    bolide_esi::fuzz::splice(data);
}

fn files(data: &[u8]) {
    bolide_files::fuzz::listing(data);
    bolide_files::fuzz::encode(data);
}

fn qpack(data: &[u8]) {
    bolide_wire::qpack::fuzz::decode(data);
    bolide_wire::qpack::fuzz::encode(data);
}

fn quic(data: &[u8]) {
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
    bolide_quic::fuzz::endpoint(&mut endpoint, data);
    bolide_quic::fuzz::padding(data);
}

fn tls(data: &[u8]) {
    bolide_tls::fuzz::session(data);
    bolide_tls::fuzz::origin(data);
    bolide_tls::fuzz::records(data);
    bolide_tls::fuzz::names(data);
    bolide_tls::fuzz::pem(data);
}
