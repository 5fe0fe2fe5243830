//! Cached pages: what each application sent when, for which audience, and what was purged.
//!
//! Every response of the application is a version of its own: it has a number, names its inputs and
//! its audience, and determines its bytes. So a reader of a body knows which version it is, whether
//! it is complete, whether the client may see it, and whether a purge came in between.
//!
//! The main rule: a version that was made before a purge began must not be sent for a request that
//! began after the purge was acknowledged.

pub mod whole;

use std::collections::BTreeMap;
use std::io::Read as _;

use crate::ask::{SimAnswer, SimAsk, What};
use crate::deeds::Deeds;

/// Where pages are, each with settings and an application of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PagePlace {
    /// Marked public in LSCache's way.
    Page,
    /// Marked public in HTTP's way.
    Http,
    /// Marked private.
    Own,
    /// Private to who has a session, public to others.
    Mixed,
    /// Not to be kept.
    Never,
    /// Sometimes public, sometimes not to be kept.
    Flip,
    /// Public, and often too large to be kept.
    Brief,
    /// Kept by nginx's directives, with everything that there is.
    Zone,
    /// Kept when it was asked for twice, and asked for at once by all.
    Rare,
    /// Kept; who waits in line does so for a second, and no background fetch begins.
    Lone,
    /// Put together from others.
    Whole,
}

/// The locations of all places.
pub const LOCATIONS: &str = "
        location /page { fastcgi_pass app; page_cache auto; page_cache_purge_allow all;
            fastcgi_param QUERY_STRING $query_string; fastcgi_param SERVER_PORT $server_port;
            fastcgi_param REQUEST_METHOD $request_method; page_cache_stale 2s error=6s;
            cache_status on; }
        location /http { fastcgi_pass kept; fastcgi_keep_conn on; page_cache auto;
            fastcgi_param QUERY_STRING $query_string; fastcgi_param SERVER_PORT $server_port;
            fastcgi_param REQUEST_METHOD $request_method;
            page_cache_purge_allow all; page_cache_stale off; }
        location /own { fastcgi_pass app; page_cache auto; page_cache_purge_allow all;
            page_cache_stale 1s; }
        location /mixed { fastcgi_pass kept; page_cache auto; page_cache_purge_allow all;
            page_cache_stale 2s error=6s; }
        location /never { fastcgi_pass app; page_cache auto; page_cache_purge_allow all; }
        location /flip { fastcgi_pass app; page_cache auto; page_cache_purge_allow all; }
        location /brief { fastcgi_pass app; page_cache auto; page_cache_purge_allow all;
            page_cache_max_object 8k; }
        location /whole { fastcgi_pass app; page_cache auto; page_cache_purge_allow all;
            page_cache_stale 2s error=6s; }
        location /edit { fastcgi_pass app; page_cache auto; }
        location /zone { fastcgi_pass app; fastcgi_cache zone; fastcgi_cache_key $request_uri;
            fastcgi_cache_valid 200 1s; fastcgi_cache_lock on; fastcgi_cache_lock_timeout 20s;
            fastcgi_cache_lock_age 20s; fastcgi_cache_background_update on;
            fastcgi_cache_revalidate on; fastcgi_cache_purge PURGE from all;
            fastcgi_cache_use_stale error timeout invalid_header updating http_503; }
        location /rare { fastcgi_pass app; fastcgi_cache few; fastcgi_cache_key $request_uri;
            fastcgi_cache_valid 200 2s; fastcgi_cache_min_uses 2; fastcgi_cache_use_stale error;
            fastcgi_cache_purge PURGE from all; }
        location /lone { fastcgi_pass app; fastcgi_cache few; fastcgi_cache_key $request_uri;
            fastcgi_cache_valid 200 2s; fastcgi_cache_lock on; fastcgi_cache_lock_timeout 1s;
            fastcgi_cache_lock_age 1s; fastcgi_cache_purge PURGE from all; }
";

