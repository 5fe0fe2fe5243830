//! What `.htaccess` files said is kept for those who would be told the same, and what is evaluated
//! in one turn has a bound.

use bolide_testkit::TestPhp;

use crate::htaccess::{ON, PARAMS, put, tree};

#[test]
fn names_of_an_index_share_the_limits_of_one_evaluation() {
    let slow = "RewriteEngine On\n".to_owned() + &"RewriteRule ^(a|aa)+$ - [F]\n".repeat(66);
    let server = tree("apache_htaccess on; autoindex on;", &[(".htaccess", &slow)]);
    let directory = format!("{}c", "a".repeat(16));
    // A match takes some 17,000 steps, so each name takes 1.1 of four million.
    for (names, status) in [("one two", 200), ("one two three", 200), ("one two three four", 500)] {
        let index = format!("DirectoryIndex {names}\n");
        put(server.www(&format!("{directory}/{}/.htaccess", names.len())), &index);
        let answer = server.get(&format!("/{directory}/{}/", names.len()));
        assert_eq!(answer.status, status, "{names}");
    }
}

#[test]
fn a_match_in_a_long_text_has_a_bound() {
    let rules = "RewriteEngine On\nRewriteCond %{QUERY_STRING} a{0,900}a{0,900}[bc]\n\
                 RewriteRule .* - [F]\n";
    let server = tree("apache_htaccess on;", &[(".htaccess", rules), ("a.txt", "a")]);
    let get = |query: &str| server.get(&format!("/a.txt?{query}")).status;
    let long = "a".repeat(7000);
    assert_eq!((get("x"), get(&format!("{}c", &long[..100])), get(&long)), (200, 403, 500));
}

#[test]
fn a_stored_ruling_is_found_within_the_limits_of_one_evaluation() {
    let rules = "RewriteEngine On\n".to_owned()
        + &"RewriteCond %{QUERY_STRING} ^(a|aa)+$ [OR]\n".repeat(40)
        + "RewriteCond %{QUERY_STRING} ^banned$\nRewriteRule .* - [F]\n";
    let server = tree("apache_htaccess on;", &[(".htaccess", &rules), ("a.txt", "a")]);
    let get = |query: &str| server.get(&format!("/a.txt?{query}")).status;
    let dear = "a".repeat(22) + "c";
    assert_eq!(
        (get("x"), get("y"), get(&dear), get("banned"), get("x")),
        (200, 200, 500, 403, 200)
    );
}

#[test]
fn the_cache_key_of_a_script_has_what_its_rules_test() {
    let php = TestPhp::start(1);
    let pass = php.address();
    let server = tree(
        &format!("{ON} location ~ \\.php$ {{ {PARAMS} fastcgi_pass {pass}; }}"),
        &[
            (
                ".htaccess",
                "RewriteEngine On\n\
                 RewriteCond %{HTTP_USER_AGENT} Mobile|Silk/ [NC]\n\
                 RewriteRule .* - [E=FORM:small]\n\
                 RewriteCond %{HTTP_COOKIE} user=([a-z]+)\n\
                 RewriteRule .* - [E=WHO:%1]\n\
                 RewriteCond %{HTTP_COOKIE} banned\n\
                 RewriteRule .* - [F]\n\
                 RewriteRule ^index\\.php$ - [L]\n\
                 RewriteCond %{REQUEST_FILENAME} !-f\n\
                 RewriteRule . /index.php [L]\n",
            ),
            (
                "index.php",
                "<?php foreach (['FORM', 'WHO', 'REDIRECT_FORM', 'REDIRECT_URL', 'QUERY_STRING']
                    as $name) echo $_SERVER[$name] ?? '', '|';",
            ),
        ],
    );
    let rows = [
        ("/index.php", "x", "a=1", "|||||"),
        ("/index.php", "a mobile", "a=2", "small|||||"),
        ("/index.php", "y", "user=ann", "|ann||||"),
        ("/index.php?q", "silk/", "user=bob", "small|bob|||q|"),
        ("/some/page", "x", "a=3", "|||/some/page||"),
        ("/some/page", "mobile", "b", "small||small|/some/page||"),
        ("/some/page?q", "mobile", "user=ann", "small|ann|small|/some/page|q|"),
    ];
    for (path, agent, cookie, said) in rows.iter().cycle().take(4 * rows.len()) {
        let ask = |cookie: &str| {
            let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {agent}");
            server.connect().ask(&format!("{head}\r\nCookie: {cookie}"))
        };
        assert_eq!(ask(cookie).text(), *said, "{path} {agent} {cookie}");
        assert_eq!(ask("banned").status, 403, "{path} {agent}");
    }
}
