//! Access control: `Require` and its containers, `Order`, `Allow`, `Deny`, `Satisfy`. Host rules
//! and `Require` are evaluated separately, and neither overrides the other. Host names never match,
//! because no name is looked up.

mod parse;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::expr::Expr;
use crate::methods::MethodSet;
use crate::tls;
use crate::world::{Evaluation, Stop};

pub(crate) use parse::{allow_or_deny, order, require, satisfy};

/// Addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressRange {
    V4(u32, u32),
    V6(u128, u128),
}

impl AddressRange {
    /// `10`, `10.1`, `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `fe80::/10`; none if it is no address.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (address, mask) = match text.split_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        if address.contains(':') {
            let address: Ipv6Addr = address.parse().ok()?;
            let bits: u32 = mask.map_or(Some(128), |mask| mask.parse().ok())?;
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            return (bits <= 128).then_some(Self::V6(u128::from(address) & mask, mask));
        }
        let mut octets = [0_u8; 4];
        let mut count = 0;
        for part in address.strip_suffix('.').unwrap_or(address).split('.') {
            *octets.get_mut(count)? = part.parse().ok()?;
            count += 1;
        }
        let high = |bits: u32| u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        let mask = match mask {
            None => high(8 * count as u32),
            Some(mask) if mask.contains('.') => u32::from(mask.parse::<Ipv4Addr>().ok()?),
            Some(mask) => high(mask.parse().ok().filter(|bits| *bits <= 32)?),
        };
        Some(Self::V4(u32::from(Ipv4Addr::from(octets)) & mask, mask))
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Self::V4(net, mask), IpAddr::V4(address)) => u32::from(address) & mask == net,
            (Self::V6(net, mask), IpAddr::V6(address)) => u128::from(address) & mask == net,
            _ => false,
        }
    }
}

/// One rule of `Require`.
#[derive(Clone, Debug)]
pub(crate) enum Requirement {
    Granted,
    Denied,
    Env(Vec<Box<[u8]>>),
    Method(MethodSet),
    Ip(Vec<AddressRange>),
    /// Names of hosts.
    Host,
    Local,
    /// `ssl`
    Tls,
    /// `ssl-verify-client`
    TlsVerified,
    User(Vec<Box<[u8]>>),
    ValidUser,
    Group(Vec<Box<[u8]>>),
    Expr(Expr),
    /// An expression with `%{REMOTE_USER}`: as in Apache, a password may help where it is false.
    ExprOfUser(Expr),
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    /// Within `<Limit>`.
    For(MethodSet, Box<Self>),
}

/// The result of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthzStatus {
    /// Access is granted.
    Granted,
    /// Access is denied, with any user.
    Denied,
    /// Access is denied without a user, or with this one.
    NeedsUser,
    /// The rule does not apply.
    Neutral,
}

impl AuthzStatus {
    /// Both have to grant access.
    pub(crate) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Denied, _) | (_, Self::Denied) => Self::Denied,
            (Self::NeedsUser, _) | (_, Self::NeedsUser) => Self::NeedsUser,
            (Self::Granted, _) | (_, Self::Granted) => Self::Granted,
            (Self::Neutral, Self::Neutral) => Self::Neutral,
        }
    }

    /// One that grants access is enough.
    pub(crate) const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Granted, _) | (_, Self::Granted) => Self::Granted,
            (Self::NeedsUser, _) | (_, Self::NeedsUser) => Self::NeedsUser,
            (Self::Denied, _) | (_, Self::Denied) => Self::Denied,
            (Self::Neutral, Self::Neutral) => Self::Neutral,
        }
    }
}

impl Requirement {
    /// Whether its result depends on the user.
    pub(crate) fn asks_for_user(&self) -> bool {
        match self {
            Self::User(_) | Self::ValidUser | Self::Group(_) | Self::ExprOfUser(_) => true,
            Self::All(rules) | Self::Any(rules) => rules.iter().any(Self::asks_for_user),
            Self::Not(rule) | Self::For(_, rule) => rule.asks_for_user(),
            _ => false,
        }
    }

    /// Whether it is a rule that can only deny.
    pub(crate) fn only_refuses(&self) -> bool {
        match self {
            Self::Not(_) => true,
            Self::For(_, rule) => rule.only_refuses(),
            Self::All(rules) | Self::Any(rules) => {
                !rules.is_empty() && rules.iter().all(Self::only_refuses)
            }
            _ => false,
        }
    }

