//! Key changes of accounts, requested by an operator: each runs after the running orders of the
//! issuer, and before the next ones.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::Engine;
use crate::accounts::{AccountFile, account_stem};
use crate::client::Fault;
use crate::host::AcmeLogLevel;
use crate::inbox::WantedRollover;
use crate::plan::{AcmeAuthority, AcmeIssuer, OrderId};
use crate::service::Shared;

/// The locks of finished key changes.
pub(super) type EndedRollovers = Arc<Mutex<Vec<Vec<PathBuf>>>>;

/// A running key change. Dropping it releases its locks.
struct RunningRollover {
    shared: Arc<Shared>,
    locks: Vec<PathBuf>,
    ended: EndedRollovers,
}

impl Drop for RunningRollover {
    fn drop(&mut self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push(std::mem::take(&mut self.locks));
        drop(ended);
        self.shared.bell.notify_one();
    }
}

impl Engine {
    /// Starts requested changes, and releases the locks of finished ones.
    pub(super) fn roll_over(&mut self) {
        let mut rolled = self.rolled.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::take(&mut *rolled);
        drop(rolled);
        for locks in ended {
            self.unlock(&locks);
        }
        let running = &self.running;
        // A running order signs with the old key.
        let is_quiet = |name: &str| !running.values().any(|one| one.issuer.name == name);
        for wanted in self.shared.setting.inbox.take_rollovers(is_quiet) {
            self.begin_rollover(wanted);
        }
    }

    fn begin_rollover(&mut self, wanted: WantedRollover) {
        let WantedRollover { issuer: name, reply } = wanted;
        // The receiver may be gone.
        let refuse = |why: String| drop(reply.try_send(Err(why)));
        let Some(issuer) = self.plan.issuers.iter().find(|one| one.name == name).cloned() else {
            return refuse(format!("no issuer \"{name}\" is in use"));
        };
        if issuer.authority != AcmeAuthority::Remote {
            return refuse(format!("\"{name}\" is this server, which has no account"));
        }
        let Some(locks) = self.lock(&OrderId(String::new()), &issuer) else {
            return refuse(format!("another process uses the account at \"{name}\" now"));
        };
        let account = AccountFile {
            host: self.shared.host.clone(),
            store: self.shared.store(&issuer),
            gate: self.gates.entry(account_stem(&issuer)).or_default().clone(),
        };
        let (shared, ended) = (self.shared.clone(), self.rolled.clone());
        let running = RunningRollover { shared: shared.clone(), locks, ended };
        tokio::spawn(async move {
            let _running = running;
            let end = change(&shared, &account, &issuer).await;
            let (level, text) = match &end {
                Ok(()) => (AcmeLogLevel::Notice, "has another key".to_owned()),
                Err(why) => (AcmeLogLevel::Error, format!("has its old key: {why}")),
            };
            let name = &issuer.name;
            let text = format!("acme: the account at \"{name}\" {text}");
            shared.host.log(level, &text.replace(char::is_control, " "));
            let _gone = reply.try_send(end);
        });
    }
}

async fn change(shared: &Shared, account: &AccountFile, issuer: &AcmeIssuer) -> Result<(), String> {
    let transport = shared.transport(issuer)?;
    account.roll_over(issuer, &transport).await.map_err(|fault| match fault {
        Fault::Request(step, error) => format!("{step}: {error}"),
        Fault::Own(why) => why,
    })
}