/// Pages of each place, and the bytes of each behind its first line.
pub const SIZES: [usize; 4] = [300, 3_000, 12_000, 40_000];

/// Letters after which those of a page's text are one further on.
const RUN: usize = 97;

/// Such a run of letters, by the first one.
static RUNS: [[u8; RUN]; 26] = {
    let mut runs = [[0; RUN]; 26];
    let mut start = 0;
    while start < 26 {
        let mut at = 0;
        while at < RUN {
            runs[start][at] = b'A' + ((start + 5 * at) % 26) as u8;
            at += 1;
        }
        start += 1;
    }
    runs
};

impl PagePlace {
    /// All but [`Self::Whole`].
    pub const ALL: [Self; 10] = [
        Self::Page,
        Self::Http,
        Self::Own,
        Self::Mixed,
        Self::Never,
        Self::Flip,
        Self::Brief,
        Self::Zone,
        Self::Rare,
        Self::Lone,
    ];

    /// Its name in addresses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Http => "http",
            Self::Own => "own",
            Self::Mixed => "mixed",
            Self::Never => "never",
            Self::Flip => "flip",
            Self::Brief => "brief",
            Self::Zone => "zone",
            Self::Rare => "rare",
            Self::Lone => "lone",
            Self::Whole => "whole",
        }
    }

    /// The place of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::Whole]).find(|place| place.name() == name)
    }

    /// Whether nginx's directives keep it.
    #[must_use]
    pub const fn is_zone(self) -> bool {
        matches!(self, Self::Zone | Self::Rare | Self::Lone)
    }

    /// Whether its answers to a request are told apart by the language asked for.
    #[must_use]
    pub const fn varies(self, page: usize) -> bool {
        page % 2 == 1 && matches!(self, Self::Page | Self::Http | Self::Own | Self::Zone)
    }

    /// Whether only one exchange may ask for it at a time. Where copies are told
    /// apart, what tells them apart may have been forgotten.
    const fn coalesces(self, page: usize) -> bool {
        matches!(self, Self::Page | Self::Http | Self::Zone) && !self.varies(page)
    }
}

/// Who may see a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All visitors.
    All,
    /// The session with this cookie.
    Session(String),
    /// The one request that carried this cookie.
    Visitor(String),
}

/// A version of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageVersion {
    /// Its number.
    pub number: u64,
    /// Which page of which place.
    pub place: PagePlace,
    /// See [`SIZES`].
    pub page: usize,
    /// The language that it was made for, if that matters.
    pub lang: Option<String>,
    /// Its audience.
    pub whom: Whom,
    /// When.
    pub born: u64,
    /// When the application last said that it was still good.
    pub confirmed: u64,
}

impl PageVersion {
    /// The first line of its bytes.
    fn line(&self) -> String {
        let Self { number, place, page, lang, whom, born, .. } = self;
        format!("{number} {} {page} {lang:?} {whom:?} {born}\n", place.name())
    }

    /// Its bytes.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let mut body = self.line().into_bytes();
        if self.place == PagePlace::Whole {
            body.extend_from_slice(whole::text(self.number, self.page).as_bytes());
            return body;
        }
        // The letter at `at` is the one of number `start + 5 * at + at / RUN`.
        let (mut start, mut left) = ((self.number * 7) as usize % 26, SIZES[self.page]);
        while left > 0 {
            let run = &RUNS[start][..left.min(RUN)];
            body.extend_from_slice(run);
            left -= run.len();
            start = (start + RUN * 5 + 1) % 26;
        }
        body
    }

    /// Its entity tag.
    #[must_use]
    pub fn etag(&self) -> String {
        format!("\"v{}\"", self.number)
    }
}

/// What is dropped by one purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A page wherever the page cache has it publicly.
    Tag(usize),
    /// All that the page cache has publicly.
    All,
    /// One address: its port, and the session of who sent it.
    Url(PagePlace, usize, u16, Option<String>),
    /// A page that a session has for itself.
    OwnTag(usize, String),
    /// All that a session has for itself.
    Own(String),
    /// A page that any session has for itself.
    EveryOwnTag(usize),
    /// A key of a zone.
    Key(PagePlace, usize),
}

