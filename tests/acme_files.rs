//! Files that an issuer's block names: what an order could not use is refused at the start.

use bolide_testkit::run;
use bolide_testkit::server::Home;

use crate::BOLIDE;
use crate::acme::conf;

/// A home with a configuration whose issuer has these directives.
fn home(inside: &str) -> Home {
    let home = Home::new(BOLIDE);
    let issuer = format!(
        "acme_issuer ca {{ uri https://127.0.0.1:1/dir; state_path @DIR@/state; \
         accept_terms_of_service; {inside} }} acme_issuer unused {{ uri https://127.0.0.1:1/; \
         account_key none.key; }}"
    );
    home.write("nginx.conf", &conf(&issuer, "a.test", ""));
    home
}

#[test]
fn a_file_that_no_order_could_use_is_refused_with_its_line() {
    for (inside, why) in [
        ("account_key none.key;", "open() \"@DIR@/none.key\" failed (2: No such file"),
        ("account_key nginx.conf;", "\"@DIR@/nginx.conf\" has no private key in PEM form"),
        ("external_account_key k nginx.conf;", "\"@DIR@/nginx.conf\" is no base64url"),
        ("ssl_trusted_certificate none.pem;", "\"@DIR@/none.pem\""),
        ("challenge dns @DIR@/none;", "stat() \"@DIR@/none\" failed (2: No such file"),
        ("challenge dns @DIR@/nginx.conf;", "\"@DIR@/nginx.conf\" is not executable"),
        ("challenge dns @DIR@;", "\"@DIR@\" is not executable"),
    ] {
        let home = home(inside);
        let why = why.replace("@DIR@", home.dir().to_str().unwrap());
        for args in [&["-t", "-c", "nginx.conf"][..], &["-c", "nginx.conf"]] {
            let done = home.run(args);
            let text = format!("{}{}", done.stderr, home.read("logs/error.log"));
            let line = text.lines().find(|line| line.contains("[emerg] acme_issuer \"ca\": "));
            let line = line.unwrap_or_else(|| panic!("{inside}: {text}"));
            assert!(line.contains(&why) && line.contains("nginx.conf:"), "{inside}: {line}");
            assert_eq!(done.code, 1, "{inside}: {text}");
        }
    }
}

#[test]
fn keys_are_used_as_openssl_writes_them() {
    let home = home("account_key own.key;");
    let own = home.dir().join("own.key");
    let own = own.to_str().unwrap();
    for args in [
        "ecparam -name prime256v1 -genkey",
        "ecparam -name prime256v1 -genkey -noout",
        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256",
    ] {
        let args: Vec<&str> = args.split(' ').chain(["-out", own]).collect();
        let _made = run("openssl", args).succeeded();
        let _fine = home.run(&["-t", "-c", "nginx.conf"]).succeeded();
    }
}
