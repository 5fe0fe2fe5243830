//! What variables are worth while a client is still shaking hands, when there is no request: for
//! the names of certificates.
//!
//! The library that shakes hands calls for a certificate in the middle of its work and says no more
//! than a name; whose hands are shaken is left in a place of this thread for that moment.

use std::cell::Cell;

use base::Now;
use conf::vars::Template;
use http::Scheme;
use http::date::Clock;

use crate::answer::Answer;
use crate::ctx::{ConnInfo, Peer, TlsFacts};
use crate::request::Request;
use crate::site::Site;
use crate::tally::Tallies;
use crate::vars::Scope;

/// Whose hands are shaken.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// `$connection`; zero over QUIC, where it has no number yet.
    pub serial: u64,
    /// The client's end.
    pub remote: Peer,
    /// The address that it reached.
    pub local: Peer,
}

thread_local! {
    static CLIENT: Cell<Client> =
        const { Cell::new(Client { serial: 0, remote: Peer::Unix, local: Peer::Unix }) };
}

/// Notes whose handshake goes on next on this thread.
pub fn meet(client: Client) {
    CLIENT.set(client);
}

/// What `template` is worth for the client that was met last, which asks `server` for `name` on
/// an address of this configuration's.
#[must_use]
pub fn expand(
    site: &Site,
    (listen, server): (usize, u32),
    name: Option<&str>,
    now: Now,
    template: &Template,
) -> Vec<u8> {
    let Client { serial, remote, local } = CLIENT.get();
    let conn = ConnInfo {
        serial,
        remote,
        local,
        listen,
        scheme: Scheme::Https,
        tls: Some(TlsFacts { server_name: name.map(Into::into), ..TlsFacts::default() }),
        proxy: None,
        started: now,
    };
    let mut request = Request::default();
    (request.server, request.listen, request.started) = (server, listen, now);
    request.location = site.server(server).root;
    let scope = Scope {
        request: &request,
        answer: &Answer::default(),
        sent: None,
        site,
        conn: &conn,
        now,
        clock: &Clock::new(now, 0),
        counters: &Tallies::new(std::iter::empty()),
        pid: std::process::id(),
        tcp: None,
    };
    let mut out = Vec::new();
    scope.expand(template, &mut out);
    out
}
