//! The choice of certificates by server name. Names are compared in lower case, in the order of
//! nginx's `server_name`: exact, then the longest `*.suffix`, then the longest `prefix.*`, then
//! patterns, then the default.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{NamedGroup, SignatureScheme};

use crate::{ClientAuth, LoadedCertificate, TlsChallenges, offers};

/// Identifies one set of certificates of a [`ServerCerts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CertSet(u32);

/// Maps a name without another match to a set: the regular expressions of `server_name`.
type Patterns = dyn Fn(&str) -> Option<CertSet> + Send + Sync;

/// A line for the error log that says why a handshake has no certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertComplaint {
    /// The line.
    pub text: String,
    /// Whether clients can cause any number of such lines, and there was one a short while ago.
    pub is_repeated: bool,
}

impl From<String> for CertComplaint {
    fn from(text: String) -> Self {
        Self { text, is_repeated: false }
    }
}

/// Certificates, or why there are none.
pub(crate) type LoadResult = Result<Vec<LoadedCertificate>, CertComplaint>;

/// Finds the certificates of one server for the name in a ClientHello.
type Loader = dyn Fn(Option<&str>) -> LoadResult + Send + Sync;

/// What a session belongs to: a hash of a server's certificates and of the authorities that it
/// tells clients.
pub(crate) type SessionContext = [u8; 16];

/// The handshake settings of one server.
struct Set {
    certificates: Vec<LoadedCertificate>,
    loader: Option<Box<Loader>>,
    /// What names the certificates that are loaded during handshakes.
    words: Box<str>,
    client_auth: Option<Arc<ClientAuth>>,
    context: SessionContext,
}

impl Set {
    /// Brings the context up to date. Sessions of servers that ask for certificates and of those
    /// that do not are kept apart: they restore the chain of a client, or its absence. What a chain
    /// is worth is found again for each session.
    fn settle(&mut self) {
        let mut context = digest::Context::new(&digest::SHA256);
        let mut push = |bytes: &[u8]| {
            context.update(&(bytes.len() as u64).to_be_bytes());
            context.update(bytes);
        };
        self.certificates.iter().for_each(|certificate| push(certificate.leaf()));
        push(self.words.as_bytes());
        if let Some(auth) = &self.client_auth {
            push(b"asks");
            auth.hints().iter().for_each(|name| push(name.as_ref()));
        }
        self.context.copy_from_slice(&context.finish().as_ref()[..16]);
    }
}

/// All certificates behind one listening socket. Built once per configuration generation.
#[derive(Default)]
pub struct ServerCerts {
    sets: Vec<Set>,
    default: Option<CertSet>,
    exact: HashMap<Box<str>, CertSet>,
    suffix: HashMap<Box<str>, CertSet>,
    prefix: HashMap<Box<str>, CertSet>,
    patterns: Option<Box<Patterns>>,
    /// Whether to record the offers of clients.
    notes_offers: bool,
    /// Names that issuers validate by handshakes.
    challenges: Option<TlsChallenges>,
}

impl ServerCerts {
    /// No certificates: every handshake is refused until a default or a name is set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the certificates of one server block; a client gets the first whose key it can verify
    /// (so both an ECDSA and an RSA certificate may be listed). Without any, handshakes for this
    /// server are refused.
    pub fn add(&mut self, certificates: Vec<LoadedCertificate>) -> CertSet {
        let set = CertSet(u32::try_from(self.sets.len()).unwrap_or(u32::MAX));
        let (words, context) = (Box::default(), [0; 16]);
        let mut new = Set { certificates, loader: None, words, client_auth: None, context };
        new.settle();
        self.sets.push(new);
        set
    }

    /// Loads a server's certificates during each handshake. [`take_complaint`] returns the errors
    /// of `loader`. Servers with the same `words` resume each other's sessions.
    pub fn load(
        &mut self,
        set: CertSet,
        words: &str,
        loader: impl Fn(Option<&str>) -> LoadResult + Send + Sync + 'static,
    ) {
        if let Some(set) = self.sets.get_mut(set.0 as usize) {
            set.loader = Some(Box::new(loader));
            set.words = words.into();
            set.settle();
        }
    }

