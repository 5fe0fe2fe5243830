//! Asks issuers for renewal windows, and records the answers.

use std::sync::PoisonError;

use super::Engine;
use crate::host::AcmeLogLevel;
use crate::plan::{AcmeAuthority, OrderId};
use crate::questions::{RenewalAnswers, RenewalQuestion, RenewalQuestions};
use crate::schedule::WindowAnswer;

impl Engine {
    /// Starts questions that are due.
    pub(super) fn ask(&mut self) {
        let now = self.now();
        while let Some((name, ids)) = self.schedule.pick_questions(now) {
            let Some(issuer) = self.plan.issuers.iter().find(|issuer| issuer.name == name) else {
                continue;
            };
            if issuer.authority != AcmeAuthority::Remote {
                for id in &ids {
                    self.schedule.answered(id, WindowAnswer::Unoffered, now);
                }
                self.schedule.asked.remove(&name);
                continue;
            }
            let question = |id: &OrderId| {
                let facts = self.files.get(id)?.facts.as_ref()?;
                let (renewal_id, until) = (facts.renewal_id.clone(), facts.validity.until);
                Some(RenewalQuestion { id: id.clone(), renewal_id, until })
            };
            let issuer = issuer.clone();
            let (open, unread): (Vec<_>, Vec<_>) =
                ids.iter().map(|id| question(id).ok_or(id)).partition(Result::is_ok);
            // Certificates that cannot be read are retried later.
            for id in unread.into_iter().filter_map(Result::err) {
                self.schedule.answered(id, WindowAnswer::Useless, now);
            }
            if open.is_empty() {
                self.schedule.asked.remove(&name);
                continue;
            }
            self.numbers += 1;
            let questions = RenewalQuestions {
                shared: self.shared.clone(),
                issuer,
                number: self.numbers,
                open: open.into_iter().filter_map(Result::ok).collect(),
                answers: Vec::new(),
                to: self.answers.clone(),
            };
            let handle = tokio::spawn(questions.run()).abort_handle();
            self.asking.insert(name, (self.numbers, handle));
        }
    }

    /// Cancels all questions.
    pub(super) fn ask_no_more(&mut self) {
        for (_, handle) in std::mem::take(&mut self.asking).into_values() {
            handle.abort();
        }
        self.schedule.asked.clear();
    }

    /// Handles the answers of issuers.
    pub(super) fn handle_answers(&mut self) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::take(&mut *answers);
        drop(answers);
        for RenewalAnswers { issuer, number, answers } in ended {
            if self.asking.get(&issuer).is_none_or(|(current, _)| *current != number) {
                continue;
            }
            self.asking.remove(&issuer);
            self.schedule.asked.remove(&issuer);
            for (id, answer, page) in answers {
                self.handle_answer(&id, &issuer, answer, page);
            }
        }
    }

    fn handle_answer(
        &mut self,
        id: &OrderId,
        issuer: &str,
        answer: WindowAnswer,
        page: Option<String>,
    ) {
        let now = self.now();
        let issuer = self.plan.issuers.iter().find(|known| known.name == issuer).cloned();
        // Another process may have written meanwhile: only the process with the lock writes, and
        // only its own orders.
        let locks = issuer.as_ref().and_then(|issuer| self.lock(id, issuer));
        if let (Some(issuer), Some(_)) = (&issuer, &locks)
            && !self.running.contains_key(id)
        {
            let _known_now = self.is_current(id, issuer);
        }
        let has_moved = self.schedule.answered(id, answer, now);
        if has_moved && let Some(slot) = self.schedule.orders.get(id) {
            let days = slot.due().saturating_sub(now.unix) / (24 * 3600);
            let page = page.map(|page| format!(", see {page}")).unwrap_or_default();
            let text = format!("\"{}\": its issuer wants it renewed in {days} days{page}", id.0);
            self.log(AcmeLogLevel::Notice, &text);
        }
        if let Some(locks) = locks {
            self.keep(id, None);
            self.unlock(&locks);
        }
    }
}
