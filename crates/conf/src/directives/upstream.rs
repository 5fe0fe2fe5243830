//! The `upstream` block: servers, balancing, idle connections, queue.

use std::sync::Arc;
use std::time::Duration;

use super::cache_zone::share;
use super::core::name_servers;
use super::pass;
use super::peer::{self, PeerAddressText};
use super::sticky::sticky;
use crate::ast::Node;
use crate::diagnostic::Diagnostic;
use crate::directive::{Args, Contexts, DirectiveSpec, Inheritance, leaf, millis, own, value};
use crate::drafts::{GroupKey, SharedZone, SharedZoneUse};
use crate::model::{
    Balance, Keepalive, LogLevel, PeerAddress, Queue, RunTimeName, SourcePlace, Upstream,
    UpstreamKind, UpstreamServer,
};
use crate::reader::{ConfReader, INVALID, ReadFault, ReadResult, invalid_parameter, show};
use crate::value::{self as values, Unit};

const U: Contexts = Contexts::UPSTREAM;

pub(super) const TABLE: &[DirectiveSpec] = &[
    leaf("upstream", Contexts::HTTP, Args::ONE, Inheritance::Own, upstream)
        .doc(
            "A named group of upstream servers.",
            "upstream php { server unix:/run/php/php-fpm.sock; server 10.0.0.2:9000 backup; }",
        )
        .takes("NAME"),
    own("server", U, Args::at_least(1), server)
        .doc(
            "A server of the group. With `resolve`, its name is looked up while serving, and again \
             when the answer is no longer good; the group needs a `zone` and a `resolver`. `route` \
             is its id for `sticky`. With `drain` only requests that `sticky` binds to it ask it.",
            "server 10.0.0.2:9000 weight=5 max_fails=3;",
        )
        .takes(
            "HOST [weight=NUMBER] [max_conns=NUMBER] [max_fails=NUMBER] [fail_timeout=SECONDS] \
         [backup] [down] [drain] [resolve] [route=TEXT]",
        )
        .without("none; `weight` and `max_fails` default to 1, `fail_timeout` to 10s"),
    own("least_conn", U, Args::NONE, |r, _| balance(r, Balance::LeastConn))
        .doc("Balances by the fewest active connections, in relation to weight.", "least_conn;"),
    own("ip_hash", U, Args::NONE, |r, _| balance(r, Balance::IpHash))
        .doc("Balances by the client's address.", "ip_hash;"),
    own("hash", U, Args::between(1, 2), hash)
        .doc(
            "Balances by the hash of a text; with `consistent` most keys keep their server when \
             the group changes.",
            "hash $request_uri consistent;",
        )
        .takes("TEXT [consistent]")
        .without("none"),
    own("random", U, Args::between(0, 2), random)
        .doc(
            "Balances by random choice, or by the better of two random choices.",
            "random two least_conn;",
        )
        .takes("[two [least_conn]]")
        .without("none"),
    own("sticky", U, Args::at_least(1), sticky)
        .doc(
            "Binds clients to a server: by a `cookie` with its id, by a `route` with its id, or by \
             the sessions that the servers themselves make, which the group learns. The id of a \
             server is its `route`, or the MD5 of its address. The balancing method chooses for \
             clients that are not bound, or whose server is not available. Sessions that a group \
             learns last for `timeout` (10 minutes) after their last use; a session takes 192 \
             bytes beside its name, and in a full zone the least recently used one goes. They \
             outlast a reload with the same zone, but neither an upgrade nor a restart.",
            "sticky cookie srv expires=1h path=/ httponly;",
        )
        .takes(
            "cookie NAME [expires=SECONDS|max] [domain=TEXT] [path=TEXT] [httponly] [secure] \
             [samesite=strict|lax|none|TEXT] | route VARIABLE… | learn create=VARIABLE… \
             lookup=VARIABLE… zone=NAME:SIZE [timeout=TIME] [header]",
        )
        .without("none: each request gets its server by the balancing method"),
    value("keepalive", U, Args::between(1, 2), keepalive)
        .doc("The most idle connections of a worker.", "keepalive 16;")
        .takes("NUMBER [local]")
        .default("32"),
    value("keepalive_requests", U, Args::ONE, |r, node| {
        let number = values::number(node.arg(0)).ok_or(ReadFault::Value("invalid number"))?;
        group(r).keepalive.requests = number.unsigned_abs();
        Ok(())
    })
    .doc("The most requests over one connection.", "keepalive_requests 1000;")
    .takes("NUMBER")
    .default("1000"),
    millis("keepalive_time", U, |r| &mut group(r).keepalive.time)
        .doc("The longest lifetime of a connection.", "keepalive_time 1h;"),
    millis("keepalive_timeout", U, |r| &mut group(r).keepalive.timeout)
        .doc("How long an idle connection stays open.", "keepalive_timeout 60s;"),
    value("queue", U, Args::between(1, 2), |r, node| {
        group(r).queue = Some(read_queue(node, Duration::from_secs(60))?);
        Ok(())
    })
    .doc(
        "The length of the queue when all servers are at `max_conns`, and its timeout.",
        "queue 100 timeout=10s;",
    )
    .takes("NUMBER [timeout=TIME]")
    .without("none: a request without an available server is refused"),
    own("zone", U, Args::between(1, 2), zone)
        .doc(
            "Shared memory for the group; only checked, as its state is always shared.",
            "zone php 64k;",
        )
        .takes("NAME [SIZE]")
        .without("none"),
    value("resolver", U, Args::at_least(1), |r, node| {
        let servers = name_servers(r, node)?;
        group(r).resolver = servers;
        Ok(())
    })
    .doc("The servers asked for names with `resolve`.", "resolver 127.0.0.53 valid=10s;")
    .takes("HOST… [valid=SECONDS] [ipv4=on|off] [ipv6=on|off] [status_zone=NAME]")
    .without("that of the `http` block"),
    value("resolver_timeout", U, Args::ONE, |r, node| {
        let time = values::time(node.arg(0), Unit::Millis).ok_or(INVALID)?;
        group(r).resolver_timeout = Some(time);
        Ok(())
    })
    .doc("How long a name with `resolve` is waited for.", "resolver_timeout 5s;")
    .takes("TIME")
    .without("that of the `http` block"),
];

