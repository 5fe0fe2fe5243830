//! Signed requests that the library cannot make: an account key, and its signatures with ES256 (RFC
//! 7515, RFC 7518).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::base64url;

/// Bytes of one coordinate of a point on P-256.
const COORDINATE: usize = 32;

/// The key of an account.
pub(crate) struct AccountSigner(EcdsaKeyPair);

impl AccountSigner {
    /// Reads PKCS #8 in DER.
    ///
    /// # Errors
    ///
    /// It is not an ECDSA key on P-256.
    pub(crate) fn from_pkcs8(der: &[u8]) -> Result<Self, String> {
        let read = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der);
        read.map(Self).map_err(|error| format!("the account's key is unusable: {error}"))
    }

    /// The public key as JSON (RFC 7517).
    pub(crate) fn jwk(&self) -> Value {
        // The first byte means that both coordinates follow.
        let point = self.0.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at(COORDINATE.min(point.len()));
        let (x, y) = (base64url::encode(x), base64url::encode(y));
        json!({"crv": "P-256", "kty": "EC", "x": x, "y": y})
    }

    /// Signs a payload with these fields of the header.
    ///
    /// # Errors
    ///
    /// The system has no randomness.
    pub(crate) fn sign(&self, header: &Value, payload: &Value) -> Result<Value, String> {
        let protected = base64url::encode(header.to_string().as_bytes());
        let payload = base64url::encode(payload.to_string().as_bytes());
        let text = format!("{protected}.{payload}");
        let signature = self.0.sign(&SystemRandom::new(), text.as_bytes());
        let signature = signature.map_err(|error| format!("nothing can be signed: {error}"))?;
        let signature = base64url::encode(signature.as_ref());
        Ok(json!({"protected": protected, "payload": payload, "signature": signature}))
    }
}
