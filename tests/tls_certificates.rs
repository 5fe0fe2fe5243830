//! The sources of certificates and keys: encrypted keys and their passphrases, inline text, and
//! messages about unusable ones.

use bolide_testkit::server::Home;
use bolide_testkit::{Proto, TestServer, run, wait_until};

use crate::BOLIDE;

/// A directory with keys that `openssl` encrypted with `secret`, and with unusable files.
fn home() -> Home {
    let home = Home::new(BOLIDE);
    let script = "openssl pkey -in cert.key -aes256 -passout pass:secret -out pkcs8.key
        openssl pkcs8 -topk8 -in cert.key -v2 des3 -passout pass:secret -out pkcs8-des.key
        openssl ec -in cert.key -aes128 -passout pass:secret -out old.key
        openssl ec -in cert.key -des3 -passout pass:secret -out old-des.key
        openssl genrsa -traditional -aes256 -passout pass:secret -out rsa.key 2048
        openssl req -x509 -days 9 -subj /CN=rsa -key rsa.key -passin pass:secret -out rsa.pem
        openssl ecparam -name prime256v1 -genkey -noout -out other.key
        printf 'wrong\\n\\nsecret\\r\\nlate' > words; printf 'wrong\\n' > wrong; : > none
        echo garbage > junk";
    let script = format!("cd '{}' && {{ {script}; }} 2>/dev/null", home.dir().display());
    let _quiet = run("sh", ["-ec", &script]).succeeded();
    home
}

fn conf(directives: &str) -> String {
    let prelude = bolide_testkit::server::prelude(1);
    format!(
        "{prelude}http {{ server {{ listen 127.0.0.1:@HTTP@; listen 127.0.0.1:@HTTPS@ ssl; \
         http2 on;\nlocation / {{ return 200 $ssl_server_name; }} {directives}\n}} }}\n"
    )
}

#[test]
fn sealed_keys_open_with_one_of_the_pass_phrases() {
    let home = home();
    for name in ["pkcs8", "pkcs8-des", "old", "old-des"] {
        home.write(
            "a",
            &conf(&format!(
                "ssl_certificate cert.pem; ssl_certificate_key {name}.key; \
                 ssl_password_file words;"
            )),
        );
        let done = home.run(&["-t", "-c", "a"]);
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
    }
    let server = TestServer::start(
        home,
        &conf(
            "ssl_password_file words; ssl_certificate cert.pem; ssl_certificate_key pkcs8.key;
             ssl_certificate rsa.pem; ssl_certificate_key rsa.key;",
        ),
    );
    for proto in [Proto::H1, Proto::H2] {
        let reply = server.fetch(proto, "/");
        assert_eq!((reply.status, reply.text().as_str()), (200, "localhost"));
    }
    let script = format!(
        "openssl s_client -connect {} -sigalgs rsa_pss_rsae_sha256:rsa_pkcs1_sha256 </dev/null",
        server.https()
    );
    let seen = run("sh", ["-c", &script]);
    assert!(seen.text().contains("subject=CN = rsa"), "{seen}");
}

