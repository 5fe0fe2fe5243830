//! Fields added to responses and trailers: `add_header*`, `add_trailer*`, `expires`.

use std::sync::Arc;

use crate::ast::Node;
use crate::choice::chosen;
use crate::directive::{Args, Contexts, DirectiveSpec, list, value};
use crate::model::{AddHeader, Expires, ExpiresRule, ListInherit};
use crate::reader::{ConfReader, INVALID, ReadFault, ReadResult, invalid_parameter};
use crate::value::{self as values, Unit};

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("add_header", Contexts::HSLI, Args::between(2, 3), |r, node| {
        let added = read(r, node)?;
        r.scope.headers.push(added);
        Ok(())
    })
    .doc(
        "Adds a field to responses; with `always` to errors too.",
        "add_header X-Served-By a always;",
    )
    .takes("NAME TEXT [always]")
    .without("none"),
    value("add_header_inherit", Contexts::HSLI, Args::ONE, |r, node| {
        r.settings().add_header_inherit = inherit(node)?;
        Ok(())
    })
    .doc("How a block inherits the fields of the outer block.", "add_header_inherit merge;")
    .takes("on | off | merge")
    .default("on"),
    list("add_trailer", Contexts::HSLI, Args::between(2, 3), |r, node| {
        let added = read(r, node)?;
        r.scope.trailers.push(added);
        Ok(())
    })
    .doc("Adds a trailer field to responses.", "add_trailer X-Took $request_time;")
    .takes("NAME TEXT [always]")
    .without("none"),
    value("add_trailer_inherit", Contexts::HSLI, Args::ONE, |r, node| {
        r.settings().add_trailer_inherit = inherit(node)?;
        Ok(())
    })
    .doc("How a block inherits the trailers of the outer block.", "add_trailer_inherit merge;")
    .takes("on | off | merge")
    .default("on"),
    value("expires", Contexts::HSLI, Args::between(1, 2), expires)
        .doc("The `Expires` and `Cache-Control` fields of responses.", "expires 30d;")
        .takes("[modified] TIME | epoch | max | off | TEXT")
        .default("off"),
];

/// Merges the fields of a block with the outer ones, once all its values are read.
pub(crate) fn settle(r: &mut ConfReader) {
    let own = std::mem::take(&mut r.scope.headers);
    let settings = &r.scope.settings;
    if let Some(all) = settled(own, &settings.add_headers, settings.add_header_inherit) {
        r.settings().add_headers = Arc::new(all);
    }
    let own = std::mem::take(&mut r.scope.trailers);
    let settings = &r.scope.settings;
    if let Some(all) = settled(own, &settings.add_trailers, settings.add_trailer_inherit) {
        r.settings().add_trailers = Arc::new(all);
    }
}

/// A block's own fields merged with the outer ones; `None` if the outer ones stay.
fn settled(
    own: Vec<AddHeader>,
    outer: &[AddHeader],
    inherit: ListInherit,
) -> Option<Vec<AddHeader>> {
    match inherit {
        ListInherit::On | ListInherit::Merge if own.is_empty() => None,
        ListInherit::Off if own.is_empty() && outer.is_empty() => None,
        ListInherit::On | ListInherit::Off => Some(own),
        ListInherit::Merge => Some(own.into_iter().chain(outer.iter().cloned()).collect()),
    }
}

fn inherit(node: &Node) -> Result<ListInherit, ReadFault> {
    let forms = [("on", ListInherit::On), ("off", ListInherit::Off), ("merge", ListInherit::Merge)];
    chosen(node, &forms)
}

fn read(r: &mut ConfReader, node: &Node) -> Result<AddHeader, ReadFault> {
    let value = r.template(node.arg(1))?;
    let always = match node.arg(2) {
        b"always" => true,
        _ if node.args_count() == 2 => false,
        word => return Err(invalid_parameter(word)),
    };
    Ok(AddHeader { name: Arc::from(node.arg(0)), value, always })
}

fn expires(r: &mut ConfReader, node: &Node) -> ReadResult {
    let modified = node.args_count() == 2;
    if modified && node.arg(0) != b"modified" {
        return Err(INVALID);
    }
    let word = node.arg(usize::from(modified));
    let text = r.template(word)?;
    let expires = match text.as_text() {
        Some(_) => Expires::Fixed(ExpiresRule::parse(word, modified).map_err(ReadFault::Value)?),
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
    /// The rest of the message that begins with `"expires" directive`.
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
                time @ 0..=86_400 => Ok(Self::Daily(time as u32)),
                _ => Err("daily time value must be less than 24 hours"),
            },
            [b'-', time @ ..] if modified => Ok(Self::Modified(-seconds(time)?)),
            [b'-', time @ ..] => Ok(Self::After(-seconds(time)?)),
            [b'+', time @ ..] | time if modified => Ok(Self::Modified(seconds(time)?)),
            [b'+', time @ ..] | time => Ok(Self::After(seconds(time)?)),
        }
    }
}