    /// Whether a server's certificates are loaded during handshakes.
    pub(crate) fn loads(&self) -> bool {
        self.sets.iter().any(|set| set.loader.is_some())
    }

    /// Records the offers of clients, for `$ssl_ciphers` and `$ssl_curves`.
    pub fn record_offers(&mut self) {
        self.notes_offers = true;
    }

    /// Answers handshakes of issuers, for which the options must offer
    /// [`crate::CHALLENGE_PROTOCOL`].
    pub fn prove_names(&mut self, challenges: TlsChallenges) {
        self.challenges = Some(challenges);
    }

    /// Requests certificates from the clients of a server.
    pub fn ask_clients(&mut self, set: CertSet, auth: Arc<ClientAuth>) {
        if let Some(set) = self.sets.get_mut(set.0 as usize) {
            set.client_auth = Some(auth);
            set.settle();
        }
    }

    /// The client authentication of a server, if it requests certificates.
    pub(crate) fn client_auth(&self, set: CertSet) -> Option<&Arc<ClientAuth>> {
        self.sets.get(set.0 as usize)?.client_auth.as_ref()
    }

    /// Whether any server requests client certificates.
    pub(crate) fn asks_clients(&self) -> bool {
        self.sets.iter().any(|set| set.client_auth.is_some())
    }

    /// The context of all servers, if they agree.
    pub(crate) fn common_context(&self) -> Option<SessionContext> {
        let context = self.sets.first().map(|set| set.context).unwrap_or_default();
        self.sets.iter().all(|set| set.context == context).then_some(context)
    }

    /// The context of the server of that name.
    pub(crate) fn context(&self, server_name: Option<&str>) -> SessionContext {
        let set = self.choose(server_name).and_then(|set| self.sets.get(set.0 as usize));
        set.map(|set| set.context).unwrap_or_default()
    }

    /// The set for clients without a server name or with an unknown one.
    pub fn set_default(&mut self, set: CertSet) {
        self.default = Some(set);
    }

    /// Maps `set` to a `server_name`: `a.example`, `*.example`, `.example` or `www.*`. The first
    /// set of a name keeps it, as in nginx the first server block does.
    pub fn name(&mut self, name: &str, set: CertSet) {
        let name = name.to_ascii_lowercase();
        if let Some(suffix) = name.strip_prefix("*.") {
            self.suffix.entry(suffix.into()).or_insert(set);
        } else if let Some(suffix) = name.strip_prefix('.') {
            self.suffix.entry(suffix.into()).or_insert(set);
            self.exact.entry(suffix.into()).or_insert(set);
        } else if let Some(prefix) = name.strip_suffix(".*") {
            self.prefix.entry(prefix.into()).or_insert(set);
        } else {
            self.exact.entry(name.into()).or_insert(set);
        }
    }

    /// Sets the matcher for names that no string matched.
    pub fn set_patterns(
        &mut self,
        patterns: impl Fn(&str) -> Option<CertSet> + Send + Sync + 'static,
    ) {
        self.patterns = Some(Box::new(patterns));
    }

    /// Whether no handshake can succeed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sets.iter().all(|set| set.certificates.is_empty() && set.loader.is_none())
    }

    /// The set for the name that a client sent.
    #[must_use]
    pub fn choose(&self, server_name: Option<&str>) -> Option<CertSet> {
        let Some(name) = server_name else { return self.default };
        let lower;
        let name = if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            lower = name.to_ascii_lowercase();
            lower.as_str()
        } else {
            name
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        if let Some(set) = self.exact.get(name) {
            return Some(*set);
        }
        let by_suffix = dots(name).find_map(|dot| self.suffix.get(&name[dot + 1..]));
        let by_prefix = || dots(name).rev().find_map(|dot| self.prefix.get(&name[..dot]));
        let by_pattern = || self.patterns.as_ref().and_then(|choose| choose(name));
        by_suffix.or_else(by_prefix).copied().or_else(by_pattern).or(self.default)
    }

    /// Whether all handshakes are rejected (`ssl_reject_handshake`).
    fn refuses(&self, set: CertSet) -> bool {
        let set = self.sets.get(set.0 as usize);
        set.is_none_or(|set| set.loader.is_none() && set.certificates.is_empty())
    }

    fn certified(&self, set: CertSet, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let set = self.sets.get(set.0 as usize)?;
        let Some(loader) = &set.loader else { return fitting(&set.certificates, hello) };
        match loader(hello.server_name()) {
            Ok(certificates) => fitting(&certificates, hello),
            Err(complaint) => {
                COMPLAINTS.with_borrow_mut(|all| {
                    // LIMIT: the complaints may never be taken.
                    all.truncate(COMPLAINTS_MAX - 1);
                    all.push(complaint);
                });
                None
            }
        }
    }
}

