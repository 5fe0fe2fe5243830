//! `listen`: addresses, socket options, and the rules for several servers on one address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::peer::{UNIX_PATH_MAX, strip_unix};
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, own};
use crate::drafts::ListenedParams;
use crate::model::{Listen, ListenAddress, ListenTransport, SocketOptions, TcpKeepAlive};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_parameter, show};
use crate::value::{self as values, Unit};

pub(super) const TABLE: &[DirectiveSpec] =
    &[own("listen", Contexts::SERVER, Args::at_least(1), listen)
        .doc("An address that the server listens on.", "listen 443 ssl default_server;")
        .takes(
            "HOST[:PORT] | PORT | unix:FILE [default_server] [ssl] [http2 | quic] \
         [proxy_protocol] [OPTION…]",
        )
        .without("`*:80`, or `*:8000` without root's rights")];

/// The parameters of one `listen`, beside its address and socket options.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "these are the words of one directive")]
pub(super) struct ListenOptions {
    options: bool,
    default_server: bool,
    ssl: bool,
    http2: bool,
    quic: bool,
    proxy_protocol: bool,
}

fn listen(r: &mut ConfReader, node: &Node) -> ReadResult {
    r.scope.has_listen = true;
    let addresses = addresses(r, node.arg(0)).map_err(|why| {
        let shown = show(node.arg(0));
        ReadFault::Text(format!("{why} in \"{shown}\" of the \"listen\" directive"))
    })?;
    let (mut asked, mut options) = (ListenOptions::default(), SocketOptions::default());
    for word in node.args().skip(1) {
        parameter(r, word, &mut asked, &mut options)?;
    }
    let transport = if asked.quic { ListenTransport::Quic } else { ListenTransport::Tcp };
    if asked.quic {
        check_quic(&asked, &options)?;
    }
    for address in addresses {
        add(r, address, transport, &asked, &options)?;
    }
    Ok(())
}

/// The addresses that the first argument names.
fn addresses(r: &ConfReader, word: &[u8]) -> Result<Vec<ListenAddress>, &'static str> {
    if let Some(path) = strip_unix(word) {
        use std::os::unix::ffi::OsStrExt as _;
        if path.is_empty() {
            return Err("no path in the unix domain socket");
        }
        if path.len() > UNIX_PATH_MAX {
            return Err("too long path in the unix domain socket");
        }
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
        return Ok(vec![ListenAddress::Unix(path)]);
    }
    let (hosts, ports) = hosts_and_ports(r, word)?;
    let all = ports.flat_map(|port| hosts.iter().map(move |ip| SocketAddr::new(*ip, port)));
    Ok(all.map(ListenAddress::Inet).collect())
}

/// The addresses that a word names; it may name several ports.
fn hosts_and_ports(
    r: &ConfReader,
    word: &[u8],
) -> Result<(Vec<IpAddr>, RangeInclusive<u16>), &'static str> {
    let text = std::str::from_utf8(word).map_err(|_| "invalid host")?;
    if text.starts_with('[') {
        return inet6(text);
    }
    if text.contains(['/', '?']) {
        return Err("invalid host");
    }
    let (host, ports) = match text.split_once(':') {
        Some((host, digits)) => (host, ports(digits)?),
        None if is_ports(text) => ("*", ports(text)?),
        None => (text, PORT..=PORT),
    };
    if host.is_empty() {
        return Err("no host");
    }
    if host == "*" {
        return Ok((vec![Ipv4Addr::UNSPECIFIED.into()], ports));
    }
    let mut found: Vec<IpAddr> = Vec::new();
    for ip in r.addresses(host) {
        if !found.contains(&ip) {
            found.push(ip);
        }
    }
    if found.is_empty() { Err("host not found") } else { Ok((found, ports)) }
}

/// The default port.
const PORT: u16 = 80;

/// Whether a word without a colon is a port or a port range, rather than a host.
fn is_ports(text: &str) -> bool {
    let is_number = |text: &str| values::number(text.as_bytes()).is_some();
    match text.split_once('-') {
        Some((first, last)) => is_number(first) && is_number(last),
        None => is_number(text),
    }
}

fn inet6(text: &str) -> Result<(Vec<IpAddr>, RangeInclusive<u16>), &'static str> {
    let (host, rest) = text[1..].split_once(']').ok_or("invalid host")?;
    let ports = match rest.strip_prefix(':') {
        Some(digits) => ports(digits)?,
        None if rest.is_empty() => PORT..=PORT,
        None => return Err("invalid host"),
    };
    let ip: Ipv6Addr = host.parse().map_err(|_| "invalid IPv6 address")?;
    Ok((vec![ip.into()], ports))
}

