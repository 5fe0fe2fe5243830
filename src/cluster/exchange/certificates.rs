//! Certificates of issuers that servers share: who orders, challenges that any of them answers, and
//! what came of orders.
//!
//! A lease says who orders. It saves orders and is evidence of nothing: of two certificates, all
//! servers use the one that is good for longer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bolide_acme::{Challenge, OrderId};
use bolide_cluster::Vault;
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

/// Shares certificates on one connection.
pub(super) struct CertificateShare {
    pub(super) line: Line,
    pub(super) vault: Arc<Vault>,
    pub(super) issued: IssuedCertificates,
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
    /// Tokens of leases.
    leases: BTreeMap<OrderId, String>,
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
            leases: BTreeMap::new(),
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
        for (order, token) in known.leases.iter().filter(|_| is_due) {
            self.line.renew_lease(&lease_name(order), token, LEASE_MS).await?;
        }
        for order in self.issued.fleet().take_ended() {
            if let Some(token) = known.leases.remove(&order) {
                self.line.end_lease(&lease_name(&order), &token).await?;
            }
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
        let name = lease_name(order);
        let mut is_mine = self.line.take_lease(&name, &token, LEASE_MS).await?;
        let own = self.issued.fleet().orders().into_iter().find(|(other, _)| other == order);
        if self.meet(order, own.and_then(|(_, own)| own).as_ref(), known).await? && is_mine {
            self.line.end_lease(&name, &token).await?;
            is_mine = false;
        } else if is_mine {
            known.leases.insert(order.clone(), token);
        }
        self.issued.fleet().answer(order, is_mine);
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
        if record.is_some() && found.is_none() {
            // It may be of a key that this server is still to get: it stays.
            self.complain(&name);
            return Ok(false);
        }
        let ends = |one: Option<&FleetCertificate>| one.map_or(0, |one| one.end);
        if ends(found.as_ref()) < ends(own) {
            let now = bolide_io::process::now().unix_millis;
            let keep_ms = ends(own).saturating_mul(1000).saturating_sub(now);
            let sealed = own.and_then(|own| self.vault.seal(&name, &plain(own)));
            if let Some(sealed) = sealed.filter(|_| keep_ms > 0) {
                let change = (record.as_deref().unwrap_or_default(), &*sealed);
                if self.line.replace_secret(&name, change, keep_ms).await? {
                    known.seen.insert(order.clone(), sealed);
                }
            }
            return Ok(false);
        }
        let (Some(record), Some(found)) = (record, found) else { return Ok(false) };
        let is_longer = found.end > ends(own);
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

    fn open(&self, order: &OrderId, record: &[u8]) -> Option<FleetCertificate> {
        let opened = self.vault.open(&certificate_name(order), record).ok()?;
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
            if let Some(sealed) = self.vault.seal(&name, &written(&challenge, until)) {
                self.line.set_secret_field(TABLE, &id, &sealed).await?;
                known.told.insert(id, challenge);
            }
        }
        Ok(())
    }

    async fn hear_challenges(&self, known: &mut Known) -> Result<(), ValkeyFault> {
        let seconds = bolide_io::process::now().unix_seconds();
        let mut found = BTreeMap::new();
        for (id, record) in self.line.secret_table(TABLE).await? {
            if known.told.contains_key(&id) || found.len() >= CHALLENGES_MAX {
                continue;
            }
            let name = format!("challenge:{}", String::from_utf8_lossy(&id));
            let opened = self.vault.open(&name, &record).ok();
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
