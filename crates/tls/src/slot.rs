//! A certificate that is replaced while handshakes use it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::LoadedCertificate;

/// Names the settings by which servers staple: servers of the same settings share responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StapleKey(pub u64);

/// A certificate, and its forms at the places of their OCSP responses.
#[derive(Default)]
struct SlotContent {
    certificate: Option<LoadedCertificate>,
    stapled: Vec<(StapleKey, LoadedCertificate)>,
}

/// A place for a certificate, empty at first. All clones share the place; its lock is held for as
/// long as a count changes.
#[derive(Clone, Default)]
pub struct CertSlot(Arc<RwLock<SlotContent>>);

impl CertSlot {
    /// From now on handshakes use this one, and servers that staple its form for their settings.
    pub fn set(
        &self,
        certificate: LoadedCertificate,
        stapled: Vec<(StapleKey, LoadedCertificate)>,
    ) {
        let new = SlotContent { certificate: Some(certificate), stapled };
        // What was there is dropped without the lock.
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *place, new);
        drop(place);
        drop(old);
    }

    /// What is there now.
    #[must_use]
    pub fn certificate(&self) -> Option<LoadedCertificate> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).certificate.clone()
    }

    /// The form of it for servers with these settings; the bare one if it is not stapled.
    #[must_use]
    pub fn stapled(&self, key: StapleKey) -> Option<LoadedCertificate> {
        let place = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let form = place.stapled.iter().find(|(known, _)| *known == key).map(|(_, form)| form);
        form.or(place.certificate.as_ref()).cloned()
    }
}

impl fmt::Debug for CertSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CertSlot").field(&self.certificate()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{CertSlot, StapleKey};
    use crate::{LoadedCertificate, self_signed};

    #[test]
    fn servers_that_staple_get_their_form_and_others_the_bare_certificate() {
        let (chain, key) = self_signed(&["a.example"]).unwrap();
        let plain = LoadedCertificate::from_pem(chain.as_bytes(), key.as_bytes(), &[]).unwrap();
        let (slot, one, other) = (CertSlot::default(), StapleKey(1), StapleKey(2));
        assert!(slot.stapled(one).is_none());
        slot.set(plain.clone(), vec![(one, plain.stapled(vec![0x30]))]);
        let sent = |found: Option<LoadedCertificate>| found.unwrap().certified().ocsp.clone();
        assert_eq!(sent(slot.stapled(one)), Some(vec![0x30]));
        assert_eq!((sent(slot.stapled(other)), sent(slot.certificate())), (None, None));
        slot.set(plain, Vec::new());
        assert_eq!(sent(slot.stapled(one)), None, "the response was for the one before");
    }
}
