//! Certificates of issuers that servers share: who orders, challenges that any of them answers, and
//! what came of orders.
//!
//! A lease says who orders. It saves orders and is evidence of nothing: of two certificates, all
//! servers use the one that is good for longer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bolide_acme::{Challenge, OrderId};
use bolide_cluster::{Vault, VaultPurpose};
use bolide_conf::model::LogLevel;
use bolide_valkey::{Line, ValkeyFault};
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::teller::{Teller, Topic};
use crate::acme::{FleetCertificate, FleetState, IssuedCertificates};

/// How often servers look for challenges. It is a part of what challenges take to spread.
const LOOK: Duration = Duration::from_millis(500);
/// Looks from one look at all certificates to the next.
const ALL: u32 = 20;
/// After how long without a word of the server that orders another one may begin.
const LEASE_MS: u64 = 60 * 1000;
/// Seconds after which a challenge is none any more.
const CHALLENGE_LIFE: u64 = 60 * 60;
/// LIMIT: challenges of other servers.
const CHALLENGES_MAX: usize = 1000;
/// The table of challenges.
const TABLE: &str = "challenges";

/// Tokens of leases that are this server's, or may be. They outlive connections, so that a lease
/// whose connection broke is taken again, or given back.
#[derive(Debug, Default)]
pub(super) struct OrderLeases(Mutex<BTreeMap<OrderId, String>>);

