//! The rules as rows: LSCache's specification, RFC 9111 and nginx, one line each.

mod keys;
mod lscache;
mod nginx;
mod standard;

use bolide_http::message::Scheme;
use bolide_http::{FieldMap, Method};

use crate::rules::{
    AnswerFacts, CachePolicy, Environment, Facts, StoreDecision, StoreRefusal, StoreVerdict, decide,
};

/// 2020-09-13T12:26:40Z, in milliseconds.
const NOW: u64 = 1_600_000_000_000;
/// [`NOW`] as a date, and dates 100 seconds before and after.
const DATE: &str = "Sun, 13 Sep 2020 12:26:40 GMT";
const EARLIER: &str = "Sun, 13 Sep 2020 12:25:00 GMT";
const LATER: &str = "Sun, 13 Sep 2020 12:28:20 GMT";

/// A request for a page of one server.
pub(super) fn facts<'a>(
    fields: &'a FieldMap,
    target: &'a str,
    environment: &'a Environment,
) -> Facts<'a> {
    Facts {
        method: Method::Get,
        fields,
        scheme: Scheme::Https,
        host: b"a.test",
        port: 443,
        server: b"a.test",
        target: target.as_bytes(),
        authority: b"a.test",
        arrival: b"",
        environment,
    }
}

/// Parses fields from lines `name: value`, separated by `|`.
pub(super) fn fields(text: &str) -> FieldMap {
    let mut fields = FieldMap::new();
    for line in text.split('|').filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.split_once(':').expect("a colon");
        fields.push_text(name.trim().as_bytes(), value.trim().as_bytes());
    }
    fields
}

/// A request and its response.
struct Case<'a> {
    policy: CachePolicy,
    environment: Environment,
    method: Method,
    request: &'a str,
    target: &'a str,
    status: u16,
    answer: &'a str,
    body_len: Option<u64>,
    has_session: bool,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            policy: CachePolicy::default(),
            environment: Environment::default(),
            method: Method::Get,
            request: "",
            target: "/page?x=1",
            status: 200,
            answer: "",
            body_len: Some(100),
            has_session: true,
        }
    }
}

impl Case<'_> {
    fn decide(&self) -> StoreDecision {
        let (request, answer) = (fields(self.request), fields(self.answer));
        let facts = Facts {
            method: self.method,
            fields: &request,
            scheme: Scheme::Https,
            host: b"a.test",
            port: 443,
            server: b"a.test",
            target: self.target.as_bytes(),
            authority: b"a.test",
            arrival: b"",
            environment: &self.environment,
        };
        let answer = AnswerFacts {
            status: self.status,
            fields: &answer,
            body_len: self.body_len,
            asked: NOW,
            arrived: NOW,
        };
        decide(&self.policy, &facts, &answer, self.has_session)
    }

    fn refusal(&self) -> Option<StoreRefusal> {
        match self.decide().verdict {
            StoreVerdict::Keep(_) => None,
            StoreVerdict::Refuse(refusal) => Some(refusal),
        }
    }
}
