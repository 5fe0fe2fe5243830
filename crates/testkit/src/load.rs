//! Puts load on a server with h2load, and parses its report.

use std::thread::{self, JoinHandle};

use crate::curl::Proto;
use crate::tools::run;

/// The counts of h2load.
#[derive(Debug, Clone, Default)]
pub struct TestLoad {
    /// Requests asked for.
    pub total: u64,
    /// Requests with a 2xx status and a complete body.
    pub succeeded: u64,
    /// Requests without a complete response.
    pub failed: u64,
    /// Responses by status class: 2xx, 3xx, 4xx, 5xx.
    pub classes: [u64; 4],
    /// The output of h2load.
    pub report: String,
}

impl TestLoad {
    /// Checks that each request got a 2xx.
    ///
    /// # Panics A request did not.
    pub fn expect_flawless(&self) {
        let flawless = self.total > 0 && self.classes[0] == self.total && self.failed == 0;
        assert!(flawless, "not every request was answered:\n{}", self.report);
    }
}

/// Runs h2load against `url` with `proto` and its own arguments (`-n`, `-c`, `-m`, …).
#[must_use]
pub fn h2load(proto: Proto, url: &str, args: &[&str]) -> TestLoad {
    let version = match proto {
        Proto::H1 => vec!["--h1"],
        Proto::H2 => vec!["--alpn-list=h2"],
        Proto::H2c => vec!["-p", "h2c"],
        Proto::H3 => vec!["--alpn-list=h3"],
    };
    // h2load would try ::1 for localhost, where no server listens.
    let url = &*url.replace("//localhost:", "//127.0.0.1:");
    let done = run("h2load-h3", version.iter().chain(args).chain(&[url])).succeeded();
    parse(&(done.text() + &done.stderr))
}

/// The same in its own thread.
#[must_use]
pub fn h2load_beside(proto: Proto, url: String, args: Vec<String>) -> JoinHandle<TestLoad> {
    thread::spawn(move || h2load(proto, &url, &args.iter().map(String::as_str).collect::<Vec<_>>()))
}

fn parse(report: &str) -> TestLoad {
    let numbers = |start: &str| -> Vec<u64> {
        let line = report.lines().find(|line| line.starts_with(start)).unwrap_or_default();
        line.split(|c: char| !c.is_ascii_digit())
            .filter(|word| !word.is_empty())
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    // requests: N total, N started, N done, N succeeded, N failed, N errored, N timeout
    let requests = numbers("requests:");
    // status codes: N 2xx, N 3xx, N 4xx, N 5xx: the class digits parse as numbers, too.
    let codes = numbers("status codes:");
    assert!(requests.len() >= 7 && codes.len() >= 8, "not a report of h2load:\n{report}");
    TestLoad {
        total: requests[0],
        succeeded: requests[3],
        failed: requests[4],
        classes: [codes[0], codes[2], codes[4], codes[6]],
        report: report.to_owned(),
    }
}