/// As OpenSSL, the certificate whose signatures the client prefers, however they are ordered.
fn fitting(
    certificates: &[LoadedCertificate],
    hello: &ClientHello<'_>,
) -> Option<Arc<CertifiedKey>> {
    let schemes = hello.signature_schemes();
    // Over TLS 1.2 the groups of a client are those of certificates, too (RFC 8422 §5.1).
    let has_tls13 = hello.cipher_suites().iter().any(|suite| u16::from(*suite) >> 8 == 0x13);
    let groups = hello.named_groups().filter(|_| !has_tls13);
    let rank = |cert: &LoadedCertificate| {
        schemes.iter().position(|scheme| {
            let is_known = |curve| groups.is_none_or(|groups| groups.contains(&curve));
            curve(*scheme).is_none_or(is_known) && cert.key().choose_scheme(&[*scheme]).is_some()
        })
    };
    let best = match certificates {
        [_] => None,
        several => {
            let ranked = several.iter().filter_map(|cert| Some((rank(cert)?, cert)));
            ranked.min_by_key(|(rank, _)| *rank).map(|(_, cert)| cert)
        }
    };
    // Without a suitable key the handshake fails anyway; the library then names the reason.
    best.or(certificates.first()).map(LoadedCertificate::certified)
}

/// The curve of the keys that sign by a scheme.
const fn curve(scheme: SignatureScheme) -> Option<NamedGroup> {
    match scheme {
        SignatureScheme::ECDSA_NISTP256_SHA256 => Some(NamedGroup::secp256r1),
        SignatureScheme::ECDSA_NISTP384_SHA384 => Some(NamedGroup::secp384r1),
        SignatureScheme::ECDSA_NISTP521_SHA512 => Some(NamedGroup::secp521r1),
        _ => None,
    }
}

fn dots(name: &str) -> impl DoubleEndedIterator<Item = usize> + '_ {
    name.bytes().enumerate().filter(|(_, byte)| *byte == b'.').map(|(at, _)| at)
}

/// The resolver's record of a hello.
#[derive(Default)]
pub(crate) struct CertificateQuery {
    pub(crate) name: Option<Box<str>>,
    set: Option<CertSet>,
    pub(crate) offers: Option<Box<Offers>>,
    /// Whether its server rejects all handshakes.
    pub(crate) is_refused: bool,
}

impl CertificateQuery {
    /// Before the first hello.
    const NONE: Self = Self { name: None, set: None, offers: None, is_refused: false };
}

/// The offer of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    pub(crate) ciphers: Box<str>,
    pub(crate) curves: Box<str>,
}

/// Complaints that one thread holds before they are taken.
const COMPLAINTS_MAX: usize = 16;

thread_local! {
    /// The hello of this thread's current library call: the unbuffered connection does not expose
    /// it, and the resolver runs inside that call, before client certificates are requested.
    static ASKED: RefCell<CertificateQuery> =
        const { RefCell::new(CertificateQuery::NONE) };
    static COMPLAINTS: RefCell<Vec<CertComplaint>> = const { RefCell::new(Vec::new()) };
}

/// Takes the server name that the resolver recorded on this thread since the last call.
pub(crate) fn take_server_name() -> Option<Box<str>> {
    take_asked().name
}

/// Takes the resolver's whole record.
pub(crate) fn take_asked() -> CertificateQuery {
    ASKED.take()
}

