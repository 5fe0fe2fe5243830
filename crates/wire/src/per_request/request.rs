//! Encodes the head of a request: uwsgi's packet of variables, or SCGI's netstring of headers.
//!
//! Refuses what would be read as something else: a packet beyond its length, a zero byte in a
//! header.

use bolide_http::{AppForm, AppMessage, Params};

/// The first header of SCGI, which has the length of the body.
const LENGTH_NAME: &[u8] = b"CONTENT_LENGTH";
/// The zero bytes of a header of SCGI.
const ZEROS: usize = 2;
/// Bytes that uwsgi has before the variables.
const PACKET_HEADER: usize = 4;

/// Appends the head; `None` if the protocol cannot encode it.
pub(super) fn push(out: &mut Vec<u8>, asked: &AppMessage, body_len: u64) -> Option<()> {
    match &asked.form {
        AppForm::Uwsgi { modifiers, text } => push_packet(out, &asked.params, *modifiers, text),
        AppForm::Scgi => push_netstring(out, &asked.params, body_len),
    }
}

/// Appends `modifier1`, the length of the variables and the text behind them, `modifier2`, and
/// these.
fn push_packet(
    out: &mut Vec<u8>,
    params: &Params,
    [modifier1, modifier2]: [u8; 2],
    text: &[u8],
) -> Option<()> {
    let size = AppForm::packet_size(params, text);
    let [low, high] = u16::try_from(size).ok()?.to_le_bytes();
    out.reserve(PACKET_HEADER + size);
    out.extend_from_slice(&[modifier1, low, high, modifier2]);
    for (name, value) in params.iter() {
        for part in [name, value] {
            // Neither is longer than the packet.
            out.extend_from_slice(&(part.len() as u16).to_le_bytes());
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(text);
    debug_assert!(out.len() >= PACKET_HEADER + size, "a packet has the length in its header");
    Some(())
}

/// Appends `SIZE:`, the headers with a zero byte behind each name and each value, and a comma.
fn push_netstring(out: &mut Vec<u8>, params: &Params, body_len: u64) -> Option<()> {
    let is_broken = |part: &[u8]| memchr::memchr(0, part).is_some();
    if params.iter().any(|(name, value)| is_broken(name) || is_broken(value)) {
        return None;
    }
    let length = body_len.to_string();
    let own = (LENGTH_NAME, length.as_bytes());
    // A second length that contradicts would have the application wait for a body.
    let is_false = |name, value: &[u8]| name == LENGTH_NAME && !value.is_empty() && value != own.1;
    let others = || params.iter().filter(|(name, value)| !is_false(*name, value));
    let headers = || std::iter::once(own).chain(others());
    let size: usize = headers().map(|(name, value)| name.len() + value.len() + ZEROS).sum();
    out.extend_from_slice(format!("{size}:").as_bytes());
    out.reserve(size + 1);
    for (name, value) in headers() {
        for part in [name, value] {
            out.extend_from_slice(part);
            out.push(0);
        }
    }
    debug_assert!(out.ends_with(&[0]), "every header ends");
    out.push(b',');
    Some(())
}
