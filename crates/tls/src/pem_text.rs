//! PEM texts (RFC 7468) as OpenSSL reads them: a byte order mark before a section is skipped, and
//! certificates have OpenSSL's two older labels, too. A reader that knows neither would drop such
//! a section, and with it an authority that the configuration trusts.

use std::borrow::Cow;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::der;

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// `PEM_STRING_X509_OLD` and `PEM_STRING_X509_TRUSTED`.
const OLDER: [&[u8]; 2] = [b"X509 CERTIFICATE-----", b"TRUSTED CERTIFICATE-----"];
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";

/// The certificates of a text, in DER; other sections are skipped.
///
/// # Errors
///
/// A section is malformed.
pub(crate) fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let mut all: Vec<CertificateDer<'static>> = sections(text)?;
    for one in &mut all {
        // OpenSSL's settings of trust follow a certificate, and nothing else may.
        let mut rest: &[u8] = one;
        if let Some((whole, _)) = der::element(&mut rest)
            && !rest.is_empty()
        {
            *one = whole.to_vec().into();
        }
    }
    Ok(all)
}

/// The first private key of a text.
///
/// # Errors
///
/// There is none, or it is malformed.
pub(crate) fn private_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(&normalized(text))
}

/// The sections of one kind.
///
/// # Errors
///
/// A section is malformed.
pub(crate) fn sections<T: PemObject>(text: &[u8]) -> Result<Vec<T>, Error> {
    match T::pem_slice_iter(&normalized(text)).collect() {
        Err(Error::NoItemsFound) => Ok(Vec::new()),
        read => read,
    }
}

/// The text without byte order marks before lines, with the usual labels.
fn normalized(text: &[u8]) -> Cow<'_, [u8]> {
    let has = |part: &[u8]| text.windows(part.len()).any(|found| found == part);
    if !has(MARK) && !OLDER.iter().any(|label| has(label)) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_prefix(MARK).unwrap_or(line);
        let label =
            [BEGIN, END].into_iter().find_map(|edge| Some((edge, line.strip_prefix(edge)?)));
        let older = label.and_then(|(edge, label)| {
            let rest = OLDER.iter().find_map(|older| label.strip_prefix(*older))?;
            Some((edge, rest))
        });
        match older {
            Some((edge, rest)) => out.extend([edge, b"CERTIFICATE-----", rest].concat()),
            None => out.extend_from_slice(line),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::{certificates, private_key};
    use crate::self_signed;

    #[test]
    fn marks_older_labels_and_settings_of_trust_hide_no_certificate() {
        let (one, key) = self_signed(&["a.example"]).unwrap();
        let (other, _) = self_signed(&["b.example"]).unwrap();
        let plain = certificates(format!("{one}{other}").as_bytes()).unwrap();
        assert_eq!(plain.len(), 2);
        let read = |text: &str| certificates(text.as_bytes()).unwrap();
        assert_eq!(read(&format!("\u{feff}{one}\u{feff}{other}")), plain);
        let older = one.replace(" CERTIFICATE", " X509 CERTIFICATE");
        assert_eq!(read(&format!("{older}{other}")), plain);
        assert_eq!(read(&format!("text\r\n{}{other}", older.replace('\n', "\r\n"))), plain);
        let trusting = [&*plain[0], &[0x30, 0x00]].concat();
        let trusting = pem::encode(&pem::Pem::new("TRUSTED CERTIFICATE", trusting));
        assert_eq!(read(&format!("{trusting}{other}")), plain);
        assert!(private_key(format!("\u{feff}{key}").as_bytes()).is_ok());
    }

    #[test]
    fn a_malformed_section_is_an_error_and_none_is_an_empty_list() {
        let cut = "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n";
        assert!(certificates(cut.as_bytes()).is_err());
        assert!(certificates(b"text").unwrap().is_empty());
    }
}
