//! Asks whether issuers revoked certificates in use, and has revoked ones replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use bolide_tls::{CertStatus, LoadedCertificate, OcspQuestion, Revocation, issuer_in, listed};
use tokio::task::{JoinSet, spawn_blocking};

use super::Engine;
use crate::certificate::{ChainFacts, serial_text};
use crate::fetch;
use crate::host::AcmeLogLevel;
use crate::plan::{AcmeOrder, OrderId};
use crate::service::{Shared, read_kept};
use crate::state::AcmeStore;
use crate::statuses::{AnsweredStatus, StatusAnswer, StatusBook, StatusSource};

/// Answers of sources.
type AllStatusAnswers = Arc<Mutex<Vec<(StatusSource, Vec<AnsweredStatus>)>>>;

/// The certificates in use, running questions, and revocations to handle.
#[derive(Default)]
pub(super) struct Statuses {
    pub(super) book: StatusBook,
    tasks: JoinSet<()>,
    answers: AllStatusAnswers,
    revoked: Vec<RevokedNews>,
}

struct RevokedNews {
    id: OrderId,
    serial: Vec<u8>,
    revocation: Revocation,
    /// Whether the log has it.
    is_told: bool,
}

impl Engine {
    /// The certificate in use for an order is known, or another one than before.
    pub(super) fn follow(&mut self, id: &OrderId) {
        let now = self.now().unix;
        let facts = self.files.get(id).and_then(|files| files.facts.as_ref());
        if let Some(slot) = self.schedule.orders.get_mut(id) {
            slot.serial = facts.map(ChainFacts::serial_text);
        }
        self.statuses.book.watch(id, facts.and_then(ChainFacts::watched), now);
    }

    /// Starts questions that are due.
    pub(super) fn check_statuses(&mut self) {
        while self.statuses.tasks.try_join_next().is_some() {}
        let now = self.now().unix;
        while let Some((source, picked)) = self.statuses.book.pick(now) {
            let asked = picked.into_iter().map(|(id, serial)| {
                let files = self.files.get(&id);
                let place = files.map(|files| (files.store.clone(), files.order.clone()));
                AskedCertificate { id, serial, place }
            });
            let questions = StatusQuestions {
                shared: self.shared.clone(),
                source,
                open: asked.collect(),
                answers: Vec::new(),
                to: self.statuses.answers.clone(),
            };
            self.statuses.tasks.spawn(questions.run());
        }
    }

    /// Handles answers: the order of a revoked certificate is due from now on.
    pub(super) fn handle_statuses(&mut self) {
        let mut answers = self.statuses.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::take(&mut *answers);
        drop(answers);
        let now = self.now().unix;
        for (source, answers) in ended {
            let news = self.statuses.book.answered(&source, answers, now);
            if let Some(line) = news.complaint {
                self.log(AcmeLogLevel::Warn, &line);
            }
            let revoked = news.revoked.into_iter().map(|(id, serial, revocation)| RevokedNews {
                id,
                serial,
                revocation,
                is_told: false,
            });
            self.statuses.revoked.extend(revoked);
        }
        let mut left = std::mem::take(&mut self.statuses.revoked);
        left.retain_mut(|news| !self.handle_revoked(news));
        self.statuses.revoked = left;
    }

    /// Returns whether nothing is left to do: only the process with the lock writes records.
    fn handle_revoked(&mut self, news: &mut RevokedNews) -> bool {
        let id = news.id.clone();
        let order = self.files.get(&id).map(|files| &files.order);
        let first = order.and_then(|order| self.plan.issuers.get(*order.issuers.first()?));
        // The order is not wanted any more.
        let Some(issuer) = first.cloned() else { return true };
        let Some(locks) = self.lock(&id, &issuer) else { return false };
        if !self.running.contains_key(&id) {
            let _known_now = self.is_current(&id, &issuer);
        }
        let now = self.now();
        self.schedule.revoked(&id, &news.serial, news.revocation, now);
        let slot = self.schedule.orders.get(&id);
        let is_in_use = slot.is_some_and(|slot| slot.serial == Some(serial_text(&news.serial)));
        if is_in_use && !std::mem::replace(&mut news.is_told, true) {
            self.log_revoked(news);
        }
        let is_kept = self.keep(&id, None);
        self.unlock(&locks);
        is_kept
    }

    fn log_revoked(&self, RevokedNews { id, serial, revocation, .. }: &RevokedNews) {
        let now = self.now();
        let since = std::time::Duration::from_secs(revocation.at.unwrap_or(now.unix));
        let since = std::time::SystemTime::UNIX_EPOCH.checked_add(since);
        let since = since.map(httpdate::fmt_http_date).unwrap_or_default();
        let next = self.schedule.next_attempt(id, now).saturating_sub(now.unix);
        let next = if next == 0 { "now".to_owned() } else { format!("in {next} s") };
        let text = format!(
            "\"{}\": its issuer revoked the certificate in use (serial number {}, {}, since \
             {since}); it is served until the next one comes, which is ordered {next}",
            id.0,
            serial_text(serial),
            revocation.reason_words(),
        );
        self.log(AcmeLogLevel::Alert, &text);
    }
}

