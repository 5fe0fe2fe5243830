//! Access to the server's console. The only place that decides it, for the check of a configuration
//! and for each request.

use super::{AccessRule, AccessVerdict, LocationSettings, Satisfy, VerifyClient, Who};

/// How a location protects its console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleGuard {
    /// By no directive, so only clients of this machine are admitted.
    Loopback,
    /// `allow` and `deny` select addresses, and no other client is admitted.
    Addresses,
    /// Each client is authenticated: by a password, a certificate, or `auth_request`.
    Identity,
    /// Clients without a matching rule are admitted. Such a configuration is refused.
    Open,
}

impl ConsoleGuard {
    /// The guard of a location with these settings, in a server with this `ssl_verify_client`.
    #[must_use]
    pub fn of(settings: &LocationSettings, verify_client: VerifyClient) -> Self {
        // A realm with variables may turn out to be "off".
        let is_realm =
            |realm: &crate::vars::Template| realm.as_text().is_some_and(|text| text != b"off");
        let has_password = settings.auth_basic.as_ref().is_some_and(is_realm)
            && settings.auth_basic_user_file.is_some();
        let asks = has_password || settings.auth_request.uri.is_some();
        let rules = Rules::of(&settings.access);
        match (asks, settings.satisfy) {
            _ if verify_client == VerifyClient::On => Self::Identity,
            (true, Satisfy::All) => Self::Identity,
            (true, Satisfy::Any) => match rules {
                Rules::None => Self::Identity,
                Rules::AllowAll => Self::Open,
                Rules::DenyAll | Rules::Some => Self::Addresses,
            },
            (false, _) => match rules {
                Rules::None => Self::Loopback,
                Rules::DenyAll => Self::Addresses,
                Rules::AllowAll | Rules::Some => Self::Open,
            },
        }
    }
}

/// The effect of rules on clients that they do not name.
enum Rules {
    /// There are no rules.
    None,
    /// `allow all`
    AllowAll,
    /// `deny all`
    DenyAll,
    /// There are rules, but none for all clients.
    Some,
}

impl Rules {
    fn of(rules: &[AccessRule]) -> Self {
        match rules.iter().find(|rule| rule.who == Who::All) {
            _ if rules.is_empty() => Self::None,
            Some(AccessRule { verdict: AccessVerdict::Deny, .. }) => Self::DenyAll,
            Some(AccessRule { verdict: AccessVerdict::Allow, .. }) => Self::AllowAll,
            None => Self::Some,
        }
    }
}
