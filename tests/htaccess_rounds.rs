//! What `.htaccess` files say of the page cache, over the internal redirects of a request: it is
//! said of the URL that the client asked for, whatever leads to the script that answers.

use std::fs;

use bolide_testkit::app::AppSaid;

use crate::htaccess_lscache::{FRONT, PUBLIC, Shop, hit, miss, past};

/// The script answers for missing files.
const TRY_FILES: &str = "page_cache auto;
    location / { try_files $uri $uri/ /index.php$is_args$args; }";

/// How a request gets to the front controller: its name, the server's directives, what the file has
/// before its rules and after them.
const WAYS: [(&str, &str, &str, &str); 6] = [
    ("try_files", TRY_FILES, "", ""),
    (
        "a named location",
        "page_cache auto; location / { try_files $uri @front; }
         location @front { rewrite ^ /index.php last; }",
        "",
        "",
    ),
    ("rules", "page_cache auto;", "", FRONT),
    ("rules before try_files", TRY_FILES, "", FRONT),
    ("FallbackResource", "page_cache auto;", "FallbackResource /index.php\n", ""),
    ("error_page", "page_cache auto; error_page 404 =200 /index.php;", "", ""),
];

/// Rules that restrict.
const RULES: &str = "RewriteEngine On
RewriteRule ^shop/ - [E=Cache-Control:no-cache]
RewriteCond %{REQUEST_URI} ^/cart/
RewriteRule .* - [E=Cache-Control:no-cache]
RewriteCond %{THE_REQUEST} /off/
RewriteRule .* - [E=modcache:0]
RewriteRule ^cur/ - [E=Cache-Vary:cur]
RewriteCond %{HTTP_USER_AGENT} Phone
RewriteRule ^skin/ - [E=Cache-Control:vary=phone]
SetEnvIf Request_URI ^/set/ Cache-Control=no-cache
";

#[test]
fn what_a_rule_restricts_stays_restricted_whatever_leads_on() {
    for (way, block, before, behind) in WAYS {
        let shop = Shop::with(block, &format!("{before}{RULES}{behind}"));
        for path in ["/shop/a", "/cart/a", "/off/a", "/set/a"] {
            shop.app.say(path, PUBLIC);
            assert_eq!(shop.seen(path, ""), past(1), "{way}: {path}");
            assert_eq!(shop.seen(path, ""), past(2), "{way}: {path}");
        }
        for path in ["/cur/a", "/skin/a", "/a"] {
            shop.app.say(path, PUBLIC);
        }
        assert_eq!(shop.seen("/cur/a", "Cookie: cur=1\r\n"), miss(1), "{way}");
        assert_eq!(shop.seen("/cur/a", "Cookie: cur=2\r\n"), miss(2), "{way}");
        assert_eq!(shop.seen("/cur/a", "Cookie: cur=1\r\n"), hit(1), "{way}");
        assert_eq!(shop.seen("/skin/a", ""), miss(1), "{way}");
        assert_eq!(shop.seen("/skin/a", "User-Agent: Phone\r\n"), miss(2), "{way}");
        assert_eq!(shop.seen("/skin/a", ""), hit(1), "{way}");
        assert_eq!(shop.seen("/a", ""), miss(1), "{way}");
        assert_eq!(shop.seen("/a", ""), hit(1), "{way}");
    }
}

#[test]
fn the_directory_that_was_asked_for_has_its_directives_in_force() {
    for (way, block, before, behind) in WAYS {
        let root =
            format!("{before}CacheLookup on\nCacheEnable public /\nRewriteEngine On\n{behind}");
        let shop = Shop::with(block, &root);
        shop.put("off", "CacheLookup off\n");
        shop.put("shut", "CacheDisable public /shut\nCacheEnable public /shut/open\n");
        shop.put("key", "CacheKeyModify -qs:z\n");
        for path in ["/off/a", "/shut/a", "/shut/open/a", "/key/a", "/key/a?z=1"] {
            shop.app.say(path, PUBLIC);
        }
        assert_eq!(shop.seen("/off/a", "").1, "run 1", "{way}");
        assert_eq!(shop.seen("/off/a", "").1, "run 2", "{way}");
        assert_eq!(shop.seen("/shut/a", ""), past(1), "{way}");
        assert_eq!(shop.seen("/shut/a", ""), past(2), "{way}");
        assert_eq!(shop.seen("/shut/open/a", ""), miss(1), "{way}");
        assert_eq!(shop.seen("/shut/open/a", ""), hit(1), "{way}");
        assert_eq!(shop.seen("/key/a", ""), miss(1), "{way}");
        assert_eq!(shop.seen("/key/a?z=1", ""), hit(1), "{way}");
    }
}

