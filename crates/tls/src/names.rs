//! The words of nginx and OpenSSL for versions, ciphers and groups, in both directions. Pure
//! functions; unsupported words are returned so that the caller can warn.

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{cipher_suite as suite, kx_group};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion, SupportedCipherSuite};

use crate::{CipherStringError, Versions, cipher_strings};

/// In OpenSSL's order.
static TLS12_ROWS: [(SupportedCipherSuite, &str); 6] = [
    (suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384"),
    (suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305"),
    (suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305"),
    (suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256"),
];

static TLS13_ROWS: [(SupportedCipherSuite, &str); 3] = [
    (suite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384"),
    (suite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256"),
    (suite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256"),
];

/// Groups by OpenSSL's names; the first name of a group is the displayed one.
static GROUPS: [(&dyn SupportedKxGroup, &[&str]); 4] = [
    (kx_group::X25519MLKEM768, &["X25519MLKEM768"]),
    (kx_group::X25519, &["X25519"]),
    (kx_group::SECP256R1, &["prime256v1", "P-256", "secp256r1"]),
    (kx_group::SECP384R1, &["secp384r1", "P-384"]),
];

/// All TLS 1.2 suites, preferred first.
#[must_use]
pub fn default_ciphers() -> Vec<SupportedCipherSuite> {
    TLS12_ROWS.iter().map(|(suite, _)| *suite).collect()
}

/// All TLS 1.3 suites, preferred first.
#[must_use]
pub fn default_ciphersuites() -> Vec<SupportedCipherSuite> {
    TLS13_ROWS.iter().map(|(suite, _)| *suite).collect()
}

/// All groups, preferred first.
#[must_use]
pub fn default_curves() -> Vec<&'static dyn SupportedKxGroup> {
    GROUPS.iter().map(|(group, _)| *group).collect()
}

/// Reads the words of `ssl_protocols`; also returns the words that are not supported (SSLv2, SSLv3,
/// TLSv1, TLSv1.1) or unknown.
pub fn protocols<'a>(words: impl IntoIterator<Item = &'a str>) -> (Versions, Vec<String>) {
    let mut versions = Versions { tls12: false, tls13: false };
    let mut unknown = Vec::new();
    for word in words {
        match word {
            "TLSv1.2" => versions.tls12 = true,
            "TLSv1.3" => versions.tls13 = true,
            other => unknown.push(other.to_owned()),
        }
    }
    (versions, unknown)
}

/// What a cipher string selects of the TLS 1.2 suites that exist here.
#[derive(Debug)]
pub struct CipherSelection {
    /// Suites in the order of the string.
    pub suites: Vec<SupportedCipherSuite>,
    /// Words that would add ciphers, none of which exists here.
    pub unsupported: Vec<String>,
    /// The level of security that the string sets: `@SECLEVEL=n`.
    pub level: Option<u8>,
}

/// Reads `ssl_ciphers`: an OpenSSL cipher string (`HIGH:!aNULL`, `EECDH+AESGCM`, full names).
///
/// # Errors
///
/// Where OpenSSL refuses it: it selects nothing at all, or has a command that is none.
pub fn ciphers(spec: &str) -> Result<CipherSelection, CipherStringError> {
    let list = cipher_strings::read(spec)?;
    let row = |name: &&str| TLS12_ROWS.iter().find(|(_, known)| known == name);
    let suites = list.names.iter().filter_map(row).map(|(suite, _)| *suite).collect();
    let is_missing = |(word, names): &(String, Vec<&str>)| {
        !is_tls13(word) && !names.iter().any(|name| row(name).is_some())
    };
    let missing = list.words.into_iter().filter(is_missing);
    let unsupported = missing.map(|(word, _)| word).collect();
    Ok(CipherSelection { suites, unsupported, level: list.level })
}

/// Whether a level of security (`@SECLEVEL`) lets a suite be used; all here have forward secrecy.
#[must_use]
pub fn meets_level(suite: &SupportedCipherSuite, level: u8) -> bool {
    // Levels 4 and 5 ask for 192 and 256 bits.
    let name = cipher_name(suite.suite());
    level < 4 || !name.contains("AES128") && !name.contains("AES_128")
}

fn is_tls13(name: &str) -> bool {
    TLS13_ROWS.iter().any(|(_, known)| *known == name)
}

/// Reads `ssl_conf_command Ciphersuites`: full TLS 1.3 names joined by colons. Returns the suites
/// in its order and the unsupported names.
#[must_use]
pub fn ciphersuites(spec: &str) -> (Vec<SupportedCipherSuite>, Vec<String>) {
    let mut chosen: Vec<SupportedCipherSuite> = Vec::new();
    let mut unknown = Vec::new();
    for word in spec.split(':').map(str::trim).filter(|word| !word.is_empty()) {
        match TLS13_ROWS.iter().find(|(_, name)| name.eq_ignore_ascii_case(word)) {
            Some((suite, _)) if !chosen.contains(suite) => chosen.push(*suite),
            Some(_) => {}
            None => unknown.push(word.to_owned()),
        }
    }
    (chosen, unknown)
}

/// Reads `ssl_ecdh_curve`: group names joined by colons, or `auto`. Returns the groups in its order
/// and the unsupported names.
#[must_use]
pub fn curves(spec: &str) -> (Vec<&'static dyn SupportedKxGroup>, Vec<String>) {
    if spec == "auto" {
        return (default_curves(), Vec::new());
    }
    let mut chosen: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    let mut unknown = Vec::new();
    // OpenSSL marks optional groups with `?` and groups that get a key share with `*`.
    for word in spec.split([':', '/']).map(|word| word.trim_start_matches(['?', '*'])) {
        let known = GROUPS
            .iter()
            .find(|(_, names)| names.iter().any(|name| name.eq_ignore_ascii_case(word)));
        match known {
            Some((group, _)) if chosen.iter().all(|other| other.name() != group.name()) => {
                chosen.push(*group);
            }
            Some(_) => {}
            None if word.is_empty() => {}
            None => unknown.push(word.to_owned()),
        }
    }
    (chosen, unknown)
}

/// The value of `$ssl_protocol`.
#[must_use]
pub const fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        _ => "",
    }
}

/// The value of `$ssl_cipher`.
#[must_use]
pub fn cipher_name(suite: CipherSuite) -> &'static str {
    let tls13 = TLS13_ROWS.iter().map(|(row, name)| (row.suite(), *name));
    let mut all = tls13.chain(TLS12_ROWS.iter().map(|(row, name)| (row.suite(), *name)));
    all.find(|(known, _)| *known == suite).map_or("", |(_, name)| name)
}

/// The value of `$ssl_curve`.
#[must_use]
pub fn curve_name(group: NamedGroup) -> &'static str {
    GROUPS.iter().find(|(known, _)| known.name() == group).map_or("", |(_, names)| names[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(spec: &str) -> (Vec<&'static str>, Vec<String>) {
        let selected = ciphers(spec).unwrap();
        let suites = selected.suites.iter().map(|suite| cipher_name(suite.suite()));
        (suites.collect(), selected.unsupported)
    }

    #[test]
    fn a_cipher_string_selects_in_its_own_order() {
        let (suites, unknown) = names_of(
            "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256",
        );
        assert_eq!(suites, ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256"]);
        assert_eq!(unknown, ["DHE-RSA-AES128-GCM-SHA256"]);
    }

    #[test]
    fn the_default_strings_of_nginx_select_everything_without_a_warning() {
        for spec in ["HIGH:!aNULL:!MD5", "DEFAULT", "ALL:@STRENGTH:!RC4", "HIGH:@SECLEVEL=1"] {
            let (suites, unknown) = names_of(spec);
            assert_eq!((suites.len(), unknown.len()), (6, 0), "{spec}");
        }
    }

    #[test]
    fn words_for_nothing_that_exists_here_are_named() {
        assert_eq!(names_of("AES256-SHA:kEDH:RC4").1, ["AES256-SHA", "kEDH", "RC4"]);
        assert_eq!(names_of("TLS_AES_128_GCM_SHA256:HIGH").1, [""; 0]);
        assert_eq!(names_of("RSA+AES:ECDH+CHACHA20").0.len(), 2);
    }

    #[test]
    fn high_levels_of_security_leave_no_cipher_of_128_bits() {
        let left = |level| {
            let ciphers = default_ciphers().into_iter().chain(default_ciphersuites());
            ciphers.filter(|suite| meets_level(suite, level)).count()
        };
        assert_eq!([0, 3, 4, 5].map(left), [9, 9, 6, 6]);
    }

    #[test]
    fn suites_groups_and_versions_are_read_and_shown_by_the_same_names() {
        let (suites, unknown) = ciphersuites("TLS_AES_256_GCM_SHA384:TLS_AES_128_CCM_SHA256");
        assert_eq!(cipher_name(suites[0].suite()), "TLS_AES_256_GCM_SHA384");
        assert_eq!((suites.len(), unknown), (1, vec!["TLS_AES_128_CCM_SHA256".to_owned()]));
        let (groups, unknown) = curves("?X25519MLKEM768:P-256:secp521r1:prime256v1");
        let shown: Vec<_> = groups.iter().map(|group| curve_name(group.name())).collect();
        assert_eq!(shown, ["X25519MLKEM768", "prime256v1"]);
        assert_eq!(unknown, ["secp521r1"]);
        assert_eq!(curves("auto").0.len(), 4);
        let (versions, unknown) = protocols(["TLSv1", "TLSv1.2", "TLSv1.3", "x"]);
        assert_eq!(versions, Versions { tls12: true, tls13: true });
        assert_eq!(unknown, ["TLSv1", "x"]);
        assert_eq!(version_name(ProtocolVersion::TLSv1_3), "TLSv1.3");
    }

    #[test]
    fn the_orders_are_openssls_and_the_preferred_group_is_hybrid() {
        let names = |suites: Vec<SupportedCipherSuite>| -> Vec<_> {
            suites.iter().map(|suite| cipher_name(suite.suite())).collect()
        };
        assert_eq!(names(default_ciphers()), names_of("ALL").0);
        assert_eq!(names(default_ciphersuites())[0], "TLS_AES_256_GCM_SHA384");
        assert_eq!(default_curves()[0].name(), NamedGroup::X25519MLKEM768);
    }
}
