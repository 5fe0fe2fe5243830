//! Certificates of names that clients ask for: what handshakes find, and that they ask.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use bolide_acme::{AcmeInbox, OrderId};
use bolide_tls::{CertSlot, LoadedCertificate};

/// The places of one directive's certificates by their names. Its lock is held for a look.
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

/// Where handshakes find the certificate of an issuer.
#[derive(Clone, Debug)]
pub(crate) enum IssuedPlace {
    /// It is one for all names of the server; the text names it in sessions.
    Slot(CertSlot, String),
    /// Each name has its own.
    ByName(NamesOnDemand),
}

/// Names of clients of one directive.
#[derive(Clone, Debug)]
pub(crate) struct NamesOnDemand {
    pub(super) id: OrderId,
    pub(super) certificates: DemandedCertificates,
    pub(super) inbox: AcmeInbox,
}

impl IssuedPlace {
    /// What names it in messages and sessions.
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Slot(_, words) => words,
            Self::ByName(names) => &names.id.0,
        }
    }

    /// The certificate for a client that wants `name`. One that is missing on demand is asked for.
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
