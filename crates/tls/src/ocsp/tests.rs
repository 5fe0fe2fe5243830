//! Owns: only responses signed by the issuer, or by a responder that it authorises, are good, and
//! when.

use pem::parse;
use proptest::prelude::proptest;

use super::{CertStatus, OcspFault, OcspQuestion, responder};
use crate::{LoadedCertificate, Revocation};

// Made by the `openssl` program; `STRANGER` is signed by a sibling of the certificate that may not
// answer, `OUTSIDER` by a key unrelated to the issuer.
/// When the responses were made.
const NOW: u64 = 1795287334;
const ISSUER: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBcjCCARmgAwIBAgIUXRsYfi2ol9Kmz5EEh/OwQfKxcBswCgYIKoZIzj0EAwIw\n\
DzENMAsGA1UEAwwEcm9vdDAeFw0yNjExMjExODU1MzNaFw0zNjExMTgxODU1MzNa\n\
MA8xDTALBgNVBAMMBHJvb3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASZuv6h\n\
5IOTSs/20c4zPi9HTXu6+K4FRA4VDRE1TyCw/haUhfp232BqzfUHlS1PNXuDGJKm\n\
yuLmtiwv4PDp7sGUo1MwUTAdBgNVHQ4EFgQU+jViWwik52oQSv30mISJqqPz7NQw\n\
HwYDVR0jBBgwFoAU+jViWwik52oQSv30mISJqqPz7NQwDwYDVR0TAQH/BAUwAwEB\n\
/zAKBggqhkjOPQQDAgNHADBEAiBQNeUWbXeem5I1QyHVkf7M5r00xxjAzqkFvf71\n\
tcEY9AIgDVYOB6nkKuuA7y4J1+OKETuuWNimDrrxImrFdQpmSLY=\n\
-----END CERTIFICATE-----\n";
const LEAF: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBkTCCATegAwIBAgIBATAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARyb290MB4X\n\
DTI2MTEyMTE4NTUzM1oXDTM2MTExODE4NTUzM1owDDEKMAgGA1UEAwwBYTBZMBMG\n\
ByqGSM49AgEGCCqGSM49AwEHA0IABM/RkbPN0WdCgcBUMTJKOIrqS2GS5q3kQ6jo\n\
7QUfsjd+CSUR1taWsHuk+AwqsdEyKXcQ9oZX7ZZCpuaC0lQlC0ejgYYwgYMwDAYD\n\
VR0RBAUwA4IBYTAzBggrBgEFBQcBAQQnMCUwIwYIKwYBBQUHMAGGF2h0dHA6Ly8x\n\
MjcuMC4wLjE6MTk0ODAvMB0GA1UdDgQWBBQBNt3y+9BI8ACzKpSkCliD5DYsxjAf\n\
BgNVHSMEGDAWgBT6NWJbCKTnahBK/fSYhImqo/Ps1DAKBggqhkjOPQQDAgNIADBF\n\
AiEAtwYdT37A/S6gO4kaUqTiI6kAAHw/zSrKXw1so4dNe3ACIE90OtCu7PDb5b6g\n\
6QfrOOQhYNcf/Ch0kkM7gE/2a32N\n\
-----END CERTIFICATE-----\n";
const GONE: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBlzCCAT2gAwIBAgIBBDAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARyb290MB4X\n\
DTI2MTEyMTE4NTUzNFoXDTM2MTExODE4NTUzNFowDzENMAsGA1UEAwwEZ29uZTBZ\n\
MBMGByqGSM49AgEGCCqGSM49AwEHA0IABOwZF+++2dSr5l4n6kXFw4e/XDgMo9/1\n\
844niOMHOxzoO5AOXPsIm1B5BleU0Miij/4Bpgi5O/6//IUZZ91ra+OjgYkwgYYw\n\
DwYDVR0RBAgwBoIEZ29uZTAzBggrBgEFBQcBAQQnMCUwIwYIKwYBBQUHMAGGF2h0\n\
dHA6Ly8xMjcuMC4wLjE6MTk0ODAvMB0GA1UdDgQWBBRMAXxjieJmrOw+0yVCUmzo\n\
QOFgmTAfBgNVHSMEGDAWgBT6NWJbCKTnahBK/fSYhImqo/Ps1DAKBggqhkjOPQQD\n\
AgNIADBFAiEA32s85ltXLAp1kttaHcmnomvN5vQ9Sq/eJ30W/o/kRCoCIHnd96ss\n\
uvZEQMm670xfoazOkteReLp3BdZwS0C7dN56\n\
-----END CERTIFICATE-----\n";
const LEAF_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgR8xuccUnEjjjAwSn\n\
gH2CWZ1MEkr6oVn2SomXYm8s4dChRANCAATP0ZGzzdFnQoHAVDEySjiK6kthkuat\n\
5EOo6O0FH7I3fgklEdbWlrB7pPgMKrHRMil3EPaGV+2WQqbmgtJUJQtH\n\
-----END PRIVATE KEY-----\n\
";
const GONE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg2GuGgzXNZX15kK5B\n\
RFkzyxMIGp035ZU85t8rWW8l6F2hRANCAATsGRfvvtnUq+ZeJ+pFxcOHv1w4DKPf\n\
9fOOJ4jjBzsc6DuQDlz7CJtQeQZXlNDIoo/+AaYIuTv+v/yFGWfda2vj\n\
-----END PRIVATE KEY-----\n\
";
const DIRECT: &str = "-----BEGIN ANSWER-----\n\
MIICgAoBAKCCAnkwggJ1BgkrBgEFBQcwAQEEggJmMIICYjCBiqERMA8xDTALBgNV\n\
BAMMBHJvb3QYDzIwMjYxMTIxMTg1NTM0WjBkMGIwOjAJBgUrDgMCGgUABBRpKgzg\n\
ZFJdBFSdfoBcz5jrrTm9LwQU+jViWwik52oQSv30mISJqqPz7NQCAQGAABgPMjAy\n\
NjExMjExODU1MzRaoBEYDzIwMjYxMTI0MTg1NTM0WjAKBggqhkjOPQQDAgNJADBG\n\
AiEA8PcJeGRBt+h3EtYWnTgYAJQbfsFXOF17tpDbmG7ECqMCIQCoyadRdxoglDAU\n\
lx1snZYixvZlETzGGLRhjOgwK30rfqCCAXowggF2MIIBcjCCARmgAwIBAgIUXRsY\n\
fi2ol9Kmz5EEh/OwQfKxcBswCgYIKoZIzj0EAwIwDzENMAsGA1UEAwwEcm9vdDAe\n\
Fw0yNjExMjExODU1MzNaFw0zNjExMTgxODU1MzNaMA8xDTALBgNVBAMMBHJvb3Qw\n\
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASZuv6h5IOTSs/20c4zPi9HTXu6+K4F\n\
RA4VDRE1TyCw/haUhfp232BqzfUHlS1PNXuDGJKmyuLmtiwv4PDp7sGUo1MwUTAd\n\
BgNVHQ4EFgQU+jViWwik52oQSv30mISJqqPz7NQwHwYDVR0jBBgwFoAU+jViWwik\n\
52oQSv30mISJqqPz7NQwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBE\n\
AiBQNeUWbXeem5I1QyHVkf7M5r00xxjAzqkFvf71tcEY9AIgDVYOB6nkKuuA7y4J\n\
1+OKETuuWNimDrrxImrFdQpmSLY=\n\
-----END ANSWER-----\n";
const DELEGATE: &str = "-----BEGIN ANSWER-----\n\
MIICdAoBAKCCAm0wggJpBgkrBgEFBQcwAQEEggJaMIICVjCBjKETMBExDzANBgNV\n\
BAMMBnNpZ25lchgPMjAyNjExMjExODU1MzRaMGQwYjA6MAkGBSsOAwIaBQAEFGkq\n\
DOBkUl0EVJ1+gFzPmOutOb0vBBT6NWJbCKTnahBK/fSYhImqo/Ps1AIBAYAAGA8y\n\
MDI2MTEyMTE4NTUzNFqgERgPMjAyNjExMjQxODU1MzRaMAoGCCqGSM49BAMCA0gA\n\
MEUCIQDU0JvWo1TtI2zOZ9GMyXk2YrlIkboYtf31IJTDjcTieAIgQSlKrGCEK8Aj\n\
inYLtqJaZnM7g7Xt5HeXm/iutP7cgh6gggFtMIIBaTCCAWUwggEMoAMCAQICAQYw\n\
CgYIKoZIzj0EAwIwDzENMAsGA1UEAwwEcm9vdDAeFw0yNjExMjExODU1MzRaFw0z\n\
NjExMTgxODU1MzRaMBExDzANBgNVBAMMBnNpZ25lcjBZMBMGByqGSM49AgEGCCqG\n\
SM49AwEHA0IABJJ0dr4hvdZqIaqTlevDgbTDt+LyXwTg4xGoGmxrMEr0ynb7vVUl\n\
goaUVYjx9lajHdRQVbiaE7ZHhZt0bAo/FmCjVzBVMBMGA1UdJQQMMAoGCCsGAQUF\n\
BwMJMB0GA1UdDgQWBBRFb82ymIODJgqJfOWscDMHq1iI+TAfBgNVHSMEGDAWgBT6\n\
NWJbCKTnahBK/fSYhImqo/Ps1DAKBggqhkjOPQQDAgNHADBEAiBguBvJ9B9y2itP\n\
M2VPTSecgiVNN2M0FFK1IKtS97wvSAIgdzkW2RkA+PzH0pbtQyYBeUnH2exEoNtt\n\
c3ZWjAv9s5s=\n\
-----END ANSWER-----\n";
const REVOKED: &str = "-----BEGIN ANSWER-----\n\
MIIChAoBAKCCAn0wggJ5BgkrBgEFBQcwAQEEggJqMIICZjCBnaETMBExDzANBgNV\n\
BAMMBnNpZ25lchgPMjAyNjExMjExODU1MzRaMHUwczA6MAkGBSsOAwIaBQAEFGkq\n\
DOBkUl0EVJ1+gFzPmOutOb0vBBT6NWJbCKTnahBK/fSYhImqo/Ps1AIBBKERGA8y\n\
MDI2MTEyMTE4NTUzNFoYDzIwMjYxMTIxMTg1NTM0WqARGA8yMDI2MTEyNDE4NTUz\n\
NFowCgYIKoZIzj0EAwIDRwAwRAIgCOTqOIyVmjefBw9xA7NT5/kGFvtLyfTMnzZ5\n\
rY3+t9UCIHd5Eev2uznXyqktE/Q1i03ENtD5KZ6X09qIIYBItij1oIIBbTCCAWkw\n\
ggFlMIIBDKADAgECAgEGMAoGCCqGSM49BAMCMA8xDTALBgNVBAMMBHJvb3QwHhcN\n\
MjYxMTIxMTg1NTM0WhcNMzYxMTE4MTg1NTM0WjARMQ8wDQYDVQQDDAZzaWduZXIw\n\
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASSdHa+Ib3WaiGqk5Xrw4G0w7fi8l8E\n\
4OMRqBpsazBK9Mp2+71VJYKGlFWI8fZWox3UUFW4mhO2R4WbdGwKPxZgo1cwVTAT\n\
BgNVHSUEDDAKBggrBgEFBQcDCTAdBgNVHQ4EFgQURW/NspiDgyYKiXzlrHAzB6tY\n\
iPkwHwYDVR0jBBgwFoAU+jViWwik52oQSv30mISJqqPz7NQwCgYIKoZIzj0EAwID\n\
RwAwRAIgYLgbyfQfctorTzNlT00nnIIlTTdjNBRStSCrUve8L0gCIHc5FtkZAPj8\n\
x9KW7UMmAXlJx9nsRKDbbXN2VowL/bOb\n\
-----END ANSWER-----\n";
const STRANGER: &str = "-----BEGIN ANSWER-----\n\
MIICbwoBAKCCAmgwggJkBgkrBgEFBQcwAQEEggJVMIICUTCBi6ESMBAxDjAMBgNV\n\
BAMMBXBsYWluGA8yMDI2MTEyMTE4NTUzNFowZDBiMDowCQYFKw4DAhoFAAQUaSoM\n\
4GRSXQRUnX6AXM+Y6605vS8EFPo1YlsIpOdqEEr99JiEiaqj8+zUAgEBgAAYDzIw\n\
MjYxMTIxMTg1NTM0WqARGA8yMDI2MTEyNDE4NTUzNFowCgYIKoZIzj0EAwIDSAAw\n\
RQIgBQMdSdlKPFjpEVTGlr178K/bCvit+H7KB8mpNqVkVK0CIQCatvNySFa9rPvX\n\
BnPt9WKn5dSrUxtp7K8JlODXQd5qMKCCAWkwggFlMIIBYTCCAQigAwIBAgIBAjAK\n\
BggqhkjOPQQDAjAPMQ0wCwYDVQQDDARyb290MB4XDTI2MTEyMTE4NTUzM1oXDTM2\n\
MTExODE4NTUzM1owEDEOMAwGA1UEAwwFcGxhaW4wWTATBgcqhkjOPQIBBggqhkjO\n\
PQMBBwNCAAQT++/4UyuGvxh1QYZ8pDb+oQ98uTEyguB5A1zupFTvMoD23qKtOK5G\n\
6KyNeO8CB7gQ21lNZA0+1cdQ3UzU1gXuo1QwUjAQBgNVHREECTAHggVwbGFpbjAd\n\
BgNVHQ4EFgQU1zMqxP4XX3GDek9VzqlMoJy9t0cwHwYDVR0jBBgwFoAU+jViWwik\n\
52oQSv30mISJqqPz7NQwCgYIKoZIzj0EAwIDRwAwRAIgZLjPhxe9FzAVzfG8AtRI\n\
+4rvULE+JS11HqJu0IG9OZQCIACeS5+rH/8KG7vi5zsQEua1gwUj3iAc/UNFPKLM\n\
iMQi\n\
-----END ANSWER-----\n";
const OUTSIDER: &str = "-----BEGIN ANSWER-----\n\
MIICpQoBAKCCAp4wggKaBgkrBgEFBQcwAQEEggKLMIIChzCBj6EWMBQxEjAQBgNV\n\
BAMMCWxvY2FsaG9zdBgPMjAyNjExMjExODU1MzRaMGQwYjA6MAkGBSsOAwIaBQAE\n\
FGkqDOBkUl0EVJ1+gFzPmOutOb0vBBT6NWJbCKTnahBK/fSYhImqo/Ps1AIBAYAA\n\
GA8yMDI2MTEyMTE4NTUzNFqgERgPMjAyNjExMjQxODU1MzRaMAoGCCqGSM49BAMC\n\
A0cAMEQCIHl2a1aD13/HdO16r22yO4JpQHL0MlJWTxGxSVYOEknlAiBiTsIKZXq/\n\
wW0IbX+eV8LE8kTvAaAr1UIbc7AzjFo9i6CCAZwwggGYMIIBlDCCATmgAwIBAgIU\n\
R2Ol/izzLGgetqYBzyAixqdFLk0wCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJbG9j\n\
YWxob3N0MB4XDTI2MTEyMTE4MTIyMVoXDTI2MTIyMTE4MTIyMVowFDESMBAGA1UE\n\
AwwJbG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQVTQGLdyIFZ5\n\
o1O0ufqw6qAbQtXUNOGGBLELRJdhkgKVmXhJ2ddG7Et9sEL3gv0OSCBvqOZIgmtd\n\
hLWO0BjjUKNpMGcwHQYDVR0OBBYEFIMJekTGZUblX2UabagR2E9g+qfUMB8GA1Ud\n\
IwQYMBaAFIMJekTGZUblX2UabagR2E9g+qfUMA8GA1UdEwEB/wQFMAMBAf8wFAYD\n\
VR0RBA0wC4IJbG9jYWxob3N0MAoGCCqGSM49BAMCA0kAMEYCIQCFbKPjRTP8cHes\n\
SZnovfL42Nq7W/1u3d7huEP/u3V4BAIhAMVwMMb09O5atWL4b3B775nsnc4porEq\n\
p+flOT6aLkeG\n\
-----END ANSWER-----\n";

