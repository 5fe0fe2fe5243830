//! `acme_issuer`, `acme_certificate` and `auto_https`: what they mean, and what is refused.

use bolide_conf::model::{
    Http, IssuedKey, IssuerAuthority, IssuerChallenge, IssuerKey, ListenTransport, Pem, ServerConf,
};

use std::time::Duration;

use crate::support::{http, messages, outcome};

const ISSUER: &str = "acme_issuer a { uri https://a.test/dir; accept_terms_of_service; } ";

/// The messages of an `http` block.
fn said(inside: &str) -> Vec<String> {
    messages(&outcome(&format!("events {{}} http {{ {inside} }}")))
}

/// The only message about what stands behind an issuer `a`, without its place.
fn fault(inside: &str) -> String {
    let all = said(&format!("{ISSUER}{inside}"));
    let [one] = &all[..] else { panic!("{inside}: {all:?}") };
    let (text, place) = one.rsplit_once(" in ").expect("a place");
    assert_eq!(place, "/conf/nginx.conf:1", "{inside}");
    text.strip_prefix("[emerg] ").expect("an error").to_owned()
}

/// The names of the certificate that a server serves.
fn names(http: &Http, server: &ServerConf) -> Vec<String> {
    let Some(Pem::Issued(id)) = server.tls.certificates.first().map(|pair| &pair.chain) else {
        return Vec::new();
    };
    http.acme.certificates[id.index()].names.iter().map(ToString::to_string).collect()
}