#[derive(Clone)]
struct AskedCertificate {
    id: OrderId,
    serial: Vec<u8>,
    /// Where it is stored.
    place: Option<(Arc<AcmeStore>, AcmeOrder)>,
}

impl AskedCertificate {
    /// `None` if it cannot be read, or was replaced.
    fn read(&self) -> Option<LoadedCertificate> {
        let (store, order) = self.place.as_ref()?;
        let (kept, facts) = read_kept(store, order).ok().flatten()?;
        let made = LoadedCertificate::from_pem(&kept.chain, &kept.key, &[]).ok();
        made.filter(|_| facts.serial == self.serial)
    }

    /// The certificate of its issuer, in DER.
    fn issuer(&self) -> Option<Vec<u8>> {
        let certificate = self.read()?;
        let chain: Vec<&[u8]> = certificate.chain().collect();
        issuer_in(&chain).map(<[u8]>::to_vec)
    }
}

/// A task that asks one source. On drop it reports the remaining questions as unanswered.
struct StatusQuestions {
    shared: Arc<Shared>,
    source: StatusSource,
    open: Vec<AskedCertificate>,
    answers: Vec<AnsweredStatus>,
    to: AllStatusAnswers,
}

impl StatusQuestions {
    async fn run(mut self) {
        let way = self.shared.setting.connect.clone();
        match self.source.clone() {
            StatusSource::Responder(url) => {
                while let Some(asked) = self.open.last() {
                    let answer = self.ask(&way, &url, asked).await;
                    if let Some(AskedCertificate { id, serial, .. }) = self.open.pop() {
                        self.answers.push((id, serial, answer));
                    }
                }
            }
            StatusSource::List(url) => {
                let list = fetch::list(&way, &url).await;
                // To read thousands of certificates, each with its key, takes a while.
                let asked = self.open.clone();
                let read = move || asked.iter().map(AskedCertificate::issuer).collect();
                let issuers: Vec<_> = spawn_blocking(read).await.unwrap_or_default();
                self.compare(&url, list.as_deref(), issuers);
            }
        }
    }

    /// Asks the responder about one certificate.
    async fn ask(
        &self,
        way: &fetch::OtherWay,
        url: &str,
        asked: &AskedCertificate,
    ) -> StatusAnswer {
        let certificate = asked.read();
        let question = certificate.as_ref().and_then(|one| OcspQuestion::new(one, &[], false));
        let Some(question) = question else { return StatusAnswer::Unsaid(unreadable()) };
        let answer = match fetch::answer(way, url, question.request()).await {
            Ok(answer) => answer,
            Err(why) => return StatusAnswer::Silent(why),
        };
        let now = (self.shared.setting.clock)().unix;
        match question.status(&answer, now) {
            Err(fault) => StatusAnswer::Silent(fault.to_string()),
            Ok((CertStatus::Good, until)) => StatusAnswer::Good(until),
            Ok((CertStatus::Revoked(revocation), _)) => StatusAnswer::Revoked(revocation),
            Ok((CertStatus::Unknown, _)) => {
                let serial = serial_text(&asked.serial);
                let why = format!("the certificate with serial number {serial} is unknown there");
                StatusAnswer::Unsaid(why)
            }
        }
    }

    /// Looks the certificates up in the list of `url`, those of each issuer together.
    fn compare(&mut self, url: &str, list: Result<&[u8], &String>, issuers: Vec<Option<Vec<u8>>>) {
        let now = (self.shared.setting.clock)().unix;
        let mut of_issuer: BTreeMap<Vec<u8>, Vec<AskedCertificate>> = BTreeMap::new();
        let issuers = issuers.into_iter().chain(std::iter::repeat(None));
        for (asked, issuer) in self.open.drain(..).zip(issuers) {
            match (list, issuer) {
                (Ok(_), None) => {
                    let answer = StatusAnswer::Unsaid(unreadable());
                    self.answers.push((asked.id, asked.serial, answer));
                }
                (_, issuer) => of_issuer.entry(issuer.unwrap_or_default()).or_default().push(asked),
            }
        }
        for (issuer, certificates) in of_issuer {
            let serials: BTreeSet<_> = certificates.iter().map(|one| one.serial.clone()).collect();
            let found = list.map_err(Clone::clone).and_then(|list| {
                listed(list, &issuer, url, &serials, now).map_err(|fault| fault.to_string())
            });
            let answer = |serial: &[u8]| match &found {
                Err(why) => StatusAnswer::Silent(why.clone()),
                Ok(found) => match found.revoked.get(serial) {
                    Some(revocation) => StatusAnswer::Revoked(*revocation),
                    None => StatusAnswer::Good(Some(found.until)),
                },
            };
            for AskedCertificate { id, serial, .. } in certificates {
                let answer = answer(&serial);
                self.answers.push((id, serial, answer));
            }
        }
    }
}

fn unreadable() -> String {
    "the certificate cannot be read".to_owned()
}

impl Drop for StatusQuestions {
    fn drop(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(self.open.drain(..).map(|AskedCertificate { id, serial, .. }| {
            (id, serial, StatusAnswer::Silent("the question broke off".to_owned()))
        }));
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.push((self.source.clone(), answers));
        drop(to);
        self.shared.bell.notify_one();
    }
}
