//! Content types by file extension.

use std::collections::HashSet;
use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, Inheritance, accepted, leaf, value,
};
use crate::model::{TypeSet, TypesMap};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    leaf("types", HSL, Args::NONE, Inheritance::List, types)
        .doc("Content types and their file name extensions.", "types { text/html html htm; }")
        .takes("{ TYPE EXTENSION…; … }")
        .without("`text/html html`, `image/gif gif`, `image/jpeg jpg`"),
    value("default_type", HSL, Args::ONE, |r, node| {
        r.settings().default_type = Arc::from(node.arg(0));
        Ok(())
    })
    .doc("The content type of files with an unknown extension.", "default_type text/plain;")
    .takes("TYPE")
    .default("text/plain"),
    accepted("types_hash_max_size", HSL, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "types_hash_max_size 2048;"),
    accepted("types_hash_bucket_size", HSL, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "types_hash_bucket_size 64;"),
];

fn types(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut map = if r.again { TypesMap::clone(&r.settings().types) } else { TypesMap::new() };
    let entries = node.block.as_ref().map_or(&[][..], |block| &block.nodes);
    for entry in entries {
        let parsed = add(r, &mut map, entry);
        r.judge(entry, parsed);
    }
    r.settings().types = Arc::new(map);
    Ok(())
}

fn add(r: &mut ConfReader, map: &mut TypesMap, entry: &Node) -> ReadResult {
    if entry.block.is_some() {
        return Err(ReadFault::Text("unexpected \"{\"".to_owned()));
    }
    if entry.name() == b"include" {
        let message = "invalid number of arguments in \"include\" directive";
        return Err(ReadFault::Text(message.to_owned()));
    }
    let kind: Arc<[u8]> = Arc::from(entry.name());
    for extension in entry.args() {
        let key = extension.to_ascii_lowercase().into_boxed_slice();
        if let Some(before) = map.insert(key, Arc::clone(&kind)) {
            let (extension, kind) = (show(extension), show(&kind));
            let before = show(&before);
            let message = format!(
                "duplicate extension \"{extension}\", content type: \"{kind}\", \
                 previous content type: \"{before}\""
            );
            r.warn_at(entry, message);
        }
    }
    Ok(())
}

/// Reads a list of content types, added to `before`; always includes `text/html`.
pub(super) fn content_types(r: &mut ConfReader, node: &Node, before: Option<TypeSet>) -> TypeSet {
    let mut set = match before {
        Some(TypeSet::All) => return TypeSet::All,
        Some(TypeSet::Some(set)) => HashSet::clone(&set),
        None => HashSet::from([Box::from(&b"text/html"[..])]),
    };
    for word in node.args() {
        if word == b"*" {
            return TypeSet::All;
        }
        if !set.insert(word.to_ascii_lowercase().into_boxed_slice()) {
            r.warn(format!("duplicate MIME type \"{}\"", show(word)));
        }
    }
    TypeSet::Some(Arc::new(set))
}
