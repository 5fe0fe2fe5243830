//! TLS to backends, certificates of clients, and who a proxy in front says that the client is.

use super::{of, text};
use crate::Imported;

const TLS: &str = "SSLProxyEngine on\nProxyPass /app https://b:8443/\n";
const AUTHORITY: &str = "SSLProxyCACertificateFile /ca\n";

fn imported(conf: &str) -> Imported {
    of(&[("/a/httpd.conf", &format!("Listen 80\nDocumentRoot /srv\n{conf}\n"))]).unwrap()
}

/// The lines of `location ^~ /app/` that are about TLS, or close it.
fn of_app(conf: &str) -> Vec<String> {
    let text = imported(conf).text;
    let lines = text.lines().map(str::trim).skip_while(|line| *line != "location ^~ /app/ {");
    let lines: Vec<&str> = lines.skip(1).take_while(|line| *line != "}").collect();
    assert!(!lines.is_empty(), "{conf}\n{text}");
    let is_meant = |line: &&&str| line.starts_with("proxy_ssl") || line.starts_with("return");
    lines.iter().filter(is_meant).map(|line| (*line).to_owned()).collect()
}

const VERIFIED: [&str; 4] = [
    "proxy_ssl_server_name on;",
    "proxy_ssl_verify on;",
    "proxy_ssl_trusted_certificate /ca;",
    "proxy_ssl_verify_depth 0;",
];

#[test]
fn every_word_that_verifies_a_backend_does() {
    for word in ["require", "Require", "REQUIRE", "on", "On", "optional", "Optional"] {
        let conf = format!("{TLS}{AUTHORITY}SSLProxyVerify {word}");
        assert_eq!(of_app(&conf), VERIFIED, "{word}");
        // In a section that is about all of its requests, too.
        let conf = format!("{TLS}<Proxy *>\n{AUTHORITY}SSLProxyVerify {word}\n</Proxy>");
        assert_eq!(of_app(&conf), VERIFIED, "{word}");
    }
    let closed = [
        "SSLProxyVerify optional_no_ca\nSSLProxyCACertificateFile /ca",
        "SSLProxyVerify unknown\nSSLProxyCACertificateFile /ca",
        "SSLProxyVerify require",
        "SSLProxyVerify require\nSSLProxyCACertificatePath /ca",
        "<ProxyMatch 8443/x>\nSSLProxyVerify require\n</ProxyMatch>",
    ];
    for conf in closed {
        let done = imported(&format!("{TLS}{conf}"));
        assert!(!done.closed.is_empty(), "{conf}\n{}", done.text);
        assert!(of_app(&format!("{TLS}{conf}")).contains(&"return 503;".to_owned()), "{conf}");
    }
}

#[test]
fn chains_are_as_long_as_in_apache() {
    let with = |depth: &str| {
        let conf = format!("{TLS}{AUTHORITY}SSLProxyVerify on\nSSLProxyVerifyDepth {depth}");
        of_app(&conf).pop().unwrap()
    };
    assert_eq!(with("1"), "proxy_ssl_verify_depth 0;");
    assert_eq!(with("3"), "proxy_ssl_verify_depth 2;");
    for closed in ["0", "x"] {
        assert_eq!(with(closed), "return 503;", "{closed}");
    }
    let client = |more: &str| {
        text(&format!(
            "Listen 443\nSSLEngine on\nSSLCertificateFile /c\nSSLCACertificateFile /ca\n\
             SSLVerifyClient require\n{more}\n"
        ))
    };
    assert!(client("").contains("ssl_verify_depth 0;"), "{}", client(""));
    assert!(client("SSLVerifyDepth 2").contains("ssl_verify_depth 1;"));
    for depth in ["0", "x", "-1"] {
        let text = client(&format!("SSLVerifyDepth {depth}"));
        assert!(text.contains("return 503;") && text.contains("CLOSED:"), "{text}");
    }
}

