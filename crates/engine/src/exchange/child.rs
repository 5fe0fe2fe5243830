//! A subrequest from the view of its parent, once its head is known.
//!
//! Read-only: it exposes what the parent may learn.

use std::sync::Arc;

use bolide_cache::Object;
use bolide_http::Name;

use crate::answer::{Answer, AnswerBody, BytesFrom};
use crate::caching::CacheTransaction;
use crate::caching::shortcut::OpenShortcut;
use crate::content::parts::PartHead;
use crate::ctx::StepCtx;
use crate::filter::slice::is_next_slice;
use crate::request::Request;
use crate::subrequest::{AuthVerdict, CombinedHead};
use crate::vars::VariableScope;

/// A subrequest from the view of its parent; see [`super::Exchange::as_child`].
#[derive(Clone, Copy, Debug)]
pub struct SubrequestChild<'a> {
    pub(super) request: &'a Request,
    pub(super) answer: &'a Answer,
    pub(super) cache: &'a CacheTransaction,
}

impl SubrequestChild<'_> {
    /// Whether it is a part by SSI or `addition`, not a fragment of an ESI page.
    #[must_use]
    pub const fn is_part(&self) -> bool {
        self.request.role.part().is_some()
    }

    /// What the including page learns of this part.
    pub fn head_for_page(&self, ctx: &mut StepCtx<'_>) -> Option<Box<PartHead>> {
        PartHead::of(self.request, self.answer, ctx).map(Box::new)
    }

    /// Bytes of the body that were pulled.
    #[must_use]
    pub const fn body_sent(&self) -> u64 {
        self.answer.body_sent
    }

    /// Whether this response may be included in the page; to be checked when its head is there.
    #[must_use]
    pub fn is_good_fragment(&self) -> bool {
        let head = &self.answer.head;
        let is_plain = head.fields.get(Name::ContentEncoding).is_none();
        (200..300).contains(&head.status) && head.status != 206 && is_plain
    }

    /// What a page has to know of a response that contains several of its fragments, if this is
    /// one.
    #[must_use]
    pub fn combined_head(&self) -> Option<CombinedHead> {
        CombinedHead::of(self.request, self.answer, self.cache)
    }

    /// The cookies that this response sets.
    #[must_use]
    pub fn cookies_set(&self) -> Vec<Vec<u8>> {
        self.answer.head.fields.all(Name::SetCookie).map(<[u8]>::to_vec).collect()
    }

    /// The cached object that is the whole response, if there is one.
    #[must_use]
    pub fn whole_object(&self) -> Option<Arc<Object>> {
        let object = self.answer.object.as_ref()?;
        let is_whole = match &self.answer.body {
            AnswerBody::Span(BytesFrom::Memory(_) | BytesFrom::Object(_), span) => {
                span.at == 0 && span.end == object.body_len()
            }
            AnswerBody::Empty => object.body_len() == 0,
            _ => false,
        };
        is_whole.then(|| object.clone())
    }

    /// Whether it is an authorization subrequest.
    #[must_use]
    pub const fn is_auth(&self) -> bool {
        self.request.role.auth().is_some()
    }

    /// For a slice whose head is there: whether it is the requested range of the same
    /// representation.
    pub fn is_next_slice(&self, ctx: &mut StepCtx<'_>) -> Option<bool> {
        let site = self.request.site.clone()?;
        is_next_slice(self.request, self.answer, &site, ctx)
    }

    /// The verdict of an authorization subrequest whose head is there.
    pub fn verdict(&self, ctx: &StepCtx<'_>) -> Option<Box<AuthVerdict>> {
        let site = self.request.site.clone()?;
        let rule = self.request.role.auth()?.rule.clone();
        let scope = VariableScope::new(self.request, self.answer, &site, ctx);
        let mut values = Vec::with_capacity(rule.set.len());
        for (target, template) in rule.set.iter() {
            let mut value = Vec::new();
            scope.expand(template, &mut value);
            values.push((*target, value));
        }
        let head = &self.answer.head;
        let fields = head.fields.all(Name::WwwAuthenticate);
        let challenges = fields.map(<[u8]>::to_vec).collect();
        let status = head.status;
        // The log line of the subrequest itself is written later.
        let known = match site.location(self.request.location).settings.log_subrequest {
            true => self.request.captures.borrow().clone(),
            false => self.request.captures.take(),
        };
        let (limits, held) = (self.request.limited.details(), self.request.limited.held.clone());
        let has_asked = self.answer.origin.is_some();
        Some(Box::new(AuthVerdict { status, has_asked, challenges, values, known, limits, held }))
    }

    /// The proof that a cached fragment is public, for a shortcut to it.
    #[must_use]
    pub fn open_shortcut(&self) -> Option<OpenShortcut> {
        self.cache.open_shortcut(self.request, self.answer)
    }
}
