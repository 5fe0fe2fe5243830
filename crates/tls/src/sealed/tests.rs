//! Owns: keys encrypted by the `openssl` program open with their pass phrase, and with no other.

use aws_lc_rs::digest;
use pem::parse_many;
use proptest::prelude::proptest;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;

use super::{SealState, UnsealError, hex, open, open_pkcs8};

/// One key for P-256, encrypted by the `openssl` program with the pass phrase `secret`.
const PKCS8_AES256: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjCKpMB9g/MGAICCAAw\n\
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEJM126UQ078+IC7NkKbX/WkEgZBr\n\
LLC1xJI9pVIQVfb/4u5aZLgSZUiQbMhWVkuicLQXdMqqd/T9hDNh0LsRXmqWZYq9\n\
cAOi3h/lwFGvDQyTvSZP5xCQ7dO67wAoxajb8qgkSd8TqhVUEu5d0bRrtaFv2yxd\n\
sLucWr/gY13egjvUDe2TMmj5alYPjrg7Yf6+uCe+V0/TPR6VMEoT07dMNP8U3lY=\n\
-----END ENCRYPTED PRIVATE KEY-----\n";
const PKCS8_AES128_SHA1: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIHeMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAicPhg9cV/5wwICCAAw\n\
HQYJYIZIAWUDBAECBBDOpoKlGDZcSVG9S5F6LJX/BIGQfuAcJj/kkEE5ojrG+ErC\n\
B8zNkQJaQn5IpaD8Xz7guCy8/eBn+YoTzdqYKUCbBqWOFPwxZNqoB8jmgLCdcAE5\n\
GMoFU1eiSLqHZqUajAIjyMuUxr4yK+LELWOtLQq4Rs1zX5WsuSQLlT8HKN1u+Tf5\n\
AxNAtG/NeEDiuci+dG9JrOShM/e5QkjqScrPHNNaUoyQ\n\
-----END ENCRYPTED PRIVATE KEY-----\n";
const PKCS8_AES192_SHA512: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjE6W4dGM6zvAICCAAw\n\
DAYIKoZIhvcNAgsFADAdBglghkgBZQMEARYEEHorO2UDgwC2tfH2qhxs6nkEgZBH\n\
Un7zhADSJ7ktfyHbHqzCEQAg7ZbqtVetst+N9jG9r+sLgGhCu5yfHZkRbZUiT0cK\n\
Hrd1lM+CRJNutAGsTrw62ZBY1kc5cqhNUYZ2oXrW4mIR1nv2le+0+FNeF2j24h+6\n\
2qV5Wm0dpouqr2zyVms4vyXVZbxYofVpN0qp8125LpZaRPkTL7D+Qcx5dfh87N4=\n\
-----END ENCRYPTED PRIVATE KEY-----\n";
const PKCS8_DES3: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIHjME4GCSqGSIb3DQEFDTBBMCkGCSqGSIb3DQEFDDAcBAjjEgGLudLqUQICCAAw\n\
DAYIKoZIhvcNAgkFADAUBggqhkiG9w0DBwQINZ7zzVA5SlkEgZAKddPuj6AJFx7J\n\
X5T7nH3mpQUoWchWNmzuTzcHPM4DqGvVFCWijgM4Q3GORvcjP+Q+PYN6AP4oRUrG\n\
oRydgn7PShC7lG4pYz5C2X8lHhKDqRRf4cfv2eO+qI5QamZZI1q/xS3+8pEkP/2C\n\
6oFaL0Vl3W6NN0CNgQm8MJc3U1Y7l9XmNJSNyLk7AGzs9srOLWE=\n\
-----END ENCRYPTED PRIVATE KEY-----\n";
const PKCS8_SCRYPT: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIHkME8GCSqGSIb3DQEFDTBCMCEGCSsGAQQB2kcECzAUBAhTvVl+AJN4LAICQAAC\n\
AQgCAQEwHQYJYIZIAWUDBAEqBBASUrgFYJEG3pwhLR9zVbwQBIGQeZZ/o5jPLJD6\n\
scAjpXCx5gGhA5lQ9j4ilj/FuTIsWZ1wKqu88XMNlTizuCp275FZ1NrCLKbPLpza\n\
hvCH/5Ji+41iJO2AEUKEeB/gIQzJua7T3lMT/gAR0dsRM9rBdqbbbutdpP1lfrRV\n\
eU2v00artdDatGuwDWV/8eiD7PS+gyMVFRgwqKwLwmqimp35hoGH\n\
-----END ENCRYPTED PRIVATE KEY-----\n";
const HEADERS_AES128: &str = "\
-----BEGIN EC PRIVATE KEY-----\n\
Proc-Type: 4,ENCRYPTED\n\
DEK-Info: AES-128-CBC,6BEE4EDB547A8A2609520876A61203EC\n\
\n\
Xt93Rvzo5jpTfpNrDy3/P/7tbefbc7NGJRBkiGFJB5j3O/hQRdcIVFOu8FV0OxRX\n\
4dEYDs1HrxhwWnEnZLlcIs9NhQBZqkazyGh8Vf8mrd/iLx86dU/VieXVs1po8RZh\n\
UG9jTjMvgwyVOZYmThtpPZdlMnqUkk9yQ19dgCgFDgQ=\n\
-----END EC PRIVATE KEY-----\n";
const HEADERS_AES256: &str = "\
-----BEGIN EC PRIVATE KEY-----\n\
Proc-Type: 4,ENCRYPTED\n\
DEK-Info: AES-256-CBC,54A55CBE77BAE409A8615944B11F583F\n\
\n\
wHGOKRl+5Ei0rvVHjWVk7L/r9Hg5XmNmo6K9j4FTANjPzQzsXdfnytWx30kXyd8U\n\
thi9Tg9SlHwFn4bYr5LX7JPVA3oK533fxN5J/4W0MbK8zbEuiahkFqFcNrywy2lY\n\
FJffj6lKRz8Ht9Kqo3iw+ACPDv4zZC9DafWxM5Q9ITE=\n\
-----END EC PRIVATE KEY-----\n";
const HEADERS_DES3: &str = "\
-----BEGIN EC PRIVATE KEY-----\n\
Proc-Type: 4,ENCRYPTED\n\
DEK-Info: DES-EDE3-CBC,390542D6DAED44AF\n\
\n\
N2yeJPhHssxGEl0yLtjNOk/+eTKMdnB/4n/WZM5AeRkrvSxjA69oi+dwUFAxG4q+\n\
otpiMwpmcuKZqGu8k4/f0E5yc9ZBwCKJfzslsr94zfudmNyAl6XEQ8S44bmAV+tJ\n\
1FQQ4noQn6Sk6spYKnR67xcgiv/Q/f6rP4EFtkPTeZQ=\n\
-----END EC PRIVATE KEY-----\n";

