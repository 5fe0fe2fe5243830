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
/// What the library writes first into a token that it sends in NEW_TOKEN.
const OF_NEW_TOKEN: u8 = 1;
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

/// The keys of tokens.
#[derive(Clone, Copy)]
pub(crate) struct TokenKeys<'a> {
    /// What tokens are sealed with.
    pub(crate) own: &'a dyn HandshakeTokenKey,
    /// What they were sealed with before.
    pub(crate) former: Option<&'a dyn HandshakeTokenKey>,
}

impl TokenKeys<'_> {
    /// Whether a connection with `token` goes on: it is ours, or it came in NEW_TOKEN when the key
    /// was another one, which is as good as none. A Retry token of that time cannot be used.
    fn accept(self, token: &[u8]) -> bool {
        let is_of_new_token = |kind: u8| kind == OF_NEW_TOKEN;
        kind_of(token, self.own).is_some()
            || self.former.and_then(|key| kind_of(token, key)).is_some_and(is_of_new_token)
    }
}

/// The kind of a token that was sealed with `key`.
fn kind_of(token: &[u8], key: &dyn HandshakeTokenKey) -> Option<u8> {
    let (sealed, nonce) = token.split_at_checked(token.len().checked_sub(NONCE)?)?;
    let mut sealed = sealed.to_vec();
    let text = key.aead_from_hkdf(nonce).open(&mut sealed, &[]).ok()?;
    text.first().copied()
}

/// Whether one key opens what the other one seals.
pub(crate) fn is_same_key(one: &dyn HandshakeTokenKey, other: &dyn HandshakeTokenKey) -> bool {
    let (mut sealed, nonce) = (vec![0], [0; NONCE]);
    one.aead_from_hkdf(&nonce).seal(&mut sealed, &[]).is_ok()
        && other.aead_from_hkdf(&nonce).open(&mut sealed, &[]).is_ok()
}

/// Writes the answer to a datagram whose Initial packet has a token of no such key to `out`, and
/// returns whether there is one. As in nginx it closes the connection, though RFC 9000 §8.1.3 would
/// go on as if there was no token.
pub(crate) fn refuse(
    datagram: &[u8],
    keys_of_tokens: TokenKeys<'_>,
    crypto: &dyn ServerConfig,
    out: &mut Vec<u8>,
) -> bool {
    let Some(initial) = InitialStart::parse(datagram) else { return false };
    if initial.token.is_empty() || keys_of_tokens.accept(initial.token) {
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
