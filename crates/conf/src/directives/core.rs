//! The `http` block, and the settings of connections and responses of every kind.

use std::sync::Arc;

use super::peer::{PeerAddressText, cut, look_up};
use crate::ast::Node;
use crate::choice::{chosen, say_once};
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, block, buffers, flag, list, millis,
    size, value,
};
use crate::model::{
    IfModifiedSince, KeepaliveDisable, LingeringClose, LocationSettings, NameServers, PeerAddress,
    PortInRedirect, Satisfy, ServerTokens,
};
use crate::reader::{
    ConfReader, DUPLICATE, INVALID, ReadFault, ReadResult, invalid_value, show, size as bytes,
};
use crate::value::{self as values, Unit};
use crate::vars::Template;

const H: Contexts = Contexts::HTTP;
const HSL: Contexts = Contexts::HSL;

/// The port of a name server without one.
const NAMES_PORT: u16 = 53;

pub(super) const TABLE: &[DirectiveSpec] = &[
    block("http", Contexts::MAIN, Args::NONE, http)
        .doc("The settings of the HTTP server.", "http { server { listen 80; } }"),
    value("keepalive_timeout", HSL, Args::between(1, 2), keepalive_timeout)
        .doc(
            "How long an idle connection stays open; the second value is for the `Keep-Alive` \
             field.",
            "keepalive_timeout 75s;",
        )
        .takes("TIME [SECONDS]")
        .default("75s"),
    millis("keepalive_min_timeout", HSL, |r| &mut r.settings().keepalive_min_timeout).doc(
        "Without effect: how long an idle connection stays open after the server began to drain.",
        "keepalive_min_timeout 1s;",
    ),
    millis("keepalive_time", HSL, |r| &mut r.settings().keepalive_time)
        .doc("The longest lifetime of a connection.", "keepalive_time 1h;"),
    value("keepalive_requests", HSL, Args::ONE, |r, node| {
        let number = values::number(node.arg(0)).ok_or(ReadFault::Value("invalid number"))?;
        r.settings().keepalive_requests = number.unsigned_abs();
        Ok(())
    })
    .doc("The most requests over one connection.", "keepalive_requests 1000;")
    .takes("NUMBER")
    .default("1000"),
    list("keepalive_disable", HSL, Args::between(1, 2), keepalive_disable)
        .doc(
            "Browsers whose connections close: old MSIE behind a POST, Safari behind each answer.",
            "keepalive_disable msie6;",
        )
        .takes("none | msie6 | safari…")
        .default("msie6"),
    millis("send_timeout", HSL, |r| &mut r.settings().send_timeout)
        .doc("The longest pause between two writes of a response.", "send_timeout 60s;"),
    value("lingering_close", HSL, Args::ONE, lingering_close)
        .doc("Without effect: connections linger as with `on`.", "lingering_close on;")
        .takes("off | on | always")
        .default("on"),
    millis("lingering_time", HSL, |r| &mut r.settings().lingering_time)
        .doc("How long what the client still sends is read before closing.", "lingering_time 30s;"),
    millis("lingering_timeout", HSL, |r| &mut r.settings().lingering_timeout)
        .doc("The longest wait for more data during such reading.", "lingering_timeout 5s;"),
    flag("reset_timedout_connection", HSL, |r| &mut r.settings().reset_timedout_connection)
        .doc("Whether connections that timed out are reset.", "reset_timedout_connection on;"),
    flag("sendfile", Contexts::HSLI, |r| &mut r.settings().sendfile)
        .doc("Without effect: files leave with sendfile() where that is possible.", "sendfile on;"),
    value("sendfile_max_chunk", HSL, Args::ONE, |r, node| {
        r.settings().sendfile_max_chunk = values::size(node.arg(0)).ok_or(INVALID)?;
        Ok(())
    })
    .doc("Without effect: the server bounds what one call sends.", "sendfile_max_chunk 2m;")
    .takes("SIZE")
    .default("2m"),
    flag("tcp_nopush", HSL, |r| &mut r.settings().tcp_nopush)
        .doc("Without effect: the head and the body are sent together.", "tcp_nopush on;"),
    flag("tcp_nodelay", HSL, |r| &mut r.settings().tcp_nodelay)
        .doc("Without effect: small pieces are sent at once (TCP_NODELAY).", "tcp_nodelay on;"),
    value("directio", HSL, Args::ONE, directio)
        .doc("Without effect: files are read through the kernel's page cache.", "directio 4m;")
        .takes("BYTES | off")
        .default("off"),
    buffers("output_buffers", HSL, |r| &mut r.settings().output_buffers)
        .doc("Without effect: the buffers size themselves.", "output_buffers 2 32k;"),
    value("limit_rate", Contexts::HSLI, Args::ONE, |r, node| {
        r.settings().limit_rate = Some(rate(r, node)?);
        Ok(())
    })
    .doc("The rate limit of one response, in bytes per second.", "limit_rate 500k;")
    .takes("SIZE | TEXT")
    .without("0: no limit"),
    value("limit_rate_after", Contexts::HSLI, Args::ONE, |r, node| {
        r.settings().limit_rate_after = Some(rate(r, node)?);
        Ok(())
    })
    .doc("Bytes of a response before the rate limit applies.", "limit_rate_after 1m;")
    .takes("SIZE | TEXT")
    .without("0"),
    value("satisfy", HSL, Args::ONE, satisfy)
        .doc("Whether all access checks must pass, or any of them.", "satisfy any;")
        .takes("all | any")
        .default("all"),
    value("server_tokens", HSL, Args::ONE, server_tokens)
        .doc("Whether `Server` and error pages show the version.", "server_tokens off;")
        .takes("on | off | build")
        .default("on"),
    flag("absolute_redirect", HSL, |r| &mut r.settings().absolute_redirect)
        .doc("Whether redirects are absolute.", "absolute_redirect off;"),
    value("port_in_redirect", HSL, Args::ONE, |r, node| {
        let word = node.arg(0);
        r.settings().port_in_redirect = match word.eq_ignore_ascii_case(b"host") {
            true => PortInRedirect::Host,
            false if crate::reader::flag("port_in_redirect", word)? => PortInRedirect::Listen,
            false => PortInRedirect::None,
        };
        Ok(())
    })
    .doc(
        "Whether redirects contain the port: that of the `listen`, or with `host` the one that the \
         request's `Host` has, if it has one.",
        "port_in_redirect off;",
    )
    .takes("on | off | host")
    .default("on"),
    flag("server_name_in_redirect", HSL, |r| &mut r.settings().server_name_in_redirect).doc(
        "Whether redirects contain the first server name instead of the request's host.",
        "server_name_in_redirect on;",
    ),
    flag("etag", HSL, |r| &mut r.settings().etag).doc("Whether files get an `ETag`.", "etag off;"),
    value("if_modified_since", HSL, Args::ONE, if_modified_since)
        .doc("How `If-Modified-Since` is compared.", "if_modified_since before;")
        .takes("off | exact | before")
        .default("exact"),
    value("max_ranges", HSL, Args::ONE, |r, node| {
        let number = values::number(node.arg(0)).ok_or(ReadFault::Value("invalid number"))?;
        r.settings().max_ranges = Some(u32::try_from(number).unwrap_or(u32::MAX));
        Ok(())
    })
    .doc("The most ranges in a request; 0 disables range requests.", "max_ranges 16;")
    .takes("NUMBER")
    .without("no limit"),
    flag("chunked_transfer_encoding", HSL, |r| &mut r.settings().chunked_transfer_encoding)
        .doc("Whether HTTP/1.1 responses may be chunked.", "chunked_transfer_encoding on;"),
    flag("msie_padding", HSL, |r| &mut r.settings().msie_padding)
        .doc("Without effect: error pages are not padded for old MSIE.", "msie_padding off;"),
    list("resolver", HSL, Args::at_least(1), resolver)
        .doc(
            "The servers asked for names that variables give, and for `server … resolve`. Answers \
             are good for their TTL, or for `valid`; `status_zone` is without effect.",
            "resolver 127.0.0.53 valid=30s ipv6=off;",
        )
        .takes("HOST… [valid=SECONDS] [ipv4=on|off] [ipv6=on|off] [status_zone=NAME]")
        .without("none"),
    millis("resolver_timeout", HSL, |r| &mut r.settings().resolver_timeout)
        .doc("How long a request waits for a name.", "resolver_timeout 5s;"),
    value("aio", HSL, Args::ONE, aio)
        .doc("Without effect: the way to read files is chosen automatically.", "aio threads;")
        .takes("on | off | threads[=NAME]")
        .default("off"),
    list("early_hints", HSL, Args::at_least(1), |r, node| {
        let more = super::cache::texts(r, node)?;
        let again = r.again;
        let texts = &mut r.settings().early_hints;
        if !again {
            *texts = Arc::default();
        }
        Arc::make_mut(texts).extend(more);
        Ok(())
    })
    .doc(
        "103 responses of an upstream are passed on when one of these is neither empty nor `0`.",
        "early_hints $http2;",
    )
    .takes("TEXT…")
    .without("none is passed on"),
    accepted("aio_write", HSL, Args::ONE, DirectiveForm::Flag)
        .doc("Without effect: temporary files are written automatically.", "aio_write on;"),
    accepted("read_ahead", HSL, Args::ONE, DirectiveForm::Size)
        .doc("Without effect: the kernel chooses the read-ahead.", "read_ahead 512k;"),
    accepted("directio_alignment", HSL, Args::ONE, DirectiveForm::Offset)
        .doc("Without effect: the alignment for `directio`.", "directio_alignment 512;"),
    accepted("send_lowat", HSL, Args::ONE, DirectiveForm::Check(lowat))
        .doc("Without effect: the least free space of a writable socket.", "send_lowat 0;")
        .takes("SIZE"),
    accepted("postpone_output", HSL, Args::ONE, DirectiveForm::Size)
        .doc("Without effect: the least data to send at once.", "postpone_output 1460;"),
    accepted("msie_refresh", HSL, Args::ONE, DirectiveForm::Flag)
        .doc("Without effect: refreshes instead of redirects for old MSIE.", "msie_refresh off;"),
    millis("auth_delay", HSL, |r| &mut r.settings().auth_delay)
        .doc("The delay of a 401 response.", "auth_delay 1s;"),
    size("subrequest_output_buffer_size", HSL, |r| {
        &mut Arc::make_mut(&mut r.settings().filters).subrequest_buffer
    })
    .doc(
        "The largest response that an SSI include can store in a variable.",
        "subrequest_output_buffer_size 4k;",
    ),
    accepted("variables_hash_max_size", H, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "variables_hash_max_size 1024;"),
    accepted("variables_hash_bucket_size", H, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "variables_hash_bucket_size 64;"),
];

