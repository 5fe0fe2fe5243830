//! Files that an issuer's block names: the key of the account, the key of an account that the
//! issuer knows, authorities, and the program of `dns-01`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use instant_acme::{ExternalAccountKey, Key};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::accounts::CREDENTIALS_MAX;
use crate::base64url;
use crate::plan::{
    AccountKey, AcmeAuthority, AcmeIssuer, AcmePlan, CertificateKey, ChallengeKind, ExternalAccount,
};
use crate::tls::roots;

/// The issuers, by their index, that no order of a plan can use: each with the first fault of its
/// files. Reads them, and contacts no issuer.
#[must_use]
pub fn unusable_issuers(plan: &AcmePlan) -> Vec<(usize, String)> {
    let is_used = |at: &usize| {
        let orders = plan.orders.iter().map(|order| &order.issuers);
        orders.chain(plan.demands.iter().map(|demand| &demand.issuers)).any(|all| all.contains(at))
    };
    let used = plan.issuers.iter().enumerate().filter(|(at, _)| is_used(at));
    used.filter_map(|(at, issuer)| Some((at, check(issuer).err()?))).collect()
}

fn check(issuer: &AcmeIssuer) -> Result<(), String> {
    if issuer.authority != AcmeAuthority::Remote {
        return Ok(());
    }
    // The key of an account that the issuer knows is used once, and may be gone afterwards.
    let is_there = |account: &ExternalAccount| account.key_file.exists();
    match issuer.external_account.as_ref().is_none_or(is_there) {
        true => drop(account_keys(issuer)?),
        false => drop(file_key(issuer)?),
    }
    if let Some(path) = issuer.trusted.as_deref().filter(|_| issuer.verify) {
        roots(Some(path))?;
    }
    match &issuer.challenge {
        ChallengeKind::Dns01(program) => check_program(program),
        ChallengeKind::Http01 | ChallengeKind::TlsAlpn01 => Ok(()),
    }
}

/// The keys for a new account: that of the configuration, `None` if one is generated, and that of
/// the account that the issuer knows.
///
/// # Errors
///
/// One cannot be read, or both cannot be used together.
pub(crate) fn account_keys(
    issuer: &AcmeIssuer,
) -> Result<(Option<PrivateKeyDer<'static>>, Option<ExternalAccountKey>), String> {
    let external = issuer.external_account.as_ref().map(external).transpose()?;
    let key = file_key(issuer)?;
    if key.is_some() && external.is_some() {
        return Err("unsupported: external_account_key with account_key of a file".to_owned());
    }
    if key.is_some() && !issuer.accepts_terms {
        return Err("account_key of a file wants accept_terms_of_service".to_owned());
    }
    Ok((key, external))
}

/// The key that the configuration names; `None` if one is generated.
///
/// # Errors
///
/// It cannot be read, or is none.
pub(crate) fn file_key(issuer: &AcmeIssuer) -> Result<Option<PrivateKeyDer<'static>>, String> {
    let path = match &issuer.account_key {
        AccountKey::Generated(CertificateKey::EcdsaP256) => return Ok(None),
        AccountKey::Generated(_) => {
            return Err("unsupported: account keys other than ecdsa:256".to_owned());
        }
        AccountKey::File(path) => path,
    };
    let text = read(path)?;
    parse(&text).map(Some).map_err(|why| format!("account_key: \"{}\" {why}", path.display()))
}

/// A key on P-256 in PEM form: PKCS #8, or SEC 1, maybe behind the parameters of its curve
/// (RFC 5915), as `openssl ecparam -genkey` writes it.
fn parse(text: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let blocks = pem::parse_many(text).map_err(|error| format!("is no PEM: {error}"))?;
    let block = blocks.into_iter().find(|block| block.tag().ends_with("PRIVATE KEY"));
    let block = block.ok_or("has no private key in PEM form")?;
    let other = || "unsupported: account keys other than ecdsa:256".to_owned();
    let der = match block.tag() {
        "PRIVATE KEY" => block.into_contents(),
        "EC PRIVATE KEY" if block.headers().iter().next().is_none() => {
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let pair = EcdsaKeyPair::from_private_key_der(algorithm, block.contents());
            let document = pair.ok().and_then(|pair| pair.to_pkcs8v1().ok());
            document.ok_or_else(other)?.as_ref().to_vec()
        }
        "EC PRIVATE KEY" | "ENCRYPTED PRIVATE KEY" => {
            return Err("is encrypted: a pass phrase is not supported".to_owned());
        }
        _ => return Err(other()),
    };
    let der = PrivatePkcs8KeyDer::from(der);
    match Key::from_pkcs8_der(der.clone_key()) {
        Ok(_) => Ok(PrivateKeyDer::Pkcs8(der)),
        Err(_) => Err(other()),
    }
}

