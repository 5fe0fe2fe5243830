//! Access to the console, decided for each request, here alone.
//!
//! Access rules and passwords were checked before. Easiest to break: a page of another site must
//! get no access, neither with the visitor's rights (CSRF) nor by a name of its own that resolves
//! to this server (DNS rebinding).

use std::net::IpAddr;

use bolide_conf::model::{ConsoleGuard, ServerName};
use bolide_http::{FieldMap, Name};

/// The field with the secret that the page got from the server.
pub(crate) const TOKEN_FIELD: &[u8] = b"Bolide-Console";

/// A client, and how it connected.
#[derive(Debug)]
pub(crate) struct ConsoleVisitor<'a> {
    /// The guard that the location requires.
    pub(crate) guard: ConsoleGuard,
    /// The address of the client; none over a unix socket.
    pub(crate) ip: Option<IpAddr>,
    /// Whether the connection itself comes from this machine, without a PROXY protocol header, by
    /// HTTP/1.1 or newer: proxies still speak HTTP/1.0.
    pub(crate) is_direct: bool,
    /// The requested host, in lower case and without port.
    pub(crate) host: &'a [u8],
    /// The names of the server.
    pub(crate) names: &'a [ServerName],
    /// The fields of the request.
    pub(crate) fields: &'a FieldMap,
}

/// The rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleRights {
    /// To see and act.
    Act,
    /// To see.
    See,
    /// None, for this reason.
    None(&'static str),
}

impl ConsoleVisitor<'_> {
    /// The rights of this client.
    pub(crate) fn rights(&self) -> ConsoleRights {
        if !is_own_name(self.host, self.names) {
            return ConsoleRights::None("its Host is neither an address nor a name of the server");
        }
        debug_assert!(!self.host.is_empty(), "no name is ours if there is none");
        match self.guard {
            ConsoleGuard::Identity => ConsoleRights::Act,
            ConsoleGuard::Loopback | ConsoleGuard::Addresses if self.is_of_this_machine() => {
                ConsoleRights::Act
            }
            ConsoleGuard::Addresses => ConsoleRights::See,
            ConsoleGuard::Loopback => {
                ConsoleRights::None("without access rules only clients of this machine may see it")
            }
            // The reader refuses such a configuration.
            ConsoleGuard::Open => ConsoleRights::None("the location lets in every client"),
        }
    }

    /// Whether the client itself is on this machine: a request that another server forwards may
    /// come from anywhere.
    fn is_of_this_machine(&self) -> bool {
        self.is_direct
            && self.ip.is_some_and(|ip| ip.to_canonical().is_loopback())
            && !bolide_http::forwarded_by::is_forwarded(self.fields)
    }

    /// Why a `POST` of this client is not carried out, if the page itself did not send it.
    /// `authority` is the server's name in the client's request, `token` the secret.
    pub(crate) fn forgery(&self, authority: &[u8], token: &[u8]) -> Option<&'static str> {
        let fields = self.fields;
        let media = fields.get(Name::ContentType).unwrap_or_default();
        let media = media.split(|byte| *byte == b';').next().unwrap_or_default();
        if !media.trim_ascii().eq_ignore_ascii_case(b"application/json") {
            return Some("an action needs \"Content-Type: application/json\"");
        }
        let is_same_origin = match fields.get_text(b"Sec-Fetch-Site") {
            Some(site) => site == b"same-origin",
            None => fields.get(Name::Origin).is_some_and(|origin| is_origin_of(origin, authority)),
        };
        if !is_same_origin {
            return Some("an action must come from the page itself");
        }
        if !is_equal(fields.get_text(TOKEN_FIELD).unwrap_or_default(), token) {
            return Some("the page is of a server that has ended: load it again");
        }
        None
    }
}

/// Whether host and port of an origin (RFC 6454 §6.2) equal `authority`.
fn is_origin_of(origin: &[u8], authority: &[u8]) -> bool {
    let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    host.is_some_and(|host| !host.is_empty() && host.eq_ignore_ascii_case(authority))
}

/// Compares in constant time.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && !other.is_empty() && differs == 0
}

