//! Shared ACME certificates: who orders, challenges that every server answers, and issued
//! certificates; and accounts at issuers, which one server creates.
//!
//! A lease decides who orders. It only saves orders: of two certificates, all servers use the newer
//! one. Valkey's clock counts, so that a server with a wrong clock takes nothing away from others.

mod accounts;
mod challenges;
mod memory;
mod record;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bolide_acme::schedule::Validity;
use bolide_acme::{Challenge, KeepFault, OrderId};
use bolide_cluster::{Vault, VaultKeyId, VaultPurpose};
use bolide_conf::model::LogLevel;
use bolide_valkey::{KeptValue, Line, VALUE_MAX, ValkeyFault, stamp_of};
use tokio::time::timeout;

use super::log::{ExchangeLog, Topic};
use super::status::ExchangeBoard;
use crate::acme::{FleetCertificate, FleetState, IssuedCertificates};
pub(super) use memory::ShareMemory;
use record::{account_order, certificate, certificate_name, is_of_account, lease_name, plain};

/// How often servers poll for challenges; a part of the time that challenges take to spread.
const LOOK: Duration = Duration::from_millis(500);
/// Polls between two comparisons of all certificates, and between two complete reads.
const ALL: u32 = 20;
const WHOLE: u32 = 60 * ALL;
/// How long the ordering server may be silent before another one may order.
const LEASE_MS: u64 = 60 * 1000;

/// A deviation of Valkey's clock from elapsed time that means another clock.
const JUMP_MS: u64 = 60 * 1000;

/// Shares certificates on one connection.
pub(super) struct CertificateShare {
    pub(super) line: Line,
    pub(super) vault: Arc<Vault>,
    pub(super) node: String,
    pub(super) issued: IssuedCertificates,
    pub(super) memory: Arc<ShareMemory>,
    pub(super) board: ExchangeBoard,
    pub(super) log: Arc<ExchangeLog>,
}

/// A known record.
struct Seen {
    stamp: Vec<u8>,
    /// The validity of its certificate; none if it cannot be used.
    life: Option<Validity>,
    /// That of the certificate that was in use here at that time.
    own: Option<Validity>,
}

/// The state of one connection.
struct Known {
    issued: IssuedCertificates,
    /// Published challenges of this server.
    published: BTreeMap<Vec<u8>, Challenge>,
    /// Challenges of other servers that are answered here.
    received: BTreeMap<Vec<u8>, Challenge>,
    /// Known records of certificates.
    seen: BTreeMap<OrderId, Seen>,
    /// The first keys of the present servers.
    firsts: Vec<VaultKeyId>,
    /// Valkey's clock at this poll in milliseconds, and the local time of the poll.
    now_ms: u64,
    looked: Option<tokio::time::Instant>,
    looks: u32,
    /// Whether nothing can be stored in this poll.
    cannot_keep: bool,
}

impl Known {
    fn new(issued: IssuedCertificates) -> Self {
        Self {
            issued,
            published: BTreeMap::new(),
            received: BTreeMap::new(),
            seen: BTreeMap::new(),
            firsts: Vec::new(),
            now_ms: 0,
            looked: None,
            looks: 0,
            cannot_keep: false,
        }
    }

    /// Sets the time by Valkey's clock. After a change of the clock, for example to that of a
    /// replica, everything is published again, because other servers may take it for expired.
    fn set_time(&mut self, now_ms: u64, now: tokio::time::Instant) {
        if let Some(before) = self.looked.replace(now) {
            let passed = now.saturating_duration_since(before).as_millis() as u64;
            if now_ms.abs_diff(self.now_ms.saturating_add(passed)) > JUMP_MS {
                self.published.clear();
            }
        }
        self.now_ms = now_ms;
    }

    /// The next poll reads all records, including known ones.
    fn read_all_again(&mut self) {
        self.seen.values_mut().for_each(|seen| seen.stamp.clear());
    }

