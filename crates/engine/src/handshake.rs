//! Variables in names of certificates (`ssl_certificate $…`), evaluated during a handshake, when
//! there is no request.
//!
//! The TLS library asks for a certificate in the middle of its work and passes only a server name.
//! So the worker notes the client in a thread-local variable before each step of a handshake.

use std::cell::Cell;

use bolide_base::Now;
use bolide_conf::vars::Template;
use bolide_http::Scheme;
use bolide_http::date::DateClock;

use crate::answer::Answer;
use crate::counters::RequestTallies;
use crate::ctx::{ClientAddress, ConnInfo, ConnRelay, TlsFacts};
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

/// The client of a handshake.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeClient {
    /// `$connection`; 0 over QUIC, where it has no number yet.
    pub serial: u64,
    /// The client's address.
    pub remote: ClientAddress,
    /// The address that the client reached.
    pub local: ClientAddress,
}

impl HandshakeClient {
    /// Before the first handshake.
    const UNKNOWN: Self =
        Self { serial: 0, remote: ClientAddress::Unix, local: ClientAddress::Unix };
}

thread_local! {
    static CLIENT: Cell<HandshakeClient> =
        const { Cell::new(HandshakeClient::UNKNOWN) };
}

/// Sets the client whose handshake continues on this thread.
pub fn set_handshake_client(client: HandshakeClient) {
    CLIENT.set(client);
}

/// The value of `template` for the client of [`set_handshake_client`], which requests `name` from
/// `server` on an address of this configuration.
#[must_use]
pub fn expand(
    site: &Site,
    (listen, server): (usize, u32),
    name: Option<&str>,
    now: Now,
    template: &Template,
) -> Vec<u8> {
    let HandshakeClient { serial, remote, local } = CLIENT.get();
    let conn = ConnInfo {
        serial,
        remote,
        local,
        listen,
        scheme: Scheme::Https,
        tls: Some(TlsFacts { server_name: name.map(Into::into), ..TlsFacts::default() }),
        relay: ConnRelay::Direct,
        started: now,
    };
    let mut request = Request::default();
    (request.server, request.listen, request.started) = (server, listen, now);
    request.location = site.server(server).root;
    let scope = VariableScope {
        request: &request,
        answer: &Answer::default(),
        sent: None,
        site,
        conn: &conn,
        now,
        clock: &DateClock::new(now, 0),
        counters: &RequestTallies::new(std::iter::empty()),
        pid: std::process::id(),
        tcp: None,
    };
    let mut out = Vec::new();
    scope.expand(template, &mut out);
    out
}
