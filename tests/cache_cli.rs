//! `bolide cache`: the commands that list, purge and fill the cache of a running server.

use bolide_testkit::origin::answer;
use bolide_testkit::server::LISTEN;
use bolide_testkit::{TestPhp, TestServer, TestUpstream, site, wait_until};

use crate::cache::{KEEP, ZONE, serve};
use crate::explain::{ask, field};

const NULLS: (&str, &str) = ("null", "null");

fn page(n: u32, tags: &str) -> String {
    let public = "h[]=X-LiteSpeed-Cache-Control:public,max-age=60";
    format!("/count.php?n={n}&{public}&h[]=X-LiteSpeed-Tag:{tags}")
}

fn output(server: &TestServer, args: &[&str]) -> String {
    ask(server, &[&["cache"], args].concat()).succeeded().text()
}

fn is_hit(server: &TestServer, path: &str) -> bool {
    server.get(path).header("x-litespeed-cache") == Some("hit")
}

#[test]
fn cached_objects_are_listed_by_tag_and_url() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "page_cache auto;");
    assert_eq!(output(&server, &["list"]), "no matching entries\n");
    for (n, tags) in [(1, "A,B"), (2, "A"), (3, "shop_1")] {
        assert_eq!(server.get(&page(n, tags)).status, 200);
    }
    let count = |args: &[&str]| {
        let json = output(&server, &[&["list", "--json"], args].concat());
        json.matches("\"kind\":\"answer\"").count()
    };
    let url = format!("http://localhost:{}/count.php?n=2", server.home().port(0));
    for (args, expected) in [
        (&[][..], 3),
        (&["--tag", "A"], 2),
        (&["--tag", "B"], 1),
        (&["--tag", "shop*"], 1),
        (&["--tag", "none"], 0),
        (&["--url", "/count.php?n=1"], 1),
        (&["--url", &url], 1),
        (&["--url", "/other"], 0),
        (&["--limit", "2"], 2),
        (&["--vhost", "localhost"], 3),
    ] {
        assert_eq!(count(args), expected, "{args:?}");
    }
    let text = output(&server, &["list", "--tag", "B"]);
    assert!(text.contains("/count.php?n=1&") && text.contains("tags A B"), "{text}");
    assert!(text.contains("vhost localhost: fresh, 200, age"), "{text}");
    let cut = output(&server, &["list", "--limit", "1"]);
    assert!(cut.contains("and 2 more"), "{cut}");
}

#[test]
fn a_zone_of_proxy_cache_is_explained_in_its_own_words() {
    let app = TestUpstream::scripted(|peer| {
        while let Ok(request) = peer.request() {
            let head = if request.target() == "/kept" { "Cache-Control: max-age=60" } else { "" };
            if peer.send(answer(head, "page")).is_err() {
                return;
            }
        }
    });
    let server = crate::http(&format!(
        "proxy_cache_path @DIR@/cache keys_zone=z:1m;
         server {{ {LISTEN} location / {{ proxy_pass http://{}; proxy_cache z;
         proxy_cache_bypass $http_x_new; proxy_cache_lock on; }} }}",
        app.address()
    ));
    for path in ["/kept", "/other"] {
        assert_eq!(server.get(path).status, 200);
    }
    let text = output(&server, &["list"]);
    assert!(text.contains("zone z: fresh") && !text.contains("serves stale for"), "{text}");
    let json = output(&server, &["list", "--json"]);
    assert_eq!((field(&json, "stale_while_revalidate"), field(&json, "stale_if_error")), NULLS);
    let url = |path: &str| format!("http://localhost:{}{path}", server.home().port(0));
    let explain = |path: &str, more: &[&str]| {
        ask(&server, &[&["explain", &url(path)], more].concat()).succeeded().text()
    };
    let all = [
        explain("/kept", &[]),
        explain("/other", &[]),
        explain("/kept", &["--header", "X-New: 1"]),
        explain("/kept", &["--method", "POST"]),
    ];
    for text in &all {
        assert!(text.contains("proxy_cache z"), "{text}");
        assert!(!text.contains("fastcgi") && !text.contains("serves stale for"), "{text}");
    }
    assert!(all[1].contains("proxy_cache_valid"), "{}", all[1]);
    assert!(all[2].contains("proxy_cache_bypass ("), "{}", all[2]);
}

