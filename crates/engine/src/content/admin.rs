//! `bolide_admin`: the state and decisions of the cache as JSON.
//!
//! Owns access (only where an `allow` names clients) and the arguments: `?explain=URL` (with
//! `method`, `cookie`, `header`, `from` and `listen`), `?request=ID`, or none for figures. Easiest
//! to break: without an `allow` every client is refused; and a trial waits for the disk as any
//! request does.

use bolide_conf::model::ServerId;
use bolide_conf::model::cache::is_allowed;
use bolide_http::Method;
use bytes::Bytes;

use crate::answer::Answer;
use crate::console::guard::is_own_name;
use crate::ctx::{ClientAddress, StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::explain::{ExplainTrial, ExplainUrl, Json, TrialProgress, machine, recent};
use crate::filter::headers::HeadDraft;
use crate::request::Request;
use crate::site::Site;

/// LIMIT: tags of a store up to which an explanation searches them within a turn.
const TAGS_MAX: u64 = 20_000;

/// A request to a location with `bolide_admin`.
pub(crate) struct AdminRequest<'a> {
    pub(crate) request: &'a Request,
    pub(crate) answer: &'a mut Answer,
    /// A trial that waits for a file lookup.
    pub(crate) trial: &'a mut Option<Box<ExplainTrial>>,
}

impl AdminRequest<'_> {
    pub(crate) fn answer(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let ip = match self.request.client(ctx.conn) {
            ClientAddress::Inet(addr) => Some(addr.ip()),
            ClientAddress::Unix => None,
        };
        if !is_allowed(&site.location(self.request.location).settings.access, ip) {
            return NextStep::Fail(403);
        }
        if !matches!(self.request.method, Method::Get | Method::Head) {
            return NextStep::Fail(405);
        }
        // A page of another site might read it in the browser of a client that is let in.
        let server = site.http().map(|http| http.server(ServerId(self.request.server)));
        let names = server.map_or(&[][..], |server| &server.names);
        if !is_own_name(self.request.asked_host(), names) {
            return NextStep::Fail(403);
        }
        if self.request.is_dry() {
            return self.send_json(200, &Json::Null, site, ctx);
        }
        let args = arguments(self.request.args());
        let value = |name: &str| args.iter().find(|arg| arg.0 == name.as_bytes());
        let all = |name: &str| {
            let named = args.iter().filter(|arg| arg.0 == name.as_bytes());
            named.map(|arg| &*arg.1).collect::<Vec<&[u8]>>()
        };
        if let Some((_, url)) = value("explain") {
            let text = |name: &str| value(name).map(|arg| &*arg.1);
            let asked = ExplainUrl {
                url,
                method: text("method"),
                cookies: all("cookie"),
                headers: all("header"),
                from: text("from"),
                listen: text("listen"),
            };
            return self.try_out(&asked, site, ctx);
        }
        let Some(store) = site.store() else {
            return self.send_json(404, &error("the server has no cache"), site, ctx);
        };
        let json = match value("request") {
            Some((_, id)) => {
                let id = String::from_utf8_lossy(id).to_ascii_lowercase();
                let found = recent(store, |one| one.id.starts_with(&id));
                Json::list(&found, |one| machine::decision(site, one))
            }
            None => machine::stats(store, &site.spaces()),
        };
        self.send_json(200, &json, site, ctx)
    }

    /// Continues the trial of this request, or begins it.
    fn try_out(&mut self, asked: &ExplainUrl<'_>, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        debug_assert!(!self.request.is_dry(), "a trial tries nothing out");
        // A trial that is left over belongs to another request.
        let left = self.trial.take().filter(|trial| trial.asked_by == self.request.id);
        let mut trial = match left {
            Some(trial) => trial,
            None => {
                let Some(own) = self.request.site.clone() else { return NextStep::Fail(500) };
                let question = match asked.question(site) {
                    Ok(question) => question,
                    Err(why) => {
                        return self.send_json(400, &error(&why), site, ctx);
                    }
                };
                let mut trial =
                    Box::new(ExplainTrial::new(own, question, ctx.now, ctx.clock.clone()));
                trial.asked_by = self.request.id;
                trial.with_tags = site.store().is_none_or(|store| store.stats().tags <= TAGS_MAX);
                trial
            }
        };
        let mut progress = trial.go_on(ctx.files);
        // A trial does not look on disk.
        while let TrialProgress::Recall(permit) = progress {
            trial.recalled(bolide_cache::Lookup::Miss(permit));
            progress = trial.go_on(ctx.files);
        }
        match progress {
            TrialProgress::Recall(_) => NextStep::Fail(500),
            TrialProgress::Probe(probe) => {
                ctx.effects.push(StepEffect::Probe(Box::new(probe)));
                *self.trial = Some(trial);
                NextStep::Probe(RequestStep::Content)
            }
            TrialProgress::Done(outcome) => {
                let json = machine::explanation_json(site, &trial.report(outcome));
                self.send_json(200, &json, site, ctx)
            }
        }
    }

    fn send_json(&mut self, status: u16, json: &Json, site: &Site, ctx: &StepCtx<'_>) -> NextStep {
        let text = json.line();
        let draft = HeadDraft { content_type: b"application/json", ..HeadDraft::default() };
        self.answer.fill(self.request, status, &draft, site, ctx);
        self.answer.head.fields.push(bolide_http::Name::CacheControl, b"no-store");
        self.answer.give_text(self.request, Bytes::from(text));
        NextStep::Respond
    }
}

fn error(text: &str) -> Json {
    Json::Object(vec![("error", Json::text(text))])
}

/// The arguments of a query, decoded.
pub(super) fn arguments(query: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let split = |arg: &[u8]| {
        let at = arg.iter().position(|byte| *byte == b'=').unwrap_or(arg.len());
        (decode(&arg[..at]), decode(arg.get(at + 1..).unwrap_or_default()))
    };
    query.split(|byte| *byte == b'&').filter(|arg| !arg.is_empty()).map(split).collect()
}

fn decode(text: &[u8]) -> Vec<u8> {
    let (mut rest, mut out) = (text, Vec::with_capacity(text.len()));
    while let Some((&byte, next)) = rest.split_first() {
        rest = next;
        let is_hex = |two: &&[u8]| byte == b'%' && two.iter().all(u8::is_ascii_hexdigit);
        let digits = next.get(..2).filter(is_hex);
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = &next[2..];
            }
            None => out.push(if byte == b'+' { b' ' } else { byte }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::arguments;

    #[test]
    fn arguments_are_decoded() {
        let read = arguments(b"explain=http%3A%2F%2Fa.test%2F%3Fx%3D1&cookie=a=b+c&&flag&bad=%z");
        let text: Vec<(String, String)> = read
            .into_iter()
            .map(|(a, b)| (String::from_utf8(a).unwrap(), String::from_utf8(b).unwrap()))
            .collect();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let expected = [
            pair("explain", "http://a.test/?x=1"),
            pair("cookie", "a=b c"),
            pair("flag", ""),
            pair("bad", "%z"),
        ];
        assert_eq!(text, expected);
    }
}
