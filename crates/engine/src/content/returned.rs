//! `return`: texts, redirects and bare statuses.

use bolide_conf::model::{Return, ReturnBody};
use bytes::Bytes;

use crate::ctx::StepCtx;
use crate::exchange::{Exchange, NextStep};
use crate::filter::headers::push_absolute;
use crate::pages::is_redirect;
use crate::site::Site;
use crate::vars::VariableScope;

impl Exchange {
    /// Answers as a `return` says.
    pub(crate) fn returned(
        &mut self,
        returned: &Return,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        match &returned.body {
            _ if returned.status == 444 => NextStep::CloseWithoutResponse(444),
            ReturnBody::None if matches!(returned.status, 408 | 499) => {
                NextStep::CloseWithoutResponse(returned.status)
            }
            ReturnBody::None if returned.status >= 400 => NextStep::Fail(returned.status),
            ReturnBody::None if is_redirect(returned.status) => {
                self.location.clear();
                NextStep::Redirect(returned.status)
            }
            ReturnBody::Text(text) if returned.status >= 400 && text.as_text() == Some(b"") => {
                NextStep::Fail(returned.status)
            }
            ReturnBody::None => self.text(returned.status, Bytes::new(), site, ctx),
            ReturnBody::Text(template) => {
                // As in nginx, the text may already speak of the status.
                self.answer.head.status = self.answer.status_or(returned.status);
                let text = match template.as_text() {
                    // A vector of its own: texts are rare and small.
                    Some(text) => Bytes::copy_from_slice(text),
                    None => {
                        let mut out = Vec::new();
                        VariableScope::new(&self.request, &self.answer, site, ctx)
                            .expand(template, &mut out);
                        Bytes::from(out)
                    }
                };
                self.text(returned.status, text, site, ctx)
            }
            ReturnBody::Location(template) => {
                let mut target = std::mem::take(&mut self.scratch);
                target.clear();
                VariableScope::new(&self.request, &self.answer, site, ctx)
                    .expand(template, &mut target);
                self.location.clear();
                push_absolute(
                    &VariableScope::new(&self.request, &self.answer, site, ctx),
                    &target,
                    &mut self.location,
                );
                self.scratch = target;
                NextStep::Redirect(returned.status)
            }
        }
    }

    /// Answers with a text of the type that the request's path has.
    fn text(&mut self, status: u16, text: Bytes, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let kinds = &site.location(self.request.location).kinds;
        let kind = kinds.of_path(&self.request.uri);
        self.send_text(kind, status, text, site, ctx)
    }
}
