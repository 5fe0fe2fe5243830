//! Bodies that include other responses: `ssi`, `addition`.

use std::sync::Arc;

use super::types::content_types;
use crate::ast::Node;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, flag, list, size, value,
};
use crate::model::{Addition, Filters, Ssi};
use crate::reader::ConfReader;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("ssi", Contexts::HSLI, |r| &mut ssi_mut(r).on)
        .doc("Whether server-side includes are processed.", "ssi on;"),
    flag("ssi_silent_errors", HSL, |r| &mut ssi_mut(r).silent_errors).doc(
        "Whether a command that fails has no output instead of an error text.",
        "ssi_silent_errors on;",
    ),
    list("ssi_types", HSL, Args::at_least(1), |r, node| {
        let before = r.again.then(|| r.settings().filters.ssi.types.clone());
        let types = content_types(r, node, before);
        ssi_mut(r).types = types;
        Ok(())
    })
    .doc("Content types to process in addition to `text/html`.", "ssi_types text/plain;")
    .takes("TYPE…")
    .default("text/html"),
    size("ssi_value_length", HSL, |r| &mut ssi_mut(r).value_length)
        .doc("The longest parameter value of a command.", "ssi_value_length 512;"),
    flag("ssi_last_modified", HSL, |r| &mut ssi_mut(r).last_modified)
        .doc("Whether pages with commands keep `Last-Modified`.", "ssi_last_modified on;"),
    accepted("ssi_min_file_chunk", HSL, Args::ONE, DirectiveForm::Size)
        .doc("Without effect: the least part of a page sent as a file.", "ssi_min_file_chunk 1k;"),
    accepted("ssi_ignore_recycled_buffers", HSL, Args::ONE, DirectiveForm::Flag)
        .doc("Without effect: the reuse of buffers.", "ssi_ignore_recycled_buffers off;"),
    value("add_before_body", HSL, Args::ONE, |r, node| {
        addition_mut(r).before = path(node);
        Ok(())
    })
    .doc(
        "The URI of a subrequest whose response is added before the body; empty for none.",
        "add_before_body /header;",
    )
    .takes("URI")
    .without("none"),
    value("add_after_body", HSL, Args::ONE, |r, node| {
        addition_mut(r).after = path(node);
        Ok(())
    })
    .doc(
        "The URI of a subrequest whose response is added after the body; empty for none.",
        "add_after_body /footer;",
    )
    .takes("URI")
    .without("none"),
    list("addition_types", HSL, Args::at_least(1), |r, node| {
        let before = r.again.then(|| r.settings().filters.addition.types.clone());
        let types = content_types(r, node, before);
        addition_mut(r).types = types;
        Ok(())
    })
    .doc("Content types that get additions, beside `text/html`.", "addition_types *;")
    .takes("TYPE…")
    .default("text/html"),
];

fn filters_mut(r: &mut ConfReader) -> &mut Filters {
    Arc::make_mut(&mut r.settings().filters)
}

fn ssi_mut(r: &mut ConfReader) -> &mut Ssi {
    &mut filters_mut(r).ssi
}

fn addition_mut(r: &mut ConfReader) -> &mut Addition {
    &mut filters_mut(r).addition
}

fn path(node: &Node) -> Option<Arc<[u8]>> {
    let word = node.arg(0);
    (!word.is_empty()).then(|| Arc::from(word))
}
