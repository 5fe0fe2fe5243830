//! Owns: that Bolide answers and complains as the real nginx does, apart from what
//! `docs/differences-from-nginx.md` lists. The work is done by `scripts/compare_nginx.py`.

use crate::BOLIDE;
use testkit::ports::Ports;
use testkit::tools;

#[test]
fn answers_and_messages_are_those_of_nginx_or_listed_as_different() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/compare_nginx.py");
    let nginx = tools::tool("nginx-sid");
    let (own, other) = (Ports::claim(), Ports::claim());
    let ports = [own.port(0).to_string(), other.port(0).to_string()];
    let nginx = nginx.to_str().expect("a path in UTF-8");
    let [own, other] = &ports;
    let args = ["--bolide", BOLIDE, "--nginx", nginx, "--ports", other, own];
    let done = tools::python(script, args);
    assert_eq!(done.code, 0, "{}", done.text());
}
