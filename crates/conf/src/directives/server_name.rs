//! `server_name`: exact names, wildcards and regular expressions.

use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, own};
use crate::model::ServerName;
use crate::reader::{ConfReader, ReadFault, ReadResult, show};
use crate::regex::LetterCase;

pub(super) const TABLE: &[DirectiveSpec] =
    &[own("server_name", Contexts::SERVER, Args::at_least(1), server_name)
        .doc("The names of the server.", "server_name a.com *.a.com ~^www\\d+;")
        .takes("NAME | *.NAME | NAME.* | .NAME | ~REGEX…")
        .default("\"\"")];

fn server_name(r: &mut ConfReader, node: &Node) -> ReadResult {
    for word in node.args() {
        let invalid = || ReadFault::Text(format!("server name \"{}\" is invalid", show(word)));
        let is_regex = word.first() == Some(&b'~');
        let lone_star = word.starts_with(b"*") && (word.len() < 3 || word[1] != b'.');
        let lone_dot = word.starts_with(b".") && word.len() < 2;
        if lone_star || lone_dot {
            return Err(invalid());
        }
        if !is_regex && word.contains(&b'/') {
            r.warn(format!("server name \"{}\" has suspicious symbols", show(word)));
        }
        if !is_regex && word.contains(&0) {
            return Err(invalid());
        }
        let name = if is_regex { regex(r, word)? } else { plain(r, word) };
        if r.scope.primary_name.is_none() {
            r.scope.primary_name = Some(primary(r, word));
        }
        r.scope.names.push(name);
    }
    Ok(())
}

/// The name for `$server_name`.
fn primary(r: &ConfReader, word: &[u8]) -> Arc<str> {
    if word.eq_ignore_ascii_case(b"$hostname") {
        return r.options.hostname.to_ascii_lowercase().into();
    }
    let text = show(word);
    let text = if text.starts_with('~') { text.into_owned() } else { text.to_ascii_lowercase() };
    text.strip_prefix('.').unwrap_or(&text).into()
}

fn regex(r: &mut ConfReader, word: &[u8]) -> Result<ServerName, ReadFault> {
    let source = &word[1..];
    if source.is_empty() {
        return Err(ReadFault::Text(format!("empty regex in server name \"{}\"", show(word))));
    }
    // Hosts arrive in lower case, so an expression with capitals must ignore case.
    let has_capitals = source.iter().any(u8::is_ascii_uppercase);
    let case = if has_capitals { LetterCase::Insensitive } else { LetterCase::Sensitive };
    r.regex(source, case).map(ServerName::Regex)
}

fn plain(r: &ConfReader, word: &[u8]) -> ServerName {
    let text = if word.eq_ignore_ascii_case(b"$hostname") {
        r.options.hostname.to_ascii_lowercase()
    } else {
        show(word).to_ascii_lowercase()
    };
    if let Some(suffix) = text.strip_prefix('*') {
        return ServerName::Suffix(suffix.into());
    }
    if text.starts_with('.') {
        return ServerName::SuffixOrSelf(text.into());
    }
    match text.strip_suffix(".*") {
        Some(_) => ServerName::Prefix(text[..text.len() - 1].into()),
        None => ServerName::Exact(text.into()),
    }
}
