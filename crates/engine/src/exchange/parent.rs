//! An exchange as the parent of subrequests: which ones it starts, and what it takes of them.
//!
//! Easiest to break: each named subrequest is bound or refused before the next is named. The worker
//! pulls the bodies.

use std::sync::Arc;

use bolide_cache::Object;
use bolide_http::RequestHead;

use crate::answer::{Answer, Pulled};
use crate::caching::CacheTransaction;
use crate::caching::shortcut::{OpenShortcut, Shortcut};
use crate::content::parts::{PartHead, inherit, next_part};
use crate::ctx::{ConnInfo, StepCtx};
use crate::filter::slice::next_slice;
use crate::phase::checks::AccessChecks;
use crate::request::Request;
use crate::subrequest::{AuthSubrequest, AuthVerdict, CombinedHead, Lineage, Subrequest};

/// An exchange from the view of its subrequests; see [`super::Exchange::as_parent`].
#[derive(Debug)]
pub struct SubrequestParent<'a> {
    pub(super) request: &'a mut Request,
    pub(super) answer: &'a mut Answer,
    pub(super) cache: &'a CacheTransaction,
    pub(super) access: &'a mut AccessChecks,
}

impl SubrequestParent<'_> {
    /// Executes pending commands of the page, and writes the head of the next subrequest to `head`.
    /// The caller starts it and calls [`Self::bind`], or calls [`Self::refuse`].
    pub fn next(&mut self, head: &mut RequestHead, ctx: &mut StepCtx<'_>) -> Option<Subrequest> {
        if let Some(slice) = next_slice(self.request, self.answer, head) {
            return Some(Subrequest::Slice(slice));
        }
        if let Some(lineage) = self.next_fragment(head, ctx.conn) {
            return Some(Subrequest::Fragment(lineage));
        }
        Some(Subrequest::Part(next_part(self.request, self.answer, head, ctx)?))
    }

    /// Writes the head of the next fragment of an ESI page to `head`, as [`Self::next`] does.
    pub fn next_fragment(
        &mut self,
        head: &mut RequestHead,
        conn: &ConnInfo,
    ) -> Option<Box<Lineage>> {
        self.answer.next_fragment(self.request, self.cache, head, conn)
    }

    /// Whether the composed body breaks off here, because a part of it did.
    #[must_use]
    pub fn breaks_off(&self) -> bool {
        let body = &self.answer.body;
        body.assembly().is_some_and(|assembly| assembly.is_broken())
            || body.compound().is_some_and(|compound| compound.is_broken())
    }

    /// Binds the subrequest that was named last to the exchange `child`.
    pub fn bind(&mut self, child: u64, is_part: bool) {
        let body = &mut self.answer.body;
        if is_part && let Some(compound) = body.compound_mut() {
            compound.bind(child);
        } else if let Some(sliced) = body.sliced_mut() {
            sliced.bind(child);
        } else {
            self.answer.bind_fragment(child);
        }
    }

    /// The subrequest that was named last is not started.
    pub fn refuse(&mut self, is_part: bool) {
        let body = &mut self.answer.body;
        if is_part && let Some(compound) = body.compound_mut() {
            compound.refuse();
        } else if let Some(sliced) = body.sliced_mut() {
            sliced.refuse();
        } else {
            self.answer.refuse_fragment();
        }
    }

    /// The head of the part `child` is there.
    pub fn accept_part(&mut self, child: u64, head: &PartHead) {
        head.accept(self.request, self.answer, child);
    }

    /// The head of the slice `child` is there.
    pub fn accept_slice(&mut self, child: u64) {
        if let Some(sliced) = self.answer.body.sliced_mut() {
            sliced.accept(child);
        }
    }

    /// The subrequest `child` failed, before its head or later.
    pub fn lose(&mut self, child: u64) {
        if let Some(compound) = self.answer.body.compound_mut() {
            compound.lose(child);
        }
        if let Some(sliced) = self.answer.body.sliced_mut() {
            sliced.lose(child);
        }
        self.lose_fragment(child);
    }

    /// Takes the bytes that were pulled of the part or fragment that [`crate::BodyPiece::Fragment`]
    /// named; returns false if it needs no more of them.
    pub fn take(&mut self, child: u64, bytes: &[u8], pulled: Pulled) -> bool {
        if let Some(sliced) = self.answer.body.sliced_mut().filter(|sliced| sliced.owns(child)) {
            return sliced.take(child, bytes, pulled);
        }
        match self.answer.body.compound_mut().filter(|compound| compound.owns(child)) {
            Some(compound) => compound.take(child, bytes, pulled),
            None => self.answer.take_fragment(self.request, bytes, pulled),
        }
    }

    /// The head of the fragment `child` is there, with these cookies if the page's head is not sent
    /// yet.
    pub fn accept_fragment(&mut self, child: u64, cookies: Vec<Vec<u8>>) {
        if let Some(assembly) = self.answer.body.assembly_mut() {
            assembly.accept(child, cookies);
        }
    }

    /// The subrequest `child` is a response for several fragments.
    pub fn receive_combined(&mut self, child: u64, head: CombinedHead) {
        if let Some(assembly) = self.answer.body.assembly_mut() {
            assembly.receive_combined(child, head);
        }
    }

    /// The fragment `child` is this cached object, with these cookies.
    pub fn accept_object(&mut self, child: u64, object: Arc<Object>, cookies: Vec<Vec<u8>>) {
        if let Some(lineage) = self.request.lineage() {
            let size = &lineage.family.size;
            size.set(size.get() + object.body_len());
        }
        if let Some(assembly) = self.answer.body.assembly_mut() {
            assembly.accept_object(child, object, cookies);
        }
    }

    /// The fragment `child` failed, before its head or later.
    pub fn lose_fragment(&mut self, child: u64) {
        if let Some(assembly) = self.answer.body.assembly_mut() {
            assembly.lose(child);
        }
    }

    /// Writes the head of the authorization subrequest of [`crate::StepEffect::AuthSubrequest`] to
    /// `head`.
    pub fn next_auth(&mut self, head: &mut RequestHead) -> Option<Subrequest> {
        let site = self.request.site.as_deref()?;
        let rule = site.location(self.request.location).settings.auth_request.clone();
        let uri = rule.uri.clone()?;
        inherit(head, self.request);
        let known = self.request.captures.get_mut().clone();
        Some(Subrequest::Auth(Box::new(AuthSubrequest {
            uri,
            rule,
            known,
            id: self.request.id,
            real: self.request.real,
            listen: self.request.listen,
            limits: self.request.limited.details(),
        })))
    }

    /// Takes the verdict of the authorization subrequest; step with `Wake::Fragment` then, or when
    /// there will be none.
    pub fn take_verdict(&mut self, mut verdict: Box<AuthVerdict>) {
        self.request.limited.adopt(verdict.limits);
        self.request.limited.hold(std::mem::take(&mut verdict.held));
        debug_assert!(self.access.verdict.is_none(), "a question is answered once");
        self.access.verdict = Some(verdict);
    }

    /// For a cached page: where a shortcut to the fragment `child` would be stored.
    #[must_use]
    pub fn shortcut_to(&self, child: u64, open: OpenShortcut) -> Option<Shortcut> {
        self.cache.shortcut_to(self.request, self.answer, child, open)
    }
}