#[test]
fn revoked_backends_are_refused() {
    let conf = |more: &str| format!("{TLS}{AUTHORITY}SSLProxyVerify require\n{more}");
    for check in ["chain", "Leaf", "chain no_crl_for_cert_ok"] {
        let more = format!("SSLProxyCARevocationFile /crl\nSSLProxyCARevocationCheck {check}");
        let lines = of_app(&conf(&more));
        assert_eq!(lines.last().unwrap(), "proxy_ssl_crl /crl;", "{check}");
    }
    let closed = [
        "SSLProxyCARevocationPath /crl\nSSLProxyCARevocationCheck chain",
        "SSLProxyCARevocationPath /d\nSSLProxyCARevocationFile /f\nSSLProxyCARevocationCheck leaf",
        "SSLProxyCARevocationCheck Chain",
    ];
    for more in closed {
        assert!(of_app(&conf(more)).contains(&"return 503;".to_owned()), "{more}");
    }
    for file in ["Path", "File"] {
        let none = format!("SSLProxyCARevocation{file} /crl\nSSLProxyCARevocationCheck None");
        assert_eq!(of_app(&conf(&none)), VERIFIED, "{file}");
    }
    let unsaid = of_app(&conf("SSLProxyCARevocationFile /crl"));
    assert_eq!(unsaid.last().unwrap(), "proxy_ssl_crl /crl;");
}

#[test]
fn what_apache_checks_of_an_unverified_certificate_is_told() {
    let name = "SSLProxyCheckPeerName Off\n";
    let old_name = "SSLProxyCheckPeerCN off\n";
    let date = "SSLProxyCheckPeerExpire off\n";
    let rows = [
        (String::new(), "UNVERIFIED: the name and the date of", true),
        ("SSLProxyVerify None\n".to_owned(), "UNVERIFIED: the name and the date of", true),
        (name.to_owned(), "UNVERIFIED: the date of", true),
        (old_name.to_owned(), "UNVERIFIED: the date of", true),
        (format!("SSLProxyCheckPeerName on\n{old_name}"), "the name and the date of", true),
        (date.to_owned(), "UNVERIFIED: the name of", true),
        (format!("{name}{date}"), "", false),
        (format!("{AUTHORITY}SSLProxyVerify require\n"), "", false),
    ];
    for (more, wanted, is_told) in rows {
        let done = imported(&format!("{TLS}{more}"));
        assert!(done.text.contains(wanted), "{more}\n{}", done.text);
        let lines: Vec<u32> = done.unverified.iter().map(|place| place.line).collect();
        assert_eq!(lines, if is_told { vec![4] } else { vec![] }, "{more}");
        assert!(done.closed.is_empty(), "{more}\n{}", done.text);
    }
}

#[test]
fn without_an_engine_tls_fails_as_in_apache() {
    let pass = "ProxyPass /app https://b/\n";
    for conf in [pass.to_owned(), format!("{pass}SSLProxyEngine Off\n")] {
        assert_eq!(of_app(&conf), ["return 500;"], "{conf}");
    }
    assert_eq!(of_app("ProxyPass /app http://b/\n"), [""; 0]);
    let off = format!("SSLProxyEngine on\n<VirtualHost *:80>\nSSLProxyEngine off\n{pass}");
    assert_eq!(of_app(&format!("{off}</VirtualHost>\n")), ["return 500;"]);
    let on = format!("{pass}<Proxy https://b/>\nSSLProxyEngine ON\n</Proxy>\n");
    assert_eq!(of_app(&on), ["proxy_ssl_server_name on;"]);
    // The client's name is the one in the certificate, too.
    let host = of_app(&format!("{TLS}ProxyPreserveHost On\n"));
    assert_eq!(host, ["proxy_ssl_server_name on;", "proxy_ssl_name $host;"]);
}

