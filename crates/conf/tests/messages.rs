//! Messages: text, place, order, and suggestion.

use crate::support::{Files, messages, outcome};

/// Puts a case's text into the block that it is for; line numbers depend on the shape of this.
fn wrap(block: &str, text: &str) -> String {
    let http = "events {}\n\nhttp {\naccess_log off;\n";
    match block {
        "whole" => text.to_owned(),
        "main" => format!("events {{}}\n\n{text}\n"),
        "events" => format!("\nevents {{\n{text}\n}}\n"),
        "http" => format!("{http}{text}\n}}\n"),
        "server" => format!("{http}server {{ listen 18080;\n{text}\n}}\n}}\n"),
        "location" => format!("{http}server {{ listen 18080;\nlocation / {{\n{text}\n}}\n}}\n}}\n"),
        other => panic!("no block {other}"),
    }
}

/// What nginx prints: it stops at its first error.
fn until_first_error(lines: &[String]) -> String {
    let end = lines.iter().position(|line| line.starts_with("[emerg]"));
    let lines = &lines[..end.map_or(lines.len(), |end| end + 1)];
    if lines.is_empty() { "ok".to_owned() } else { lines.join("\n") }
}

fn run(fixture: &str) {
    let mut wrong = Vec::new();
    let cases: Vec<&str> = fixture.split("\n==== ").skip(1).collect();
    assert!(cases.len() > 20, "the file has cases");
    for case in cases {
        let (block, rest) = case.split_once('\n').expect("a block's name");
        let (text, expected) = rest.split_once("\n----\n").expect("what is expected");
        let found = until_first_error(&messages(&outcome(&wrap(block, text))));
        if found != expected.trim_end() {
            wrong.push(format!("{block}: {text}\n  expected {expected}  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn values_are_refused_with_the_words_of_nginx() {
    run(include_str!("fixtures/values.txt"));
}

#[test]
fn addresses_names_and_locations_are_refused_with_the_words_of_nginx() {
    run(include_str!("fixtures/listen-location.txt"));
}

#[test]
fn logs_and_the_process_are_refused_with_the_words_of_nginx() {
    run(include_str!("fixtures/logs-process.txt"));
}

#[test]
fn origins_are_refused_with_the_words_of_nginx() {
    run(include_str!("fixtures/upstream.txt"));
    run(include_str!("fixtures/fastcgi.txt"));
}

#[test]
fn caches_are_refused_with_the_words_of_nginx() {
    run(include_str!("fixtures/cache.txt"));
}

#[test]
fn whole_files_are_refused_at_the_place_that_nginx_names() {
    run(include_str!("fixtures/whole.txt"));
}

#[test]
fn several_errors_come_in_file_order_and_a_syntax_error_comes_last() {
    let outcome = outcome(
        "foo;\nevents { bar; }\nhttp {\n gzpi on;\n server {\n\
         \x20 listen 0;\n  location / { root; }\n }\n\
         \x20sendfile maybe;\n",
    );
    assert_eq!(
        messages(&outcome),
        [
            "[emerg] unknown directive \"foo\" in /conf/nginx.conf:1",
            "[emerg] unknown directive \"bar\" in /conf/nginx.conf:2",
            "[emerg] unknown directive \"gzpi\" in /conf/nginx.conf:4",
            "[emerg] invalid port in \"0\" of the \"listen\" directive in /conf/nginx.conf:6",
            "[emerg] invalid number of arguments in \"root\" directive in /conf/nginx.conf:7",
            "[emerg] invalid value \"maybe\" in \"sendfile\" directive, \
             it must be \"on\" or \"off\" in /conf/nginx.conf:9",
            "[emerg] unexpected end of file, expecting \"}\" in /conf/nginx.conf:10",
        ]
    );
    let help: Vec<_> = outcome.diagnostics.iter().filter_map(|d| d.help.as_deref()).collect();
    assert_eq!(help, ["did you mean \"gzip\"?"]);
    assert!(outcome.config.is_none());
}

#[test]
fn what_is_not_built_yet_says_so_once_and_hides_its_inside() {
    let text = "events {}\nhttp {\n perl a { server 1.2.3.4; zone b 1m; }\n server {\n  \
                tunnel_pass /x;\n  location / { image_filter test; }\n }\n}\n";
    assert_eq!(
        messages(&outcome(text)),
        [
            "[emerg] \"perl\" directive is not implemented yet in /conf/nginx.conf:3",
            "[emerg] \"tunnel_pass\" directive is not implemented yet in /conf/nginx.conf:5",
            "[emerg] \"image_filter\" directive is not implemented yet in /conf/nginx.conf:6",
        ]
    );
}

#[test]
fn what_keeps_strangers_out_is_refused_and_not_ignored() {
    for line in ["ssl_ocsp on", "ssl_ocsp leaf"] {
        let text = format!("events {{}}\nhttp {{\n {line};\n}}\n");
        let expected = format!("[emerg] \"{line}\" is not implemented yet in /conf/nginx.conf:3");
        assert_eq!(messages(&outcome(&text)), [expected]);
    }
}

#[test]
fn includes_start_from_the_main_file_and_globs_are_sorted() {
    let files = Files::default()
        .with("nginx.conf", "events {}\nhttp {\n include sites/*.conf;\n include none/*.conf;\n}\n")
        .with("sites/b.conf", "server { server_name b; include snip/x; }\n")
        .with("sites/a.conf", "server { server_name a; }\n")
        .with("sites/a.conf.bak", "nonsense\n")
        .with("sites/.hidden.conf", "nonsense\n")
        .with("snip/x", "root /x;\n");
    let outcome = files.parse();
    assert_eq!(messages(&outcome), [] as [&str; 0]);
    let names: Vec<_> = outcome.files.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    let expected = ["/conf/nginx.conf", "/conf/sites/a.conf", "/conf/sites/b.conf", "/conf/snip/x"];
    assert_eq!(names, expected);
    assert_eq!(outcome.files[3].1, b"root /x;\n");
    let http = outcome.config.unwrap().http.unwrap();
    let names: Vec<_> = http.servers.iter().map(|server| &*server.primary_name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn errors_in_included_files_name_that_file() {
    let main = "events {}\nhttp {\n include a;\n include missing;\n include b;\n}\n";
    let files =
        Files::default().with("nginx.conf", main).with("a", "\nfoo;\n").with("b", "server {\n");
    assert_eq!(
        messages(&files.parse()),
        [
            "[emerg] unknown directive \"foo\" in /conf/a:2",
            "[emerg] open() \"/conf/missing\" failed (2: No such file or directory) \
             in /conf/nginx.conf:4",
            "[emerg] unexpected end of file, expecting \"}\" in /conf/b:2",
        ]
    );
    let files = Files::default().with("nginx.conf", "include nginx.conf;");
    let found = messages(&files.parse());
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("(24: Too many open files) in /conf/nginx.conf:1"), "{found:?}");
    let files = Files::default().with("nginx.conf", "include d;").with("d/x", "");
    assert_eq!(
        messages(&files.parse()),
        ["[crit] pread() \"/conf/d\" failed (21: Is a directory)"]
    );
}

#[test]
fn a_missing_main_file_has_no_place() {
    let expected = "[emerg] open() \"/conf/nginx.conf\" failed (2: No such file or directory)";
    assert_eq!(messages(&Files::default().parse()), [expected]);
}

#[test]
fn directives_of_the_command_line_are_read_first() {
    let files = Files::default().with("nginx.conf", "daemon on; events {}");
    let with = |globals: &str| {
        let options =
            bolide_conf::LoadOptions { globals: globals.to_owned(), ..crate::support::options() };
        bolide_conf::parse(&files, std::path::Path::new("nginx.conf"), &options)
    };
    let twice = with("daemon off;");
    assert_eq!(
        messages(&twice),
        ["[emerg] \"daemon\" directive is duplicate in /conf/nginx.conf:1"]
    );
    let fine = with("master_process off; worker_processes 3;");
    assert!(!fine.config.unwrap().main.master_process);
    let open = messages(&with("pid x"));
    assert_eq!(open, ["[emerg] unexpected end of parameter, expecting \";\" in command line"]);
    let unknown = messages(&with("foo;"));
    assert_eq!(unknown, ["[emerg] unknown directive \"foo\" in command line"]);
}

#[test]
fn without_rights_a_user_is_ignored_and_port_8000_is_the_default() {
    let files = Files::default().with("nginx.conf", "user www; events {} http { server { } }");
    let options = bolide_conf::LoadOptions { privileged: false, ..crate::support::options() };
    let outcome = bolide_conf::parse(&files, std::path::Path::new("/conf/nginx.conf"), &options);
    assert_eq!(
        messages(&outcome),
        ["[warn] the \"user\" directive makes sense only if the master process runs with \
          super-user privileges, ignored in /conf/nginx.conf:1"]
    );
    let http = outcome.config.unwrap().http.unwrap();
    assert_eq!(http.listens[0].address.to_string(), "0.0.0.0:8000");
}

#[test]
fn a_deep_or_endless_nest_is_refused_in_bounded_time() {
    let deep = format!("events {{}} http {{ server {{ {}", "location / {".repeat(100_000));
    let found = messages(&outcome(&deep));
    assert!(found.last().unwrap().contains("too many nested blocks"), "{:?}", found.last());
    let junk = "x;".repeat(50_000);
    assert!(messages(&outcome(&junk)).len() < 1000);
}
