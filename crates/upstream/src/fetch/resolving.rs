//! Before the first attempt: the name of the server is looked up.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bolide_conf::model::{LogLevel, PeerAddress};

use super::{Fetch, FetchState};
use crate::ctx::{FetchCtx, FetchEffect};
use crate::groups::Group;
use crate::request::{Cause, ConnectRefused, PassTarget};

impl Fetch {
    pub(super) fn start_resolving(&mut self, ctx: &mut FetchCtx<'_>) {
        let PassTarget::Name(target) = &self.request.target else { return };
        self.state = FetchState::Resolving;
        ctx.effects.push(FetchEffect::Resolve(target.clone()));
    }

    /// The addresses become a group of this request alone: each is tried once, in their order.
    pub(super) fn handle_resolved(
        &mut self,
        found: Result<Arc<[IpAddr]>, String>,
        ctx: &mut FetchCtx<'_>,
    ) {
        let PassTarget::Name(target) = &self.request.target else { return };
        let text = match found {
            Ok(ips) if !ips.is_empty() => {
                let inet = |ip: &IpAddr| PeerAddress::Inet(SocketAddr::new(*ip, target.port));
                let addresses: Vec<PeerAddress> = ips.iter().map(inet).collect();
                let name = String::from_utf8_lossy(&target.host).as_ref().into();
                return self.begin(Arc::new(Group::of_addresses(name, &addresses)), ctx);
            }
            Ok(_) => "3: Host not found".to_owned(),
            Err(text) => text,
        };
        let name = target.host.strip_suffix(b".").unwrap_or(&target.host);
        let line = [name, b" could not be resolved (", text.as_bytes(), b")"].concat();
        self.log(LogLevel::Error, &line, "", ctx);
        let cause = Cause::Unresolved;
        self.refuse(ConnectRefused { status: 502, retry_after: None, cause }, ctx);
    }
}
