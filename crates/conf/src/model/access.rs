//! Who a client is and who may come in: `set_real_ip_from`, `allow`, `deny`, `auth_basic`,
//! `valid_referers`, `secure_link`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::{MapKey, SetTarget};
use crate::regex::Regex;
use crate::vars::Template;

/// `auth_request` and `auth_request_set`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuthRequest {
    /// The path that is asked; none asks nobody.
    pub uri: Option<Arc<[u8]>>,
    /// What is set to something of the answer.
    pub set: Arc<Vec<(SetTarget, Template)>>,
}

/// A network: an address and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Address and mask.
    V4(Ipv4Addr, Ipv4Addr),
    /// Address and mask.
    V6(Ipv6Addr, Ipv6Addr),
}

impl Network {
    /// Whether `ip` is in it; addresses of IPv4 inside IPv6 were unwrapped before.
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
    /// Who is meant.
    pub who: Who,
    /// Whether they may come in.
    pub verdict: AccessVerdict,
}

/// Whom an [`AccessRule`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Everybody.
    All,
    /// Clients over unix sockets.
    Unix,
    /// Clients of a network.
    Network(Network),
}

/// What an [`AccessRule`] says.
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
    /// Who is believed; nobody leaves all as it is.
    pub from: Vec<Who>,
    /// Where the address is told.
    pub header: RealIpHeader,
    /// Whether addresses in the field are believed that are themselves in `from`.
    pub recursive: bool,
}

/// Where the address of a client is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RealIpHeader {
    /// `X-Real-IP`
    #[default]
    XRealIp,
    /// `X-Forwarded-For`: a list, maybe in several fields.
    XForwardedFor,
    /// What the PROXY protocol said.
    ProxyProtocol,
    /// Another field; its name in lower case.
    Field(Box<[u8]>),
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
    /// Hosts, and what the path must begin with.
    pub hosts: Vec<(MapKey, Box<[u8]>)>,
    /// Expressions on what follows the scheme.
    pub regexes: Vec<Regex>,
}

/// `secure_link*`: either the first two or the last one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecureLink {
    /// `secure_link`: a hash, and when it ends.
    pub given: Option<Template>,
    /// `secure_link_md5`: what is hashed.
    pub hashed: Option<Template>,
    /// `secure_link_secret`
    pub secret: Option<Box<[u8]>>,
}
