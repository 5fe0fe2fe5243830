//! A new configuration in a running server: no request fails, and an invalid one changes nothing.

use std::fs;
use std::io::{Read as _, Write as _};

use bolide_testkit::load::{TestLoad, h2load_beside};
use bolide_testkit::server::LISTEN;
use bolide_testkit::site::HELLO;
use bolide_testkit::{Proto, TestServer, wait_until};

use crate::{BOLIDE, site};

/// A site that responds with its generation. The limits keep the server from closing connections.
fn generation(n: u32) -> String {
    format!(
        "server {{ {LISTEN} keepalive_requests 10000000; add_header X-Generation {n};
                   location = /generation {{ return 200 {n}; }} }}"
    )
}

fn is_generation(server: &TestServer, n: u32) -> bool {
    server.get("/generation").text() == n.to_string()
}

#[test]
fn hup_brings_the_new_configuration() {
    let server = TestServer::with(BOLIDE, &generation(1));
    assert!(is_generation(&server, 1));
    for n in 2..=5 {
        server.reload(&generation(n));
        wait_until("the new generation", || is_generation(&server, n));
        for proto in Proto::TLS {
            // Each worker applies the new configuration in its own turn.
            wait_until("the new generation by each protocol", || {
                let reply = server.fetch(proto, "/hello.txt");
                reply.header("x-generation") == Some(&n.to_string())
            });
        }
    }
}

#[test]
fn reloads_under_load_of_every_protocol_fail_no_request() {
    let server = TestServer::workers(BOLIDE, 2, &generation(1));
    let load: Vec<_> = [(Proto::H1, 1), (Proto::H2, 10), (Proto::H2c, 10), (Proto::H3, 10)]
        .into_iter()
        .map(|(proto, streams)| {
            let args = ["-D", "10", "-c", "20", "-m"].map(str::to_owned);
            let args = args.into_iter().chain([streams.to_string()]).collect();
            h2load_beside(proto, server.url(proto, "/hello.txt"), args)
        })
        .collect();
    bolide_testkit::pause(1500);
    let mut reloads = 0;
    while load.iter().all(|one| !one.is_finished()) {
        reloads += 1;
        server.reload(&generation(1 + reloads));
        wait_until("the new generation", || is_generation(&server, 1 + reloads));
        bolide_testkit::pause(500);
    }
    assert!(reloads > 2, "the load outlasts some reloads");
    for (one, proto) in load.into_iter().zip(["h1", "h2", "h2c", "h3"]) {
        let TestLoad { total, succeeded, failed, classes, report } = one.join().unwrap();
        let fine = succeeded > 0 && failed == 0 && classes == [succeeded, 0, 0, 0];
        assert!(fine, "{proto}: {failed} of {total} failed:\n{report}");
    }
}

#[test]
fn connections_stay_open_across_a_reload() {
    let server = TestServer::with(BOLIDE, &generation(1));
    let mut client = server.connect();
    assert_eq!(client.get("/generation", "").text(), "1");
    server.reload(&generation(2));
    wait_until("the new generation", || is_generation(&server, 2));
    assert_eq!(client.get("/generation", "").text(), "2", "the same connection, the new answer");
}

#[test]
fn a_response_in_progress_is_finished_across_a_reload() {
    let slow = |n: u32| generation(n).replace("X-Generation", "X-G") + "limit_rate 500k;";
    let server = TestServer::with(BOLIDE, &slow(1));
    let big = fs::read(server.www("big.bin")).unwrap();
    let transfers: Vec<_> = Proto::TLS
        .into_iter()
        .map(|proto| {
            let (curl, url) = (server.curl(proto), server.url(proto, "/big.bin"));
            std::thread::spawn(move || curl.get(&url))
        })
        .collect();
    bolide_testkit::pause(500);
    server.reload(&slow(2));
    for transfer in transfers {
        assert!(transfer.join().unwrap().body == big);
    }
}

