//! Files behind `ssl_verify_client` and `ssl_stapling_file`, read with nginx's complaints.

use std::path::Path;
use std::sync::Arc;

use conf::model::{TlsConf, VerifyClient};
use tls::{Certificate, ClientAuth, ClientAuthError, ClientAuthFiles};

use super::certificates::openssl_words;

/// Whom the server of `conf` trusts to know its clients, if it asks them.
///
/// # Errors
///
/// A file cannot be read or holds nothing of its kind; said of files that are not used, too.
pub(super) fn client_auth(conf: &TlsConf) -> Result<Option<Arc<ClientAuth>>, String> {
    let asks = conf.verify_client != VerifyClient::Off;
    let told = conf.client_certificate.as_deref().filter(|_| asks);
    let client = told.map(|path| read("certificate", path)).transpose()?;
    let trusted = conf.trusted_certificate.as_deref();
    let trusted = trusted.map(|path| read("certificate", path)).transpose()?;
    let crl = conf.crl.as_deref().map(|path| read("CRL", path)).transpose()?;
    let files = ClientAuthFiles {
        client: client.as_deref(),
        trusted: trusted.as_deref(),
        crl: crl.as_deref(),
    };
    let auth = ClientAuth::new(&files, conf.verify_depth).map_err(|error| {
        let (path, what, call, kind) = match error {
            ClientAuthError::Client => (told, "certificate", "X509_AUX", "TRUSTED CERTIFICATE"),
            ClientAuthError::Trusted => {
                let path = conf.trusted_certificate.as_deref();
                (path, "certificate", "X509_AUX", "TRUSTED CERTIFICATE")
            }
            ClientAuthError::Crl => (conf.crl.as_deref(), "CRL", "X509_CRL", "X509 CRL"),
        };
        let path = path.unwrap_or(Path::new("")).display();
        format!(
            "cannot load {what} \"{path}\": PEM_read_bio_{call}() failed (SSL: \
             error:0480006C:PEM routines::no start line:Expecting: {kind})"
        )
    })?;
    Ok(asks.then(|| Arc::new(auth)))
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| {
        format!("cannot load {what} \"{}\": {}", path.display(), openssl_words(path, &error))
    })
}

/// The certificates with the answer of `ssl_stapling_file`; warns where nobody is asked for one.
///
/// # Errors
///
/// The file cannot be read or is no answer.
pub(super) fn stapled(
    conf: &TlsConf,
    certificates: Vec<Certificate>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Certificate>, String> {
    if !conf.stapling {
        return Ok(certificates);
    }
    let Some(path) = &conf.stapling_file else {
        for pair in conf.certificates.iter() {
            let chain = &pair.chain;
            warnings.push(format!(
                "\"ssl_stapling\" ignored, responders are not asked for certificate \"{chain}\""
            ));
        }
        return Ok(certificates);
    };
    let answer = std::fs::read(path).map_err(|error| {
        let words = openssl_words(path, &error).replace(", r) error", ", rb) error");
        words.replacen("BIO_new_file()", &format!("BIO_new_file(\"{}\")", path.display()), 1)
    })?;
    // RFC 6960 §4.2.1: an OCSPResponse is a sequence.
    if answer.first() != Some(&0x30) {
        return Err(format!(
            "d2i_OCSP_RESPONSE_bio(\"{}\") failed (SSL: error:0680008E:asn1 encoding \
             routines::not enough data)",
            path.display()
        ));
    }
    Ok(certificates.iter().map(|certificate| certificate.stapled(answer.clone())).collect())
}
