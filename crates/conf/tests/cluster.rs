//! What is read of `cluster`, and what is refused.

use std::time::Duration;

use bolide_conf::model::{ClusterAddress, ClusterConf, SharedObjects};

use crate::support::{messages, outcome};

fn read(http: &str) -> ClusterConf {
    let config = outcome(&format!("events {{}} http {{ {http} }}")).config.expect("configuration");
    config.http.and_then(|http| http.cluster).expect("a cluster")
}

fn told(http: &str) -> Vec<String> {
    messages(&outcome(&format!("events {{}} http {{ {http} }}")))
}

#[test]
fn a_block_has_all_it_says() {
    let made = read(
        "cluster rediss://a:1 { namespace shop; node web-1; user u; password p; \
         trusted_certificate ca.pem; reply_timeout 300ms; purge_keep_time 5m; \
         purge_keep_count 1000; purge_queue 9; }",
    );
    assert_eq!((&*made.namespace, made.node.as_deref()), ("shop", Some("web-1")));
    let password = made.password.as_ref().map(|secret| secret.0.as_str());
    assert_eq!((made.user.as_deref(), password), (Some("u"), Some("p")));
    assert!(!format!("{made:?}").contains("\"p\""), "a password is shown nowhere");
    assert!(made.trusted_certificate.is_some_and(|path| path.is_absolute()));
    assert_eq!(
        (made.reply_timeout, made.purge_keep_time.as_secs()),
        (Duration::from_millis(300), 300)
    );
    assert_eq!((made.purge_keep_count, made.purge_queue), (1000, 9));
}

#[test]
fn objects_are_shared_only_where_it_is_written() {
    let made = read("cluster valkey://a { }");
    assert_eq!(made.objects, SharedObjects::Off);
    let [wait, lease] = [made.objects_timeout, made.objects_lease_time];
    assert_eq!((wait, lease), (Duration::from_millis(2), Duration::from_secs(5)));
    assert_eq!((made.objects_max_size, made.objects_min_uses), (1 << 20, 1));
    let made = read(
        "cluster valkey://a { objects public; objects_timeout 7ms; objects_lease_time 9s; \
         objects_max_size 3k; objects_min_uses 4; }",
    );
    assert_eq!((made.objects, made.objects_max_size), (SharedObjects::Public, 3 << 10));
    assert_eq!(made.objects_min_uses, 4);
    let [wait, lease] = [made.objects_timeout, made.objects_lease_time];
    assert_eq!((wait, lease), (Duration::from_millis(7), Duration::from_secs(9)));
}

#[test]
fn keys_of_secrets_are_files_with_their_lines() {
    let made = read("cluster valkey://a {\nsecrets_key one;\nsecrets_key two; }");
    let shown = |at: usize| {
        let (path, place) = &made.secrets_keys[at];
        (path.file_name().map(|name| name.to_string_lossy().into_owned()), place.line)
    };
    assert_eq!(made.secrets_keys.len(), 2);
    assert_eq!(shown(0), (Some("one".to_owned()), 2));
    assert_eq!(shown(1), (Some("two".to_owned()), 3));
    assert!(read("cluster valkey://a { }").secrets_keys.is_empty());
}

#[test]
fn a_key_of_secrets_where_nothing_is_secret_is_told() {
    let cluster = "cluster valkey://a {\nsecrets_key one; }\n";
    let plain = told(&format!("{cluster} server {{ listen 80; }}"));
    assert!(plain.iter().any(|line| line.contains("\"secrets_key\" has no effect")), "{plain:?}");
    for use_of_it in [
        "server { listen 443 ssl; ssl_certificate a; ssl_certificate_key a; }",
        "server { listen 443 quic; ssl_certificate a; ssl_certificate_key a; }",
        "limit_req_zone $uri zone=a:1m rate=1r/s shared; server { listen 80; }",
    ] {
        let said = told(&format!("{cluster} {use_of_it}"));
        assert!(!said.iter().any(|line| line.contains("secrets_key")), "{use_of_it}: {said:?}");
    }
    let none = told("cluster valkey://a { } server { listen 80; }");
    assert!(!none.iter().any(|line| line.contains("secrets_key")), "{none:?}");
}

