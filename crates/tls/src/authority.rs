//! Permitted uses and name constraints of one certificate: the rules of OpenSSL that webpki lacks.
//! Chains, signatures and revocation lists are not checked here.
//!
//! Easiest to break: an unreadable extension must never count as an absent one.

use webpki::Error;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::OID_X509_EXT_BASIC_CONSTRAINTS;
use x509_parser::x509::X509Version;

use crate::client_facts::text_of;
use crate::signed::{Proof, prove};

/// To which degree a certificate is an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertAuthority {
    /// It has the extension.
    Yes,
    /// It predates the extension, and may only be a root.
    Root,
    /// Its signatures are invalid.
    No,
}

/// The owner of the certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertPurpose {
    /// Our clients.
    Clients,
    /// Servers that we connect to.
    Servers,
}

/// To which degree `cert` is an authority.
pub(crate) fn authority(cert: &X509Certificate<'_>) -> CertAuthority {
    let signs = match cert.key_usage() {
        Ok(usage) => usage.map(|usage| usage.value.key_cert_sign()),
        Err(_) => return CertAuthority::No,
    };
    let constraints = cert.get_extension_unique(&OID_X509_EXT_BASIC_CONSTRAINTS);
    match (signs, constraints) {
        (Some(false), _) | (_, Err(_)) => CertAuthority::No,
        (_, Ok(Some(extension))) => match extension.parsed_extension() {
            ParsedExtension::BasicConstraints(constraints) if constraints.ca => CertAuthority::Yes,
            _ => CertAuthority::No,
        },
        (Some(true), Ok(None)) => CertAuthority::Root,
        (None, Ok(None)) if cert.version() == X509Version::V1 => CertAuthority::Root,
        (None, Ok(None)) => CertAuthority::No,
    }
}

/// Whether `cert`, whose bytes are `der`, is its own issuer.
pub(crate) fn is_self_signed(cert: &X509Certificate<'_>, der: &[u8]) -> bool {
    cert.subject().as_raw() == cert.issuer().as_raw()
        && match prove(der, cert.public_key().raw) {
            Proof::Good => true,
            Proof::Bad => false,
            // Roots with old signatures are common, and nothing relies on those signatures.
            Proof::Unknown => names_own_key(cert),
        }
}

/// Whether the authority key identifier names the certificate's own key, if present.
fn names_own_key(cert: &X509Certificate<'_>) -> bool {
    let mut own = None;
    let mut signer = None;
    for extension in cert.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => own = Some(id),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                if id.authority_cert_serial.is_some_and(|serial| serial != cert.raw_serial()) {
                    return false;
                }
                signer = id.key_identifier.as_ref();
            }
            _ => {}
        }
    }
    own.is_none() || signer.is_none() || own == signer
}

/// RFC 5280 §4.2.1.12: whether its extended key usage allows the purpose or is absent. OpenSSL does
/// not accept "any purpose" for these.
pub(crate) fn is_for(cert: &X509Certificate<'_>, purpose: CertPurpose) -> bool {
    match cert.extended_key_usage() {
        Ok(usage) => usage.is_none_or(|usage| match purpose {
            CertPurpose::Clients => usage.value.client_auth,
            CertPurpose::Servers => usage.value.server_auth,
        }),
        Err(_) => false,
    }
}

/// RFC 5280 §4.2.1.3: a certificate with key usage must include this one; so must one with
/// Netscape's certificate type.
pub(crate) fn may_sign_handshakes(cert: &X509Certificate<'_>, purpose: CertPurpose) -> bool {
    let is_server = purpose == CertPurpose::Servers;
    let by_netscape = cert.extensions().iter().all(|extension| {
        !matches!(extension.parsed_extension(),
            ParsedExtension::NSCertType(kinds)
                if !(if is_server { kinds.ssl_server() } else { kinds.ssl_client() }))
    });
    by_netscape
        && match cert.key_usage() {
            Ok(Some(usage)) => {
                usage.value.digital_signature()
                    || usage.value.key_agreement()
                    || is_server && usage.value.key_encipherment()
            }
            Ok(None) => true,
            Err(_) => false,
        }
}

/// The same of revocation lists.
pub(crate) fn may_sign_lists(cert: &X509Certificate<'_>) -> bool {
    match cert.key_usage() {
        Ok(usage) => usage.is_none_or(|usage| usage.value.crl_sign()),
        Err(_) => false,
    }
}

/// The checks of a root that webpki omits, except its dates: it must be an authority for that
/// purpose over that many others. `between` begins with the one that signed `leaf`.
///
/// # Errors
///
/// The fault of the root, or of names that it or the others do not permit.
pub(crate) fn check_root(
    root: &X509Certificate<'_>,
    between: &[X509Certificate<'_>],
    leaf: &X509Certificate<'_>,
    purpose: CertPurpose,
) -> Result<(), Error> {
    if authority(root) == CertAuthority::No {
        return Err(Error::EndEntityUsedAsCa);
    }
    let constraints = root.basic_constraints().ok().flatten();
    let len = constraints.and_then(|constraints| constraints.value.path_len_constraint);
    if len.is_some_and(|len| between.len() > len as usize) {
        return Err(Error::PathLenConstraintViolated);
    }
    if !is_for(root, purpose) {
        return Err(Error::EmptyEkuExtension);
    }
    let above = between.iter().chain([root]).enumerate();
    for (at, authority) in above {
        check_names(authority, &between[..at], leaf)?;
    }
    Ok(())
}

/// RFC 5280 §4.2.1.10: webpki applies name constraints to alternative names only. Constraints on
/// mail addresses apply to subjects too, and OpenSSL treats a subject's name as a host where no
/// alternative name is one. A certificate with such names below such constraints is refused.
fn check_names(
    authority: &X509Certificate<'_>,
    below: &[X509Certificate<'_>],
    leaf: &X509Certificate<'_>,
) -> Result<(), Error> {
    let constraints = match authority.name_constraints() {
        Ok(None) => return Ok(()),
        Ok(Some(constraints)) => constraints.value,
        Err(_) => return Err(Error::NameConstraintViolation),
    };
    let lists = [&constraints.permitted_subtrees, &constraints.excluded_subtrees];
    let bases = || lists.into_iter().flatten().flatten().map(|subtree| &subtree.base);
    let is_odd = bases().any(|base| matches!(base, GeneralName::Invalid(..)));
    let of_mail = bases().any(|base| matches!(base, GeneralName::RFC822Name(_)));
    let of_hosts = bases().any(|base| matches!(base, GeneralName::DNSName(_)));
    let has_mail =
        below.iter().chain([leaf]).any(|cert| cert.subject().iter_email().next().is_some());
    if is_odd || of_mail && has_mail || of_hosts && is_named_as_host(leaf) {
        return Err(Error::NameConstraintViolation);
    }
    Ok(())
}

/// Whether a common name serves as the host where no alternative name does.
fn is_named_as_host(leaf: &X509Certificate<'_>) -> bool {
    let names = leaf.subject_alternative_name().ok().flatten();
    let is_host = |name: &GeneralName<'_>| matches!(name, GeneralName::DNSName(_));
    if names.is_some_and(|names| names.value.general_names.iter().any(is_host)) {
        return false;
    }
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:*\0".contains(byte);
    leaf.subject().iter_common_name().any(|name| {
        text_of(name.attr_value()).is_none_or(|text| text.contains(&b'.') && text.iter().all(fits))
    })
}
