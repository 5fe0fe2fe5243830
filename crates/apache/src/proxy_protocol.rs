//! `RemoteIPProxyProtocol`: the addresses where a connection begins with the PROXY protocol, which
//! says who the client is.

use crate::listens::{ListenAt, VhostAddress};
use crate::out::ConfText;
use crate::server::Server;
use crate::tree::ApacheNode;

/// Where connections begin so.
#[derive(Debug, Default)]
pub(crate) struct ProxyProtocol<'a> {
    on: Vec<(VhostAddress, &'a ApacheNode)>,
    off: Vec<VhostAddress>,
    /// A directive that excepts clients.
    exception: Option<&'a ApacheNode>,
}

impl<'a> ProxyProtocol<'a> {
    /// Reads the directives as Apache does: of two about the same address the later one counts, and
    /// one that turns it off counts where it is turned on for more addresses.
    pub(crate) fn new(main: &'a [ApacheNode], servers: &[Server<'a>]) -> Self {
        let mut all = Self::default();
        let any = [VhostAddress { host: None, port: None, is_unknown: false }];
        all.read(main, &any);
        servers.iter().for_each(|server| all.read(server.own, &server.addresses));
        all
    }

    fn read(&mut self, nodes: &'a [ApacheNode], addresses: &[VhostAddress]) {
        for node in nodes {
            match &node.lower[..] {
                "remoteipproxyprotocol" => {
                    let is_on = node.keyword() == "on";
                    self.on.retain(|(one, _)| !addresses.contains(one));
                    self.off.retain(|one| !addresses.contains(one));
                    match is_on {
                        true => self.on.extend(addresses.iter().map(|one| (one.clone(), node))),
                        false => self.off.extend_from_slice(addresses),
                    }
                }
                "remoteipproxyprotocolexceptions" => self.exception = Some(node),
                _ => {}
            }
        }
    }

    /// The directive that turns it on for a `listen`.
    pub(crate) fn at(&self, listen: &ListenAt) -> Option<&'a ApacheNode> {
        let is_off = self.off.iter().any(|one| listen.is_of(one));
        self.on.iter().find(|(one, _)| listen.is_of(one) && !is_off).map(|(_, node)| *node)
    }

    /// Writes what a server has besides `listen`. Whether it has all that is about addresses of
    /// clients then.
    pub(crate) fn write(&self, server: &Server<'_>, at: &[ListenAt], out: &mut ConfText) -> bool {
        let Some(node) = at.iter().find_map(|listen| self.at(listen)) else { return false };
        let is_mixed = at.iter().any(|listen| self.at(listen).is_none());
        let closes = match (self.exception, server.last("remoteipheader")) {
            (Some(exception), _) => Some(exception),
            (None, header) => header.filter(|_| is_mixed),
        };
        if let Some(node) = closes {
            out.comment_closed(&node.place, format_args!("{} {}", node.name, node.rest));
            out.own("return 503;");
        }
        // It counts more than a field does.
        out.own("set_real_ip_from 0.0.0.0/0;");
        out.own("set_real_ip_from ::/0;");
        out.put(&node.place, "real_ip_header proxy_protocol;");
        true
    }
}
