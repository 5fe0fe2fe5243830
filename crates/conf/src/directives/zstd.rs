//! Compression with zstd, under the names of its well-known module.

use std::sync::Arc;

use super::gzip::precompressed;
use super::types::content_types;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, buffers, flag, list, value};
use crate::model::Zstd;
use crate::reader::{ConfReader, INVALID, ReadFault, ReadResult};
use crate::value as values;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("zstd", Contexts::HSLI, |r| &mut zstd_mut(r).on)
        .doc("Whether responses are compressed.", "zstd on;"),
    value("zstd_comp_level", HSL, Args::ONE, level)
        .doc("The compression level, from -7 to 22.", "zstd_comp_level 3;")
        .takes("NUMBER (-7 to 22)")
        .default("1"),
    value("zstd_min_length", HSL, Args::ONE, |r, node| {
        zstd_mut(r).min_length = values::size(node.arg(0)).ok_or(INVALID)?;
        Ok(())
    })
    .doc("The smallest response that is compressed.", "zstd_min_length 1000;")
    .takes("SIZE")
    .default("20"),
    list("zstd_types", HSL, Args::at_least(1), |r, node| {
        let before = r.again.then(|| r.settings().zstd.types.clone());
        let types = content_types(r, node, before);
        zstd_mut(r).types = types;
        Ok(())
    })
    .doc("Content types to compress in addition to `text/html`.", "zstd_types text/css;")
    .takes("TYPE…")
    .default("text/html"),
    buffers("zstd_buffers", HSL, |r| &mut zstd_mut(r).buffers)
        .doc("Without effect: the buffers size themselves.", "zstd_buffers 16 8k;"),
    value("zstd_static", HSL, Args::ONE, |r, node| {
        zstd_mut(r).precompressed = precompressed(node)?;
        Ok(())
    })
    .doc("Whether a precompressed `.zst` file is sent instead.", "zstd_static on;")
    .takes("on | off | always")
    .default("off"),
];

fn zstd_mut(r: &mut ConfReader) -> &mut Zstd {
    Arc::make_mut(&mut r.settings().zstd)
}

fn level(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (sign, digits) = match node.arg(0) {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    let number = sign * values::number(digits).ok_or(ReadFault::Value("invalid number"))?;
    if !(-7..=22).contains(&number) {
        return Err(ReadFault::Text("value must be between -7 and 22".to_owned()));
    }
    zstd_mut(r).level = number as i8;
    Ok(())
}