fn http(r: &mut ConfReader, node: &mut Node) -> ReadResult {
    if r.http.settings.is_some() {
        return Err(DUPLICATE);
    }
    r.http.log_formats.push(super::combined());
    let mut scope = r.inner_scope(H);
    let error_log = Arc::clone(&r.main.error_log);
    Arc::<LocationSettings>::make_mut(&mut scope.settings).error_log = error_log;
    // A second block is refused even when this one is malformed.
    r.http.settings = Some(Arc::clone(&scope.settings));
    r.http.closed = node.block.as_ref().map_or(node.order, |block| block.closed);
    r.http.closed_at = r.closing_place(node);
    let scope = r.read_inner(node, scope);
    r.http.written = scope.written;
    r.http.settings = Some(scope.settings);
    Ok(())
}

fn keepalive_timeout(r: &mut ConfReader, node: &Node) -> ReadResult {
    let timeout = values::time(node.arg(0), Unit::Millis).ok_or(INVALID)?;
    // As in nginx, an outer block's second value stays where the inner one has none.
    let header = match node.args_count() {
        1 => r.scope.settings.keepalive_header,
        _ => Some(values::time(node.arg(1), Unit::Seconds).ok_or(INVALID)?),
    };
    r.settings().keepalive_timeout = timeout;
    r.settings().keepalive_header = header;
    Ok(())
}

