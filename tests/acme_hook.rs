//! `dns-01`: the server runs a program that publishes records, and gets a wildcard certificate.

use bolide_testkit::server::Home;
use bolide_testkit::{Pebble, PebbleOptions, TestServer, wait_until};

use crate::BOLIDE;
use crate::acme::{conf, issuer, root, wait_served};

#[test]
fn a_program_publishes_records_for_a_wildcard_certificate() {
    let home = Home::new(BOLIDE);
    let pebble = Pebble::start(PebbleOptions::validating(home.port(0), home.port(1)));
    let text = format!(
        "#!/bin/sh -e\n\
         echo \"$1 $2 $(grep ^SigBlk /proc/self/status | tr -d '\\t\\n')\" \
             >>{calls}\n\
         case $1 in present) url={set} ;; *) url={clear} ;; esac\n\
         curl -fsS -d \"{{\\\"host\\\":\\\"$2.\\\",\\\"value\\\":\\\"$3\\\"}}\" \"$url\"\n",
        calls = home.dir().join("calls").display(),
        set = pebble.names_url("/set-txt"),
        clear = pebble.names_url("/clear-txt"),
    );
    let hook = home.write("hook", &text);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).unwrap();
    let by_dns = issuer(&pebble, "challenge dns @DIR@/hook;");
    let server = TestServer::start(home, &conf(&by_dns, "*.a.test", ""));
    let root = root(&server, &pebble);
    wait_served(&server, "www.a.test", &root);
    // The program starts like one of a shell: every signal reaches it.
    let calls = || server.home().read("calls");
    wait_until("the record to be removed", || calls().lines().count() == 2);
    let state = "SigBlk:0000000000000000";
    let wanted = |action| format!("{action} _acme-challenge.a.test {state}");
    let lines: Vec<String> = calls().lines().map(str::to_owned).collect();
    assert_eq!(lines, [wanted("present"), wanted("cleanup")]);
}
