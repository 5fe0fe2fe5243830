//! `set_real_ip_from`: the client's address according to a trusted proxy.
//!
//! The result holds for the request from then on: it is computed for the server when the request
//! begins, and for a location before the access checks, but only once.

use bolide_conf::model::{RealIp, RealIpHeader};
use bolide_http::Name;

use crate::ctx::{ClientAddress, StepCtx};
use crate::forwarded;
use crate::request::Request;
use crate::site::Site;

fn real(request: &Request, terms: &RealIp, ctx: &StepCtx<'_>) -> Option<ClientAddress> {
    let fields = &request.head().fields;
    let peer = ctx.conn.remote;
    let one = |value: Option<&[u8]>| {
        forwarded::client(peer, value.into_iter(), &terms.from, terms.recursive)
    };
    match &terms.header {
        RealIpHeader::XRealIp => one(fields.get(Name::XRealIp)),
        RealIpHeader::XForwardedFor => {
            let values = fields.all(Name::XForwardedFor);
            forwarded::client(peer, values, &terms.from, terms.recursive)
        }
        RealIpHeader::Field(name) => one(fields.get_text(name)),
        RealIpHeader::Lines(name) => {
            forwarded::client(peer, fields.all_text(name), &terms.from, terms.recursive)
        }
        RealIpHeader::ProxyProtocol => {
            let said = ctx.conn.relay.facts()?;
            let found = one(Some(said.source.as_bytes()))?;
            Some(match found {
                ClientAddress::Inet(addr) => {
                    ClientAddress::Inet((addr.ip(), said.source_port).into())
                }
                ClientAddress::Unix => ClientAddress::Unix,
            })
        }
    }
}

/// Determines the client's address by the directives of the request's location.
pub(crate) fn find_client(request: &mut Request, site: &Site, ctx: &StepCtx<'_>) {
    let terms = &site.location(request.location).settings.real_ip;
    if terms.from.is_empty() || request.real.is_some() {
        return;
    }
    request.real = real(request, terms, ctx);
}