    /// Whether other servers do not have the certificate in use here. A failed attempt is not
    /// repeated until the record changes.
    fn is_news(&self, order: &OrderId, own: Option<&FleetCertificate>) -> bool {
        let own = self.good_life(own);
        own.is_some() && self.seen.get(order).is_none_or(|seen| seen.life < own && seen.own != own)
    }

    /// The validity of a certificate that has not expired.
    fn good_life(&self, one: Option<&FleetCertificate>) -> Option<Validity> {
        let life = one.map(|one| one.validity);
        life.filter(|life| life.until.saturating_mul(1000) > self.now_ms)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        // Their end would not be noticed any more.
        self.received.values().for_each(|challenge| self.issued.withdraw_for_others(challenge));
    }
}

impl CertificateShare {
    /// Shares while the connection lasts.
    pub(super) async fn share(self) {
        let mut known = Known::new(self.issued.clone());
        self.memory.record_firsts(None);
        while self.line.is_open() {
            match self.turn(&mut known).await {
                Ok(()) => {
                    self.issued.fleet().turn(FleetState::Joined);
                    self.publish_status(&known);
                }
                Err(fault) => {
                    self.issued.fleet().turn(FleetState::Alone);
                    let text = format!("cluster: certificates are not shared: {fault}");
                    self.board.record_fault(&text);
                    self.log.write_limited(Topic::Certificates, LogLevel::Error, &text);
                }
            }
            let _rung = timeout(LOOK, self.issued.fleet().bell.notified()).await;
        }
    }

    fn publish_status(&self, known: &Known) {
        let fleet = self.issued.fleet();
        let (orders, certificates) = fleet.counts();
        let accounts = fleet.accounts();
        let common = accounts.values().filter(|known| known.common.is_some()).count();
        let leases = self.memory.leases().len();
        let others = known.firsts.iter().filter(|key| !self.vault.is_first(key)).count();
        self.board.update_secrets(|secrets| {
            (secrets.orders, secrets.certificates) = (orders as u64, certificates as u64);
            (secrets.accounts, secrets.leases) = (common as u64, leases as u64);
            secrets.challenges = known.received.len() as u64;
            secrets.other_keys = others as u64;
        });
    }

    async fn turn(&self, known: &mut Known) -> Result<(), ValkeyFault> {
        let now_ms = self.line.time().await?;
        known.set_time(now_ms, tokio::time::Instant::now());
        known.cannot_keep = false;
        self.publish_challenges(known).await?;
        self.receive_challenges(known).await?;
        let is_due = known.looks.is_multiple_of(ALL);
        if known.looks.is_multiple_of(WHOLE) {
            known.read_all_again();
        }
        known.looks = known.looks.wrapping_add(1);
        if is_due {
            self.share_first_key(known).await?;
        }
        let asked = self.issued.fleet().asked();
        // An order begins with the current account.
        self.share_accounts(is_due || !asked.is_empty(), &known.firsts).await?;
        // The result of an order is published before its lease ends.
        let fleet = self.issued.fleet();
        let orders = fleet.orders().into_iter();
        let wanted = orders
            .filter(|(order, own)| is_due || own.is_some() && known.is_news(order, own.as_deref()));
        let wanted: Vec<OrderId> = wanted.map(|(order, _)| order).collect();
        self.meet_all(&wanted, known).await?;
        let ended: Vec<OrderId> = fleet.ended().into_iter().collect();
        self.give_back(&ended).await?;
        ended.iter().for_each(|order| fleet.forget_ended(order));
        if is_due {
            let leases: Vec<_> = self.memory.leases().into_iter().map(named).collect();
            self.line.renew_leases(&leases, LEASE_MS).await?;
        }
        self.claim_all(&asked, known).await
    }