/// Takes, for the log, why a certificate could not be loaded on this thread; the oldest first.
#[must_use]
pub fn take_complaint() -> Option<CertComplaint> {
    COMPLAINTS.with_borrow_mut(|all| if all.is_empty() { None } else { Some(all.remove(0)) })
}

/// The set of the hello in progress; `None` before it arrived.
pub(crate) fn asked_set() -> Option<CertSet> {
    ASKED.with_borrow(|asked| asked.set)
}

impl ResolvesServerCert for ServerCerts {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let set = self.choose(hello.server_name());
        let offers = self.notes_offers.then(|| {
            let curves = hello.named_groups().unwrap_or_default();
            Box::new(Offers {
                ciphers: offers::ciphers(hello.cipher_suites().iter().map(|one| (*one).into())),
                curves: offers::curves(curves.iter().map(|one| (*one).into())),
            })
        });
        let is_refused = set.is_some_and(|set| self.refuses(set));
        ASKED.set(CertificateQuery {
            name: hello.server_name().map(Into::into),
            set,
            offers,
            is_refused,
        });
        if let Some(found) = self.challenges.as_ref().and_then(|all| all.answer(&hello)) {
            return found;
        }
        self.certified(set?, &hello)
    }
}

impl fmt::Debug for ServerCerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCerts")
            .field("sets", &self.sets.len())
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::ServerCerts;
    use crate::{LoadedCertificate, self_signed};

    #[test]
    fn names_are_chosen_as_nginx_chooses_servers() {
        let mut certs = ServerCerts::new();
        let sets: Vec<_> = (0..8).map(|_| certs.add(Vec::new())).collect();
        certs.set_default(sets[0]);
        certs.name("a.example", sets[1]);
        certs.name("*.example", sets[2]);
        certs.name("*.deep.example", sets[3]);
        certs.name(".dot.test", sets[4]);
        certs.name("www.*", sets[5]);
        certs.name("www.shop.*", sets[6]);
        certs.name("A.Example", sets[7]);
        let pattern = sets[7];
        certs.set_patterns(move |name| name.starts_with("re").then_some(pattern));
        let cases = [
            (None, 0),
            (Some("nobody.test"), 0),
            (Some("a.example"), 1),
            (Some("A.EXAMPLE"), 1),
            (Some("a.example."), 1),
            (Some("b.example"), 2),
            (Some("x.deep.example"), 3),
            (Some("deep.example"), 2),
            (Some("example"), 0),
            (Some("dot.test"), 4),
            (Some("x.dot.test"), 4),
            (Some("www.other.org"), 5),
            (Some("www.shop.org"), 6),
            (Some("www.b.example"), 2),
            (Some("regex.test"), 7),
            (Some(""), 0),
            (Some("."), 0),
        ];
        for (name, expected) in cases {
            assert_eq!(certs.choose(name), Some(sets[expected]), "{name:?}");
        }
    }

    #[test]
    fn a_session_belongs_to_certificates_or_to_the_words_for_them() {
        let made = || {
            let (chain, key) = self_signed(&["a.example"]).unwrap();
            LoadedCertificate::from_pem(chain.as_bytes(), key.as_bytes(), &[]).unwrap()
        };
        let (one, two) = (made(), made());
        let mut certs = ServerCerts::new();
        for (name, own) in [("one", vec![one.clone()]), ("two", vec![two.clone()])] {
            let set = certs.add(own);
            certs.name(name, set);
        }
        let set = certs.add(vec![one.clone()]);
        certs.name("like-one", set);
        let set = certs.add(vec![one, two]);
        certs.name("both", set);
        for (name, words) in [("a", "$a.crt"), ("like-a", "$a.crt"), ("b", "$b.crt")] {
            let set = certs.add(Vec::new());
            certs.load(set, words, |_| Ok(Vec::new()));
            certs.name(name, set);
        }
        let is_like = |one, other| certs.context(Some(one)) == certs.context(Some(other));
        assert!(is_like("one", "like-one") && is_like("a", "like-a"));
        let others = [("one", "two"), ("one", "both"), ("two", "both"), ("a", "b"), ("a", "one")];
        for (one, other) in others {
            assert!(!is_like(one, other), "{one} {other}");
        }
        assert_eq!(certs.common_context(), None);
    }
}