/// The largest effective weight: `hash … consistent` stores points for each unit.
const WEIGHT_MAX: u32 = 65_535;
/// The longest id of a server: as long as an MD5 in hexadecimal.
const ROUTE_MAX: usize = 32;

/// The group being read.
pub(super) fn group(r: &mut ConfReader) -> &mut Upstream {
    r.http.upstreams.last_mut().expect("rows of the block are read after the block is added")
}

/// A group without servers.
pub(super) fn empty(name: &str, kind: UpstreamKind, place: SourcePlace) -> Upstream {
    // In a pool, a child that holds an idle connection could serve no other worker; for a single
    // address this is nginx's choice.
    let idle_max = match kind {
        UpstreamKind::Block => 32,
        UpstreamKind::Address | UpstreamKind::Pool(_) => 0,
    };
    Upstream {
        name: name.into(),
        kind,
        balance: Balance::RoundRobin,
        sticky: None,
        servers: Vec::new(),
        keepalive: Keepalive {
            idle_max,
            requests: 1000,
            time: Duration::from_secs(3600),
            timeout: Duration::from_secs(60),
        },
        queue: None,
        request_timeout: None,
        resolver: None,
        resolver_timeout: None,
        is_shared: false,
        place,
    }
}

/// A server without parameters.
pub(super) fn server_of(name: &str, addresses: Vec<PeerAddress>) -> UpstreamServer {
    UpstreamServer {
        name: name.into(),
        addresses,
        weight: 1,
        max_conns: 0,
        max_fails: 1,
        fail_timeout: Duration::from_secs(10),
        backup: false,
        down: false,
        drain: false,
        route: None,
        resolve: None,
    }
}

