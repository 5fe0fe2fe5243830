//! Upstreams that answer instead of files: `fastcgi_pass`, `lsapi_pass`, `uwsgi_pass`, `scgi_pass`,
//! `php_pass`.
//!
//! An address becomes a group of its own; two directives with the same address share the group.

use std::sync::Arc;

use super::peer::{self, PeerAddressText};
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, own};
use crate::drafts::GroupKey;
use crate::model::{
    Handler, Pass, PassTo, PeerAddress, Protocol, Upstream, UpstreamId, UpstreamKind,
};
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, show};
use crate::uwsgi_url;

const L: Contexts = Contexts::LI;

pub(super) const TABLE: &[DirectiveSpec] = &[
    own("fastcgi_pass", L, Args::ONE, |r, node| pass(r, node, Protocol::FastCgi))
        .doc(
            "The FastCGI upstream: an address, a socket, a group, or a text with variables.",
            "fastcgi_pass unix:/run/php/php-fpm.sock;",
        )
        .takes("HOST | NAME | TEXT")
        .without("none"),
    own("lsapi_pass", L, Args::ONE, |r, node| pass(r, node, Protocol::Lsapi))
        .doc(
            "The LSAPI upstream, such as `lsphp`; its CGI parameters default to those of PHP.",
            "lsapi_pass unix:/run/lsphp.sock;",
        )
        .takes("HOST | NAME | TEXT")
        .without("none"),
    own("uwsgi_pass", L, Args::ONE, |r, node| pass(r, node, Protocol::Uwsgi))
        .doc(
            "The uwsgi upstream: an address, a socket, a group, or a text with variables; over TLS \
             with `suwsgi://`.",
            "uwsgi_pass unix:/run/uwsgi/app.sock;",
        )
        .takes("[uwsgi:// | suwsgi://]HOST | [uwsgi:// | suwsgi://]NAME | TEXT")
        .without("none"),
    own("scgi_pass", L, Args::ONE, |r, node| pass(r, node, Protocol::Scgi))
        .doc(
            "The SCGI upstream: an address, a socket, a group, or a text with variables.",
            "scgi_pass 127.0.0.1:4000;",
        )
        .takes("HOST | NAME | TEXT")
        .without("none"),
    own("php_pass", L, Args::ONE, php_pass)
        .doc(
            "The `php_pool` for requests; its CGI parameters default to those of PHP.",
            "php_pass main;",
        )
        .takes("NAME")
        .without("none"),
];

impl GroupKey {
    /// A name, in any case.
    pub(super) fn named(name: &[u8]) -> Self {
        Self { host: name.to_ascii_lowercase().into(), port: None, default_port: None }
    }

    fn of(peer: &PeerAddressText, default_port: Option<u16>) -> Self {
        match peer {
            PeerAddressText::Unix(path) => {
                let path = path.as_os_str().as_encoded_bytes();
                let host = [b"unix:", path].concat().into();
                Self { host, port: None, default_port: None }
            }
            PeerAddressText::Inet { host, port } => {
                let default_port = default_port.filter(|_| port.is_none());
                Self { port: *port, default_port, ..Self::named(host.as_bytes()) }
            }
        }
    }
}

fn pass(r: &mut ConfReader, node: &Node, protocol: Protocol) -> ReadResult {
    if r.again {
        return Err(DUPLICATE);
    }
    let text = r.template(node.arg(0))?;
    let (to, url) = match text.as_text() {
        Some(_) => {
            let url = (protocol == Protocol::Uwsgi).then(|| Arc::new(uwsgi_url::read(node.arg(0))));
            let word = url.as_ref().map_or(node.arg(0), |url| &*url.written);
            (PassTo::Group(group(r, node, word, (word, None))?), url)
        }
        None => (PassTo::Text(text), None),
    };
    r.scope.handler = Handler::Pass(Pass { protocol, to, url });
    Ok(())
}

fn php_pass(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.again {
        return Err(DUPLICATE);
    }
    let name = node.arg(0);
    let id = r.http.upstream_index.get(&GroupKey::named(name)).copied();
    let pool = id.and_then(|id| match r.http.upstreams[id.index()].kind {
        UpstreamKind::Pool(pool) => Some((id, r.http.php_pools[pool as usize].protocol)),
        UpstreamKind::Block | UpstreamKind::Address => None,
    });
    let Some((id, protocol)) = pool else {
        return Err(ReadFault::Text(format!("unknown php_pool \"{}\"", show(name))));
    };
    r.scope.handler =
        Handler::Pass(Pass { protocol: protocol.into(), to: PassTo::Group(id), url: None });
    Ok(())
}

/// The group of a literal address; messages show it as `shown`, and `default_port` applies without
/// a port.
pub(super) fn group(
    r: &mut ConfReader,
    node: &Node,
    word: &[u8],
    (shown, default_port): (&[u8], Option<u16>),
) -> Result<UpstreamId, ReadFault> {
    let peer = peer::cut(word)
        .map_err(|why| ReadFault::Text(format!("{why} in upstream \"{}\"", show(shown))))?;
    if let PeerAddressText::Inet { host, port } = &peer
        && let Some(id) = r.http.upstream_index.get(&GroupKey::named(host.as_bytes()))
    {
        match (r.http.upstreams[id.index()].kind, port) {
            (UpstreamKind::Pool(_), _) => {
                let text = format!("\"{host}\" is a php_pool, use the \"php_pass\" directive");
                return Err(ReadFault::Text(text));
            }
            (UpstreamKind::Block, Some(port)) => {
                let text = format!("upstream \"{host}\" may not have port {port}");
                return Err(ReadFault::Text(text));
            }
            (UpstreamKind::Block | UpstreamKind::Address, None) => return Ok(*id),
            (UpstreamKind::Address, Some(_)) => {}
        }
    }
    let key = GroupKey::of(&peer, default_port);
    if let Some(id) = r.http.upstream_index.get(&key) {
        return Ok(*id);
    }
    let addresses = addresses(r, node, &peer, default_port);
    let name = show(word);
    let mut group = super::upstream::empty(&name, UpstreamKind::Address, r.place(node));
    group.servers.push(super::upstream::server_of(&name, addresses));
    Ok(add(r, key, group))
}

/// Adds a group.
pub(super) fn add(r: &mut ConfReader, key: GroupKey, group: Upstream) -> UpstreamId {
    let id = UpstreamId(r.http.upstreams.len() as u32);
    r.http.upstreams.push(group);
    r.http.upstream_index.insert(key, id);
    id
}

/// The addresses of a group of one address. Errors are reported when the `http` block ends, since
/// nginx knows only then that the name is not a group.
fn addresses(
    r: &mut ConfReader,
    node: &Node,
    peer: &PeerAddressText,
    default_port: Option<u16>,
) -> Vec<PeerAddress> {
    let (host, why) = match peer {
        PeerAddressText::Unix(path) => return vec![PeerAddress::Unix(path.clone())],
        PeerAddressText::Inet { host, port } => match port.or(default_port) {
            None => (host, "no port"),
            Some(port) => match peer::look_up(r, host, port) {
                Ok(addresses) => return addresses,
                Err(why) => (host, why),
            },
        },
    };
    let message = format!("{why} in upstream \"{host}\"");
    let place = Some(r.place(node));
    r.http.upstream_faults.push((r.order(), message, place));
    Vec::new()
}