#[test]
fn an_index_and_a_script_behind_try_files_are_those_of_the_directory() {
    for block in ["page_cache auto;", TRY_FILES] {
        let shop = Shop::with(block, RULES);
        for (path, script) in [("/shop/", "shop/index.php"), ("/cart/", "cart/index.php")] {
            fs::create_dir_all(shop.server.www(&path[1..])).unwrap();
            fs::write(shop.server.www(script), "<?php").unwrap();
            shop.app.say(path, PUBLIC);
            assert_eq!(shop.seen(path, ""), past(1), "{block}: {path}");
            assert_eq!(shop.seen(path, ""), past(2), "{block}: {path}");
        }
    }
}

#[test]
fn a_redirect_of_the_application_takes_the_orders_along() {
    let shop = Shop::with(TRY_FILES, RULES);
    fs::write(shop.server.www("second.php"), "<?php").unwrap();
    let leads = || AppSaid::head("X-Accel-Redirect: /second.php");
    let says = || AppSaid::head(PUBLIC);
    for (path, is_kept) in [("/a", true), ("/shop/a", false), ("/cart/a", false), ("/off/a", false)]
    {
        shop.app.plan(path, vec![leads(), says(), leads(), says(), leads(), says()]);
        shop.seen(path, "");
        let state = shop.seen(path, "").0;
        assert_eq!(state == "hit", is_kept, "{path}: {state}");
    }
}

/// LiteSpeed's rule for sites without a plugin: everything is public but the administration.
fn published(condition: &str) -> String {
    format!(
        "<IfModule LiteSpeed>\nCacheLookup on\nRewriteEngine On\n\
         RewriteCond %{{REQUEST_METHOD}} ^HEAD|GET$\nRewriteCond {condition}\n\
         RewriteRule .* - [E=cache-control:max-age=120]\n</IfModule>\n"
    )
}

#[test]
fn what_is_published_is_what_the_client_asked_for() {
    for (way, block, before, behind) in WAYS {
        for condition in ["%{ORG_REQ_URI} !/admin", "%{REQUEST_URI} !/admin/ [NC]"] {
            let shop = Shop::with(block, &format!("{before}{}{behind}", published(condition)));
            for path in ["/admin/a", "/%61dmin/b", "//admin/c", "/x/../admin/d", "/admin/e?a=/"] {
                shop.app.say(path, "Content-Type: text/html");
                assert_eq!(shop.seen(path, ""), past(1), "{way}, {condition}: {path}");
                assert_eq!(shop.seen(path, ""), past(2), "{way}, {condition}: {path}");
            }
            shop.app.say("/a", "Content-Type: text/html");
            assert_eq!(shop.seen("/a", ""), miss(1), "{way}, {condition}");
            assert_eq!(shop.seen("/a", ""), hit(1), "{way}, {condition}");
        }
    }
}

#[test]
fn rules_by_pattern_and_flow_publish_no_other_path() {
    let rules = [
        "RewriteRule !^admin - [E=cache-control:max-age=120]\n",
        "RewriteRule ^admin - [L]\nRewriteRule .* - [E=cache-control:max-age=120]\n",
        "RewriteRule ^admin - [L]\nRewriteCond %{ORG_REQ_URI} !^/login\n\
         RewriteRule .* - [E=cache-control:max-age=120]\n",
        "RewriteRule ^admin - [S=1]\nRewriteRule .* - [E=cache-control:max-age=120]\n",
        "SetEnvIf Request_URI ^/(index\\.php|[a-z])$ Cache-Control=max-age=120\n",
        "RewriteRule !^admin - [E=Cache-Control:public,E=Cache-Control:s-maxage=120]\n",
    ];
    for rule in rules {
        let shop = Shop::with(TRY_FILES, &format!("RewriteEngine On\n{rule}"));
        for path in ["/admin/a", "/a"] {
            shop.app.say(path, "Content-Type: text/html");
        }
        assert_eq!(shop.seen("/admin/a", ""), past(1), "{rule}");
        assert_eq!(shop.seen("/admin/a", ""), past(2), "{rule}");
        assert_eq!(shop.seen("/a", ""), miss(1), "{rule}");
        assert_eq!(shop.seen("/a", ""), hit(1), "{rule}");
    }
}

#[test]
fn behind_the_front_controller_a_condition_about_the_clients_path_is_needed() {
    let front = "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\n\
        RewriteRule .* index.php [L]\n";
    let file = format!("{front}{}", published("%{ORG_REQ_URI} !/admin"));
    for (block, file) in [
        ("page_cache auto;", &file),
        ("page_cache auto; rewrite ^ /index.php;", &published("%{ORG_REQ_URI} !/admin")),
    ] {
        let shop = Shop::with(block, file);
        for path in ["/admin/a", "/a"] {
            shop.app.say(path, "Content-Type: text/html");
        }
        assert_eq!(shop.seen("/a", ""), miss(1), "{block}");
        assert_eq!(shop.seen("/a", ""), hit(1), "{block}");
        assert_eq!(shop.seen("/admin/a", ""), past(1), "{block}");
        assert_eq!(shop.seen("/admin/a", ""), past(2), "{block}");
    }
    let shop = Shop::with("page_cache auto;", &format!("{front}{}", published("%{HTTPS} off")));
    shop.app.say("/a", "Content-Type: text/html");
    assert_eq!(shop.seen("/a", ""), past(1));
    assert_eq!(shop.seen("/a", ""), past(2));
}

