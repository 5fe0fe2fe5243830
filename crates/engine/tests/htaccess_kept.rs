//! Rulings of `.htaccess` files that are kept: they hold only as long as a fresh one would be the
//! same.

use std::time::Duration;

use bolide_files::Trail;
use bolide_http::Method;
use bolide_world::{FuzzWorld, Say, WorldReply, request};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use proptest::sample::select;

const CONFIG: &str = r#"
events {}
http {
    types { text/html html; text/css css; text/plain txt; }
    default_type application/octet-stream;
    server { listen 80; root /srv/www; index index.html; apache_htaccess on; }
}
"#;

/// Directories, each below the one before it, with the numbers of their watches.
const DIRECTORIES: [&str; 3] = ["/srv/www", "/srv/www/a", "/srv/www/a/b"];
const FIRST_WATCH: u32 = 3;

const LINES: [&str; 38] = [
    "Require all denied",
    "Require all granted",
    "Require env OK",
    "SetEnvIf X-Ok yes OK",
    "SetEnvIf Request_URI txt OK",
    "<Files \"*.txt\">\nHeader set X-Files txt\n</Files>",
    "<FilesMatch \"^i\">\nRequire method GET\n</FilesMatch>",
    "<If \"%{QUERY_STRING} == 'q'\">\nHeader set X-If q\n</If>",
    "<If \"%{REQUEST_URI} =~ /b/\">\nHeader set X-If b\n</If>",
    "Header set X-Here 1",
    "Header append X-Here 2 env=OK",
    "ExpiresActive on\nExpiresDefault A60",
    "AddType text/own .txt",
    "AddLanguage en .txt",
    "FileETag None",
    "DirectoryIndex f.txt",
    "Options -Indexes",
    "RewriteEngine on",
    "RewriteEngine on\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule . /index.html [L]",
    "RewriteEngine on\nRewriteCond %{HTTP:X-Ok} yes\nRewriteRule . - [F]",
    "RewriteEngine on\nRewriteRule .* - [E=AUTH:%{HTTP:Authorization}]",
    "RewriteEngine on\nRewriteRule ^f\\.txt$ - [T=text/rule]",
    "RewriteEngine on\nRewriteCond %{QUERY_STRING} ^q$\nRewriteRule ^(.*)$ $1? [QSD]",
    "Redirect /a/f.txt /index.html",
    "RequestHeader set X-Ok yes",
    "Nonsense",
    "RewriteEngine on\nRewriteCond %{HTTP_USER_AGENT} Mobile|Silk/ [NC]\n\
     RewriteRule .* - [E=M:1]\nHeader set X-Mobile 1 env=M",
    "RewriteEngine on\nRewriteCond %{HTTP_USER_AGENT} !mobile$\nRewriteRule f - [F]",
    "RewriteEngine on\nRewriteCond %{HTTP_COOKIE} in=([0-9])\nRewriteRule .* - [E=C:%1]\n\
     Header set X-Cookie %{C}e",
    "RewriteEngine on\nRewriteCond %{HTTP_COOKIE} in= [OR]\nRewriteCond %{QUERY_STRING} ^q$\n\
     RewriteRule ^(.*)$ /index.html?was=$1 [L,QSA]",
    "RewriteEngine on\nRewriteCond %{HTTP_COOKIE} in=1\nRewriteCond %{HTTP_USER_AGENT} .\n\
     RewriteRule !^index /a/f.txt [L]",
    "RewriteEngine on\nRewriteRule .* - [E=AUTH:%{HTTP:Authorization}]\n\
     RewriteRule ^index\\.html$ - [L]\nRewriteCond %{REQUEST_FILENAME} !-f\n\
     RewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule . /index.html [L]",
    "Header set X-Way \"expr=%{REQUEST_URI} %{QUERY_STRING}\" env=REDIRECT_STATUS",
    "Header set X-Was %{REDIRECT_URL}e env=REDIRECT_STATUS\n\
     Header set X-Asked %{REDIRECT_QUERY_STRING}e env=REDIRECT_QUERY_STRING",
    "RewriteEngine on\nRewriteRule b$ ?made [S=1]",
    "RewriteEngine on\nRewriteRule ^(.*f\\.txt)$ /moved [R]\n\
     RewriteRule ^http://a\\.test/ /index.html [L]",
    "SetEnvIf Cookie in=1 OK\nHeader set X-In 1 env=OK",
    "<If \"%{HTTP_USER_AGENT} =~ /Mobile/ && %{QUERY_STRING} != 'q'\">\nHeader set X-If m\n</If>",
];

