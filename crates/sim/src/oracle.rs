//! Which responses are correct.
//!
//! A response is correct if it is one of the states that the file had between the moment the
//! request began to leave and the moment the response had arrived, allowing for the time for which
//! the server may use an earlier lookup. Bytes of two versions in one response are never correct.

use std::io::Read as _;

use crate::assembly::AssemblyPiece;
use crate::dns::SimDns;
use crate::fault_record::{FaultRecord, application_response};
use crate::kernel::disk::{Content, PathState, SimDisk};
use crate::pages::{PageModel, esi};
use crate::php_pools::{SHORT_QUEUE, is_pool};
use crate::request::{BODY_MAX, FALSE, RequestKind, SimRequest, SimUpload};
use crate::response::SimResponse;
use crate::webdav;

/// Nanoseconds of the site's `queue … timeout`, less the time in transit.
const QUEUE_TIMEOUT: u64 = 59_000_000_000;

/// A configuration and when it was in force.
#[derive(Clone, Debug)]
pub struct ConfigEpoch {
    /// Its number.
    pub number: u32,
    /// Its TCP ports.
    pub ports: Vec<u16>,
    /// Its UDP ports.
    pub quic_ports: Vec<u16>,
    /// When it was sent to the workers.
    pub sent_at: u64,
    /// When all workers used its successor.
    pub superseded_at: u64,
}

impl ConfigEpoch {
    fn has(&self, port: u16) -> bool {
        self.ports.contains(&port) || self.quic_ports.contains(&port)
    }
}

/// The data that responses are checked against.
#[derive(Clone, Copy, Debug)]
pub struct ResponseOracle<'a> {
    /// The file system with its history.
    pub disk: &'a SimDisk,
    /// Nanoseconds for which the server may use an earlier lookup.
    pub valid: u64,
    /// All configurations.
    pub epochs: &'a [ConfigEpoch],
    /// `worker_shutdown_timeout` in nanoseconds, if the configuration has one.
    pub shutdown_timeout: Option<u64>,
    /// System calls of the server have failed.
    pub has_syscall_faults: bool,
    /// The injected faults.
    pub fault_record: &'a FaultRecord,
    /// The versions of cached pages.
    pub pages: &'a PageModel,
    /// The name servers.
    pub dns: &'a SimDns,
}

