//! Files behind `ssl_verify_client`, read with nginx's complaints.

use std::path::Path;
use std::sync::Arc;

use conf::model::{TlsConf, VerifyClient};
use tls::{ClientAuth, ClientAuthError, ClientAuthFiles};

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