    /// Claims the leases of orders. The previous owner of a lease may have left a certificate.
    async fn claim_all(&self, orders: &[OrderId], known: &mut Known) -> Result<(), ValkeyFault> {
        let is_free = self.take_leases(orders).await?;
        // They are read completely: an order whose certificate is taken over does not begin.
        orders.iter().for_each(|order| drop(known.seen.remove(order)));
        let met = self.meet_all(orders, known).await;
        let mut rest = Vec::new();
        for (at, (order, is_free)) in orders.iter().zip(is_free).enumerate() {
            let is_taken_over = met.as_ref().is_ok_and(|met| met.get(at) == Some(&true));
            let is_mine = is_free && met.is_ok() && !is_taken_over;
            let is_mine = is_mine && self.may_use_account(order, &known.firsts).await?;
            // An order that was withdrawn meanwhile ended before it had this lease.
            let is_there = met.is_err() || self.issued.fleet().answer(order, is_mine);
            if is_free && !(is_mine && is_there) {
                rest.push(order.clone());
            }
        }
        self.end_leases(rest).await?;
        met.map(drop)
    }

    /// Takes leases; returns for each whether it belongs to this server.
    async fn take_leases(&self, orders: &[OrderId]) -> Result<Vec<bool>, ValkeyFault> {
        // Before the request: the lease may be granted although the reply is lost.
        let tokens = orders.iter().map(|order| (order.clone(), self.memory.token(order)));
        let leases: Vec<_> = tokens.map(named).collect();
        let is_free = self.line.take_leases(&leases, LEASE_MS).await?;
        let others = orders.iter().zip(&is_free).filter(|(_, is_free)| !**is_free);
        others.for_each(|(order, _)| self.memory.forget(order));
        Ok(is_free)
    }

    /// Releases the leases of orders, and those of accounts that no order of this server uses any
    /// more; without a reply their tokens are kept.
    async fn give_back(&self, orders: &[OrderId]) -> Result<(), ValkeyFault> {
        let in_use = self.issued.fleet().accounts_in_use();
        let in_use: Vec<OrderId> = in_use.iter().map(account_order).collect();
        let leases = self.memory.leases().into_keys();
        let idle = leases.filter(|lease| is_of_account(lease) && !in_use.contains(lease));
        self.end_leases(idle.chain(orders.iter().cloned()).collect()).await
    }

    async fn end_leases(&self, mut orders: Vec<OrderId>) -> Result<(), ValkeyFault> {
        orders.retain(|order| self.memory.has(order));
        if orders.is_empty() {
            return Ok(());
        }
        let tokens = orders.iter().map(|order| (order.clone(), self.memory.token(order)));
        let leases: Vec<_> = tokens.map(named).collect();
        self.line.end_leases(&leases).await?;
        orders.iter().for_each(|order| self.memory.forget(order));
        Ok(())
    }

    /// Compares the records of orders with the certificates here, and takes them over or replaces
    /// them. Returns for each whether it was taken over.
    async fn meet_all(
        &self,
        orders: &[OrderId],
        known: &mut Known,
    ) -> Result<Vec<bool>, ValkeyFault> {
        let names: Vec<String> = orders.iter().map(certificate_name).collect();
        let wanted: Vec<(&str, &[u8])> = orders
            .iter()
            .zip(&names)
            .map(|(order, name)| {
                let own = self.issued.fleet().certificate(order);
                let is_news = known.is_news(order, own.as_deref());
                // A record to be replaced is read.
                let seen = known.seen.get(order).filter(|_| !is_news);
                (&**name, seen.map_or(&b""[..], |seen| &seen.stamp))
            })
            .collect();
        let found = self.line.look_at_secrets(&wanted).await?;
        let mut taken = Vec::with_capacity(orders.len());
        for (order, found) in orders.iter().zip(found) {
            taken.push(match found {
                KeptValue::Known => false,
                KeptValue::None => self.meet(order, None, known).await?,
                KeptValue::Bytes(record) => self.meet(order, Some(&record), known).await?,
                KeptValue::Odd => {
                    self.complain(&certificate_name(order));
                    false
                }
            });
        }
        Ok(taken)
    }

