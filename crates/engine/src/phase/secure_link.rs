//! `$secure_link`: whether a link is authenticated by its hash.

mod known;

use bolide_conf::model::SecureLink;
use bolide_conf::vars::Template;
use md5::{Digest as _, Md5};

use crate::request::RequestNote;
use crate::vars::{VariableScope, VariableValue};

pub(crate) use known::CompiledSecureLink;

/// Characters of the longest hash that is accepted.
const HASH_MAX: usize = 24;

impl VariableScope<'_> {
    /// `$secure_link`, checked when it is first read. A link whose hash depends on itself is
    /// invalid.
    pub(crate) fn write_secure_link(&self, out: &mut Vec<u8>) -> VariableValue {
        let known = self.request.link.borrow().value.clone();
        let value = known.unwrap_or_else(|| {
            let weighs = std::mem::replace(&mut self.request.link.borrow_mut().is_weighed, true);
            let value = if weighs { log_cycle(self) } else { verify_secure_link(self) };
            self.request.link.borrow_mut().value.get_or_insert(value).clone()
        });
        out.extend_from_slice(value.as_deref().unwrap_or_default());
        VariableValue::when(value.is_some())
    }

    /// `$secure_link_expires`: the result of `$secure_link`, if it was read before.
    pub(crate) fn write_link_expires(&self, out: &mut Vec<u8>) -> VariableValue {
        let mut link = self.request.link.borrow_mut();
        link.is_read = true;
        out.extend_from_slice(link.expires.as_deref().unwrap_or_default());
        VariableValue::when(link.expires.is_some())
    }
}

fn log_cycle(scope: &VariableScope<'_>) -> Option<Box<[u8]>> {
    let text = "cycle while evaluating variable \"secure_link\"";
    scope.request.notes.borrow_mut().push(RequestNote::Text(text.to_owned()));
    None
}

fn verify_secure_link(scope: &VariableScope<'_>) -> Option<Box<[u8]>> {
    let link: &SecureLink = scope.location().settings.secure_link.as_deref()?;
    match (&link.secret, &link.given, &link.hashed) {
        (Some(secret), _, _) => rest_of_link(&scope.request.head().target, secret),
        (None, Some(given), Some(hashed)) => verify_link_hash(scope, given, hashed),
        _ => None,
    }
}

fn verify_link_hash(
    scope: &VariableScope<'_>,
    given: &Template,
    hashed: &Template,
) -> Option<Box<[u8]>> {
    let mut text = Vec::new();
    scope.expand(given, &mut text);
    let mut expires = 0;
    let mut len = text.len();
    if let Some(comma) = memchr::memchr(b',', &text) {
        let digits = &text[comma + 1..];
        expires = bolide_conf::value::number(digits).filter(|expires| *expires > 0)?;
        let mut link = scope.request.link.borrow_mut();
        link.expires = (!link.is_read).then(|| digits.into());
        drop(link);
        len = comma;
    }
    let hash = hash_of(&text[..len])?;
    text.clear();
    scope.expand(hashed, &mut text);
    if Md5::digest(&text)[..] != hash[..] {
        return None;
    }
    let now = i64::try_from(scope.now.unix_seconds()).unwrap_or(i64::MAX);
    let is_over = expires != 0 && expires < now;
    Some((*if is_over { b"0" } else { b"1" }).into())
}

/// Decodes a hash in base64url (RFC 4648 §5).
fn hash_of(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() > HASH_MAX || text.iter().any(|byte| matches!(byte, b'+' | b'/')) {
        return None;
    }
    let plain: Vec<u8> = text
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => *byte,
        })
        .collect();
    let mut hash = Vec::with_capacity(HASH_MAX);
    bolide_base::base64::push_base64(&plain, &mut hash).then_some(hash)?.try_into().ok()
}

/// The rest after the hash in `/prefix/HASH/link`, if the hash is that of `link` and the secret.
fn rest_of_link(target: &[u8], secret: &[u8]) -> Option<Box<[u8]>> {
    let after = |text: &[u8]| memchr::memchr(b'/', text).map(|slash| slash + 1);
    let start = 1 + after(target.get(1..)?)?;
    let end = start + after(&target[start..])?;
    let (digits, link) = (&target[start..end - 1], &target[end..]);
    if digits.len() != 32 || link.is_empty() {
        return None;
    }
    let hash = Md5::new().chain_update(link).chain_update(secret).finalize();
    let digit = |byte: u8| (byte as char).to_digit(16);
    let fits = digits.chunks_exact(2).zip(&hash).all(|(pair, byte)| {
        let value = digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| high << 4 | low);
        value == Some(u32::from(*byte))
    });
    fits.then(|| link.into())
}

#[cfg(test)]
mod tests {
    use super::{hash_of, rest_of_link};

    #[test]
    fn a_hash_has_sixteen_bytes_in_the_letters_of_addresses() {
        assert_eq!(hash_of(b"AAAAAAAAAAAAAAAAAAAAAA").map(|hash| hash[0]), Some(0));
        assert_eq!(hash_of(b"____________________-A==").map(|hash| hash[0]), Some(255));
        assert_eq!(hash_of(b"////////////////////AA"), None);
        assert_eq!(hash_of(b"AAAA"), None);
        assert_eq!(hash_of(b"AAAAAAAAAAAAAAAAAAAAAAAAA"), None, "too long");
    }

    #[test]
    fn the_old_form_hashes_what_follows() {
        // The hash of `linksecret`.
        let hash = "5e814704a28d9bc1914ff19fa0c4a00a";
        let target = format!("/p/{hash}/link");
        assert_eq!(rest_of_link(target.as_bytes(), b"secret").as_deref(), Some(&b"link"[..]));
        assert_eq!(rest_of_link(target.as_bytes(), b"other"), None);
        for target in ["/p", "/p/", "/p/x/link", "/"] {
            assert_eq!(rest_of_link(target.as_bytes(), b"secret"), None);
        }
    }
}