#[test]
fn zones_are_shared_only_where_there_is_a_cluster() {
    let zones = "limit_req_zone $arg_a zone=a:1m shared rate=1r/s;\n\
                 limit_conn_zone $arg_a zone=b:1m shared; limit_conn_zone $arg_a zone=c:1m;";
    let text = format!("events {{}} http {{ {zones} cluster valkey://a {{ }} }}");
    let http = outcome(&text).config.expect("configuration").http.expect("http");
    let shared: Vec<bool> = http.limit_zones.iter().map(|zone| zone.shared).collect();
    assert_eq!(shared, [true, true, false]);
    let told = told(zones);
    let wanted = |name: &str| {
        format!("[emerg] zone \"{name}\" is \"shared\", but there is no \"cluster\" block")
    };
    for name in ["a", "b"] {
        assert!(told.iter().any(|text| text.starts_with(&wanted(name))), "{told:?}");
    }
    assert!(!told.iter().any(|text| text.contains("\"c\"")), "{told:?}");
}

/// `shared` comes beside what nginx has, in place of nothing.
#[test]
fn zones_are_refused_as_without_shared() {
    let number =
        |name: &str| format!("[emerg] invalid number of arguments in \"{name}\" directive");
    let (requests, conns) = (number("limit_req_zone"), number("limit_conn_zone"));
    let invalid = |word: &str| format!("[emerg] invalid parameter \"{word}\"");
    for (zone, wanted) in [
        ("limit_req_zone $arg_a zone=a:1m;", &requests),
        ("limit_req_zone $arg_a zone=a:1m shared;", &invalid("shared")),
        ("limit_req_zone $arg_a shared rate=1r/s;", &invalid("shared")),
        ("limit_req_zone $arg_a zone=a:1m shared shared;", &requests),
        ("limit_req_zone $arg_a zone=a:1m rate=1r/s on;", &requests),
        ("limit_req_zone $arg_a zone=a:1m rate=1r/s '1m 30s';", &requests),
        ("limit_req_zone shared zone=a:1m rate=1r/s 7;", &requests),
        ("limit_req_zone a a a a;", &requests),
        ("limit_req_zone a a a shared;", &invalid("a")),
        ("limit_req_zone $arg_a zone=a:1m rate=1r/s shared shared;", &requests),
        ("limit_conn_zone $arg_a;", &conns),
        ("limit_conn_zone $arg_a shared;", &invalid("shared")),
        ("limit_conn_zone $arg_a shared shared;", &conns),
        ("limit_conn_zone $arg_a zone=a:1m -1;", &conns),
        ("limit_conn_zone a a a;", &conns),
        ("limit_conn_zone a a shared;", &invalid("a")),
        ("limit_conn_zone $arg_a zone=a:1m shared shared;", &conns),
    ] {
        let said = told(&format!("{zone} cluster valkey://a {{ }}"));
        assert!(said.iter().any(|one| one.starts_with(&**wanted)), "{zone}: {said:?}");
    }
    let zones = "limit_req_zone shared shared zone=a:1m rate=1r/s;\n\
                 limit_conn_zone shared shared zone=b:1m; limit_conn_zone shared zone=c:1m;";
    let text = format!("events {{}} http {{ {zones} cluster valkey://a {{ }} }}");
    let http = outcome(&text).config.expect("configuration").http.expect("http");
    let shared: Vec<bool> = http.limit_zones.iter().map(|zone| zone.shared).collect();
    assert_eq!(shared, [true, true, false], "wherever it is but as the key");
}

