//! Checks responses. A response is right if the same server without a cache would have sent one for
//! the same request, with the same audience, way and address, and if no purge hit it.
//!
//! The oracle does not know which server caches which response, or why.

use std::collections::{BTreeMap, BTreeSet};

use super::{AudienceApp, Play, VisitorAsk};

/// A response as the client receives it.
#[derive(Clone, Debug, Default)]
pub struct VisitSeen {
    /// The status.
    pub status: u16,
    /// Names in lower case, and values.
    pub fields: Vec<(String, String)>,
    /// The decoded body.
    pub body: String,
}

impl VisitSeen {
    fn field(&self, wanted: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value)
    }
}

/// A purged address, and the number of the last response before the purge.
#[derive(Clone, Debug)]
struct PurgedUrl {
    host: String,
    url: String,
    last: usize,
}

/// The oracle of one run.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// The application.
    pub app: AudienceApp,
    purges: Vec<PurgedUrl>,
    /// Entity tags by address.
    tags: BTreeMap<(String, String), String>,
    /// Cookies that were set.
    cookies: BTreeSet<String>,
    /// Right responses that were made for an earlier request.
    pub from_cache: usize,
}

impl Oracle {
    /// The oracle of this run.
    #[must_use]
    pub fn new(play: &Play) -> Self {
        Self {
            app: AudienceApp::new(&play.site),
            purges: Vec::new(),
            tags: BTreeMap::new(),
            cookies: BTreeSet::new(),
            from_cache: 0,
        }
    }

    /// The number of responses of the application.
    #[must_use]
    pub fn responses_made(&self) -> usize {
        self.app.marks.len()
    }

    /// The request to send: a returning client adds its validators.
    #[must_use]
    pub fn add_validators(&self, ask: &VisitorAsk) -> VisitorAsk {
        let mut ask = ask.clone();
        let (host, path) = ask.address();
        if ask.revisits
            && let Some(tag) = self.tags.get(&(host, path.to_owned()))
        {
            ask.fields.push(("If-None-Match", tag.clone()));
        }
        ask
    }

    /// Checks a response to `ask`, which was sent when the application had made `since` responses.
    /// `wanted` is the response to the plain request without a cache.
    ///
    /// # Errors The fault as text.
    pub fn check(
        &mut self,
        ask: &VisitorAsk,
        since: usize,
        seen: &VisitSeen,
        wanted: &VisitSeen,
    ) -> Result<(), String> {
        let (host, path) = ask.address();
        let (host, path) = (host, path.to_owned());
        if ask.method == "PURGE" {
            if seen.status == 200 && seen.field("x-purged-objects").is_some() {
                self.purges.push(PurgedUrl { host, url: path, last: since });
            }
            return Ok(());
        }
        let mark = match seen.status {
            304 => seen.field("etag").map(|tag| tag.trim_start_matches("W/").trim_matches('"')),
            416 if ask.field("Range").is_some() => return Ok(()),
            504 if ask.field("Cache-Control").is_some() => return Ok(()),
            _ => seen.field("x-stamp"),
        };
        let mark = match mark.map(str::parse::<usize>) {
            Some(Ok(number)) => Some(number),
            // The entity tag of a file is not the application's.
            Some(Err(_)) | None => None,
        };
        let status = if matches!(seen.status, 206 | 304) { 200 } else { seen.status };
        let found = mark.map(|number| self.dependencies(number));
        let right = wanted.field("x-stamp").and_then(|text| text.parse().ok());
        let right = right.map(|number| self.dependencies(number));
        if status != wanted.status || found != right {
            return Err(format!(
                "status {} made for {found:?}, not {} for {right:?}",
                seen.status, wanted.status
            ));
        }
        for name in ["location", "access-control-allow-origin"] {
            let (given, right) = (seen.field(name), wanted.field(name));
            if seen.status != 304
                && given.map(|text| self.plain(text)) != right.map(|text| self.plain(text))
            {
                return Err(format!("{name}: {given:?}, not {right:?}"));
            }
        }
        self.check_body(ask, mark, seen, wanted)?;
        self.check_age(&(host.clone(), path.clone()), since, mark, seen)?;
        if let Some(cookie) = seen.field("set-cookie")
            && !self.cookies.insert(cookie.to_owned())
        {
            return Err(format!("the cookie {cookie} belongs to another client"));
        }
        if let Some(tag) = seen.field("etag") {
            self.tags.insert((host, path), tag.to_owned());
        }
        self.from_cache += usize::from(mark.is_some_and(|number| number < since));
        Ok(())
    }

    fn check_body(
        &self,
        ask: &VisitorAsk,
        mark: Option<usize>,
        seen: &VisitSeen,
        wanted: &VisitSeen,
    ) -> Result<(), String> {
        if ask.is_head() || seen.status == 304 {
            return Ok(());
        }
        if seen.status == 206 {
            let whole = mark.and_then(|number| self.app.marks.get(number));
            let whole = whole.map_or(&*wanted.body, |mark| &*mark.body);
            return match whole.contains(&seen.body) {
                true => Ok(()),
                false => Err(format!("no part of the answer: {}", self.plain(&seen.body))),
            };
        }
        let (given, right) = (self.plain(&seen.body), self.plain(&wanted.body));
        match given == right {
            true => Ok(()),
            false => Err(format!("body {given}\nnot {right}")),
        }
    }

    /// Whether a part of a response was purged before its request.
    fn check_age(
        &self,
        address: &(String, String),
        since: usize,
        mark: Option<usize>,
        seen: &VisitSeen,
    ) -> Result<(), String> {
        let numbers = numbers(&seen.body).into_iter().chain(mark);
        for number in numbers.filter(|number| *number < since) {
            let Some(made) = self.app.marks.get(number) else { continue };
            let is_own = |purge: &&PurgedUrl| {
                let is_page = mark == Some(number) && purge.url == address.1;
                made.is_reached && purge.host == address.0 && (is_page || purge.url == made.url)
            };
            if let Some(purge) = self.purges.iter().filter(is_own).find(|f| number < f.last) {
                return Err(format!("{} came back after {purge:?}", self.dependencies(number)));
            }
            for (server, tag, last) in &self.app.purged {
                let Some((own, tagged)) = &made.tag else { continue };
                if own == server && (tag == "*" || tag == tagged) && number < *last && *last < since
                {
                    return Err(format!("{} came back after tag {tag}", self.dependencies(number)));
                }
            }
        }
        Ok(())
    }

    /// The dependencies of a response.
    fn dependencies(&self, number: usize) -> String {
        let mark = self.app.marks.get(number);
        mark.map_or_else(|| "unknown".to_owned(), |mark| mark.dependencies.clone())
    }

    /// The text with dependencies in place of the numbers of marks.
    fn plain(&self, text: &str) -> String {
        let mut plain = String::new();
        let mut parts = text.split("[#");
        plain.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (number, rest) = part.split_once(']').unwrap_or((part, ""));
            plain.push('[');
            plain.push_str(
                &number.parse().map_or_else(|_| number.to_owned(), |n| self.dependencies(n)),
            );
            plain.push(']');
            plain.push_str(rest);
        }
        plain
    }
}

/// The numbers of the marks in a body.
fn numbers(text: &str) -> Vec<usize> {
    let parts = text.split("[#").skip(1);
    parts.filter_map(|part| part.split(']').next()?.parse().ok()).collect()
}
