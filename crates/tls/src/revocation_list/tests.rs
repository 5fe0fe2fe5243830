//! Owns: only a current list that the issuer signed says which certificates are revoked.

use std::collections::{BTreeMap, BTreeSet};

use pem::parse;
use proptest::prelude::proptest;

use super::{ListFault, Revocation, is_http, list_url, listed};

// Made by the `openssl` program. `FORBIDDEN` has the name and key of `AUTHORITY`, and may not sign
// lists.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBljCCAT2gAwIBAgIUHZfBO6E8gopOI0W9n8upPhKHpXQwCgYIKoZIzj0EAwIw\n\
GTEXMBUGA1UEAwwObGlzdCBhdXRob3JpdHkwHhcNMjYxMTMwMjM1NjU0WhcNMzYx\n\
MTI3MjM1NjU0WjAZMRcwFQYDVQQDDA5saXN0IGF1dGhvcml0eTBZMBMGByqGSM49\n\
AgEGCCqGSM49AwEHA0IABIw8O+LjkVQ/YqsVfAe1PE7i9lohKwM+zhwP1ktinHiw\n\
CjUQL/F2F2TN9PyPH2bR7WJp39/Htg53GKZ9mDk/15qjYzBhMB0GA1UdDgQWBBRK\n\
tQ2V8Stn+cWLUyzCgZ58ZSsbBjAfBgNVHSMEGDAWgBRKtQ2V8Stn+cWLUyzCgZ58\n\
ZSsbBjAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQEAwIBBjAKBggqhkjOPQQD\n\
AgNHADBEAiADE9QfhgXVvrYHK3FNRdjdhUgMbHfVnBAzeXLqkkf+/QIgAscqabXL\n\
GtfnqpE3LBHa2UQptQUScmChlI/0t1JfJl0=\n\
-----END CERTIFICATE-----\n";
const FORBIDDEN: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBmDCCAT2gAwIBAgIUaVLiL3h/QPwwCH3fmu9H8MwS+DwwCgYIKoZIzj0EAwIw\n\
GTEXMBUGA1UEAwwObGlzdCBhdXRob3JpdHkwHhcNMjYxMTMwMjM1NjU0WhcNMzYx\n\
MTI3MjM1NjU0WjAZMRcwFQYDVQQDDA5saXN0IGF1dGhvcml0eTBZMBMGByqGSM49\n\
AgEGCCqGSM49AwEHA0IABIw8O+LjkVQ/YqsVfAe1PE7i9lohKwM+zhwP1ktinHiw\n\
CjUQL/F2F2TN9PyPH2bR7WJp39/Htg53GKZ9mDk/15qjYzBhMB0GA1UdDgQWBBRK\n\
tQ2V8Stn+cWLUyzCgZ58ZSsbBjAfBgNVHSMEGDAWgBRKtQ2V8Stn+cWLUyzCgZ58\n\
ZSsbBjAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQEAwICBDAKBggqhkjOPQQD\n\
AgNJADBGAiEAvG7wngxj8uxa548ZKgDddn/yGW5aDraAxuLtl21clkYCIQCoBXg0\n\
rhcjmVlMAuPgeeABzFUCITIecOniafif0Xsl8g==\n\
-----END CERTIFICATE-----\n";
const PLAIN: &str = "-----BEGIN LIST-----\n\
MIIBDzCBtQIBATAKBggqhkjOPQQDAjAZMRcwFQYDVQQDDA5saXN0IGF1dGhvcml0\n\
eRcNMjYxMTEwMDAwMDAwWhcNMjYxMTIwMDAwMDAwWjBbMBICAX8XDTI2MTEwMjAw\n\
MDAwMFowIQICChsXDTI2MTEwMTAwMDAwMFowDDAKBgNVHRUEAwoBATAiAgMA/wEX\n\
DTI2MTEwMjAwMDAwMFowDDAKBgNVHRUEAwoBBKAOMAwwCgYDVR0UBAMCAQEwCgYI\n\
KoZIzj0EAwIDSQAwRgIhAOilzGiT3Vj8wSnHtHgPFgKGNa928LHrpmbB/vy1qsCm\n\
AiEA+3lM7FAZTnU0OR9Xga/FIpQ9qxi+fU8x2bM20Vqhu0w=\n\
-----END LIST-----\n";
const SHARD: &str = "-----BEGIN LIST-----\n\
MIIBODCB3wIBATAKBggqhkjOPQQDAjAZMRcwFQYDVQQDDA5saXN0IGF1dGhvcml0\n\
eRcNMjYxMTEwMDAwMDAwWhcNMjYxMTIwMDAwMDAwWjBbMBICAX8XDTI2MTEwMjAw\n\
MDAwMFowIQICChsXDTI2MTEwMTAwMDAwMFowDDAKBgNVHRUEAwoBATAiAgMA/wEX\n\
DTI2MTEwMjAwMDAwMFowDDAKBgNVHRUEAwoBBKA4MDYwKAYDVR0cAQH/BB4wHKAX\n\
oBWGE2h0dHA6Ly9hLnRlc3QvNy5jcmyBAf8wCgYDVR0UBAMCAQEwCgYIKoZIzj0E\n\
AwIDSAAwRQIgJHuIQJAc03VtYY4mX32Zn3vZ36iUs3KXCRSDXN3f0dUCIQDXECmb\n\
KWInblA91gQOdkAxsXcfE7J5PusKADyfRQo/og==\n\
-----END LIST-----\n";
const INDIRECT: &str = "-----BEGIN LIST-----\n\
MIIBOTCB3wIBATAKBggqhkjOPQQDAjAZMRcwFQYDVQQDDA5saXN0IGF1dGhvcml0\n\
eRcNMjYxMTEwMDAwMDAwWhcNMjYxMTIwMDAwMDAwWjBbMBICAX8XDTI2MTEwMjAw\n\
MDAwMFowIQICChsXDTI2MTEwMTAwMDAwMFowDDAKBgNVHRUEAwoBATAiAgMA/wEX\n\
DTI2MTEwMjAwMDAwMFowDDAKBgNVHRUEAwoBBKA4MDYwKAYDVR0cAQH/BB4wHKAX\n\
oBWGE2h0dHA6Ly9hLnRlc3QvNy5jcmyEAf8wCgYDVR0UBAMCAQEwCgYIKoZIzj0E\n\
AwIDSQAwRgIhAIrtY9KN1Stp2HNbfzky/o/jjQEe05P5Y/mDz4qeXnIlAiEA7fCV\n\
b1KtkzDofiJ1KMfpr5zAB1mYXcjZlKbHrc021fw=\n\
-----END LIST-----\n";
const DELTA: &str = "-----BEGIN LIST-----\n\
MIIBHjCBxAIBATAKBggqhkjOPQQDAjAZMRcwFQYDVQQDDA5saXN0IGF1dGhvcml0\n\
eRcNMjYxMTEwMDAwMDAwWhcNMjYxMTIwMDAwMDAwWjBbMBICAX8XDTI2MTEwMjAw\n\
MDAwMFowIQICChsXDTI2MTEwMTAwMDAwMFowDDAKBgNVHRUEAwoBATAiAgMA/wEX\n\
DTI2MTEwMjAwMDAwMFowDDAKBgNVHRUEAwoBBKAdMBswDQYDVR0bAQH/BAMCAQEw\n\
CgYDVR0UBAMCAQEwCgYIKoZIzj0EAwIDSQAwRgIhAPBqX0xAv2+jWYL3c/6nyuXa\n\
Aca3LxNZNTEJbyzU9Kn7AiEA1Rw/pP5xwtWjmZVhMzQezUW+WKMPiJSi5bji+Qah\n\
suA=\n\
-----END LIST-----\n";
const STRANGER: &str = "-----BEGIN CERTIFICATE-----\n\
MIIByTCCAXCgAwIBAgIUP208vT5Vv8JhU95xY2PCm/QeP3swCgYIKoZIzj0EAwIw\n\
EzERMA8GA1UEAwwIc3RyYW5nZXIwHhcNMjYxMTMwMjM1NzIyWhcNMzYxMTI3MjM1\n\
NzIyWjATMREwDwYDVQQDDAhzdHJhbmdlcjBZMBMGByqGSM49AgEGCCqGSM49AwEH\n\
A0IABH5pkTZUiP+GwUoMGzXBQBuQOg3wCEVg/6ba++5MA3dzhMg7AY/fhrfoHTHy\n\
IGD7wo97R4mDaigTg+htZwdG2tSjgaEwgZ4wHQYDVR0OBBYEFP0OF9Cs+2o74ewv\n\
cb7El0pIiGaLMB8GA1UdIwQYMBaAFP0OF9Cs+2o74ewvcb7El0pIiGaLMA8GA1Ud\n\
EwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgECMDsGA1UdHwQ0MDIwFaAToBGGD2xk\n\
YXA6Ly9hLnRlc3QveDAZoBegFYYTaHR0cDovL2EudGVzdC83LmNybDAKBggqhkjO\n\
PQQDAgNHADBEAiB5pDaPZyBBEMSWhO8t2Ui4RraHuudZzo3dS0hYLniVQwIgQS8M\n\
dDkYiaiBDQmT/XTWVFHBhipO8DJ+1qQVn9+5/ug=\n\
-----END CERTIFICATE-----\n";
/// In the time of the lists: 10 to 20 November 2026.
const FROM: u64 = 1_794_268_800;
const NOW: u64 = FROM + 86_400;
const UNTIL: u64 = FROM + 10 * 86_400;

