//! Settings and variables of PHP pools: what a configuration may say reaches scripts unchanged, in
//! php-fpm and in lsphp, and all else is refused.

use bolide_testkit::server::{Home, LISTEN, is_root};
use bolide_testkit::{TestServer, wait_until};

use crate::BOLIDE;
use crate::php_pool::{put, user};

/// Texts that the language of php-fpm's file would change, as they are written in a configuration
/// and as scripts see them in JSON.
const TEXTS: [(&str, &str); 12] = [
    ("EMPTY", r#""""#),
    ("DOLLAR", r#""$2y$10$abcdefgh""#),
    ("BRACE", r#""${HOME}""#),
    ("BS", r#"'a\\b'"#),
    ("LF", "'a\nuser = 0\n[x]'"),
    ("QUOTES", r#""it's \"so\" '' \"\"""#),
    ("COMMENT", r#""a; b # c = d""#),
    ("SPACES", r#""  a  ""#),
    ("WORD", "none"),
    ("NUMBER", "007"),
    ("TRUE", "yes"),
    ("NULL", "null"),
];

const EXPECTED: [&str; 12] = [
    "",
    "$2y$10$abcdefgh",
    "${HOME}",
    r"a\b",
    "a\nuser = 0\n[x]",
    r#"it's "so" '' """#,
    "a; b # c = d",
    "  a  ",
    "none",
    "007",
    "yes",
    "null",
];

/// A pool with these directives of its own, by each program.
fn each_pool(directives: &str) -> [String; 2] {
    let lsphp = bolide_testkit::tool("lsphp");
    // The lsphp of the tests is below a directory that only its owner may enter.
    let root = if is_root() { "user root;" } else { "" };
    [format!("{} {directives}", user()), format!("binary {}; {root} {directives}", lsphp.display())]
}

fn start(name: &str, pool: &str) -> TestServer {
    TestServer::with(
        BOLIDE,
        &format!(
            "php_pool {name} {{ children 2; {pool} }}
             server {{ {LISTEN} location ~ \\.php$ {{ php_pass {name}; }} }}"
        ),
    )
}

#[test]
fn variables_reach_scripts_as_they_are_written() {
    let lines: String = TEXTS.iter().map(|(name, text)| format!("env {name} {text};\n")).collect();
    for pool in each_pool(&lines) {
        let server = start("main", &pool);
        put(&server, "env.php", "<?php echo bin2hex(getenv($_GET['n']));");
        put(&server, "all.php", "<?php echo json_encode(getenv());");
        wait_until("PHP", || server.get("/all.php").status == 200);
        for ((name, _), expected) in TEXTS.iter().zip(EXPECTED) {
            let hex: String = expected.bytes().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(server.get(&format!("/env.php?n={name}")).text(), hex, "{name}");
        }
        let all = server.get("/all.php").text();
        assert!(!all.contains("BOLIDE_"), "{all}");
    }
}

#[test]
fn settings_reach_php_as_they_are_written_and_are_final() {
    for ((name, text), expected) in TEXTS.iter().zip(EXPECTED) {
        // The second is read only when PHP starts.
        let settings = format!("ini user_agent {text}; ini opcache.restrict_api {text};");
        let server = start("main", &format!("{} {settings}", user()));
        let script = "<?php ini_set('user_agent', 'x'); echo ini_get($_GET['n']);";
        put(&server, "ini.php", script);
        wait_until("PHP", || server.get("/ini.php?n=user_agent").status == 200);
        for setting in ["user_agent", "opcache.restrict_api"] {
            let value = server.get(&format!("/ini.php?n={setting}")).text();
            assert_eq!(value, expected, "{setting} {name}");
        }
    }
}

#[test]
fn a_pool_may_have_any_name() {
    for name in ["global", "null", "a.b", "-x"] {
        let server = start(name, user());
        put(&server, "a.php", "<?php echo 'ran';");
        wait_until("PHP", || server.get("/a.php").text() == "ran");
    }
}

#[test]
fn names_that_php_cannot_have_are_refused() {
    let home = Home::new(BOLIDE);
    for (directive, names) in [
        ("env", &["''", "'A]'", "A=B", "'A B'", "\"A'B\"", "'A\nB'", "é", "\"x\\\"y\""][..]),
        ("ini", &["''", "'x\"y'", "a]", "a=b", "'a b'", "NULL", "no", "On", "none"][..]),
    ] {
        for name in names {
            let text =
                format!("events {{}}\nhttp {{\n php_pool x {{\n {directive} {name} x;\n}} }}\n");
            let conf = home.write("nginx.conf", &text);
            let done = home.run(&["-t", "-c", conf.to_str().unwrap()]);
            assert_eq!(done.code, 1, "{directive} {name}: {done}");
            assert!(done.stderr.contains(&format!("invalid {directive} name \"")), "{done}");
            let line = if name.contains('\n') { "nginx.conf:5" } else { "nginx.conf:4" };
            assert!(done.stderr.contains(line), "{done}");
        }
    }
}
