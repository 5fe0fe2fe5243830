//! Fields added to answers: `add_header*`, `expires`.

use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{Args, Contexts, Directive, list, value};
use crate::model::{AddHeader, Expires, ExpiresRule, ListInherit};
use crate::reader::{Fault, Parsed, Reader, invalid_parameter, invalid_value};
use crate::value::{self as values, Unit};

pub(super) const TABLE: &[Directive] = &[
    list("add_header", Contexts::HSLI, Args::between(2, 3), |r, node| {
        let added = read(r, node)?;
        r.scope.headers.push(added);
        Ok(())
    })
    .doc("Adds a field to answers; `always` means errors too.", "add_header X-Served-By a always;"),
    value("add_header_inherit", Contexts::HSLI, Args::ONE, |r, node| {
        r.settings().add_header_inherit = match node.arg(0) {
            b"on" => ListInherit::On,
            b"off" => ListInherit::Off,
            b"merge" => ListInherit::Merge,
            word => return Err(invalid_value(word)),
        };
        Ok(())
    })
    .doc("What becomes of the outer block's fields.", "add_header_inherit merge;"),
    value("expires", Contexts::HSLI, Args::between(1, 2), expires)
        .doc("How long clients may keep an answer.", "expires 30d;"),
];

/// Puts the fields of a block together with the outer ones, when all its values are read.
pub(crate) fn settle(r: &mut Reader) {
    let own = std::mem::take(&mut r.scope.headers);
    match r.scope.settings.add_header_inherit {
        ListInherit::On | ListInherit::Merge if own.is_empty() => {}
        ListInherit::Off if own.is_empty() && r.scope.settings.add_headers.is_empty() => {}
        ListInherit::On | ListInherit::Off => r.settings().add_headers = Arc::new(own),
        ListInherit::Merge => {
            let headers = &mut r.settings().add_headers;
            let all = own.into_iter().chain(headers.iter().cloned()).collect();
            *headers = Arc::new(all);
        }
    }
}

fn read(r: &mut Reader, node: &Node) -> Result<AddHeader, Fault> {
    let value = r.template(node.arg(1))?;
    let always = match node.arg(2) {
        b"always" => true,
        _ if node.args_count() == 2 => false,
        word => return Err(invalid_parameter(word)),
    };
    Ok(AddHeader { name: Arc::from(node.arg(0)), value, always })
}

fn expires(r: &mut Reader, node: &Node) -> Parsed {
    let modified = node.args_count() == 2;
    if modified && node.arg(0) != b"modified" {
        return Err(invalid_value(node.arg(0)));
    }
    let word = node.arg(usize::from(modified));
    let text = r.template(word)?;
    let expires = match text.as_text() {
        Some(_) => Expires::Fixed(ExpiresRule::parse(word, modified).map_err(Fault::Value)?),
        None => Expires::Variable { text, modified },
    };
    r.settings().expires = Arc::new(expires);
    Ok(())
}

impl ExpiresRule {
    /// Reads a rule: `off`, `epoch`, `max`, `TIME`, `-TIME`, `@TIME`.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as it follows `"expires" directive`.
    pub fn parse(word: &[u8], modified: bool) -> Result<Self, &'static str> {
        if !modified {
            match word {
                b"off" => return Ok(Self::Off),
                b"epoch" => return Ok(Self::Epoch),
                b"max" => return Ok(Self::Max),
                _ => {}
            }
        }
        let seconds = |text: &[u8]| {
            let time = values::time(text, Unit::Seconds).ok_or("invalid value")?;
            i64::try_from(time.as_secs()).map_err(|_| "invalid value")
        };
        match word {
            [b'@', _, ..] if modified => {
                Err("daily time cannot be used with \"modified\" parameter")
            }
            [b'@', time @ ..] => match seconds(time)? {
                time @ 0..86_400 => Ok(Self::Daily(time as u32)),
                _ => Err("daily time value must be less than 24 hours"),
            },
            [b'-', time @ ..] if modified => Ok(Self::Modified(-seconds(time)?)),
            [b'-', time @ ..] => Ok(Self::After(-seconds(time)?)),
            [b'+', time @ ..] | time if modified => Ok(Self::Modified(seconds(time)?)),
            [b'+', time @ ..] | time => Ok(Self::After(seconds(time)?)),
        }
    }
}