/// What clients ask for, say of themselves, and bring with them.
const HOSTS: [&str; 2] = ["a.test", "b.test"];
const AGENTS: [Option<&str>; 4] = [None, Some("Silk/1 (Mobile)"), Some("mobile"), Some("x")];
const COOKIES: [Option<&str>; 4] = [None, Some("in=1"), Some("a=b; in=2"), Some("a=b")];

#[derive(Clone, Debug)]
enum Op {
    Rules(usize, Vec<&'static str>),
    NoRules(usize),
    Write(usize, &'static str, u8),
    Remove(usize, &'static str),
    Ask { target: String, host: &'static str, method: Method, fields: Fields },
    Pass(u64),
}

type Fields = Vec<(&'static str, &'static str)>;

fn fields() -> impl Strategy<Value = Fields> {
    let named = |name: &'static str, value: Option<&'static str>| value.map(|value| (name, value));
    let all = (any::<bool>(), select(AGENTS.to_vec()), select(COOKIES.to_vec()));
    all.prop_map(move |(is_ok, agent, cookie)| {
        let ok = is_ok.then_some(("X-Ok", "yes"));
        let all = [ok, named("User-Agent", agent), named("Cookie", cookie)];
        all.into_iter().flatten().collect()
    })
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let directory = || 0..DIRECTORIES.len();
    let name = || select(vec!["f.txt", "g.css", "index.html", "none"]);
    let asked =
        select(vec!["f.txt", "g.css", "index.html", "", "b", "none", "none/x/y", "no%3Fne"]);
    let method = select(vec![Method::Get, Method::Get, Method::Get, Method::Head, Method::Post]);
    let host = select(HOSTS.to_vec());
    let ask = (directory(), asked, any::<bool>(), host, (method, fields())).prop_map(
        |(directory, name, query, host, (method, fields))| {
            let below = &DIRECTORIES[directory]["/srv/www".len()..];
            let target = format!("{below}/{name}{}", if query { "?q" } else { "" });
            Op::Ask { target, host, method, fields }
        },
    );
    let lines = prop::collection::vec(select(LINES.to_vec()), 1..4);
    let op = prop_oneof![
        2 => (directory(), lines).prop_map(|(directory, lines)| Op::Rules(directory, lines)),
        1 => directory().prop_map(Op::NoRules),
        1 => (directory(), name(), any::<u8>())
            .prop_map(|(at, name, byte)| Op::Write(at, name, byte)),
        1 => (directory(), name()).prop_map(|(at, name)| Op::Remove(at, name)),
        14 => ask,
        1 => (0_u64..1500).prop_map(Op::Pass),
        1 => Just(Op::Pass(1)),
    ];
    prop::collection::vec(op, 0..80)
}

fn world() -> FuzzWorld {
    let mut world = FuzzWorld::of(CONFIG);
    for (directory, text) in DIRECTORIES.iter().zip(["1", "2", "3"]) {
        for name in ["f.txt", "g.css", "index.html"] {
            world.door.put(&format!("{directory}/{name}"), text.as_bytes());
        }
    }
    watch(&mut world);
    world
}

/// Has the kernel tell of changes, as a worker does before it looks.
fn watch(world: &mut FuzzWorld) {
    let parts: [&[u8]; 4] = [b"srv", b"www", b"a", b"b"];
    for (at, directory) in DIRECTORIES.iter().enumerate() {
        let steps = (1..).zip(&parts[..at + 2]).map(|(watch, part)| (watch, Box::from(*part)));
        let trail = Trail { steps: steps.collect(), last: FIRST_WATCH + at as u32 };
        world.files.watches.insert(format!("{directory}/").as_bytes(), trail);
    }
    let steps = vec![(1, Box::from(&b"srv"[..]))];
    world.files.watches.insert(b"/srv/", Trail { steps, last: 2 });
}

fn tell(world: &mut FuzzWorld, directory: usize, name: &str) {
    let now = world.now.mono;
    world.files.hear_changed(FIRST_WATCH + directory as u32, name.as_bytes(), now);
    watch(world);
}

fn apply(world: &mut FuzzWorld, op: &Op) -> Option<WorldReply> {
    let path = |directory: usize, name: &str| format!("{}/{name}", DIRECTORIES[directory]);
    match op {
        Op::Rules(directory, lines) => {
            world.door.put(&path(*directory, ".htaccess"), lines.join("\n").as_bytes());
            tell(world, *directory, ".htaccess");
        }
        Op::NoRules(directory) => {
            world.door.remove(&path(*directory, ".htaccess"));
            tell(world, *directory, ".htaccess");
        }
        Op::Write(directory, name, byte) => {
            world.door.put(&path(*directory, name), &[*byte]);
            tell(world, *directory, name);
        }
        Op::Remove(directory, name) => {
            world.door.remove(&path(*directory, name));
            tell(world, *directory, name);
        }
        Op::Pass(millis) => world.pass(Duration::from_millis(*millis)),
        Op::Ask { target, host, method, fields } => {
            world.pass(Duration::from_micros(10));
            return Some(world.ask(request(*method, host, target, fields)));
        }
    }
    None
}

proptest! {
    #[test]
    fn an_answer_by_a_ruling_that_was_kept_is_that_of_a_fresh_one(ops in ops()) {
        let (mut keeping, mut forgetting) = (world(), world());
        for op in ops {
            forgetting.forget_rulings();
            let (kept, fresh) = (apply(&mut keeping, &op), apply(&mut forgetting, &op));
            if let (Some(kept), Some(fresh)) = (kept, fresh) {
                assert_eq!(kept.status, fresh.status, "{op:?}");
                assert_eq!(kept.fields, fresh.fields, "{op:?}");
                assert_eq!(kept.body, fresh.body, "{op:?}");
            }
        }
    }
}

/// The value of a field of an answer.
fn said(reply: &WorldReply, name: &str) -> String {
    let found = reply.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

/// Whether the second of two requests was answered by what was kept for the first.
fn is_kept(rules: &str, target: &str, fields: &[(&str, &str)]) -> bool {
    let mut world = world();
    world.door.put("/srv/www/a/.htaccess", rules.as_bytes());
    for _ in 0..2 {
        let reply = world.ask(request(Method::Get, "a.test", target, fields));
        assert_eq!(reply.status, 200, "{rules}");
    }
    world.rulings_recalled() > 0
}

#[test]
fn what_depends_on_the_path_alone_is_kept() {
    for rules in [
        "Options -Indexes\n<Files *.bak>\nRequire all denied\n</Files>",
        "Header set X-A 1\nExpiresActive on\nExpiresDefault A60",
        "RewriteEngine on\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule . /index.html",
        "RewriteEngine on\nRewriteRule .* - [E=A:%{HTTP:Authorization}]",
        "<If \"%{REQUEST_URI} =~ /f/\">\nHeader set X-A 1\n</If>",
    ] {
        assert!(is_kept(rules, "/a/f.txt?x", &[]), "{rules}");
        assert!(is_kept(rules, "/a/", &[]), "{rules}");
    }
}

#[test]
fn what_depends_on_replies_is_kept_for_those_who_give_them() {
    for rules in [
        "Require ip 192.0.2.0/24",
        "RewriteEngine on\nRewriteCond %{HTTP_HOST} ^www\nRewriteRule . http://x/",
        "RewriteEngine on\nRewriteCond %{QUERY_STRING} ^b$\nRewriteRule . - [F]",
        "SetEnvIf User-Agent Bad BAD",
    ] {
        assert!(is_kept(rules, "/a/f.txt", &[("User-Agent", "y")]), "{rules}");
    }
    let mut world = world();
    let rules = "RewriteEngine on\nRewriteCond %{HTTP_USER_AGENT} Mobile|Silk/ [NC]\n\
                 RewriteRule . - [E=M:1]\nHeader set X-Mobile 1 env=M\n\
                 RewriteCond %{HTTP_COOKIE} in=\nRewriteRule . - [F]";
    world.door.put("/srv/www/a/.htaccess", rules.as_bytes());
    let mut ask = |agent: &str, cookie: &str| {
        let fields = [("User-Agent", agent), ("Cookie", cookie)];
        let before = world.rulings_recalled();
        let reply = world.ask(request(Method::Get, "a.test", "/a/f.txt", &fields));
        let is_mobile = !said(&reply, "x-mobile").is_empty();
        (reply.status, is_mobile, world.rulings_recalled() - before)
    };
    assert_eq!(ask("one", "a=1"), (200, false, 0));
    // No visitor is like another, and what is asked of them has the same replies.
    assert_eq!(ask("another", "a=2; b=3"), (200, false, 1));
    assert_eq!(ask("a mobile", "a=3"), (200, true, 0));
    assert_eq!(ask("silk/2", "a=4"), (200, true, 1));
    assert_eq!(ask("silk/2", "a=4; in=5"), (403, false, 0));
    assert_eq!(ask("third", "a=5"), (200, false, 1));
}

#[test]
fn rounds_of_a_front_controller_are_kept() {
    let mut world = world();
    let front = "RewriteEngine on\nRewriteRule ^index\\.html$ - [L]\n\
                 RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\n\
                 RewriteRule . /index.html [L]\n\
                 Header set X-Was %{REDIRECT_URL}e env=REDIRECT_URL\n\
                 Header set X-Asked %{REDIRECT_QUERY_STRING}e env=REDIRECT_QUERY_STRING";
    world.door.put("/srv/www/.htaccess", front.as_bytes());
    let mut ask = |target: &str| {
        let before = world.rulings_recalled();
        let reply = world.ask(request(Method::Get, "a.test", target, &[]));
        assert_eq!((reply.status, &reply.body[..]), (200, &b"1"[..]), "{target}");
        let (was, asked) = (said(&reply, "x-was"), said(&reply, "x-asked"));
        (was, asked, world.rulings_recalled() - before)
    };
    for target in ["/2026/one", "/2026/two", "/three"] {
        for _ in 0..3 {
            ask(target);
        }
        assert_eq!(ask(target), (target.to_owned(), String::new(), 2), "both rounds");
    }
    let with_query = ask("/three?a=b");
    assert_eq!(with_query, ("/three".to_owned(), "a=b".to_owned(), 0));
    assert_eq!(ask("/three?a=b"), ("/three".to_owned(), "a=b".to_owned(), 2));
    assert_eq!(ask("/2026/two"), ("/2026/two".to_owned(), String::new(), 2));
}

#[test]
fn a_missing_path_that_comes_is_there_at_once() {
    let mut world = world();
    let front = "RewriteEngine on\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule . /index.html";
    world.door.put("/srv/www/.htaccess", front.as_bytes());
    for _ in 0..4 {
        assert_eq!(world.get("a.test", "/a/new.txt").body, b"1");
    }
    world.door.put("/srv/www/a/new.txt", b"came");
    tell(&mut world, 1, "new.txt");
    assert_eq!(world.get("a.test", "/a/new.txt").body, b"came");
}

#[test]
fn what_depends_on_more_is_not_kept() {
    for rules in [
        "RequestHeader set X-A 1",
        "RewriteEngine on\nRewriteCond %{TIME_YEAR} <1980\nRewriteRule . - [F]",
    ] {
        let fields = [("Authorization", "Basic x"), ("User-Agent", "y")];
        assert!(!is_kept(rules, "/a/f.txt", &fields), "{rules}");
    }
}

#[test]
fn what_waits_in_the_round_of_an_index_depends_on_its_links_still() {
    // The other file is looked for in the round of the index, when its links were judged.
    let rules = "Options -FollowSymLinks +SymLinksIfOwnerMatch\nRewriteEngine on\n\
                 RewriteCond %{DOCUMENT_ROOT}/a/b/f.txt !-f\nRewriteRule index - [F]";
    assert!(!is_kept(rules, "/a/", &[]));
}

#[test]
fn what_takes_much_memory_is_not_kept() {
    let text = "x".repeat(64);
    let rules = |doublings: usize| {
        let first = format!("RewriteEngine on\nRewriteRule .* - [E=A:{text}]\n");
        first + &"RewriteRule .* - [E=A:%{ENV:A}%{ENV:A}]\n".repeat(doublings)
    };
    assert!(is_kept(&rules(4), "/a/f.txt", &[]));
    assert!(!is_kept(&rules(10), "/a/f.txt", &[]));
    // Where they lead, and what they say of the round before, are part of it.
    let onward = "RewriteRule ^none /a/f.txt?%{ENV:A} [L]\n";
    assert!(!is_kept(&(rules(10) + onward), "/a/none", &[]));
    let mut world = world();
    world.door.put("/srv/www/a/.htaccess", rules(6).as_bytes());
    for number in 0..6_000 {
        // What is missing is vouched for when it was looked for twice.
        for _ in 0..2 {
            world.get("a.test", &format!("/a/none{number}"));
        }
        let (rulings, bytes) = world.rulings_held();
        assert!(rulings > 0 && bytes <= 16 * 1024 * 1024, "{rulings} take {bytes}");
    }
}

#[test]
fn a_round_is_kept_only_with_the_one_before_it() {
    let mut world = world();
    let front = "RewriteEngine on\nRewriteRule ^index - [L]\n\
                 RewriteCond %{TIME_YEAR} >1980\nRewriteRule . /index.html [L]";
    world.door.put("/srv/www/.htaccess", front.as_bytes());
    for target in ["/one", "/two", "/three", "/one"] {
        assert_eq!(world.get("a.test", target).body, b"1");
        assert_eq!(world.rulings_held().0, 0, "{target}");
    }
    // What is asked for itself is.
    assert_eq!(world.get("a.test", "/index.html").body, b"1");
    assert_eq!(world.rulings_held().0, 1);
}

#[test]
fn a_round_that_may_not_go_on_ends_as_a_fresh_one() {
    let step = |at: usize| {
        let to = if at == 0 { "/a/".to_owned() } else { format!("/t{}/x", at - 1) };
        format!("location /t{at}/ {{ apache_htaccess off; try_files $uri {to}; }}")
    };
    let steps: String = (0..12).map(step).collect();
    let config =
        CONFIG.replace("apache_htaccess on; }", &format!("apache_htaccess on; {steps} }}"));
    let ask = |targets: &[&str]| {
        let mut world = FuzzWorld::of(&config);
        let outer = b"DirectoryIndex /a/b/f.txt\nErrorDocument 500 \"of a\"";
        let inner = b"RewriteEngine on\nRewriteRule f /index.html [L]\nErrorDocument 500 \"of b\"";
        world.door.put("/srv/www/a/.htaccess", outer);
        world.door.put("/srv/www/a/b/.htaccess", inner);
        world.door.put("/srv/www/a/b/f.txt", b"f");
        world.door.put("/srv/www/index.html", b"found");
        watch(&mut world);
        let replies = targets.iter().map(|target| {
            world.pass(Duration::from_micros(10));
            let reply = world.get("a.test", target);
            (reply.status, reply.text())
        });
        let last = replies.last().unwrap();
        (last, world.rulings_recalled())
    };
    let mut ends = Vec::new();
    // Each has a step less than the one before it that what was kept may lead it.
    for at in 0..12 {
        let target = format!("/t{at}/x");
        let (fresh, _) = ask(&[&target]);
        let (kept, recalled) = ask(&["/a/", "/a/", &target]);
        assert!(recalled > 0);
        assert_eq!(kept, fresh, "{target}");
        ends.push(fresh.1);
    }
    for end in ["found", "of a"] {
        assert!(ends.iter().any(|found| found.ends_with(end)), "{end}: {ends:?}");
    }
}

#[test]
fn a_visitor_does_not_keep_pages_of_others_from_the_cache() {
    let config = CONFIG.replace(
        "apache_htaccess on; }",
        "apache_htaccess on; page_cache auto; page_cache_status_header on;
         location ~ html$ { fastcgi_pass unix:/run/x.sock; } }",
    );
    let mut world = FuzzWorld::keeping(&config);
    let rules = "FallbackResource /e.html\nDirectoryIndex nothing\n\
                 <If \"%{QUERY_STRING} =~ /bot/\">\nHeader set X-Bot 1\n</If>";
    world.door.put("/srv/www/a/.htaccess", rules.as_bytes());
    world.door.put("/srv/www/e.html", b"");
    watch(&mut world);
    let head = ["Content-Type: text/html", "Cache-Control: public, max-age=600"];
    world.origin.answers = vec![vec![Say::head(200, &head), Say::body("e"), Say::End]];
    let mut ask = |target: &str| {
        world.pass(Duration::from_micros(10));
        let reply = world.ask(request(Method::Get, "a.test", target, &[]));
        assert_eq!(reply.status, 200, "{target}");
        reply.field("x-cache").to_owned()
    };
    for _ in 0..3 {
        assert_eq!(ask("/a/?bot"), "MISS", "no key has what the condition asked");
    }
    for target in ["/a/y1", "/a/y2", "/a/y3"] {
        assert_eq!(ask(target), "MISS", "{target}");
        assert_eq!(ask(target), "HIT", "{target}");
    }
}

/// How many of `targets`, each asked before, are answered by what was kept.
fn recalled(world: &mut FuzzWorld, targets: &[&str]) -> u64 {
    let before = world.rulings_recalled();
    for target in targets {
        let reply = world.ask(request(Method::Get, "a.test", target, &[]));
        assert_eq!(reply.status, 200, "{target}");
    }
    world.rulings_recalled() - before
}

#[test]
fn a_change_in_one_tree_leaves_what_was_kept_of_others() {
    let mut world = world();
    let front = "RewriteEngine on\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule . /index.html";
    world.door.put("/srv/www/a/.htaccess", front.as_bytes());
    let above = ["/f.txt", "/g.css", "/index.html"];
    let of_a = ["/a/f.txt", "/a/g.css", "/a/b/f.txt"];
    let all = [above, of_a].concat();
    recalled(&mut world, &all);
    assert_eq!(recalled(&mut world, &all), 6);
    for turn in 0..50_u8 {
        for name in ["upload.tmp", "f.txt", "session"] {
            world.door.put(&format!("/srv/www/a/b/{name}"), &[turn]);
            tell(&mut world, 2, name);
        }
        assert_eq!(recalled(&mut world, &above), 3, "turn {turn}");
        assert_eq!(recalled(&mut world, &of_a[..2]), 2, "turn {turn}");
        // The file itself is another one.
        assert_eq!(recalled(&mut world, &of_a[2..]), 0, "turn {turn}");
        assert_eq!(recalled(&mut world, &of_a[2..]), 1, "turn {turn}");
    }
    world.door.put("/srv/www/a/.htaccess", b"Header set X-A 1");
    tell(&mut world, 1, ".htaccess");
    assert_eq!(recalled(&mut world, &of_a), 0);
    assert_eq!(recalled(&mut world, &above), 3);
}
