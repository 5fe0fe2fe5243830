//! `limit_req`, `limit_conn`, `limit_except`.
//!
//! A request is counted once, also after internal redirects. Easiest to break: a request that one
//! zone refuses is charged to no zone.

mod limited;

use std::time::Duration;

use bolide_conf::model::{Except, LimitKind, LimitRules, LimitTerms, LogLevel, RequestLimit};
use bolide_http::Method;
use bolide_http::digits::push_decimal;

use crate::answer::Answer;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::log_lines;
use crate::request::Request;
use crate::route::LocationIndex;
use crate::site::Site;
use crate::vars::VariableScope;
use bolide_limit::{LimitEntry, LimitHold, LimitPlace, LimitVerdict};

pub(crate) use limited::{LimitDetail, Limited};

/// The longest keys that are counted, as in nginx.
const REQUESTS_KEY_MAX: usize = 65_535;
const CONNECTIONS_KEY_MAX: usize = 255;

/// How far a request exceeds the rate of a limit.
#[derive(Clone, Copy)]
struct Excess {
    thousandths: u64,
    limit: RequestLimit,
    delay_ms: u64,
}

impl Exchange {
    /// The counts of the request; the hold lasts until the request ends.
    #[must_use]
    pub fn held(&self) -> LimitHold {
        self.request.limited.held.clone()
    }
}

/// Counts the request; returns the next step unless it may continue.
pub(crate) fn limit(
    request: &mut Request,
    answer: &mut Answer,
    limits: &LimitRules,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    // A trial is not counted.
    if request.is_dry() {
        return None;
    }
    if !limits.requests.is_empty() && request.limited.requests == LimitDetail::Nothing {
        let next = limit_requests(request, answer, limits, site, ctx);
        if next.is_some() {
            return next;
        }
    }
    if !limits.connections.is_empty() && request.limited.connections == LimitDetail::Nothing {
        return limit_connections(request, answer, limits, site, ctx);
    }
    None
}

impl Request {
    /// The location of a `limit_except` for methods other than those that it names.
    pub(crate) fn except(&self, except: &Except) -> Option<LocationIndex> {
        let sent = self.head();
        // After an error page the method counts as GET; subrequests are GET as well.
        let name: &[u8] = match (self.method, sent.method) {
            _ if self.role.auth().is_some() || self.role.part().is_some() => b"GET",
            (Method::Get, sent) if sent != Method::Get => b"GET",
            _ => &sent.method_text,
        };
        let named = except.methods.iter().any(|method| method.as_bytes() == name);
        (!named).then_some(except.location.0)
    }
}

fn limit_requests(
    request: &mut Request,
    answer: &mut Answer,
    limits: &LimitRules,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    let terms = limits.requests_terms;
    let now_ms = ctx.now.mono.as_nanos() / 1_000_000;
    let mut pinned: Vec<(RequestLimit, u32)> = Vec::new();
    let (mut counted, mut refused) = (None, None);
    for (at, limit) in limits.requests.iter().enumerate() {
        let Some(key) = key_of(request, answer, limit.zone.index(), REQUESTS_KEY_MAX, site, ctx)
        else {
            continue;
        };
        let is_last = at + 1 == limits.requests.len();
        let place = if is_last { LimitPlace::Last } else { LimitPlace::Inner };
        let zone = site.limit_zone(limit.zone);
        let verdict = zone.check_limit(&key, (rate(site, *limit), limit.burst), place, now_ms);
        answer.scratch = key;
        match verdict {
            LimitVerdict::Counted(excess) => counted = Some((*limit, excess)),
            LimitVerdict::Pinned(record) => pinned.push((*limit, record)),
            LimitVerdict::Busy(excess) => refused = Some((*limit, Some(excess))),
            LimitVerdict::Full => refused = Some((*limit, None)),
        }
        if refused.is_some() {
            break;
        }
    }
    if let Some((limit, excess)) = refused {
        debug_assert!(counted.is_none(), "a request that one zone refuses is charged to none");
        for (limit, record) in pinned {
            site.limit_zone(limit.zone).unpin(record);
        }
        return reject(request, limit, excess, terms, site, ctx);
    }
    let mut worst: Option<Excess> = None;
    let inner = pinned.iter().rev().map(|(limit, record)| {
        (*limit, site.limit_zone(limit.zone).charge(*record, rate(site, *limit), now_ms))
    });
    for (limit, thousandths) in counted.into_iter().chain(inner) {
        let ahead = thousandths.saturating_sub(limit.delay);
        let delay_ms = ahead.saturating_mul(1000) / rate(site, limit).max(1);
        if worst.is_none_or(|worst| delay_ms > worst.delay_ms) {
            worst = Some(Excess { thousandths, limit, delay_ms });
        }
    }
    hold_back(request, worst?, terms, site, ctx)
}

