//! The decision of a round about access.

use bolide_htaccess::{Admission, Applied, Evaluation, Stop};

use super::ruling::HtaccessRuling;
use crate::request::Request;

/// How a round decides about access.
pub(super) struct AdmissionJudge {
    method: Vec<u8>,
    /// Whether it is the first round.
    pub(super) is_first: bool,
    /// Whether variables are set: as in Apache, an index that is searched for has those of its
    /// directory.
    sets_env: bool,
}

impl AdmissionJudge {
    pub(super) fn new(ruling: &HtaccessRuling, request: &Request) -> Self {
        Self {
            method: ruling.method(request).to_vec(),
            is_first: !ruling.is_later(),
            sets_env: !ruling.is_looked_for(),
        }
    }

    /// Decides about access, with and without the sections that Apache ignores here.
    pub(super) fn admit(
        &self,
        applied: &Applied<'_>,
        by: &mut Evaluation<'_>,
    ) -> Result<Admission, Stop> {
        applied.order_cache(by);
        let without = match applied.heeded(self.is_first) {
            Some(heeded) => {
                let env = by.env.clone();
                let admission = self.judge(&heeded, by)?;
                *by.env = env;
                admission
            }
            None => Admission::Open,
        };
        Ok(self.judge(applied, by)?.and(without))
    }

    fn judge(&self, applied: &Applied<'_>, by: &mut Evaluation<'_>) -> Result<Admission, Stop> {
        if self.sets_env {
            applied.set_conditional_env(by)?;
        }
        applied.admission(&self.method, by)
    }
}
