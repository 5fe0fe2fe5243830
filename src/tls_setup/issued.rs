//! Issued certificates in handshakes: the current content of their slots.

use std::sync::Arc;

use bolide_conf::model::{Pem, TlsConf};
use bolide_tls::{CertComplaint, LoadedCertificate, StapleKey};

use super::CertificateDraft;
use super::certificates::{self, CertificateReader};
use crate::acme::IssuedPlace;

/// The certificates of one server, at least one of them from an issuer.
pub(super) struct Issued {
    parts: Vec<IssuedPart>,
    /// Names the staples of those from issuers, if there are any.
    staples: Option<StapleKey>,
}

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
        draft: &mut CertificateDraft<'_>,
        reader: &mut CertificateReader,
        warnings: &mut Vec<String>,
    ) -> Result<Self, String> {
        let passwords = certificates::passwords(conf.password_file.as_ref())?;
        let staples = draft.staple_issued(conf, warnings)?;
        let mut parts = Vec::new();
        for pair in conf.certificates.iter() {
            if let Pem::Issued(id) = pair.chain {
                parts.push(IssuedPart::Issued(draft.issued.place(id)));
                continue;
            }
            let own = vec![(pair.chain.to_string(), reader.certificate(pair, &passwords)?)];
            let own = draft.state.stapling.attach(&mut draft.stapling, conf, own, warnings)?;
            parts.extend(own.into_iter().map(IssuedPart::Fixed));
        }
        Ok(Self { parts, staples })
    }

    /// Its identity in sessions: a renewal does not change it.
    pub(super) fn words(&self) -> String {
        let word = |part: &IssuedPart| match part {
            IssuedPart::Fixed(certificate) => {
                certificate.leaf().iter().map(|byte| format!("{byte:02x}")).collect()
            }
            IssuedPart::Issued(place) => format!("issued {}", place.words()),
        };
        self.parts.iter().map(word).collect::<Vec<_>>().join("\n")
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
            IssuedPart::Issued(place) => place.certificate(client, self.staples),
        };
        let all: Vec<_> = self.parts.iter().filter_map(now).collect();
        if !all.is_empty() {
            return Ok(all);
        }
        let complaint = |part: &IssuedPart| match part {
            IssuedPart::Issued(place) => Some(place.complaint(client)),
            IssuedPart::Fixed(_) => None,
        };
        let complaint = self.parts.iter().find_map(complaint);
        Err(complaint.unwrap_or_else(|| "no certificate".to_owned().into()))
    }
}
