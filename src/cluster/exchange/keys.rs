//! Shared keys of TLS tickets: a server that misses one creates it, and all use it. Records are
//! encrypted with the first key of the servers, as soon as it is that of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bolide_cluster::{KeyRing, TimedKey, Vault, VaultPurpose, VaultSecret, fresh_secret};
use bolide_conf::model::LogLevel;
use bolide_tls::{CommonTicketKey, CommonTickets};
use bolide_valkey::{Line, ValkeyFault};
use tokio::time::sleep;

use super::certificates::ShareMemory;
use super::log::{ExchangeLog, Topic};
use super::status::ExchangeBoard;
use crate::cluster::clock::NodeClock;
use crate::tls_setup::TicketRings;

/// How often keys are polled, which is less than the time after which a new one is used.
const LOOK: Duration = Duration::from_secs(1);

/// The ticket keys, by the seconds that each encrypts for.
pub(super) struct TicketKeys {
    vault: Arc<Vault>,
    rings: TicketRings,
    log: Arc<ExchangeLog>,
    board: ExchangeBoard,
    clock: NodeClock,
    memory: Arc<ShareMemory>,
    known: Mutex<HashMap<u32, KeyRing>>,
}

impl TicketKeys {
    pub(super) fn new(
        vault: Arc<Vault>,
        rings: TicketRings,
        log: Arc<ExchangeLog>,
        board: ExchangeBoard,
        clock: NodeClock,
        memory: Arc<ShareMemory>,
    ) -> Self {
        Self { vault, rings, log, board, clock, memory, known: Mutex::default() }
    }

    /// Shares on one connection, while it lasts.
    pub(super) async fn share(&self, line: &Line) {
        while line.is_open() {
            for (period, ring) in self.rings.all() {
                if let Err(fault) = self.turn(line, period, &ring).await {
                    let text = format!("cluster: ticket keys are not shared: {fault}");
                    self.board.record_fault(&text);
                    self.log.write_limited(Topic::Fault, LogLevel::Error, &text);
                }
            }
            sleep(LOOK).await;
        }
    }

    fn with_ring<T>(&self, period: u32, what: impl FnOnce(&mut KeyRing) -> T) -> T {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        what(known.entry(period).or_insert_with(|| KeyRing::new(period.into())))
    }

    /// Reads the current keys, and adds missing ones.
    async fn turn(
        &self,
        line: &Line,
        period: u32,
        ring: &CommonTickets,
    ) -> Result<(), ValkeyFault> {
        let seconds = || self.clock.now().unix_millis / 1000;
        for (number, is_made) in self.with_ring(period, |known| known.wanted(seconds())) {
            let name = format!("tickets:{period}:{number}");
            match line.secret(&name).await? {
                Some(record) => {
                    let secret = self.receive(period, number, &name, &record);
                    let secret = secret.filter(|_| self.memory.seals_anew(&self.vault, &record));
                    if let Some(sealed) = secret.and_then(|secret| self.seal(&name, &secret)) {
                        let keep_ms =
                            self.with_ring(period, |ring| ring.keep_ms(number, seconds()));
                        line.replace_secret(&name, (&record, &sealed), keep_ms).await?;
                    }
                }
                None if is_made => {
                    let offered = self.with_ring(period, |ring| {
                        let secret = ring.offer(number, fresh_secret).ok()?;
                        Some((self.seal(&name, &secret)?, ring.keep_ms(number, seconds())))
                    });
                    if let Some((record, keep_ms)) = offered {
                        line.keep_first(&name, &record, keep_ms).await?;
                    }
                }
                None => {}
            }
        }
        let now = self.clock.now();
        let keys = self.with_ring(period, |known| {
            known.keys(now.unix_millis / 1000, now.mono.as_nanos() / 1_000_000)
        });
        ring.replace(keys.iter().filter_map(common).collect());
        let is_common = keys.iter().any(|key| key.makes.is_some());
        self.board.update_secrets(|secrets| secrets.has_ticket_keys = is_common);
        if is_common {
            let text = "cluster: the keys of TLS tickets are those of all servers";
            self.log.write_once(text);
        }
        Ok(())
    }

    fn seal(&self, name: &str, secret: &VaultSecret) -> Option<Vec<u8>> {
        self.vault.seal(VaultPurpose::Tickets, name, &secret[..])
    }

    /// Takes a record; returns its key, if it is good.
    fn receive(&self, period: u32, number: u64, name: &str, record: &[u8]) -> Option<VaultSecret> {
        let opened = self.vault.open(VaultPurpose::Tickets, name, record);
        let opened = opened.map_err(|fault| fault.text());
        let secret = opened.and_then(|plain| match <[u8; 32]>::try_from(&plain[..]) {
            Ok(secret) => Ok(VaultSecret::new(secret)),
            Err(_) => Err("it has no key"),
        });
        match secret {
            Ok(secret) => {
                let now_ms = self.clock.now().mono.as_nanos() / 1_000_000;
                self.with_ring(period, |known| known.receive(number, secret.clone(), now_ms));
                Some(secret)
            }
            Err(why) => {
                let text = format!("cluster: the record \"{name}\" in Valkey is not used: {why}");
                self.log.write_limited(Topic::Record, LogLevel::Error, &text);
                None
            }
        }
    }
}

fn common(key: &TimedKey) -> Option<CommonTicketKey> {
    CommonTicketKey::new(&key.secret, key.makes, key.until)
}