fn limit_connections(
    request: &mut Request,
    answer: &mut Answer,
    limits: &LimitRules,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    let terms = limits.connections_terms;
    for limit in &limits.connections {
        let Some(key) = key_of(request, answer, limit.zone.index(), CONNECTIONS_KEY_MAX, site, ctx)
        else {
            continue;
        };
        request.limited.connections = LimitDetail::Passed;
        let entry = site.limit_zone(limit.zone).enter(&key, limit.most);
        answer.scratch = key;
        let name = site.limit_zone_name(limit.zone);
        match entry {
            LimitEntry::Entered(ticket) => {
                request.limited.held.add(ticket);
                continue;
            }
            LimitEntry::Busy => {
                log_lines::error(request, site, ctx, terms.level, |out| {
                    out.extend_from_slice(b"limiting connections");
                    out.extend_from_slice(if terms.dry_run { b", dry run," } else { b"" });
                    out.extend_from_slice(b" by zone \"");
                    out.extend_from_slice(name);
                    out.push(b'"');
                });
            }
            LimitEntry::Full => {
                log_lines::error(request, site, ctx, LogLevel::Crit, |out| {
                    out.extend_from_slice(
                        b"ngx_slab_alloc() failed: no memory in limit_conn_zone \"",
                    );
                    out.extend_from_slice(name);
                    out.push(b'"');
                });
            }
        }
        request.limited.let_go();
        if terms.dry_run {
            request.limited.connections = LimitDetail::RejectedDryRun;
            return None;
        }
        request.limited.connections = LimitDetail::Rejected;
        return Some(NextStep::Fail(terms.status));
    }
    None
}

/// The key of a zone for this request, in the scratch buffer; none if it is not counted.
fn key_of(
    request: &Request,
    answer: &mut Answer,
    zone: usize,
    most: usize,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<Vec<u8>> {
    let zone = site.http()?.limit_zones.get(zone)?;
    let mut key = std::mem::take(&mut answer.scratch);
    key.clear();
    VariableScope::new(request, answer, site, ctx).expand(&zone.key, &mut key);
    if key.len() > most {
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"the value of the \"");
            out.extend_from_slice(&zone.key_text);
            out.extend_from_slice(b"\" key is more than ");
            push_decimal(out, most as u64);
            out.extend_from_slice(b" bytes: \"");
            out.extend_from_slice(&key);
            out.push(b'"');
        });
        key.clear();
    }
    if key.is_empty() {
        answer.scratch = key;
        return None;
    }
    Some(key)
}

/// The rate of a limit's zone.
fn rate(site: &Site, limit: RequestLimit) -> u64 {
    let zone = site.http().and_then(|http| http.limit_zones.get(limit.zone.index()));
    match zone.map(|zone| zone.kind) {
        Some(LimitKind::Requests { rate }) => rate,
        Some(LimitKind::Connections) | None => 0,
    }
}

