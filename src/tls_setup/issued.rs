//! Certificates of issuers in handshakes: what is in their slots at that moment.

use std::sync::Arc;

use bolide_conf::model::{Pem, TlsConf};
use bolide_tls::{CertSlot, LoadedCertificate};

use super::certificates::{self, CertificateReader};
use crate::acme::IssuedCertificates;

/// The certificates of one server, at least one of an issuer.
pub(super) struct Issued(Vec<IssuedPart>);

enum IssuedPart {
    /// Read with the configuration.
    Fixed(LoadedCertificate),
    /// Of an issuer; the text names it in messages and sessions.
    Slot(CertSlot, String),
}

impl Issued {
    /// # Errors
    ///
    /// In nginx's words: a file beside them is unreadable or does not match.
    pub(super) fn new(
        conf: &Arc<TlsConf>,
        issued: &IssuedCertificates,
        reader: &mut CertificateReader,
    ) -> Result<Self, String> {
        let passwords = certificates::passwords(conf.password_file.as_ref())?;
        let part = |pair: &bolide_conf::model::CertificateConf| {
            Ok(match pair.chain {
                Pem::Issued(id) => {
                    let (slot, name) = issued.slot(id);
                    IssuedPart::Slot(slot, name)
                }
                _ => IssuedPart::Fixed(reader.certificate(pair, &passwords)?),
            })
        };
        conf.certificates.iter().map(part).collect::<Result<_, String>>().map(Self)
    }

    /// What sessions belong to: a renewal leaves it as it is.
    pub(super) fn words(&self) -> String {
        let word = |part: &IssuedPart| match part {
            IssuedPart::Fixed(certificate) => {
                certificate.leaf().iter().map(|byte| format!("{byte:02x}")).collect()
            }
            IssuedPart::Slot(_, name) => format!("issued {name}"),
        };
        self.0.iter().map(word).collect::<Vec<_>>().join("\n")
    }

    /// What a client may be shown now.
    ///
    /// # Errors
    ///
    /// For the log: nothing.
    pub(super) fn load(&self) -> Result<Vec<LoadedCertificate>, String> {
        let now = |part: &IssuedPart| match part {
            IssuedPart::Fixed(certificate) => Some(certificate.clone()),
            IssuedPart::Slot(slot, _) => slot.certificate(),
        };
        let all: Vec<_> = self.0.iter().filter_map(now).collect();
        if !all.is_empty() {
            return Ok(all);
        }
        let name = |part: &IssuedPart| match part {
            IssuedPart::Slot(_, name) => Some(name.clone()),
            IssuedPart::Fixed(_) => None,
        };
        let names = self.0.iter().filter_map(name).collect::<Vec<_>>().join(", ");
        Err(format!("no certificate of \"{names}\" is there yet"))
    }
}
