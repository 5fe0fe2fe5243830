//! Identity of clients and access control: `set_real_ip_from`, `allow`, `deny`, `auth_basic`,
//! `valid_referers`, `secure_link`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::{MapKey, SetTarget};
use crate::regex::Regex;
use crate::vars::Template;

/// `auth_request` and `auth_request_set`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuthRequest {
    /// The URI of the subrequest; `None` makes none.
    pub uri: Option<Arc<[u8]>>,
    /// Variables set from its response.
    pub set: Arc<Vec<(SetTarget, Template)>>,
}

/// A network: an address and its mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Address and mask.
    V4(Ipv4Addr, Ipv4Addr),
    /// Address and mask.
    V6(Ipv6Addr, Ipv6Addr),
}

impl Network {
    /// Whether it contains `ip`; the caller has unwrapped IPv4 addresses inside IPv6.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self, ip) {
            (Self::V4(net, mask), IpAddr::V4(ip)) => ip & *mask == *net,
            (Self::V6(net, mask), IpAddr::V6(ip)) => ip & *mask == *net,
            _ => false,
        }
    }
}

/// One `allow` or `deny`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// The clients that it applies to.
    pub who: Who,
    /// Whether they are admitted.
    pub verdict: AccessVerdict,
}

impl AccessRule {
    /// The first of `rules` for a client at `ip`; `None` is a unix socket.
    ///
    /// As in nginx, the rules about IPv4 decide about an IPv4 client of an IPv6 socket
    /// (`::ffff:192.0.2.1`), and those about IPv6 only if there are none about IPv4.
    #[must_use]
    pub fn first_for(rules: &[Self], ip: Option<IpAddr>) -> Option<&Self> {
        let is_v4 = |rule: &Self| matches!(rule.who, Who::All | Who::Network(Network::V4(..)));
        let ip = match ip {
            Some(ip @ IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => {
                Some(if rules.iter().any(is_v4) { ip.to_canonical() } else { ip })
            }
            ip => ip,
        };
        rules.iter().find(|rule| match (rule.who, ip) {
            (Who::All, _) | (Who::Unix, None) => true,
            (Who::Network(network), Some(ip)) => network.contains(ip),
            (Who::Unix, Some(_)) | (Who::Network(_), None) => false,
        })
    }
}

/// The clients that an [`AccessRule`] applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// All clients.
    All,
    /// Clients over unix sockets.
    Unix,
    /// Clients of a network.
    Network(Network),
}

/// The effect of an [`AccessRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessVerdict {
    /// `allow`
    Allow,
    /// `deny`
    Deny,
}

/// `set_real_ip_from`, `real_ip_header`, `real_ip_recursive`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealIp {
    /// Trusted proxies; an empty list changes no address.
    pub from: Vec<Who>,
    /// The source of the address.
    pub header: RealIpHeader,
    /// Whether addresses in the field that are themselves in `from` are trusted.
    pub recursive: bool,
}

/// The source of a client's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RealIpHeader {
    /// `X-Real-IP`
    #[default]
    XRealIp,
    /// `X-Forwarded-For`: a list, maybe in several fields.
    XForwardedFor,
    /// The address in the PROXY protocol.
    ProxyProtocol,
    /// The first line of another field; its name in lower case.
    Field(Box<[u8]>),
    /// All lines of a field, as one list; its name in lower case.
    Lines(Box<[u8]>),
}

/// A `valid_referers`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Referers {
    /// `none`: no `Referer` is valid.
    pub none: bool,
    /// `blocked`: a `Referer` without scheme is valid.
    pub blocked: bool,
    /// `server_names`
    pub server_names: bool,
    /// Hosts, each with the required prefix of the path.
    pub hosts: Vec<(MapKey, Box<[u8]>)>,
    /// Expressions on the text after the scheme.
    pub regexes: Vec<Regex>,
}

/// `secure_link*`: either the first two or the last one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecureLink {
    /// `secure_link`: a hash, and when it ends.
    pub given: Option<Template>,
    /// `secure_link_md5`: the text to hash.
    pub hashed: Option<Template>,
    /// `secure_link_secret`
    pub secret: Option<Box<[u8]>>,
}
