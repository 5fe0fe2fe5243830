//! Access of an authenticated user: by a password, or by the user of the request that looks ahead.

use std::rc::Rc;

use bolide_htaccess::{Admission, AuthSetup};
use bytes::Bytes;

use super::admission::AdmissionJudge;
use super::decide::{Decided, HtaccessRequest};
use super::ruling::{HtaccessRuling, UserProof};
use super::target::HtaccessTarget;
use crate::ctx::StepCtx;
use crate::site::Site;

impl HtaccessRequest<'_> {
    /// The group file of a place, if it has one.
    pub(super) fn groups(
        &mut self,
        setup: &AuthSetup<'_>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<Option<Bytes>> {
        let Some(file) = setup.group_file else { return Ok(None) };
        self.search.htaccess_secret(self.request, file, site, ctx).map(Some)
    }

    /// Evaluates access again from the same initial state, with a user, the proof of their
    /// identity, and the group file; returns whether access is granted.
    pub(super) fn admit_user(
        &self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        judge: &AdmissionJudge,
        (user, proof, groups): (Vec<u8>, Rc<UserProof>, Option<Bytes>),
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<bool> {
        let is_asked = ruling.cache_orders().is_of_asked_path();
        ruling.begin_env(is_asked);
        let (name, groups) = (Some(&user[..]), groups.as_deref());
        let admission = self
            .ask(ruling, target, name, groups, site, ctx, |applied, by| judge.admit(applied, by))?;
        match admission {
            Admission::Open => {
                (ruling.user, ruling.proof) = (Some(user), Some(proof));
                Ok(true)
            }
            Admission::Forbidden => Err(self.refusal(site, ctx)),
            Admission::AsksWho | Admission::Unclear => Ok(false),
        }
    }
}