#[test]
fn members_of_balancers_are_reached_with_tls() {
    let conf = |members: &[&str], more: &str| {
        let all: String = members.iter().map(|it| format!("BalancerMember {it}\n")).collect();
        format!(
            "SSLProxyEngine on\n<Proxy Balancer://c>\n{all}</Proxy>\n\
             ProxyPass /app balancer://c/\n{more}"
        )
    };
    let require = format!("{AUTHORITY}SSLProxyVerify require\n");
    let one = ["HTTPS://b:8443", "https://b"];
    assert!(text(&format!("Listen 80\n{}", conf(&one, ""))).contains("https://balancer_c/;"));
    let lines = of_app(&conf(&one, &require));
    assert_eq!(lines[..3], [VERIFIED[0], "proxy_ssl_name b;", VERIFIED[1]]);
    let two = ["https://b", "https://c"];
    // None of the names is sent to all of them.
    assert_eq!(of_app(&conf(&two, "")), [""; 0]);
    assert!(of_app(&conf(&two, &require)).contains(&"return 503;".to_owned()));
    let both = text(&format!("Listen 80\n{}", conf(&["http://b", "https://c"], "")));
    assert!(both.contains("location /app { return 503; }"), "{both}");
    assert!(conf_is_plain(&conf(&["http://b"], "")));
}

#[test]
fn members_of_balancers_have_one_path_and_are_reached_by_http() {
    let conf = |members: &[&str], to: &str| {
        let all: String = members.iter().map(|it| format!("BalancerMember {it}\n")).collect();
        let passed = format!("ProxyPass /app balancer://c{to}\n");
        text(&format!("Listen 80\n<Proxy balancer://c>\n{all}</Proxy>\n{passed}"))
    };
    let rows: [(&[&str], &str, &[&str]); 5] = [
        (&["http://b:8080/only"], "", &["http://balancer_c/only/;", "Host b:8080;"]),
        (&["http://b/x", "http://c/x"], "/y", &["http://balancer_c/x/y/;", "Host b;"]),
        (&["http://b", "http://c"], "/", &["http://balancer_c/;", "Host b;"]),
        (&["ws://b"], "/", &["http://balancer_c/;", "server b:80;"]),
        (&["wss://b"], "/", &["server b:443;"]),
    ];
    for (members, to, wanted) in rows {
        let text = conf(members, to);
        for one in wanted {
            assert!(text.contains(one), "{one} is missing:\n{text}");
        }
    }
    let closed: [&[&str]; 5] = [
        &["http://b/x", "http://c/y"],
        &["http://b/x", "http://c"],
        &["ajp://b"],
        &["unix:/run/a.sock|http://b"],
        &["http://b", "fcgi://c:9000"],
    ];
    for members in closed {
        let text = conf(members, "/");
        assert!(text.contains("location /app { return 503; }"), "{members:?}:\n{text}");
        assert!(text.contains(": CLOSED: ProxyPass /app balancer://c/"), "{text}");
    }
}

fn conf_is_plain(conf: &str) -> bool {
    text(&format!("Listen 80\n{conf}")).contains("proxy_pass http://balancer_c/;")
}

#[test]
fn all_lines_of_a_field_say_who_the_client_is() {
    let of_header = |name: &str| {
        text(&format!("Listen 80\nRemoteIPHeader {name}\nRemoteIPInternalProxy 127.0.0.1\n"))
    };
    for name in ["X-Client-IP", "X-Real-IP"] {
        let text = of_header(name);
        assert!(text.contains(&format!("real_ip_header {name} all;")), "{text}");
    }
    assert!(of_header("x-forwarded-for").contains("real_ip_header X-Forwarded-For;"));
}

/// The lines of a server, by its name.
fn server(text: &str, name: &str) -> String {
    let mut all = text.split("\n    server {");
    let named = format!("server_name {name};");
    all.find(|part| part.contains(&named)).unwrap_or_else(|| panic!("{name}\n{text}")).to_owned()
}

