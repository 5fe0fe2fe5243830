//! Variables whose values need a system call: `$realpath_root`, `$tcpinfo_*`; and `$limit_rate`.
//!
//! Resolves the root of a location only where a variable needs it.

use bolide_base::TcpInfo;

use super::preview::preview;
use super::{VariableScope, VariableValue, number, text};
use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::ctx::{StepCtx, StepEffect};
use crate::log_lines::push_errno;
use crate::request::Request;
use crate::request::RequestNote;
use crate::site::Site;

impl FileSearch {
    /// Resolves the root of the location, if a variable needs it; true if that has to be waited
    /// for.
    #[inline]
    pub(crate) fn resolve_root(
        &mut self,
        request: &mut Request,
        answer: &Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> bool {
        site.on_demand_vars().real_root && self.find_root(request, answer, site, ctx)
    }

    fn find_root(
        &mut self,
        request: &mut Request,
        answer: &Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> bool {
        let mut asked = std::mem::take(&mut self.path);
        asked.clear();
        let scope = VariableScope::new(request, answer, site, ctx);
        let location = scope.location();
        match location.fixed_root {
            Some(_) => scope.push_root(location, &mut asked),
            None => preview(&scope, |scope| scope.push_root(location, &mut asked)),
        }
        let real = &mut request.real_root;
        real.path.clear();
        let waits = match ctx.files.real.find(&asked, ctx.now.mono) {
            Some(Ok(path)) => {
                real.path.extend_from_slice(path);
                real.failed = 0;
                false
            }
            Some(Err(errno)) => {
                real.path.extend_from_slice(&asked);
                (real.failed, real.is_logged) = (*errno, std::cell::Cell::new(false));
                false
            }
            None => {
                ctx.effects.push(StepEffect::Resolve(asked[..].into()));
                true
            }
        };
        self.path = asked;
        waits
    }
}

impl VariableScope<'_> {
    /// Appends the resolved root of the location.
    pub(super) fn write_real_root(&self, out: &mut Vec<u8>) -> VariableValue {
        let real = &self.request.real_root;
        if real.failed == 0 {
            return text(out, &real.path);
        }
        if !real.is_logged.replace(true) {
            let mut line = b"realpath() \"".to_vec();
            line.extend_from_slice(&real.path);
            line.extend_from_slice(b"\" failed ");
            push_errno(&mut line, real.failed);
            self.request.notes.borrow_mut().push(RequestNote::Critical(line));
        }
        VariableValue::No
    }

    /// Appends a value of `TCP_INFO`.
    pub(super) fn tcp_figure(
        &self,
        figure: fn(&TcpInfo) -> u32,
        out: &mut Vec<u8>,
    ) -> VariableValue {
        match self.tcp {
            Some(tcp) => number(out, u64::from(figure(tcp))),
            None => VariableValue::No,
        }
    }

    /// `$limit_rate`: the assigned value; once the response is sent, the location's default.
    pub(super) fn limit_rate(&self) -> u64 {
        if let Some(rate) = self.request.limit_rate.get() {
            return rate;
        }
        match &self.location().settings.limit_rate {
            Some(rate) if self.answer.is_responded => {
                let mut text = Vec::new();
                self.expand(rate, &mut text);
                bolide_conf::value::size(&text).unwrap_or(0)
            }
            _ => 0,
        }
    }
}
