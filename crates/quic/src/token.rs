//! Tokens of Initial packets that are none of ours: the library would ignore them, nginx closes the
//! connection. Owns finding them, and the packet that says so.

use quinn_proto::ConnectionId;
use quinn_proto::crypto::{HandshakeTokenKey, ServerConfig};

/// QUIC version 1.
const VERSION: u32 = 1;
/// LIMIT: bytes of a connection id (RFC 9000 §17.2).
const CID_MAX: usize = 20;
/// Bytes at the end of a token that its key is derived with.
const NONCE: usize = 16;
/// A long header with a fixed bit, for an Initial packet whose number has one byte.
const INITIAL: u8 = 0xc0;
/// CONNECTION_CLOSE with INVALID_TOKEN, for no frame type, with nginx's words.
const CLOSE: &[u8] = b"\x1c\x0b\x00\x14cannot decrypt token";

/// What an Initial packet has in front of its number.
struct InitialStart<'a> {
    dcid: &'a [u8],
    scid: &'a [u8],
    token: &'a [u8],
}

/// Takes the first `len` bytes off `rest`.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(taken)
}

/// RFC 9000 §17.2: a connection id behind its length.
fn take_cid<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::from(*take(rest, 1)?.first()?);
    if len > CID_MAX { None } else { take(rest, len) }
}

/// RFC 9000 §16.
fn take_varint(rest: &mut &[u8]) -> Option<usize> {
    let first = *rest.first()?;
    let bytes = take(rest, 1 << (first >> 6))?;
    let value = bytes.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    usize::try_from(value & (u64::MAX >> (66 - 8 * bytes.len()))).ok()
}

impl<'a> InitialStart<'a> {
    /// RFC 9000 §17.2.2.
    fn parse(mut rest: &'a [u8]) -> Option<Self> {
        let first = *take(&mut rest, 1)?.first()?;
        if first & 0xf0 != INITIAL || take(&mut rest, 4)? != VERSION.to_be_bytes() {
            return None;
        }
        let (dcid, scid) = (take_cid(&mut rest)?, take_cid(&mut rest)?);
        let len = take_varint(&mut rest)?;
        Some(Self { dcid, scid, token: take(&mut rest, len)? })
    }
}

/// Whether `token` was sealed with `key`.
fn is_ours(token: &[u8], key: &dyn HandshakeTokenKey) -> bool {
    let Some(cut) = token.len().checked_sub(NONCE) else { return false };
    let (sealed, nonce) = token.split_at(cut);
    key.aead_from_hkdf(nonce).open(&mut sealed.to_vec(), &[]).is_ok()
}

/// Writes the answer to a datagram whose Initial packet has a token that `key` has not sealed to
/// `out`, and returns whether there is one. As in nginx it closes the connection, though RFC 9000
/// §8.1.3 would go on as if there was no token.
pub(crate) fn refuse(
    datagram: &[u8],
    key: &dyn HandshakeTokenKey,
    crypto: &dyn ServerConfig,
    out: &mut Vec<u8>,
) -> bool {
    let Some(initial) = InitialStart::parse(datagram) else { return false };
    if initial.token.is_empty() || is_ours(initial.token, key) {
        return false;
    }
    let Ok(keys) = crypto.initial_keys(VERSION, &ConnectionId::new(initial.dcid)) else {
        return false;
    };
    out.clear();
    out.push(INITIAL);
    out.extend_from_slice(&VERSION.to_be_bytes());
    for cid in [initial.scid, initial.dcid] {
        out.push(cid.len() as u8);
        out.extend_from_slice(cid);
    }
    let tag = keys.packet.local.tag_len();
    let len = 1 + CLOSE.len() + tag;
    debug_assert!(len < 64, "the length has one byte");
    // No token, and the length.
    out.extend_from_slice(&[0, len as u8]);
    let number_at = out.len();
    out.push(0);
    out.extend_from_slice(CLOSE);
    out.resize(out.len() + tag, 0);
    keys.packet.local.encrypt(0, out, number_at + 1);
    keys.header.local.encrypt(number_at, out);
    true
}
