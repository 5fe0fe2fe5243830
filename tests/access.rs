//! Access control: addresses, passwords, and both together.

use std::process::Command;

use bolide_testkit::{Proto, TestServer};

use crate::{http, report, site};

/// Path, credentials (`user:password`) or none, status.
type Rows<'a> = &'a [(&'a str, &'a str, u16)];

fn check(server: &TestServer, rows: Rows<'_>) {
    let mut failures = Vec::new();
    for (path, credentials, wanted) in rows {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}"]);
        if !credentials.is_empty() {
            curl.args(["-u", credentials]);
        }
        let done = curl.arg(format!("http://{}{path}", server.http())).output().unwrap();
        let got = String::from_utf8(done.stdout).unwrap();
        if got != wanted.to_string() {
            failures.push(format!("{path} {credentials}: {got}, want {wanted}"));
        }
    }
    report(rows.len(), &failures);
}

#[test]
fn the_first_matching_rule_allows_or_denies_an_address() {
    let server = site(
        "location /deny { deny all; } location /mine { allow 127.0.0.1; deny all; } \
         location /net { allow 127.0.0.0/8; deny all; } location /six { allow ::1; deny all; } \
         location /other { allow 192.0.2.0/24; deny all; } \
         location /order { deny 127.0.0.1; allow all; } \
         location /outer/ { deny all; location /outer/in { allow all; } } \
         location /page { deny all; error_page 403 /hello.txt; } \
         location /return { deny all; return 204; }",
    );
    check(
        &server,
        &[
            ("/deny", "", 403),
            ("/mine", "", 404),
            ("/net", "", 404),
            ("/six", "", 403),
            ("/other", "", 403),
            ("/order", "", 403),
            ("/outer/x", "", 403),
            ("/outer/in", "", 404),
            ("/page", "", 403),
            ("/return", "", 204),
            ("/hello.txt", "", 200),
        ],
    );
    assert!(server.get("/page").text().contains("hello, bolide"));
    assert!(server.error_log().contains("[error]"));
    assert!(server.error_log().contains("access forbidden by rule, client: 127.0.0.1"));
}

#[test]
fn passwords_are_required_and_all_hashes_are_supported() {
    let server = site(
        "auth_basic \"Staff only\"; auth_basic_user_file @DIR@/users; \
         location /open { auth_basic off; } \
         location /any { satisfy any; allow 127.0.0.1; deny all; } \
         location /both { deny all; } location /none { auth_basic_user_file @DIR@/nobody; }",
    );
    server.home().write(
        "users",
        "# people\nplain:{PLAIN}pw\nsha:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n\
         ssha:{SSHA}K/qCHdTzr1rftXNEV4Ob7XsySBlzYWx0\ndes:abzlUXK5ed5rs\n\
         apr:$apr1$abcdefgh$5VEbMkemELfbhC5ck.U.z1:comment\n\
         six:$6$abc$MtSdWSZbhct2oe.SOqOUM2M/GA/uj5.vyVtJgRHgKi9uqXuWuJqOYE7H/YlsYGVg/\
         YYzDV0xt3fEIwYt580.5.\n\
         bc:$2y$05$abcdefghijklmnopqrstuuHIrMEWpUCQe2YqFR3sXwQ75u4od..9q\n",
    );
    let users = ["plain", "sha", "ssha", "des", "apr", "six", "bc"];
    let right: Vec<String> = users.iter().map(|user| format!("{user}:pw")).collect();
    let wrong: Vec<String> = users.iter().map(|user| format!("{user}:pW")).collect();
    let mut rows = vec![
        ("/hello.txt", "", 401),
        ("/hello.txt", "nobody:pw", 401),
        ("/open", "", 404),
        ("/any/x", "", 404),
        ("/both", "plain:pw", 403),
        ("/none", "plain:pw", 403),
    ];
    rows.extend(right.iter().map(|user| ("/hello.txt", user.as_str(), 200)));
    rows.extend(wrong.iter().map(|user| ("/hello.txt", user.as_str(), 401)));
    check(&server, &rows);
    let asked = server.get("/hello.txt");
    assert_eq!(asked.header("www-authenticate"), Some("Basic realm=\"Staff only\""));
    let log = server.error_log();
    assert!(log.contains("user \"sha\": password mismatch, client: "));
    assert!(log.contains("user \"nobody\" was not found in \""));
}

#[test]
fn a_new_password_file_counts_within_seconds() {
    let server = site("location / { auth_basic x; auth_basic_user_file @DIR@/users; }");
    let user = [("/hello.txt", "a:pw")];
    check(&server, &[(user[0].0, user[0].1, 403)]);
    server.home().write("users", "a:{PLAIN}pw\n");
    bolide_testkit::wait_until("the file is seen", || server.get("/hello.txt").status == 401);
    check(&server, &[(user[0].0, user[0].1, 200)]);
}