fn upstream(r: &mut ConfReader, node: &Node) -> ReadResult {
    let name = node.arg(0);
    let key = GroupKey::named(name);
    if r.http.upstream_index.contains_key(&key) {
        return Err(ReadFault::Text(format!("duplicate upstream \"{}\"", show(name))));
    }
    let place = r.place(node);
    let id = pass::add(r, key, empty(&show(name), UpstreamKind::Block, place.clone()));
    r.http.balance_chosen = false;
    let scope = r.inner_scope(U);
    let _ = r.read_leaf(node, scope);
    let written = node.block.iter().flat_map(|block| &block.nodes);
    let servers = &r.http.upstreams[id.index()].servers;
    if written.clone().all(|inner| inner.name() != b"server") {
        let closed = node.block.as_ref().map_or(node.order, |block| block.closed);
        let message = "no servers are inside upstream";
        let place = Some(r.closing_place(node));
        r.note(closed, Diagnostic::new(LogLevel::Emerg, message, place));
    } else if servers.iter().all(|server| server.backup) {
        let message = format!("no servers in upstream \"{}\"", show(name));
        r.http.upstream_faults.push((node.order, message, Some(place)));
    }
    Ok(())
}

fn server(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    let mut made = server_of(&show(word), Vec::new());
    let mut at_run_time = RunTimeWords::default();
    for word in node.args().skip(1) {
        parameter(r, word, &mut made, &mut at_run_time)?;
    }
    let shown = show(word);
    let service = |why: &str| Err(ReadFault::Text(format!("service upstream \"{shown}\" {why}")));
    if at_run_time.has_service && !at_run_time.resolves {
        return service("requires \"resolve\" parameter");
    }
    let in_upstream = |why: &str| ReadFault::Text(format!("{why} in upstream \"{shown}\""));
    let (host, port) = match peer::cut(word).map_err(in_upstream)? {
        PeerAddressText::Unix(_) if at_run_time.has_service => return service("may not have port"),
        PeerAddressText::Unix(path) => {
            made.addresses = vec![PeerAddress::Unix(path)];
            group(r).servers.push(made);
            return Ok(());
        }
        PeerAddressText::Inet { host, port } => (host, port),
    };
    let is_name = host.parse::<std::net::Ipv4Addr>().is_err() && !host.starts_with('[');
    if at_run_time.has_service {
        return match port {
            Some(_) => service("may not have port"),
            None if !is_name => service("requires domain name"),
            None => {
                let text = "parameter \"service\" is not implemented yet";
                Err(ReadFault::Text(text.to_owned()))
            }
        };
    }
    let port = port.unwrap_or(80);
    if at_run_time.resolves && is_name {
        made.resolve = Some(RunTimeName { host: host.into(), port });
    } else {
        made.addresses = peer::look_up(r, &host, port).map_err(in_upstream)?;
    }
    group(r).servers.push(made);
    Ok(())
}

/// What the parameters of a `server` say about its name.
#[derive(Default)]
struct RunTimeWords {
    /// `resolve`
    resolves: bool,
    /// `service=`
    has_service: bool,
}