#[test]
fn purges_match_what_they_name_and_print_the_count() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "page_cache auto; page_cache_vary cookie=currency;");
    let (one, two, three) = (page(1, "A,B"), page(2, "A"), page(3, "C"));
    let fill =
        || [&one, &two, &three].iter().for_each(|path| assert_eq!(server.get(path).status, 200));
    let hits = || [&one, &two, &three].map(|path| is_hit(&server, path));
    let url = |path: &str| format!("http://localhost:{}{path}", server.home().port(0));
    fill();
    assert_eq!(output(&server, &["purge", "--tag", "A"]), "purged: 2 objects\n");
    assert_eq!(hits(), [false, false, true]);
    assert_eq!(output(&server, &["purge", "--tag", "B"]), "purged: 1 object\n");
    fill();
    // All variants of a page, private ones included.
    let copy = server.connect().get(&three, "Cookie: currency=eur\r\n");
    assert_eq!(copy.status, 200);
    assert_eq!(output(&server, &["purge", "--url", &url(&three)]), "purged: 2 objects\n");
    assert_eq!(hits(), [true, true, false]);
    let begin = "/count.php?n=2&";
    assert_eq!(output(&server, &["purge", "--prefix", begin, "--json"]), "{\"purged\":1}\n");
    assert_eq!(hits(), [true, false, true]);
    assert_eq!(output(&server, &["purge", "--all"]), "purged: 3 objects\n");
    assert_eq!(hits(), [false; 3]);
    assert_eq!(output(&server, &["purge", "--all", "--stale"]), "made stale: 3 objects\n");
    // The stale objects are served while the first request for each revalidates it.
    assert_eq!(hits(), [true; 3]);
    wait_until("a new one is there", || server.get(&one).text() == "run 5");
}

#[test]
fn sites_and_zones_are_purged_apart() {
    let php = TestPhp::start(1);
    let more = format!(
        "{ZONE} fastcgi_cache_path @DIR@/cache2 keys_zone=two:1m;
         server {{ listen 127.0.0.1:@P2@; server_name other; root @DIR@/www;
         location ~ \\.php$ {{ {} fastcgi_pass {}; fastcgi_cache two;
         fastcgi_cache_key $request_uri; fastcgi_cache_valid 200 1m;
         add_header X-Status $upstream_cache_status; }} }}",
        crate::cache::PARAMS,
        php.address()
    );
    let server = serve(&php, &more, KEEP);
    let status = |port: usize| {
        let mut client = bolide_testkit::H1TestClient::connect(server.addr(port));
        let reply = client.get("/count.php", "Connection: close\r\n");
        reply.header("x-status").unwrap_or_default().to_owned()
    };
    assert_eq!((status(0), status(2)), ("MISS".into(), "MISS".into()));
    assert_eq!(output(&server, &["purge", "--zone", "two", "--all"]), "purged: 1 object\n");
    assert_eq!((status(0), status(2)), ("HIT".into(), "MISS".into()));
    let url = format!("http://localhost:{}/count.php", server.home().port(0));
    assert_eq!(output(&server, &["purge", "--url", &url]), "purged: 1 object\n");
    assert_eq!((status(0), status(2)), ("MISS".into(), "HIT".into()));
    let other = ask(&server, &["cache", "purge", "--zone", "one", "--url", &url]);
    assert_eq!((other.code, other.text()), (0, "purged: 1 object\n".to_owned()));
    let wrong = ask(&server, &["cache", "purge", "--zone", "two", "--url", &url]);
    assert!(wrong.code == 1 && wrong.stderr.contains("in another space"), "{wrong}");
}

#[test]
fn statistics_are_printed_for_each_part_of_the_cache() {
    let php = TestPhp::start(1);
    let server = serve(&php, "", "page_cache auto;");
    let path = page(1, "A");
    assert!(!is_hit(&server, &path));
    assert!(is_hit(&server, &path) && is_hit(&server, &path));
    assert_eq!(server.get("/count.php?n=2").status, 200);
    let mut json = String::new();
    wait_until("workers have reported", || {
        json = output(&server, &["stats", "--json"]);
        let parts = json.split("\"parts\":").nth(1).unwrap();
        field(parts, "hits") == "2" && field(parts, "misses") == "2"
    });
    let parts = json.split("\"parts\":").nth(1).unwrap();
    assert_eq!((field(parts, "name"), field(parts, "kind")), ("localhost", "vhost"));
    let text = output(&server, &["stats"]);
    assert!(
        text.contains("vhost localhost: ") && text.contains("2 hits, 0 stale, 2 misses"),
        "{text}"
    );
    let _ = output(&server, &["purge", "--tag", "A"]);
    assert!(output(&server, &["stats", "--json"]).contains("\"purges\":1"));
}

