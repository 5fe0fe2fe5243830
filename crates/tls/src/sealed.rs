//! Private keys encrypted with a pass phrase: PKCS#8 with PBES2 (RFC 8018), and OpenSSL's older
//! form with headers in the PEM section (RFC 1421 with MD5). Nothing here reads a file.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2;
use des::TdesEde3;
use des::cipher::{BlockCipherDecrypt as _, KeyInit as _};
use md5::{Digest as _, Md5};
use pem::Pem;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

use crate::der::{INTEGER, OBJECT, OCTETS, SEQUENCE, number, take};

/// LIMIT: rounds of a derivation; OpenSSL writes 2048, the strictest advice says 1,300,000.
const ROUNDS_MAX: u32 = 10_000_000;

/// The encryption scheme of a key; OpenSSL's error messages differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealState {
    /// PKCS#8.
    Pkcs8,
    /// Headers of the PEM section.
    Headers,
}

/// Why a sealed key stays shut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnsealError {
    /// No pass phrase fits, or there is none.
    Password(SealState),
    /// An unknown encryption scheme.
    Unknown(String),
}

/// The first encrypted key of some PEM sections, decrypted; `None` when none is encrypted.
pub(crate) fn open(
    sections: &[Pem],
    passwords: &[Vec<u8>],
) -> Option<Result<PrivateKeyDer<'static>, UnsealError>> {
    let section = sections.iter().find(|section| is_key(section))?;
    if section.tag() == "ENCRYPTED PRIVATE KEY" {
        return Some(open_pkcs8(section.contents(), passwords));
    }
    let header = section.headers().get("DEK-Info")?;
    Some(open_headers(section, header, passwords))
}

fn is_key(section: &Pem) -> bool {
    section.tag().ends_with("PRIVATE KEY")
}

/// How bytes are encrypted.
struct Scheme {
    cipher: Cipher,
    vector: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    Des3,
}

impl Cipher {
    const fn key_len(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 | Self::Des3 => 24,
            Self::Aes256 => 32,
        }
    }

    const fn vector_len(self) -> usize {
        if matches!(self, Self::Des3) { 8 } else { 16 }
    }

    /// By the name in a `DEK-Info` header.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "AES-128-CBC" => Self::Aes128,
            "AES-192-CBC" => Self::Aes192,
            "AES-256-CBC" => Self::Aes256,
            "DES-EDE3-CBC" => Self::Des3,
            _ => return None,
        })
    }

    /// By an object identifier.
    const fn identified(object: &[u8]) -> Option<Self> {
        Some(match object {
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 2] => Self::Aes128,
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 22] => Self::Aes192,
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 42] => Self::Aes256,
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 3, 7] => Self::Des3,
            _ => return None,
        })
    }
}

impl Scheme {
    /// The plain bytes; `None` when the key is wrong, as far as the padding shows.
    fn decrypt(&self, key: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let algorithm: &'static Algorithm = match self.cipher {
            Cipher::Aes128 => &AES_128,
            Cipher::Aes192 => &AES_192,
            Cipher::Aes256 => &AES_256,
            Cipher::Des3 => return des3(key, &self.vector, sealed),
        };
        let key = UnboundCipherKey::new(algorithm, key).ok()?;
        let vector = FixedLength::from(self.vector.first_chunk::<16>()?);
        let mut bytes = sealed.to_vec();
        let opener = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
        let len = opener.decrypt(&mut bytes, DecryptionContext::Iv128(vector)).ok()?.len();
        bytes.truncate(len);
        Some(bytes)
    }
}

/// Triple DES in CBC mode with PKCS#7 padding, as in old keys.
fn des3(key: &[u8], vector: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let cipher = TdesEde3::new_from_slice(key).ok()?;
    let mut before: [u8; 8] = vector.try_into().ok()?;
    let mut plain = Vec::with_capacity(sealed.len());
    let (blocks, rest) = sealed.as_chunks::<8>();
    if !rest.is_empty() {
        return None;
    }
    for sealed in blocks {
        let mut block = (*sealed).into();
        cipher.decrypt_block(&mut block);
        plain.extend(block.iter().zip(before).map(|(byte, with)| byte ^ with));
        before = *sealed;
    }
    let padding = usize::from(*plain.last()?);
    let kept = plain.len().checked_sub(padding)?;
    let is_padded = (1..=8).contains(&padding);
    (is_padded && plain[kept..].iter().all(|byte| usize::from(*byte) == padding)).then(|| {
        plain.truncate(kept);
        plain
    })
}

/// RFC 5208 §6 with RFC 8018 §6.2: the scheme with its derivation, then the encrypted key.
fn open_pkcs8(der: &[u8], passwords: &[Vec<u8>]) -> Result<PrivateKeyDer<'static>, UnsealError> {
    let Some((derivation, scheme, sealed)) = read_pkcs8(der)? else {
        return Err(UnsealError::Unknown("malformed encrypted key".into()));
    };
    for password in passwords {
        let mut key = vec![0; scheme.cipher.key_len()];
        pbkdf2::derive(derivation.prf, derivation.rounds, &derivation.salt, password, &mut key);
        if let Some(plain) = scheme.decrypt(&key, sealed)
            && plain.first() == Some(&SEQUENCE)
        {
            return Ok(PrivatePkcs8KeyDer::from(plain).into());
        }
    }
    Err(UnsealError::Password(SealState::Pkcs8))
}

