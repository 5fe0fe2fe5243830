//! Facts about a client's certificate, passed from the TLS layer to variables and access checks.
//!
//! Plain data: nothing here verifies or parses.

/// Why verification of a client's chain failed, in the numbers and words of OpenSSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertFault {
    /// 1: unspecified certificate verification error.
    Unspecified,
    /// 2: unable to get issuer certificate.
    NoIssuer,
    /// 3: unable to get certificate CRL.
    NoCrl,
    /// 7: certificate signature failure.
    BadSignature,
    /// 8: CRL signature failure.
    BadCrlSignature,
    /// 9: certificate is not yet valid or the system clock is incorrect.
    NotYetValid,
    /// 10: certificate has expired.
    Expired,
    /// 11: CRL is not yet valid.
    CrlNotYetValid,
    /// 12: CRL has expired.
    CrlExpired,
    /// 18: self-signed certificate.
    SelfSigned,
    /// 19: self-signed certificate in certificate chain.
    SelfSignedInChain,
    /// 20: unable to get local issuer certificate.
    NoLocalIssuer,
    /// 21: unable to verify the first certificate.
    Unverified,
    /// 22: certificate chain too long.
    ChainTooLong,
    /// 23: certificate revoked.
    Revoked,
    /// 25: path length constraint exceeded.
    PathTooLong,
    /// 26: unsuitable certificate purpose.
    WrongPurpose,
    /// 32: key usage does not include certificate signing.
    SignsNoCertificates,
    /// 33: unable to get CRL issuer certificate.
    NoCrlIssuer,
    /// 34: unhandled critical extension.
    UnknownCritical,
    /// 35: key usage does not include CRL signing.
    SignsNoLists,
    /// 36: unhandled critical CRL extension.
    UnknownCriticalCrl,
    /// 41: invalid or inconsistent certificate extension.
    BadExtension,
    /// 44: different CRL scope.
    OtherCrlScope,
    /// 47: permitted subtree violation.
    NotPermitted,
    /// 48: excluded subtree violation.
    Excluded,
    /// 51: unsupported name constraint type.
    UnknownConstraint,
    /// 52: unsupported or invalid name constraint syntax.
    BadConstraint,
    /// 53: unsupported or invalid name syntax.
    BadName,
    /// 66: EE certificate key too weak.
    WeakKey,
    /// 67: CA certificate key too weak.
    WeakAuthority,
    /// 68: CA signature digest algorithm too weak.
    WeakDigest,
    /// 79: invalid CA certificate.
    NotAuthority,
}

/// Words of `$ssl_client_verify`, and those of the error log.
macro_rules! words {
    ($number:literal, $words:literal) => {
        ($words, concat!("client SSL certificate verify error: (", $number, ":", $words, ")"))
    };
}

impl ClientCertFault {
    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Unspecified => words!(1, "unspecified certificate verification error"),
            Self::NoIssuer => words!(2, "unable to get issuer certificate"),
            Self::NoCrl => words!(3, "unable to get certificate CRL"),
            Self::BadSignature => words!(7, "certificate signature failure"),
            Self::BadCrlSignature => words!(8, "CRL signature failure"),
            Self::NotYetValid => {
                words!(9, "certificate is not yet valid or the system clock is incorrect")
            }
            Self::Expired => words!(10, "certificate has expired"),
            Self::CrlNotYetValid => words!(11, "CRL is not yet valid"),
            Self::CrlExpired => words!(12, "CRL has expired"),
            Self::SelfSigned => words!(18, "self-signed certificate"),
            Self::SelfSignedInChain => words!(19, "self-signed certificate in certificate chain"),
            Self::NoLocalIssuer => words!(20, "unable to get local issuer certificate"),
            Self::Unverified => words!(21, "unable to verify the first certificate"),
            Self::ChainTooLong => words!(22, "certificate chain too long"),
            Self::Revoked => words!(23, "certificate revoked"),
            Self::PathTooLong => words!(25, "path length constraint exceeded"),
            Self::WrongPurpose => words!(26, "unsuitable certificate purpose"),
            Self::SignsNoCertificates => {
                words!(32, "key usage does not include certificate signing")
            }
            Self::NoCrlIssuer => words!(33, "unable to get CRL issuer certificate"),
            Self::UnknownCritical => words!(34, "unhandled critical extension"),
            Self::SignsNoLists => words!(35, "key usage does not include CRL signing"),
            Self::UnknownCriticalCrl => words!(36, "unhandled critical CRL extension"),
            Self::BadExtension => words!(41, "invalid or inconsistent certificate extension"),
            Self::OtherCrlScope => words!(44, "different CRL scope"),
            Self::NotPermitted => words!(47, "permitted subtree violation"),
            Self::Excluded => words!(48, "excluded subtree violation"),
            Self::UnknownConstraint => words!(51, "unsupported name constraint type"),
            Self::BadConstraint => words!(52, "unsupported or invalid name constraint syntax"),
            Self::BadName => words!(53, "unsupported or invalid name syntax"),
            Self::WeakKey => words!(66, "EE certificate key too weak"),
            Self::WeakAuthority => words!(67, "CA certificate key too weak"),
            Self::WeakDigest => words!(68, "CA signature digest algorithm too weak"),
            Self::NotAuthority => words!(79, "invalid CA certificate"),
        }
    }

    /// The text of `$ssl_client_verify` after `FAILED:`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        self.texts().0
    }

    /// The error log's text for a request refused because of it.
    #[must_use]
    pub const fn complaint(self) -> &'static str {
        self.texts().1
    }

    /// Whether `ssl_verify_client optional_no_ca` accepts it: only the authority is unknown.
    #[must_use]
    pub const fn is_only_unknown_authority(self) -> bool {
        matches!(
            self,
            Self::SelfSigned | Self::SelfSignedInChain | Self::NoLocalIssuer | Self::Unverified
        )
    }
}

/// A client's certificate and the result of its verification.
#[derive(Clone, Debug, Default)]
pub struct ClientCert {
    /// The fault of its verification, if any.
    pub fault: Option<ClientCertFault>,
    /// The subject in the form of RFC 2253.
    pub subject: Box<[u8]>,
    /// The issuer in the form of RFC 2253.
    pub issuer: Box<[u8]>,
    /// The subject with slashes, in OpenSSL's old form.
    pub subject_legacy: Box<[u8]>,
    /// The issuer with slashes.
    pub issuer_legacy: Box<[u8]>,
    /// The serial number in upper-case hexadecimal digits.
    pub serial: Box<[u8]>,
    /// The SHA-1 of the certificate in lower-case hexadecimal digits.
    pub fingerprint: Box<[u8]>,
    /// The start of its validity: `Jan  1 00:00:00 2025 GMT`.
    pub start: Box<[u8]>,
    /// When it ends to be valid.
    pub end: Box<[u8]>,
    /// The same in seconds since 1970.
    pub end_seconds: i64,
    /// The certificate in PEM.
    pub pem: Box<[u8]>,
}

#[cfg(test)]
mod tests {
    use super::ClientCertFault;

    #[test]
    fn a_fault_has_a_number_only_in_the_log() {
        assert_eq!(ClientCertFault::Expired.words(), "certificate has expired");
        assert_eq!(
            ClientCertFault::Expired.complaint(),
            "client SSL certificate verify error: (10:certificate has expired)"
        );
        assert!(ClientCertFault::Unverified.is_only_unknown_authority());
        assert!(!ClientCertFault::Expired.is_only_unknown_authority());
    }
}