#[test]
fn a_bad_configuration_is_refused_and_the_old_one_stays_in_use() {
    let mut server = TestServer::with(BOLIDE, &generation(1));
    for (bad, words) in [
        ("http { gzip maybe; }", "invalid value \"maybe\" in \"gzip\" directive"),
        ("http {", "unexpected end of file, expecting \"}\""),
        ("http { server { listen 127.0.0.1:1 ssl; } }", "no \"ssl_certificate\" is defined"),
    ] {
        server.rewrite(&format!("{}{bad}", bolide_testkit::server::prelude(1)));
        server.signal("HUP");
        wait_until(words, || server.error_log().contains(words));
        assert!(is_generation(&server, 1));
        for proto in Proto::TLS {
            assert_eq!(server.fetch(proto, "/hello.txt").body, HELLO);
        }
        assert!(!server.has_exited());
    }
    server.reload(&generation(2));
    wait_until("a good one after the bad", || is_generation(&server, 2));
}

#[test]
fn a_port_that_is_taken_leaves_the_old_configuration() {
    let server = TestServer::with(BOLIDE, &generation(1));
    let other = site("");
    let taken = other.http().port();
    let more = format!("server {{ listen 127.0.0.1:{taken}; }}");
    server.reload(&(generation(2) + &more));
    let words = format!("bind() to 127.0.0.1:{taken} failed (98: Address already in use)");
    wait_until(&words, || server.error_log().contains(&words));
    assert!(is_generation(&server, 1));
    assert_eq!(other.get("/hello.txt").body, HELLO);
}

/// Whether the port is closed: an open but forgotten socket accepts connections or is silent.
pub(crate) fn refuses(addr: std::net::SocketAddr) -> bool {
    std::net::TcpStream::connect_timeout(&addr, std::time::Duration::from_secs(1))
        .is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionRefused)
}

#[test]
fn listeners_are_opened_and_closed_with_the_configuration() {
    let server = TestServer::with(BOLIDE, &generation(1));
    let more = "server { listen 127.0.0.1:@P2@; return 200 second; }";
    server.reload(&(generation(2) + more));
    wait_until("the second port", || std::net::TcpStream::connect(server.addr(2)).is_ok());
    let mut client = bolide_testkit::H1TestClient::connect(server.addr(2));
    assert_eq!(client.get("/", "").text(), "second");
    server.reload(&generation(3));
    wait_until("the second port to refuse connections", || refuses(server.addr(2)));
    assert!(is_generation(&server, 3));
}

#[test]
fn a_new_certificate_is_used_after_a_reload() {
    let server = TestServer::with(BOLIDE, &generation(1));
    let dir = server.home().dir().to_owned();
    let old = fs::read(dir.join("cert.pem")).unwrap();
    bolide_testkit::certs::make(
        &dir,
        "cert",
        bolide_testkit::certs::CertKey::Ecdsa,
        &["localhost"],
    );
    assert_ne!(old, fs::read(dir.join("cert.pem")).unwrap());
    server.reload(&generation(2));
    for proto in Proto::TLS {
        let url = server.url(proto, "/hello.txt");
        wait_until("the new certificate", || server.curl(proto).attempt(&url).status == 200);
    }
}

#[test]
fn many_reloads_leak_neither_memory_nor_files() {
    let server = TestServer::with(BOLIDE, &generation(0));
    let open = || fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    let reload = |n: u32| {
        server.reload(&generation(n));
        wait_until("the new generation", || is_generation(&server, n));
    };
    (1..10).for_each(reload);
    let (files, memory) = (open(), server.resident_kib());
    (10..60).for_each(reload);
    wait_until("old files to close", || open() <= files + 3);
    let grown = server.resident_kib().saturating_sub(memory);
    assert!(grown < 8_000, "grew by {grown} KiB in 50 reloads");
}

