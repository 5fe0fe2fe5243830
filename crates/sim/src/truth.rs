//! Which responses are correct.
//!
//! A response is correct if it is one of the states that the file had between the moment the
//! request began to leave and the moment the response had arrived, allowing for the time for which
//! the server may use an earlier lookup. Bytes of two versions in one response are never correct.

use std::io::Read as _;

use crate::ask::{BODY_MAX, FALSE, SimAnswer, SimAsk, SimUpload, What};
use crate::assembly::AssemblyPiece;
use crate::dav;
use crate::deeds::{Deeds, application_answer};
use crate::kernel::disk::{Content, DiskSeen, SimDisk};
use crate::names::SimNames;
use crate::pages::{PageModel, whole};

/// Nanoseconds of the site's `queue … timeout`, less those that a request is on its way.
const QUEUE_TIMEOUT: u64 = 59_000_000_000;

/// A configuration and when it was in force.
#[derive(Clone, Debug)]
pub struct Era {
    /// Its number.
    pub number: u32,
    /// Its ports.
    pub ports: Vec<u16>,
    /// Those for QUIC.
    pub quic_ports: Vec<u16>,
    /// When the workers were told.
    pub told: u64,
    /// When all of them had heard of its successor.
    pub over: u64,
}

impl Era {
    fn has(&self, port: u16) -> bool {
        self.ports.contains(&port) || self.quic_ports.contains(&port)
    }
}

/// What answers are measured against.
#[derive(Clone, Copy, Debug)]
pub struct Truth<'a> {
    /// The files.
    pub disk: &'a SimDisk,
    /// Nanoseconds for which the server may rely on an earlier look.
    pub valid: u64,
    /// All configurations.
    pub eras: &'a [Era],
    /// Nanoseconds that a reload leaves to requests, if it limits them.
    pub overtime: Option<u64>,
    /// Calls of the server failed for want of something.
    pub is_poor: bool,
    /// What went wrong with applications.
    pub deeds: &'a Deeds,
    /// What applications said that is kept.
    pub pages: &'a PageModel,
    /// What name servers said.
    pub names: &'a SimNames,
}

impl Truth<'_> {
    /// Judges an answer that was complete at `until`.
    ///
    /// # Errors
    ///
    /// In words, what is wrong with it.
    pub fn judge(&self, ask: &SimAsk, answer: &SimAnswer, until: u64) -> Result<(), String> {
        let size = answer.body.len();
        if let Some(length) = answer.field("content-length")
            && !SimAnswer::is_bodiless(answer.status, ask.head_only)
            && length != size.to_string()
        {
            return Err(format!("content-length is {length}, the body has {size}"));
        }
        if answer.field("date").is_none() || answer.field("server").is_none() {
            return Err("an answer without date or server".to_owned());
        }
        if self.is_poor && answer.status >= 400 {
            return Ok(());
        }
        if ask.is_barred {
            let status = answer.status;
            return if status == 400 { Ok(()) } else { Err(format!("{status} to a stranger")) };
        }
        if ask.what.is_page() {
            return self.pages.judge(ask, answer, self.deeds);
        }
        if self.states(ask, until).any(|seen| is_right(ask, answer, seen)) {
            return Ok(());
        }
        if self.is_right_by_rule(ask, answer, until) || self.is_mixed(ask, answer, until) {
            return Ok(());
        }
        let states: Vec<String> = self.states(ask, until).map(describe).collect();
        Err(format!(
            "{} {:?} {:?} {}; possible: {}",
            answer.status,
            ask.range,
            answer.fields,
            crate::scenario_log::excerpt(&answer.body),
            states.join(", ")
        ))
    }

    /// Whether an answer may have been cut: its file changed while it was sent.
    #[must_use]
    pub fn may_be_cut(&self, ask: &SimAsk, until: u64) -> bool {
        // What a reload left running is cut some time later.
        let is_over = |era: &Era| {
            let cut = self.overtime.map(|overtime| era.told.saturating_add(overtime));
            era.told > ask.since && cut.is_some_and(|cut| cut <= until)
        };
        if self.is_poor || self.eras.iter().skip(1).any(is_over) {
            return true;
        }
        if let What::Page(place, page) = ask.what {
            return whole::targets((place, page)).iter().any(|target| self.deeds.cut(target));
        }
        if let What::Assembly(size, depth) = ask.what {
            return AssemblyPiece::page(ask.token(), size, depth).may_be_cut(self.deeds);
        }
        if ask.what.is_app() {
            return self.deeds.cut(&ask.token());
        }
        let from = ask.since.saturating_sub(self.valid);
        ask.path().is_some_and(|path| self.disk.changed(path, from, until))
    }

    /// Whether it may have bytes of several versions, as its file was written to in its place while
    /// it was sent; it has the length that was stated all the same.
    fn is_mixed(&self, ask: &SimAsk, answer: &SimAnswer, until: u64) -> bool {
        let from = ask.since.saturating_sub(self.valid);
        matches!(answer.status, 200 | 206)
            && ask.path().is_some_and(|path| self.disk.was_rewritten(path, from, until))
    }

    fn states<'a>(&'a self, ask: &SimAsk, until: u64) -> impl Iterator<Item = &'a DiskSeen> {
        let from = ask.since.saturating_sub(self.valid);
        ask.path().into_iter().flat_map(move |path| self.disk.states(path, from, until))
    }

    /// Answers that do not depend on one file.
    fn is_right_by_rule(&self, ask: &SimAsk, answer: &SimAnswer, until: u64) -> bool {
        let is_too_large = matches!(ask.upload, SimUpload::Length(n) if n > BODY_MAX);
        match ask.what {
            What::Upload | What::Refused if is_too_large => answer.status == 413,
            What::App(FALSE, _) => match answer.status {
                502 => true,
                status => self.deeds.allows(FALSE, status),
            },
            What::App(_, size) if answer.status == 200 => {
                let wanted = application_answer(&ask.token(), size, ask.upload.size());
                ask.head_only || answer.body == wanted
            }
            What::Assembly(size, depth) if answer.status == 200 => {
                let page = AssemblyPiece::page(ask.token(), size, depth);
                ask.head_only || plain(answer).is_some_and(|body| page.is_right(&body, self.deeds))
            }
            // As long as requests wait for a place there.
            What::App("/tight", _) if answer.status == 503 => until >= ask.since + QUEUE_TIMEOUT,
            What::App(place, _) if answer.status == 502 && self.names.may_fail(place) => {
                self.names.is_in_time(ask.since, until)
            }
            What::App(..) | What::Assembly(..) => self.deeds.allows(&ask.token(), answer.status),
            What::Dav(act) => {
                dav::is_right(act, ask, answer.status, until, (self.disk, self.deeds))
            }
            What::Upload => answer.status == 200 && answer.body == b"thanks",
            What::Guarded(1..) => answer.status == 401,
            What::Listed => answer.status == 200 && (ask.head_only || lists(&answer.body)),
            What::Who => answer.status == 200 && (ask.head_only || is_told(ask, &answer.body)),
            What::Version => {
                let eras = self.eras.iter().filter(|era| {
                    era.told <= until && (era.over >= ask.since || self.is_orphaned(era, ask.port))
                });
                eras.into_iter().any(|era| {
                    let text = format!("generation {}", era.number);
                    answer.status == 200 && (ask.head_only || answer.body == text.as_bytes())
                })
            }
            // A directory that cannot be looked at, or that has no index.
            What::Index(path) => {
                let directory = path.trim_end_matches("/index.html");
                let from = ask.since.saturating_sub(self.valid);
                let mut all =
                    self.states(ask, until).chain(self.disk.states(directory, from, until));
                matches!(answer.status, 403 | 404 | 500)
                    && all.any(|seen| matches!(seen, DiskSeen::Absent | DiskSeen::Failed(_)))
            }
            _ => false,
        }
    }

    /// Connections on a port that the newest configurations lack keep their own.
    fn is_orphaned(&self, era: &Era, port: u16) -> bool {
        let later = self.eras.iter().filter(|other| other.number > era.number);
        era.has(port) && later.into_iter().any(|era| !era.has(port))
    }
}

