//! The table of challenges: every server answers the challenges of all.
//!
//! Valkey's clock, which dated an entry, decides when it expires: a server whose own clock is ahead
//! would otherwise remove challenges of others too early.

use std::collections::BTreeMap;

use bolide_acme::Challenge;
use bolide_cluster::{Vault, VaultPurpose};
use bolide_valkey::ValkeyFault;

use super::record::{challenge_field, challenge_name, read, written};
use super::{CertificateShare, Known};

/// The lifetime of a challenge in seconds.
const CHALLENGE_LIFE: u64 = 60 * 60;
/// LIMIT: challenges of other servers.
const CHALLENGES_MAX: usize = 1000;
/// The table of challenges.
const TABLE: &str = "challenges";
/// The table of first keys, and the time in milliseconds after which an entry is ignored.
const KEYS_TABLE: &str = "keys";
const KEY_LIFE_MS: u64 = 60 * 1000;

/// The handling of a challenge that expires at `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChallengeState {
    Answered,
    /// Its server is gone.
    Over,
    /// Its date is too far in the future; it is left alone.
    Odd,
}

const fn challenge_state(until: u64, now: u64) -> ChallengeState {
    if until <= now {
        ChallengeState::Over
    } else if until > now.saturating_add(2 * CHALLENGE_LIFE) {
        ChallengeState::Odd
    } else {
        ChallengeState::Answered
    }
}

impl CertificateShare {
    pub(super) async fn publish_challenges(&self, known: &mut Known) -> Result<(), ValkeyFault> {
        let own = self.issued.fleet().challenges().into_iter();
        let life = self.memory.life;
        let now: BTreeMap<_, _> = own.map(|one| (challenge_field(life, &one), one)).collect();
        let over: Vec<_> =
            known.published.keys().filter(|id| !now.contains_key(*id)).cloned().collect();
        for id in over {
            self.line.drop_secret_field(TABLE, &id).await?;
            known.published.remove(&id);
        }
        for (id, challenge) in now {
            if known.published.contains_key(&id) {
                continue;
            }
            let until = known.now_ms / 1000 + CHALLENGE_LIFE;
            let (purpose, name) = (VaultPurpose::Challenges, challenge_name(&id));
            if let Some(sealed) = self.vault.seal(purpose, &name, &written(&challenge, until)) {
                self.line.set_secret_field(TABLE, &id, &sealed).await?;
                known.published.insert(id, challenge);
            }
        }
        Ok(())
    }

    pub(super) async fn receive_challenges(&self, known: &mut Known) -> Result<(), ValkeyFault> {
        let seconds = known.now_ms / 1000;
        let mut found = BTreeMap::new();
        let own = format!("{:016x}", self.memory.life);
        for (id, record) in self.line.secret_table(TABLE).await? {
            if known.published.contains_key(&id) || found.len() >= CHALLENGES_MAX {
                continue;
            }
            if id.starts_with(own.as_bytes()) {
                // From an earlier connection.
                self.line.drop_secret_field(TABLE, &id).await?;
                continue;
            }
            let name = challenge_name(&id);
            let opened = self.vault.open(VaultPurpose::Challenges, &name, &record).ok();
            let Some((until, challenge)) = opened.as_ref().and_then(|plain| read(plain)) else {
                self.complain(TABLE);
                continue;
            };
            match challenge_state(until, seconds) {
                ChallengeState::Answered => drop(found.insert(id, challenge)),
                ChallengeState::Over => self.line.drop_secret_field(TABLE, &id).await?,
                ChallengeState::Odd => {}
            }
        }
        let gone = known.received.iter().filter(|(id, _)| !found.contains_key(*id));
        gone.for_each(|(_, challenge)| self.issued.withdraw_for_others(challenge));
        let new = found.iter().filter(|(id, _)| !known.received.contains_key(*id));
        let new: Vec<&Challenge> = new.map(|(_, challenge)| challenge).collect();
        new.into_iter().for_each(|challenge| self.issued.present_for_others(challenge));
        known.received = found;
        Ok(())
    }

    /// Publishes the first key here, and reads those of other servers.
    pub(super) async fn share_first_key(&self, known: &mut Known) -> Result<(), ValkeyFault> {
        let name = |node: &str| format!("first key of {node}");
        let now = known.now_ms.to_le_bytes();
        let sealed = self.vault.seal(VaultPurpose::Certificates, &name(&self.node), &now);
        if let Some(sealed) = sealed {
            self.line.set_secret_field(KEYS_TABLE, self.node.as_bytes(), &sealed).await?;
        }
        let before = std::mem::take(&mut known.firsts);
        for (node, record) in self.line.secret_table(KEYS_TABLE).await? {
            let name = name(&String::from_utf8_lossy(&node));
            // A server whose key is unknown also writes records that cannot be decrypted.
            let opened = self.vault.open(VaultPurpose::Certificates, &name, &record).ok();
            let seen = opened.and_then(|opened| Some(u64::from_le_bytes(*opened.first_chunk()?)));
            let silent_ms = seen.map(|seen| known.now_ms.saturating_sub(seen));
            match (silent_ms, Vault::key_of(&record)) {
                (Some(silent), Some(key)) if silent < KEY_LIFE_MS => known.firsts.push(key),
                (Some(silent), _) if silent >= KEY_LIFE_MS => {
                    self.line.drop_secret_field(KEYS_TABLE, &node).await?;
                }
                _ => {}
            }
        }
        known.firsts.sort_unstable();
        self.memory.record_firsts(Some(&known.firsts));
        if known.firsts != before {
            // Unchanged records may be encrypted with a new key now.
            known.read_all_again();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CHALLENGE_LIFE, ChallengeState, challenge_state};

    #[test]
    fn a_challenge_is_answered_for_an_hour() {
        for (until, wanted) in [
            (100, ChallengeState::Over),
            (101, ChallengeState::Answered),
            (100 + CHALLENGE_LIFE, ChallengeState::Answered),
            (100 + 2 * CHALLENGE_LIFE + 1, ChallengeState::Odd),
        ] {
            assert_eq!(challenge_state(until, 100), wanted, "{until}");
        }
    }
}