/// The addresses of a server, with `s` for TLS and `q` for QUIC.
fn listens(http: &Http, server: usize) -> String {
    let own = http.listens.iter().filter(|one| one.servers.iter().any(|id| id.index() == server));
    let shown = own.map(|listen| match (listen.transport, listen.tls) {
        (ListenTransport::Quic, _) => format!("{}q", listen.address),
        (ListenTransport::Tcp, true) => format!("{}s", listen.address),
        (ListenTransport::Tcp, false) => listen.address.to_string(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn an_issuer_has_what_its_block_says_and_defaults_otherwise() {
    let http = http(
        "acme_issuer plain { uri https://a.test/d; } \
         acme_issuer full { uri https://b.test/d; account_key ecdsa; challenge tls-alpn; \
         contact a@b.test; contact tel:112; external_account_key kid eab.key; \
         preferred_chain \"Root X1\"; profile short require; ssl_trusted_certificate ca.pem; \
         ssl_verify off; state_path off; accept_terms_of_service; } \
         acme_issuer dns { uri https://c.test/d; account_key own.key; challenge dns hook.sh; \
         state_path s; } acme_shared_zone zone=x:1M;",
    );
    let [plain, full, dns] = &http.acme.issuers[..] else { panic!("three issuers") };
    assert_eq!(plain.challenge, IssuerChallenge::Http);
    assert_eq!(plain.account_key, IssuerKey::Made(IssuedKey::EcdsaP256));
    assert_eq!(plain.state_path.as_deref(), Some("/conf/acme_plain".as_ref()));
    assert!(plain.verify && !plain.accepts_terms && plain.contacts.is_empty());
    assert_eq!(full.account_key, IssuerKey::Made(IssuedKey::EcdsaP256));
    assert_eq!(full.challenge, IssuerChallenge::TlsAlpn);
    assert_eq!(full.contacts, ["mailto:a@b.test", "tel:112"]);
    let account = full.external_account.as_ref().expect("an account");
    assert_eq!((&*account.kid, account.key_file.to_str()), ("kid", Some("/conf/eab.key")));
    assert_eq!(full.preferred_chain.as_deref(), Some("Root X1"));
    assert_eq!(full.profile, Some(("short".to_owned(), true)));
    assert_eq!(full.trusted_certificate.as_deref(), Some("/conf/ca.pem".as_ref()));
    assert!(!full.verify && full.accepts_terms && full.state_path.is_none());
    assert_eq!(dns.account_key, IssuerKey::File("/conf/own.key".into()));
    assert_eq!(dns.challenge, IssuerChallenge::Dns("/conf/hook.sh".into()));
    assert_eq!(dns.state_path.as_deref(), Some("/conf/s".as_ref()));
}

#[test]
fn mistakes_in_issuers_are_told_with_their_line() {
    for (inside, text) in [
        ("acme_issuer b { }", "no \"uri\" in acme_issuer \"b\""),
        ("acme_issuer a { uri https://b.test; }", "duplicate acme_issuer \"a\""),
        ("acme_issuer a/b { uri https://b.test; }", "invalid acme_issuer name \"a/b\""),
        ("acme_issuer on { uri https://b.test; }", "invalid acme_issuer name \"on\""),
        (
            "acme_issuer b { uri http://b.test; }",
            "invalid uri \"http://b.test\", it must begin with https://",
        ),
        ("acme_issuer b { uri https://b; challenge x; }", "unsupported challenge \"x\""),
        (
            "acme_issuer b { uri https://b; challenge dns; }",
            "the \"dns\" challenge needs a program",
        ),
        ("acme_issuer b { uri https://b; account_key rsa:1024; }", "unsupported key \"rsa:1024\""),
        ("acme_issuer b { uri https://b; profile p q; }", "invalid parameter \"q\""),
        (
            "acme_issuer b { uri https://b; state_path acme_a; }",
            "the state_path \"/conf/acme_a\" is that of acme_issuer \"a\"",
        ),
        ("acme_issuer b { uri https://b; listen 80; }", "\"listen\" directive is not allowed here"),
        ("acme_shared_zone x;", "invalid parameter \"x\""),
        ("acme_shared_zone zone=x:0;", "invalid zone size \"zone=x:0\""),
    ] {
        assert_eq!(fault(inside), text, "{inside}");
    }
}

#[test]
fn a_certificate_has_the_names_of_its_directive_or_of_its_server() {
    let pair = "ssl_certificate $acme_certificate; ssl_certificate_key ${acme_certificate_key};";
    let http = http(&format!(
        "{ISSUER} acme_issuer b {{ uri https://b.test/dir; }} {pair} \
         server {{ listen 443 ssl; server_name A.com www.a.com .a.com; acme_certificate a; }} \
         server {{ listen 443 ssl; server_name b.com; \
         acme_certificate b X.com 10.0.0.1 x.com key=rsa fallback=a fallback=b; }} \
         server {{ listen 80; server_name c.com; }} \
         server {{ listen 444 ssl; server_name a.com www.a.com; acme_certificate a; }}"
    ));
    let [first, second, third, fourth] = &http.servers[..] else { panic!("four servers") };
    assert_eq!(names(&http, first), ["a.com", "www.a.com"]);
    assert_eq!(names(&http, second), ["x.com", "10.0.0.1"]);
    assert!(third.tls.certificates.is_empty());
    assert_eq!(first.tls.certificates[0].chain, fourth.tls.certificates[0].chain);
    assert_eq!(http.acme.certificates.len(), 2);
    let certificate = &http.acme.certificates[1];
    assert_eq!((&*certificate.issuers, certificate.key), (&[1, 0][..], IssuedKey::Rsa2048));
    assert!(http.acme.uses(&IssuerChallenge::Http) && !http.acme.uses(&IssuerChallenge::TlsAlpn));
}

#[test]
fn a_name_with_a_dot_before_it_is_two_names_of_its_certificate() {
    let only_www = |directive: &str, host: &str| {
        format!(
            "[warn] \"{directive}\" orders certificates for \"{host}\" and \"www.{host}\" only, \
             not for other names of \".{host}\" in /conf/nginx.conf:1"
        )
    };
    let issuers = "acme_issuer d { uri https://d.test; challenge dns hook; } ";
    for (inside, expected, warning) in [
        ("server_name .A.com; acme_certificate a;", "a.com www.a.com", Some("acme_certificate")),
        ("server_name b; acme_certificate a .a.com;", "a.com www.a.com", Some("acme_certificate")),
        ("server_name b; acme_certificate d .a.com;", "a.com *.a.com", None),
        ("server_name .a.com; acme_certificate d;", "a.com *.a.com", None),
        ("server_name .a.com; acme_certificate local;", "a.com *.a.com", None),
        (
            "server_name .a.com; acme_certificate d fallback=a;",
            "a.com www.a.com",
            Some("acme_certificate"),
        ),
        ("server_name www.a.com .a.com a.com; acme_certificate d;", "a.com *.a.com", None),
        ("server_name .a.com; auto_https on;", "a.com www.a.com", Some("auto_https")),
        ("server_name .a.com; auto_https a d;", "a.com www.a.com", Some("auto_https")),
        ("server_name .a.com; auto_https d;", "a.com *.a.com", None),
        ("server_name www.x.lan .x.lan; auto_https local;", "x.lan *.x.lan", None),
        ("server_name .10.0.0.1; auto_https local;", "10.0.0.1", None),
        ("server_name .10.0.0.1; acme_certificate a;", "10.0.0.1", None),
    ] {
        let pair = "ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;";
        let pair = if inside.contains("auto_https") { "" } else { pair };
        let text = format!("{ISSUER}{issuers} server {{ listen 443 ssl; {inside} {pair} }}");
        let http = http(&text);
        assert_eq!(names(&http, &http.servers[0]).join(" "), expected, "{inside}");
        let warning = warning.map(|directive| only_www(directive, "a.com"));
        assert_eq!(said(&text), Vec::from_iter(warning), "{inside}");
    }
}

#[test]
fn a_site_may_have_another_server_for_www() {
    let http = http(
        "server { listen 80; server_name .a.com; auto_https on; } \
         server { listen 443 ssl; server_name www.a.com; ssl_certificate c; \
         ssl_certificate_key k; }",
    );
    assert_eq!(names(&http, &http.servers[0]), ["a.com", "www.a.com"]);
}

#[test]
fn an_expression_among_server_names_is_left_out() {
    let text = format!(
        "{ISSUER} server {{ listen 443 ssl; server_name ~^x$ a.com; acme_certificate a; \
         ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key; }}"
    );
    let http = http(&text);
    assert_eq!(names(&http, &http.servers[0]), ["a.com"]);
    assert_eq!(
        said(&text),
        ["[warn] \"acme_certificate\" cannot take the server name \"~^x$\", name the identifiers \
          in /conf/nginx.conf:1"]
    );
}

#[test]
fn mistakes_in_certificates_are_told_with_their_line() {
    let own = |inside: &str| format!("server {{ server_name a.com; {inside} }}");
    for (inside, text) in [
        (own("acme_certificate x;"), "unknown acme_issuer \"x\""),
        (own("acme_certificate a fallback=x;"), "unknown acme_issuer \"x\""),
        (own("acme_certificate a key=dsa;"), "unsupported key \"dsa\""),
        (
            own("acme_certificate a; acme_certificate a;"),
            "\"acme_certificate\" directive is duplicate",
        ),
        (
            own("acme_certificate a *.a.com;"),
            "a certificate for \"*.a.com\" needs issuers with the \"dns\" challenge",
        ),
        (own("acme_certificate a a_b.com;"), "invalid identifier \"a_b.com\" of a certificate"),
        ("server { acme_certificate a; }".to_owned(), "no names for \"acme_certificate\""),
        (
            "server { server_name www.*; acme_certificate a; }".to_owned(),
            "\"acme_certificate\" cannot take the server name \"www.*\", name the identifiers",
        ),
        (
            "server { server_name ~^x$; acme_certificate a; }".to_owned(),
            "\"acme_certificate\" cannot take the server name \"~^x$\", name the identifiers",
        ),
    ] {
        assert_eq!(fault(&inside), text, "{inside}");
    }
    let all = said(
        "server { listen 443 ssl; ssl_certificate $acme_certificate; \
         ssl_certificate_key $acme_certificate_key; }",
    );
    let expected = "[emerg] no \"acme_certificate\" is defined for \"$acme_certificate\" in ";
    assert!(all[0].starts_with(expected), "{all:?}");
    let all = said(&format!("{ISSUER} server {{ return 200 $acme_certificate_key; }}"));
    assert_eq!(all, ["[emerg] unknown \"acme_certificate_key\" variable"]);
}

#[test]
fn a_server_gets_https_for_its_public_names() {
    let http = http(
        "auto_https on; \
         server { server_name a.com localhost .b.org; } \
         server { listen 10.0.0.1:80; listen [::1]:80; server_name c.com; http3 off; } \
         server { listen 80; listen 8443 ssl; server_name d.com; auto_https off; \
         ssl_reject_handshake on; } \
         server { listen 80; server_name localhost _; }",
    );
    let issuer = &http.acme.issuers[0];
    assert_eq!(issuer.uri, "https://acme-v02.api.letsencrypt.org/directory");
    assert!(issuer.accepts_terms && issuer.challenge == IssuerChallenge::Http);
    assert_eq!(names(&http, &http.servers[0]), ["a.com", "b.org", "www.b.org"]);
    assert_eq!(listens(&http, 0), "0.0.0.0:80 0.0.0.0:443s 0.0.0.0:443q");
    assert_eq!(listens(&http, 1), "10.0.0.1:80 [::1]:80 10.0.0.1:443s [::1]:443s");
    assert_eq!(
        (listens(&http, 2), listens(&http, 3)),
        ("0.0.0.0:80 0.0.0.0:8443s".into(), "0.0.0.0:80".into())
    );
    let redirects: Vec<_> = http.servers.iter().map(|server| server.redirects_to).collect();
    assert_eq!(redirects, [Some(443), Some(443), None, None]);
    let http2: Vec<_> = http.servers.iter().map(|server| server.http2).collect();
    assert_eq!(http2, [true, true, false, false]);
}

#[test]
fn what_is_written_stays_and_a_site_in_two_parts_gets_one_certificate() {
    let http = http(&format!(
        "{ISSUER} auto_https a; http2 off; \
         server {{ listen 80; server_name a.com; return 301 https://$host$request_uri; }} \
         server {{ listen 443 ssl; server_name a.com; }} \
         server {{ listen 80; listen 8443 ssl; server_name b.com; auto_https on; }} \
         server {{ listen 444 ssl; server_name c.com; ssl_certificate c.crt; \
         ssl_certificate_key c.key; }} \
         server {{ listen 80; server_name d.com; acme_certificate a e.com; auto_https a; \
         ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key; }}"
    ));
    let all: Vec<_> = http.servers.iter().map(|server| names(&http, server).join(" ")).collect();
    assert_eq!(all, ["", "a.com", "b.com", "", "e.com"]);
    let redirects: Vec<_> = http.servers.iter().map(|server| server.redirects_to).collect();
    assert_eq!(redirects, [None, Some(443), Some(8443), None, Some(443)]);
    assert_eq!(listens(&http, 4), "0.0.0.0:80 0.0.0.0:443s 0.0.0.0:443q");
    assert!(!http.servers[4].http2);
    let at_443 = http.listens.iter().find(|listen| listen.address.port() == 443).expect("443");
    assert_eq!(at_443.default_server.index(), 1);
}

#[test]
fn where_nothing_listens_on_port_80_names_are_proved_by_handshakes() {
    let http = http("server { listen 443 ssl; server_name a.com; auto_https on; }");
    assert_eq!(http.acme.issuers[0].challenge, IssuerChallenge::TlsAlpn);
}

#[test]
fn a_server_for_which_nothing_can_be_done_is_refused_by_its_own_directive() {
    for (inside, text) in [
        (
            "server { server_name localhost; auto_https on; }",
            "no name of the server can get a certificate by \"auto_https\"",
        ),
        (
            "server { listen 443 ssl; server_name a.com; auto_https on; ssl_certificate c; \
             ssl_certificate_key k; }",
            "\"auto_https\" and \"ssl_certificate\" are in one server",
        ),
        (
            "server { listen 80; server_name b.com a.com; auto_https on; } server { \
             listen 444 ssl; server_name a.com; ssl_certificate c; ssl_certificate_key k; }",
            "\"auto_https\" cannot listen: another server has the name \"a.com\" with \"ssl\"",
        ),
        (
            "server { listen 80; server_name a.com; auto_https on; http3 off; } \
             server { listen 443; }",
            "\"auto_https\" needs 0.0.0.0:443, which another server has as HTTP",
        ),
        (
            "server { listen unix:/s; server_name a.com; auto_https on; }",
            "\"auto_https\" needs a server with an IP address",
        ),
        ("server { server_name a.com; auto_https x; }", "unknown acme_issuer \"x\""),
        ("server { server_name a.com; auto_https on a; }", "invalid parameter \"a\""),
    ] {
        assert_eq!(fault(inside), text, "{inside}");
    }
    let warned = said("server { server_name a.com *.b.com ~x; auto_https on; }");
    assert_eq!(
        warned,
        [
            "[warn] \"auto_https\" orders no certificate for the name \"*.b.com\" in \
         /conf/nginx.conf:1",
            "[warn] \"auto_https\" orders no certificate for the name \"~x\" in /conf/nginx.conf:1",
        ]
    );
}

#[test]
fn an_authority_of_this_server_takes_every_name() {
    let http = http(
        "server { server_name localhost *.localhost nas a.test www.a.com 10.0.0.1 _; \
         auto_https local; } \
         server { listen 444 ssl; server_name a.internal; acme_certificate local *.b.lan ::1; \
         ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key; }",
    );
    let [issuer] = &http.acme.issuers[..] else { panic!("one issuer") };
    assert!(issuer.is_local() && !http.acme.uses(&IssuerChallenge::Http));
    assert_eq!(issuer.state_path.as_deref(), Some("/conf/acme_local".as_ref()));
    let expected = ["localhost", "*.localhost", "nas", "a.test", "www.a.com", "10.0.0.1"];
    assert_eq!(names(&http, &http.servers[0]), expected);
    assert_eq!(listens(&http, 0), "0.0.0.0:80 0.0.0.0:443s 0.0.0.0:443q");
    assert_eq!(names(&http, &http.servers[1]), ["*.b.lan", "::1"]);
}

#[test]
fn private_names_are_local_where_on_says_so_and_an_issuer_may_have_the_name() {
    let mixed = "auto_https on local; server { server_name a.com localhost; } \
                 server { server_name b.test; } server { server_name _; }";
    let http = http(mixed);
    let of = |at: usize| {
        let Pem::Issued(id) = http.servers[at].tls.certificates[0].chain else { panic!("issued") };
        &*http.acme.issuers[http.acme.certificates[id.index()].issuers[0]].name
    };
    assert_eq!((of(0), names(&http, &http.servers[0])), ("letsencrypt", vec!["a.com".into()]));
    assert_eq!((of(1), names(&http, &http.servers[1])), ("local", vec!["b.test".into()]));
    assert!(http.servers[2].tls.certificates.is_empty());
    let own = crate::support::http(
        "acme_issuer local { local lifetime=1h; state_path root; } \
         acme_issuer other { uri https://a.test; } server { server_name b.a; auto_https local; }",
    );
    let [issuer, _] = &own.acme.issuers[..] else { panic!("two issuers") };
    let lifetime = Duration::from_secs(3600);
    assert_eq!(issuer.authority, IssuerAuthority::Local { lifetime });
    assert_eq!(issuer.state_path.as_deref(), Some("/conf/root".as_ref()));
    // One that speaks ACME is asked, as before.
    let foreign = crate::support::http(
        "acme_issuer local { uri https://a.test; } server { server_name b.a; auto_https local; }",
    );
    assert!(!foreign.acme.issuers[0].is_local());
}

#[test]
fn what_a_local_authority_has_no_use_for_is_refused() {
    for (inside, text) in [
        (
            "acme_issuer b { local; uri https://b.test; }",
            "\"uri\" has no use in the local acme_issuer \"b\"",
        ),
        (
            "acme_issuer b { challenge http-01; local; }",
            "\"challenge\" has no use in the local acme_issuer \"b\"",
        ),
        (
            "acme_issuer b { local; state_path off; }",
            "the local acme_issuer \"b\" needs a \"state_path\" for its root",
        ),
        ("acme_issuer b { local 7d; }", "invalid parameter \"7d\""),
        ("acme_issuer b { local lifetime=0; }", "invalid parameter \"lifetime=0\""),
        ("acme_issuer b { local lifetime=1y; }", "invalid parameter \"lifetime=1y\""),
        (
            "server { server_name _; auto_https local; }",
            "no name of the server can get a certificate by \"auto_https\"",
        ),
        ("server { server_name a.com; auto_https on local a; }", "invalid parameter \"local\""),
    ] {
        assert_eq!(fault(inside), text, "{inside}");
    }
}

#[test]
fn names_of_clients_are_ordered_where_each_is_asked_about() {
    let http = http(
        "acme_issuer a { uri https://a.test; on_demand_ask http://127.0.0.1:1/ok?x=1; \
         on_demand_rate 2r/h; on_demand_names 5; } server { listen 443 ssl; server_name _; \
         acme_certificate a on_demand key=rsa; ssl_certificate $acme_certificate; \
         ssl_certificate_key $acme_certificate_key; }",
    );
    let issuer = &http.acme.issuers[0];
    assert_eq!(issuer.on_demand_ask.as_deref(), Some("http://127.0.0.1:1/ok?x=1"));
    assert_eq!((issuer.on_demand_rate.count, issuer.on_demand_rate.seconds), (2, 3600));
    assert_eq!(issuer.on_demand_names, 5);
    assert!(http.acme.certificates[0].is_on_demand());
    for (inside, text) in [
        (
            "server { acme_certificate a on_demand; }",
            "\"on_demand\" needs \"on_demand_ask\" in acme_issuer \"a\"",
        ),
        (
            "acme_issuer b { local; on_demand_ask https://b; } \
             server { acme_certificate b a.com on_demand; }",
            "\"on_demand\" and the name \"a.com\"",
        ),
        (
            "acme_issuer b { uri https://b; on_demand_ask ftp://b; }",
            "invalid URL \"ftp://b\" in \"on_demand_ask\"",
        ),
        ("acme_issuer b { uri https://b; on_demand_rate 1; }", "invalid parameter \"1\""),
        ("acme_issuer b { uri https://b; on_demand_names 0; }", "invalid parameter \"0\""),
    ] {
        assert_eq!(fault(inside), text, "{inside}");
    }
}

#[test]
fn the_url_that_is_asked_about_names_has_a_host_and_a_port_that_exist() {
    for url in ["http://:1/", "http://a:0/", "https://a:99999", "http://a:x/", "http://u@a/"] {
        let inside = format!("acme_issuer b {{ uri https://b; on_demand_ask {url}; }}");
        assert_eq!(fault(&inside), format!("invalid URL \"{url}\" in \"on_demand_ask\""));
    }
    for url in ["http://[::1]:9/a?b=c:d", "https://a", "http://[::1]", "http://a:65535?b"] {
        let inside = format!("acme_issuer b {{ uri https://b; on_demand_ask {url}; }}");
        assert_eq!(http(&inside).acme.issuers.len(), 1, "{url}");
    }
}
