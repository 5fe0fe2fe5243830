//! `fastcgi_bind` and its kin: the local address of upstream connections.

use crate::ast::Node;
use crate::local_address;
use crate::model::Bind;
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_parameter, show};

/// One of both, whose family follows from its name.
pub(super) fn bind(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    if word == b"off" && node.args_count() == 1 {
        r.origin().bind = None;
        return Ok(());
    }
    let template = r.template(word)?;
    let made = match template.as_text() {
        None => Bind::Computed(template),
        Some(text) => match local_address::parse(text) {
            Some(at) => Bind::At(at, String::from_utf8_lossy(text).into()),
            None => return Err(ReadFault::Text(format!("invalid address \"{}\"", show(word)))),
        },
    };
    match (node.args_count(), node.args_count() > 1 && node.arg(1) == b"transparent") {
        (1, _) => {}
        (_, true) => {
            let text = format!("\"{} … transparent\" is not implemented yet", show(node.name()));
            return Err(ReadFault::Text(text));
        }
        _ => return Err(invalid_parameter(node.arg(1))),
    }
    r.origin().bind = Some(made);
    Ok(())
}