fn der(text: &str) -> Vec<u8> {
    parse(text).unwrap().into_contents()
}

fn certificate(leaf: &str, key: &str, more: &str) -> LoadedCertificate {
    LoadedCertificate::from_pem(format!("{leaf}{more}").as_bytes(), key.as_bytes(), &[]).unwrap()
}

fn question() -> OcspQuestion {
    OcspQuestion::new(&certificate(LEAF, LEAF_KEY, ISSUER), &[], false).unwrap()
}

#[test]
fn answers_of_the_issuer_and_of_its_delegate_are_good() {
    for answer in [DIRECT, DELEGATE] {
        let until = question().judge(&der(answer), NOW).unwrap().unwrap();
        assert!((NOW + 3 * 86_400 - 60..=NOW + 3 * 86_400).contains(&until), "{until}");
    }
}

#[test]
fn no_other_key_may_answer() {
    for answer in [STRANGER, OUTSIDER] {
        assert_eq!(question().judge(&der(answer), NOW), Err(OcspFault::Unsigned));
    }
}

#[test]
fn what_an_answer_says_counts() {
    assert_eq!(question().judge(&der(REVOKED), NOW), Err(OcspFault::NotFound));
    let gone = OcspQuestion::new(&certificate(GONE, GONE_KEY, ISSUER), &[], false).unwrap();
    assert_eq!(gone.judge(&der(REVOKED), NOW), Err(OcspFault::Revoked));
    let (status, until) = gone.status(&der(REVOKED), NOW).unwrap();
    let revocation = Revocation { at: Some(NOW), reason: None };
    assert_eq!((status, until), (CertStatus::Revoked(revocation), Some(NOW + 3 * 86_400)));
    let (status, _) = question().status(&der(DIRECT), NOW).unwrap();
    assert_eq!(status, CertStatus::Good);
    let refused = [0x30, 3, 0x0a, 1, 6];
    assert_eq!(question().judge(&refused, NOW), Err(OcspFault::Unsuccessful(6)));
}

