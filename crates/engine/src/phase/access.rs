//! Who may come in: `allow`, `deny`, `auth_basic`, put together by `satisfy`.

use std::net::IpAddr;

use conf::model::{AccessRule, Satisfy, Verdict, Who};

use crate::ctx::{Ctx, Peer};
use crate::exchange::{Exchange, Next};
use crate::site::Site;

impl Exchange {
    /// Makes the checks that the location asks for, in nginx's order.
    pub(crate) fn admit(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> Next {
        let location = site.location(self.request.location);
        if !location.guarded {
            return Self::admitted(location);
        }
        let verdict = judge(&location.settings.access, ctx.conn.remote);
        match (verdict, location.settings.satisfy) {
            (Some(Verdict::Deny), _) => {
                self.log_error(site, ctx, |out| {
                    out.extend_from_slice(b"access forbidden by rule");
                });
                Next::Fail(403)
            }
            (Some(Verdict::Allow), Satisfy::Any | Satisfy::All) | (None, _) => {
                Self::admitted(location)
            }
        }
    }
}

/// What the first rule that is about `peer` says.
fn judge(rules: &[AccessRule], peer: Peer) -> Option<Verdict> {
    let ip: Option<IpAddr> = match peer {
        Peer::Inet(addr) => Some(addr.ip().to_canonical()),
        Peer::Unix => None,
    };
    let rule = rules.iter().find(|rule| match (rule.who, ip) {
        (Who::All, _) | (Who::Unix, None) => true,
        (Who::Network(network), Some(ip)) => network.contains(ip),
        (Who::Unix, Some(_)) | (Who::Network(_), None) => false,
    });
    rule.map(|rule| rule.verdict)
}