/// The body without its coding.
fn plain(answer: &SimAnswer) -> Option<Vec<u8>> {
    if answer.field("content-encoding").is_none() {
        return Some(answer.body.clone());
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut plain).ok()?;
    Some(plain)
}

/// Whether a listing has a file that is always there.
fn lists(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains("small.txt")
}

/// Whether the body says what the server has to know; it may say more of a failure.
fn is_told(ask: &SimAsk, body: &[u8]) -> bool {
    let Some(rest) = body.strip_prefix(ask.told.as_bytes()) else { return false };
    rest.is_empty() || ask.told.ends_with("FAILED")
}

fn is_right(ask: &SimAsk, answer: &SimAnswer, seen: &DiskSeen) -> bool {
    match seen {
        DiskSeen::Absent | DiskSeen::Failed(2) => answer.status == 404,
        DiskSeen::Failed(13) => answer.status == 403,
        DiskSeen::Failed(_) => answer.status == 500,
        DiskSeen::Directory => answer.status == 301,
        DiskSeen::File(content) => match (ask.what, answer.status) {
            (What::Refused, status) => status == 405,
            (_, 200) => is_whole(ask, answer, content),
            (_, 206) => is_part(ask, answer, content),
            (_, 304) => {
                let known = ask.known.as_deref().map(|tag| tag.trim_start_matches("W/"));
                known == Some(&content.etag())
            }
            (_, 416) => ask.range.is_some_and(|(first, _)| first >= content.bytes.len() as u64),
            _ => false,
        },
    }
}

fn is_whole(ask: &SimAsk, answer: &SimAnswer, content: &Content) -> bool {
    let tag = answer.field("etag").unwrap_or_default();
    if tag.trim_start_matches("W/") != content.etag() {
        return false;
    }
    if answer.field("content-encoding") == Some("gzip") {
        if ask.head_only {
            return ask.gzip;
        }
        let mut plain = Vec::new();
        let decoded = flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut plain);
        return ask.gzip && decoded.is_ok() && plain == *content.bytes;
    }
    if ask.head_only {
        let length = answer.field("content-length").and_then(|text| text.parse().ok());
        return length == Some(content.bytes.len());
    }
    answer.body == *content.bytes
}

fn is_part(ask: &SimAsk, answer: &SimAnswer, content: &Content) -> bool {
    let Some((first, last)) = ask.range else { return false };
    let size = content.bytes.len() as u64;
    let last = last.min(size.saturating_sub(1));
    let Some(part) = content.bytes.get(first as usize..=last as usize) else { return false };
    let told = format!("bytes {first}-{last}/{size}");
    answer.field("content-range") == Some(&told) && (ask.head_only || answer.body == part)
}

fn describe(seen: &DiskSeen) -> String {
    match seen {
        DiskSeen::File(content) => format!(
            "{} {}",
            content.etag(),
            crate::scenario_log::excerpt(&content.bytes[..content.bytes.len().min(50)])
        ),
        other => format!("{other:?}"),
    }
}
