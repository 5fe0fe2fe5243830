//! Header fields set and cleared: `more_set_headers`, `more_set_input_headers` and their kin.
//!
//! Directives of outer blocks hold in inner ones, too, and come first. Fields that frame messages
//! (`Content-Length`, `Transfer-Encoding`, `Connection` …) cannot be edited.

use std::sync::Arc;

use bolide_http::Name;
use bolide_http::structured::is_token;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, list};
use crate::model::edits::is_framing;
use crate::model::{HeaderEdit, HeaderEditMode, HeaderEdits};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};
use crate::vars::Template;

const SOME: Args = Args::at_least(1);

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("more_set_headers", Contexts::HSLI, SOME, |r, node| {
        let edits = read(r, node, Does::Set, Of::Answer)?;
        Arc::make_mut(&mut r.settings().edits).push(edits);
        Ok(())
    })
    .doc(
        "Sets fields of responses with any status, in place of what is there; outer blocks' hold \
         as well.",
        "more_set_headers -s '404 500' -t text/html 'X-Source: $host' 'Server: web';",
    )
    .takes("[-s 'CODE…'] [-t 'TYPE…'] [-a] 'NAME: TEXT'…")
    .without("none"),
    list("more_clear_headers", Contexts::HSLI, SOME, |r, node| {
        let edits = read(r, node, Does::Clear, Of::Answer)?;
        Arc::make_mut(&mut r.settings().edits).push(edits);
        Ok(())
    })
    .doc(
        "Removes fields of responses; outer blocks' hold as well.",
        "more_clear_headers Server 'X-Hidden-*';",
    )
    .takes("[-s 'CODE…'] [-t 'TYPE…'] NAME | NAME*…")
    .without("none"),
    list("more_set_input_headers", Contexts::HSLI, SOME, |r, node| {
        let edits = read(r, node, Does::Set, Of::Request)?;
        Arc::make_mut(&mut r.settings().input_edits).push(edits);
        Ok(())
    })
    .doc(
        "Sets fields of requests at the end of the rewrite phase, with `-r` those that are there; \
         outer blocks' hold as well.",
        "more_set_input_headers -r 'Accept-Language: en';",
    )
    .takes("[-r] [-t 'TYPE…'] 'NAME: TEXT'…")
    .without("none"),
    list("more_clear_input_headers", Contexts::HSLI, SOME, |r, node| {
        let edits = read(r, node, Does::Clear, Of::Request)?;
        Arc::make_mut(&mut r.settings().input_edits).push(edits);
        Ok(())
    })
    .doc(
        "Removes fields of requests at the end of the rewrite phase; outer blocks' hold as well.",
        "more_clear_input_headers 'X-Secret-*' Accept-Encoding;",
    )
    .takes("[-t 'TYPE…'] NAME | NAME*…")
    .without("none"),
];

/// What a directive does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Set,
    Clear,
}

/// Whose fields it is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Answer,
    Request,
}

fn read(r: &mut ConfReader, node: &Node, does: Does, of: Of) -> Result<HeaderEdits, ReadFault> {
    let mode = HeaderEditMode::Set;
    let (statuses, types, edits) = (Vec::new(), Vec::new(), Vec::new());
    let mut all = HeaderEdits { statuses, types, mode, edits };
    let mut words = node.args();
    while let Some(word) = words.next() {
        let argument = |next: Option<&[u8]>| match next {
            Some(next) => Ok(next.to_vec()),
            None => Err(fault(node, format_args!("option {} takes an argument", show(word)))),
        };
        match word {
            b"-s" if of == Of::Answer => statuses_of(node, &argument(words.next())?, &mut all)?,
            b"-t" => {
                let types = argument(words.next())?;
                let types = types.split(|byte| byte.is_ascii_whitespace());
                all.types.extend(types.filter(|one| !one.is_empty()).map(Box::from));
            }
            b"-a" if does == Does::Set && of == Of::Answer => all.mode = HeaderEditMode::Append,
            // As in nginx: what is removed is there.
            b"-r" if of == Of::Request => all.mode = HeaderEditMode::Replace,
            [b'-', ..] => {
                let name = show(word);
                return Err(fault(node, format_args!("invalid option name: \"{name}\"")));
            }
            _ => all.edits.push(edit(r, node, word, does, of)?),
        }
    }
    Ok(all)
}

fn fault(node: &Node, text: std::fmt::Arguments<'_>) -> ReadFault {
    ReadFault::Text(format!("{}: {text}", show(node.name())))
}

/// Reads `404 500`.
fn statuses_of(node: &Node, text: &[u8], all: &mut HeaderEdits) -> ReadResult {
    let is_odd = |byte: &&u8| !byte.is_ascii_digit() && !byte.is_ascii_whitespace();
    if let Some(odd) = text.iter().find(is_odd) {
        let (odd, list) = (show(std::slice::from_ref(odd)).into_owned(), show(text));
        return Err(fault(
            node,
            format_args!("invalid digit \"{odd}\" found in the status code list \"{list}\""),
        ));
    }
    for word in text.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()) {
        // One that is too large is no status of any response.
        let status = show(word).parse().unwrap_or(u32::MAX);
        all.statuses.push(status);
    }
    Ok(())
}

/// Reads `NAME: TEXT`, `NAME:`, `NAME` or `NAME*`.
fn edit(
    r: &mut ConfReader,
    node: &Node,
    word: &[u8],
    does: Does,
    of: Of,
) -> Result<HeaderEdit, ReadFault> {
    let (text, value) = match word.iter().position(|byte| *byte == b':') {
        Some(colon) => (&word[..colon], word[colon + 1..].trim_ascii_start()),
        None => (word, &b""[..]),
    };
    let text = text.trim_ascii();
    let value = match does {
        Does::Set => r.template(value)?,
        Does::Clear => Template::default(),
    };
    if value.is_empty()
        && let Some(prefix) = text.strip_suffix(b"*")
    {
        if prefix.is_empty() {
            return Err(fault(node, format_args!("wildcard key too short: *")));
        }
        return Ok(HeaderEdit::ClearPrefix(checked(node, prefix)?));
    }
    let text = checked(node, text)?;
    let name = Name::parse(&text);
    // It says how to read a body that stays as it is.
    let is_coding = of == Of::Answer && name == Name::ContentEncoding && value.is_empty();
    if is_framing(name) || is_coding {
        let name = show(&text);
        return Err(fault(node, format_args!("the field \"{name}\" cannot be changed here")));
    }
    Ok(match value.is_empty() {
        true => HeaderEdit::Clear { name, text },
        false => HeaderEdit::Set { name, text, value },
    })
}

/// RFC 9110 §5.1: the name of a field is a token.
fn checked(node: &Node, text: &[u8]) -> Result<Arc<[u8]>, ReadFault> {
    if text.is_empty() || !text.iter().copied().all(is_token) || text.len() > NAME_MAX {
        let name = show(text);
        return Err(fault(node, format_args!("invalid header name \"{name}\"")));
    }
    Ok(Arc::from(text))
}

/// LIMIT: bytes of a field's name.
const NAME_MAX: usize = 1024;