    /// Evaluates the rule.
    pub(crate) fn judge(
        &self,
        method: &[u8],
        by: &mut Evaluation<'_>,
    ) -> Result<AuthzStatus, Stop> {
        let plain =
            |granted: bool| if granted { AuthzStatus::Granted } else { AuthzStatus::Denied };
        let of_user =
            |granted: bool| if granted { AuthzStatus::Granted } else { AuthzStatus::NeedsUser };
        Ok(match self {
            Self::Granted => AuthzStatus::Granted,
            Self::Denied | Self::Host => AuthzStatus::Denied,
            Self::Env(names) => plain(names.iter().any(|name| by.env.of(name).is_some())),
            Self::Method(methods) => plain(methods.contains(method)),
            Self::Ip(networks) => {
                let client = by.world.client();
                plain(client.is_some_and(|client| networks.iter().any(|net| net.contains(client))))
            }
            // As in Apache, a client whose address is that of the connection's local end is local,
            // too.
            Self::Local => plain(by.world.client().is_some_and(|client| {
                let mut own = Vec::new();
                by.world.variable(crate::RequestVariable::ServerAddr, &mut own);
                client.to_canonical().is_loopback() || own == client.to_string().as_bytes()
            })),
            Self::Tls => plain(tls::is_tls(by)),
            Self::TlsVerified => plain(tls::is_tls(by) && tls::is_verified(by)),
            Self::ValidUser => of_user(by.world.user().is_some()),
            Self::User(names) => {
                let user = by.world.user();
                of_user(user.is_some_and(|user| names.iter().any(|name| **name == *user)))
            }
            Self::Group(names) => of_user(
                by.world.user().is_some() && names.iter().any(|name| by.world.is_in_group(name)),
            ),
            Self::Expr(expr) => plain(expr.holds(by)?),
            Self::ExprOfUser(expr) => of_user(expr.holds(by)?),
            Self::Not(rule) => match rule.judge(method, by)? {
                AuthzStatus::Granted => AuthzStatus::Denied,
                AuthzStatus::Denied | AuthzStatus::Neutral => AuthzStatus::Neutral,
                AuthzStatus::NeedsUser => match by.world.user() {
                    Some(_) => AuthzStatus::Neutral,
                    None => AuthzStatus::NeedsUser,
                },
            },
            Self::For(methods, rule) => match methods.contains(method) {
                true => rule.judge(method, by)?,
                false => AuthzStatus::Neutral,
            },
            Self::All(rules) => {
                let mut so_far = AuthzStatus::Neutral;
                for rule in rules {
                    so_far = so_far.and(rule.judge(method, by)?);
                    if so_far == AuthzStatus::Denied {
                        break;
                    }
                }
                so_far
            }
            Self::Any(rules) => Self::judge_any(rules, method, by)?,
        })
    }

    /// Evaluates rules of which one is enough.
    pub(crate) fn judge_any(
        rules: &[Self],
        method: &[u8],
        by: &mut Evaluation<'_>,
    ) -> Result<AuthzStatus, Stop> {
        let mut so_far = AuthzStatus::Neutral;
        for rule in rules {
            so_far = so_far.or(rule.judge(method, by)?);
            if so_far == AuthzStatus::Granted {
                break;
            }
        }
        Ok(so_far)
    }

    /// Whether it applies to some methods only.
    pub(crate) fn is_limited(&self) -> bool {
        match self {
            Self::For(..) => true,
            Self::Any(rules) | Self::All(rules) => {
                !rules.is_empty() && rules.iter().all(Self::is_limited)
            }
            _ => false,
        }
    }
}

/// The clients of a line of `Allow` or `Deny`.
#[derive(Clone, Debug)]
pub(crate) enum AllowedHost {
    All,
    Env(Box<[u8]>),
    NotEnv(Box<[u8]>),
    Ip(AddressRange),
    /// A name of a host.
    Host,
}

/// The precedence of `Allow` and `Deny`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AccessOrder {
    /// A client is denied if it matches `Deny` and not `Allow`.
    #[default]
    DenyAllow,
    /// A client is allowed if it matches `Allow` and not `Deny`; also `mutual-failure`.
    AllowDeny,
}

/// `Order`, `Allow`, `Deny` of one place; those of a deeper place replace them.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostAccess {
    pub(crate) is_given: bool,
    pub(crate) orders: Vec<(MethodSet, AccessOrder)>,
    pub(crate) allow: Vec<(MethodSet, AllowedHost)>,
    pub(crate) deny: Vec<(MethodSet, AllowedHost)>,
    pub(crate) satisfies: Vec<(MethodSet, Satisfies)>,
}

/// `Satisfy`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Satisfies {
    /// Both host rules and `Require`.
    All,
    /// One of them is enough.
    Any,
}

impl HostAccess {
    /// Whether the host rules grant access.
    pub(crate) fn admits(&self, method: &[u8], by: &Evaluation<'_>) -> bool {
        let is_of = |list: &[(MethodSet, AllowedHost)]| {
            list.iter().any(|(methods, who)| {
                methods.contains(method)
                    && match who {
                        AllowedHost::All => true,
                        AllowedHost::Env(name) => by.env.of(name).is_some(),
                        AllowedHost::NotEnv(name) => by.env.of(name).is_none(),
                        AllowedHost::Ip(net) => {
                            by.world.client().is_some_and(|client| net.contains(client))
                        }
                        AllowedHost::Host => false,
                    }
            })
        };
        let order = self.orders.iter().rfind(|(methods, _)| methods.contains(method));
        match order.map_or_else(AccessOrder::default, |(_, order)| *order) {
            AccessOrder::DenyAllow => is_of(&self.allow) || !is_of(&self.deny),
            AccessOrder::AllowDeny => is_of(&self.allow) && !is_of(&self.deny),
        }
    }

    /// `Satisfy` for the method.
    pub(crate) fn satisfies(&self, method: &[u8]) -> Satisfies {
        let found = self.satisfies.iter().rfind(|(methods, _)| methods.contains(method));
        found.map_or(Satisfies::All, |(_, satisfies)| *satisfies)
    }
}

#[cfg(test)]
mod tests {
    use super::AddressRange;

    #[test]
    fn networks_are_written_in_many_ways() {
        let rows = [
            ("10", "10.9.8.7", true),
            ("10.1", "10.1.2.3", true),
            ("10.1", "10.2.2.3", false),
            ("10.1.", "10.1.2.3", true),
            ("192.0.2.0/24", "192.0.2.9", true),
            ("192.0.2.0/255.255.255.0", "192.0.3.9", false),
            ("2001:db8::/32", "2001:db8::1", true),
            ("::1", "::2", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("0.0.0.0/0", "1.2.3.4", true),
        ];
        for (net, address, wanted) in rows {
            let net = AddressRange::parse(net.as_bytes()).unwrap();
            assert_eq!(net.contains(address.parse().unwrap()), wanted, "{net:?} {address}");
        }
        for bad in ["bad", "1.2.3.4.5", "1.2.3.4/33", "300", "::1/129", "", "a.b"] {
            assert_eq!(AddressRange::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
