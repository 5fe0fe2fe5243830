//! Databases of addresses: `geoip2`, `geoip_country` and their kin.

use std::fs;
use std::path::Path;

use bolide_testkit::mmdb::{Mmdb, MmdbValue, map};
use bolide_testkit::server::{Home, LISTEN, prelude};
use bolide_testkit::{Proto, TestServer, wait_until};

use crate::{BOLIDE, report};

/// Countries for some networks of documentation, and for clients on this machine.
pub(crate) fn countries(home: &str) -> Mmdb {
    let country = |code: &str, name: &str| {
        let names = map([("en", name.into()), ("de", "anders".into())]);
        map([("country", map([("iso_code", code.into()), ("names", names)]))])
    };
    Mmdb::new([
        ("127.0.0.0/8", country(home, "Home")),
        ("::1/128", country(home, "Home")),
        ("192.0.2.0/24", country("DE", "Germany")),
        ("198.51.100.0/24", country("XX", "Nowhere")),
        ("2001:db8::/32", country("AT", "Austria")),
    ])
}

fn city() -> Mmdb {
    let named = |code: &str, name: &str| {
        map([("iso_code", code.into()), ("names", map([("en", name.into())]))])
    };
    let vienna = map([
        ("continent", map([("code", "EU".into())])),
        ("country", named("AT", "Austria")),
        ("subdivisions", MmdbValue::Array(vec![named("9", "Vienna State")])),
        ("city", map([("names", map([("en", "Vienna".into())]))])),
        ("postal", map([("code", "1010".into())])),
        (
            "location",
            map([
                ("latitude", MmdbValue::Double(48.20849)),
                ("longitude", MmdbValue::Double(-16.3)),
                ("metro_code", MmdbValue::U16(807)),
            ]),
        ),
        ("autonomous_system_organization", "Example Net".into()),
    ]);
    Mmdb::new([("192.0.2.0/24", vienna)])
}

/// A server whose `http` block has `blocks`, with `country.mmdb` and `city.mmdb` in its directory.
fn with(blocks: &str, server: &str) -> TestServer {
    let home = Home::new(BOLIDE);
    write(home.dir(), "country.mmdb", &countries("US").bytes());
    write(home.dir(), "city.mmdb", &city().bytes());
    start(home, &format!("{blocks} server {{ {LISTEN} {server} }}"))
}

fn configuration(http: &str) -> String {
    format!("{}http {{ {http}\n}}\n", prelude(1))
}

fn start(home: Home, http: &str) -> TestServer {
    TestServer::start(home, &configuration(http))
}

/// Puts a file in the place of another one, as tools that update databases do.
fn write(dir: &Path, name: &str, bytes: &[u8]) {
    let new = dir.join(format!("{name}.new"));
    fs::write(&new, bytes).unwrap();
    fs::rename(&new, dir.join(name)).unwrap();
}

#[test]
fn a_variable_has_the_value_at_its_path_in_the_database() {
    let server = with(
        "geoip2 country.mmdb {
             $code default=-- source=$arg_a country iso_code;
             $name source=$arg_a country names en;
             $built metadata build_epoch;
             $mine country iso_code;
         }
         geoip2 @DIR@/city.mmdb { $region source=$arg_a subdivisions 0 iso_code; }",
        "add_header V \"$built $mine\"; return 200 \"$code,$name,$region\";",
    );
    let rows = [
        ("192.0.2.7", "DE,Germany,9"),
        ("2001:db8::7", "AT,Austria,"),
        ("::ffff:192.0.2.7", "DE,Germany,9"),
        ("203.0.113.1", "--,,"),
        ("nobody", "--,,"),
        ("192.0.2.7:80", "--,,"),
        ("", "--,,"),
    ];
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        let mut failures = Vec::new();
        for (address, wanted) in rows {
            let reply = server.curl(proto).get(&server.url(proto, &format!("/?a={address}")));
            let shown = reply.header("v").unwrap_or_default();
            if reply.text() != wanted || shown != "1700000000 US" {
                failures.push(format!("{proto:?} {address}: {} {shown}", reply.text()));
            }
        }
        report(rows.len(), &failures);
    }
}

