//! Certificates on demand: handshakes find them by name, and request missing ones.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bolide_acme::{AcmeInbox, OrderId};
use bolide_tls::{CertComplaint, CertSlot, LoadedCertificate, StapleKey};

/// LIMIT: how often the missing certificates of one directive are an error in the log, in seconds;
/// in between they are `info`, because clients can invent names.
const COMPLAINT_EVERY: u64 = 60;

/// The certificates of one directive.
#[derive(Clone, Debug, Default)]
pub(super) struct DemandedCertificates(Arc<DemandedShared>);

#[derive(Debug, Default)]
struct DemandedShared {
    /// The slots by name. The lock is held for one lookup.
    slots: RwLock<HashMap<Box<str>, CertSlot>>,
    /// When the log had an error about a missing one, in seconds since 1970.
    complained: AtomicU64,
}

impl DemandedCertificates {
    pub(super) fn add(&self, name: &str, slot: CertSlot) {
        self.0.slots.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), slot);
    }

    pub(super) fn remove(&self, name: &str) {
        self.0.slots.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn find(&self, name: &str, staples: Option<StapleKey>) -> Option<LoadedCertificate> {
        let all = self.0.slots.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).and_then(|slot| content(slot, staples))
    }

    fn is_allowed(&self, name: &str) -> bool {
        self.0.slots.read().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    /// Whether there was an error in the log a short while ago; otherwise there is one now.
    fn is_repeated(&self, now: u64) -> bool {
        let complained = &self.0.complained;
        let last = complained.load(Ordering::Relaxed);
        let is_due = now.abs_diff(last) >= COMPLAINT_EVERY;
        !is_due
            || complained.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err()
    }
}

/// Where handshakes find an issued certificate.
#[derive(Clone, Debug)]
pub(crate) enum IssuedPlace {
    /// One slot for all names of the server; the text is its identity in sessions.
    Slot(CertSlot, String),
    /// One slot for each name.
    ByName(NamesOnDemand),
}

/// The names on demand of one directive.
#[derive(Clone, Debug)]
pub(crate) struct NamesOnDemand {
    pub(super) id: OrderId,
    pub(super) certificates: DemandedCertificates,
    pub(super) inbox: AcmeInbox,
}

impl IssuedPlace {
    /// Its identity in messages and sessions.
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Slot(_, words) => words,
            Self::ByName(names) => &names.id.0,
        }
    }

    /// The certificate for the server name `name`, in its form for servers that staple by
    /// `staples`. A missing one is requested.
    pub(crate) fn certificate(
        &self,
        name: Option<&str>,
        staples: Option<StapleKey>,
    ) -> Option<LoadedCertificate> {
        match self {
            Self::Slot(slot, _) => content(slot, staples),
            Self::ByName(names) => {
                let lower = in_lower_case(name?);
                let found = names.certificates.find(&lower, staples);
                if found.is_none() {
                    names.inbox.wish(&names.id, &lower);
                }
                found
            }
        }
    }

    /// Why there is no certificate for the server name `name`.
    pub(crate) fn complaint(&self, name: Option<&str>) -> CertComplaint {
        let words = self.words();
        match self {
            Self::Slot(..) => {
                let name = name.map_or_else(String::new, |name| format!(" for \"{name}\""));
                format!("no certificate of \"{words}\" is there yet{name}").into()
            }
            Self::ByName(names) => {
                let now = bolide_io::process::now().unix_millis / 1000;
                let why = match name.map(in_lower_case) {
                    Some(name) if names.certificates.is_allowed(&name) => {
                        format!("is there yet for \"{name}\"")
                    }
                    Some(name) => {
                        format!("for \"{name}\", which \"on_demand_ask\" has not allowed")
                    }
                    None => "for a client without a server name".to_owned(),
                };
                CertComplaint {
                    text: format!("no certificate of \"{words}\" {why}"),
                    is_repeated: names.certificates.is_repeated(now),
                }
            }
        }
    }
}

fn content(slot: &CertSlot, staples: Option<StapleKey>) -> Option<LoadedCertificate> {
    staples.map_or_else(|| slot.certificate(), |key| slot.stapled(key))
}

/// A server name as certificates have it.
fn in_lower_case(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> IssuedPlace {
        let (certificates, inbox) = (DemandedCertificates::default(), AcmeInbox::default());
        IssuedPlace::ByName(NamesOnDemand { id: OrderId("a".into()), certificates, inbox })
    }

    #[test]
    fn a_flood_of_invented_names_is_one_error_in_the_log() {
        let place = place();
        let errors = (0..300).filter(|n| {
            let name = format!("n{n}.test");
            assert!(place.certificate(Some(&name), None).is_none());
            !place.complaint(Some(&name)).is_repeated
        });
        assert_eq!(errors.count(), 1);
        let all = DemandedCertificates::default();
        let times = [1000, 1000, 1059, 1060, 1061, 1120, 500, 501];
        let repeated = times.map(|time| all.clone().is_repeated(time));
        assert_eq!(repeated, [false, true, true, false, true, false, false, true]);
    }

    #[test]
    fn a_complaint_says_whether_the_name_is_allowed() {
        let place = place();
        let text = |name| place.complaint(name).text;
        let refused =
            "no certificate of \"a\" for \"b.test\", which \"on_demand_ask\" has not allowed";
        assert_eq!(text(Some("B.test.")), refused);
        assert_eq!(text(None), "no certificate of \"a\" for a client without a server name");
        let IssuedPlace::ByName(names) = &place else { panic!("names on demand") };
        names.certificates.add("b.test", CertSlot::default());
        assert_eq!(text(Some("b.test")), "no certificate of \"a\" is there yet for \"b.test\"");
    }
}