impl Reach {
    fn covers(&self, version: &PageVersion, port: u16) -> bool {
        let PageVersion { place, page, whom, .. } = version;
        let is_public = *whom == Whom::All;
        let is_of = |session: &String| *whom == Whom::Session(session.clone());
        if let Self::Key(zone, wanted) = self {
            return zone == place && wanted == page;
        }
        if place.is_zone() {
            return false;
        }
        match self {
            Self::Tag(wanted) => is_public && wanted == page,
            Self::All => is_public,
            Self::Url(wanted, number, at, session) => {
                let here = (wanted, number, *at) == (place, page, port);
                here && (is_public || session.as_ref().is_some_and(is_of))
            }
            Self::OwnTag(wanted, session) => wanted == page && is_of(session),
            Self::Own(session) => is_of(session),
            Self::EveryOwnTag(wanted) => wanted == page && matches!(whom, Whom::Session(_)),
            Self::Key(..) => false,
        }
    }
}

/// What an edit drops, by the number in its address.
pub const DROPS: u64 = 8;

/// What the application says when a page was edited, and what is dropped by that.
#[must_use]
pub fn drops(number: u64, page: usize, session: Option<&str>) -> (String, Option<Reach>) {
    let own = session.map(str::to_owned);
    match number {
        0 => (format!("public, tag=p{page}"), Some(Reach::Tag(page))),
        1 => (format!("p{page}"), Some(Reach::Tag(page))),
        2 => ("*".to_owned(), Some(Reach::All)),
        3 => ("p*".to_owned(), Some(Reach::All)),
        4 => (format!("private, tag=p{page}"), own.map(|own| Reach::OwnTag(page, own))),
        5 => ("private, *".to_owned(), own.map(Reach::Own)),
        6 => (format!("tag=g{page}"), Some(Reach::EveryOwnTag(page))),
        _ => (format!("public, stale, p{page}"), None),
    }
}

#[derive(Debug)]
struct Floor {
    reach: Reach,
    /// What it covers must have been made after this…
    since: u64,
    /// …for who asked after this.
    acked: u64,
}

#[derive(Debug)]
struct Fetching {
    target: String,
    fd: i32,
    since: u64,
}

/// Nanoseconds from a look-up to the moment at which the application hears of it, at most.
const WAY_MAX: u64 = 5_000_000_000;

/// Nanoseconds after which a purge outlasts a loss of power: a second, and somewhat more until
/// its turn comes.
const FLUSHED_WITHIN: u64 = 1_500_000_000;

/// All versions and purges of a run.
#[derive(Debug, Default)]
pub struct PageModel {
    versions: BTreeMap<u64, PageVersion>,
    floors: Vec<Floor>,
    fetches: Vec<Fetching>,
    /// The generation of purges.
    generation: Option<u64>,
    /// When there was a purge last.
    purged: Option<u64>,
}

impl PageModel {
    /// A new version.
    pub fn issue(
        &mut self,
        place: PagePlace,
        page: usize,
        lang: Option<String>,
        whom: Whom,
        born: u64,
    ) -> PageVersion {
        let number = self.versions.len() as u64 + 1;
        let version = PageVersion { number, place, page, lang, whom, born, confirmed: born };
        self.versions.insert(number, version.clone());
        version
    }

    /// The version with this entity tag.
    #[must_use]
    pub fn tagged(&self, etag: &str) -> Option<&PageVersion> {
        let number = etag.trim_start_matches("W/").strip_prefix("\"v")?.strip_suffix('"')?;
        self.versions.get(&number.parse().ok()?)
    }

    /// The application says at `now` that the version with this entity tag is still good.
    pub fn revalidate(&mut self, etag: &str, now: u64) {
        let number = self.tagged(etag).map(|version| version.number);
        if let Some(version) = number.and_then(|number| self.versions.get_mut(&number)) {
            version.confirmed = now;
        }
    }