#[test]
fn addresses_are_servers_sentinels_or_sockets() {
    let shown = |text: &str| match read(&format!("cluster {text} {{ }}")).address {
        ClusterAddress::Unix(path) => format!("unix {}", path.is_absolute()),
        ClusterAddress::Tcp { hosts, is_secure, master } => {
            format!("{hosts:?} {is_secure} {}", master.unwrap_or_default())
        }
    };
    for (text, wanted) in [
        ("valkey://a", r#"[("a", 6379)] false "#),
        ("REDIS://a:7", r#"[("a", 7)] false "#),
        ("rediss://[::1]", r#"[("::1", 6379)] true "#),
        ("valkey-cluster://a:1,b:2", r#"[("a", 1), ("b", 2)] false "#),
        ("valkeys-sentinel://a,b:3/main", r#"[("a", 26379), ("b", 3)] true main"#),
        ("unix:/run/valkey.sock", "unix true"),
    ] {
        assert_eq!(shown(text), wanted, "{text}");
    }
}

#[test]
fn what_is_wrong_is_refused() {
    let address = "[emerg] invalid address \"";
    for (http, wanted) in [
        ("cluster a:1 { }", address),
        ("cluster http://a { }", address),
        ("cluster valkey-x://a { }", address),
        ("cluster valkey:// { }", address),
        ("cluster valkey://a:0 { }", address),
        ("cluster valkey://::1 { }", address),
        ("cluster valkey://a,, { }", address),
        ("cluster valkey://a:+5 { }", address),
        ("cluster valkey://a: { }", address),
        ("cluster valkey://[::1]:+5 { }", address),
        ("cluster valkey://a%20 { }", address),
        ("cluster valkey://$host { }", address),
        ("cluster 'valkey://a b' { }", address),
        ("cluster valkey://a/3 { }", address),
        ("cluster unix: { }", "[emerg] no path in the unix domain socket"),
        ("cluster valkey-sentinel://a { }", "[emerg] no name of a server in"),
        ("cluster valkey://u:p@a { }", "[emerg] the address of \"cluster\" has no user"),
        ("cluster valkey://a { namespace 'a b'; }", "[emerg] invalid name \"a b\""),
        (
            "cluster valkey://a { trusted_certificate a; }",
            "[emerg] \"trusted_certificate\" requires",
        ),
        ("cluster valkey://a { user u; }", "[emerg] \"user\" requires \"password\""),
        ("cluster valkey://a { password p; password_file f; }", "[emerg] \"password\" and"),
        (
            "cluster valkey://a { reply_timeout 0; }",
            "[emerg] \"reply_timeout\", \"purge_keep_time\"",
        ),
        (
            "cluster valkey://a { purge_keep_count 999; }",
            "[emerg] \"purge_keep_count\" must be at least 1000",
        ),
        ("cluster valkey://a { purge_queue 0; }", "[emerg] \"reply_timeout\", \"purge_keep_time\""),
        ("cluster valkey://a { objects private; }", "[emerg] private objects are not shared"),
        ("cluster valkey://a { objects on; }", "[emerg] \"objects\" is \"off\" or \"public\""),
        (
            "cluster valkey://a { objects public; objects_timeout 0; }",
            "[emerg] \"objects_timeout\" and",
        ),
        (
            "cluster valkey://a { objects_lease_time 0; objects public; }",
            "[emerg] \"objects_timeout\" and",
        ),
        (
            "cluster valkey://a { objects public; objects_lease_time 61m; }",
            "[emerg] \"objects_timeout\" and",
        ),
        (
            "cluster valkey://a { objects public; objects_max_size 17m; }",
            "[emerg] \"objects_timeout\" and",
        ),
        (
            "cluster valkey://a { objects public; objects_min_uses 0; }",
            "[emerg] \"objects_min_uses\" must be greater than zero",
        ),
        (
            "cluster valkey://a { objects_min_uses 2; }",
            "[emerg] \"objects_min_uses\" requires \"objects public\"",
        ),
        (
            "cluster valkey://a { objects_max_size 1m; }",
            "[emerg] \"objects_max_size\" requires \"objects public\"",
        ),
        (
            "cluster valkey://a { objects_timeout 1ms; objects off; }",
            "[emerg] \"objects_timeout\" requires \"objects public\"",
        ),
        ("cluster valkey://a { listen 80; }", "[emerg] \"listen\" directive is not"),
        ("server { cluster valkey://a { } }", "[emerg] \"cluster\" directive is not allowed here"),
        ("namespace a;", "[emerg] \"namespace\" directive is not allowed here"),
        ("cluster valkey://a;", "[emerg] directive \"cluster\" has no opening"),
    ] {
        let said = told(http);
        assert!(said.iter().any(|one| one.starts_with(wanted)), "{http}: {said:?}");
    }
    let twice = told("cluster valkey://a { } cluster valkey://b { }");
    assert!(twice[0].contains("\"cluster\" directive is duplicate"), "{twice:?}");
}