    /// Takes the record of an order over, or replaces it. Returns whether it was taken over.
    async fn meet(
        &self,
        order: &OrderId,
        record: Option<&[u8]>,
        known: &mut Known,
    ) -> Result<bool, ValkeyFault> {
        let name = certificate_name(order);
        let own = self.issued.fleet().certificate(order);
        let own = own.as_deref();
        let found = record.and_then(|record| self.open(&name, record));
        let is_strange = record.is_some() && found.is_none();
        let (life, own_life) = (known.good_life(found.as_ref()), known.good_life(own));
        if let Some(record) = record {
            let seen = Seen { stamp: stamp_of(record), life, own: own_life };
            known.seen.insert(order.clone(), seen);
        } else {
            known.seen.remove(order);
        }
        if is_strange && !record.is_some_and(|record| self.may_replace(order, record, own)) {
            self.complain(&name);
            return Ok(false);
        }
        if let Some(own) = own.filter(|_| life < own_life) {
            let before = record.unwrap_or_default();
            let is_replaced = self.replace(order, own, before, known).await?;
            if is_strange && is_replaced {
                let text = format!(
                    "cluster: the record \"{name}\" in Valkey, which no key of this server opens, \
                     is replaced by the certificate in use here"
                );
                self.log.write_limited(Topic::Replaced, LogLevel::Warn, &text);
            }
            return Ok(false);
        }
        let (Some(record), Some(found)) = (record, found) else { return Ok(false) };
        if life > own_life {
            let is_taken = !known.cannot_keep && self.take_over(order, &found, known);
            if !is_taken && let Some(seen) = known.seen.get_mut(order) {
                // It may be possible another time.
                seen.stamp.clear();
            }
            return Ok(is_taken);
        }
        if own.is_some() && self.vault.is_to_be_sealed_anew(record, &known.firsts) {
            // Its key is being retired. Its content stays.
            self.replace(order, &found, record, known).await?;
        }
        Ok(false)
    }

    fn take_over(&self, order: &OrderId, found: &FleetCertificate, known: &mut Known) -> bool {
        match self.issued.take_over(order, found) {
            Ok(taken) => {
                if taken {
                    let text = format!("cluster: \"{}\": another server's is taken over", order.0);
                    self.log.write(LogLevel::Notice, &text);
                    self.board.update_secrets(|secrets| secrets.taken_over += 1);
                }
                taken
            }
            Err(fault) => {
                // Each of the others would wait as long.
                known.cannot_keep = matches!(fault, KeepFault::Unkept(_));
                let (order, why) = (&order.0, fault.text());
                let text = format!("cluster: \"{order}\" of another server is not used: {why}");
                self.log.write_limited(Topic::Record, LogLevel::Error, &text);
                false
            }
        }
    }

    /// Whether a record that cannot be decrypted may be replaced by the certificate in use here. A
    /// record with an unknown key is replaced once: a server that has the key could do the same
    /// with a record of this server.
    fn may_replace(&self, order: &OrderId, record: &[u8], own: Option<&FleetCertificate>) -> bool {
        let is_own_key = Vault::key_of(record).is_some_and(|by| self.vault.has_key(&by));
        own.is_some() && (is_own_key || self.memory.replaces(order, record))
    }

