//! The alert that a client gets for a TLS violation before its connection closes, as RFC 8446
//! defines it, whatever servers share the port.

use bolide_testkit::server::LISTEN;
use bolide_testkit::tools::python;

use crate::{http, site};

const ASK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls_alerts.py");
const TOLD: [&str; 13] = [
    "a record of an unknown type: alert 10",
    "a record that is too long: alert 22",
    "an empty record: alert 10",
    "a hello that is none: alert 50",
    "a hello that ends too early: alert 50",
    "a message that is too long: alert 50",
    "a hello of TLS 1.1: alert 70",
    "flipped TLSv1_2: BAD_RECORD_MAC",
    "garbage TLSv1_2: BAD_RECORD_MAC",
    "flipped TLSv1_3: BAD_RECORD_MAC",
    "garbage TLSv1_3: BAD_RECORD_MAC",
    "too long TLSv1_3: RECORD_OVERFLOW",
    "strange TLSv1_3: UNEXPECTED_MESSAGE",
];

fn alerts(port: u16) -> Vec<String> {
    let done = python(ASK, [port.to_string()]).succeeded();
    done.text().lines().map(str::to_owned).collect()
}

#[test]
fn a_client_that_breaks_tls_gets_the_alert_that_the_rfc_names() {
    let server = site("");
    assert_eq!(alerts(server.https().port()), TOLD);
}

#[test]
fn it_does_where_servers_offer_different_things_by_name_too() {
    let server = http(&format!(
        "server {{ {LISTEN} server_name a; }}
         server {{ listen 127.0.0.1:@HTTPS@ ssl; server_name b; ssl_protocols TLSv1.3;
                  ssl_certificate @CERT@; ssl_certificate_key @KEY@; }}"
    ));
    assert_eq!(alerts(server.https().port()), TOLD);
}
