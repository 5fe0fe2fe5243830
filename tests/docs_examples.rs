//! The example configurations in the documents: each one works as its page says, unchanged.

use std::fs;

use bolide_testkit::server::{Home, is_root, prelude};
use bolide_testkit::{TestServer, wait_until};

use crate::BOLIDE;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The nginx configurations in a document, in order.
fn examples(document: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("{ROOT}/docs/{document}")).unwrap();
    let blocks = text.split("```nginx\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// Serves an `http` block with the test's own paths and user.
fn start(example: &str) -> TestServer {
    let home = Home::new(BOLIDE);
    let root = home.dir().join("www");
    fs::create_dir_all(root.join(".well-known")).unwrap();
    let script = "<?php header('X-LiteSpeed-Cache-Control: public,max-age=60');
                  echo 'front ', getenv('APP_ENV'), $_SERVER['REQUEST_URI'];";
    for (name, text) in [
        ("index.php", script),
        ("style.css", "p { color: red }"),
        (".env", "secret"),
        (".litespeed_conf.dat", "secret"),
        (".well-known/security.txt", "known"),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    fs::copy(format!("{ROOT}/conf/mime.types"), home.dir().join("mime.types")).unwrap();
    let user = if is_root() { "user nobody;" } else { "" };
    let http = example
        .replace("/srv/shop/public", "@DIR@/www")
        .replace("/var/cache/bolide", "@DIR@/cache")
        .replace("user shop;", user)
        .replace("server {", "server { listen 127.0.0.1:@HTTP@;");
    TestServer::start(home, &format!("{}{http}", prelude(1)))
}

#[test]
fn sites_of_the_documents_serve_pages_and_styles_and_hide_what_is_hidden() {
    for (document, is_cached) in [("page-cache.md", true), ("php.md", false)] {
        let example = examples(document).remove(0);
        let server = start(&example);
        wait_until("the pool to run", || server.get("/").status == 200);
        assert!(server.get("/").text().starts_with("front "), "{document}");
        let style = server.get("/style.css");
        assert_eq!((style.status, style.header("content-type")), (200, Some("text/css")));
        for hidden in ["/.env", "/.litespeed_conf.dat", "/.well-known/../.env"] {
            assert_eq!(server.get(hidden).status, 403, "{document} {hidden}");
        }
        assert_eq!(server.get("/.well-known/security.txt").text(), "known", "{document}");
        let page = || server.get("/some/product?x=1");
        assert!(page().text().ends_with("/some/product?x=1"), "{document}");
        let said = page().header("x-litespeed-cache").map(str::to_owned);
        assert_eq!(said.as_deref(), is_cached.then_some("hit"), "{document}");
    }
}

#[test]
fn figures_are_told_to_whom_the_example_names() {
    let example = examples("page-cache.md").remove(1);
    let here = example.replace("10.0.0.5", "127.0.0.1");
    for (text, status) in [(&example, 403), (&here, 200)] {
        let server = crate::http(&format!(
            "page_cache auto; server {{ {} {text} }}",
            bolide_testkit::server::LISTEN
        ));
        assert_eq!(server.get("/bolide").status, status);
    }
}