impl ResponseOracle<'_> {
    /// Checks a response that was complete at `until`.
    ///
    /// # Errors
    ///
    /// The violation.
    pub fn check(
        &self,
        request: &SimRequest,
        response: &SimResponse,
        until: u64,
    ) -> Result<(), String> {
        let size = response.body.len();
        if !response.has_its_trailers() {
            return Err(format!("trailers {:?}", response.trailers));
        }
        if let Some(length) = response.field("content-length")
            && !SimResponse::is_bodiless(response.status, request.head_only)
            && length != size.to_string()
        {
            return Err(format!("content-length is {length}, the body has {size}"));
        }
        if response.field("date").is_none() || response.field("server").is_none() {
            return Err("a response without date or server".to_owned());
        }
        if self.has_syscall_faults && response.status >= 400 {
            return Ok(());
        }
        if request.expects_error {
            let status = response.status;
            return if status == 400 { Ok(()) } else { Err(format!("{status} to a stranger")) };
        }
        if request.what.is_page() {
            return self.pages.check(request, response, self.fault_record);
        }
        if self.states(request, until).any(|seen| is_correct(request, response, seen)) {
            return Ok(());
        }
        if self.is_correct_by_rule(request, response, until)
            || self.is_mixed(request, response, until)
        {
            return Ok(());
        }
        let states: Vec<String> = self.states(request, until).map(describe).collect();
        Err(format!(
            "{} {:?} {:?} {}; possible: {}",
            response.status,
            request.range,
            response.fields,
            crate::run_trace::excerpt(&response.body),
            states.join(", ")
        ))
    }

    /// Whether a response may be truncated, because a fault or a change of its file explains it.
    #[must_use]
    pub fn may_be_cut(&self, request: &SimRequest, until: u64) -> bool {
        // `worker_shutdown_timeout` ends the requests that a reload leaves running.
        let is_over = |epoch: &ConfigEpoch| {
            let cut = self
                .shutdown_timeout
                .map(|shutdown_timeout| epoch.sent_at.saturating_add(shutdown_timeout));
            epoch.sent_at > request.since && cut.is_some_and(|cut| cut <= until)
        };
        if self.has_syscall_faults || self.epochs.iter().skip(1).any(is_over) {
            return true;
        }
        if let RequestKind::Page(place, page) = request.what {
            return esi::targets((place, page))
                .iter()
                .any(|target| self.fault_record.may_truncate(target));
        }
        if let RequestKind::Assembly(size, depth) = request.what {
            return AssemblyPiece::page(request.token(), size, depth).may_be_cut(self.fault_record);
        }
        if request.what.is_app() {
            return self.fault_record.may_truncate(&request.token());
        }
        let from = request.since.saturating_sub(self.valid);
        request.path().is_some_and(|path| self.disk.changed(path, from, until))
    }

    /// Whether the response may mix versions, because its file was rewritten in place while it was
    /// sent; its length must be the stated one even then.
    fn is_mixed(&self, request: &SimRequest, response: &SimResponse, until: u64) -> bool {
        let from = request.since.saturating_sub(self.valid);
        matches!(response.status, 200 | 206)
            && request.path().is_some_and(|path| self.disk.was_rewritten(path, from, until))
    }

    fn states<'a>(
        &'a self,
        request: &SimRequest,
        until: u64,
    ) -> impl Iterator<Item = &'a PathState> {
        let from = request.since.saturating_sub(self.valid);
        request.path().into_iter().flat_map(move |path| self.disk.states(path, from, until))
    }

    /// Checks responses that do not depend on one file.
    fn is_correct_by_rule(&self, request: &SimRequest, response: &SimResponse, until: u64) -> bool {
        let is_too_large = matches!(request.upload, SimUpload::Length(n) if n > BODY_MAX);
        match request.what {
            RequestKind::Upload | RequestKind::BadMethod if is_too_large => response.status == 413,
            RequestKind::App(FALSE, _) => match response.status {
                502 => true,
                status => self.fault_record.allows_status(FALSE, status),
            },
            RequestKind::App(_, size) if response.status == 200 => {
                let wanted = application_response(&request.token(), size, request.upload.size());
                let has_stated = |length| self.fault_record.has_stated(&request.token(), length);
                request.head_only
                    || response.body == wanted
                    || wanted.starts_with(&response.body) && has_stated(response.body.len())
            }
            RequestKind::Assembly(size, depth) if response.status == 200 => {
                let page = AssemblyPiece::page(request.token(), size, depth);
                request.head_only
                    || plain(response).is_some_and(|body| page.is_correct(&body, self.fault_record))
            }
            // The request waited in the queue until its timeout.
            RequestKind::App("/tight", _) if response.status == 503 => {
                until >= request.since + QUEUE_TIMEOUT
            }
            RequestKind::App(place, _) if response.status == 503 && is_pool(place) => {
                let token = request.token();
                let is_queued_long = until >= request.since + QUEUE_TIMEOUT;
                let is_full = place == SHORT_QUEUE && response.field("retry-after").is_some();
                is_full || is_queued_long || self.fault_record.allows_status(&token, 503)
            }
            // The upstream closed an idle connection that a request was sent to.
            RequestKind::App("/kept", _)
                if response.status == 502 && self.fault_record.closed_idle > 0 =>
            {
                true
            }
            RequestKind::App(place, _) if response.status == 502 && self.dns.may_fail(place) => {
                self.dns.is_in_time(request.since, until)
            }
            RequestKind::App(..) | RequestKind::Assembly(..) => {
                self.fault_record.allows_status(&request.token(), response.status)
            }
            RequestKind::Dav(act) => webdav::is_correct(
                act,
                request,
                response.status,
                until,
                (self.disk, self.fault_record),
            ),
            RequestKind::Upload => response.status == 200 && response.body == b"thanks",
            RequestKind::Guarded(1..) => response.status == 401,
            RequestKind::Listed => {
                response.status == 200 && (request.head_only || lists(&response.body))
            }
            RequestKind::Who => {
                response.status == 200
                    && (request.head_only || has_client_facts(request, &response.body))
            }
            RequestKind::Version => {
                let epochs = self.epochs.iter().filter(|epoch| {
                    epoch.sent_at <= until
                        && (epoch.superseded_at >= request.since
                            || self.is_orphaned(epoch, request.port))
                });
                epochs.into_iter().any(|epoch| {
                    let text = format!("generation {}", epoch.number);
                    response.status == 200
                        && (request.head_only || response.body == text.as_bytes())
                })
            }
            // The directory cannot be opened, or has no index file.
            RequestKind::Index(path) => {
                let directory = path.trim_end_matches("/index.html");
                let from = request.since.saturating_sub(self.valid);
                let mut all =
                    self.states(request, until).chain(self.disk.states(directory, from, until));
                matches!(response.status, 403 | 404 | 500)
                    && all.any(|seen| matches!(seen, PathState::Absent | PathState::Failed(_)))
            }
            _ => false,
        }
    }

    /// Connections on a port that the current configuration lacks keep their configuration.
    fn is_orphaned(&self, epoch: &ConfigEpoch, port: u16) -> bool {
        let later = self.epochs.iter().filter(|other| other.number > epoch.number);
        epoch.has(port) && later.into_iter().any(|epoch| !epoch.has(port))
    }
}

