//! The families of directives about upstreams beside `fastcgi_*` and `proxy_*`: uwsgi and SCGI.

use bolide_conf::model::{DirectiveFamily, Handler, Http, OriginSettings, Pass, Protocol, ZoneUse};

use crate::support::{http, location, messages, outcome};

fn pass<'h>(http: &'h Http, name: &str) -> &'h Pass {
    match &location(http, &http.servers[0], name).handler {
        Handler::Pass(pass) => pass,
        other => panic!("{name} has {other:?}"),
    }
}

fn origin<'h>(http: &'h Http, name: &str) -> &'h OriginSettings {
    &location(http, &http.servers[0], name).settings.origin
}

#[test]
fn a_scheme_of_uwsgi_pass_says_whether_there_is_tls_and_groups_are_shared() {
    let http = http(
        "upstream app { server 127.0.0.1:1; } server {
           location /a { uwsgi_pass 127.0.0.1:2; } location /b { uwsgi_pass uwsgi://127.0.0.1:2; }
           location /c { uwsgi_pass SUWSGI://app; } location /d { scgi_pass 127.0.0.1:2; }
           location /e { uwsgi_pass suwsgi://unix:/s; } location /f { uwsgi_pass $scheme://x; } }",
    );
    for (name, secure) in [("/a", false), ("/b", false), ("/c", true), ("/e", true)] {
        let pass = pass(&http, name);
        assert_eq!(pass.protocol, Protocol::Uwsgi);
        assert_eq!(pass.url.as_ref().map(|url| url.secure), Some(secure), "{name}");
    }
    assert_eq!(pass(&http, "/a").to, pass(&http, "/b").to);
    assert_eq!(pass(&http, "/a").to, pass(&http, "/d").to);
    assert_eq!((pass(&http, "/d").protocol, &pass(&http, "/d").url), (Protocol::Scgi, &None));
    assert_eq!(pass(&http, "/f").url, None);
    assert_eq!(http.upstreams.len(), 3);
}

#[test]
fn each_family_has_settings_of_its_own_and_its_locations_get_them() {
    let http = http(
        "uwsgi_param A u; scgi_param A s; uwsgi_read_timeout 1s; scgi_read_timeout 2s;
         fastcgi_read_timeout 3s; uwsgi_modifier1 5; uwsgi_modifier2 255; uwsgi_string x;
         uwsgi_cache_path /u keys_zone=u:1m; uwsgi_cache u; uwsgi_cache_key k;
         server { location /u { uwsgi_pass unix:/s; }
           location /s { scgi_pass unix:/s; scgi_intercept_errors on; }
           location /f { fastcgi_pass unix:/s; } location /none { } }",
    );
    let read = |name: &str| origin(&http, name).read_timeout.as_secs();
    assert_eq!((read("/u"), read("/s"), read("/f")), (1, 2, 3));
    let uwsgi = origin(&http, "/u");
    assert_eq!((uwsgi.uwsgi_modifiers, &*uwsgi.uwsgi_string), ([5, 255], &b"x"[..]));
    assert!(origin(&http, "/s").intercept_errors && !uwsgi.intercept_errors);
    let temp = |name: &str| origin(&http, name).temp_path.path.display().to_string();
    assert!(temp("/u").ends_with("uwsgi_temp") && temp("/s").ends_with("scgi_temp"));
    let zone = |name: &str| &location(&http, &http.servers[0], name).settings.cache.zone;
    assert!(matches!(zone("/u"), ZoneUse::Zone(_)));
    assert_eq!((zone("/s"), zone("/f")), (&ZoneUse::Off, &ZoneUse::Off));
    let settings = &location(&http, &http.servers[0], "/none").settings;
    assert_eq!(settings.origin_of(DirectiveFamily::Scgi).params.len(), 1);
}

#[test]
fn errors_have_nginx_s_words_with_the_prefix_of_the_family() {
    for (family, prefix) in [("uwsgi", "uwsgi_"), ("scgi", "scgi_")] {
        for (line, message) in [
            ("@cache Z;", "\"@cache\" zone \"Z\" is unknown"),
            ("@buffers 1 4k;", "there must be at least 2 \"@buffers\""),
            ("@next_upstream http_502;", "invalid value \"http_502\""),
            ("@cache_use_stale http_504;", "invalid value \"http_504\""),
            ("@store on; @cache Z;", "\"@cache\" directive is incompatible with \"@store\""),
            ("@param A b c;", "invalid parameter \"c\""),
            ("@pass 127.0.0.1;", "no port in upstream \"127.0.0.1\""),
            ("@pass 127.0.0.1:1/x;", "invalid host in upstream \"127.0.0.1:1/x\""),
            ("@pass http://127.0.0.1:1;", "invalid host in upstream \"http://127.0.0.1:1\""),
            ("@pass unix:/a; @pass unix:/a;", "\"@pass\" directive is duplicate"),
            ("@send_lowat 0;", "unknown directive \"@send_lowat\""),
        ] {
            let text = format!("events {{}}\nhttp {{ server {{ location / {{ {line} }} }} }}\n");
            let said = messages(&outcome(&text.replace('@', prefix)));
            let message = message.replace('@', prefix);
            assert!(said.iter().any(|said| said.contains(&message)), "{family} {line}: {said:?}");
        }
        let keyless = "events {} http { @cache_path /z keys_zone=Z:1m; \
            server { location / { @pass unix:/s; @cache Z; } } }";
        let said = messages(&outcome(&keyless.replace('@', prefix)));
        let expected = format!("no \"{prefix}cache_key\" for \"{prefix}cache\"");
        assert!(said.iter().any(|said| said.contains(&expected)), "{said:?}");
        let zones = "events {} http { fastcgi_cache_path /z keys_zone=Z:1m; \
            server { location / { @cache Z; } } }";
        let said = messages(&outcome(&zones.replace('@', prefix)));
        let expected = "shared memory zone \"Z\" is already declared for a different use";
        assert!(said.iter().any(|said| said.contains(expected)), "{said:?}");
    }
    let said = |line: &str| messages(&outcome(&format!("events {{}} http {{ {line} }}")));
    assert!(said("uwsgi_modifier1 256;")[0].contains("value must be between 0 and 255"));
    assert!(said("uwsgi_modifier2 a;")[0].contains("\"uwsgi_modifier2\" directive invalid number"));
    assert!(
        said("uwsgi_ssl_conf_command Options x;")[0].contains("\"uwsgi_ssl_conf_command Options\"")
    );
}