/// Reads `PORT` or `FIRST-LAST`.
fn ports(digits: &str) -> Result<RangeInclusive<u16>, &'static str> {
    let port = |digits: &str| {
        let port = values::number(digits.as_bytes()).and_then(|port| u16::try_from(port).ok());
        port.filter(|port| *port > 0).ok_or("invalid port")
    };
    let Some((first, last)) = digits.split_once('-') else {
        return port(digits).map(|port| port..=port);
    };
    let last = port(last)?;
    let first = port(first)?;
    if first > last { Err("invalid port range") } else { Ok(first..=last) }
}

fn parameter(
    r: &mut ConfReader,
    word: &[u8],
    asked: &mut ListenOptions,
    options: &mut SocketOptions,
) -> ReadResult {
    match word {
        b"default_server" | b"default" => asked.default_server = true,
        b"ssl" => asked.ssl = true,
        b"quic" => asked.quic = true,
        b"proxy_protocol" => asked.proxy_protocol = true,
        b"http2" => {
            r.warn(
                "the \"listen ... http2\" directive is deprecated, \
                 use the \"http2\" directive instead"
                    .to_owned(),
            );
            asked.http2 = true;
        }
        _ => {
            socket_option(r, word, options)?;
            asked.options = true;
        }
    }
    Ok(())
}

fn socket_option(r: &mut ConfReader, word: &[u8], options: &mut SocketOptions) -> ReadResult {
    let (name, value) = match word.iter().position(|byte| *byte == b'=') {
        Some(at) => (&word[..=at], &word[at + 1..]),
        None => (word, &b""[..]),
    };
    let whole = |what: &str| {
        let number = values::number(value).and_then(|number| i32::try_from(number).ok());
        number.ok_or_else(|| ReadFault::Text(format!("invalid {what} \"{}\"", show(word))))
    };
    let buffer = |what: &str| {
        let size = values::size(value).and_then(|size| u32::try_from(size).ok());
        size.ok_or_else(|| ReadFault::Text(format!("invalid {what} \"{}\"", show(word))))
    };
    match name {
        b"bind" => {}
        b"reuseport" => options.reuseport = true,
        b"deferred" => options.deferred = true,
        b"multipath" => options.multipath = true,
        b"fastopen=" => options.fastopen = Some(whole("fastopen")?),
        b"rcvbuf=" => options.rcvbuf = Some(buffer("rcvbuf")?),
        b"sndbuf=" => options.sndbuf = Some(buffer("sndbuf")?),
        b"backlog=" => match whole("backlog")? {
            0 => return Err(ReadFault::Text(format!("invalid backlog \"{}\"", show(word)))),
            backlog => options.backlog = Some(backlog),
        },
        b"accept_filter=" => {
            let shown = show(word).into_owned();
            r.warn(format!(
                "accept filters \"{shown}\" are not supported on this platform, ignored"
            ));
        }
        b"ipv6only=" if value.starts_with(b"o") => match value {
            b"on" => options.ipv6only = true,
            b"off" => options.ipv6only = false,
            _ => {
                return Err(ReadFault::Text(format!("invalid ipv6only flags \"{}\"", show(value))));
            }
        },
        b"so_keepalive=" => options.so_keepalive = keepalive(value)?,
        _ => return Err(invalid_parameter(word)),
    }
    options.bind = true;
    Ok(())
}

/// `on`, `off` or `[idle]:[interval]:[count]`.
fn keepalive(value: &[u8]) -> Result<TcpKeepAlive, ReadFault> {
    let text = show(value);
    let invalid = || ReadFault::Text(format!("invalid so_keepalive value: \"{text}\""));
    match value {
        b"on" => return Ok(TcpKeepAlive::On { idle: None, interval: None, count: None }),
        b"off" => return Ok(TcpKeepAlive::Off),
        _ => {}
    }
    let mut fields = text.splitn(3, ':');
    let mut time = || match fields.next() {
        None | Some("") => Ok(None),
        Some(field) => values::time(field.as_bytes(), Unit::Seconds).map(Some).ok_or_else(invalid),
    };
    let (idle, interval) = (time()?, time()?);
    let count = match fields.next() {
        None | Some("") => None,
        Some(field) => {
            let count =
                values::number(field.as_bytes()).and_then(|count| u32::try_from(count).ok());
            Some(count.ok_or_else(invalid)?)
        }
    };
    if idle.is_none() && interval.is_none() && count.is_none() {
        return Err(invalid());
    }
    Ok(TcpKeepAlive::On { idle, interval, count })
}

