//! Requests for renewal windows (RFC 9773): unsigned, without an account, one after the other on
//! one connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use instant_acme::{Account, CertificateIdentifier, Error, Key};
use rustls::pki_types::Der;

use crate::plan::{AcmeIssuer, OrderId};
use crate::record::RenewalWindow;
use crate::schedule::WindowAnswer;
use crate::service::Shared;
use crate::transport::AcmeTransport;

/// LIMIT: bytes of the page that explains a suggestion.
const EXPLANATION_MAX: usize = 500;
/// The default of `Retry-After`, in seconds (RFC 9773, section 4.3.3).
const AGAIN: u64 = 6 * 3600;

/// Answers of issuers, with the numbers of the tasks.
pub(crate) type AllRenewalAnswers = Arc<Mutex<Vec<RenewalAnswers>>>;

/// The result of one task.
pub(crate) struct RenewalAnswers {
    pub(crate) issuer: String,
    pub(crate) number: u64,
    pub(crate) answers: Vec<(OrderId, WindowAnswer, Option<String>)>,
}

/// A question about one certificate.
pub(crate) struct RenewalQuestion {
    pub(crate) id: OrderId,
    /// Authority key identifier and serial; `None` if the leaf has none, so that no issuer could
    /// answer.
    pub(crate) renewal_id: Option<(Vec<u8>, Vec<u8>)>,
    /// The last second of the certificate.
    pub(crate) until: u64,
}

/// A task with questions. On drop it reports the remaining ones as unanswered.
pub(crate) struct RenewalQuestions {
    pub(crate) shared: Arc<Shared>,
    pub(crate) issuer: AcmeIssuer,
    pub(crate) number: u64,
    pub(crate) open: VecDeque<RenewalQuestion>,
    pub(crate) answers: Vec<(OrderId, WindowAnswer, Option<String>)>,
    pub(crate) to: AllRenewalAnswers,
}

impl RenewalQuestions {
    /// Asks all; stops when the issuer does not respond.
    pub(crate) async fn run(mut self) {
        let Ok(transport) = self.shared.transport(&self.issuer) else { return };
        let Ok(account) = anonymous(&self.issuer, &transport).await else { return };
        while let Some(question) = self.open.front() {
            let (answer, page) = ask(&account, &transport, question).await;
            if answer == WindowAnswer::Silent {
                return;
            }
            let id = question.id.clone();
            self.open.pop_front();
            self.answers.push((id, answer, page));
        }
    }
}

impl Drop for RenewalQuestions {
    fn drop(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        let silent = self.open.drain(..).map(|question| (question.id, WindowAnswer::Silent, None));
        answers.extend(silent);
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.push(RenewalAnswers { issuer: self.issuer.name.clone(), number: self.number, answers });
        drop(to);
        self.shared.bell.notify_one();
    }
}

/// The library needs an account; RFC 9773 §4.1: the request is a plain GET, so any key does.
async fn anonymous(issuer: &AcmeIssuer, transport: &AcmeTransport) -> Result<Account, Error> {
    let (_, key) = Key::generate_pkcs8()?;
    let builder = Account::builder_with_http(Box::new(transport.clone()));
    builder.from_parts(String::new(), key, issuer.uri.clone()).await
}

async fn ask(
    account: &Account,
    transport: &AcmeTransport,
    question: &RenewalQuestion,
) -> (WindowAnswer, Option<String>) {
    let Some((authority, serial)) = &question.renewal_id else {
        return (WindowAnswer::Unoffered, None);
    };
    let (authority, serial) = (Der::from_slice(authority), Der::from_slice(serial));
    let answered = account.renewal_info(&CertificateIdentifier::new(authority, serial)).await;
    let notes = transport.notes();
    match answered {
        Ok((info, _)) => {
            let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
            let window = RenewalWindow {
                start: seconds(info.suggested_window.start.unix_timestamp()),
                end: seconds(info.suggested_window.end.unix_timestamp()),
                until: question.until,
            };
            let page = info.explanation_url.filter(|page| page.len() <= EXPLANATION_MAX);
            if window.start >= window.end {
                // RFC 9773 §4.2: a window that ends before it begins is invalid.
                return (WindowAnswer::Useless, None);
            }
            (WindowAnswer::Window(window, notes.retry_after.unwrap_or(AGAIN)), page)
        }
        Err(Error::Unsupported(_)) => (WindowAnswer::Unoffered, None),
        Err(_) if notes.status.is_none_or(|status| status >= 500 || status == 429) => {
            (WindowAnswer::Silent, None)
        }
        Err(_) => (WindowAnswer::Useless, None),
    }
}
