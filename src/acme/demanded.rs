//! Certificates on demand: handshakes find them by name, and request missing ones.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use bolide_acme::{AcmeInbox, OrderId};
use bolide_tls::{CertSlot, LoadedCertificate};

/// The slots of one directive's certificates by name. Its lock is held for one lookup.
#[derive(Clone, Debug, Default)]
pub(super) struct DemandedCertificates(Arc<RwLock<HashMap<Box<str>, CertSlot>>>);

impl DemandedCertificates {
    pub(super) fn add(&self, name: &str, slot: CertSlot) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), slot);
    }

    pub(super) fn remove(&self, name: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn find(&self, name: &str) -> Option<LoadedCertificate> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).and_then(CertSlot::certificate)
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

    /// The certificate for the server name `name`. A missing one is requested.
    pub(crate) fn certificate(&self, name: Option<&str>) -> Option<LoadedCertificate> {
        match self {
            Self::Slot(slot, _) => slot.certificate(),
            Self::ByName(names) => {
                let name = name?;
                let lower = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
                let found = names.certificates.find(&lower);
                if found.is_none() {
                    names.inbox.wish(&names.id, &lower);
                }
                found
            }
        }
    }
}
