//! Session resumption: ticket keys and session stores. Both outlive a reload; keys from files
//! outlive the process, and several servers may share them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bolide_conf::model::{ServerConf, SessionCache};
use bolide_tls::{AcceptorOptions, CommonTickets, Sessions, Tickets};

/// Seconds that generated keys encrypt for, unless sessions live longer.
const PERIOD: u32 = 6 * 60 * 60;
/// Sessions of a `builtin` cache without a size, as in OpenSSL.
const BUILTIN: u64 = 20_480;
/// Bytes of shared memory that nginx spends on a session.
const SESSION_SIZE: u64 = 256;
/// LIMIT: sessions of one cache.
const SESSIONS_MAX: u64 = 1 << 20;

/// The ticket keys that the servers of a cluster share, by the seconds that a key encrypts for.
#[derive(Clone, Debug, Default)]
pub(crate) struct TicketRings(Arc<Mutex<BTreeMap<u32, CommonTickets>>>);

impl TicketRings {
    /// That of keys which encrypt for so many seconds.
    pub(crate) fn ring(&self, period: u32) -> CommonTickets {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(period).or_default().clone()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<(u32, CommonTickets)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(period, ring)| (*period, ring.clone())).collect()
    }

    /// Removes all common keys.
    pub(crate) fn clear(&self) {
        self.all().iter().for_each(|(_, ring)| ring.replace(Vec::new()));
    }
}

/// Keys and session stores that generations share.
#[derive(Debug, Default)]
pub(super) struct KeptSessions {
    pub(super) rings: TicketRings,
    /// By the seconds that a key encrypts for.
    tickets: Mutex<HashMap<u32, Arc<Tickets>>>,
    /// Session stores, by the name of the shared memory and the number of sessions.
    places: Mutex<HashMap<(Box<str>, usize), Sessions>>,
}

impl KeptSessions {
    /// Generated keys for sessions with this lifetime.
    ///
    /// # Errors
    ///
    /// The system supplies no randomness.
    pub(super) fn tickets(&self, lifetime: u32) -> Result<Arc<Tickets>, String> {
        let period = lifetime.max(PERIOD);
        let mut all = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&period) {
            return Ok(known.clone());
        }
        let fresh = Arc::new(Tickets::rotating(period, self.rings.ring(period))?);
        all.insert(period, fresh.clone());
        Ok(fresh)
    }

    fn place(&self, cache: &SessionCache) -> Option<Sessions> {
        let (name, count): (&str, _) = match cache {
            SessionCache::None | SessionCache::Off => return None,
            // Zero means no limit.
            SessionCache::Builtin(count) => ("", count.filter(|count| *count > 0)),
            SessionCache::Shared(name, size) => (name, Some(size / SESSION_SIZE)),
        };
        let count = count.unwrap_or(BUILTIN).min(SESSIONS_MAX);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut all = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.entry((name.into(), count)).or_insert_with(|| Sessions::new(count));
        Some(place.clone())
    }

    /// The session settings of a server.
    ///
    /// # Errors
    ///
    /// In nginx's words: a key is unreadable or has a wrong length.
    pub(super) fn settle(
        &self,
        server: &ServerConf,
        options: &mut AcceptorOptions,
    ) -> Result<(), String> {
        let conf = &server.tls;
        let lifetime = u32::try_from(conf.session_timeout.as_secs()).unwrap_or(u32::MAX);
        options.session_lifetime = lifetime;
        options.sessions = self.place(&conf.session_cache);
        let own = read_keys(server)?;
        options.tickets = match own {
            _ if !conf.session_tickets => None,
            Some(own) => Some(Arc::new(own)),
            None => Some(self.tickets(lifetime)?),
        };
        Ok(())
    }
}

/// The keys of `ssl_session_ticket_key`, if there are any.
///
/// # Errors
///
/// In nginx's words: a key is unreadable or has a wrong length.
pub(super) fn read_keys(server: &ServerConf) -> Result<Option<Tickets>, String> {
    let place = &server.closed;
    let at = |text: String| format!("{text} in {}:{}", place.file, place.line);
    let mut keys = Vec::new();
    for path in server.tls.session_ticket_keys.iter() {
        let shown = path.display();
        let must = || at(format!("\"{shown}\" must be 48 or 80 bytes"));
        let bytes = match std::fs::metadata(path) {
            Ok(about) if ![48, 80].contains(&about.len()) => return Err(must()),
            _ => std::fs::read(path).map_err(|error| {
                at(format!("open() \"{shown}\" failed ({})", bolide_base::errno::describe(&error)))
            })?,
        };
        if Tickets::with_keys(std::slice::from_ref(&bytes)).is_none() {
            return Err(must());
        }
        keys.push(bytes);
    }
    Ok(Tickets::with_keys(&keys))
}