#[test]
fn a_refusal_is_held_back_for_the_time_that_is_set() {
    let server = site(
        "location / { auth_basic x; auth_basic_user_file @DIR@/users; auth_delay 1500ms; } \
         location /addresses { deny all; auth_delay 1h; }",
    );
    server.home().write("users", "a:{PLAIN}pw\n");
    let begun = std::time::Instant::now();
    check(&server, &[("/hello.txt", "a:no", 401)]);
    let held = begun.elapsed();
    assert!(held >= std::time::Duration::from_millis(1500), "{held:?}");
    assert!(server.error_log().contains("[info]"), "{}", server.error_log());
    assert!(server.error_log().contains("delaying unauthorized request, client: 127.0.0.1"));
    // Access by address needs no password check, whether it allows or denies.
    check(&server, &[("/hello.txt", "a:pw", 200), ("/addresses", "", 403)]);
}

/// CPU time of the thread that checks slow hashes, in clock ticks.
fn computed(server: &TestServer) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let stats =
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap());
    let of_jobs =
        stats.filter_map(|stat| stat.split_once("(jobs) ").map(|(_, rest)| rest.to_owned()));
    let ticks = |rest: String| rest.split(' ').nth(11).unwrap().parse::<u64>().unwrap();
    of_jobs.map(ticks).sum()
}

#[test]
fn a_slow_hash_is_computed_once_until_the_file_changes() {
    let server = site("location / { auth_basic x; auth_basic_user_file @DIR@/users; }");
    let hashed = |password: &str| {
        let args = ["passwd", "-6", "-salt", "rounds=100000$abc", password];
        format!("a:{}\n", bolide_testkit::run("openssl", args).succeeded().text().trim())
    };
    server.home().write("users", &hashed("pw"));
    check(&server, &[("/hello.txt", "a:pw", 200)]);
    let once = computed(&server);
    assert!(once > 0, "it takes long enough to be measured");
    check(&server, &[("/hello.txt", "a:pw", 200); 40]);
    let again = computed(&server) - once;
    assert!(again < once * 10 + 10, "one took {once}, forty {again}");
    check(&server, &[("/hello.txt", "a:pW", 401), ("/hello.txt", "b:pw", 401)]);
    server.home().write("users", &hashed("other"));
    bolide_testkit::wait_until("the new file is seen", || {
        let of = |password: &str| {
            let url = format!("http://{}/hello.txt", server.http());
            let user = format!("a:{password}");
            let args = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-u", &user, &url];
            bolide_testkit::run("curl", args).text()
        };
        of("other") == "200" && of("pw") == "401"
    });
}

#[test]
fn an_ipv4_client_of_an_ipv6_socket_meets_ipv4_rules_or_else_ipv6_rules() {
    let server = http(
        "server { listen 127.0.0.1:@HTTP@; listen [::]:@P3@ ipv6only=off;
             location /only6 { allow 2001:db8::/32; deny ::/0; }
             location /net { deny ::ffff:127.0.0.0/104; }
             location /one { deny ::ffff:127.0.0.1; }
             location /mixed { deny ::/0; allow 127.0.0.0/8; deny all; }
             location /four { deny 127.0.0.1; allow all; }
             location /who { return 200 $remote_addr; } }",
    );
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", server.home().port(3));
    for (path, status) in
        [("/only6", 403), ("/net", 403), ("/one", 403), ("/four", 403), ("/mixed", 404)]
    {
        assert_eq!(server.curl(Proto::H1).get(&url(path)).status, status, "{path}");
    }
    assert_eq!(server.curl(Proto::H1).get(&url("/who")).text(), "::ffff:127.0.0.1");
    assert_eq!(server.get("/who").text(), "127.0.0.1");
}

#[test]
fn only_a_right_password_makes_an_authenticated_user() {
    let server = site(
        "auth_basic_user_file @DIR@/users; error_page 401 /open/x.txt;
         location / { add_header V \"[$authenticated_user]\" always; }
         location /asks/ { auth_basic x; add_header V \"[$authenticated_user]\" always; }
         location /any/ { auth_basic x; satisfy any; allow all;
                          add_header V \"[$authenticated_user]\" always; }
         location /moved/ { auth_basic x; error_page 404 /open/x.txt; }",
    );
    server.home().write("users", "a:{PLAIN}pw\n");
    for path in ["www/open/x.txt", "www/asks/x.txt", "www/any/x.txt"] {
        server.home().write(path, "x");
    }
    let (right, wrong) = ("YTpwdw==", "YTpqdW5r");
    for (path, credentials, wanted) in [
        ("/asks/x.txt", right, "200 [a]"),
        ("/asks/x.txt", wrong, "401 []"),
        ("/open/x.txt", right, "200 []"),
        ("/open/x.txt", wrong, "200 []"),
        ("/any/x.txt", wrong, "200 []"),
        // The password was for another place.
        ("/moved/none", right, "404 []"),
    ] {
        let fields = format!("Authorization: Basic {credentials}\r\n");
        let answer = server.connect().get(path, &fields);
        let seen = format!("{} {}", answer.status, answer.header("v").unwrap_or_default());
        assert_eq!(seen, wanted, "{path} {credentials}");
    }
}
