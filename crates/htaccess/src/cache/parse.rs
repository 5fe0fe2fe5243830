//! Parses LiteSpeed's directives for the page cache.

use super::{CacheLine, CachePrefix, CacheScopes, DIRECTIVES_MAX};
use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;

fn on_or_off(name: &str, word: &[u8]) -> ParseResult<bool> {
    match &word.to_ascii_lowercase()[..] {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(format!("{name} must be On or Off")),
    }
}

/// `[public | private] LAST`
fn scoped(name: &str, arguments: &[u8]) -> ParseResult<(CacheScopes, Vec<u8>)> {
    let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    let both = CacheScopes { public: true, private: true };
    match &words[..] {
        [last] => Ok((both, last.clone())),
        [first, last] if first.eq_ignore_ascii_case(b"public") => {
            Ok((CacheScopes { private: false, ..both }, last.clone()))
        }
        [first, last] if first.eq_ignore_ascii_case(b"private") => {
            Ok((CacheScopes { public: false, ..both }, last.clone()))
        }
        [first, _] => Err(format!("{name}: '{}' is neither public nor private", shown(first))),
        _ => Err(format!("{name} takes one or two arguments")),
    }
}

fn push(own: &mut Vec<CacheLine>, one: CacheLine) -> ParseResult<()> {
    if own.len() >= DIRECTIVES_MAX {
        return Err(format!("more than {DIRECTIVES_MAX} directives for the cache"));
    }
    own.push(one);
    Ok(())
}

/// `CacheLookup [public | private] on | off`
pub(crate) fn lookup(own: &mut Vec<CacheLine>, arguments: &[u8]) -> ParseResult<()> {
    let (scopes, word) = scoped("CacheLookup", arguments)?;
    push(own, CacheLine::Lookup(scopes, on_or_off("CacheLookup", &word)?))
}

/// `CacheEnable public | private`, `CacheEnable [public | private] /PATH`; `CacheDisable` alike.
/// Without a path it is for everything that the file is for.
pub(crate) fn prefix(
    own: &mut Vec<CacheLine>,
    name: &str,
    arguments: &[u8],
    enabled: bool,
) -> ParseResult<()> {
    let (mut scopes, mut path) = scoped(name, arguments)?;
    let is_scope = [&b"public"[..], b"private"].iter().any(|it| path.eq_ignore_ascii_case(it));
    if is_scope && scopes.public && scopes.private {
        scopes.public = path.eq_ignore_ascii_case(b"public");
        scopes.private = !scopes.public;
        path = b"/".to_vec();
    }
    if path.first() != Some(&b'/') {
        return Err(format!("{name} takes a path with a slash"));
    }
    push(own, CacheLine::Prefix(CachePrefix { path: path.into(), scopes, enabled }))
}

/// `CacheKeyModify clear | -qs:NAME…`
pub(crate) fn key_modify(own: &mut Vec<CacheLine>, arguments: &[u8]) -> ParseResult<()> {
    let mut count = 0;
    for word in ArgumentWords::new(arguments) {
        let is_name = word.len() > 4
            && word[..4].eq_ignore_ascii_case(b"-qs:")
            && !word.iter().any(|byte| byte.is_ascii_whitespace() || *byte == b',');
        if !is_name && !word.eq_ignore_ascii_case(b"clear") {
            return Err(format!("CacheKeyModify: '{}' is not known", shown(&word)));
        }
        push(own, CacheLine::Key(word.into()))?;
        count += 1;
    }
    match count {
        0 => Err("CacheKeyModify requires at least one argument".to_owned()),
        _ => Ok(()),
    }
}

/// `CacheEngine on [esi] [crawler] | off`; the configuration alone switches it on.
pub(crate) fn engine(own: &mut Vec<CacheLine>, arguments: &[u8]) -> ParseResult<()> {
    let word = ArgumentWords::new(arguments).next_word().unwrap_or_default();
    match on_or_off("CacheEngine", &word)? {
        true => Ok(()),
        false => push(own, CacheLine::Off),
    }
}

/// `CacheMaxExpire SECONDS`, `CacheStaleAge SECONDS`
pub(crate) fn time(
    own: &mut Vec<CacheLine>,
    name: &str,
    arguments: &[u8],
    line: fn(u32) -> CacheLine,
) -> ParseResult<()> {
    let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    let [word] = &words[..] else { return Err(format!("{name} takes one argument")) };
    let is_number = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    if !is_number {
        return Err(format!("{name} requires a number of seconds"));
    }
    let seconds = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    push(own, line(seconds.unwrap_or(u32::MAX)))
}

/// `LiteMage on | off`
pub(crate) fn litemage(own: &mut Vec<CacheLine>, arguments: &[u8]) -> ParseResult<()> {
    let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    match &words[..] {
        [word] => push(own, CacheLine::LiteMage(on_or_off("LiteMage", word)?)),
        _ => Err("LiteMage takes one argument".to_owned()),
    }
}