#[test]
fn an_answer_holds_for_its_time() {
    let judge = |now| question().judge(&der(DIRECT), now);
    assert!(judge(NOW + 3 * 86_400).is_ok());
    assert_eq!(judge(NOW + 3 * 86_400 + 400), Err(OcspFault::Untimely));
    assert!(judge(NOW - 200).is_ok());
    assert_eq!(judge(NOW - 400), Err(OcspFault::Untimely));
}

#[test]
fn a_changed_response_is_invalid() {
    let good = der(DIRECT);
    // The certificates after the signature are not needed here.
    for at in 0..good.len() {
        assert!(question().judge(&good[..at], NOW).is_err(), "{at}");
        if at > 150 {
            continue;
        }
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert!(question().judge(&changed, NOW).is_err(), "{at}");
    }
}

#[test]
fn the_issuer_is_found_in_the_chain_or_among_the_trusted() {
    let alone = certificate(LEAF, LEAF_KEY, "");
    assert_eq!(OcspQuestion::new(&alone, &[], false), None);
    assert_eq!(OcspQuestion::new(&alone, &[der(GONE)], false), None);
    let told = OcspQuestion::new(&alone, &[der(ISSUER)], false).unwrap();
    assert_eq!(told.request(), question().request());
    // Only a trusted certificate makes a root.
    let in_chain = certificate(LEAF, LEAF_KEY, ISSUER);
    let verified = |trusted: &[Vec<u8>]| {
        OcspQuestion::new(&in_chain, trusted, true).unwrap().judge(&der(DIRECT), NOW)
    };
    assert_eq!(verified(&[]), Err(OcspFault::Untrusted));
    assert!(verified(&[der(ISSUER)]).is_ok());
    assert_eq!(responder(alone.leaf()).as_deref(), Some("http://127.0.0.1:19480/"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_no_answer(bytes: Vec<u8>) {
        assert!(question().judge(&bytes, NOW).is_err());
    }
}