fn der(text: &str) -> Vec<u8> {
    parse(text).unwrap().into_contents()
}

/// What `SHARD` says of itself.
const URL: &str = "http://a.test/7.crl";

/// The listed ones of these serial numbers.
fn found(
    list: &[u8],
    authority: &str,
    now: u64,
) -> Result<BTreeMap<Vec<u8>, Revocation>, ListFault> {
    let serials = [&[0x0a, 0x1b][..], &[0x7f], &[0, 0xff, 1], &[0x0a], &[1, 2, 3]];
    let serials: BTreeSet<Vec<u8>> = serials.iter().map(|serial| serial.to_vec()).collect();
    let found = listed(list, &der(authority), URL, &serials, now)?;
    assert_eq!(found.until, UNTIL);
    Ok(found.revoked)
}

#[test]
fn a_list_names_certificates_by_their_serial_numbers() {
    for list in [PLAIN, SHARD] {
        let found = found(&der(list), AUTHORITY, NOW).unwrap();
        let said = |serial: &[u8]| found.get(serial).map(|one| (one.at, one.reason_words()));
        assert_eq!(said(&[0x0a, 0x1b]), Some((Some(FROM - 9 * 86_400), "keyCompromise")));
        assert_eq!(said(&[0x7f]), Some((Some(FROM - 8 * 86_400), "unspecified")));
        assert_eq!(said(&[0, 0xff, 1]), Some((Some(FROM - 8 * 86_400), "superseded")));
        assert_eq!(found.len(), 3);
    }
}

