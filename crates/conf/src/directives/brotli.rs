//! Compression with brotli, under the names of its well-known module.

use std::sync::Arc;

use super::gzip::precompressed;
use super::types::content_types;
use crate::directive::{Args, Contexts, DirectiveSpec, buffers, flag, list, value};
use crate::model::Brotli;
use crate::reader::{ConfReader, INVALID, ReadFault, bounded, size};
use crate::value as values;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("brotli", Contexts::HSLI, |r| &mut brotli_mut(r).on)
        .doc("Whether responses are compressed.", "brotli on;"),
    value("brotli_comp_level", HSL, Args::ONE, |r, node| {
        brotli_mut(r).level = bounded(node.arg(0), 0, 11)? as u8;
        Ok(())
    })
    .doc("The compression level, from 0 to 11.", "brotli_comp_level 5;")
    .takes("NUMBER (0 to 11)")
    .default("6"),
    value("brotli_min_length", HSL, Args::ONE, |r, node| {
        brotli_mut(r).min_length = values::size(node.arg(0)).ok_or(INVALID)?;
        Ok(())
    })
    .doc("The smallest response that is compressed.", "brotli_min_length 1000;")
    .takes("SIZE")
    .default("20"),
    list("brotli_types", HSL, Args::at_least(1), |r, node| {
        let before = r.again.then(|| r.settings().brotli.types.clone());
        let types = content_types(r, node, before);
        brotli_mut(r).types = types;
        Ok(())
    })
    .doc("Content types to compress in addition to `text/html`.", "brotli_types text/css;")
    .takes("TYPE…")
    .default("text/html"),
    value("brotli_window", HSL, Args::ONE, |r, node| {
        let window = size(node.arg(0))?;
        if !window.is_power_of_two() || !(1 << 10..=16 << 20).contains(&window) {
            return Err(ReadFault::Value("must be a power of two from 1k to 16m"));
        }
        brotli_mut(r).window = window;
        Ok(())
    })
    .doc("Without effect: the window is 512k.", "brotli_window 512k;")
    .takes("SIZE (1k to 16m, a power of two)")
    .default("512k"),
    buffers("brotli_buffers", HSL, |r| &mut brotli_mut(r).buffers)
        .doc("Without effect: the buffers size themselves.", "brotli_buffers 16 8k;"),
    value("brotli_static", HSL, Args::ONE, |r, node| {
        brotli_mut(r).precompressed = precompressed(node)?;
        Ok(())
    })
    .doc("Whether a precompressed `.br` file is sent instead.", "brotli_static on;")
    .takes("on | off | always")
    .default("off"),
];

fn brotli_mut(r: &mut ConfReader) -> &mut Brotli {
    Arc::make_mut(&mut r.settings().brotli)
}
