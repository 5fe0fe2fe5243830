//! RFC 9111 and related RFCs, rule by rule, with an application that sends exactly the response in
//! question and counts its requests.

mod broken;
mod cache_status;
mod conditional;
mod control;
mod fields;
mod freshness;
mod groups;
mod invalidation;
mod methods;
mod partial;
mod request;
mod revalidation;
mod search;
mod stale;
mod status;
mod targeted;
mod vary;
mod zone;

use std::cell::Cell;

use bolide_testkit::server::LISTEN;
use bolide_testkit::{AppSaid, Response, TestApp, TestServer};

use crate::{http, report};

/// The `fastcgi_param` lines that Bolide ships.
const PARAMS: &str = concat!("include ", env!("CARGO_MANIFEST_DIR"), "/conf/fastcgi.conf;");

/// The configuration of most tests: only the application's directives count, and nothing stale is
/// served.
const AUTO: &str = "page_cache auto; page_cache_stale off; cache_status on;";

/// A server with a page cache and its application.
struct Lab {
    app: TestApp,
    server: TestServer,
    next: Cell<usize>,
}

impl Lab {
    /// With these directives in the location.
    fn new(location: &str) -> Self {
        Self::with("", location)
    }

    /// With directives in the `http` block, too.
    fn with(block: &str, location: &str) -> Self {
        let app = TestApp::start();
        let address = app.address();
        let server = http(&format!(
            "{block}
             server {{ {LISTEN}
                 location / {{ {PARAMS} fastcgi_pass {address}; {location} }} }}"
        ));
        Self { app, server, next: Cell::new(0) }
    }

    /// With [`AUTO`].
    fn auto() -> Self {
        Self::new(AUTO)
    }

    /// A path that no request has used.
    fn path(&self) -> String {
        self.next.set(self.next.get() + 1);
        format!("/page{}", self.next.get())
    }

    /// A path with this response.
    fn page(&self, head: &str) -> String {
        let path = self.path();
        self.app.say(&path, head);
        path
    }

    /// A path with these responses in order.
    fn pages(&self, answers: &[&str]) -> String {
        let path = self.path();
        self.app.plan(&path, answers.iter().map(|head| AppSaid::head(head)).collect());
        path
    }

    fn get(&self, path: &str) -> Response {
        self.ask("GET", path, "")
    }

    /// `GET` with fields, each with CR LF.
    fn get_with(&self, path: &str, fields: &str) -> Response {
        self.ask("GET", path, fields)
    }

    fn ask(&self, method: &str, path: &str, fields: &str) -> Response {
        let mut client = self.server.connect();
        client.send(format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n"
        ));
        client.answer_to(method)
    }

    /// A request with a body.
    fn send(&self, method: &str, path: &str, body: &str) -> Response {
        let len = body.len();
        self.ask(method, path, &format!("Content-Length: {len}\r\n\r\n{body}"))
    }

    /// Whether the second of two requests is a hit.
    fn keeps(&self, head: &str) -> bool {
        self.keeps_for(head, "")
    }

    /// The same with fields in both requests.
    fn keeps_for(&self, head: &str, fields: &str) -> bool {
        let path = self.page(head);
        let first = self.get_with(&path, fields);
        let second = self.get_with(&path, fields);
        let count = self.app.count(&path);
        assert_eq!(first.status, second.status, "{head}");
        let runs = if first.body.is_empty() { count } else { run(&second) };
        assert_eq!((run_or(&first, 1), runs), (1, count), "{head}");
        count == 1
    }
}

/// The number in `run N`.
fn run(answer: &Response) -> usize {
    let text = answer.text();
    let number = text.strip_prefix("run ").and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{} {text:?}", answer.status_line))
}

fn run_or(answer: &Response, bare: usize) -> usize {
    if answer.body.is_empty() { bare } else { run(answer) }
}

/// Checks for each row whether the response is cached.
fn keeps_all(lab: &Lab, rows: &[(&str, bool)]) {
    let mut failures = Vec::new();
    for (head, expected) in rows {
        if lab.keeps(head) != *expected {
            failures.push(format!("{}kept: {head:?}", if *expected { "not " } else { "" }));
        }
    }
    report(rows.len(), &failures);
}
