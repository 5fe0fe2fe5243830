//! The cache of `ssl_certificate_cache` and `proxy_ssl_certificate_cache`: chains and keys,
//! separately, for each worker. It opens no file.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use bolide_base::{Instant, Now};
use bolide_conf::model::CertificateCache;
use bolide_tls::{CertChain, LoadedKey};

use super::certificates::CertificatePart;

/// A chain or a key.
#[derive(Clone, Debug)]
pub(super) enum CertObject {
    Chain(CertChain),
    Key(LoadedKey),
}

/// The identity of the file that an object was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadFile {
    pub(super) inode: u64,
    /// Seconds and nanoseconds since 1970.
    pub(super) modified: (i64, i64),
}

/// The key of a cached object: its kind (certificate chain or key) and its source.
pub(super) type ObjectName = (CertificatePart, String);

/// A cached object.
#[derive(Clone, Debug)]
pub(super) enum KnownObject {
    /// It may be used without checking its file.
    Fresh(CertObject),
    /// It may be used if its file is unchanged.
    Stale(CertObject, ReadFile),
}

#[derive(Debug)]
struct KeptObject {
    object: CertObject,
    /// None for text of the configuration, which never changes.
    file: Option<ReadFile>,
    checked: Instant,
    used: Instant,
    /// Its position in the order of uses.
    turn: u64,
}

/// The cached objects of one directive.
#[derive(Debug)]
pub(super) struct KeptObjects {
    rules: CertificateCache,
    workers: Mutex<HashMap<ThreadId, WorkerObjects>>,
}

/// Those of one worker.
#[derive(Debug, Default)]
struct WorkerObjects {
    all: HashMap<ObjectName, KeptObject>,
    /// Their names, least recently used first.
    order: BTreeMap<u64, ObjectName>,
    turns: u64,
}

/// A worker's objects, during one call.
struct OwnObjects<'a>(MutexGuard<'a, HashMap<ThreadId, WorkerObjects>>);

impl OwnObjects<'_> {
    fn objects(&mut self) -> &mut WorkerObjects {
        self.0.entry(thread::current().id()).or_default()
    }
}

impl KeptObjects {
    pub(super) fn new(rules: CertificateCache) -> Self {
        Self { rules, workers: Mutex::default() }
    }

    fn own(&self) -> OwnObjects<'_> {
        OwnObjects(self.workers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Finds an object, which counts as a use of it.
    pub(super) fn find(&self, name: &ObjectName, now: Now) -> Option<KnownObject> {
        let mut own = self.own();
        let objects = own.objects();
        let kept = objects.all.get_mut(name)?;
        kept.used = now.mono;
        let name = objects.order.remove(&kept.turn)?;
        objects.turns += 1;
        kept.turn = objects.turns;
        objects.order.insert(kept.turn, name);
        let object = kept.object.clone();
        Some(match kept.file {
            Some(file) if now.mono.since(kept.checked) >= self.rules.valid => {
                KnownObject::Stale(object, file)
            }
            _ => KnownObject::Fresh(object),
        })
    }

    /// Its file is unchanged.
    pub(super) fn refresh(&self, name: &ObjectName, now: Now) {
        if let Some(kept) = self.own().objects().all.get_mut(name) {
            kept.checked = now.mono;
        }
    }

    pub(super) fn forget(&self, name: &ObjectName) {
        self.own().objects().remove(name);
    }

    /// Stores an object; evicts the least recently used one if there is no room.
    pub(super) fn keep(
        &self,
        name: ObjectName,
        object: CertObject,
        file: Option<ReadFile>,
        now: Now,
    ) {
        let mut own = self.own();
        let objects = own.objects();
        objects.remove(&name);
        if objects.all.len() >= self.rules.max {
            objects.remove_oldest(|_| true);
        }
        // As nginx does: each insertion evicts up to two inactive ones.
        for _ in 0..2 {
            objects.remove_oldest(|used| now.mono.since(used) > self.rules.inactive);
        }
        objects.turns += 1;
        let turn = objects.turns;
        objects.order.insert(turn, name.clone());
        let kept = KeptObject { object, file, checked: now.mono, used: now.mono, turn };
        objects.all.insert(name, kept);
    }
}

impl WorkerObjects {
    fn remove(&mut self, name: &ObjectName) {
        if let Some(kept) = self.all.remove(name) {
            self.order.remove(&kept.turn);
        }
    }