    /// Notes which generation of purges the store has reached.
    pub fn note_generation(&mut self, generation: u64, now: u64) {
        let before = self.generation.replace(generation);
        if before.is_some_and(|before| before != generation) {
            self.purged = Some(now);
        }
    }

    /// The application is asked over `fd`; says whether it should not have been, because it is
    /// being asked already over a connection that `is_open`.
    pub fn begin_fetch(
        &mut self,
        (place, page): (PagePlace, usize),
        target: &str,
        fd: i32,
        now: u64,
        is_open: impl Fn(i32) -> bool,
    ) -> bool {
        self.fetches.retain(|fetch| fetch.fd != fd && is_open(fetch.fd));
        let others = self.fetches.iter().filter(|fetch| fetch.target == target);
        let counts = |other: &Fetching| self.purged.is_none_or(|at| at + WAY_MAX < other.since);
        let twice = place.coalesces(page) && others.into_iter().any(counts);
        self.fetches.push(Fetching { target: target.to_owned(), fd, since: now });
        twice
    }

    /// The application has answered over `fd`.
    pub fn end_fetch(&mut self, fd: i32) {
        self.fetches.retain(|fetch| fetch.fd != fd);
    }

    /// A purge that began at `since` was acknowledged.
    fn acknowledge(&mut self, reach: Reach, since: u64, acked: u64) {
        self.floors.push(Floor { reach, since, acked });
    }

    /// Power was lost at `now`: purges that were told of just before may be forgotten.
    pub fn lose_power(&mut self, now: u64) {
        self.floors.retain(|floor| floor.acked + FLUSHED_WITHIN <= now);
    }

    /// Remembers what follows from a right answer that was complete at `now`.
    pub fn note(&mut self, ask: &SimAsk, answer: &SimAnswer, now: u64) {
        let session = ask.session();
        match ask.what {
            What::Purge(place, page) if place.is_zone() => {
                self.acknowledge(Reach::Key(place, page), ask.since, now);
            }
            What::Purge(place, page) if answer.status == 200 => {
                self.acknowledge(Reach::Url(place, page, ask.port, session), ask.since, now);
            }
            What::Edit(number, page) if answer.status == 200 => {
                if let Some(session) = session.clone() {
                    self.acknowledge(Reach::Own(session), ask.since, now);
                }
                let edited = String::from_utf8_lossy(&answer.body);
                let at = edited.strip_prefix("edited at ").and_then(|at| at.parse().ok());
                let (_, reach) = drops(number, page, session.as_deref());
                if let Some((at, reach)) = at.zip(reach) {
                    self.acknowledge(reach, at, now);
                }
            }
            _ => {}
        }
    }

    /// Judges the answer to a request for a page, an edit or a purge.
    ///
    /// # Errors
    ///
    /// In words, what is wrong with it.
    pub fn judge(&self, ask: &SimAsk, answer: &SimAnswer, deeds: &Deeds) -> Result<(), String> {
        let hidden = |name: &str| name.starts_with("x-litespeed-") && name != "x-litespeed-cache";
        if let Some((name, value)) = answer.fields.iter().find(|(name, _)| hidden(name)) {
            return Err(format!("clients get {name}: {value}"));
        }
        if deeds.allows(&ask.token(), answer.status) {
            return Ok(());
        }
        match (ask.what, answer.status) {
            (What::Page(place, page), status) => {
                self.judge_page((place, page), status, ask, answer, deeds)
            }
            (What::Edit(..) | What::Refresh(..), 200) => Ok(()),
            (What::Purge(place, _), 200 | 404) if place.is_zone() => Ok(()),
            (What::Purge(..), 200) => Ok(()),
            (_, status) => Err(format!("status {status}")),
        }
    }

