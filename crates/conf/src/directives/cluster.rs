//! State that several servers share by Valkey, or Redis from 6.2 on: purges reach all servers, and
//! shared pages are fetched once.
//!
//! Every purge that one server carries out, by a response field, a request, a command or the
//! console, is an entry of a stream in Valkey, and the other servers carry it out in the order of
//! the stream, each once. Requests do not wait for Valkey, except misses with `objects`. While a
//! server cannot reach Valkey, it continues alone; afterwards it carries out the missed purges. If
//! purges may have been lost, because the server was disconnected for longer than the stream keeps
//! them or because the stream is damaged, the server drops its whole cache, and logs why. See
//! [scaling.md](../scaling.md).

use std::time::Duration;

use crate::ast::Node;
use crate::directive::{
    Args, Contexts, DirectiveSpec, Inheritance, leaf, millis, number, offset, own, seconds, value,
};
use crate::model::{ClusterAddress, ClusterConf, Secret, SharedObjects};
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, show};

const C: Contexts = Contexts::CLUSTER;
/// Ports of servers and sentinels.
const SERVER_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
/// The least entries of the stream. Each server has a few there at a time: its last purges, and
/// what it adds when it connects or has lost some. With room for less, servers would drive each
/// other's place out of the stream again and again.
const KEEP_COUNT_MIN: u32 = 1000;
/// LIMIT: bytes of a name.
const NAME_MAX: usize = 64;
/// LIMIT: bytes of a body that is shared; replies of Valkey are bounded as well.
const OBJECT_SIZE_MAX: u64 = 16 << 20;
/// LIMIT: how long a node may have a lease, and others wait for it or for Valkey.
const LEASE_MAX: Duration = Duration::from_hours(1);
/// LIMIT: addresses.
const HOSTS_MAX: usize = 16;

