//! `return`: texts, redirects and bare statuses.

use bolide_conf::model::{Return, ReturnBody};
use bytes::Bytes;

use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::exchange::client::send_continue_unread;
use crate::pages::is_redirect;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

impl Answer {
    /// Responds as a `return` says.
    pub(crate) fn returned(
        &mut self,
        request: &mut Request,
        returned: &Return,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        if returned.status < 400 || matches!(&returned.body, ReturnBody::Text(_)) {
            send_continue_unread(request, ctx);
            // As in nginx, an error page finds no request body any more.
            if !site.location(request.location).settings.error_pages.is_empty() {
                request.drop_body(ctx);
            }
        }
        match &returned.body {
            _ if returned.status == 444 => NextStep::CloseWithoutResponse(444),
            ReturnBody::None if matches!(returned.status, 408 | 499) => {
                NextStep::CloseWithoutResponse(returned.status)
            }
            ReturnBody::None if returned.status >= 400 => NextStep::Fail(returned.status),
            ReturnBody::None if is_redirect(returned.status) => {
                self.head.status = self.status_or(returned.status);
                self.location.clear();
                (self.location_origin, self.is_without_location) = (0, false);
                self.is_to_nowhere = true;
                NextStep::Redirect(returned.status)
            }
            ReturnBody::Text(text) if returned.status >= 400 && text.as_text() == Some(b"") => {
                NextStep::Fail(returned.status)
            }
            ReturnBody::None => self.text(request, returned.status, Bytes::new(), site, ctx),
            ReturnBody::Text(template) => {
                // As in nginx, the text may use `$status`.
                self.head.status = self.status_or(returned.status);
                let text = match template.as_text() {
                    // A vector of its own: texts are rare and small.
                    Some(text) => Bytes::copy_from_slice(text),
                    None => {
                        let mut out = Vec::new();
                        VariableScope::new(request, self, site, ctx).expand(template, &mut out);
                        Bytes::from(out)
                    }
                };
                self.text(request, returned.status, text, site, ctx)
            }
            ReturnBody::Location(template) => {
                self.head.status = self.status_or(returned.status);
                let mut target = std::mem::take(&mut self.scratch);
                target.clear();
                VariableScope::new(request, self, site, ctx).expand(template, &mut target);
                self.write_redirect(&target);
                self.scratch = target;
                NextStep::Redirect(returned.status)
            }
        }
    }

    /// Responds with a text of the type of the request's path.
    fn text(
        &mut self,
        request: &Request,
        status: u16,
        text: Bytes,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        let kinds = &site.location(request.location).kinds;
        let kind = kinds.of_path(&request.uri);
        self.send_text(request, kind, status, text, site, ctx)
    }
}