impl OrderLeases {
    fn with<T>(&self, what: impl FnOnce(&mut BTreeMap<OrderId, String>) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Shares certificates on one connection.
pub(super) struct CertificateShare {
    pub(super) line: Line,
    pub(super) vault: Arc<Vault>,
    pub(super) issued: IssuedCertificates,
    pub(super) leases: Arc<OrderLeases>,
    /// What begins tokens of this process, by chance.
    pub(super) life: u64,
    pub(super) teller: Arc<Teller>,
}

/// What is known on this connection.
struct Known {
    issued: IssuedCertificates,
    /// Challenges of this server that others are told of.
    told: BTreeMap<Vec<u8>, Challenge>,
    /// Challenges of others that are answered here.
    heard: BTreeMap<Vec<u8>, Challenge>,
    /// Records of certificates that were looked at.
    seen: BTreeMap<OrderId, Vec<u8>>,
    numbers: u64,
    looks: u32,
}

impl Known {
    fn new(issued: IssuedCertificates) -> Self {
        Self {
            issued,
            told: BTreeMap::new(),
            heard: BTreeMap::new(),
            seen: BTreeMap::new(),
            numbers: 0,
            looks: 0,
        }
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        // There is no word any more of when they are over.
        self.heard.values().for_each(|challenge| self.issued.withdraw_for_others(challenge));
    }
}

impl CertificateShare {
    /// Shares as long as the connection is there.
    pub(super) async fn share(self) {
        let mut known = Known::new(self.issued.clone());
        while self.line.is_open() {
            match self.turn(&mut known).await {
                Ok(()) => self.issued.fleet().turn(FleetState::Joined),
                Err(fault) => {
                    self.issued.fleet().turn(FleetState::Alone);
                    let text = format!("cluster: certificates are not shared: {fault}");
                    self.teller.tell(Topic::Certificates, LogLevel::Error, &text);
                }
            }
            let _rung = timeout(LOOK, self.issued.fleet().bell.notified()).await;
        }
    }

    async fn turn(&self, known: &mut Known) -> Result<(), ValkeyFault> {
        self.tell_challenges(known).await?;
        self.hear_challenges(known).await?;
        // What came of an order is told before its lease ends.
        let is_due = known.looks.is_multiple_of(ALL);
        known.looks = known.looks.wrapping_add(1);
        for (order, own) in self.issued.fleet().orders() {
            let is_new = own.is_some() && !known.seen.contains_key(&order);
            if is_due || is_new || self.is_newer(own.as_ref(), known.seen.get(&order), &order) {
                self.meet(&order, own.as_ref(), known).await?;
            }
        }
        for order in self.issued.fleet().ended() {
            self.give_back(&order).await?;
            self.issued.fleet().forget_ended(&order);
        }
        let leases = if is_due { self.leases.with(|all| all.clone()) } else { BTreeMap::new() };
        for (order, token) in &leases {
            self.line.renew_lease(&lease_name(order), token, LEASE_MS).await?;
        }
        for order in self.issued.fleet().asked() {
            self.claim(&order, known).await?;
        }
        Ok(())
    }

    /// Asks for the lease of an order. The server that had it before may have left a
    /// certificate.
    async fn claim(&self, order: &OrderId, known: &mut Known) -> Result<(), ValkeyFault> {
        known.numbers += 1;
        let token = format!("{:016x}-{:x}", self.life, known.numbers);
        // Before it is asked for: it may be there although no answer comes.
        let token = self.leases.with(|all| all.entry(order.clone()).or_insert(token).clone());
        let is_free = self.line.take_lease(&lease_name(order), &token, LEASE_MS).await?;
        if !is_free {
            self.leases.with(|all| all.remove(order));
        }
        let own = self.issued.fleet().orders().into_iter().find(|(other, _)| other == order);
        let met = self.meet(order, own.and_then(|(_, own)| own).as_ref(), known).await;
        let is_mine = is_free && matches!(met, Ok(false));
        if is_free && !is_mine {
            self.give_back(order).await?;
        }
        met?;
        self.issued.fleet().answer(order, is_mine);
        Ok(())
    }

    /// Ends the lease of an order; without an answer its token stays known.
    async fn give_back(&self, order: &OrderId) -> Result<(), ValkeyFault> {
        if let Some(token) = self.leases.with(|all| all.get(order).cloned()) {
            self.line.end_lease(&lease_name(order), &token).await?;
            self.leases.with(|all| all.remove(order));
        }
        Ok(())
    }

    /// Whether the certificate in use here is good for longer than the record that was seen.
    fn is_newer(
        &self,
        own: Option<&FleetCertificate>,
        seen: Option<&Vec<u8>>,
        order: &OrderId,
    ) -> bool {
        let seen = seen.and_then(|record| self.open(order, record));
        own.is_some_and(|own| seen.is_none_or(|seen| seen.end < own.end))
    }

    /// Looks at the record of an order, and takes it over or replaces it. Returns whether it was
    /// taken over.
    async fn meet(
        &self,
        order: &OrderId,
        own: Option<&FleetCertificate>,
        known: &mut Known,
    ) -> Result<bool, ValkeyFault> {
        let name = certificate_name(order);
        let record = self.line.secret(&name).await?;
        let found = record.as_ref().and_then(|record| self.open(order, record));
        let is_strange = record.is_some() && found.is_none();
        let ends = |one: Option<&FleetCertificate>| one.map_or(0, |one| one.end);
        if ends(found.as_ref()) < ends(own) {
            let before = record.as_deref().unwrap_or_default();
            let is_replaced = match own {
                Some(own) => self.replace(order, own, before, known).await?,
                None => false,
            };
            if is_strange && !is_replaced {
                self.complain(&name);
            } else if is_strange {
                let text = format!(
                    "cluster: the record \"{name}\" in Valkey, which no key of this server opens, \
                     is replaced by the certificate in use here"
                );
                self.teller.tell(Topic::Replaced, LogLevel::Warn, &text);
            }
            return Ok(false);
        }
        if is_strange {
            // There is nothing good here to put in its place.
            self.complain(&name);
            return Ok(false);
        }
        let (Some(record), Some(found)) = (record, found) else { return Ok(false) };
        let is_longer = found.end > ends(own);
        if own.is_some() && !is_longer && !self.vault.is_by_first(&record) {
            // Its key is on its way out. What it has stays what it is.
            self.replace(order, &found, &record, known).await?;
            return Ok(false);
        }
        let taken = if is_longer { self.issued.take_over(order, &found) } else { Ok(false) };
        known.seen.insert(order.clone(), record);
        match taken {
            Ok(taken) => {
                if taken {
                    let text = format!("cluster: \"{}\": another server's is taken over", order.0);
                    self.teller.say(LogLevel::Notice, &text);
                }
                Ok(taken)
            }
            Err(why) => {
                let text = format!("cluster: \"{}\" of another server is not used: {why}", order.0);
                self.teller.tell(Topic::Record, LogLevel::Error, &text);
                Ok(false)
            }
        }
    }

    /// Puts a certificate in the place of the record that was seen, if it is still that. Returns
    /// whether it was.
    async fn replace(
        &self,
        order: &OrderId,
        by: &FleetCertificate,
        before: &[u8],
        known: &mut Known,
    ) -> Result<bool, ValkeyFault> {
        let name = certificate_name(order);
        let now = bolide_io::process::now().unix_millis;
        let keep_ms = by.end.saturating_mul(1000).saturating_sub(now);
        let sealed = self.vault.seal(VaultPurpose::Certificates, &name, &plain(by));
        let Some(sealed) = sealed.filter(|_| keep_ms > 0) else { return Ok(false) };
        let is_replaced = self.line.replace_secret(&name, (before, &*sealed), keep_ms).await?;
        if is_replaced {
            known.seen.insert(order.clone(), sealed);
        }
        Ok(is_replaced)
    }

    fn open(&self, order: &OrderId, record: &[u8]) -> Option<FleetCertificate> {
        let name = certificate_name(order);
        let opened = self.vault.open(VaultPurpose::Certificates, &name, record).ok()?;
        let (end, rest) = opened.split_first_chunk()?;
        let (chain, key) = take(rest)?;
        let key = Zeroizing::new(std::str::from_utf8(key).ok()?.to_owned());
        Some(FleetCertificate { end: u64::from_le_bytes(*end), chain: chain.to_vec(), key })
    }

    fn complain(&self, name: &str) {
        let text = format!(
            "cluster: the record \"{name}\" in Valkey is not used: it is foreign, damaged, or of \
             another version, namespace or key"
        );
        self.teller.tell(Topic::Record, LogLevel::Error, &text);
    }

    async fn tell_challenges(&self, known: &mut Known) -> Result<(), ValkeyFault> {
        let now: BTreeMap<_, _> =
            self.issued.fleet().challenges().into_iter().map(|one| (field(&one), one)).collect();
        let over: Vec<_> = known.told.keys().filter(|id| !now.contains_key(*id)).cloned().collect();
        for id in over {
            self.line.drop_secret_field(TABLE, &id).await?;
            known.told.remove(&id);
        }
        for (id, challenge) in now {
            if known.told.contains_key(&id) {
                continue;
            }
            let until = bolide_io::process::now().unix_seconds() + CHALLENGE_LIFE;
            let name = format!("challenge:{}", String::from_utf8_lossy(&id));
            if let Some(sealed) = self.sealed_challenge(&name, &challenge, until) {
                self.line.set_secret_field(TABLE, &id, &sealed).await?;
                known.told.insert(id, challenge);
            }
        }
        Ok(())
    }

    fn sealed_challenge(&self, name: &str, challenge: &Challenge, until: u64) -> Option<Vec<u8>> {
        self.vault.seal(VaultPurpose::Challenges, name, &written(challenge, until))
    }

    async fn hear_challenges(&self, known: &mut Known) -> Result<(), ValkeyFault> {
        let seconds = bolide_io::process::now().unix_seconds();
        let mut found = BTreeMap::new();
        for (id, record) in self.line.secret_table(TABLE).await? {
            if known.told.contains_key(&id) || found.len() >= CHALLENGES_MAX {
                continue;
            }
            let name = format!("challenge:{}", String::from_utf8_lossy(&id));
            let opened = self.vault.open(VaultPurpose::Challenges, &name, &record).ok();
            match opened.as_ref().and_then(|plain| read(plain)) {
                Some((until, _)) if until <= seconds => {
                    // The server that had it is gone.
                    self.line.drop_secret_field(TABLE, &id).await?;
                }
                Some((until, _)) if until > seconds + 2 * CHALLENGE_LIFE => {}
                Some((_, challenge)) => drop(found.insert(id, challenge)),
                None => self.complain("challenges"),
            }
        }
        for (id, challenge) in &known.heard {
            if !found.contains_key(id) {
                self.issued.withdraw_for_others(challenge);
            }
        }
        for (id, challenge) in &found {
            if !known.heard.contains_key(id) {
                self.issued.present_for_others(challenge);
            }
        }
        known.heard = found;
        Ok(())
    }
}

impl Drop for CertificateShare {
    fn drop(&mut self) {
        self.issued.fleet().turn(FleetState::Alone);
    }
}

/// What names an order in keys.
fn digest(order: &OrderId) -> String {
    hex(&bolide_tls::secret_of(order.0.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn certificate_name(order: &OrderId) -> String {
    format!("certificate:{}", digest(order))
}

fn lease_name(order: &OrderId) -> String {
    format!("order:{}", digest(order))
}

/// What names a challenge in the table.
fn field(challenge: &Challenge) -> Vec<u8> {
    hex(&bolide_tls::secret_of(&written(challenge, 0))[..16]).into_bytes()
}

fn push(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(&(part.len() as u32).to_le_bytes());
    out.extend_from_slice(part);
}

fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

fn plain(certificate: &FleetCertificate) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(certificate.end.to_le_bytes().to_vec());
    push(&mut out, &certificate.chain);
    out.extend_from_slice(certificate.key.as_bytes());
    out
}

fn written(challenge: &Challenge, until: u64) -> Vec<u8> {
    let mut out = until.to_le_bytes().to_vec();
    match challenge {
        Challenge::Http01 { name, token, key_authorization } => {
            out.push(1);
            push(&mut out, name.as_bytes());
            push(&mut out, token.as_bytes());
            push(&mut out, key_authorization.as_bytes());
        }
        Challenge::TlsAlpn01 { name, digest } => {
            out.push(2);
            push(&mut out, name.as_bytes());
            out.extend_from_slice(digest);
        }
    }
    out
}

fn read(bytes: &[u8]) -> Option<(u64, Challenge)> {
    let (until, rest) = bytes.split_first_chunk()?;
    let (kind, rest) = rest.split_first()?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let (name, rest) = take(rest)?;
    let name = text(name)?;
    let challenge = match kind {
        1 => {
            let (token, rest) = take(rest)?;
            let (key_authorization, rest) = take(rest)?;
            let (token, key_authorization) = (text(token)?, text(key_authorization)?);
            rest.is_empty().then_some(Challenge::Http01 { name, token, key_authorization })?
        }
        2 => Challenge::TlsAlpn01 { name, digest: rest.try_into().ok()? },
        _ => return None,
    };
    Some((u64::from_le_bytes(*until), challenge))
}

#[cfg(test)]
mod tests {
    use super::{Challenge, read, written};

    #[test]
    fn a_challenge_is_read_as_it_was_written() {
        let text = str::to_owned;
        for challenge in [
            Challenge::Http01 {
                name: text("a.test"),
                token: text("t"),
                key_authorization: text("t.k"),
            },
            Challenge::TlsAlpn01 { name: text("a.test"), digest: [7; 32] },
        ] {
            let bytes = written(&challenge, 9);
            assert_eq!(read(&bytes), Some((9, challenge)));
            for end in 0..bytes.len() {
                assert_eq!(read(&bytes[..end]), None, "{end}");
            }
            assert_eq!(read(&[&bytes[..], b"x"].concat()), None);
        }
    }
}