#[test]
fn only_a_current_list_of_the_issuer_counts() {
    let fault = |list: &[u8], authority, now| found(list, authority, now).unwrap_err();
    assert_eq!(fault(&der(PLAIN), FORBIDDEN, NOW), ListFault::Unsigned);
    assert_eq!(fault(&der(PLAIN), STRANGER, NOW), ListFault::OtherIssuer);
    assert_eq!(fault(&der(PLAIN), AUTHORITY, FROM - 301), ListFault::Untimely);
    assert_eq!(fault(&der(PLAIN), AUTHORITY, UNTIL + 301), ListFault::Untimely);
    for now in [FROM - 300, UNTIL + 300] {
        assert!(found(&der(PLAIN), AUTHORITY, now).is_ok());
    }
    // Serial numbers of other authorities, and a list that is not complete by itself.
    assert_eq!(fault(&der(INDIRECT), AUTHORITY, NOW), ListFault::Partial);
    assert_eq!(fault(&der(DELTA), AUTHORITY, NOW), ListFault::Partial);
}

#[test]
fn a_shard_says_nothing_about_certificates_that_name_another() {
    let at = |list, url| listed(&der(list), &der(AUTHORITY), url, &BTreeSet::new(), NOW);
    assert_eq!(at(SHARD, "http://a.test/8.crl"), Err(ListFault::OtherShard));
    assert_eq!(at(SHARD, ""), Err(ListFault::OtherShard));
    assert!(at(SHARD, URL).is_ok() && at(PLAIN, "http://a.test/8.crl").is_ok());
}

#[test]
fn a_changed_or_cut_list_says_nothing() {
    let good = der(SHARD);
    for at in 0..good.len() {
        assert_eq!(found(&good[..at], AUTHORITY, NOW), Err(ListFault::Malformed), "{at}");
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert!(found(&changed, AUTHORITY, NOW).is_err(), "{at}");
    }
    assert!(found(&[good, vec![0]].concat(), AUTHORITY, NOW).is_err());
}

#[test]
fn only_urls_of_http_are_requested() {
    assert!(is_http("http://a.test/1.crl") && is_http("HTTP://a"));
    for url in ["http://", "https://a.test/", "ldap:///x", "http://a b", "http://a\r\nx: y", ""] {
        assert!(!is_http(url), "{url:?}");
    }
    assert_eq!(list_url(&der(AUTHORITY)), None);
    assert_eq!(list_url(&der(STRANGER)).as_deref(), Some("http://a.test/7.crl"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_no_list(bytes: Vec<u8>) {
        assert!(found(&bytes, AUTHORITY, NOW).is_err());
    }
}
