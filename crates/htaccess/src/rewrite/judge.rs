//! Evaluates conditions.

use std::sync::Arc;

use super::run::RuleScratch;
use super::template::{BackrefEscape, Backrefs};
use super::{CondTest, RewriteCondition};
use crate::pattern::Pattern;
use crate::world::{AheadKind, Asked, Evaluation, Stop};

impl RewriteCondition {
    /// The question about a text of the request, if the condition is one and its captures are not
    /// used.
    fn asked(&self, by: &Evaluation<'_>) -> Option<(Asked<'_>, &Arc<Pattern>)> {
        let CondTest::Matches(pattern) = &self.test else { return None };
        let asked = self.text.asked().filter(|_| !self.is_read)?;
        let is_made = matches!(asked, Asked::Variable(which) if by.made(which).is_some());
        (!is_made).then_some((asked, pattern))
    }

    pub(super) fn holds(
        &self,
        scratch: &mut RuleScratch,
        by: &mut Evaluation<'_>,
    ) -> Result<bool, Stop> {
        if let Some((asked, pattern)) = self.asked(by) {
            let holds = by.world.matches(asked, pattern, by.effort)?;
            by.effort.check()?;
            return Ok(holds != self.negated);
        }
        let RuleScratch { text, of_rule, of_condition, spare, .. } = scratch;
        let backrefs = Backrefs { rule: of_rule, condition: of_condition };
        text.clear();
        self.text.push(backrefs, &BackrefEscape::No, by, text);
        by.effort.check()?;
        let holds = match &self.test {
            CondTest::Matches(pattern) if !self.is_read => pattern.is_match(text, by.effort)?,
            CondTest::Matches(pattern) => {
                let matched = pattern.find(text, spare, by.effort)?;
                if matched && !self.negated {
                    std::mem::swap(of_condition, spare);
                }
                matched
            }
            CondTest::Compares(order, with) => {
                let mut with = with.value(backrefs, by);
                if self.any_case {
                    text.make_ascii_lowercase();
                    with.make_ascii_lowercase();
                }
                // As in Apache, a longer text is greater, but not with `[NC]`.
                let exact = |text: &[u8]| if self.any_case { 0 } else { text.len() };
                order.holds((exact(text), &*text).cmp(&(exact(&with), &with)))
            }
            CondTest::Counts(order, with) => {
                order.holds(crate::expr::leading_number(text).cmp(with))
            }
            CondTest::File(_) | CondTest::Ahead(_) if text.is_empty() => false,
            CondTest::File(test) => by.world.test(*test, text)?,
            CondTest::Ahead(kind) => {
                let found = by.world.look_ahead(*kind, text)?;
                found.is_some_and(|found| match kind {
                    AheadKind::Url => found.status < 400,
                    AheadKind::File => found.status < 300 && found.is_there,
                })
            }
            CondTest::Holds(expr) => expr.holds_with(by, of_condition)?,
        };
        Ok(holds != self.negated)
    }
}
