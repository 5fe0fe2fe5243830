//! The access phase: limits first, then `allow`, `deny`, `auth_basic`, `auth_request`, combined by
//! `satisfy`.

use bolide_conf::model::{AccessRule, AccessVerdict, LogLevel, Satisfy};

use super::auth::AuthAnswer;
use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::ctx::{ClientAddress, StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::log_lines;
use crate::phase::auth_request::ask_whether;
use crate::phase::checks::AccessChecks;
use crate::phase::limits::limit;
use crate::phase::real_ip::find_client;
use crate::request::Request;
use crate::route::Precontent;
use crate::site::{CompiledLocation, Site};

impl AccessChecks {
    /// Runs the location's checks in nginx's order.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        search: &mut FileSearch,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        if !location.guarded {
            return admitted(location);
        }
        let next = self.check_access(request, answer, search, location, site, ctx);
        if matches!(next, NextStep::Fail(_)) {
            request.arrival.refuse();
        }
        next
    }

    fn check_access(
        &mut self,
        request: &mut Request,
        answer: &mut Answer,
        search: &mut FileSearch,
        location: &CompiledLocation,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        find_client(request, site, ctx);
        if location.selects_by_client {
            request.is_straight = false;
            request.arrival.bend();
        }
        if !location.may_refuse {
            return admitted(location);
        }
        request.is_straight = false;
        if asks_who(location) {
            // Applications may decide by more than the location: that check is no other request's.
            let place = match location.settings.auth_request.uri {
                Some(_) => request.id[1],
                None => request.location.into(),
            };
            request.arrival.check_at(place);
        }
        if let Some(verdict) = self.verdict.take() {
            return answer.heed(request, *verdict, location, site, ctx);
        }
        if !location.settings.limits.is_empty()
            && let Some(next) = limit(request, answer, &location.settings.limits, site, ctx)
        {
            return next;
        }
        if request.role.auth().is_some() || request.role.mirrored().is_some() {
            return admitted(location);
        }
        if request.role.part().is_some() {
            vouch_for_part(request);
            return admitted(location);
        }
        let asks = location.settings.auth_request.uri.is_some();
        let verdict = judge(&location.settings.access, request.client(ctx.conn));
        let any = location.settings.satisfy == Satisfy::Any;
        match verdict {
            Some(AccessVerdict::Allow) if any => return answer.satisfied(request, site),
            Some(AccessVerdict::Deny) if !any => return forbid(request, site, ctx),
            _ => {}
        }
        let denied = verdict == Some(AccessVerdict::Deny);
        let outcome = self.authenticate(request, answer, search, site, ctx);
        if matches!(outcome, AuthAnswer::Passed) {
            request.password_right_in = Some(request.location);
        }
        match outcome {
            AuthAnswer::Wait(next) => next,
            AuthAnswer::Passed if any => answer.satisfied(request, site),
            AuthAnswer::Passed | AuthAnswer::NotAsked if asks => ask_whether(ctx),
            AuthAnswer::Refused(401 | 403) if any && asks => ask_whether(ctx),
            AuthAnswer::NotAsked if denied => forbid(request, site, ctx),
            AuthAnswer::Passed | AuthAnswer::NotAsked => admitted(location),
            AuthAnswer::Refused(403) if any => forbid(request, site, ctx),
            AuthAnswer::Refused(401) => refuse_stranger(request, location, site, ctx),
            AuthAnswer::Refused(status) => NextStep::Fail(status),
        }
    }
}

impl Answer {
    /// `satisfy any`, and one check has passed: no password is requested.
    pub(super) fn satisfied(&mut self, request: &Request, site: &Site) -> NextStep {
        self.challenge.clear();
        admitted(site.location(request.location))
    }
}

/// As in nginx, access to a page includes its parts; but a response that others would be refused is
/// not stored for them.
pub(crate) const fn vouch_for_part(request: &mut Request) {
    if request.role.part().is_some() {
        request.is_authorized = true;
    }
}

/// The step after the access phase.
pub(crate) const fn admitted(location: &CompiledLocation) -> NextStep {
    before_content(location.precontent)
}

const fn before_content(precontent: Precontent) -> NextStep {
    match precontent {
        Precontent::Nothing => NextStep::Step(RequestStep::Content),
        Precontent::Mirrors => NextStep::Step(RequestStep::Mirror),
        Precontent::Files | Precontent::FilesAndMirrors => NextStep::Step(RequestStep::TryFiles(0)),
        Precontent::Htaccess => NextStep::Step(RequestStep::Htaccess),
    }
}