/// A generation with many servers, each with a log and an upstream.
fn crowd(n: u32) -> String {
    let servers = (0..200).map(|at| {
        format!(
            "server {{ listen 127.0.0.1:@HTTP@; server_name s{at}.test; access_log @DIR@/s{at}.log;
                       location ~ ^/{at}/ {{ fastcgi_pass unix:@DIR@/{at}.sock; }} }}"
        )
    });
    generation(n) + &servers.collect::<String>()
}

#[test]
fn fifty_reloads_leave_no_file_open_though_clients_stay() {
    let server = TestServer::workers(BOLIDE, 2, &crowd(1));
    let files = |suffix: &str| {
        let all = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
        let links = all.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
        let names = links.map(|link| link.to_string_lossy().into_owned());
        names.filter(|name| name.starts_with('/') && name.ends_with(suffix)).count()
    };
    let before = files(".log");
    assert!(before > 200, "{before} logs");
    // Idle clients hold no configuration.
    let clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for n in 2..=50 {
        server.reload(&crowd(n));
        wait_until("the new generation", || is_generation(&server, n));
    }
    wait_until("each log is open once", || files(".log") == before);
    for at in 0..200 {
        let name = server.home().dir().join(format!("s{at}.log"));
        fs::rename(&name, name.with_extension("old")).unwrap();
    }
    server.reload(&crowd(51));
    wait_until("the newest generation", || is_generation(&server, 51));
    wait_until("the logs that were moved away are closed", || {
        let gone = |name| files(name) == 0;
        gone(".old") && files(".log") == before
    });
    drop(clients);
}

/// A request in progress: its response is longer than what the client reads.
fn linger(server: &TestServer, path: &str) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(server.http()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 9]).unwrap();
    stream
}

#[test]
fn a_limit_zone_that_comes_back_with_another_key_is_a_new_one() {
    let kinds = [
        ("limit_conn_zone", "", "limit_conn a 5"),
        ("limit_req_zone", "rate=99r/s", "limit_req zone=a"),
    ];
    for (directive, rate, limit) in kinds {
        let conf = |n: u32, key: &str| {
            let (zone, limit) = match key {
                "" => (String::new(), String::new()),
                key => (format!("{directive} {key} zone=a:1m {rate};"), format!("{limit};")),
            };
            format!(
                "{zone} server {{ {LISTEN} location = /generation {{ return 200 {n}; }}
                 location / {{ {limit} alias @DIR@/www/; limit_rate 200k; }} }}"
            )
        };
        let server = TestServer::with(BOLIDE, &conf(1, "$binary_remote_addr"));
        let _slow = linger(&server, "/big.bin");
        server.reload(&conf(2, ""));
        wait_until("no zone", || is_generation(&server, 2));
        server.reload(&conf(3, "$http_x"));
        wait_until("the zone", || is_generation(&server, 3));
        // What is in force binds.
        server.reload(&conf(4, "$http_y"));
        wait_until("the refusal", || server.error_log().contains("uses the \"$http_y\" key"));
        assert!(is_generation(&server, 3));
    }
}