/// Whether a browser that asks by this name means a server with these names. A site whose own name
/// resolves to this address (DNS rebinding) gets no access, because its name is neither an address
/// nor a name of this server.
pub(crate) fn is_own_name(host: &[u8], names: &[ServerName]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if inner.unwrap_or(host).parse::<IpAddr>().is_ok() {
        return true;
    }
    host == "localhost"
        || host.ends_with(".localhost")
        || names.iter().any(|name| {
            match name {
                ServerName::Exact(name) => !name.is_empty() && **name == *host,
                ServerName::Suffix(suffix) => host.ends_with(&**suffix),
                ServerName::SuffixOrSelf(suffix) => {
                    host.ends_with(&**suffix) || *host == suffix[1..]
                }
                // Other hosts' names may match these.
                ServerName::Prefix(_) | ServerName::Regex(_) => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use bolide_conf::model::{ConsoleGuard, ServerName};
    use bolide_http::FieldMap;

    use super::{ConsoleRights, ConsoleVisitor, is_equal};

    fn fields(all: &[(&str, &str)]) -> FieldMap {
        let mut fields = FieldMap::default();
        for (name, value) in all {
            let name = name.as_bytes();
            fields.push_parsed(bolide_http::Name::parse(name), name, value.as_bytes());
        }
        fields
    }

    fn rights(guard: ConsoleGuard, ip: &str, host: &str, more: &[(&str, &str)]) -> ConsoleRights {
        let names = [
            ServerName::Exact("a.test".into()),
            ServerName::Exact("".into()),
            ServerName::SuffixOrSelf(".b.test".into()),
            ServerName::Prefix("www.".into()),
        ];
        let (ip, host, names, fields) = (ip.parse().ok(), host.as_bytes(), &names, &fields(more));
        ConsoleVisitor { guard, ip, is_direct: true, host, names, fields }.rights()
    }

    #[test]
    fn clients_of_this_machine_act_and_others_need_a_rule() {
        use ConsoleGuard::{Addresses, Identity, Loopback, Open};
        let of = |guard, ip| rights(guard, ip, "a.test", &[]);
        for near in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(of(Loopback, near), ConsoleRights::Act, "{near}");
            assert_eq!(of(Addresses, near), ConsoleRights::Act, "{near}");
        }
        // No address: a unix socket.
        for far in ["192.0.2.1", "::", "2001:db8::1", ""] {
            assert!(matches!(of(Loopback, far), ConsoleRights::None(_)), "{far}");
            assert_eq!(of(Addresses, far), ConsoleRights::See, "{far}");
            assert_eq!(of(Identity, far), ConsoleRights::Act, "{far}");
            assert!(matches!(of(Open, far), ConsoleRights::None(_)), "{far}");
        }
        for field in ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"] {
            let relayed = [(field, "x")];
            let of = |guard| rights(guard, "127.0.0.1", "a.test", &relayed);
            assert!(matches!(of(Loopback), ConsoleRights::None(_)), "{field}");
            assert_eq!(of(Addresses), ConsoleRights::See, "{field}");
            assert_eq!(of(Identity), ConsoleRights::Act, "{field}");
        }
    }

    #[test]
    fn a_name_of_another_site_leads_nowhere() {
        let of = |host| rights(ConsoleGuard::Identity, "127.0.0.1", host, &[]);
        for good in ["a.test", "b.test", "x.b.test", "localhost", "x.localhost", "192.0.2.1"] {
            assert_eq!(of(good), ConsoleRights::Act, "{good}");
        }
        assert_eq!(of("[::1]"), ConsoleRights::Act);
        for bad in ["evil.test", "a.test.evil", "www.evil.test", "", "xb.test", "127.0.0.1.evil"] {
            assert!(matches!(of(bad), ConsoleRights::None(_)), "{bad}");
        }
    }

    #[test]
    fn only_actions_of_the_page_itself_are_carried_out() {
        let good = [
            ("Content-Type", "application/json; charset=utf-8"),
            ("Sec-Fetch-Site", "same-origin"),
            ("Bolide-Console", "secret"),
        ];
        let of = |all: &[(&str, &str)]| {
            let fields = fields(all);
            let guard = ConsoleGuard::Identity;
            let visitor = ConsoleVisitor {
                guard,
                ip: None,
                is_direct: true,
                host: b"",
                names: &[],
                fields: &fields,
            };
            visitor.forgery(b"a.test:81", b"secret").is_none()
        };
        assert!(of(&good));
        for without in 0..good.len() {
            let mut some = good.to_vec();
            some.remove(without);
            assert!(!of(&some), "without {}", good[without].0);
        }
        for (at, value) in [(0, "text/plain"), (1, "same-site"), (1, "none"), (2, "Secret")] {
            let mut other = good;
            other[at].1 = value;
            assert!(!of(&other), "{value}");
        }
        for (origin, is_good) in [
            ("http://a.test:81", true),
            ("https://A.test:81", true),
            ("http://a.test", false),
            ("http://evil.test", false),
            ("null", false),
            ("http://", false),
        ] {
            let mut other = good;
            other[1] = ("Origin", origin);
            assert_eq!(of(&other), is_good, "{origin}");
        }
        assert!(!is_equal(b"", b"") && !is_equal(b"ab", b"a") && is_equal(b"ab", b"ab"));
    }
}
