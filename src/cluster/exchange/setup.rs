//! The setup of the second thread, including the content of its files.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use bolide_cluster::{Vault, VaultSecret, read_vault_key};
use bolide_conf::SourcePlace;
use bolide_conf::model::{ClusterConf, Config, Http};
use bolide_valkey::ValkeySettings;
use zeroize::Zeroizing;

use super::status::{ExchangeStatus, LimitsStatus, SecretsStatus};
use crate::cluster::setup::{ClusterSetup, address};

/// LIMIT: bytes of a key file.
const KEY_FILE_MAX: u64 = 4096;
/// The permission bits of other accounts.
const OTHERS: u32 = 0o077;

/// The setup; if two are equal, no new thread is needed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExchangeSetup {
    pub(super) settings: ValkeySettings,
    pub(super) node: String,
    pub(super) vault: Option<Arc<Vault>>,
    pub(super) shares_limits: bool,
}

impl ExchangeSetup {
    /// `None` if this thread shares nothing.
    ///
    /// # Errors
    ///
    /// A file cannot be read, belongs to another account, or other accounts may read it.
    pub(super) fn read(http: &Http) -> Result<Option<Self>, String> {
        let Some(conf) = &http.cluster else { return Ok(None) };
        let vault = vault(conf)?.map(Arc::new);
        let shares_limits = http.limit_zones.iter().any(|zone| zone.shared);
        if vault.is_none() && !shares_limits {
            return Ok(None);
        }
        let ClusterSetup { settings, node, .. } = ClusterSetup::read(conf)?;
        Ok(Some(Self { settings, node, vault, shares_limits }))
    }

    /// Whether the keys of tickets of a thread with the setup `before` may be used until this one
    /// has read them: both have the same Valkey, and a key of secrets in common.
    pub(super) fn inherits(&self, before: &Self) -> bool {
        let vaults = self.vault.as_ref().zip(before.vault.as_ref());
        self.settings == before.settings && vaults.is_some_and(|(own, old)| own.shares_key(old))
    }

    /// The status that `bolide cluster status` shows before the first exchange with Valkey.
    pub(super) fn status(&self) -> ExchangeStatus {
        ExchangeStatus {
            namespace: self.settings.namespace.clone(),
            node: self.node.clone(),
            address: address(&self.settings),
            secrets: self.vault.as_ref().map(|_| SecretsStatus::default()),
            limits: self.shares_limits.then(LimitsStatus::default),
            ..ExchangeStatus::default()
        }
    }
}

/// The secret for one purpose that is common to the servers of a cluster with a `secrets_key`.
///
/// # Errors
///
/// A file cannot be read, or other accounts may read it.
pub(crate) fn common_secret(config: &Config, purpose: &[u8]) -> Result<Option<[u8; 32]>, String> {
    let conf = config.http.as_ref().and_then(|http| http.cluster.as_ref());
    let vault = conf.map(vault).transpose()?.flatten();
    Ok(vault.map(|vault| *vault.derived(purpose)))
}

fn vault(conf: &ClusterConf) -> Result<Option<Vault>, String> {
    let keys = conf.secrets_keys.iter().map(|(path, place)| key(path, place));
    Ok(Vault::new(conf.namespace.as_bytes(), keys.collect::<Result<Vec<_>, _>>()?))
}

fn key(path: &Path, place: &SourcePlace) -> Result<VaultSecret, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| {
        let why = bolide_base::errno::describe(&error);
        format!("open() \"{shown}\" failed ({why}) in {place}")
    };
    // One descriptor for both: the file that was checked is the one that is read.
    let file = bolide_io::file::open_at_once(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err(format!("\"secrets_key\" \"{shown}\" is no regular file in {place}"));
    }
    let (own, _) = bolide_io::process::own_ids();
    if about.uid() != 0 && about.uid() != own {
        let owner = about.uid();
        return Err(format!(
            "\"secrets_key\" \"{shown}\" belongs to user {owner}: its owner has to be who starts \
             the server (user {own}) or root in {place}"
        ));
    }
    let mode = about.mode();
    if mode & OTHERS != 0 {
        let mode = mode & 0o777;
        return Err(format!(
            "\"secrets_key\" \"{shown}\" is open to others than its owner (mode {mode:04o}): make \
             it 0600 in {place}"
        ));
    }
    let mut text = Zeroizing::new(Vec::new());
    file.take(KEY_FILE_MAX).read_to_end(&mut text).map_err(failed)?;
    read_vault_key(&text).ok_or_else(|| {
        format!(
            "\"secrets_key\" \"{shown}\" has no key: its first line is to have 64 hexadecimal \
             digits in {place}"
        )
    })
}
