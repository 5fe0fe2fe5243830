//! The trial run, and its report.

use bolide_base::Now;
use bolide_base::prng::Prng;
use bolide_cache::{FillPermit, Lookup};
use bolide_conf::model::{ServerName, ZoneUse};
use bolide_files::{FileTable, Probe, Probed};
use bolide_http::date::DateClock;
use bolide_http::{FieldMap, Method, Name, RequestHead, Scheme};

use super::notes::TraceStep;
use super::trace::{family, name_of, show, written};
use super::{
    Chosen, ExplainRequest, Explanation, KeyParts, PhaseOutcome, Switch, advice, object, recent,
    ring,
};
use crate::caching::Caching;
use crate::caching::Recalled;
use crate::caching::purge::reach_of;
use crate::counters::RequestTallies;
use crate::ctx::{
    ClientAddress, ConnInfo, ConnRelay, JobResult, SiteRef, StepCtx, StepEffect, TlsFacts, Wake,
};
use crate::exchange::Exchange;
use crate::htaccess::memory::HtaccessMemory;
use crate::route::LocationIndex;
use crate::site::Site;
use bolide_log::{Due, Logs};

/// LIMIT: wakes of one trial; a real request has fewer.
const WAKES_MAX: usize = 1000;
/// LIMIT: decisions that are shown for one key.
const RECENT_MAX: usize = 5;
/// The directives that may enable the page cache.
const PAGE_SWITCHES: [&str; 4] =
    ["page_cache", "page_cache_preset", "CacheEngine", "magento_cache"];

