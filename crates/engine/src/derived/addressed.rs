//! `geo` and `split_clients`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bolide_conf::model::{Geo, SplitClients};
use bolide_http::Name;

use crate::ctx::ClientAddress;
use crate::forwarded;
use crate::hash::murmur2;
use crate::vars::VariableScope;

impl VariableScope<'_> {
    /// Appends the value of `geo` for its address.
    pub(super) fn locate(&self, geo: &Geo, out: &mut Vec<u8>) {
        let asker = match &geo.source {
            None => Some(self.client()),
            Some(source) => {
                let mut text = self.spare();
                self.expand(source, &mut text);
                let ip = std::str::from_utf8(&text).ok().and_then(forwarded::ip);
                self.give_back(text);
                ip.map(|ip| ClientAddress::Inet(SocketAddr::new(ip, 0)))
            }
        };
        let asker = asker.map(|asker| {
            if geo.proxies.is_empty() {
                return asker;
            }
            let fields = self.request.head().fields.all(Name::XForwardedFor);
            let forwarded_for = forwarded::client(asker, fields, &geo.proxies, geo.recursive);
            forwarded_for.unwrap_or(asker)
        });
        let number = match asker {
            Some(ClientAddress::Inet(addr)) => match addr.ip().to_canonical() {
                IpAddr::V4(ip) => geo.v4.find(ip.to_bits()),
                IpAddr::V6(ip) => geo.v6.find(ip.to_bits()),
            },
            // As in nginx, a client without an address counts as 255.255.255.255.
            Some(ClientAddress::Unix) | None => geo.v4.find(Ipv4Addr::BROADCAST.to_bits()),
        };
        out.extend_from_slice(geo.values.get(*number as usize).map_or(&[][..], |value| value));
    }

    /// Appends the value of the share that this request falls into.
    pub(super) fn split(&self, split: &SplitClients, out: &mut Vec<u8>) {
        let mut text = self.spare();
        self.expand(&split.source, &mut text);
        let hash = murmur2(&text);
        self.give_back(text);
        let is_in = |until: &Option<u32>| until.is_none_or(|until| hash < until);
        if let Some((_, value)) = split.parts.iter().find(|(until, _)| is_in(until)) {
            out.extend_from_slice(value);
        }
    }
}
