//! HTTP/2, with the spellings of older versions.

use super::server::pool;
use crate::ast::Node;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, flag, number, own, value,
};
use crate::reader::{ConfReader, ReadFault, ReadResult, show, size as bytes};
use crate::value::number as number_of;

const H: Contexts = Contexts::HTTP;
const HS: Contexts = Contexts::HS;
const HSL: Contexts = Contexts::HSL;

/// RFC 9113 §6.9.1: the largest flow-control window.
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// RFC 9113 §4.2: the largest frame that a client may allow.
const FRAME_MAX: u32 = (1 << 24) - 1;
/// Bytes that nginx reserves at the front of that buffer.
const RECV_BUFFER_TOO_SMALL: usize = 16;

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("http2", HS, |r| &mut r.scope.http2).doc("Whether HTTP/2 is enabled.", "http2 on;"),
    number("http2_max_concurrent_streams", HS, |r| &mut r.server().h2.max_concurrent_streams)
        .doc("The most concurrent streams of a connection.", "http2_max_concurrent_streams 128;"),
    value("http2_body_preread_size", HS, Args::ONE, preread)
        .doc(
            "Bytes of a body that a client may send before the server reads it.",
            "http2_body_preread_size 64k;",
        )
        .takes("SIZE")
        .default("64k"),
    accepted("http2_recv_buffer_size", H, Args::ONE, DirectiveForm::Check(recv_buffer))
        .doc("Without effect: the buffer sizes itself.", "http2_recv_buffer_size 256k;")
        .takes("SIZE"),
    value("http2_chunk_size", HSL, Args::ONE, chunk_size)
        .doc("The most bytes of a response in one DATA frame.", "http2_chunk_size 8k;")
        .takes("SIZE")
        .default("16k"),
    accepted(
        "http2_pool_size",
        HS,
        Args::ONE,
        DirectiveForm::Check(|_, node| pool(node).map(|_| ())),
    )
    .doc("Without effect: the memory sizes itself.", "http2_pool_size 4k;")
    .takes("SIZE"),
    value("http2_streams_index_size", HS, Args::ONE, |_, node| {
        let size = number_of(node.arg(0)).ok_or(ReadFault::Value("invalid number"))?;
        if !size.unsigned_abs().is_power_of_two() {
            return Err(ReadFault::Value("must be a power of two"));
        }
        Ok(())
    })
    .doc("Without effect: the table sizes itself.", "http2_streams_index_size 32;")
    .takes("NUMBER (a power of two)")
    .without("none; without effect"),
    own("http2_idle_timeout", HS, Args::ONE, obsolete)
        .doc("Obsolete; use `keepalive_timeout`.", "http2_idle_timeout 3m;")
        .takes("TIME")
        .without("none; without effect, with a warning"),
    own("http2_max_field_size", HS, Args::ONE, obsolete)
        .doc("Obsolete; use `large_client_header_buffers`.", "http2_max_field_size 4k;")
        .takes("SIZE")
        .without("none; without effect, with a warning"),
    own("http2_max_header_size", HS, Args::ONE, obsolete)
        .doc("Obsolete; use `large_client_header_buffers`.", "http2_max_header_size 16k;")
        .takes("SIZE")
        .without("none; without effect, with a warning"),
    own("http2_max_requests", HS, Args::ONE, obsolete)
        .doc("Obsolete; use `keepalive_requests`.", "http2_max_requests 1000;")
        .takes("NUMBER")
        .without("none; without effect, with a warning"),
    own("http2_recv_timeout", HS, Args::ONE, obsolete)
        .doc("Obsolete; use `client_header_timeout`.", "http2_recv_timeout 30s;")
        .takes("TIME")
        .without("none; without effect, with a warning"),
    own("http2_max_concurrent_pushes", HS, Args::ONE, obsolete)
        .doc("Obsolete: browsers do not accept server push.", "http2_max_concurrent_pushes 10;")
        .takes("NUMBER")
        .without("none; without effect, with a warning"),
    own("http2_push", HSL, Args::ONE, obsolete)
        .doc("Obsolete: browsers do not accept server push.", "http2_push /style.css;")
        .takes("URI | off")
        .without("none; without effect, with a warning"),
    own("http2_push_preload", HSL, Args::ONE, obsolete)
        .doc("Obsolete: browsers do not accept server push.", "http2_push_preload on;")
        .takes("on | off")
        .without("none; without effect, with a warning"),
];

fn preread(r: &mut ConfReader, node: &Node) -> ReadResult {
    let size = u32::try_from(bytes(node.arg(0))?).ok().filter(|size| *size <= WINDOW_MAX);
    let size = size.ok_or_else(|| {
        ReadFault::Text(format!("the maximum body preread buffer size is {WINDOW_MAX}"))
    })?;
    r.server().h2.body_preread_size = size;
    Ok(())
}

fn recv_buffer(_: &mut ConfReader, node: &Node) -> ReadResult {
    match bytes(node.arg(0))? {
        0..=RECV_BUFFER_TOO_SMALL => Err(ReadFault::Value("value is too small")),
        _ => Ok(()),
    }
}

fn chunk_size(r: &mut ConfReader, node: &Node) -> ReadResult {
    let size = bytes(node.arg(0))?;
    if size == 0 {
        return Err(ReadFault::Text("the http2 chunk size cannot be zero".to_owned()));
    }
    r.settings().http2_chunk_size = u32::try_from(size).unwrap_or(u32::MAX).min(FRAME_MAX);
    Ok(())
}

/// Warns about an obsolete directive, and names its successor if it has one.
fn obsolete(r: &mut ConfReader, node: &Node) -> ReadResult {
    let successor = match node.name() {
        b"http2_idle_timeout" => Some("keepalive_timeout"),
        b"http2_max_field_size" | b"http2_max_header_size" => Some("large_client_header_buffers"),
        b"http2_max_requests" => Some("keepalive_requests"),
        b"http2_recv_timeout" => Some("client_header_timeout"),
        _ => None,
    };
    let name = show(node.name()).into_owned();
    r.warn(match successor {
        Some(other) => {
            format!("the \"{name}\" directive is obsolete, use the \"{other}\" directive instead")
        }
        None => format!("the \"{name}\" directive is obsolete, ignored"),
    });
    Ok(())
}
