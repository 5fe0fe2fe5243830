//! Request bodies: size, timeouts, storage.

use std::sync::Arc;

use super::cache_zone;
use crate::ast::Node;
use crate::choice::chosen;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, millis, offset, size, value,
};
use crate::model::{BodyFiles, TempPath};
use crate::reader::{ConfReader, INVALID, ReadFault, ReadResult};
use crate::value as values;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    offset("client_max_body_size", HSL, |r| &mut r.settings().client_max_body_size)
        .doc("The largest request body; 0 is no limit.", "client_max_body_size 20m;"),
    size("client_body_buffer_size", HSL, |r| &mut r.settings().client_body_buffer_size)
        .doc("The size of the memory buffer for a body.", "client_body_buffer_size 16k;"),
    millis("client_body_timeout", HSL, |r| &mut r.settings().client_body_timeout)
        .doc("The longest pause between two reads of a body.", "client_body_timeout 60s;"),
    value("client_body_temp_path", HSL, Args::between(1, 4), temp_path)
        .doc(
            "The directory for bodies that exceed the buffer.",
            "client_body_temp_path /var/tmp/bodies;",
        )
        .takes("DIRECTORY [NUMBER [NUMBER [NUMBER]]]")
        .default("client_body_temp"),
    value("client_body_in_file_only", HSL, Args::ONE, in_file_only)
        .doc("Whether every body is written to a named file.", "client_body_in_file_only clean;")
        .takes("on | clean | off")
        .default("off"),
    accepted("client_body_in_single_buffer", HSL, Args::ONE, DirectiveForm::Flag).doc(
        "Without effect: whether a body in memory is in a single buffer.",
        "client_body_in_single_buffer on;",
    ),
    accepted("client_body_early_read", HSL, Args::ONE, DirectiveForm::Flag).doc(
        "Without effect: whether a body is read before it is needed.",
        "client_body_early_read on;",
    ),
];

fn temp_path(r: &mut ConfReader, node: &Node) -> ReadResult {
    let path = read_temp_path(r, node)?;
    r.settings().client_body_temp_path = Arc::new(path);
    Ok(())
}

fn in_file_only(r: &mut ConfReader, node: &Node) -> ReadResult {
    let choices =
        [("off", BodyFiles::Unnamed), ("on", BodyFiles::Kept), ("clean", BodyFiles::Removed)];
    r.settings().client_body_in_file_only = chosen(node, &choices)?;
    Ok(())
}

/// Reads `PATH [LEVEL…]`; levels name directories below, for files that have names.
pub(super) fn read_temp_path(r: &mut ConfReader, node: &Node) -> Result<TempPath, ReadFault> {
    let mut digits = 0;
    let mut levels = Vec::new();
    for word in node.args().skip(1) {
        let level = match values::number(word) {
            None | Some(0) => return Err(INVALID),
            Some(level) => level.min(100),
        };
        digits += level;
        levels.push(level as u8);
    }
    if digits > 10 {
        return Err(INVALID);
    }
    let path = cache_zone::directory(r, node.arg(0));
    cache_zone::hold(r, node, &path, levels.clone());
    Ok(TempPath { path: Arc::new(path), levels })
}
