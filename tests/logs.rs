//! Logs, the command line, the pid file, and the shutdown of the process.

use std::fs;
use std::path::Path;

use bolide_testkit::server::{Home, prelude};
use bolide_testkit::site::HELLO;
use bolide_testkit::{Proto, run, wait_until};

use crate::{BOLIDE, http, site};

/// Whether `text` matches an extended regular expression, by `grep`.
fn matches(text: &str, pattern: &str) -> bool {
    let dir = bolide_testkit::site::temp_dir();
    let file = dir.join("text");
    fs::write(&file, text).unwrap();
    let done = run("grep", ["-qxE", pattern, file.to_str().unwrap()]);
    fs::remove_dir_all(&dir).unwrap();
    done.code == 0
}

const TIME: &str = r"\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4}\]";

#[test]
fn the_combined_format_is_nginxs_to_the_byte() {
    let server = site("");
    let mut client = server.connect();
    client.get(
        "/hello.txt?q=1",
        "User-Agent: test/1 (x \"y\" \\ \u{e9}\t)\r\nReferer: http://r/\r\n",
    );
    client.get("/missing", "");
    client.ask("HEAD /hello.txt HTTP/1.1\r\nHost: a");
    client.get("/hello.txt", "Range: bytes=0-4\r\n");
    server.connect().send("junk\r\n\r\n").answer();
    let lines = server.access_lines(5);
    let missing = server.get("/missing").body.len();
    for (line, pattern) in lines.iter().zip([
        format!(
            r#"127\.0\.0\.1 - - {TIME} "GET /hello\.txt\?q=1 HTTP/1\.1" 200 14 "http://r/" "test/1 \(x \\x22y\\x22 \\x5C \\xC3\\xA9\\x09\)""#
        ),
        format!(r#"127\.0\.0\.1 - - {TIME} "GET /missing HTTP/1\.1" 404 {missing} "-" "-""#),
        format!(r#"127\.0\.0\.1 - - {TIME} "HEAD /hello\.txt HTTP/1\.1" 200 0 "-" "-""#),
        format!(r#"127\.0\.0\.1 - - {TIME} "GET /hello\.txt HTTP/1\.1" 206 5 "-" "-""#),
        format!(r#"127\.0\.0\.1 - - {TIME} "junk" 400 [0-9]+ "-" "-""#),
    ]) {
        assert!(matches(line, &pattern), "{line}\nis not\n{pattern}");
    }
}

#[test]
fn the_time_of_a_request_begins_with_its_first_byte() {
    let server = http(
        "log_format times '$request_time $msec $uri';
        server {
            listen 127.0.0.1:@HTTP@; root @DIR@/www;
            access_log @DIR@/logs/times.log times;
            location /status { access_log off; stub_status; }
        }",
    );
    let pause = std::time::Duration::from_millis(300);
    let since = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let mut client = server.connect();
    let mut begun = Vec::new();
    for _ in 0..2 {
        // The time between requests does not count.
        std::thread::sleep(pause);
        begun.push(since());
        client.send("GET /hello.txt HTTP/1.1\r\n");
        wait_until("the line to be read", || server.get("/status").text().contains("Reading: 1"));
        std::thread::sleep(pause);
        assert_eq!(client.send("Host: a\r\n\r\n").answer().status, 200);
    }
    let read = || server.home().read("logs/times.log");
    wait_until("both lines", || read().lines().count() == 2);
    for (line, begun) in read().lines().zip(begun) {
        let words: Vec<&str> = line.split(' ').collect();
        let (took, ended): (f64, f64) = (words[0].parse().unwrap(), words[1].parse().unwrap());
        assert!(took >= 0.3, "{line}");
        // Milliseconds are rounded down.
        assert!(ended - took >= begun - 0.005, "{line}, sent at {begun}");
    }
}

#[test]
fn every_protocol_is_logged_by_its_name() {
    let server = site("");
    for proto in [Proto::H1, Proto::H2, Proto::H2c, Proto::H3] {
        let _reply = server.curl(proto).args(["-A", "agent"]).get(&server.url(proto, "/hello.txt"));
    }
    let log = server.access_lines(4).join("\n");
    for (version, times) in [("HTTP/1.1", 1), ("HTTP/2.0", 2), ("HTTP/3.0", 1)] {
        let line = format!("\"GET /hello.txt {version}\" 200 14 \"-\" \"agent\"");
        assert_eq!(log.matches(&line).count(), times, "{version}:\n{log}");
    }
}

#[test]
fn formats_conditions_and_places_can_be_chosen() {
    let server = http(
        r#"
        log_format short '$request_method $uri -> $status';
        log_format js escape=json '{"uri":"$uri","agent":"$http_user_agent","none":"$http_none"}';
        log_format raw escape=none '$http_user_agent';
        server {
            listen 127.0.0.1:@HTTP@;
            root @DIR@/www;
            access_log @DIR@/logs/short.log short;
            location /two/ { alias @DIR@/www/; access_log @DIR@/logs/a.log short;
                             access_log @DIR@/logs/b.log js; }
            location /off/ { alias @DIR@/www/; access_log off; }
            location /raw/ { alias @DIR@/www/; access_log @DIR@/logs/raw.log raw; }
            location /if/ { alias @DIR@/www/; access_log @DIR@/logs/if.log short if=$arg_log; }
            location /buf/ { alias @DIR@/www/;
                             access_log @DIR@/logs/buf.log short buffer=64k flush=100ms; }
        }"#,
    );
    let mut client = server.connect();
    for path in ["/hello.txt", "/two/hello.txt", "/off/hello.txt", "/missing", "/raw/hello.txt"] {
        client.get(path, "User-Agent: a\"b\\\tc\r\n");
    }
    for path in ["/if/hello.txt", "/if/hello.txt?log=0", "/if/hello.txt?log=1", "/buf/hello.txt"] {
        client.get(path, "");
    }
    wait_until("the buffered line", || !server.home().read("logs/buf.log").is_empty());
    let read = |name: &str| server.home().read(&format!("logs/{name}.log"));
    assert_eq!(read("short"), "GET /hello.txt -> 200\nGET /missing -> 404\n");
    assert_eq!(read("a"), "GET /two/hello.txt -> 200\n");
    assert_eq!(
        read("b"),
        "{\"uri\":\"/two/hello.txt\",\"agent\":\"a\\\"b\\\\\\tc\",\"none\":\"\"}\n"
    );
    assert_eq!(read("raw"), "a\"b\\\tc\n");
    assert_eq!(read("if"), "GET /if/hello.txt -> 200\n");
    assert_eq!(read("buf"), "GET /buf/hello.txt -> 200\n");
    assert_eq!(server.access_log(), "", "the server's list replaces the outer one");
}

#[test]
fn usr1_opens_the_logs_again() {
    let server = site("");
    server.get("/hello.txt");
    let _first = server.access_lines(1);
    let logs = server.home().dir().join("logs");
    fs::rename(logs.join("access.log"), logs.join("access.old")).unwrap();
    fs::rename(logs.join("error.log"), logs.join("error.old")).unwrap();
    server.get("/hello.txt?still-old");
    server.signal("USR1");
    wait_until("new logs", || logs.join("access.log").exists() && logs.join("error.log").exists());
    wait_until("a line in the new log", || {
        server.get("/missing?new");
        server.access_log().contains("/missing?new") && server.error_log().contains("/missing")
    });
    assert!(server.home().read("logs/access.old").contains("/hello.txt?still-old"));
    assert!(!server.access_log().contains("still-old"));
}

#[test]
fn the_error_log_has_nginxs_messages() {
    let server = site("location /bare/ { }");
    server.get("/missing");
    server.get("/bare/");
    server.connect().send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n").answer();
    let stamp = "[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}";
    let context = |path: &str| {
        format!(
            ", client: 127\\.0\\.0\\.1, server: localhost, request: \"GET {path} HTTP/1\\.1\", \
             host: \"[a-z]+\""
        )
    };
    let dir = server.home().dir().display().to_string();
    for (level, text) in [
        (
            "error",
            format!(
                "open\\(\\) \"{dir}/www/missing\" failed \\(2: No such file or directory\\){}",
                context("/missing")
            ),
        ),
        (
            "error",
            format!("directory index of \"{dir}/www/bare/\" is forbidden{}", context("/bare/")),
        ),
        (
            "info",
            format!(
                "client sent invalid \"Content-Length\" header while reading client request \
                 headers{}",
                context("/")
            ),
        ),
    ] {
        let pattern = format!("{stamp} \\[{level}\\] [0-9]+#[0-9]+: \\*[0-9]+ {text}");
        wait_until(&pattern, || matches(&server.error_log(), &pattern));
    }
}

#[test]
fn log_not_found_off_is_quiet() {
    let server = site("log_not_found off;");
    server.get("/missing");
    let _logged = server.access_lines(1);
    assert!(!server.error_log().contains("No such file"), "{}", server.error_log());
}

#[test]
fn v_and_capital_v_print_the_version() {
    let home = Home::new(BOLIDE);
    let name = home.name().trim_end_matches(':').to_owned();
    for flag in ["-v", "-V"] {
        let done = home.run(&[flag]);
        assert_eq!(done.code, 0);
        let first = done.stderr.lines().next().unwrap_or_default();
        assert!(
            matches(first, &format!("{name} version: {name}/[0-9]+\\.[0-9]+\\.[0-9]+")),
            "{done}"
        );
    }
    assert!(home.run(&["-V"]).stderr.lines().count() > 1, "-V prints more");
    let help = home.run(&["-h"]);
    assert!((help.text() + &help.stderr).contains("-c filename"), "-h explains");
}

#[test]
fn wrong_arguments_are_refused() {
    let home = Home::new(BOLIDE);
    for (args, wanted) in [
        (&["-x"][..], "invalid option: \"x\""),
        (&["-c"], "option \"-c\" requires file name"),
        (&["-s"], "option \"-s\" requires parameter"),
        (&["-s", "frob"], "invalid option: \"-s frob\""),
        (&["junk"], "invalid option: \"junk\""),
    ] {
        let done = home.run(args);
        assert_eq!(done.code, 1, "{args:?} {done}");
        assert_eq!(done.stderr.trim_end(), format!("{} {wanted}", home.name()));
    }
}

#[test]
fn capital_t_prints_the_configuration_that_was_read() {
    let home = Home::new(BOLIDE);
    let part = home.write("part.inc", "# part\nkeepalive_timeout 5;\n");
    let conf = home.write("main.conf", "events {}\nhttp { include part.inc; }\n");
    let (part, conf) = (part.display(), conf.display());
    let done = home.run(&["-T", "-c", &conf.to_string()]);
    assert_eq!(done.code, 0, "{done}");
    let wanted = format!(
        "# configuration file {conf}:\nevents {{}}\nhttp {{ include part.inc; }}\n\n\
         # configuration file {part}:\n# part\nkeepalive_timeout 5;\n\n"
    );
    assert_eq!(done.text(), wanted);
    assert!(done.stderr.contains("test is successful"));
}

#[test]
fn q_is_quiet_where_there_is_nothing_wrong() {
    let home = Home::new(BOLIDE);
    let good = home.write("good.conf", "events {}\n");
    let done = home.run(&["-t", "-q", "-c", good.to_str().unwrap()]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let bad = home.write("bad.conf", "evens {}\n");
    let done = home.run(&["-t", "-q", "-c", bad.to_str().unwrap(), "-e", "logs/error.log"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("[emerg] unknown directive \"evens\""), "{done}");
}

#[test]
fn g_sets_directives_before_the_file() {
    let home = Home::new(BOLIDE);
    let conf = home.write("main.conf", "events {}\nhttp {}\n");
    let conf = conf.to_str().unwrap();
    let done = home.run(&["-t", "-c", conf, "-g", "pid logs/other.pid; worker_processes 2;"]);
    assert_eq!(done.code, 0, "{done}");
    let done = home.run(&["-t", "-c", conf, "-g", "frob on;", "-e", "logs/error.log"]);
    let wanted = "[emerg] unknown directive \"frob\" in command line";
    assert!(done.code == 1 && done.stderr.contains(wanted), "{done}");
    let pid = home.write("pid.conf", "pid logs/pid;\nevents {}\n");
    let done = home.run(&["-t", "-c", pid.to_str().unwrap(), "-g", "pid logs/a;", "-e", "logs/e"]);
    assert!(done.code == 1 && done.stderr.contains("\"pid\" directive is duplicate"), "{done}");
}

#[test]
fn a_missing_file_is_named() {
    let home = Home::new(BOLIDE);
    let done = home.run(&["-t", "-c", "none.conf", "-e", "logs/error.log"]);
    let wanted = format!(
        "{} [emerg] open() \"{}/none.conf\" failed (2: No such file or directory)",
        home.name(),
        home.dir().display()
    );
    assert_eq!((done.code, done.stderr.lines().next()), (1, Some(wanted.as_str())));
}

#[test]
fn the_default_file_is_below_the_prefix() {
    let home = Home::new(BOLIDE);
    home.write("bolide.conf", "evens {}\n");
    let done = home.run(&["-t", "-e", "logs/error.log"]);
    assert!(done.stderr.contains("/bolide.conf:1"), "{done}");
}

/// The contents of the pid file, which exists before it is written.
fn pid_of(home: &Home) -> String {
    wait_until("the pid file", || home.read("logs/pid").ends_with('\n'));
    home.read("logs/pid").trim().to_owned()
}

#[test]
fn the_pid_file_appears_and_goes() {
    let server = site("");
    assert_eq!(pid_of(server.home()), server.pid().to_string());
    let exit = server.stop("QUIT");
    assert_eq!(exit.code, 0, "{exit:?}");
}

#[test]
fn term_int_and_quit_end_the_server_with_status_0() {
    for signal in ["TERM", "INT", "QUIT"] {
        let server = site("");
        pid_of(server.home());
        let mut idle = server.connect();
        idle.get("/hello.txt", "");
        let exit = server.stop(signal);
        assert_eq!(exit.code, 0, "{signal}: {exit:?}");
        assert!(idle.is_closed(), "{signal}");
    }
}

#[test]
fn quit_finishes_requests_in_progress() {
    let mut server = site(
        "location /slow/ { alias @DIR@/www/; limit_rate 500k; }
         location = /status { stub_status; }",
    );
    let big = fs::read(server.www("big.bin")).unwrap();
    let url = server.url(Proto::H2, "/slow/big.bin");
    let curl = server.curl(Proto::H2);
    let by_h2 = std::thread::spawn(move || curl.get(&url));
    let mut client = server.connect();
    client.send("GET /slow/big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    // Both, and the one for the status.
    wait_until("the responses", || server.get("/status").text().contains("Writing: 3 "));
    server.signal("QUIT");
    wait_until("the listener to close", || crate::reload::refuses(server.http()));
    let rest = client.to_end().unwrap();
    assert!(rest.ends_with(&big[big.len() - 1000..]), "the answer is whole");
    assert!(by_h2.join().unwrap().body == big, "by h2 too");
    assert_eq!(server.wait_exit().code, 0);
}

#[test]
fn a_connection_without_a_request_gets_one_last_response_after_quit() {
    let mut server = site("location /one { return 200 one; }");
    let mut client = server.connect();
    // The server has accepted it when it has served a later one.
    assert_eq!(server.get("/one").text(), "one");
    server.signal("QUIT");
    wait_until("the listener to close", || crate::reload::refuses(server.http()));
    client.send("GET /one HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20));
    let answers = String::from_utf8_lossy(&client.to_end().unwrap()).into_owned();
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 1, "{answers}");
    assert!(answers.contains("\r\nConnection: close\r\n"), "{answers}");
    assert_eq!(server.wait_exit().code, 0);
}

#[test]
fn s_sends_signals_to_the_running_server() {
    let mut server = site("");
    let conf = server.home().dir().join("nginx.conf");
    pid_of(server.home());
    let send = |signal: &str| server.home().run(&["-c", conf.to_str().unwrap(), "-s", signal]);
    assert_eq!(send("reload").code, 0);
    assert_eq!(send("reopen").code, 0);
    wait_until("the answer after a reload", || server.get("/hello.txt").body == HELLO);
    assert_eq!(send("quit").code, 0);
    let exit = server.wait_exit();
    assert_eq!(exit.code, 0, "{exit:?}");
    let done = server.home().run(&["-c", conf.to_str().unwrap(), "-s", "stop"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("failed (2: No such file or directory)"), "{done}");
}

#[test]
fn a_daemon_leaves_and_lives_on() {
    let home = Home::new(BOLIDE);
    let text = prelude(1).replace("daemon off;", "daemon on;");
    let conf = home.write(
        "nginx.conf",
        &format!("{text}http {{ server {{ listen 127.0.0.1:@HTTP@; return 200 ok; }} }}"),
    );
    let done = home.run(&["-c", conf.to_str().unwrap()]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done}");
    let file = home.dir().join("logs/pid");
    let pid = pid_of(&home);
    let mut client = bolide_testkit::H1TestClient::connect(([127, 0, 0, 1], home.port(0)).into());
    assert_eq!(client.get("/", "").text(), "ok");
    let _quiet = run("kill", ["-s", "QUIT", &pid]).succeeded();
    wait_until("its end", || !file.exists() && !Path::new(&format!("/proc/{pid}/exe")).exists());
}

#[test]
fn a_port_in_use_is_reported() {
    let server = site("");
    let home = Home::new(BOLIDE);
    let conf = home.write(
        "nginx.conf",
        &format!(
            "{}http {{ server {{ listen 127.0.0.1:{}; }} }}",
            prelude(1),
            server.http().port()
        ),
    );
    let done = home.run(&["-c", conf.to_str().unwrap(), "-e", "logs/error.log"]);
    let wanted = format!(
        "{} [emerg] bind() to 127.0.0.1:{} failed (98: Address already in use)",
        home.name(),
        server.http().port()
    );
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stderr.lines().any(|line| line == wanted), "{done}");
    assert_eq!(server.get("/hello.txt").body, HELLO, "the first goes on");
}

#[test]
fn a_server_that_cannot_start_leaves_no_pid_file() {
    let home = Home::new(BOLIDE);
    let conf = home.write("nginx.conf", &format!("{}http {{ gzip maybe; }}", prelude(1)));
    let done = home.run(&["-c", conf.to_str().unwrap(), "-e", "logs/error.log"]);
    assert_eq!(done.code, 1);
    assert!(!home.dir().join("logs/pid").exists());
}
