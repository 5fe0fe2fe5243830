//! The truth table of the rewrite phase, of variables, and of who may come in.
//!
//! What answers tells what it saw, so that a row says: asked like this, this is what becomes of it.

use bolide_http::Method;
use bolide_world::FuzzWorld;

const CONFIG: &str = r#"
events {}
http {
    map $arg_k $mapped { default "none:$arg_k"; a A; ~^(z+)(.)$ "<$1|$2>"; ~*^UP$ up; }
    map $step $counted { volatile; 1 one; 2 two; }
    map $step $kept { 1 one; 2 two; }
    map $arg_k $cycle_a { default $cycle_b; }
    map $arg_k $cycle_b { default "b$cycle_a"; }
    server {
        listen 80;
        root /srv/www;
        rewrite ^/top/(.*)$ /seen/$1 last;
        if ($arg_gone) { return 410; }
        location /seen { return 200 "$uri|$args|$is_args"; }
        location /last/ { rewrite ^/last/(.*)$ /seen/$1?n=1 last; return 200 never; }
        location /drop/ { rewrite ^/drop/(.*)$ /seen/$1? last; }
        location /flow/ { rewrite ^/flow/(.*)$ /mid/$1; rewrite ^/mid/(.*)$ /seen/$1/mid; }
        location /stay/ { rewrite ^/stay/(.*)$ /$1 break; }
        location /other/ { rewrite ^ /there.txt; break; alias /srv/none/; }
        location /as-it-was/ { break; rewrite ^ /there.txt; alias /srv/www/; }
        location /loop { rewrite ^ /loop; }
        location /temp { rewrite ^ /new redirect; }
        location /perm { rewrite ^ http://other.test/new permanent; }
        location /empty { rewrite ^ $arg_none; }
        location /set {
            set $a 1;
            set $a "$a$a$arg_x";
            if ($arg_x) { set $a "$a!"; }
            return 200 $a;
        }
        location /last-if {
            default_type text/a;
            set $n 0;
            if ($arg_a) { set $n "${n}a"; add_header X-If a; }
            if ($arg_b) { set $n "${n}b"; add_header X-If b; }
            return 200 $n;
        }
        location /files {
            if (-f /srv/www/there.txt) { set $f f; }
            if (!-e /srv/www/none.txt) { set $f "${f}n"; }
            if (-d /srv/www) { set $f "${f}d"; }
            return 200 $f;
        }
        location /no-try { try_files /there.txt =404; if ($arg_a) { set $b 1; } }
        location /map { return 200 $mapped; }
        location ~ ^/cap/(.) { return 200 "$1$mapped$1"; }
        location /volatile {
            set $step 1; set $x "$counted$kept"; set $step 2; return 200 "$x$counted$kept";
        }
        location /cycle { return 200 "[$cycle_a]"; }
        location /slow { if ($arg_k ~ ^(a+)+$) { return 200 yes; } return 200 no; }
        location /deny { deny all; }
        location /allow { allow 0.0.0.0/0; allow ::/0; deny all; }
        location /inner/ { deny all; location /inner/open { allow all; } }
        location /auth { auth_basic staff; auth_basic_user_file /srv/users; }
        location /named { auth_basic staff; auth_basic_user_file $arg_file; }
        location /below { root $arg_root; }
        location /below/alias { alias $arg_root; }
        location /any { satisfy any; allow all; auth_basic staff; auth_basic_user_file /srv/users; }
        location /denied-any {
            satisfy any; deny all; auth_basic x; auth_basic_user_file /srv/users;
        }
    }
}
"#;

fn world() -> FuzzWorld {
    let mut world = FuzzWorld::of(CONFIG);
    world.door.put("/srv/www/there.txt", b"there");
    world.door.put("/srv/www/auth", b"in");
    world.door.put("/srv/www/any", b"in");
    world.door.put("/srv/www/denied-any", b"in");
    world.door.put("/srv/www/allow", b"in");
    world.door.put("/srv/www/inner/open", b"in");
    world.door.put("/srv/www/named", b"in");
    world.door.put("/srv/www/below", b"in");
    world.door.put("/etc/nginx/users-beside", b"al:{PLAIN}pw\n");
    world.door.put("/srv/users", b"al:{PLAIN}pw\nbo:$2y$04$nonsense\n");
    world
}

/// Path, status, and the answer's text or address.
const ROWS: &[(&str, u16, &str)] = &[
    ("/top/x?q", 200, "/seen/x|q|?"),
    ("/top/x?gone=1", 200, "/seen/x|gone=1|?"),
    ("/seen?gone=1", 410, ""),
    ("/seen?gone=0", 200, "/seen|gone=0|?"),
    ("/last/x", 200, "/seen/x|n=1|?"),
    ("/last/x?o=2", 200, "/seen/x|n=1&o=2|?"),
    ("/drop/x?o=2", 200, "/seen/x||"),
    ("/flow/x", 200, "/seen/x/mid||"),
    ("/stay/there.txt", 200, "there"),
    ("/other/x", 500, ""),
    ("/as-it-was/there.txt", 200, "there"),
    ("/loop", 500, ""),
    ("/temp", 302, "http://a.test/new"),
    ("/temp?q=1", 302, "http://a.test/new?q=1"),
    ("/perm", 301, "http://other.test/new"),
    ("/empty", 500, ""),
    ("/set", 200, "11"),
    ("/set?x=2", 200, "112!"),
    ("/set?x=0", 200, "110"),
    ("/set?x=00", 200, "1100!"),
    ("/last-if?a=1&b=1", 200, "0ab"),
    ("/files", 200, "fnd"),
    ("/no-try", 200, "there"),
    ("/no-try?a=1", 404, ""),
    ("/map?k=a", 200, "A"),
    ("/map?k=A", 200, "A"),
    ("/map?k=up", 200, "up"),
    ("/map?k=zzy", 200, "<zz|y>"),
    ("/map?k=q", 200, "none:q"),
    ("/cap/x?k=zy", 200, "z<z|y>z"),
    ("/cap/x?k=a", 200, "xAx"),
    ("/volatile", 200, "oneonetwoone"),
    ("/slow?k=aaaa", 200, "yes"),
    ("/slow?k=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 500, ""),
    ("/deny", 403, ""),
    ("/allow", 200, "in"),
    ("/inner/x", 403, ""),
    ("/inner/open", 200, "in"),
    ("/auth", 401, ""),
    ("/named?file=/srv/users", 401, ""),
    ("/below?root=www", 200, "in"),
    ("/below?root=/srv/www", 200, "in"),
    ("/below/alias?root=www/there.txt", 200, "there"),
    ("/any", 200, "in"),
    ("/denied-any", 401, ""),
];

#[test]
fn every_row_of_the_table_is_answered() {
    let mut world = world();
    let mut failures = Vec::new();
    for (path, status, wanted) in ROWS {
        let reply = world.get("a.test", path);
        let got = match reply.status {
            301 | 302 => reply.field("Location").to_owned(),
            200 => reply.text(),
            _ => String::new(),
        };
        if (reply.status, &*got) != (*status, *wanted) {
            failures.push(format!("{path}: {} {got:?}, want {status} {wanted:?}", reply.status));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_last_true_if_is_where_the_request_is() {
    let mut world = world();
    assert_eq!(world.get("a.test", "/last-if?a=1").field("X-If"), "a");
    let both = world.get("a.test", "/last-if?a=1&b=1");
    assert_eq!((both.field("X-If"), both.field("Content-Type")), ("b", "text/a"));
    assert_eq!(world.get("a.test", "/last-if").field("X-If"), "");
}

#[test]
fn variables_that_need_one_another_end() {
    let mut world = world();
    let reply = world.get("a.test", "/cycle");
    assert_eq!(reply.status, 200);
    assert!(reply.text().len() < 200, "{}", reply.text());
    assert!(world.take_log("/srv/logs/error.log").contains("cycle while evaluating variable"));
}

#[test]
fn a_password_lets_in_and_nothing_else_does() {
    let mut world = world();
    let mut ask = |path: &str, credentials: &str| {
        let fields = [("Authorization", credentials)];
        let reply = world.ask(bolide_world::request(Method::Get, "a.test", path, &fields));
        (reply.status, reply.field("WWW-Authenticate").to_owned())
    };
    let staff = "Basic realm=\"staff\"".to_owned();
    assert_eq!(ask("/auth", "Basic YWw6cHc="), (200, String::new()));
    assert_eq!(ask("/auth", "basic  YWw6cHc="), (200, String::new()));
    assert_eq!(ask("/auth", "Basic YWw6cHg="), (401, staff.clone()));
    assert_eq!(ask("/auth", "Basic Ym86cHc="), (401, staff.clone()));
    assert_eq!(ask("/auth", "Basic Ynk6cHc="), (401, staff.clone()));
    assert_eq!(ask("/auth", "Basic !"), (401, staff.clone()));
    assert_eq!(ask("/auth", "Bearer YWw6cHc="), (401, staff));
    assert_eq!(ask("/named?file=users-beside", "Basic YWw6cHc="), (200, String::new()));
    assert_eq!(ask("/named?file=none", "Basic YWw6cHc=").0, 403);
    assert_eq!(ask("/any", "Basic !"), (200, String::new()));
    assert_eq!(ask("/denied-any", "Basic YWw6cHc="), (200, String::new()));
}
