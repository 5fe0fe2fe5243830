//! Issued certificates in handshakes: the current content of their slots.

use std::sync::Arc;

use bolide_conf::model::{Pem, TlsConf};
use bolide_tls::{CertComplaint, LoadedCertificate};

use super::certificates::{self, CertificateReader};
use crate::acme::{IssuedDraft, IssuedPlace};

/// The certificates of one server, at least one of them from an issuer.
pub(super) struct Issued(Vec<IssuedPart>);

enum IssuedPart {
    /// Read with the configuration.
    Fixed(LoadedCertificate),
    /// From an issuer.
    Issued(IssuedPlace),
}

impl Issued {
    /// # Errors
    ///
    /// In nginx's words: a file beside them is unreadable or does not match.
    pub(super) fn new(
        conf: &Arc<TlsConf>,
        issued: &IssuedDraft,
        reader: &mut CertificateReader,
    ) -> Result<Self, String> {
        let passwords = certificates::passwords(conf.password_file.as_ref())?;
        let part = |pair: &bolide_conf::model::CertificateConf| {
            Ok(match pair.chain {
                Pem::Issued(id) => IssuedPart::Issued(issued.place(id)),
                _ => IssuedPart::Fixed(reader.certificate(pair, &passwords)?),
            })
        };
        conf.certificates.iter().map(part).collect::<Result<_, String>>().map(Self)
    }

    /// Its identity in sessions: a renewal does not change it.
    pub(super) fn words(&self) -> String {
        let word = |part: &IssuedPart| match part {
            IssuedPart::Fixed(certificate) => {
                certificate.leaf().iter().map(|byte| format!("{byte:02x}")).collect()
            }
            IssuedPart::Issued(place) => format!("issued {}", place.words()),
        };
        self.0.iter().map(word).collect::<Vec<_>>().join("\n")
    }

    /// The certificates for a client with the server name `client`.
    ///
    /// # Errors
    ///
    /// For the log: there is none.
    pub(super) fn load(
        &self,
        client: Option<&str>,
    ) -> Result<Vec<LoadedCertificate>, CertComplaint> {
        let now = |part: &IssuedPart| match part {
            IssuedPart::Fixed(certificate) => Some(certificate.clone()),
            IssuedPart::Issued(place) => place.certificate(client),
        };
        let all: Vec<_> = self.0.iter().filter_map(now).collect();
        if !all.is_empty() {
            return Ok(all);
        }
        let complaint = |part: &IssuedPart| match part {
            IssuedPart::Issued(place) => Some(place.complaint(client)),
            IssuedPart::Fixed(_) => None,
        };
        Err(self.0.iter().find_map(complaint).unwrap_or_else(|| "no certificate".to_owned().into()))
    }
}