fn keepalive_disable(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut disable = KeepaliveDisable { msie6: false, safari: false };
    if r.again {
        disable = r.settings().keepalive_disable;
    }
    let mut none = false;
    for word in node.args() {
        let bit = match &*word.to_ascii_lowercase() {
            b"none" => &mut none,
            b"msie6" => &mut disable.msie6,
            b"safari" => &mut disable.safari,
            _ => return Err(invalid_value(word)),
        };
        *bit = true;
        say_once(r, node, word);
    }
    r.settings().keepalive_disable = disable;
    Ok(())
}

fn lingering_close(r: &mut ConfReader, node: &Node) -> ReadResult {
    let choices = [
        ("off", LingeringClose::Off),
        ("on", LingeringClose::On),
        ("always", LingeringClose::Always),
    ];
    r.settings().lingering_close = chosen(node, &choices)?;
    Ok(())
}

/// A size without effect on this system.
pub(super) fn lowat(r: &mut ConfReader, node: &Node) -> ReadResult {
    bytes(node.arg(0))?;
    r.warn(format!("\"{}\" is not supported, ignored", show(node.name())));
    Ok(())
}

fn directio(r: &mut ConfReader, node: &Node) -> ReadResult {
    r.settings().directio = match node.arg(0) {
        b"off" => None,
        word => Some(values::offset(word).ok_or(INVALID)?),
    };
    Ok(())
}