    /// Replaces the record that was read, if it has not changed since. Returns whether it was
    /// replaced.
    async fn replace(
        &self,
        order: &OrderId,
        by: &FleetCertificate,
        before: &[u8],
        known: &mut Known,
    ) -> Result<bool, ValkeyFault> {
        let name = certificate_name(order);
        let keep_ms = by.validity.until.saturating_mul(1000).saturating_sub(known.now_ms);
        let sealed = self.vault.seal(VaultPurpose::Certificates, &name, &plain(by));
        let Some(sealed) = sealed.filter(|_| keep_ms > 0) else { return Ok(false) };
        if sealed.len() > VALUE_MAX {
            // Servers would read it in vain, and none would replace it.
            if self.memory.is_first_too_large(order, by.validity.until) {
                let text = format!(
                    "cluster: \"{}\" is not shared: its record has {} bytes, more than {VALUE_MAX}",
                    order.0,
                    sealed.len()
                );
                self.log.write(LogLevel::Error, &text);
            }
            let seen = known.seen.entry(order.clone());
            let seen = seen.or_insert(Seen { stamp: Vec::new(), life: None, own: None });
            seen.own = Some(by.validity);
            return Ok(false);
        }
        let is_replaced = self.line.replace_secret(&name, (before, &*sealed), keep_ms).await?;
        if is_replaced {
            let life = Some(by.validity);
            let seen = Seen { stamp: stamp_of(&sealed), life, own: life };
            known.seen.insert(order.clone(), seen);
        }
        Ok(is_replaced)
    }

    fn open(&self, name: &str, record: &[u8]) -> Option<FleetCertificate> {
        certificate(&self.vault.open(VaultPurpose::Certificates, name, record).ok()?)
    }

    fn complain(&self, name: &str) {
        let text = format!(
            "cluster: the record \"{name}\" in Valkey is not used: it is foreign, damaged, or of \
             another version, namespace or key"
        );
        self.log.write_limited(Topic::Record, LogLevel::Error, &text);
    }
}

impl Drop for CertificateShare {
    fn drop(&mut self) {
        self.issued.fleet().turn(FleetState::Alone);
    }
}

/// A lease in the form for Valkey.
fn named((order, token): (OrderId, String)) -> (String, String) {
    (lease_name(&order), token)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bolide_acme::Challenge;
    use zeroize::Zeroizing;

    use super::{FleetCertificate, IssuedCertificates, Known, OrderId, Seen, Validity};

    #[test]
    fn challenges_are_published_again_after_a_jump_of_the_clock() {
        let start = tokio::time::Instant::now();
        for (server_ms, own_ms, is_published) in [
            (1500, 500, true),
            (61_000 + 300_000, 300_000, true),
            (0, 59_000, true),
            (61_001, 0, false),
            (0, 59_001, false),
            (4_000_000, 300, false),
        ] {
            let mut known = Known::new(IssuedCertificates::default());
            let challenge = Challenge::TlsAlpn01 { name: "a.test".to_owned(), digest: [7; 32] };
            known.set_time(1000, start);
            known.published.insert(b"id".to_vec(), challenge);
            known.set_time(server_ms, start + Duration::from_millis(own_ms));
            assert_eq!(
                known.published.contains_key(&b"id"[..]),
                is_published,
                "{server_ms} {own_ms}"
            );
            assert_eq!(known.now_ms, server_ms);
        }
    }

    #[test]
    fn a_newer_certificate_is_news_even_if_it_ends_earlier() {
        let life = |from: u64, until: u64| Validity { from, until };
        let known = |seen: Validity| {
            let mut known = Known::new(IssuedCertificates::default());
            known.now_ms = 50_000;
            let seen = Seen { stamp: Vec::new(), life: Some(seen), own: None };
            known.seen.insert(OrderId("a".to_owned()), seen);
            known
        };
        let (old, new) = (life(10, 900), life(20, 300));
        for (seen, own, is_news) in [
            (old, new, true),
            (new, old, false),
            (old, old, false),
            (old, life(10, 901), true),
            (old, life(20, 40), false),
        ] {
            let (chain, key) = (Vec::new(), Zeroizing::default());
            let own = FleetCertificate { validity: own, chain, key };
            let found = known(seen).is_news(&OrderId("a".to_owned()), Some(&own));
            assert_eq!(found, is_news, "{seen:?} {own:?}");
        }
    }
}