pub(super) const TABLE: &[DirectiveSpec] = &[
    leaf("cluster", Contexts::HTTP, Args::ONE, Inheritance::Own, cluster)
        .doc(
            "Shares purges with all servers that have the same Valkey and `namespace`. The address \
             is `valkey://HOST:PORT` or `redis://…`, over TLS `valkeys://…` or `rediss://…`, or \
             `unix:FILE`. Several hosts, separated by commas, are tried in turn. Nodes of a Valkey \
             cluster redirect to the node with the keys, so one of them is enough. With sentinels \
             the address is `valkey-sentinel://HOST:PORT,…/NAME`, where `NAME` is the sentinels' \
             name of the server.",
            "cluster valkey://10.0.0.5:6379 { namespace shop; }",
        )
        .takes("URL | unix:FILE"),
    value("namespace", C, Args::ONE, |r, node| {
        this(r).namespace = name(node.arg(0))?;
        Ok(())
    })
    .doc(
        "The name of the cluster: servers with the same name share their state. All keys in Valkey \
         begin with `bolide:{NAME}:`.",
        "namespace shop;",
    )
    .takes("NAME")
    .default("bolide"),
    value("node", C, Args::ONE, |r, node| {
        this(r).node = Some(name(node.arg(0))?);
        Ok(())
    })
    .doc(
        "The name of this server. Each server must have a different name, and keep it across \
         restarts: Valkey stores the server's position in the stream under this name.",
        "node web-1;",
    )
    .takes("NAME")
    .without("the name of the machine"),
    value("user", C, Args::ONE, |r, node| {
        this(r).user = Some(show(node.arg(0)).into_owned());
        Ok(())
    })
    .doc("The user of an ACL of Valkey.", "user bolide;")
    .takes("NAME")
    .without("the default user"),
    value("password", C, Args::ONE, |r, node| {
        this(r).password = Some(Secret(show(node.arg(0)).into_owned()));
        Ok(())
    })
    .doc("The password of the user.", "password secret;")
    .takes("TEXT")
    .without("none"),
    value("password_file", C, Args::ONE, |r, node| {
        let path = r.beside_conf(node.arg(0));
        this(r).password_file = Some(path);
        Ok(())
    })
    .doc("A file whose first line is the password of the user.", "password_file valkey.pass;")
    .takes("FILE")
    .without("none"),
    value("trusted_certificate", C, Args::ONE, |r, node| {
        if !this(r).address.is_secure() {
            let text = "\"trusted_certificate\" requires an address with TLS, such as \
                        \"valkeys://\" or \"rediss://\"";
            return Err(ReadFault::Text(text.to_owned()));
        }
        let path = r.beside_conf(node.arg(0));
        this(r).trusted_certificate = Some(path);
        Ok(())
    })
    .doc(
        "The authorities by which the certificate of Valkey is verified.",
        "trusted_certificate valkey-ca.pem;",
    )
    .takes("FILE")
    .without("those of the system"),
    millis("reply_timeout", C, |r| &mut this(r).reply_timeout).doc(
        "The timeout of a connection to Valkey, and of each reply. No request waits for it; a \
         start with pages on disk waits up to this time for missed purges before the first \
         request.",
        "reply_timeout 2s;",
    ),
    seconds("purge_keep_time", C, |r| &mut this(r).purge_keep_time).doc(
        "How long the stream keeps purges. A server that was disconnected for longer drops its \
         whole cache.",
        "purge_keep_time 1h;",
    ),
    number("purge_keep_count", C, |r| &mut this(r).purge_keep_count).doc(
        "The maximum number of entries in the stream, at least 1000; concurrent purges share an \
         entry. A server that is behind by more entries drops its whole cache.",
        "purge_keep_count 100000;",
    ),
    number("purge_queue", C, |r| &mut this(r).purge_queue).doc(
        "How many purges of this server may wait while it cannot reach Valkey. If there are more, \
         the server replaces them with one purge of everything on all servers.",
        "purge_queue 10000;",
    ),
    value("objects", C, Args::ONE, |r, node| {
        this(r).objects = match node.arg(0) {
            b"off" => SharedObjects::Off,
            b"public" => SharedObjects::Public,
            b"private" | b"all" => {
                let text = "private objects are not shared: write \"objects public\"";
                return Err(ReadFault::Text(text.to_owned()));
            }
            other => {
                let text = format!("\"objects\" is \"off\" or \"public\", not \"{}\"", show(other));
                return Err(ReadFault::Text(text));
            }
        };
        Ok(())
    })
    .doc(
        "Whether servers share the public objects that they cache: on a miss, a server looks the \
         page up in Valkey before it asks the application, and offers fetched pages to the other \
         servers. While one server fetches a page, the others wait for it, for up to \
         `objects_lease_time`. Private objects are never shared.",
        "objects public;",
    )
    .takes("off | public")
    .default("off"),
    millis("objects_timeout", C, |r| &mut this(r).objects_timeout).doc(
        "How long a miss waits for each reply of Valkey, an hour at most. After three consecutive \
         faults, such as late replies, servers do not look pages up until Valkey replies in time \
         again. Requires `objects public`.",
        "objects_timeout 2ms;",
    ),
    millis("objects_lease_time", C, |r| &mut this(r).objects_lease_time).doc(
        "How long one server may take to fetch a page for all servers, an hour at most. The others \
         wait up to this time, then they ask the application themselves. Requires `objects \
         public`.",
        "objects_lease_time 5s;",
    ),
    offset("objects_max_size", C, |r| &mut this(r).objects_max_size).doc(
        "The maximum size of shared bodies, 16 MiB at most; larger ones stay on the server that \
         has fetched them. Requires `objects public`.",
        "objects_max_size 1m;",
    ),
    number("objects_min_uses", C, |r| &mut this(r).objects_min_uses).doc(
        "How many misses a page needs, on all servers together, before servers share it. Before \
         that, each server fetches the page for itself, at once. After an hour without a miss the \
         count starts again. Each variant of a page with `Vary` has its own count. Requires \
         `objects public`.",
        "objects_min_uses 2;",
    ),
    own("secrets_key", C, Args::ONE, |r, node| {
        let path = r.beside_conf(node.arg(0));
        let place = r.place(node);
        this(r).secrets_keys.push((path, place));
        Ok(())
    })
    .doc(
        "A file with the key for shared secrets: 64 hexadecimal digits, as `openssl rand -hex 32` \
         prints them. The file must belong to root or to the user that starts the server, and only \
         its owner may read it. With it, servers resume each other's TLS sessions: one server \
         creates the ticket keys for all, and Valkey stores them encrypted with this key. Keys for \
         QUIC tokens (Retry, NEW_TOKEN) are derived from it if there is no `quic_host_key`; those \
         for stateless resets are not. One server orders the certificates of `acme_issuer`, \
         including those on demand, and all servers use them, with one account, and answer the \
         issuer's challenges. If there are several keys, the first one encrypts, and all decrypt.",
        "secrets_key cluster.key;",
    )
    .takes("FILE")
    .without("nothing secret is shared"),
];

