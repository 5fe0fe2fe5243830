//! Shared accounts at issuers: one server creates each, and all use it.
//!
//! The record in Valkey is the account of all. Only a server that knows it to be invalid replaces
//! it: its key was changed, or the issuer does not know it.

use bolide_acme::{AccountName, OrderId};
use bolide_cluster::{VaultKeyId, VaultPurpose};
use bolide_valkey::{KeptValue, ValkeyFault};
use zeroize::Zeroizing;

use super::CertificateShare;
use super::record::{account_name, account_order};
use crate::acme::{FleetAccount, KnownAccount};

/// How long Valkey keeps an account; servers that have it store it again.
const KEEP_MS: u64 = 400 * 24 * 3600 * 1000;

impl CertificateShare {
    /// Reads the shared accounts, and publishes new ones.
    pub(super) async fn share_accounts(
        &self,
        is_due: bool,
        firsts: &[VaultKeyId],
    ) -> Result<(), ValkeyFault> {
        let is_news = |known: &KnownAccount| known.own.is_some() && known.own != known.common;
        let all = self.issued.fleet().accounts().into_iter();
        let wanted: Vec<_> = all.filter(|(_, known)| is_due || is_news(known)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = wanted.iter().map(|(name, _)| account_name(name)).collect();
        let asked: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
        let found = self.line.look_at_secrets(&asked).await?;
        for ((name, known), found) in wanted.iter().zip(found) {
            self.meet_account((name, known), found, firsts).await?;
        }
        Ok(())
    }

    async fn meet_account(
        &self,
        (name, known): (&AccountName, &KnownAccount),
        found: KeptValue,
        firsts: &[VaultKeyId],
    ) -> Result<(), ValkeyFault> {
        let label = account_name(name);
        let record = match found {
            KeptValue::Bytes(record) => Some(record),
            KeptValue::None => None,
            KeptValue::Known | KeptValue::Odd => {
                self.complain(&label);
                return Ok(());
            }
        };
        let opened = |record: &Vec<u8>| {
            let plain = self.vault.open(VaultPurpose::Accounts, &label, record).ok()?;
            Some(FleetAccount(Zeroizing::new(plain.to_vec())))
        };
        let common = record.as_ref().and_then(opened);
        let fleet = self.issued.fleet();
        let is_over = common.is_some() && common == known.over;
        let own = known.own.as_ref().filter(|own| Some(*own) != known.over.as_ref());
        if let Some(own) = own.filter(|_| common.is_none() || is_over) {
            let as_order = account_order(name);
            let may = record
                .as_ref()
                .is_none_or(|record| common.is_some() || self.memory.replaces(&as_order, record));
            let sealed = self.vault.seal(VaultPurpose::Accounts, &label, &own.0);
            if let Some(sealed) = sealed.filter(|_| may) {
                let before = record.as_deref().unwrap_or_default();
                let with = (before, &*sealed);
                if self.line.replace_secret(&label, with, KEEP_MS).await? {
                    fleet.set_common_account(name, Some(own.clone()));
                    // Other servers may begin orders that waited for it.
                    return self.end_leases(vec![as_order]).await;
                }
            }
        }
        if record.is_some() && common.is_none() {
            self.complain(&label);
        }
        if let (Some(record), Some(common)) = (&record, &common)
            && self.vault.is_to_be_sealed_anew(record, firsts)
            && let Some(sealed) = self.vault.seal(VaultPurpose::Accounts, &label, &common.0)
        {
            // Its key is being retired. Its content stays.
            self.line.replace_secret(&label, (record, &*sealed), KEEP_MS).await?;
        }
        fleet.set_common_account(name, common);
        Ok(())
    }

    /// Whether an order may begin with its account: it exists, or this server may create it.
    pub(super) async fn may_use_account(
        &self,
        order: &OrderId,
        firsts: &[VaultKeyId],
    ) -> Result<bool, ValkeyFault> {
        let Some(name) = self.issued.fleet().missing_account(order) else { return Ok(true) };
        let as_order = account_order(&name);
        let is_free = self.take_leases(&[as_order]).await?.first().copied().unwrap_or(false);
        if is_free {
            // The previous owner of the lease may have left an account.
            let known = self.issued.fleet().accounts().remove(&name).unwrap_or_default();
            let label = account_name(&name);
            if let Some(found) = self.line.look_at_secrets(&[(&label, b"")]).await?.pop() {
                self.meet_account((&name, &known), found, firsts).await?;
            }
        }
        Ok(is_free)
    }
}