/// The step after `.htaccess` files.
pub(crate) const fn beyond_htaccess(location: &CompiledLocation) -> NextStep {
    match location.htaccess {
        Some(precontent) => before_content(precontent),
        None => NextStep::Step(RequestStep::Content),
    }
}

/// The step after `try_files` has found a file.
pub(crate) const fn found(location: &CompiledLocation) -> NextStep {
    let precontent = match location.htaccess {
        Some(precontent) => precontent,
        None => location.precontent,
    };
    match precontent {
        Precontent::Mirrors | Precontent::FilesAndMirrors => NextStep::Step(RequestStep::Mirror),
        Precontent::Nothing | Precontent::Files | Precontent::Htaccess => {
            NextStep::Step(RequestStep::Content)
        }
    }
}

/// Whether a location admits some clients only.
fn asks_who(location: &CompiledLocation) -> bool {
    let settings = &location.settings;
    !settings.access.is_empty()
        || settings.auth_request.uri.is_some()
        || settings.auth_basic.is_some()
}

/// The verdict of the first rule that matches `peer`.
fn judge(rules: &[AccessRule], peer: ClientAddress) -> Option<AccessVerdict> {
    AccessRule::first_for(rules, peer.ip()).map(|rule| rule.verdict)
}

/// Refuses a client without a right password, after `auth_delay`.
pub(crate) fn refuse_stranger(
    request: &Request,
    location: &CompiledLocation,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    let delay = location.settings.auth_delay;
    if delay.is_zero() {
        return NextStep::Fail(401);
    }
    log_lines::error(request, site, ctx, LogLevel::Info, |out| {
        out.extend_from_slice(b"delaying unauthorized request");
    });
    ctx.effects.push(StepEffect::Deadline(ctx.now.mono.after(delay)));
    NextStep::Delay
}

pub(crate) fn forbid(request: &Request, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"access forbidden by rule");
    });
    NextStep::Fail(403)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use bolide_conf::model::{AccessRule, AccessVerdict, Network, Who};

    use super::judge;
    use crate::ctx::ClientAddress;

    #[test]
    fn the_first_rule_about_a_client_decides() {
        let v4 = |net: [u8; 4], mask: [u8; 4]| Who::Network(Network::V4(net.into(), mask.into()));
        let rule = |who, verdict| AccessRule { who, verdict };
        let v6 = Network::V6("2001:db8::".parse().unwrap(), "ffff:ffff::".parse().unwrap());
        let rules = [
            rule(v4([192, 0, 2, 7], [255; 4]), AccessVerdict::Deny),
            rule(v4([192, 0, 2, 0], [255, 255, 255, 0]), AccessVerdict::Allow),
            rule(Who::Network(v6), AccessVerdict::Allow),
            rule(Who::Unix, AccessVerdict::Allow),
        ];
        let of = |text: &str| judge(&rules, ClientAddress::Inet(text.parse().unwrap()));
        assert_eq!(of("192.0.2.7:1"), Some(AccessVerdict::Deny));
        assert_eq!(of("192.0.2.8:1"), Some(AccessVerdict::Allow));
        assert_eq!(of("[::ffff:192.0.2.7]:1"), Some(AccessVerdict::Deny));
        assert_eq!(of("[2001:db8::1]:1"), Some(AccessVerdict::Allow));
        assert_eq!(of("198.51.100.1:1"), None);
        assert_eq!(judge(&rules, ClientAddress::Unix), Some(AccessVerdict::Allow));
        // Without rules about IPv4, those about IPv6 decide.
        let mapped = Network::V6("::ffff:192.0.2.0".parse().unwrap(), Ipv6Addr::from_bits(!0xff));
        let v6_only = [rule(Who::Network(mapped), AccessVerdict::Deny)];
        let ip = |text: &str| ClientAddress::Inet(text.parse().unwrap());
        assert_eq!(judge(&v6_only, ip("[::ffff:192.0.2.7]:1")), Some(AccessVerdict::Deny));
        assert_eq!(judge(&v6_only, ip("[::ffff:192.0.3.7]:1")), None);
        assert_eq!(judge(&v6_only, ip("192.0.2.7:1")), None);
        let last = [rule(Who::All, AccessVerdict::Deny)];
        assert_eq!(judge(&last, ClientAddress::Unix), Some(AccessVerdict::Deny));
    }
}
