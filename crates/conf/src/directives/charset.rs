//! The `charset` of responses, and what recodes them.

use std::sync::Arc;

use super::types::content_types;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, Inheritance, flag, leaf, list, value};
use crate::model::{Charset, CharsetCodes, CharsetMap, CharsetOf, Utf8Text};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};
use crate::vars::{Template, TemplatePart};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("charset", Contexts::HSLI, Args::ONE, |r, node| {
        let name = name(r, node)?;
        charset_mut(r).charset = name;
        Ok(())
    })
    .doc("The charset named in `Content-Type`.", "charset utf-8;")
    .takes("CHARSET | VARIABLE | off")
    .default("off"),
    value("source_charset", Contexts::HSLI, Args::ONE, |r, node| {
        let name = name(r, node)?;
        charset_mut(r).source = name;
        Ok(())
    })
    .doc("The charset of files.", "source_charset koi8-r;")
    .takes("CHARSET | VARIABLE | off")
    .default("off"),
    list("charset_types", HSL, Args::at_least(1), |r, node| {
        let before = r.again.then(|| r.settings().charset.types.clone());
        let types = content_types(r, node, before);
        charset_mut(r).types = types;
        Ok(())
    })
    .doc("The content types that get a charset.", "charset_types text/css;")
    .takes("TYPE…")
    .default(
        "text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml",
    ),
    flag("override_charset", Contexts::HSLI, |r| &mut charset_mut(r).overrides)
        .doc("Whether a charset that the upstream set is replaced.", "override_charset on;"),
    leaf("charset_map", Contexts::HTTP, Args::TWO, Inheritance::Own, charset_map)
        .doc(
            "How bodies are recoded from one charset to another, and back.",
            "charset_map koi8-r utf-8 { C0 D18E; C1 D0B0; }",
        )
        .takes("CHARSET CHARSET { CODE CODE; … }")
        .without("none"),
];

fn charset_map(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (from, to) = (node.arg(0), node.arg(1));
    let [from_shown, to_shown] = [from, to].map(show);
    if from.eq_ignore_ascii_case(to) {
        return Err(ReadFault::Text(format!(
            "\"charset_map\" between the same charsets \"{from_shown}\" and \"{to_shown}\""
        )));
    }
    r.http.charsets.note(from);
    r.http.charsets.note(to);
    if r.http.charsets.between(from, to).is_some() {
        return Err(ReadFault::Text(format!(
            "duplicate \"charset_map\" between \"{from_shown}\" and \"{to_shown}\""
        )));
    }
    if from.eq_ignore_ascii_case(b"utf-8") {
        return Err(ReadFault::Text(
            "\"charset_map\" with \"utf-8\" charset should be given in the second column"
                .to_owned(),
        ));
    }
    let mut codes = CharsetCodes::new(to);
    for entry in node.block.as_ref().map_or(&[][..], |block| &block.nodes) {
        let read = code(&mut codes, entry);
        r.judge(entry, read);
    }
    let map = CharsetMap { from: from.into(), to: to.into(), codes };
    r.http.charsets.maps.push(Arc::new(map));
    Ok(())
}

/// Reads one line of a map.
fn code(codes: &mut CharsetCodes, entry: &Node) -> ReadResult {
    if entry.block.is_some() {
        return Err(ReadFault::Text("unexpected \"{\"".to_owned()));
    }
    if entry.args().len() != 1 {
        return Err(ReadFault::Text("invalid parameters number".to_owned()));
    }
    let second = entry.arg(0);
    let invalid = |word: &[u8]| ReadFault::Text(format!("invalid value \"{}\"", show(word)));
    let first = byte(entry.name()).ok_or_else(|| invalid(entry.name()))?;
    match codes {
        CharsetCodes::Bytes { there, back } => {
            let second = byte(second).ok_or_else(|| invalid(second))?;
            there[usize::from(first)] = second;
            back[usize::from(second)] = first;
        }
        CharsetCodes::Utf8 { there, back } => {
            let text = hex_bytes(second).ok_or_else(|| invalid(second))?;
            let (text, code) = Utf8Text::new(&text).ok_or_else(|| invalid(second))?;
            there[usize::from(first)] = text;
            back[usize::from(code)] = first;
        }
    }
    Ok(())
}

/// A hexadecimal number up to FF.
fn byte(word: &[u8]) -> Option<u8> {
    let digits = word.iter().map(|digit| char::from(*digit).to_digit(16));
    let number = digits.into_iter().try_fold(0_u32, |number, digit| {
        Some(number * 16 + digit?).filter(|number| *number <= 0xff)
    });
    number.filter(|_| !word.is_empty()).and_then(|number| u8::try_from(number).ok())
}

/// One to three bytes, two digits each.
fn hex_bytes(word: &[u8]) -> Option<Vec<u8>> {
    let is_fit = matches!(word.len(), 2 | 4 | 6);
    if !is_fit {
        return None;
    }
    word.chunks(2).map(byte).collect()
}

fn charset_mut(r: &mut ConfReader) -> &mut Charset {
    Arc::make_mut(&mut r.settings().charset)
}

fn name(r: &mut ConfReader, node: &Node) -> Result<CharsetOf, ReadFault> {
    match node.arg(0) {
        b"off" => Ok(CharsetOf::Off),
        [b'$', _, ..] => {
            // The rest is the name: no other text may surround it.
            let name = ConfReader::defined_name(node.arg(0))?;
            let var = r.variable(&name)?;
            Ok(CharsetOf::Name(Template::new(vec![TemplatePart::Var(var)])))
        }
        b"$" => Err(ReadFault::Text("invalid variable name \"$\"".to_owned())),
        word => Ok(CharsetOf::Name(Template::text(r.http.charsets.note(word)))),
    }
}
