//! `limit_rate` and `limit_rate_after` of a response, and delayed requests.

use bolide_conf::Template;

use super::{Exchange, ExchangeState, Rate};
use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

impl Exchange {
    /// The rate limit of the body, evaluated now. An invalid size is logged and means no limit.
    #[must_use]
    pub fn rate(&self, ctx: &mut StepCtx<'_>) -> Rate {
        let Some(site) = self.request.site.clone() else { return Rate::default() };
        let settings = &site.location(self.request.location).settings;
        let per_second = self.request.limit_rate.get().unwrap_or_else(|| {
            bytes(&self.request, &self.answer, settings.limit_rate.as_ref(), &site, ctx)
        });
        if per_second == 0 {
            return Rate::default();
        }
        Rate {
            since: self.request.started.mono,
            per_second,
            after: bytes(
                &self.request,
                &self.answer,
                settings.limit_rate_after.as_ref(),
                &site,
                ctx,
            ),
        }
    }
}

fn bytes(
    request: &Request,
    answer: &Answer,
    template: Option<&Template>,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> u64 {
    let Some(template) = template else { return 0 };
    let mut text = Vec::new();
    VariableScope::new(request, answer, site, ctx).expand(template, &mut text);
    let size = bolide_conf::value::size(&text);
    if size.is_none() {
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"invalid size \"");
            out.extend_from_slice(&text);
            out.push(b'"');
        });
    }
    size.unwrap_or(0)
}

impl Exchange {
    /// Whether [`Self::rate`] may be a limit. As in nginx, a tunnel has none.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        if self.answer.is_tunnel() {
            return false;
        }
        self.settings().is_some_and(|settings| settings.limit_rate.is_some())
            || self.request.limit_rate.get().is_some()
    }

    /// Whether the exchange waits only for a deadline.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        self.state == ExchangeState::Delaying
    }
}