/// The body without its coding.
fn plain(response: &SimResponse) -> Option<Vec<u8>> {
    if response.field("content-encoding").is_none() {
        return Some(response.body.clone());
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&response.body[..]).read_to_end(&mut plain).ok()?;
    Some(plain)
}

/// Whether a directory listing has a file that always exists.
fn lists(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains("small.txt")
}

/// Whether the body has the server's facts about the client; it may state the reason of a failed
/// verification.
fn has_client_facts(request: &SimRequest, body: &[u8]) -> bool {
    let Some(rest) = body.strip_prefix(request.client_facts.as_bytes()) else { return false };
    rest.is_empty() || request.client_facts.ends_with("FAILED")
}

fn is_correct(request: &SimRequest, response: &SimResponse, seen: &PathState) -> bool {
    match seen {
        PathState::Absent | PathState::Failed(2) => response.status == 404,
        PathState::Failed(13) => response.status == 403,
        PathState::Failed(_) => response.status == 500,
        PathState::Directory => response.status == 301,
        PathState::File(content) => match (request.what, response.status) {
            (RequestKind::BadMethod, status) => status == 405,
            (_, 200) => is_whole(request, response, content),
            (_, 206) => is_part(request, response, content),
            (_, 304) => {
                let known = request.known.as_deref().map(|tag| tag.trim_start_matches("W/"));
                known == Some(&content.etag())
            }
            (_, 416) => request.range.is_some_and(|(first, _)| first >= content.bytes.len() as u64),
            _ => false,
        },
    }
}

fn is_whole(request: &SimRequest, response: &SimResponse, content: &Content) -> bool {
    let tag = response.field("etag").unwrap_or_default();
    if tag.trim_start_matches("W/") != content.etag() {
        return false;
    }
    if response.field("content-encoding") == Some("gzip") {
        if request.head_only {
            return request.gzip;
        }
        let mut plain = Vec::new();
        let decoded = flate2::read::GzDecoder::new(&response.body[..]).read_to_end(&mut plain);
        return request.gzip && decoded.is_ok() && plain == *content.bytes;
    }
    if request.head_only {
        let length = response.field("content-length").and_then(|text| text.parse().ok());
        return length == Some(content.bytes.len());
    }
    response.body == *content.bytes
}

fn is_part(request: &SimRequest, response: &SimResponse, content: &Content) -> bool {
    let Some((first, last)) = request.range else { return false };
    let size = content.bytes.len() as u64;
    let last = last.min(size.saturating_sub(1));
    let Some(part) = content.bytes.get(first as usize..=last as usize) else { return false };
    let wanted = format!("bytes {first}-{last}/{size}");
    response.field("content-range") == Some(&wanted) && (request.head_only || response.body == part)
}

fn describe(seen: &PathState) -> String {
    match seen {
        PathState::File(content) => format!(
            "{} {}",
            content.etag(),
            crate::run_trace::excerpt(&content.bytes[..content.bytes.len().min(50)])
        ),
        other => format!("{other:?}"),
    }
}