#[test]
fn pass_phrases_are_inherited() {
    let home = home();
    let text = conf("ssl_certificate cert.pem; ssl_certificate_key pkcs8.key;");
    home.write("a", &text.replacen("http {", "http { ssl_password_file words;", 1));
    let done = home.run(&["-t", "-c", "a"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let own = "ssl_password_file wrong; ssl_certificate cert.pem; ssl_certificate_key pkcs8.key;";
    home.write("a", &conf(own).replacen("http {", "http { ssl_password_file words;", 1));
    assert_eq!(home.run(&["-t", "-c", "a"]).code, 1);
}

#[test]
fn text_in_the_configuration_is_as_good_as_a_file() {
    let home = home();
    let (chain, key) = (home.read("cert.pem"), home.read("cert.key"));
    let server = TestServer::start(
        home,
        &conf(&format!("ssl_certificate \"data:{chain}\"; ssl_certificate_key \"data:{key}\";")),
    );
    assert_eq!(server.fetch(Proto::H2, "/").text(), "localhost");
}

const WRONG: &str = "PEM_read_bio_PrivateKey() failed (SSL: error:1C800064:Provider routines::bad \
    decrypt error:11800074:PKCS12 routines::pkcs12 cipherfinal error:maybe wrong password \
    error:1C800064:Provider routines::bad decrypt error:11800074:PKCS12 routines::pkcs12 \
    cipherfinal error:maybe wrong password)\n";
const WRONG_OLD: &str = "PEM_read_bio_PrivateKey() failed (SSL: error:1C800064:Provider \
    routines::bad decrypt error:04800065:PEM routines::bad decrypt)\n";
const NO_KEY: &str = "PEM_read_bio_PrivateKey() failed (SSL: error:1E08010C:DECODER \
    routines::unsupported:No supported data to decode. Input type: PEM)\n";
const NO_CHAIN: &str = "PEM_read_bio_X509_AUX() failed (SSL: error:0480006C:PEM routines::no \
    start line:Expecting: TRUSTED CERTIFICATE)\n";

#[test]
fn unusable_files_are_refused_with_openssls_messages() {
    let home = home();
    let own = "ssl_certificate cert.pem; ssl_certificate_key";
    let key = |name: &str, why: &str| format!("cannot load certificate key \"{name}\": {why}");
    let chain = |name: &str, why: &str| format!("cannot load certificate \"{name}\": {why}");
    for (directives, message) in [
        (format!("{own} pkcs8.key; ssl_password_file wrong;"), key("@DIR@/pkcs8.key", WRONG)),
        (format!("{own} old.key; ssl_password_file wrong;"), key("@DIR@/old.key", WRONG_OLD)),
        (
            format!("{own} cert.key; ssl_password_file nowhere;"),
            "open() \"@DIR@/nowhere\" failed (2: No such file or directory) in @DIR@/a:2\n".into(),
        ),
        (
            format!("{own} cert.key; ssl_password_file logs;"),
            "read() \"@DIR@/logs\" failed (21: Is a directory) in @DIR@/a:2\n".into(),
        ),
        (
            format!("{own} cert.key; ssl_password_file words; ssl_password_file words;"),
            "\"ssl_password_file\" directive is duplicate in @DIR@/a:2\n".into(),
        ),
        (format!("{own} junk;"), key("@DIR@/junk", NO_KEY)),
        (format!("{own} cert.pem;"), key("@DIR@/cert.pem", NO_KEY)),
        (format!("{own} data:abc;"), key("data:abc", NO_KEY)),
        (
            "ssl_certificate junk; ssl_certificate_key cert.key;".into(),
            chain("@DIR@/junk", NO_CHAIN),
        ),
        (
            "ssl_certificate data:abc; ssl_certificate_key cert.key;".into(),
            chain("data:abc", NO_CHAIN),
        ),
        (
            format!("{own} other.key;"),
            "SSL_CTX_use_PrivateKey(\"@DIR@/other.key\") failed (SSL: error:05800074:x509 \
             certificate routines::key values mismatch)\n"
                .into(),
        ),
        (
            format!("{own} none.key;"),
            key(
                "@DIR@/none.key",
                "BIO_new_file() failed (SSL: error:80000002:system library::No such file or \
                 directory:calling fopen(@DIR@/none.key, r) error:10000080:BIO routines::no such \
                 file)\n",
            ),
        ),
        (
            format!("{own} engine:pkcs11:x;"),
            "engines in \"ssl_certificate_key\" are not implemented yet in @DIR@/a:2\n".into(),
        ),
        (
            format!("{own} store:pkcs11:x;"),
            "scheme \"pkcs11\" of stores in \"ssl_certificate_key\" is not supported in @DIR@/a:2\n"
                .into(),
        ),
        (
            "ssl_certificate cert.pem;".into(),
            "no \"ssl_certificate_key\" is defined for certificate \"cert.pem\"\n".into(),
        ),
    ] {
        home.write("a", &conf(&directives).replace('\n', " ").replacen("http {", "\nhttp {", 1));
        let done = home.run(&["-t", "-c", &format!("{}/a", home.dir().display())]);
        let message = message.replace("@DIR@", &home.dir().display().to_string());
        assert_eq!(done.code, 1, "{directives}");
        assert!(done.stderr.contains(&message), "{directives}: {}\n{message}", done.stderr);
    }
}

#[test]
fn a_certificate_that_will_expire_soon_is_warned_of() {
    let home = Home::new(BOLIDE);
    let made = "req -x509 -nodes -days 5 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -subj /CN=a";
    let (key, cert) = (home.dir().join("soon.key"), home.dir().join("soon.pem"));
    let (key, cert) = (key.display().to_string(), cert.display().to_string());
    let words = made.split(' ').chain(["-keyout", &key, "-out", &cert]);
    let _quiet = run("openssl", words).succeeded();
    let text = conf("ssl_certificate soon.pem; ssl_certificate_key soon.key;");
    home.write("a", &text);
    let done = home.run(&["-t", "-c", &format!("{}/a", home.dir().display())]);
    let warning = format!("[warn] certificate \"{cert}\" expires on ");
    assert!(done.stderr.contains(&warning), "{}", done.stderr);
    assert!(done.stderr.contains(" GMT in ") && done.code == 0, "{}", done.stderr);
    let server = TestServer::start(home, &text);
    server.signal("HUP");
    let line = format!("certificate \"{cert}\" expires on ");
    wait_until("the warning", || server.error_log().contains(&line));
}