#[test]
fn a_country_decides_wherever_a_variable_may_stand() {
    let server = with(
        "geoip2 country.mmdb { $code default=none country iso_code; }
         geoip2_proxy 127.0.0.1; geoip2_proxy ::1;
         map $code $barred { default 0; DE 1; }
         map $code $known { none 0; default 1; }
         log_format seen '$code $known'; access_log @DIR@/logs/seen.log seen;
         limit_req_zone $code zone=z:64k rate=1r/m;",
        "location /if { if ($barred) { return 403; } return 200 in; }
         location /rate { limit_req zone=z; try_files /hello.txt =404; }
         location / { return 200 $code; }",
    );
    let from = |address: &str, path: &str| {
        server.connect().get(path, &format!("X-Forwarded-For: {address}\r\n"))
    };
    assert_eq!((from("192.0.2.1", "/if").status, from("2001:db8::1", "/if").status), (403, 200));
    assert_eq!(from("192.0.2.1", "/").text(), "DE");
    assert_eq!(from("10.0.0.1", "/").text(), "none");
    let rate: Vec<u16> = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.3"]
        .iter()
        .map(|address| from(address, "/rate").status)
        .collect();
    assert_eq!(rate, [200, 503, 200, 503]);
    wait_until("the log", || server.home().read("logs/seen.log").lines().count() == 8);
    let log = server.home().read("logs/seen.log");
    assert!(log.starts_with("DE 1\nAT 1\nDE 1\nnone 0\n"), "{log}");
}

#[test]
fn x_forwarded_for_of_trusted_proxies_counts() {
    let asked = |directives: &str, shown: &str| {
        let server = with(
            &format!("geoip2 country.mmdb {{ $code country iso_code; }} {directives}"),
            "return 200 \"$code\";",
        );
        server.connect().get("/", &format!("X-Forwarded-For: {shown}\r\n")).text()
    };
    let chain = "2001:db8::1, 192.0.2.1";
    assert_eq!(asked("", chain), "US");
    assert_eq!(asked("geoip2_proxy 10.0.0.0/8;", chain), "US");
    assert_eq!(asked("geoip2_proxy 127.0.0.0/8;", chain), "DE");
    let both = "geoip2_proxy 127.0.0.0/8; geoip2_proxy 192.0.2.0/24;";
    assert_eq!(asked(both, chain), "DE");
    assert_eq!(asked(&format!("{both} geoip2_proxy_recursive on;"), chain), "AT");
    assert_eq!(asked(both, "junk"), "US");
}

