//! The support of a configuration, line by line.

use std::path::Path;

use bolide_conf::survey::{DirectiveSupport, Finding, Survey, survey};

use crate::support::{Files, options};

fn of(text: &str) -> Survey {
    survey(&Files::default().with("nginx.conf", text), Path::new("/conf/nginx.conf"), &options())
}

fn find<'a>(survey: &'a Survey, name: &str) -> &'a Finding {
    survey.findings.iter().find(|finding| finding.name == name).expect("it was found")
}

#[test]
fn each_directive_has_its_place_and_its_standing() {
    let survey = of("events {}\nhttp {\n types_hash_max_size 64;\n server {\n  gzip on;\n \
                     perl_modules x;\n  location / { root /a; }\n } }\n");
    let lines: Vec<_> = survey.findings.iter().map(|one| (one.place.line, &*one.name)).collect();
    let expected = [
        (1, "events"),
        (2, "http"),
        (3, "types_hash_max_size"),
        (4, "server"),
        (5, "gzip"),
        (6, "perl_modules"),
        (7, "location"),
        (7, "root"),
    ];
    assert_eq!(lines, expected);
    assert_eq!(find(&survey, "gzip").support, DirectiveSupport::Supported);
    let told = find(&survey, "types_hash_max_size").support;
    assert!(matches!(told, DirectiveSupport::Approximated(why) if why.contains("sizes itself")));
    let refused = find(&survey, "perl_modules");
    assert_eq!(refused.support, DirectiveSupport::Refused);
    assert!(refused.messages[0].message.contains("not implemented"), "{:?}", refused.messages);
    assert!(!survey.is_fine());
}

#[test]
fn what_keeps_people_out_is_marked() {
    let survey = of("events {}\nhttp {\n server { limit_req burst; }\n gzip maybe;\n}");
    assert!(find(&survey, "limit_req").guards && !find(&survey, "gzip").guards);
    let told =
        of("events {} http { ssl_conf_command VerifyMode Peer;\nssl_trusted_certificate a; }");
    let command = find(&told, "ssl_conf_command");
    assert!(command.guards && command.support == DirectiveSupport::Refused);
    assert!(find(&told, "ssl_trusted_certificate").guards);
    assert_eq!(find(&survey, "gzip").support, DirectiveSupport::Refused);
    assert_eq!(find(&survey, "limit_req").support, DirectiveSupport::Refused);
}

#[test]
fn entries_of_value_blocks_are_no_directives_and_those_of_groups_are() {
    let survey = of("events {} http { map $uri $a { default 1; root 2; } types { a/b gzip; }\n\
                     upstream u { server 127.0.0.1:1; keepalive 2; } server { listen 80; } }");
    let names: Vec<_> = survey.findings.iter().map(|one| &*one.name).collect();
    let expected =
        ["events", "http", "map", "types", "upstream", "server", "keepalive", "server", "listen"];
    assert_eq!(names, expected);
    assert!(survey.is_fine(), "{survey:?}");
}

#[test]
fn a_missing_file_is_reported_without_a_place() {
    let missing = survey(&Files::default(), Path::new("/conf/nginx.conf"), &options());
    assert!(missing.findings.is_empty() && !missing.is_fine());
    assert!(missing.others[0].message.contains("No such file"), "{missing:?}");
}

#[test]
fn access_directives_of_unknown_modules_are_marked() {
    let survey =
        of("events {}\nhttp { server { modsecurity on; access_by_lua_file a; slice 1m; } }");
    let guards: Vec<_> =
        survey.findings.iter().filter(|one| one.guards).map(|one| &*one.name).collect();
    assert_eq!(guards, ["modsecurity", "access_by_lua_file"]);
    assert!(!survey.is_fine());
}