#[test]
fn pages_are_warmed_by_name_and_by_sitemap_over_tls_too() {
    let php = TestPhp::start(2);
    let server = serve(&php, "", "page_cache auto;");
    let url = |port: usize, scheme: &str, path: &str| {
        format!("{scheme}://localhost:{}{path}", server.home().port(port))
    };
    let is_warm = |path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost:{}", server.home().port(0));
        server.connect().ask(&head).header("x-litespeed-cache") == Some("hit")
    };
    let (one, two, three) = (page(1, "A"), page(2, "B"), page(3, "C"));
    let said = output(&server, &["warm", &url(0, "http", &one), &url(0, "http", "/count.php?n=4")]);
    assert!(
        said.ends_with("requested 2: 1 stored, 0 already cached, 1 not stored, 0 failed\n"),
        "{said}"
    );
    assert!(is_warm(&one));
    let escaped = |text: String| text.replace('&', "&amp;");
    let map = format!(
        "<urlset><url><loc>{}</loc></url><url><loc>{}</loc></url></urlset>",
        escaped(url(0, "http", &two)),
        escaped(url(1, "https", &three))
    );
    site::write(&server.www("sitemap.xml"), map.as_bytes());
    let sitemap = url(0, "http", "/sitemap.xml");
    let options = ["warm", "--json", "--concurrency", "2", "--rate", "50", "--sitemap", &sitemap];
    let json = output(&server, &options);
    assert_eq!((field(&json, "asked"), field(&json, "kept_now")), ("2", "2"), "{json}");
    assert!(is_warm(&two));
    let secure = server.fetch(bolide_testkit::Proto::H1, &three);
    assert_eq!(secure.header("x-litespeed-cache"), Some("hit"));
    let file = server.home().dir().join("www/sitemap.xml");
    let json = output(&server, &["warm", "--json", "--sitemap", file.to_str().unwrap()]);
    assert_eq!(field(&json, "kept_before"), "2", "{json}");
    let wrong = ask(&server, &["cache", "warm", "http://localhost:1/"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("does not listen on port 1"), "{wrong}");
}

#[test]
fn errors_are_printed_and_exit_with_1() {
    let php = TestPhp::start(1);
    let server = serve(&php, ZONE, KEEP);
    for (args, said) in [
        (&["cache", "purge"][..], "nothing to purge"),
        (&["cache", "purge", "--all", "--tag", "A"], "nothing to purge"),
        (&["cache", "list", "--zone", "none"], "there is no zone \"none\": known are \"one\""),
        (
            &["cache", "list", "--vhost", "none"],
            "there is no vhost \"none\": known are \"localhost\"",
        ),
        (&["cache", "list", "--limit", "x"], "\"x\" is not a number"),
        (&["cache", "list", "word"], "invalid option: \"word\""),
        (&["cache", "list", "--other"], "invalid option: \"--other\""),
        (&["cache", "drop"], "invalid option: \"cache drop\""),
        (&["cache"], "requires one of list, stats, purge, ban, bans and warm"),
        (&["cache", "warm"], "requires a URL or --sitemap"),
        (&["cache", "warm", "--concurrency", "0", "http://a/"], "invalid number \"0\""),
        (&["explain"], "requires a URL, or --request ID"),
        (&["explain", "/path"], "does not begin with http:// or https://"),
        (&["explain", "--from", "me", "http://localhost:@/"], "no host that could be one"),
    ] {
        let done = ask(&server, args);
        assert_eq!((done.code, done.text()), (1, String::new()), "{args:?}: {done}");
        assert!(done.stderr.contains(said), "{args:?}: {done}");
    }
    let help = ask(&server, &["cache", "purge", "--help"]);
    assert!(help.code == 0 && help.text().contains("cache purge"), "{help}");
    // The process id finds the server, too, but only while it runs.
    let pid = server.pid().to_string();
    let by_pid = server.home().run(&["cache", "stats", "--pid", &pid]);
    assert_eq!(by_pid.code, 0, "{by_pid}");
    let home = bolide_testkit::server::Home::new(crate::BOLIDE);
    home.write("nginx.conf", "pid @DIR@/logs/pid; events {} http { server { listen @HTTP@; } }");
    let nobody = home.run(&["-c", "nginx.conf", "cache", "stats"]);
    assert!(nobody.code == 1 && nobody.stderr.contains("no server runs here"), "{nobody}");
    let dead = home.run(&["cache", "stats", "--pid", "999999999"]);
    assert!(dead.code == 1 && dead.stderr.contains("does not run"), "{dead}");
}

#[test]
fn a_server_without_a_cache_reports_that() {
    let server = crate::site("");
    let done = ask(&server, &["cache", "stats"]);
    assert!(done.code == 1 && done.stderr.contains("has no cache"), "{done}");
    let url = format!("http://localhost:{}/", server.home().port(0));
    let story = ask(&server, &["explain", &url]).succeeded().text();
    assert!(story.contains("decision   NONE: files are served here"), "{story}");
}
