//! Rulings of `.htaccess` files that are kept: they hold only as long as a fresh one would be the
//! same.

use std::time::Duration;

use bolide_files::Trail;
use bolide_http::Method;
use bolide_world::{FuzzWorld, WorldReply, request};
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

const LINES: [&str; 26] = [
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
];

#[derive(Clone, Debug)]
enum Op {
    Rules(usize, Vec<&'static str>),
    NoRules(usize),
    Write(usize, &'static str, u8),
    Remove(usize, &'static str),
    Ask { directory: usize, name: &'static str, query: bool, is_ok: bool, method: Method },
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let directory = || 0..DIRECTORIES.len();
    let name = || select(vec!["f.txt", "g.css", "index.html"]);
    let asked = select(vec!["f.txt", "g.css", "index.html", "", "none"]);
    let method = select(vec![Method::Get, Method::Get, Method::Get, Method::Head, Method::Post]);
    let ask = (directory(), asked, any::<bool>(), any::<bool>(), method).prop_map(
        |(directory, name, query, is_ok, method)| Op::Ask { directory, name, query, is_ok, method },
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
        Op::Ask { directory, name, query, is_ok, method } => {
            world.pass(Duration::from_micros(10));
            let below = &DIRECTORIES[*directory]["/srv/www".len()..];
            let query = if *query { "?q" } else { "" };
            let fields: &[_] = if *is_ok { &[("X-Ok", "yes")] } else { &[] };
            let target = format!("{below}/{name}{query}");
            return Some(world.ask(request(*method, "a.test", &target, fields)));
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
fn what_depends_on_more_is_not_kept() {
    for rules in [
        "Require ip 192.0.2.0/24",
        "RewriteEngine on\nRewriteCond %{HTTP_HOST} ^www\nRewriteRule . http://x/",
        "RewriteEngine on\nRewriteCond %{QUERY_STRING} ^b$\nRewriteRule . - [F]",
        "RewriteEngine on\nRewriteRule .* - [E=A:%{HTTP:Authorization}]",
        "SetEnvIf User-Agent Bad BAD",
        "RequestHeader set X-A 1",
        "RewriteEngine on\nRewriteCond %{TIME_YEAR} <1980\nRewriteRule . - [F]",
    ] {
        let fields = [("Authorization", "Basic x"), ("User-Agent", "y")];
        assert!(!is_kept(rules, "/a/f.txt", &fields), "{rules}");
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