/// Refuses options that make no sense on a datagram socket.
fn check_quic(asked: &ListenOptions, options: &SocketOptions) -> ReadResult {
    let wrong = [
        (options.fastopen.is_some(), "\"fastopen\" parameter is incompatible with \"quic\""),
        (options.backlog.is_some(), "\"backlog\" parameter is incompatible with \"quic\""),
        (options.deferred, "\"deferred\" parameter is incompatible with \"quic\""),
        (options.multipath, "\"multipath\" parameter is incompatible with \"quic\""),
        (asked.ssl, "\"ssl\" parameter is incompatible with \"quic\""),
        (asked.http2, "\"http2\" parameter is incompatible with \"quic\""),
        (
            options.so_keepalive != TcpKeepAlive::Unset,
            "\"so_keepalive\" parameter is incompatible with \"quic\"",
        ),
        (asked.proxy_protocol, "\"proxy_protocol\" parameter is incompatible with \"quic\""),
    ];
    match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, text)) => Err(ReadFault::Value(text)),
        None => Ok(()),
    }
}

/// Adds the current server to an address, new or known.
pub(super) fn add(
    r: &mut ConfReader,
    address: ListenAddress,
    transport: ListenTransport,
    asked: &ListenOptions,
    options: &SocketOptions,
) -> ReadResult {
    let id = r.server_id();
    let key = (transport, address);
    let Some(&at) = r.http.listen_index.get(&key) else {
        let address = key.1.clone();
        r.http.listen_index.insert(key, r.http.listens.len());
        r.http.listens.push(Listen {
            address,
            transport,
            tls: asked.ssl || asked.quic,
            http2: asked.http2,
            proxy_protocol: asked.proxy_protocol,
            default_server: id,
            servers: vec![id],
            options: options.clone(),
        });
        r.http.listened.push(ListenedParams {
            options: asked.options,
            default_server: asked.default_server,
            ..ListenedParams::default()
        });
        return Ok(());
    };
    let (known, said) = (&mut r.http.listens[at], &mut r.http.listened[at]);
    let shown = known.address.to_string();
    // Servers are read one after the other, so its own earlier `listen` can only be the last entry.
    if known.servers.last() == Some(&id) {
        return Err(ReadFault::Text(format!("a duplicate listen {shown}")));
    }
    known.servers.push(id);
    if asked.options {
        if said.options {
            return Err(ReadFault::Text(format!("duplicate listen options for {shown}")));
        }
        known.options = options.clone();
    }
    if asked.default_server {
        if said.default_server {
            return Err(ReadFault::Text(format!("a duplicate default server for {shown}")));
        }
        said.default_server = true;
        known.default_server = id;
    }
    let redefined = said.redefines(bits(known.proxy_protocol, known.tls, known.http2), asked);
    said.options |= asked.options;
    known.tls |= asked.ssl || asked.quic;
    known.http2 |= asked.http2;
    known.proxy_protocol |= asked.proxy_protocol;
    if redefined {
        r.warn(format!("protocol options redefined for {shown}"));
    }
    Ok(())
}

const fn bits(proxy_protocol: bool, tls: bool, http2: bool) -> u8 {
    proxy_protocol as u8 | (tls as u8) << 1 | (http2 as u8) << 2
}

impl ListenedParams {
    /// Records the protocols of one more `listen`; returns whether they contradict earlier ones.
    ///
    /// Adding protocols once is allowed, and so is omitting them afterwards. Any later difference
    /// is an error, because protocols apply to all servers of the address.
    fn redefines(&mut self, before: u8, asked: &ListenOptions) -> bool {
        let now = bits(asked.proxy_protocol, asked.ssl || asked.quic, asked.http2);
        let differs = self.protocols_set && now != self.protocols;
        let redefined;
        if now | before != before {
            redefined =
                (self.options && !asked.options) || self.protocols_changed || now | before != now;
            self.protocols = before;
            self.protocols_changed = true;
        } else if now != before {
            redefined = asked.options || differs;
            self.protocols = now;
            self.protocols_changed = true;
        } else {
            redefined = (asked.options && self.protocols_changed) || differs;
            self.protocols = now;
        }
        self.protocols_set = true;
        redefined
    }
}