/// Runs `question` through `site`, with file lookups by `look`, and returns the explanation. Times
/// in log lines and variables are `utc_offset` seconds east of UTC.
pub fn explain(
    site: &SiteRef,
    question: &ExplainRequest,
    now: Now,
    utc_offset: i32,
    mut look: impl FnMut(TrialLook<'_>) -> TrialSeen,
) -> Explanation {
    let mut files = FileTable::new(now.unix_millis);
    let mut trial =
        ExplainTrial::new(site.clone(), question.clone(), now, DateClock::new(now, utc_offset));
    loop {
        match trial.go_on(&mut files) {
            TrialProgress::Probe(probe) => {
                if let TrialSeen::Probed(seen) = look(TrialLook::Probe(&probe)) {
                    files.insert_probe(&probe, seen, now);
                }
            }
            TrialProgress::Recall(permit) => {
                if let TrialSeen::Kept(found) = look(TrialLook::Kept(permit)) {
                    trial.recalled(found);
                }
            }
            TrialProgress::Done(outcome) => return trial.report(outcome),
        }
    }
}

/// A lookup that a trial needs.
#[derive(Debug)]
pub enum TrialLook<'a> {
    /// A file lookup.
    Probe(&'a Probe),
    /// A lookup in the disk cache, for this permit.
    Kept(FillPermit),
}

/// The result of a lookup.
#[derive(Debug)]
pub enum TrialSeen {
    /// For [`TrialLook::Probe`].
    Probed(Probed),
    /// For [`TrialLook::Kept`].
    Kept(Lookup),
}

/// The state of a trial.
pub(crate) enum TrialProgress {
    /// It needs this file lookup; store the result in the table of open files and continue.
    Probe(Probe),
    /// It needs this lookup in the disk cache; call [`ExplainTrial::recalled`] and continue.
    Recall(FillPermit),
    /// It has ended: report it.
    Done(PhaseOutcome),
}

/// A trial in progress.
#[derive(Debug)]
pub(crate) struct ExplainTrial {
    site: SiteRef,
    question: ExplainRequest,
    conn: ConnInfo,
    now: Now,
    clock: DateClock,
    rulings: HtaccessMemory,
    prng: Prng,
    logs: Logs,
    tallies: RequestTallies,
    front: Option<bolide_cache::Front>,
    exchange: Exchange,
    next: Option<Wake>,
    wakes: usize,
    /// The `$request_id` of the request that wants to know.
    pub(crate) asked_by: [u64; 2],
    /// LIMIT: whether tags are listed even if the store has many.
    pub(crate) with_tags: bool,
}

impl ExplainTrial {
    /// A trial that has not begun.
    pub(crate) fn new(site: SiteRef, question: ExplainRequest, now: Now, clock: DateClock) -> Self {
        let mut exchange = Exchange::new();
        exchange.request.trace = Some(Box::default());
        exchange.start(head(&question), site.clone(), None);
        Self {
            conn: ConnInfo {
                serial: 0,
                remote: ClientAddress::Inet((question.remote, 0).into()),
                local: ClientAddress::Inet(question.local),
                listen: question.listen,
                scheme: question.scheme,
                tls: (question.scheme == Scheme::Https).then(TlsFacts::default),
                relay: ConnRelay::Direct,
                started: now,
            },
            now,
            clock,
            rulings: HtaccessMemory::new(now.unix_millis),
            prng: Prng::new(now.unix_millis),
            logs: Logs::new(0, 0),
            tallies: RequestTallies::default(),
            front: site.store().map(|store| store.dry_front()),
            exchange,
            next: Some(Wake::Start),
            wakes: 0,
            asked_by: [0; 2],
            with_tags: true,
            site,
            question,
        }
    }

    /// Takes the result of a lookup in the disk cache.
    pub(crate) fn recalled(&mut self, found: Lookup) {
        let text = match &found {
            Lookup::Hit(_) => "memory has nothing under the key, the disk has it",
            Lookup::Stale(..) => "memory has nothing under the key, the disk has an old one",
            _ => "neither memory nor the disk has anything under the key",
        };
        let text = text.to_owned();
        if let Some(trace) = &mut self.exchange.request.trace {
            trace.steps.push(TraceStep { text, place: None });
        }
        self.next = Some(Wake::Recalled(Box::new(Recalled::Found(found))));
    }

    /// Runs until a lookup is needed, or to the end.
    pub(crate) fn go_on(&mut self, files: &mut FileTable) -> TrialProgress {
        let mut effects = Vec::new();
        while let Some(wake) = self.next.take() {
            self.wakes += 1;
            if self.wakes > WAKES_MAX {
                break;
            }
            let mut ctx = StepCtx {
                now: self.now,
                clock: &self.clock,
                conn: &self.conn,
                files: &mut *files,
                rulings: &mut self.rulings,
                prng: &mut self.prng,
                logs: &mut self.logs,
                effects: &mut effects,
                requests_on_conn: 1,
                background: crate::ctx::BackgroundCapacity::Available,
                counters: &self.tallies,
                cache: self.front.as_mut(),
                me: 0,
                tcp: None,
            };
            self.exchange.step(wake, &mut ctx);
            for effect in effects.drain(..) {
                match effect {
                    StepEffect::Respond => {
                        return TrialProgress::Done(PhaseOutcome::Answers(
                            self.exchange.answer.logged_status(),
                        ));
                    }
                    StepEffect::Fetch(_) => {
                        return TrialProgress::Done(PhaseOutcome::Asks(self.origin()));
                    }
                    StepEffect::CloseSilently => return TrialProgress::Done(PhaseOutcome::Closes),
                    StepEffect::Probe(probe) => {
                        self.next = Some(Wake::Probed);
                        return TrialProgress::Probe(*probe);
                    }
                    // A trial resolves no links.
                    StepEffect::Resolve(path) => {
                        files.real.insert(path.clone(), Ok(path), false, self.now.mono);
                        self.next = Some(Wake::Probed);
                    }
                    StepEffect::Recall(permit) => return TrialProgress::Recall(*permit),
                    // A trial does not ask other nodes.
                    StepEffect::AskNodes(permit) => {
                        self.next = Some(Wake::Recalled(Box::new(Recalled::Alone(*permit))));
                    }
                    StepEffect::Compress(job) => {
                        let output = job.run();
                        files.finish_job(&job, output);
                        self.next = Some(Wake::Compressed);
                    }
                    // A trial reads no videos.
                    StepEffect::CutVideo(job) => {
                        let made = JobResult::Video(Box::new(job.left_whole()));
                        self.next = Some(Wake::JobDone(made));
                    }
                    StepEffect::List(job) => {
                        self.next = Some(Wake::JobDone(JobResult::Listing(job.run().into())));
                    }
                    StepEffect::CheckPassword(check) => {
                        self.next = Some(Wake::PasswordChecked(check.run()));
                    }
                    StepEffect::AuthSubrequest => {
                        self.exchange.access.take_for_granted(&mut self.exchange.request);
                        self.next = Some(Wake::Fragment);
                    }
                    // The next request makes it.
                    StepEffect::CompressObject(object, coding, _) => object.unclaim_variant(coding),
                    StepEffect::Deadline(_) if !self.exchange.is_coalescing() => {
                        self.next = Some(Wake::Deadline);
                    }
                    _ => {}
                }
            }
        }
        TrialProgress::Done(match self.exchange.is_coalescing() {
            _ if self.exchange.is_assembling() => PhaseOutcome::Assembles,
            true => PhaseOutcome::Joins,
            false => PhaseOutcome::Waits,
        })
    }

    /// The upstream of the location.
    fn origin(&self) -> String {
        let location = self.site.location(self.exchange.request.location);
        let Some(pass) = &location.pass else { return String::new() };
        let http = self.site.http();
        match &pass.conf.to {
            bolide_conf::model::PassTo::Group(id) => http
                .and_then(|http| http.upstreams.get(id.index()))
                .map_or_else(String::new, |group| group.name.to_string()),
            bolide_conf::model::PassTo::Text(_) => "that a variable names".to_owned(),
        }
    }

    /// The location of the cache lookup, else the final location.
    fn location(&self) -> LocationIndex {
        self.exchange.cache.asked().0.unwrap_or(self.exchange.request.location)
    }

    /// The report.
    pub(crate) fn report(mut self, outcome: PhaseOutcome) -> Explanation {
        let question = self.question.clone();
        let question = &question;
        let now_ms = self.now.unix_millis;
        let log = self.log_steps();
        let trace = self.exchange.request.trace.take();
        let exchange = &self.exchange;
        let server = exchange.request.server;
        let id = self.location();
        let caching = self.site.location(id).caching.as_ref();
        let (asked, space) = exchange.cache.asked();
        let key = space.is_some().then(|| exchange.cache.key_parts()).flatten();
        let store = self.site.store().filter(|_| key.is_some());
        let candidates = store.map_or_else(Vec::new, |store| {
            let (keys, session) = exchange.cache.names();
            object::candidates(store, keys, session, self.with_tags, now_ms)
        });
        let hash = key.as_ref().map_or(0, |key| key.hash);
        let mut recent = self
            .site
            .store()
            .map_or_else(Vec::new, |store| recent(store, |one| hash != 0 && one.key == hash));
        recent.truncate(RECENT_MAX);
        let cached = exchange.answer.cached;
        let why = exchange.cache.why;
        let decision = match (asked, &outcome) {
            (None, _) => "NONE",
            (_, PhaseOutcome::Joins) => "JOIN",
            _ => ring::decision(cached, why),
        };
        let case = advice::AdviceCase {
            exchange,
            site: &self.site,
            server,
            location: id,
            caching,
            decision,
            candidates: &candidates,
            recent: &recent,
        };
        let (reason, advice) = (case.reason(), case.advice());
        let why = if asked.is_some() { why.word() } else { "no-cache-here" };
        Explanation {
            request: request_line(question),
            listen: self.site.listens()[question.listen].address.to_string(),
            server: chosen_server(&self.site, server, question.listen, &exchange.request.host),
            steps: trace
                .map_or_else(Vec::new, |trace| trace.steps)
                .into_iter()
                .chain(log)
                .collect(),
            location: chosen_location(&self.site, id),
            switch: switch(&self.site, server, id, caching),
            space,
            key,
            reach: reach_of(&exchange.cache, &exchange.request, &self.site, &self.conn),
            candidates,
            recent,
            decision,
            cached: cached.text(),
            why,
            reason,
            outcome,
            advice,
        }
    }

    /// The lines that would be logged.
    fn log_steps(&mut self) -> Vec<TraceStep> {
        let mut steps = Vec::new();
        while let Some(id) = self.logs.poll_write(self.now.mono, Due::Everything) {
            let lines = self.logs.batch(id).lines;
            let (text, bytes) = (show(lines).into_owned(), lines.len());
            self.logs.written(id, bytes, self.now.mono);
            for line in text.lines() {
                // The text between the connection's number and the client.
                let Some((_, said)) = line.split_once(": *0 ") else { continue };
                let said = said.split(", client: ").next().unwrap_or(said);
                steps.push(TraceStep { text: format!("log: {said}"), place: None });
            }
        }
        steps
    }
}

fn head(question: &ExplainRequest) -> Box<RequestHead> {
    let mut fields = FieldMap::new();
    fields.push(Name::Host, &question.authority);
    for (name, value) in &question.fields {
        fields.push_text(name, value);
    }
    let line = [&question.method[..], b" ", &question.target, b" HTTP/1.1"].concat();
    Box::new(RequestHead {
        method: Method::parse(&question.method),
        method_text: question.method.clone(),
        target: question.target.clone(),
        authority: question.authority.clone(),
        fields,
        line,
        ..RequestHead::default()
    })
}

fn request_line(question: &ExplainRequest) -> String {
    let scheme = match question.scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    let (method, authority) = (show(&question.method), show(&question.authority));
    format!("{method} {scheme}://{authority}{}", show(&question.target))
}

/// A server name as it is written in the configuration.
fn written_name(name: &ServerName) -> String {
    show(name.to_string().as_bytes()).into_owned()
}

fn covers(name: &ServerName, host: &[u8]) -> bool {
    let host = show(host);
    match name {
        ServerName::Exact(text) => **text == *host,
        ServerName::Suffix(text) => host.len() > text.len() && host.ends_with(&**text),
        ServerName::SuffixOrSelf(text) => {
            host.ends_with(&**text) || text.strip_prefix('.') == Some(&*host)
        }
        ServerName::Prefix(text) => host.len() > text.len() && host.starts_with(&**text),
        ServerName::Regex(regex) => regex.is_match(host.as_bytes()),
    }
}

fn chosen_server(site: &Site, server: u32, listen: usize, host: &[u8]) -> Chosen {
    let Some(conf) = site.http().and_then(|http| http.servers.get(server as usize)) else {
        let (name, why) = (String::new(), "there is none".to_owned());
        return Chosen { name, why, place: bolide_conf::SourcePlace::default() };
    };
    let by = conf.names.iter().find(|name| !host.is_empty() && covers(name, host));
    let why = match by {
        Some(name) => format!("its server_name {} is the host's", written_name(name)),
        None if site.default_server(listen) == server => {
            format!("no server_name there is \"{}\", and it is the default server", show(host))
        }
        None => "chosen by the address".to_owned(),
    };
    Chosen { name: conf.primary_name.to_string(), why, place: conf.place.clone() }
}

fn chosen_location(site: &Site, id: LocationIndex) -> Option<Chosen> {
    let location = site.http()?.locations.get(id as usize)?;
    let why = match location.handler {
        bolide_conf::model::Handler::Pass(_) => "its upstream answers",
        bolide_conf::model::Handler::Static => "files or its own directives answer",
        bolide_conf::model::Handler::Admin => "the server serves its own state",
        bolide_conf::model::Handler::Console => "the server's status page",
        bolide_conf::model::Handler::Mp4 => "a file, or a part of a video",
        bolide_conf::model::Handler::Flv => "a file, or a video from a byte of it on",
        bolide_conf::model::Handler::EmptyGif => "a GIF of one pixel",
        bolide_conf::model::Handler::Health(_) => "whether the server is alive or ready",
        bolide_conf::model::Handler::Metrics => "the server's figures, for Prometheus",
        bolide_conf::model::Handler::StubStatus => "the numbers of connections and requests",
    };
    Some(Chosen { name: name_of(location), why: why.to_owned(), place: location.place.clone() })
}

fn switch(site: &Site, server: u32, id: LocationIndex, caching: Option<&Caching>) -> Switch {
    let settings = &site.location(id).settings;
    let place = |names: &[&str]| written(site, server, id, names);
    let zoned = format!("{}cache", family(site, id));
    match (&settings.cache.zone, caching) {
        (ZoneUse::Off, None) => {
            let known = place(&PAGE_SWITCHES);
            let text = match known {
                Some(one) => format!("{} switches it off here", one.name),
                None => format!("no page_cache and no {zoned} holds here"),
            };
            Switch { text, place: known.map(|one| one.place.clone()), space: None }
        }
        (ZoneUse::Off, Some(_)) => {
            let known = place(&PAGE_SWITCHES);
            let mode = match settings.cache.page.mode {
                bolide_conf::model::PageMode::On => "on",
                bolide_conf::model::PageMode::Auto => "auto",
                bolide_conf::model::PageMode::Off => "off",
                bolide_conf::model::PageMode::Magento => "magento",
            };
            let by = known.map_or("page_cache", |one| one.name);
            let name = site.http().and_then(|http| http.servers.get(server as usize));
            Switch {
                text: format!("{by} ({mode})"),
                place: known.map(|one| one.place.clone()),
                space: name.map(|server| format!("vhost {}", server.primary_name)),
            }
        }
        (zone, _) => {
            let known = place(&[&zoned]);
            let zones = site.http().map_or(&[][..], |http| &http.cache_zones);
            let name = match zone {
                ZoneUse::Zone(id) => zones.get(id.index()).map(|zone| zone.name.to_string()),
                ZoneUse::Off | ZoneUse::Text(_) => None,
            };
            Switch {
                text: format!("{zoned} {}", name.as_deref().unwrap_or("by a variable")),
                place: known.map(|one| one.place.clone()),
                space: name.map(|name| format!("zone {name}")),
            }
        }
    }
}

impl crate::caching::CacheTransaction {
    /// The parts of the key, if one was built.
    fn key_parts(&self) -> Option<KeyParts> {
        let (keys, session) = self.names();
        let key = keys.public();
        (!key.url().is_empty()).then(|| KeyParts {
            url: key.url().to_vec(),
            vary: object::pieces(key.vary()),
            session: (!session.is_empty()).then(|| session.to_vec()),
            hash: key.hash(),
        })
    }
}