struct Derivation {
    prf: pbkdf2::Algorithm,
    rounds: std::num::NonZeroU32,
    salt: Vec<u8>,
}

type Pkcs8<'a> = (Derivation, Scheme, &'a [u8]);

fn read_pkcs8(mut der: &[u8]) -> Result<Option<Pkcs8<'_>>, UnsealError> {
    const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
    const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
    let unknown =
        |what: &str| UnsealError::Unknown(format!("unsupported {what} of an encrypted key"));
    let mut whole = || {
        let mut key = take(&mut der, SEQUENCE)?;
        let mut algorithm = take(&mut key, SEQUENCE)?;
        Some((take(&mut algorithm, OBJECT)?, algorithm, take(&mut key, OCTETS)?))
    };
    let Some((scheme, mut parameters, sealed)) = whole() else { return Ok(None) };
    if scheme != PBES2 {
        return Err(unknown("scheme"));
    }
    let mut parts = || {
        let mut both = take(&mut parameters, SEQUENCE)?;
        let mut derivation = take(&mut both, SEQUENCE)?;
        let mut cipher = take(&mut both, SEQUENCE)?;
        let names = (take(&mut derivation, OBJECT)?, take(&mut cipher, OBJECT)?);
        Some((names, derivation, take(&mut cipher, OCTETS)?))
    };
    let Some(((name, cipher), mut derivation, vector)) = parts() else { return Ok(None) };
    if name != PBKDF2 {
        return Err(unknown("derivation"));
    }
    let cipher = Cipher::identified(cipher).ok_or_else(|| unknown("cipher"))?;
    let mut values = || {
        let mut values = take(&mut derivation, SEQUENCE)?;
        let salt = take(&mut values, OCTETS)?.to_vec();
        let rounds = number(take(&mut values, INTEGER)?)?;
        // The length of the key, which the cipher implies as well.
        let _ = take(&mut values, INTEGER);
        let function = take(&mut values, SEQUENCE).map(|mut inside| take(&mut inside, OBJECT));
        Some((salt, std::num::NonZeroU32::new(rounds)?, function.flatten()))
    };
    let Some((salt, rounds, function)) = values() else { return Ok(None) };
    if rounds.get() > ROUNDS_MAX || vector.len() != cipher.vector_len() {
        return Ok(None);
    }
    let prf = match function {
        // RFC 8018 §A.2: HMAC-SHA-1 unless another is named.
        None | Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 7]) => pbkdf2::PBKDF2_HMAC_SHA1,
        Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 9]) => pbkdf2::PBKDF2_HMAC_SHA256,
        Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 10]) => pbkdf2::PBKDF2_HMAC_SHA384,
        Some([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 11]) => pbkdf2::PBKDF2_HMAC_SHA512,
        Some(_) => return Err(unknown("derivation")),
    };
    let scheme = Scheme { cipher, vector: vector.to_vec() };
    Ok(Some((Derivation { prf, rounds, salt }, scheme, sealed)))
}

/// `DEK-Info: AES-256-CBC,0123…`: cipher and vector, of which the first 8 bytes are the salt.
fn open_headers(
    section: &Pem,
    header: &str,
    passwords: &[Vec<u8>],
) -> Result<PrivateKeyDer<'static>, UnsealError> {
    let (name, vector) = header.split_once(',').unwrap_or((header, ""));
    let unknown =
        || UnsealError::Unknown(format!("unsupported cipher \"{name}\" of an encrypted key"));
    let cipher = Cipher::named(name.trim()).ok_or_else(unknown)?;
    let vector = hex(vector.trim()).filter(|vector| vector.len() == cipher.vector_len());
    let scheme = Scheme { cipher, vector: vector.ok_or_else(unknown)? };
    for password in passwords {
        let key = derive(password, &scheme.vector[..8], cipher.key_len());
        if let Some(plain) = scheme.decrypt(&key, section.contents())
            && plain.first() == Some(&SEQUENCE)
        {
            return match section.tag() {
                "RSA PRIVATE KEY" => Ok(PrivatePkcs1KeyDer::from(plain).into()),
                "EC PRIVATE KEY" => Ok(PrivateSec1KeyDer::from(plain).into()),
                tag => Err(UnsealError::Unknown(format!("unsupported key \"{tag}\""))),
            };
        }
    }
    Err(UnsealError::Password(SealState::Headers))
}

/// OpenSSL's `EVP_BytesToKey` with MD5 and one round.
fn derive(password: &[u8], salt: &[u8], len: usize) -> Vec<u8> {
    let mut key: Vec<u8> = Vec::new();
    while key.len() < len {
        let mut hash = Md5::new();
        hash.update(key.get(key.len().wrapping_sub(16)..).unwrap_or_default());
        hash.update(password);
        hash.update(salt);
        key.extend_from_slice(&hash.finalize());
    }
    key.truncate(len);
    key
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(|byte| char::from(byte).to_digit(16));
    let digits = digits.collect::<Option<Vec<u32>>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| (high << 4 | low) as u8).collect())
}

#[cfg(test)]
mod tests;
