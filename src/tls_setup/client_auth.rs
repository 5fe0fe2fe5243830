//! Files of `ssl_verify_client`, read with nginx's error messages.

use std::path::Path;
use std::sync::Arc;

use bolide_conf::model::{TlsConf, VerifyClient};
use bolide_tls::{ClientAuth, ClientAuthError, ClientAuthFile, ClientAuthFiles};

use super::certificates::openssl_words;

/// The client authentication of the server of `conf`, if it requests certificates.
///
/// # Errors
///
/// A file is unreadable or contains nothing of its kind; unused files are checked, too.
pub(super) fn client_auth(conf: &TlsConf) -> Result<Option<Arc<ClientAuth>>, String> {
    let asks = conf.verify_client != VerifyClient::Off;
    let client = conf.client_certificate.as_deref().filter(|_| asks);
    let trusted = conf.trusted_certificate.as_deref();
    let auth = authorities(client, trusted, conf.crl.as_deref(), conf.verify_depth)?;
    Ok(asks.then(|| Arc::new(auth)))
}

/// Reads authorities, announced or not, and revocation lists.
///
/// # Errors
///
/// A file is unreadable or contains nothing of its kind.
pub(crate) fn authorities(
    client: Option<&Path>,
    trusted: Option<&Path>,
    crl: Option<&Path>,
    depth: u32,
) -> Result<ClientAuth, String> {
    let client_text = client.map(|path| read("certificate", path)).transpose()?;
    let trusted_text = trusted.map(|path| read("certificate", path)).transpose()?;
    let crl_text = crl.map(|path| read("CRL", path)).transpose()?;
    let files = ClientAuthFiles {
        client: client_text.as_deref(),
        trusted: trusted_text.as_deref(),
        crl: crl_text.as_deref(),
    };
    ClientAuth::new(&files, depth).map_err(|error| {
        let (file, why) = match error {
            ClientAuthError::Empty(file) => (file, "0480006C:PEM routines::no start line"),
            ClientAuthError::Malformed(file) => {
                (file, "0688010A:asn1 encoding routines::nested asn1 error")
            }
            ClientAuthError::NoMemory => return "no memory for certificates".to_owned(),
        };
        let (path, what, call, kind) = match file {
            ClientAuthFile::Client => (client, "certificate", "X509_AUX", "TRUSTED CERTIFICATE"),
            ClientAuthFile::Trusted => (trusted, "certificate", "X509_AUX", "TRUSTED CERTIFICATE"),
            ClientAuthFile::Crl => (crl, "CRL", "X509_CRL", "X509 CRL"),
        };
        let is_empty = matches!(error, ClientAuthError::Empty(_));
        let wanted = if is_empty { format!(":Expecting: {kind}") } else { String::new() };
        let path = path.unwrap_or(Path::new("")).display();
        format!(
            "cannot load {what} \"{path}\": PEM_read_bio_{call}() failed (SSL: error:{why}{wanted})"
        )
    })
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| {
        format!("cannot load {what} \"{}\": {}", path.display(), openssl_words(path, &error))
    })
}
