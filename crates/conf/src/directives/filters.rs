//! Body filters: `sub_filter`, `gunzip`, `slice`.

use std::sync::Arc;

use super::types::content_types;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, buffers, flag, list, size};
use crate::model::{Filters, Substitution};
use crate::reader::{ConfReader, ReadFault, ReadResult};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("sub_filter", HSL, Args::TWO, substitution)
        .doc(
            "A text to find in responses, case-insensitive, and its replacement.",
            "sub_filter http://old.example https://new.example;",
        )
        .takes("TEXT TEXT")
        .without("none"),
    flag("sub_filter_once", HSL, |r| &mut filters_mut(r).sub_once)
        .doc("Whether each text is replaced only once.", "sub_filter_once off;"),
    list("sub_filter_types", HSL, Args::at_least(1), |r, node| {
        let before = r.again.then(|| r.settings().filters.sub_types.clone());
        let types = content_types(r, node, before);
        filters_mut(r).sub_types = types;
        Ok(())
    })
    .doc("Content types to search in addition to `text/html`.", "sub_filter_types text/css;")
    .takes("TYPE…")
    .default("text/html"),
    flag("sub_filter_last_modified", HSL, |r| &mut filters_mut(r).sub_last_modified)
        .doc("Whether modified responses keep `Last-Modified`.", "sub_filter_last_modified on;"),
    flag("gunzip", HSL, |r| &mut filters_mut(r).gunzip)
        .doc("Whether responses are decompressed for clients without gzip support.", "gunzip on;"),
    buffers("gunzip_buffers", HSL, |r| &mut filters_mut(r).gunzip_buffers)
        .doc("Without effect: the buffers size themselves.", "gunzip_buffers 16 8k;"),
    size("slice", HSL, |r| &mut r.settings().slice).doc(
        "The size of the ranges that large responses are requested in from the upstream server, \
         each of which is cached by itself; zero turns it off. `$slice_range` has to be in the \
         cache key and in the `Range` field of the request.",
        "slice 1m;",
    ),
];

fn filters_mut(r: &mut ConfReader) -> &mut Filters {
    Arc::make_mut(&mut r.settings().filters)
}

fn substitution(r: &mut ConfReader, node: &Node) -> ReadResult {
    if node.arg(0).is_empty() {
        return Err(ReadFault::Text("empty search pattern".to_owned()));
    }
    let search = r.template(node.arg(0))?;
    let search = match search.as_text() {
        Some(text) => crate::vars::Template::text(&text.to_ascii_lowercase()),
        None => search,
    };
    let replacement = r.template(node.arg(1))?;
    let again = r.again;
    let sub = &mut filters_mut(r).sub;
    if !again {
        *sub = Arc::default();
    }
    Arc::make_mut(sub).push(Substitution { search, replacement });
    Ok(())
}