    fn judge_page(
        &self,
        which: (PagePlace, usize),
        status: u16,
        ask: &SimAsk,
        answer: &SimAnswer,
        deeds: &Deeds,
    ) -> Result<(), String> {
        if which.0 == PagePlace::Whole {
            return match status {
                200 if ask.head_only => Ok(()),
                200 => self.judge_whole(which, &plain(ask, answer)?, ask, deeds),
                _ => Err(format!("status {status}")),
            };
        }
        let etag = match (status, &ask.known) {
            (200 | 206, _) => answer.field("etag"),
            (304, Some(known)) => Some(&**known),
            (416, _) if ask.range.is_some_and(|(first, _)| first >= SIZES[which.1] as u64) => {
                return Ok(());
            }
            _ => return Err(format!("status {status}")),
        };
        let version = etag.and_then(|etag| self.tagged(etag));
        let Some(version) = version else { return Err(format!("nobody made {etag:?}")) };
        self.judge_version(which, version, ask)?;
        if ask.head_only || status == 304 {
            return Ok(());
        }
        let whole = version.body();
        let body = plain(ask, answer)?;
        let wanted = match (status, ask.range) {
            (206, Some((first, last))) => {
                let last = last.min(whole.len() as u64 - 1);
                let told = format!("bytes {first}-{last}/{}", whole.len());
                // Where it was told a wrong length, that is not known yet.
                if answer.field("content-range") != Some(&told) && !deeds.cut(&ask.token()) {
                    return Err(format!("{:?}, not {told}", answer.field("content-range")));
                }
                whole.get(first as usize..=last as usize).unwrap_or_default()
            }
            _ => &whole[..],
        };
        if body != wanted {
            let told = crate::scenario_log::excerpt(&body);
            return Err(format!("bytes that are not those of {version:?}: {told}"));
        }
        Ok(())
    }

    /// Whether who asked so may be given this version.
    fn judge_version(
        &self,
        which: (PagePlace, usize),
        version: &PageVersion,
        ask: &SimAsk,
    ) -> Result<(), String> {
        if (version.place, version.page) != which {
            return Err(format!("another page: {version:?}"));
        }
        if version.lang.as_ref().is_some_and(|lang| *lang != ask.lang()) {
            return Err(format!("another language than {:?}: {version:?}", ask.lang()));
        }
        match &version.whom {
            Whom::All => {}
            Whom::Session(session) if ask.session().as_ref() == Some(session) => {}
            Whom::Visitor(visitor) if *visitor == ask.visitor() && version.born >= ask.since => {}
            _ => return Err(format!("A LEAK to {:?}: {version:?}", ask.session())),
        }
        for floor in self.floors.iter().filter(|floor| floor.acked <= ask.since) {
            if floor.reach.covers(version, ask.port) && version.confirmed < floor.since {
                return Err(format!("{version:?} was dropped by {floor:?}"));
            }
        }
        Ok(())
    }

    /// What is wrong with an object that is kept for `session`.
    #[must_use]
    pub fn judge_kept(&self, body: &[u8], session: Option<&[u8]>) -> Option<String> {
        let number = body.split(|byte| *byte == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok());
        let Some(version) = number.and_then(|number: u64| self.versions.get(&number)) else {
            return Some(format!("kept, and nobody made {}", crate::scenario_log::excerpt(body)));
        };
        let is_its = match (&version.whom, session) {
            (Whom::All, None) => true,
            (Whom::Session(own), Some(session)) => {
                String::from_utf8_lossy(session).contains(own.as_str())
            }
            _ => false,
        };
        if !is_its || version.body() != body {
            return Some(format!("kept for {session:?}: {version:?}"));
        }
        None
    }
}

/// The body without its coding.
fn plain(ask: &SimAsk, answer: &SimAnswer) -> Result<Vec<u8>, String> {
    match answer.field("content-encoding") {
        None => Ok(answer.body.clone()),
        Some("gzip") if ask.gzip => {
            let mut plain = Vec::new();
            let read = flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut plain);
            read.map_err(|error| error.to_string())?;
            Ok(plain)
        }
        Some(other) => Err(format!("coding {other}")),
    }
}
