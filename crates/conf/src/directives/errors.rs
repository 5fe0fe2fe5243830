//! Errors: their pages and their log lines.

use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list};
use crate::model::{ErrorPage, Overwrite};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_value, show};
use crate::value as values;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("error_page", Contexts::HSLI, Args::at_least(2), error_page)
        .doc("The page or redirect for an error.", "error_page 404 =200 /empty.html;")
        .takes("CODE… [=[CODE]] URI")
        .without("none"),
    flag("recursive_error_pages", HSL, |r| &mut r.settings().recursive_error_pages)
        .doc("Whether error pages may in turn have error pages.", "recursive_error_pages on;"),
    flag("log_not_found", HSL, |r| &mut r.settings().log_not_found)
        .doc("Whether missing files are logged as errors.", "log_not_found off;"),
];

fn error_page(r: &mut ConfReader, node: &Node) -> ReadResult {
    let last = node.args_count() - 1;
    // An overwriting status may stand between the statuses and the target.
    let (overwrite, statuses) = match node.arg(last - 1) {
        [b'=', ..] if last == 1 => return Err(invalid_value(node.arg(0))),
        b"=" => (Overwrite::Target, last - 1),
        word @ [b'=', digits @ ..] => {
            match (values::final_status(digits), values::number(digits)) {
                (Some(status), _) => (Overwrite::Status(status), last - 1),
                // As in nginx, this is the same as `=`.
                (None, Some(0)) => (Overwrite::Target, last - 1),
                _ => return Err(invalid_value(word)),
            }
        }
        _ => (Overwrite::Keep, last),
    };
    let target = r.template(node.arg(last))?;
    let mut pages = if r.again { r.settings().error_pages.to_vec() } else { Vec::new() };
    for word in node.args().take(statuses) {
        let status = match values::number(word) {
            None | Some(499) => return Err(invalid_value(word)),
            Some(status @ 300..=599) => status as u16,
            Some(_) => {
                let shown = show(word);
                return Err(ReadFault::Text(format!(
                    "value \"{shown}\" must be between 300 and 599"
                )));
            }
        };
        pages.push(ErrorPage { status, overwrite, target: target.clone() });
    }
    r.settings().error_pages = Arc::new(pages);
    Ok(())
}
