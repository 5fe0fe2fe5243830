//! Warms up the cryptographic library before the first client needs it.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::crypto::aws_lc_rs::kx_group::{X25519, X25519MLKEM768};

/// Seeds the random generator and does one key exchange and one signature.
///
/// PERF: the first use of a cold library takes about 100 ms (it gathers jitter entropy). A client
/// that experiences it takes that for the round-trip time and paces its requests by it. Call this
/// before listening, once per process.
///
/// # Errors
///
/// As text, when the system's randomness fails.
pub fn warm_up() -> Result<(), String> {
    for group in [X25519, X25519MLKEM768] {
        let client = group.start().map_err(|error| error.to_string())?;
        let server =
            group.start_and_complete(client.pub_key()).map_err(|error| error.to_string())?;
        client.complete(&server.pub_key).map_err(|error| error.to_string())?;
    }
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)
        .map_err(|_| "cannot generate a key".to_owned())?;
    key.sign(&SystemRandom::new(), b"warm").map_err(|_| "cannot sign".to_owned())?;
    Ok(())
}

/// An unpredictable number to seed hashes and random generators.
#[must_use]
pub fn random_seed() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness `warm_up` has failed already and the server does not start.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}

/// A secret of fixed length derived from one of any length.
#[must_use]
pub fn secret_of(bytes: &[u8]) -> [u8; 32] {
    let mut secret = [0; 32];
    secret.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref());
    secret
}