#[test]
fn a_refused_configuration_evicts_nothing() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let conf = |n: u32, max: &str, more: &str| {
        format!(
            "proxy_cache_path @DIR@/c keys_zone=z:1m max_size={max};
             server {{ {LISTEN} location = /generation {{ return 200 {n}; }}
             location /up/ {{ alias @DIR@/www/; }}
             location /c/ {{ proxy_cache z; proxy_cache_valid any 9m; proxy_cache_key $request_uri;
                proxy_pass http://127.0.0.1:@HTTP@/up/some.bin?; }} }} {more}"
        )
    };
    let server = TestServer::with(BOLIDE, &conf(1, "100m", ""));
    fs::write(server.www("some.bin"), vec![b'x'; 200 << 10]).unwrap();
    for n in 0..20 {
        assert_eq!(server.get(&format!("/c/{n}")).status, 200);
    }
    let objects = || {
        let text = server.home().run(&["cache", "stats"]).succeeded().text();
        let line = text.lines().find(|line| line.contains("objects")).unwrap().to_owned();
        line.split_whitespace().find_map(|word| word.parse::<u32>().ok()).unwrap()
    };
    wait_until("all", || objects() == 20);
    let port = taken.local_addr().unwrap().port();
    server.reload(&conf(2, "1m", &format!("server {{ listen 127.0.0.1:{port}; }}")));
    wait_until("the refusal", || server.error_log().contains("still could not bind()"));
    assert_eq!(server.get("/c/20").status, 200);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(objects(), 21, "the limit in force is that of the start");
    server.reload(&conf(3, "1m", ""));
    wait_until("the good one", || is_generation(&server, 3));
    assert_eq!(server.get("/c/21").status, 200);
    wait_until("the new limit", || objects() < 10);
}

#[test]
fn the_memory_for_responses_is_that_of_the_first_configuration_in_force_that_caches() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let conf = |n: u32, cache: &str, more: &str| {
        let answer = format!("location = /generation {{ return 200 {n}; }}");
        format!("{cache} server {{ {LISTEN} {answer} }} {more}")
    };
    let server = TestServer::with(BOLIDE, &conf(1, "", ""));
    let refused = conf(2, "page_cache on; page_cache_memory 20m;", "");
    server.reload(&format!("{refused} server {{ listen 127.0.0.1:{port}; }}"));
    wait_until("the refusal", || server.error_log().contains("still could not bind()"));
    server.rewrite(&format!("{}http {{ {refused} }}", bolide_testkit::server::prelude(1)));
    let preview = server.home().run(&["reload", "--dry-run", "-c", "nginx.conf"]);
    assert!(preview.code == 0, "{preview}");
    server.reload(&conf(3, "page_cache on; page_cache_memory 30m;", ""));
    wait_until("the reload", || is_generation(&server, 3));
    let stats = server.home().run(&["cache", "stats"]).succeeded().text();
    assert!(stats.contains(" of 30.0 MiB"), "{stats}");
}

#[test]
fn what_only_a_start_obeys_is_warned_of_when_it_changes() {
    let conf = |main: &str, http: &str, n: u32| {
        format!(
            "{} {main} http {{ {http} server {{ listen 127.0.0.1:@HTTP@; page_cache on;
             location = /generation {{ return 200 {n}; }} }} }}",
            bolide_testkit::server::prelude(1)
        )
    };
    let main = [
        ("worker_rlimit_nofile", "4000", "5000"),
        ("worker_rlimit_core", "1m", "2m"),
        ("worker_priority", "1", "2"),
        ("worker_cpu_affinity", "01", "10"),
        ("working_directory", "/", "/tmp"),
        ("env", "A=1", "A=2"),
    ];
    let all = |changed: Option<usize>| -> String {
        let one = |(at, (name, old, new)): (usize, &(&str, &str, &str))| {
            format!("{name} {};", if changed == Some(at) { new } else { old })
        };
        main.iter().enumerate().map(one).collect()
    };
    let memory = |size: &str| format!("page_cache_memory {size};");
    let server = TestServer::conf(BOLIDE, &conf(&all(None), &memory("20m"), 1));
    let warnings = || -> Vec<String> {
        let log = server.error_log();
        let lines = log.lines().filter(|line| line.contains("has changed, but a reload keeps"));
        lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
    };
    let mut wanted = Vec::new();
    for n in 0..main.len() + 2 {
        let name = main.get(n).map_or("page_cache_memory", |(name, ..)| name);
        let size = if n == main.len() { "30m" } else { "20m" };
        server.rewrite(&conf(&all(Some(n)), &memory(size), n as u32 + 2));
        server.signal("HUP");
        wait_until("the reload", || is_generation(&server, n as u32 + 2));
        // The last one has everything as at the start.
        wanted.extend((n <= main.len()).then(|| name.to_owned()));
        assert_eq!(warnings(), wanted, "{}", server.error_log());
    }
}