fn external(account: &ExternalAccount) -> Result<ExternalAccountKey, String> {
    let text = String::from_utf8_lossy(&read(&account.key_file)?).trim().to_owned();
    let key = base64url::decode(&text).filter(|key| !key.is_empty()).ok_or_else(|| {
        format!("external_account_key: \"{}\" is no base64url", account.key_file.display())
    })?;
    Ok(ExternalAccountKey::new(account.kid.clone(), &key))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    bolide_io::file::read_small(path, CREDENTIALS_MAX as u64).map_err(|error| {
        let why = bolide_base::errno::describe(&error);
        format!("open() \"{}\" failed ({why})", path.display())
    })
}

fn check_program(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let about = std::fs::metadata(path).map_err(|error| {
        let why = bolide_base::errno::describe(&error);
        format!("stat() \"{shown}\" failed ({why})")
    })?;
    match about.is_file() && about.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(format!("\"{shown}\" is not executable")),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::KeyPair;

    use super::*;

    /// Keys of `openssl ecparam -name prime256v1 -genkey` and `-name secp384r1`.
    const PARAMETERS: &str =
        "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    const SEC1: &str = "-----BEGIN EC PRIVATE KEY-----\n\
        MHcCAQEEIPGbkkzvvIi/WbxtV+3Do5vXs9RZDcLl67cS9sgZGZeCoAoGCCqGSM49\n\
        AwEHoUQDQgAEgc9dbh4XNwVE47vfUGgWSH0XCyrOGh+epbJXNrs3Qh6oLtA5PhaM\n\
        s7wh9amoqqgqG/nVKmDT5ObqNrqZLKlzRw==\n\
        -----END EC PRIVATE KEY-----\n";
    const P384: &str = "-----BEGIN EC PRIVATE KEY-----\n\
        MIGkAgEBBDD0bgvic+pkno4PNAVRzRw3DhOSqeR6t/5vNp3WgAS5cNZ/NYGRmPZR\n\
        skcaJBmm4pygBwYFK4EEACKhZANiAAQrhDfKIrKN6fCXXuvgEYUPZdZ+4GXnP3Xg\n\
        goK++1qNT/E9Ji5gghBI0HdJSzmeaWXRehqLlchSWGGqjqFUh++lztxWVtvWk92e\n\
        kqsyHBwsQPzCdoJnJmjc+1aCc7H9CXM=\n\
        -----END EC PRIVATE KEY-----\n";

    #[test]
    fn an_account_key_is_pkcs_8_or_sec_1_on_p256() {
        let own = KeyPair::generate().unwrap().serialize_pem();
        let with_parameters = format!("{PARAMETERS}{SEC1}");
        for text in [&*own, SEC1, &with_parameters] {
            assert!(parse(text.as_bytes()).is_ok(), "{text}");
        }
        let of = |text: &str| match parse(text.as_bytes()) {
            Ok(key) => key.secret_der().to_vec(),
            Err(why) => panic!("{why}"),
        };
        assert_eq!(of(SEC1), of(&with_parameters));
        let other = "unsupported: account keys other than ecdsa:256";
        let rsa = own.replace("PRIVATE KEY", "RSA PRIVATE KEY");
        let damaged = SEC1.replacen('M', "A", 1);
        let sealed = own.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        for (text, why) in [
            (P384, other),
            (&*rsa, other),
            (&damaged, other),
            (&sealed, "is encrypted: a pass phrase is not supported"),
            (PARAMETERS, "has no private key in PEM form"),
            ("", "has no private key in PEM form"),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(why.to_owned()), "{text}");
        }
    }
}