/// The level of delay messages, if refusals are logged at `level`.
const fn below(level: LogLevel) -> LogLevel {
    match level {
        LogLevel::Error => LogLevel::Warn,
        LogLevel::Warn => LogLevel::Notice,
        _ => LogLevel::Info,
    }
}

/// `, excess: 1.016`
fn push_excess(out: &mut Vec<u8>, thousandths: u64) {
    out.extend_from_slice(b", excess: ");
    push_decimal(out, thousandths / 1000);
    let rest = (thousandths % 1000) as u16;
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.extend_from_slice(&[b'.', digit(rest / 100), digit(rest / 10), digit(rest)]);
}

/// Refuses a request that exceeds its rate by `excess`, or for which the zone has no memory.
fn reject(
    request: &mut Request,
    limit: RequestLimit,
    excess: Option<u64>,
    terms: LimitTerms,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    debug_assert_eq!(request.limited.requests, LimitDetail::Nothing, "a request is counted once");
    let name = site.limit_zone_name(limit.zone);
    match excess {
        Some(excess) => log_lines::error(request, site, ctx, terms.level, |out| {
            out.extend_from_slice(b"limiting requests");
            out.extend_from_slice(if terms.dry_run { b", dry run" } else { b"" });
            push_excess(out, excess);
            out.extend_from_slice(b" by zone \"");
            out.extend_from_slice(name);
            out.push(b'"');
        }),
        None => log_lines::error(request, site, ctx, LogLevel::Alert, |out| {
            out.extend_from_slice(b"could not allocate node in limit_req zone \"");
            out.extend_from_slice(name);
            out.push(b'"');
        }),
    }
    if terms.dry_run {
        request.limited.requests = LimitDetail::RejectedDryRun;
        return None;
    }
    request.limited.requests = LimitDetail::Rejected;
    Some(NextStep::Fail(terms.status))
}

/// Admits a request, now or after a delay.
fn hold_back(
    request: &mut Request,
    excess: Excess,
    terms: LimitTerms,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    debug_assert!(
        excess.delay_ms == 0 || excess.thousandths > excess.limit.delay,
        "only what is beyond the delay waits"
    );
    if excess.delay_ms == 0 {
        request.limited.requests = LimitDetail::Passed;
        return None;
    }
    let name = site.limit_zone_name(excess.limit.zone);
    log_lines::error(request, site, ctx, below(terms.level), |out| {
        out.extend_from_slice(b"delaying request");
        out.extend_from_slice(if terms.dry_run { b", dry run" } else { b"" });
        push_excess(out, excess.thousandths);
        out.extend_from_slice(b", by zone \"");
        out.extend_from_slice(name);
        out.push(b'"');
    });
    if terms.dry_run {
        request.limited.requests = LimitDetail::DelayedDryRun;
        return None;
    }
    request.limited.requests = LimitDetail::Delayed;
    request.limited.waits = true;
    let delay = Duration::from_millis(excess.delay_ms);
    ctx.effects.push(StepEffect::Deadline(ctx.now.mono.after(delay)));
    Some(NextStep::Delay)
}

/// The step after a delay.
pub(crate) const fn delayed(request: &mut Request) -> NextStep {
    if std::mem::replace(&mut request.limited.waits, false) {
        return NextStep::Step(RequestStep::Access);
    }
    request.arrival.refuse();
    NextStep::Fail(401)
}

#[cfg(test)]
mod tests {
    use bolide_conf::model::LogLevel;

    use super::{below, push_excess};

    #[test]
    fn an_excess_has_three_decimals() {
        let text = |excess| {
            let mut out = Vec::new();
            push_excess(&mut out, excess);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0), ", excess: 0.000");
        assert_eq!(text(12_034), ", excess: 12.034");
    }

    #[test]
    fn delays_are_logged_one_level_below_refusals() {
        let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Notice, LogLevel::Info];
        let below = levels.map(below);
        assert_eq!(below, [LogLevel::Warn, LogLevel::Notice, LogLevel::Info, LogLevel::Info]);
    }
}