/// A block without a line.
pub(super) fn empty() -> ClusterConf {
    ClusterConf {
        address: ClusterAddress::Tcp { hosts: Vec::new(), is_secure: true, master: None },
        namespace: "bolide".to_owned(),
        node: None,
        user: None,
        password: None,
        password_file: None,
        trusted_certificate: None,
        reply_timeout: Duration::from_secs(2),
        purge_keep_time: Duration::from_hours(1),
        purge_keep_count: 100_000,
        purge_queue: 10_000,
        objects: SharedObjects::Off,
        objects_timeout: Duration::from_millis(2),
        objects_lease_time: Duration::from_secs(5),
        objects_max_size: 1 << 20,
        objects_min_uses: 1,
        secrets_keys: Vec::new(),
    }
}

fn this(r: &mut ConfReader) -> &mut ClusterConf {
    r.http.cluster.get_or_insert_with(empty)
}

fn cluster(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.http.cluster.is_some() {
        return Err(DUPLICATE);
    }
    let address = address(r, &show(node.arg(0))).map_err(ReadFault::Text)?;
    r.http.cluster = Some(ClusterConf { address, ..empty() });
    let scope = r.inner_scope(C);
    let _ = r.read_leaf(node, scope);
    refuse_idle(r, node);
    let made = this(r);
    if made.password.is_some() && made.password_file.is_some() {
        let text = "\"password\" and \"password_file\" exclude each other";
        return Err(ReadFault::Text(text.to_owned()));
    }
    if made.user.is_some() && made.password.is_none() && made.password_file.is_none() {
        let text = "\"user\" requires \"password\" or \"password_file\"";
        return Err(ReadFault::Text(text.to_owned()));
    }
    if made.purge_queue == 0 || made.reply_timeout.is_zero() || made.purge_keep_time.is_zero() {
        let text = "\"reply_timeout\", \"purge_keep_time\" and \"purge_queue\" must be greater \
                    than zero";
        return Err(ReadFault::Text(text.to_owned()));
    }
    if made.purge_keep_count < KEEP_COUNT_MIN {
        let text = format!(
            "\"purge_keep_count\" must be at least {KEEP_COUNT_MIN}: the entries of all servers \
             have to have room in the stream"
        );
        return Err(ReadFault::Text(text));
    }
    if made.objects_min_uses == 0 {
        let text = "\"objects_min_uses\" must be greater than zero";
        return Err(ReadFault::Text(text.to_owned()));
    }
    let sizes = made.objects_max_size == 0 || made.objects_max_size > OBJECT_SIZE_MAX;
    let [wait, lease] = [made.objects_timeout, made.objects_lease_time];
    if sizes || wait.is_zero() || lease.is_zero() || wait.max(lease) > LEASE_MAX {
        let text = format!(
            "\"objects_timeout\" and \"objects_lease_time\" must be greater than zero and at most \
             an hour, and \"objects_max_size\" from 1 to {OBJECT_SIZE_MAX}"
        );
        return Err(ReadFault::Text(text));
    }
    Ok(())
}