#[test]
fn options_of_an_open_socket_follow_the_configuration() {
    let conf = |n: u32, tcp: &str| {
        format!(
            "server {{ listen 127.0.0.1:@HTTP@ {tcp};
             location = /generation {{ return 200 {n}; }} }}"
        )
    };
    let server = TestServer::with(BOLIDE, &conf(1, "backlog=33"));
    let backlog = || {
        let filter = format!("sport = :{}", server.http().port());
        let text = bolide_testkit::run("ss", ["-ltnH", &filter]).succeeded().text();
        text.split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!(backlog(), "33");
    for (n, (options, wanted)) in (2..).zip([("backlog=77", "77"), ("", "511"), ("backlog=9", "9")])
    {
        server.reload(&conf(n, options));
        wait_until("the reload", || is_generation(&server, n));
        assert_eq!(backlog(), wanted, "{options}");
    }
}

#[test]
fn logs_of_a_replaced_configuration_are_reopened_as_long_as_requests_use_it() {
    let conf = |n: u32, log: &str| {
        format!(
            "log_format line $uri; server {{ {LISTEN}
             location = /generation {{ access_log off; return 200 {n}; }}
             location / {{ alias @DIR@/www/; limit_rate 300k; access_log {log}; }} }}"
        )
    };
    let server = TestServer::with(BOLIDE, &conf(1, "@DIR@/old.log line"));
    let mut slow = linger(&server, "/big.bin");
    server.reload(&conf(2, "off"));
    wait_until("the reload", || is_generation(&server, 2));
    let file = |name: &str| server.home().dir().join(name);
    for n in 1..3 {
        fs::rename(file("old.log"), file(&format!("old.log.{n}"))).unwrap();
        server.signal("USR1");
        wait_until("a new file", || file("old.log").exists());
    }
    // The workers have it a moment later.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut rest = Vec::new();
    slow.set_read_timeout(Some(std::time::Duration::from_secs(4))).unwrap();
    let _idle = slow.read_to_end(&mut rest);
    assert!(rest.len() > 100_000);
    wait_until("the line", || server.home().read("old.log") == "/big.bin\n");
    assert_eq!(server.home().read("old.log.1") + &server.home().read("old.log.2"), "");
    drop(slow);
    wait_until("the end", || server.error_log().contains("configuration is no longer in use"));
    fs::remove_file(file("old.log")).unwrap();
    server.signal("USR1");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!file("old.log").exists(), "nothing uses it now");
}

#[test]
fn a_cache_zone_in_force_keeps_its_directory_and_levels() {
    let conf = |n: u32, path: &str, zone: &str, levels: &str| {
        format!(
            "proxy_cache_path @DIR@/{path} keys_zone={zone} {levels};
             server {{ {LISTEN} location = /generation {{ return 200 {n}; }} }}"
        )
    };
    let server = TestServer::with(BOLIDE, &conf(1, "c", "z:1m", "levels=1:2"));
    let dir = server.home().dir().display();
    let moved = format!(
        "cache \"z\" uses the \"{dir}/d\" cache path while previously it used the \"{dir}/c\" \
         cache path"
    );
    let other = "cache \"z\" had previously different levels".to_owned();
    let refused = [
        (conf(2, "d", "z:1m", "levels=1:2"), moved),
        (conf(2, "c", "z:1m", "levels=2:1"), other.clone()),
        (conf(2, "c", "z:1m", ""), other.clone()),
        (conf(2, "c", "z:1m", "levels=1:2:1"), other),
    ];
    for (http, words) in refused {
        let before = server.error_log().matches(&words).count();
        server.reload(&http);
        wait_until(&words, || server.error_log().matches(&words).count() > before);
        assert!(is_generation(&server, 1));
    }
    // As in nginx, one of another size is another zone.
    let taken =
        [("d", "z:2m", "levels=2"), ("e", "y:2m", ""), ("c", "z:1m", "levels=1:2 max_size=9m")];
    for (n, (path, zone, levels)) in (2..).zip(taken) {
        server.reload(&conf(n, path, zone, levels));
        wait_until("the reload", || is_generation(&server, n));
    }
}