    /// Removes the least recently used object, if `may_go` accepts its time.
    fn remove_oldest(&mut self, may_go: impl Fn(Instant) -> bool) {
        let Some((_, name)) = self.order.first_key_value() else { return };
        if self.all.get(name).is_some_and(|kept| may_go(kept.used)) {
            let name = name.clone();
            self.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bolide_base::Now;
    use bolide_conf::model::CertificateCache;
    use bolide_tls::{CertChain, LoadedKey};

    use super::{CertObject, CertificatePart, KeptObjects, KnownObject, ObjectName, ReadFile};

    const FILE: Option<ReadFile> = Some(ReadFile { inode: 1, modified: (2, 3) });

    fn cache(max: usize) -> KeptObjects {
        let (inactive, valid) = (Duration::from_secs(10), Duration::from_secs(60));
        KeptObjects::new(CertificateCache { max, inactive, valid, directive: 0 })
    }

    fn name(text: &str) -> ObjectName {
        (CertificatePart::Chain, text.to_owned())
    }

    fn chain() -> CertObject {
        let (chain, _) = bolide_tls::self_signed(&["a.test"]).unwrap();
        CertObject::Chain(CertChain::from_pem(chain.as_bytes()).unwrap())
    }

    fn later(now: Now, seconds: u64) -> Now {
        Now { mono: now.mono.after(Duration::from_secs(seconds)), ..now }
    }

    #[test]
    fn the_object_that_was_not_used_for_longest_makes_room() {
        let (cache, now, object) = (cache(2), bolide_io::process::now(), chain());
        cache.keep(name("a"), object.clone(), FILE, now);
        cache.keep(name("b"), object.clone(), FILE, now);
        assert!(cache.find(&name("a"), now).is_some());
        cache.keep(name("c"), object, FILE, now);
        assert!(cache.find(&name("b"), now).is_none());
        assert!(cache.find(&name("a"), now).is_some() && cache.find(&name("c"), now).is_some());
        // A chain and a key with one name are two.
        let (_, key) = bolide_tls::self_signed(&["a.test"]).unwrap();
        let key = CertObject::Key(LoadedKey::from_pem(key.as_bytes(), &[]).unwrap());
        cache.keep((CertificatePart::Key, "c".to_owned()), key, FILE, now);
        assert!(cache.find(&name("a"), now).is_none() && cache.find(&name("c"), now).is_some());
    }

    #[test]
    fn up_to_two_unused_objects_go_with_each_that_comes() {
        let (cache, now, object) = (cache(9), bolide_io::process::now(), chain());
        for one in ["a", "b", "c"] {
            cache.keep(name(one), object.clone(), FILE, now);
        }
        cache.keep(name("d"), object.clone(), FILE, later(now, 10));
        assert!(cache.find(&name("a"), later(now, 10)).is_some());
        cache.keep(name("e"), object, FILE, later(now, 21));
        let held = |one| cache.find(&name(one), later(now, 21)).is_some();
        assert_eq!(["a", "b", "c", "d", "e"].map(held), [true, false, false, true, true]);
    }

    #[test]
    fn a_file_is_looked_at_when_the_time_of_its_object_is_over() {
        let (cache, now, object) = (cache(9), bolide_io::process::now(), chain());
        cache.keep(name("a"), object.clone(), FILE, now);
        cache.keep(name("text"), object, None, now);
        let is_stale = |one, at| match cache.find(&name(one), later(now, at)) {
            Some(KnownObject::Stale(_, file)) => Some(file) == FILE,
            known => known.is_none(),
        };
        assert!(!is_stale("a", 59) && is_stale("a", 60));
        cache.refresh(&name("a"), later(now, 60));
        assert!(!is_stale("a", 119) && is_stale("a", 120));
        assert!(!is_stale("text", 1_000_000));
        cache.forget(&name("a"));
        assert!(cache.find(&name("a"), now).is_none());
    }
}
