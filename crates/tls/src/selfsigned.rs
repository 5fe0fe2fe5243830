//! Self-signed certificates, for the demonstration site and for tests.

use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, date_time_ymd};

/// Makes an ECDSA P-256 certificate for DNS names and IP addresses: `(chain, key)` in PEM.
///
/// # Errors
///
/// As text, when a name is invalid or randomness fails.
pub fn self_signed(names: &[&str]) -> Result<(String, String), String> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let common = names.first().cloned().unwrap_or_else(|| "localhost".into());
    let mut params = CertificateParams::new(names).map_err(|error| error.to_string())?;
    params.distinguished_name.push(DnType::CommonName, common);
    // Fixed dates, so that a wrong clock on a new machine does not break the demonstration.
    params.not_before = date_time_ymd(2025, 1, 1);
    params.not_after = date_time_ymd(2045, 1, 1);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| error.to_string())?;
    let cert = params.self_signed(&key).map_err(|error| error.to_string())?;
    Ok((cert.pem(), key.serialize_pem()))
}