/// All supported schemes.
const ALL: [(&str, SealState); 7] = [
    (PKCS8_AES256, SealState::Pkcs8),
    (PKCS8_AES128_SHA1, SealState::Pkcs8),
    (PKCS8_AES192_SHA512, SealState::Pkcs8),
    (PKCS8_DES3, SealState::Pkcs8),
    (HEADERS_AES128, SealState::Headers),
    (HEADERS_AES256, SealState::Headers),
    (HEADERS_DES3, SealState::Headers),
];

fn words(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn each_form_opens_with_the_word_that_fits_whichever_it_is() {
    let mut keys = Vec::new();
    for (text, _) in ALL {
        let sections = parse_many(text).unwrap();
        let key = open(&sections, &words(&["wrong", "secret", "late"])).unwrap().unwrap();
        let key = any_supported_type(&key).unwrap();
        let public = key.public_key().unwrap();
        keys.push(digest::digest(&digest::SHA256, &public).as_ref().to_vec());
    }
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[test]
fn without_the_word_they_stay_shut() {
    for (text, seal) in ALL {
        let sections = parse_many(text).unwrap();
        for passwords in [words(&[]), words(&["wrong"]), words(&["", "Secret"])] {
            assert_eq!(open(&sections, &passwords), Some(Err(UnsealError::Password(seal))));
        }
    }
}

#[test]
fn what_is_not_known_is_named() {
    let sections = parse_many(PKCS8_SCRYPT).unwrap();
    let Some(Err(UnsealError::Unknown(text))) = open(&sections, &words(&["secret"])) else {
        panic!()
    };
    assert_eq!(text, "unsupported derivation of an encrypted key");
    let other = HEADERS_AES128.replace("AES-128-CBC", "IDEA-CBC");
    let sections = parse_many(other).unwrap();
    let Some(Err(UnsealError::Unknown(text))) = open(&sections, &words(&["secret"])) else {
        panic!()
    };
    assert_eq!(text, "unsupported cipher \"IDEA-CBC\" of an encrypted key");
}

#[test]
fn a_key_without_a_seal_is_left_to_others() {
    let plain = crate::self_signed(&["a.example"]).unwrap().1;
    assert_eq!(open(&parse_many(plain).unwrap(), &[]), None);
    assert_eq!(hex("0aF0"), Some(vec![0x0a, 0xf0]));
    assert_eq!((hex("0aF"), hex("0g")), (None, None));
}

proptest! {
    #[test]
    fn arbitrary_bytes_open_nothing(bytes: Vec<u8>) {
        assert!(open_pkcs8(&bytes, &[]).is_err());
    }
}