#[test]
fn nginxs_geoip_variables_are_read_from_the_new_format() {
    let server = with(
        "geoip_country country.mmdb utf8; geoip_city city.mmdb; geoip_org city.mmdb;
         geoip_proxy 127.0.0.0/8; geoip_proxy_recursive on;",
        "location / { return 200 \"$geoip_country_code $geoip_country_code3 $geoip_country_name\"; }
         location /city { return 200 \"$geoip_city_continent_code $geoip_city_country_code \
             $geoip_city_country_code3 $geoip_city_country_name $geoip_region $geoip_region_name \
             $geoip_city $geoip_postal_code $geoip_latitude $geoip_longitude $geoip_dma_code\"; }
         location /org { return 200 \"$geoip_org\"; }",
    );
    let from = |address: &str, path: &str| {
        server.connect().get(path, &format!("X-Forwarded-For: {address}\r\n")).text()
    };
    assert_eq!(from("192.0.2.9", "/"), "DE DEU Germany");
    assert_eq!(from("198.51.100.9", "/"), "XX  Nowhere");
    assert_eq!(from("10.0.0.1", "/"), "  ");
    let wanted = "EU AT AUT Austria 9 Vienna State Vienna 1010 48.2085 -16.3000 807";
    assert_eq!(from("192.0.2.9", "/city"), wanted);
    assert_eq!(from("192.0.2.9", "/org"), "Example Net");
    assert_eq!(from("10.0.0.1", "/org"), "");
}

#[test]
fn a_variable_of_nginx_without_a_database_has_no_value() {
    let server = with("", "return 200 \"[$geoip_country_code$geoip_city$geoip_org]\";");
    assert_eq!(server.get("/").text(), "[]");
}

#[test]
fn a_changed_file_is_read_again_and_a_damaged_one_is_not() {
    let home = Home::new(BOLIDE);
    write(home.dir(), "country.mmdb", &countries("US").bytes());
    let blocks = format!(
        "geoip2 country.mmdb {{ auto_reload 1s; $code country iso_code;
             $checked metadata last_check; $changed metadata last_change; }}
         server {{ {LISTEN} add_header Checked $checked; add_header Changed $changed;
             return 200 $code; }}"
    );
    let server = start(home, &blocks);
    let time = |name: &str| server.get("/").header(name).unwrap().parse::<u64>().unwrap();
    assert_eq!(server.get("/").text(), "US");
    let (checked, changed) = (time("checked"), time("changed"));
    wait_until("a look at the file", || time("checked") > checked);
    assert_eq!(time("changed"), changed, "nothing has changed");
    write(server.home().dir(), "country.mmdb", &countries("FR").bytes());
    wait_until("the new database", || server.get("/").text() == "FR");
    assert!(time("changed") > changed, "the change is shown");
    let changed = time("changed");
    let damaged = countries("IT").bytes();
    write(server.home().dir(), "country.mmdb", &damaged[..damaged.len() / 2]);
    let failed = "country.mmdb\") failed to reload - ";
    wait_until("the message", || server.error_log().contains(failed));
    assert_eq!((server.get("/").text().as_str(), time("changed")), ("FR", changed));
    fs::remove_file(server.home().dir().join("country.mmdb")).unwrap();
    wait_until("the message", || server.error_log().contains("country.mmdb\" failed (2"));
    assert_eq!(server.get("/").text(), "FR");
    write(server.home().dir(), "country.mmdb", &damaged);
    wait_until("the mended database", || server.get("/").text() == "IT");
    let shown = server.error_log().matches(failed).count();
    assert_eq!(shown, 1, "a damaged file is logged once");
}

#[test]
fn a_reload_reads_databases_again_and_refuses_damaged_ones() {
    let home = Home::new(BOLIDE);
    write(home.dir(), "country.mmdb", &countries("US").bytes());
    let blocks = format!(
        "geoip2 country.mmdb {{ $code country iso_code; }}
         server {{ {LISTEN} return 200 $code; }}"
    );
    let server = start(home, &blocks);
    write(server.home().dir(), "country.mmdb", &countries("FR").bytes());
    assert_eq!(server.get("/").text(), "US");
    server.signal("HUP");
    wait_until("the reload", || server.get("/").text() == "FR");
    write(server.home().dir(), "country.mmdb", b"junk");
    server.signal("HUP");
    wait_until("the refusal", || server.error_log().contains("MMDB_open("));
    assert_eq!(server.get("/").text(), "FR");
}

#[test]
fn files_that_are_no_databases_are_refused_with_their_line() {
    let whole = countries("US").bytes();
    let rows: [(&str, &str, &[u8]); 5] = [
        ("geoip2 x.mmdb { $a country; }", "MMDB_open(", &whole[..whole.len() / 2]),
        ("geoip2 none.mmdb { $a country; }", "(2: No such file or directory)", b""),
        ("geoip2 www { $a country; }", "MMDB_open(", b""),
        ("geoip_country x.mmdb;", "name the .mmdb file", b"GEO-106FREE 20180327 Build 1"),
        ("geoip_city none.dat;", "(2: No such file or directory)", b""),
    ];
    let mut failures = Vec::new();
    for (directive, wanted, bytes) in rows {
        let home = Home::new(BOLIDE);
        write(home.dir(), "x.mmdb", bytes);
        home.write("nginx.conf", &configuration(&format!("\n{directive}\nserver {{ {LISTEN} }}")));
        let conf = home.dir().join("nginx.conf");
        let run = home.run(&["-t", "-c", conf.to_str().unwrap()]);
        let text = run.stderr;
        let line = text.lines().find(|line| line.contains(wanted)).unwrap_or_default();
        let place = format!(" in {}:{}", conf.display(), prelude(1).lines().count() + 2);
        if run.code == 0 || !line.contains(wanted) || !line.ends_with(&place) {
            failures.push(format!("{directive}: {text}"));
        }
    }
    report(rows.len(), &failures);
}