#[test]
fn the_key_of_a_page_is_not_cut_for_another_path() {
    let rule = "RewriteEngine On\nRewriteCond %{REQUEST_URI} !^/find\n\
        RewriteRule .* - [E=cache-key-mod:-qs:q]\n";
    let shop = Shop::with(TRY_FILES, rule);
    for path in ["/find?q=1", "/find?q=2", "/a?q=1", "/a?q=2"] {
        shop.app.say(path, PUBLIC);
    }
    assert_eq!(shop.seen("/find?q=1", ""), miss(1));
    assert_eq!(shop.seen("/find?q=2", ""), miss(1));
    assert_eq!(shop.seen("/a?q=1", ""), miss(1));
    assert_eq!(shop.seen("/a?q=2", ""), hit(1));
}

#[test]
fn the_clients_path_and_query_are_variables_of_rules() {
    let shop = Shop::with(
        "page_cache auto;",
        "RewriteEngine On\nRewriteRule ^open$ /secret/f.txt?other\n\
         RewriteCond %{ORG_QUERY_STRING} ^deny$\nRewriteRule .* - [F]\n\
         RewriteCond %{CURRENT_URI} ^/current$\nRewriteRule .* - [G]\n",
    );
    shop.put(
        "secret",
        "RewriteEngine On\nRewriteCond %{ORG_REQ_URI} ^/secret/\nRewriteRule .* - [F]\n",
    );
    fs::write(shop.server.www("secret/f.txt"), "text").unwrap();
    // Each result may be remembered: it is not one for the other path.
    for _ in 0..3 {
        assert_eq!(shop.ask("/open", "").status, 200);
        assert_eq!(shop.ask("/secret/f.txt", "").status, 403);
    }
    assert_eq!(shop.ask("/open?deny", "").status, 403);
    assert_eq!(shop.ask("/current", "").status, 410);
}

#[test]
fn a_rule_about_the_cache_with_an_unknown_variable_keeps_out_what_it_may_mean() {
    let rules = [
        "RewriteCond %{NOBODY_KNOWS} !/admin\nRewriteRule .* - [E=Cache-Control:max-age=120]\n",
        "RewriteCond %{NOBODY_KNOWS} /admin\nRewriteRule .* - [E=Cache-Control:no-cache]\n",
        "RewriteCond %{REQUEST_URI} /b [OR]\nRewriteCond %{NOBODY_KNOWS} /admin\n\
         RewriteRule .* - [E=Cache-Vary:a]\n",
        "RewriteRule .* - [E=Cache-Control:vary=%{NOBODY_KNOWS}]\n",
        // Whether the rule is reached.
        "RewriteCond %{NOBODY_KNOWS} ^1$\nRewriteRule ^ - [C]\n\
         RewriteRule ^ - [E=Cache-Control:no-cache]\n",
        "RewriteCond %{NOBODY_KNOWS} !^1$\nRewriteRule ^ - [S=1]\n\
         RewriteRule ^ - [E=Cache-Control:no-cache]\n",
    ];
    for rule in rules {
        let shop = Shop::with(TRY_FILES, &format!("RewriteEngine On\n{rule}"));
        shop.app.say("/a", PUBLIC);
        for run in 1..4 {
            assert_eq!(shop.seen("/a", ""), past(run), "{rule}");
        }
        let log = shop.server.error_log();
        assert_eq!(log.matches("this rule about the cache").count(), 1, "{log}");
        let line = rule.lines().count() + 1;
        assert!(log.contains(&format!("/.htaccess:{line}: this rule")), "{log}");
    }
    // What cannot apply, whatever the value is, keeps nothing out; other rules are not concerned.
    let rule = "RewriteEngine On\nRewriteCond %{REQUEST_URI} ^/b\nRewriteCond %{NOBODY_KNOWS} x\n\
        RewriteRule .* - [E=Cache-Control:no-cache]\nRewriteCond %{NOBODY_KNOWS} x\n\
        RewriteRule .* - [F]\n";
    let shop = Shop::with(TRY_FILES, rule);
    shop.app.say("/a", PUBLIC);
    assert_eq!(shop.seen("/a", ""), miss(1));
    assert_eq!(shop.seen("/a", ""), hit(1));
}
