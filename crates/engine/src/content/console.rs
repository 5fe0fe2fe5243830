//! `bolide_console`: the status page, its assets, its data and its actions.
//!
//! Owns the names below the location: the page, `status.json`, the assets.
//! `crates/engine/src/console/guard.rs` decides about access.

use std::net::IpAddr;

use bolide_conf::model::{ConsoleGuard, Matcher, ServerId, VerifyClient};
use bolide_http::{HttpVersion, Method, Name};
use bytes::Bytes;

use crate::answer::Answer;
use crate::console::assets::{ACTS_MARK, FIELDS, PAGE, TOKEN_MARK, asset};
use crate::console::guard::{ConsoleRights, ConsoleVisitor};
use crate::console::{ConsoleAction, ConsoleOutcome, StatusWorkers, status};
use crate::content::admin::arguments;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep};
use crate::explain::Json;
use crate::request::Request;
use crate::site::Site;

/// The type of data and of replies to actions.
const JSON: &str = "application/json";

/// A request to a location with `bolide_console`.
pub(crate) struct ConsoleRequest<'a> {
    pub(crate) request: &'a Request,
    pub(crate) answer: &'a mut Answer,
}

impl<'a> ConsoleRequest<'a> {
    /// Borrows what it needs of an exchange.
    pub(crate) const fn of(exchange: &'a mut Exchange) -> Self {
        let Exchange { request, answer, .. } = exchange;
        Self { request, answer }
    }
}

impl ConsoleRequest<'_> {
    pub(crate) fn answer(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        // Only the fields of a client's own request count.
        if self.request.role.is_subrequest() {
            return NextStep::Fail(403);
        }
        if self.request.is_dry() {
            return self.send(200, PAGE.media, Bytes::new(), site, ctx);
        }
        let rights = self.visitor(site, ctx).rights();
        if let ConsoleRights::None(why) = rights {
            self.log_refusal(why, site, ctx);
            return NextStep::Fail(403);
        }
        match self.request.method {
            Method::Get | Method::Head => self.show(rights, site, ctx),
            Method::Post => self.act(rights, site, ctx),
            _ => NextStep::Fail(405),
        }
    }

    /// Serves the page, its assets, or its data.
    fn show(&mut self, rights: ConsoleRights, site: &Site, ctx: &StepCtx<'_>) -> NextStep {
        match self.name(site) {
            b"" => {
                let acts = if rights == ConsoleRights::Act { "yes" } else { "no" };
                let page = PAGE.text.replacen(ACTS_MARK, acts, 1);
                let page = page.replacen(TOKEN_MARK, site.figures().token(), 1);
                self.send(200, PAGE.media, Bytes::from(page), site, ctx)
            }
            b"status.json" => {
                let Some(own) = &self.request.site else { return NextStep::Fail(500) };
                let json = status(own, ctx.counters, ctx.now, StatusWorkers::Counted);
                self.send(200, JSON, Bytes::from(json.line()), site, ctx)
            }
            name => match asset(name) {
                Some(asset) => self.send(
                    200,
                    asset.media,
                    Bytes::from_static(asset.text.as_bytes()),
                    site,
                    ctx,
                ),
                None => NextStep::Fail(404),
            },
        }
    }

    /// Sends an action to the control thread.
    fn act(&mut self, rights: ConsoleRights, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        debug_assert!(!self.request.is_dry(), "a trial does nothing");
        let words = arguments(self.request.args());
        let Some(action) = ConsoleAction::read(self.name(site), &words) else {
            return NextStep::Fail(405);
        };
        let authority = &self.request.head().authority;
        let token = site.figures().token().as_bytes();
        let forgery = self.visitor(site, ctx).forgery(authority, token);
        let refusal = match rights {
            ConsoleRights::Act => forgery,
            ConsoleRights::See | ConsoleRights::None(_) => {
                Some("only clients of this machine, and those that prove who they are, may do that")
            }
        };
        if let Some(why) = refusal {
            self.log_refusal(why, site, ctx);
            return self.send_json(403, "error", why, site, ctx);
        }
        match action {
            Ok(action) => {
                ctx.effects.push(StepEffect::Command(Box::new(action)));
                NextStep::Command
            }
            Err(why) => self.send_json(400, "error", why, site, ctx),
        }
    }

    /// Answers with the result of an action.
    pub(crate) fn report(
        &mut self,
        outcome: &ConsoleOutcome,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        match outcome {
            Ok(done) => self.send_json(200, "said", done, site, ctx),
            Err(why) => self.send_json(409, "error", why, site, ctx),
        }
    }

    fn log_refusal(&self, why: &str, site: &Site, ctx: &mut StepCtx<'_>) {
        self.request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"the console is not for this request: ");
            out.extend_from_slice(why.as_bytes());
        });
    }

    /// The path below the location.
    fn name(&self, site: &Site) -> &[u8] {
        let conf = site.http().and_then(|http| {
            let location = http.locations.get(self.request.location as usize)?;
            match &location.matcher {
                Matcher::Prefix { path, .. } => Some(&**path),
                _ => None,
            }
        });
        let uri = &self.request.uri;
        // A request that an internal redirect brought here under another name asks for an unknown
        // file.
        conf.and_then(|prefix| uri.strip_prefix(prefix)).unwrap_or(b"?")
    }

    fn visitor<'a>(&'a self, site: &'a Site, ctx: &StepCtx<'_>) -> ConsoleVisitor<'a> {
        let server = site.http().map(|http| http.server(ServerId(self.request.server)));
        // Client certificates are requested in handshakes only.
        let verify = match (server, &ctx.conn.tls) {
            (Some(server), Some(_)) => server.tls.verify_client,
            _ => VerifyClient::Off,
        };
        let is_local = |ip: IpAddr| ip.to_canonical().is_loopback();
        let is_old =
            matches!(self.request.head().version, HttpVersion::Http09 | HttpVersion::Http10);
        let settings = &site.location(self.request.location).settings;
        ConsoleVisitor {
            guard: ConsoleGuard::of(settings, verify),
            ip: self.request.client(ctx.conn).ip(),
            is_direct: ctx.conn.remote.ip().is_some_and(is_local)
                && ctx.conn.relay.is_direct()
                && !is_old,
            host: self.request.asked_host(),
            names: server.map_or(&[][..], |server| &server.names),
            fields: &self.request.head().fields,
        }
    }

    fn send_json(
        &mut self,
        status: u16,
        name: &'static str,
        text: &str,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        let json = Json::Object(vec![(name, Json::text(text))]);
        self.send(status, JSON, Bytes::from(json.line()), site, ctx)
    }

    fn send(
        &mut self,
        status: u16,
        media: &str,
        text: Bytes,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        let settings = &site.location(self.request.location).settings;
        // Compression depends on the type without its parameters.
        let plain = media.split(';').next().unwrap_or(media).as_bytes();
        let mut kind = crate::media_types::kind(settings, &plain.into());
        (kind.value, kind.charset_varies) = (media.as_bytes().into(), false);
        let next = self.answer.send_text(self.request, &kind, status, text, site, ctx);
        if matches!(next, NextStep::Respond) {
            for (name, value) in FIELDS {
                let known = Name::parse(name.as_bytes());
                self.answer.head.fields.remove_text(name.as_bytes());
                self.answer.head.fields.push_parsed(known, name.as_bytes(), value.as_bytes());
            }
        }
        next
    }
}