/// Bytes, or a text with variables that evaluates to them.
pub(super) fn rate(r: &mut ConfReader, node: &Node) -> Result<Template, ReadFault> {
    let template = r.template(node.arg(0))?;
    match template.as_text() {
        Some(text) => {
            let bytes = values::size(text).ok_or(INVALID)?;
            Ok(Template::text(bytes.to_string().as_bytes()))
        }
        None => Ok(template),
    }
}

fn satisfy(r: &mut ConfReader, node: &Node) -> ReadResult {
    let choices = [("all", Satisfy::All), ("any", Satisfy::Any)];
    r.settings().satisfy = chosen(node, &choices)?;
    Ok(())
}

fn server_tokens(r: &mut ConfReader, node: &Node) -> ReadResult {
    let choices =
        [("off", ServerTokens::Off), ("on", ServerTokens::On), ("build", ServerTokens::Build)];
    r.settings().server_tokens = chosen(node, &choices)?;
    Ok(())
}

fn if_modified_since(r: &mut ConfReader, node: &Node) -> ReadResult {
    let choices = [
        ("off", IfModifiedSince::Off),
        ("exact", IfModifiedSince::Exact),
        ("before", IfModifiedSince::Before),
    ];
    r.settings().if_modified_since = chosen(node, &choices)?;
    Ok(())
}

fn resolver(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.again {
        return Err(DUPLICATE);
    }
    let servers = name_servers(r, node)?;
    r.settings().resolver = servers;
    Ok(())
}

/// Reads name servers and their parameters; `None` if only sockets are named, which answer no
/// questions.
pub(super) fn name_servers(
    r: &ConfReader,
    node: &Node,
) -> Result<Option<Arc<NameServers>>, ReadFault> {
    let mut made = NameServers { servers: Vec::new(), valid: None, ipv4: true, ipv6: true };
    let mut has_server = false;
    for word in node.args() {
        let text = show(word);
        let (name, value) = text.split_once('=').unwrap_or((&text, ""));
        let fits = match name {
            "valid" => {
                let time = values::time(value.as_bytes(), Unit::Seconds);
                // As in nginx, 0 is the TTL.
                made.valid = time.map(|time| time.as_secs()).filter(|seconds| *seconds > 0);
                time.is_some()
            }
            "ipv4" => on_or_off(value, &mut made.ipv4),
            "ipv6" => on_or_off(value, &mut made.ipv6),
            "status_zone" => !value.is_empty(),
            _ => {
                has_server = true;
                add_name_server(r, word, &mut made)
                    .map_err(|why| ReadFault::Text(format!("{why} in resolver \"{text}\"")))?;
                true
            }
        };
        if !fits {
            return Err(ReadFault::Text(format!("invalid parameter: {text}")));
        }
    }
    if !has_server {
        return Err(ReadFault::Text("no name servers defined".to_owned()));
    }
    if !made.ipv4 && !made.ipv6 {
        return Err(ReadFault::Text("\"ipv4\" and \"ipv6\" cannot both be \"off\"".to_owned()));
    }
    Ok(Some(made).filter(|made| !made.servers.is_empty()).map(Arc::new))
}

fn on_or_off(value: &str, into: &mut bool) -> bool {
    *into = value == "on";
    matches!(value, "on" | "off")
}

/// Adds a server; all addresses of a name.
fn add_name_server(
    r: &ConfReader,
    word: &[u8],
    made: &mut NameServers,
) -> Result<(), &'static str> {
    let PeerAddressText::Inet { host, port } = cut(word)? else { return Ok(()) };
    let addresses = look_up(r, &host, port.unwrap_or(NAMES_PORT))?;
    made.servers.extend(addresses.iter().filter_map(|address| match address {
        PeerAddress::Inet(address) => Some(*address),
        PeerAddress::Unix(_) => None,
    }));
    Ok(())
}

fn aio(r: &mut ConfReader, node: &Node) -> ReadResult {
    match node.arg(0) {
        b"off" | b"threads" => Ok(()),
        b"on" => Err(ReadFault::Text("\"aio on\" is unsupported on this platform".to_owned())),
        word => match word.strip_prefix(b"threads=") {
            Some(pool) => {
                if r.template(pool)?.as_text().is_some() {
                    let place = r.place(node);
                    r.wanted_pools.push((show(pool).into_owned(), place));
                }
                Ok(())
            }
            None => Err(INVALID),
        },
    }
}
