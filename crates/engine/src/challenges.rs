//! Pending challenges of `http-01` (RFC 8555, section 8.3), for all workers and configurations.
//!
//! Owns the table of tokens. A token that is not in it is a path like any other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Key authorizations by name and token. All clones share the table; only requests for paths of
/// challenges look into it.
#[derive(Clone, Debug, Default)]
pub struct HttpChallenges(Arc<Mutex<PendingTokens>>);

/// By name and token.
type PendingTokens = HashMap<(Vec<u8>, Vec<u8>), Bytes>;

impl HttpChallenges {
    /// From now on a request for `token` at `name` (a DNS name or an IP address) is answered with
    /// `content`.
    pub fn present(&self, name: &str, token: &str, content: &str) {
        let content = Bytes::copy_from_slice(content.as_bytes());
        self.table().insert(key(name.as_bytes(), token.as_bytes()), content);
    }

    /// The challenge is over.
    pub fn withdraw(&self, name: &str, token: &str) {
        self.table().remove(&key(name.as_bytes(), token.as_bytes()));
    }

    pub(crate) fn find(&self, host: &[u8], token: &[u8]) -> Option<Bytes> {
        self.table().get(&key(host, token)).cloned()
    }

    fn table(&self) -> MutexGuard<'_, PendingTokens> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An IPv6 address has brackets in `Host`.
fn key(host: &[u8], token: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let bare = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(host);
    (bare.to_ascii_lowercase(), token.to_vec())
}

#[cfg(test)]
mod tests {
    use super::HttpChallenges;

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
        all.withdraw("a.test", "t");
        assert_eq!(find("a.test", "t"), None);
    }
}
