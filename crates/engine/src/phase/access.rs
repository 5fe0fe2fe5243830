//! Who may come in: limits first, then `allow`, `deny`, `auth_basic`, `auth_request`, put together
//! by `satisfy`.

use std::net::IpAddr;

use conf::model::{AccessRule, Level, Satisfy, Verdict, Who};

use super::auth::Answer;
use crate::ctx::{Ctx, Effect, Peer};
use crate::exchange::{Exchange, Next};
use crate::record;
use crate::site::{Location, Site};

impl Exchange {
    /// Makes the checks that the location asks for, in nginx's order.
    #[inline]
    pub(crate) fn admit(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let location = site.location(self.request.location);
        if !location.guarded {
            return Self::admitted(location);
        }
        let next = self.check_access(location, site, ctx);
        if matches!(next, Next::Fail(_)) {
            self.request.arrival.refuse();
        }
        next
    }

    fn check_access(&mut self, location: &Location, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        self.find_client(site, ctx);
        if location.turns_on_client {
            self.request.is_straight = false;
            self.request.arrival.bend();
        }
        if !location.keeps_out {
            return Self::admitted(location);
        }
        self.request.is_straight = false;
        if let Some(verdict) = self.verdict.take() {
            return self.heed(*verdict, location, site, ctx);
        }
        if !location.settings.limits.is_empty()
            && let Some(next) = self.limit(&location.settings.limits, site, ctx)
        {
            return next;
        }
        if self.is_question() {
            return Self::admitted(location);
        }
        if self.request.inclusion.is_some() {
            // As in nginx, whoever may have a page may have all of it; but what others would have
            // been refused is kept for nobody else.
            self.request.is_vouched_for = true;
            return Self::admitted(location);
        }
        let asks = location.settings.auth_request.uri.is_some();
        let verdict = judge(&location.settings.access, self.request.client(ctx.conn));
        let any = location.settings.satisfy == Satisfy::Any;
        match verdict {
            Some(Verdict::Allow) if any => return self.satisfied(site),
            Some(Verdict::Deny) if !any => return self.forbid(site, ctx),
            _ => {}
        }
        let denied = verdict == Some(Verdict::Deny);
        match self.authenticate(site, ctx) {
            Answer::Wait(next) => next,
            Answer::Passed if any => self.satisfied(site),
            Answer::Passed | Answer::NotAsked if asks => Self::ask_whether(ctx),
            Answer::Refused(401 | 403) if any && asks => Self::ask_whether(ctx),
            Answer::NotAsked if denied => self.forbid(site, ctx),
            Answer::Passed | Answer::NotAsked => Self::admitted(location),
            Answer::Refused(403) if any => self.forbid(site, ctx),
            Answer::Refused(401) => self.refuse_stranger(location, site, ctx),
            Answer::Refused(status) => Next::Fail(status),
        }
    }

    /// Refuses who gave no right password; by `auth_delay` not at once.
    pub(super) fn refuse_stranger(
        &self,
        location: &Location,
        site: &Site,
        ctx: &mut Ctx<'_>,
    ) -> Next {
        let delay = location.settings.auth_delay;
        if delay.is_zero() {
            return Next::Fail(401);
        }
        record::error(&self.request, site, ctx, Level::Info, |out| {
            out.extend_from_slice(b"delaying unauthorized request");
        });
        ctx.effects.push(Effect::Deadline(ctx.now.mono.after(delay)));
        Next::Delay
    }

    /// One check is enough and was passed: no password is asked for.
    pub(super) fn satisfied(&mut self, site: &Site) -> Next {
        self.challenge.clear();
        Self::admitted(site.location(self.request.location))
    }

    pub(super) fn forbid(&self, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        self.log_error(site, ctx, |out| {
            out.extend_from_slice(b"access forbidden by rule");
        });
        Next::Fail(403)
    }
}

/// What the first rule that is about `peer` says.
fn judge(rules: &[AccessRule], peer: Peer) -> Option<Verdict> {
    let ip: Option<IpAddr> = match peer {
        Peer::Inet(addr) => Some(addr.ip().to_canonical()),
        Peer::Unix => None,
    };
    let rule = rules.iter().find(|rule| match (rule.who, ip) {
        (Who::All, _) | (Who::Unix, None) => true,
        (Who::Network(network), Some(ip)) => network.contains(ip),
        (Who::Unix, Some(_)) | (Who::Network(_), None) => false,
    });
    rule.map(|rule| rule.verdict)
}

#[cfg(test)]
mod tests {
    use conf::model::{AccessRule, Network, Verdict, Who};

    use super::judge;
    use crate::ctx::Peer;

    #[test]
    fn the_first_rule_about_a_client_decides() {
        let v4 = |net: [u8; 4], mask: [u8; 4]| Who::Network(Network::V4(net.into(), mask.into()));
        let rule = |who, verdict| AccessRule { who, verdict };
        let v6 = Network::V6("2001:db8::".parse().unwrap(), "ffff:ffff::".parse().unwrap());
        let rules = [
            rule(v4([192, 0, 2, 7], [255; 4]), Verdict::Deny),
            rule(v4([192, 0, 2, 0], [255, 255, 255, 0]), Verdict::Allow),
            rule(Who::Network(v6), Verdict::Allow),
            rule(Who::Unix, Verdict::Allow),
        ];
        let of = |text: &str| judge(&rules, Peer::Inet(text.parse().unwrap()));
        assert_eq!(of("192.0.2.7:1"), Some(Verdict::Deny));
        assert_eq!(of("192.0.2.8:1"), Some(Verdict::Allow));
        assert_eq!(of("[::ffff:192.0.2.7]:1"), Some(Verdict::Deny));
        assert_eq!(of("[2001:db8::1]:1"), Some(Verdict::Allow));
        assert_eq!(of("198.51.100.1:1"), None);
        assert_eq!(judge(&rules, Peer::Unix), Some(Verdict::Allow));
        let last = [rule(Who::All, Verdict::Deny)];
        assert_eq!(judge(&last, Peer::Unix), Some(Verdict::Deny));
    }
}
