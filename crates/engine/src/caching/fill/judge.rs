//! `fastcgi_no_cache`: evaluated when the response head is there.
//!
//! Owns what its variables may read at that time, when the client may be gone or never have waited.
//! Easiest to break: it sees the head that a client would get, with the fields that the location
//! adds.

use bolide_base::Now;
use bolide_http::date::DateClock;
use bolide_http::{FieldMap, Name, OriginHead};
use bolide_upstream::Attempt;

use crate::answer::Answer;
use crate::caching::UpstreamCacheStatus;
use crate::connection::ConnInfo;
use crate::counters::RequestTallies;
use crate::filter::headers::push_configured;
use crate::filter::passed_fields::push_shown;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

/// A snapshot of the request when the fetch began, and of its response so far.
#[derive(Debug)]
pub(crate) struct Judge {
    request: Request,
    answer: Answer,
    conn: ConnInfo,
    clock: DateClock,
    counters: RequestTallies,
    pid: u32,
}

impl Judge {
    /// Takes the snapshot of the request of `scope`.
    pub(crate) fn new(scope: &VariableScope<'_>, cached: UpstreamCacheStatus) -> Self {
        let answer = Answer { cached, ..Answer::default() };
        Self {
            request: scope.request.snapshot(),
            answer,
            conn: scope.conn.clone(),
            clock: scope.clock.clone(),
            counters: scope.counters.clone(),
            pid: scope.pid,
        }
    }

    /// Records the state of the upstream request.
    pub(crate) fn note(&mut self, attempt: &Attempt) {
        self.answer.origin.get_or_insert_default().note(attempt.clone());
    }

    /// Whether one of the conditions prevents storing.
    pub(crate) fn refuses(
        &mut self,
        status: u16,
        head: &OriginHead,
        site: &Site,
        now: Now,
    ) -> bool {
        let location = site.location(self.request.location);
        let Some(caching) = &location.caching else { return false };
        self.answer.origin.get_or_insert_default().record_head(&head.fields, now);
        self.answer.head.status = status;
        let mut fields = FieldMap::new();
        push_shown(&mut fields, head, location);
        self.answer.head.fields = fields.clone();
        let mut text = Vec::new();
        let modified = head.fields.get(Name::LastModified).and_then(bolide_http::date::parse);
        push_configured(&mut fields, &self.scope(site, now), status, modified, &mut text);
        self.answer.head.fields = fields;
        let scope = self.scope(site, now);
        caching.conf.no_cache.iter().any(|template| scope.is_true(template, &mut text))
    }

    const fn scope<'a>(&'a self, site: &'a Site, now: Now) -> VariableScope<'a> {
        VariableScope {
            sent: None,
            request: &self.request,
            answer: &self.answer,
            site,
            conn: &self.conn,
            now,
            clock: &self.clock,
            counters: &self.counters,
            pid: self.pid,
            tcp: None,
        }
    }
}
