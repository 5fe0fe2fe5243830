//! Pending challenges of `http-01` (RFC 8555, section 8.3), and the names that have certificates of
//! issuers, for all workers and configurations.
//!
//! Owns both tables. A request with an unknown token is processed like any other.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bolide_conf::model::IssuerChallenge;
use bytes::Bytes;

use crate::site::Site;

/// Key authorizations by name and token. All clones share the table; only requests for paths of
/// challenges look into it.
#[derive(Clone, Debug, Default)]
pub struct HttpChallenges(Arc<Mutex<PendingTokens>>);

/// By name and token: one entry for each order that presented it, newest last. An issuer may use
/// one validation for two orders, and each withdraws its own.
type PendingTokens = HashMap<(Vec<u8>, Vec<u8>), Vec<Bytes>>;

impl HttpChallenges {
    /// From now on a request for `token` at `name` (a DNS name or an IP address) is answered with
    /// `content`.
    pub fn present(&self, name: &str, token: &str, content: &str) {
        let content = Bytes::copy_from_slice(content.as_bytes());
        let key = key(name.as_bytes(), token.as_bytes());
        self.table().entry(key).or_default().push(content);
    }

    /// Removes the challenge of one order, which had the response `content`.
    pub fn withdraw(&self, name: &str, token: &str, content: &str) {
        let key = key(name.as_bytes(), token.as_bytes());
        let mut table = self.table();
        let Some(contents) = table.get_mut(&key) else { return };
        if let Some(own) = contents.iter().rposition(|other| *other == content.as_bytes()) {
            contents.remove(own);
        }
        if contents.is_empty() {
            table.remove(&key);
        }
    }

    pub(crate) fn find(&self, host: &[u8], token: &[u8]) -> Option<Bytes> {
        self.table().get(&key(host, token))?.last().cloned()
    }

    fn table(&self) -> MutexGuard<'_, PendingTokens> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names with an issued certificate: `auto_https` redirects only these to HTTPS. All clones share
/// the table; only requests that may be redirected read it.
#[derive(Clone, Debug, Default)]
pub struct CertifiedNames(Arc<RwLock<HashSet<Box<[u8]>>>>);

impl CertifiedNames {
    /// Adds names, in lower case.
    pub fn add<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.extend(names.map(|name| name.as_bytes().into()));
    }

    /// Replaces all names.
    pub fn replace<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let all = names.map(|name| name.as_bytes().into()).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Whether it contains the host of a request, in lower case and without a port.
    pub(crate) fn has(&self, host: &[u8]) -> bool {
        debug_assert!(!host.iter().any(u8::is_ascii_uppercase), "hosts are in lower case");
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // RFC 6125 §6.4.3: a wildcard stands for one label.
        let wildcard = || {
            let dot = host.iter().position(|byte| *byte == b'.')?;
            Some([&b"*"[..], &host[dot..]].concat().into_boxed_slice())
        };
        all.contains(host) || wildcard().is_some_and(|name| all.contains(&name))
    }
}

impl Site {
    /// Gives the site the challenges of the process and the certified names, if an issuer uses
    /// `http-01`.
    #[must_use]
    pub fn with_challenges(
        mut self,
        challenges: &HttpChallenges,
        certified: &CertifiedNames,
    ) -> Self {
        let Some(http) = self.http().filter(|http| !http.acme.issuers.is_empty()) else {
            return self;
        };
        let by_requests = http.acme.uses(&IssuerChallenge::Http);
        self.challenges = Some((challenges.clone(), certified.clone()));
        self.servers.iter_mut().for_each(|server| server.decides_early |= by_requests);
        self
    }

    /// The response to a challenge; none if no issuer validates this name and token now.
    pub(crate) fn proof(&self, host: &[u8], token: &[u8]) -> Option<Bytes> {
        self.challenges.as_ref()?.0.find(host, token)
    }

    /// Whether the host of a request has an issued certificate.
    pub(crate) fn is_certified(&self, host: &[u8]) -> bool {
        self.challenges.as_ref().is_some_and(|(_, certified)| certified.has(host))
    }
}

/// An IPv6 address has brackets in `Host`.
fn key(host: &[u8], token: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let bare = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(host);
    (bare.to_ascii_lowercase(), token.to_vec())
}

#[cfg(test)]
mod tests {
    use super::{CertifiedNames, HttpChallenges};

    #[test]
    fn a_name_is_certified_until_the_names_are_replaced() {
        let names = CertifiedNames::default();
        names.add(["a.test", "b.test"].into_iter());
        names.add(["c.test"].into_iter());
        assert!(names.has(b"a.test") && names.has(b"c.test") && !names.has(b"d.test"));
        names.replace(["d.test"].into_iter());
        assert!(names.has(b"d.test") && !names.has(b"a.test"));
    }

    #[test]
    fn a_challenge_is_known_by_its_name_and_token_until_it_is_withdrawn() {
        let all = HttpChallenges::default();
        all.present("A.test", "t", "t.key");
        all.present("::1", "u", "u.key");
        let find = |host: &str, token: &str| all.find(host.as_bytes(), token.as_bytes());
        assert_eq!(find("a.test", "t").as_deref(), Some(&b"t.key"[..]));
        assert_eq!(find("[::1]", "u").as_deref(), Some(&b"u.key"[..]));
        assert_eq!(
            (find("a.test", "u"), find("b.test", "t"), find("a.test", "T")),
            (None, None, None)
        );
        all.withdraw("a.test", "t", "t.key");
        assert_eq!(find("a.test", "t"), None);
    }

    #[test]
    fn each_order_withdraws_its_own() {
        let all = HttpChallenges::default();
        for content in ["t.one", "t.one", "t.two"] {
            all.present("a.test", "t", content);
        }
        let find = || all.find(b"a.test", b"t");
        for (withdrawn, left) in [
            ("t.other", Some("t.two")),
            ("t.two", Some("t.one")),
            ("t.one", Some("t.one")),
            ("t.one", None),
        ] {
            all.withdraw("a.test", "t", withdrawn);
            assert_eq!(find().as_deref(), left.map(str::as_bytes), "{withdrawn}");
        }
        assert!(all.table().is_empty());
    }
}