/// Reads one parameter of a `server`.
fn parameter(
    r: &mut ConfReader,
    word: &[u8],
    made: &mut UpstreamServer,
    at_run_time: &mut RunTimeWords,
) -> ReadResult {
    let (name, value) = match word.iter().position(|byte| *byte == b'=') {
        Some(at) => word.split_at(at + 1),
        None => (word, &b""[..]),
    };
    let count = || match values::number(value) {
        Some(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        None => Err(invalid_parameter(word)),
    };
    match name {
        b"weight=" => match count()? {
            0 => return Err(invalid_parameter(word)),
            weight => made.weight = weight.min(WEIGHT_MAX),
        },
        b"max_conns=" => made.max_conns = count()?,
        b"max_fails=" => made.max_fails = count()?,
        b"fail_timeout=" => {
            let time = values::time(value, Unit::Seconds);
            made.fail_timeout = time.ok_or_else(|| invalid_parameter(word))?;
        }
        b"backup" => {
            let has_backups = matches!(group(r).balance, Balance::RoundRobin | Balance::LeastConn);
            if !has_backups {
                let text = "balancing method does not support parameter \"backup\"";
                return Err(ReadFault::Text(text.to_owned()));
            }
            made.backup = true;
        }
        b"down" => made.down = true,
        b"drain" => made.drain = true,
        b"route=" => made.route = Some(route(value)?),
        b"resolve" => at_run_time.resolves = true,
        b"service=" if value.is_empty() => {
            return Err(ReadFault::Text("service is empty".to_owned()));
        }
        b"service=" => at_run_time.has_service = true,
        _ => return Err(invalid_parameter(word)),
    }
    Ok(())
}

/// The id of a server.
fn route(value: &[u8]) -> Result<Arc<[u8]>, ReadFault> {
    match value.len() {
        0 => Err(ReadFault::Text("route is empty".to_owned())),
        1..=ROUTE_MAX => Ok(value.into()),
        _ => Err(ReadFault::Text(format!("route is longer than {ROUTE_MAX}"))),
    }
}

fn balance(r: &mut ConfReader, balance: Balance) -> ReadResult {
    if std::mem::replace(&mut r.http.balance_chosen, true) {
        r.warn("load balancing method redefined".to_owned());
    }
    group(r).balance = balance;
    Ok(())
}

fn hash(r: &mut ConfReader, node: &Node) -> ReadResult {
    let key = r.template(node.arg(0))?;
    let consistent = match node.arg(1) {
        b"consistent" => true,
        _ if node.args_count() == 1 => false,
        word => return Err(invalid_parameter(word)),
    };
    balance(r, Balance::Hash { key, consistent })
}

fn random(r: &mut ConfReader, node: &Node) -> ReadResult {
    let wrong = match (node.arg(0), node.arg(1)) {
        _ if node.args_count() == 0 => None,
        (b"two", b"least_conn") => None,
        (b"two", _) if node.args_count() == 1 => None,
        (b"two", word) | (word, _) => Some(word),
    };
    match wrong {
        Some(word) => Err(invalid_parameter(word)),
        None => balance(r, Balance::Random { two: node.args_count() > 0 }),
    }
}

fn keepalive(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    let count = values::number(word).ok_or_else(|| {
        ReadFault::Text(format!("invalid value \"{}\" in \"keepalive\" directive", show(word)))
    })?;
    if node.args_count() == 2 && node.arg(1) != b"local" {
        return Err(invalid_parameter(node.arg(1)));
    }
    group(r).keepalive.idle_max = u32::try_from(count).unwrap_or(u32::MAX);
    Ok(())
}

/// Reads `N [timeout=T]`.
pub(super) fn read_queue(node: &Node, timeout: Duration) -> Result<Queue, ReadFault> {
    let len = values::number(node.arg(0)).and_then(|len| u32::try_from(len).ok());
    let mut queue = Queue { len: len.ok_or(INVALID)?, timeout };
    if node.args_count() == 2 {
        let word = node.arg(1);
        let time = word.strip_prefix(b"timeout=").and_then(|time| values::time(time, Unit::Millis));
        queue.timeout = time.ok_or_else(|| invalid_parameter(word))?;
    }
    Ok(queue)
}

/// Checks name and size, which must not contradict those of other groups.
fn zone(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (name, word) = (node.arg(0), node.arg(1));
    let text = |text: String| Err(ReadFault::Text(text));
    if name.is_empty() {
        return text("invalid zone name \"\"".to_owned());
    }
    let mut size = 0;
    if node.args_count() == 2 {
        let Some(bytes) = values::size(word) else {
            return text(format!("invalid zone size \"{}\"", show(word)));
        };
        if bytes < 8 * 4096 {
            return text(format!("zone \"{}\" is too small", show(name)));
        }
        size = bytes;
    }
    group(r).is_shared = true;
    share(r, name, SharedZone { size, used_by: SharedZoneUse::Group })
}