#[test]
fn the_proxy_protocol_is_spoken_where_apache_speaks_it() {
    let host = |port: u16, more: &str| {
        format!("<VirtualHost *:{port}>\nServerName n{port}.test\n{more}\n</VirtualHost>\n")
    };
    let on = "RemoteIPProxyProtocol ON";
    let spoken = ["listen 80 proxy_protocol;", "real_ip_header proxy_protocol;"];
    let of_two = |main: &str, first: &str, second: &str| {
        let (first, second) = (host(80, first), host(81, second));
        let text = text(&format!("Listen 80\nListen 81\n{main}\n{first}{second}"));
        [server(&text, "n80.test"), server(&text, "n81.test")]
    };
    let [first, second] = of_two("", on, "");
    assert!(spoken.iter().all(|line| first.contains(line)), "{first}");
    assert!(!second.contains("proxy_protocol"), "{second}");
    let [first, second] = of_two(on, "", "RemoteIPProxyProtocol off");
    assert!(spoken.iter().all(|line| first.contains(line)), "{first}");
    assert!(!second.contains("proxy_protocol"), "{second}");
    // A field says nothing there.
    let header = "RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxy 127.0.0.1";
    let [first, second] = of_two(header, on, header);
    assert!(!first.contains("real_ip_header X-Forwarded-For;"), "{first}");
    assert!(second.contains("real_ip_header X-Forwarded-For;"), "{second}");
    // All servers of an address speak it.
    let both = text(&format!(
        "Listen 80\n{}<VirtualHost *:80>\nServerName other.test\n</VirtualHost>\n",
        host(80, on)
    ));
    assert!(spoken.iter().all(|line| server(&both, "other.test").contains(line)), "{both}");
    let [first, _] = of_two("RemoteIPProxyProtocolExceptions 10.0.0.0/8", on, "");
    assert!(first.contains("return 503;") && first.contains("CLOSED:"), "{first}");
    let mixed = "<VirtualHost *:80 *:81>\nServerName a.test\nRemoteIPHeader X\n</VirtualHost>\n";
    let mixed = text(&format!("Listen 80\nListen 81\n{mixed}{}", host(80, on)));
    assert!(server(&mixed, "a.test").contains("return 503;"), "{mixed}");
}

#[test]
fn keywords_count_in_any_case() {
    let place = |rule: &str| format!("ProxyPass /app http://b/\n<Location /app>\n{rule}\n");
    let rows = [
        (place("Require all DENIED\n</Location>"), "deny all;"),
        (
            place(
                "<RequireAll>\nRequire all Granted\nRequire NOT ip 10\n</RequireAll>\n</Location>",
            ),
            "deny 10.0.0.0/8;",
        ),
        ("ProxyPass /app HTTP://b/ Timeout=7\n".to_owned(), "proxy_read_timeout 7s;"),
        ("ProxyPass /app Unix:/run/x|HTTP://b/\n".to_owned(), "http://unix:/run/x:/"),
        ("ErrorLog SYSLOG:daemon\n".to_owned(), "error_log syslog:server="),
        ("<VirtualHost _DEFAULT_:80>\nServerName a.test\n</VirtualHost>\n".to_owned(), "a.test;"),
        (
            "ProxyPass /app http://b/\nHeader OnSuccess SET X always\n".to_owned(),
            "more_set_headers \"X: always\";",
        ),
        (
            "<Files *.x>\nSetHandler Proxy:fcgi://127.0.0.1:9/\n</Files>\n".to_owned(),
            "fastcgi_pass 127.0.0.1:9;",
        ),
        (
            "<Proxy balancer://c>\nBalancerMember http://b Status=+h LoadFactor=2\n</Proxy>\n"
                .to_owned(),
            "server b:80 backup weight=2;",
        ),
        (
            "RewriteEngine on\nRewriteRule ^/in/(.*)$ /$1 [L]\n\
             <Location /in>\nRequire all Denied\n</Location>\n"
                .to_owned(),
            "return 403;",
        ),
    ];
    for (conf, wanted) in rows {
        let text = imported(&conf).text;
        assert!(text.contains(wanted), "{wanted}\n{conf}\n{text}");
    }
    let client = |word: &str| {
        text(&format!(
            "Listen 443\nSSLEngine ON\nSSLCertificateFile /c\nSSLCACertificateFile /ca\n\
             SSLVerifyClient {word}\n"
        ))
    };
    assert!(client("On").contains("ssl_verify_client on;"));
    assert!(client("OFF").contains("ssl_verify_client off;"));
}
