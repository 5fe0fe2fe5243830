//! Bolide's responses and messages equal those of the real nginx, except for the differences in
//! `docs/differences-from-nginx.md`. `tests/compare.py` does the work.

use crate::BOLIDE;
use bolide_testkit::ports::TestPorts;
use bolide_testkit::tools;

#[test]
fn answers_and_messages_are_those_of_nginx_or_listed_as_different() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/compare.py");
    let nginx = tools::tool("nginx-sid");
    let claims: Vec<_> = (0..8).map(|_| TestPorts::claim()).collect();
    let ports: Vec<_> = claims.iter().map(|ports| ports.port(0).to_string()).collect();
    let nginx = nginx.to_str().expect("a path in UTF-8");
    let mut args = vec!["--bolide", BOLIDE, "--nginx", nginx, "--ports"];
    args.extend(ports.iter().map(String::as_str));
    let done = tools::python(script, args);
    assert_eq!(done.code, 0, "{}", done.text());
}