/// Refuses what is said of shared objects where none are shared.
fn refuse_idle(r: &mut ConfReader, node: &Node) {
    if this(r).objects != SharedObjects::Off {
        return;
    }
    let inner = node.block.as_ref().map_or(&[][..], |block| &block.nodes);
    for idle in inner.iter().filter(|inner| inner.name().starts_with(b"objects_")) {
        let text = format!("\"{}\" requires \"objects public\"", show(idle.name()));
        r.judge(idle, Err(ReadFault::Text(text)));
    }
}

/// A name in keys, logs and lists.
fn name(word: &[u8]) -> Result<String, ReadFault> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let text = show(word).into_owned();
    if word.is_empty() || word.len() > NAME_MAX || !word.iter().all(is_plain) {
        return Err(ReadFault::Text(format!(
            "invalid name \"{text}\": it has 1 to {NAME_MAX} letters, digits, \".\", \"_\" or \"-\""
        )));
    }
    Ok(text)
}

fn address(r: &ConfReader, text: &str) -> Result<ClusterAddress, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err("no path in the unix domain socket of \"cluster\"".to_owned()),
            path => Ok(ClusterAddress::Unix(r.beside_conf(path.as_bytes()))),
        };
    }
    let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid(text))?;
    let scheme = scheme.to_ascii_lowercase();
    let (kind, is_sentinel) = match scheme.split_once('-') {
        None | Some((_, "cluster")) => (scheme.trim_end_matches("-cluster"), false),
        Some((kind, "sentinel")) => (kind, true),
        Some(_) => return Err(invalid(text)),
    };
    let is_secure = match kind {
        "valkey" | "redis" => false,
        "valkeys" | "rediss" => true,
        _ => return Err(invalid(text)),
    };
    if rest.contains('@') {
        let text = "the address of \"cluster\" has no user and password: write \"user\" and \
                    \"password\" in the block";
        return Err(text.to_owned());
    }
    let (list, name) = rest.split_once('/').map_or((rest, ""), |(list, name)| (list, name));
    let port = if is_sentinel { SENTINEL_PORT } else { SERVER_PORT };
    let hosts: Option<Vec<_>> = list.split(',').map(|one| host(one, port)).collect();
    let hosts = hosts.filter(|hosts| hosts.len() <= HOSTS_MAX).ok_or_else(|| invalid(text))?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    match (is_sentinel, name) {
        (true, name) if is_name => {
            Ok(ClusterAddress::Tcp { hosts, is_secure, master: Some(name.to_owned()) })
        }
        (true, _) => {
            Err(format!("no name of a server in \"{text}\", expected {scheme}://HOST:PORT/NAME"))
        }
        (false, "") => Ok(ClusterAddress::Tcp { hosts, is_secure, master: None }),
        (false, _) => Err(format!(
            "invalid address \"{text}\": databases are not supported, \"namespace\" separates \
             clusters"
        )),
    }
}

fn invalid(text: &str) -> String {
    format!(
        "invalid address \"{text}\" in \"cluster\", expected valkey://HOST:PORT, \
         valkeys://HOST:PORT, valkey-sentinel://HOST:PORT/NAME or unix:FILE"
    )
}

fn host(text: &str, port: u16) -> Option<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            // `+5` is a number to the parser of numbers.
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            (host, port.parse().ok().filter(|_| is_number)?)
        }
        _ => (text, port),
    };
    let bare = host.strip_prefix('[').map_or(Some(host), |rest| rest.strip_suffix(']'))?;
    let is_v6 = bare.parse::<std::net::Ipv6Addr>().is_ok();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    let is_good = !bare.is_empty() && bare.bytes().all(is_plain) && is_v6 == bare.contains(':');
    (is_good && port > 0 && is_v6 == host.starts_with('[')).then(|| (bare.to_owned(), port))
}
