//! The presented challenges of one attempt; they are withdrawn however it ends.

use std::path::PathBuf;

use instant_acme::KeyAuthorization;

use crate::hook;
use crate::host::{AcmeHost, AcmeLogLevel, Challenge};
use crate::plan::ChallengeKind;

/// Challenges that are presented.
pub(crate) struct Presented<'a> {
    host: &'a dyn AcmeHost,
    kind: &'a ChallengeKind,
    shown: Vec<Challenge>,
    /// Names and values of records.
    records: Vec<(String, String)>,
}

impl<'a> Presented<'a> {
    pub(crate) fn new(host: &'a dyn AcmeHost, kind: &'a ChallengeKind) -> Self {
        Self { host, kind, shown: Vec::new(), records: Vec::new() }
    }

    /// Presents another one.
    ///
    /// # Errors
    ///
    /// The program failed.
    pub(crate) async fn show(
        &mut self,
        name: &str,
        token: &str,
        authorization: &KeyAuthorization,
    ) -> Result<(), String> {
        let (name, token) = (name.to_owned(), token.to_owned());
        match self.kind {
            ChallengeKind::Http01 => {
                let key_authorization = authorization.as_str().to_owned();
                self.present(Challenge::Http01 { name, token, key_authorization });
            }
            ChallengeKind::TlsAlpn01 => {
                let mut digest = [0; 32];
                digest.copy_from_slice(authorization.digest().as_ref());
                self.present(Challenge::TlsAlpn01 { name, digest });
            }
            ChallengeKind::Dns01(program) => {
                let (record, value) =
                    (format!("_acme-challenge.{name}"), authorization.dns_value());
                // Recorded first, because the program may fail half-way.
                self.records.push((record.clone(), value.clone()));
                let output = hook::run(program, "present", &record, &value).await?;
                if !output.is_empty() {
                    self.host.log(AcmeLogLevel::Info, &format!("acme: {record}: {output}"));
                }
            }
        }
        Ok(())
    }

    fn present(&mut self, challenge: Challenge) {
        self.host.present(&challenge);
        self.shown.push(challenge);
    }

    /// Withdraws all, and removes the records one after the other.
    pub(crate) async fn end(mut self) {
        let records = std::mem::take(&mut self.records);
        if let ChallengeKind::Dns01(program) = self.kind {
            for (record, value) in records {
                if let Err(why) = hook::run(program, "cleanup", &record, &value).await {
                    self.host.log(AcmeLogLevel::Warn, &format!("acme: {why}"));
                }
            }
        }
    }
}

impl Drop for Presented<'_> {
    fn drop(&mut self) {
        for challenge in &self.shown {
            self.host.withdraw(challenge);
        }
        // The attempt was dropped half-way: nothing waits for the program.
        if let (ChallengeKind::Dns01(program), false) = (self.kind, self.records.is_empty()) {
            let (program, records) = (PathBuf::from(program), std::mem::take(&mut self.records));
            let body = move || {
                for (record, value) in records {
                    // There is no receiver for the result.
                    let _unheard = hook::run_now(&program, "cleanup", &record, &value);
                }
            };
            let _no_thread = std::thread::Builder::new().spawn(body);
        }
    }
}
