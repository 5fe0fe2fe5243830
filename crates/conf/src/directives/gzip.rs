//! Compression with gzip.

use std::sync::Arc;

use super::types::content_types;
use crate::ast::Node;
use crate::choice::{chosen, say_once};
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, buffers, flag, list, value,
};
use crate::model::{Gzip, GzipProxied, Precompressed};
use crate::reader::{ConfReader, INVALID, ReadFault, ReadResult, bounded, invalid_value, size};
use crate::regex::LetterCase;
use crate::value as values;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("gzip", Contexts::HSLI, |r| &mut gzip_mut(r).on)
        .doc("Whether responses are compressed.", "gzip on;"),
    value("gzip_comp_level", HSL, Args::ONE, |r, node| {
        gzip_mut(r).level = bounded(node.arg(0), 1, 9)? as u8;
        Ok(())
    })
    .doc("The compression level, from 1 to 9.", "gzip_comp_level 5;")
    .takes("NUMBER (1 to 9)")
    .default("1"),
    value("gzip_min_length", HSL, Args::ONE, |r, node| {
        gzip_mut(r).min_length = values::size(node.arg(0)).ok_or(INVALID)?;
        Ok(())
    })
    .doc("The smallest response that is compressed.", "gzip_min_length 1000;")
    .takes("SIZE")
    .default("20"),
    list("gzip_types", HSL, Args::at_least(1), |r, node| {
        let before = r.again.then(|| r.settings().gzip.types.clone());
        let types = content_types(r, node, before);
        gzip_mut(r).types = types;
        Ok(())
    })
    .doc("Content types to compress in addition to `text/html`.", "gzip_types text/css;")
    .takes("TYPE…")
    .default("text/html"),
    value("gzip_http_version", HSL, Args::ONE, |r, node| {
        gzip_mut(r).http10 = chosen(node, &[("1.0", true), ("1.1", false)])?;
        Ok(())
    })
    .doc("The oldest HTTP version whose responses are compressed.", "gzip_http_version 1.1;")
    .takes("1.0 | 1.1")
    .default("1.1"),
    list("gzip_proxied", HSL, Args::at_least(1), proxied)
        .doc("Which responses to proxied requests are compressed.", "gzip_proxied any;")
        .takes(
            "off | expired | no-cache | no-store | private | no_last_modified | no_etag | auth | \
         any…",
        )
        .default("off"),
    flag("gzip_vary", HSL, |r| &mut gzip_mut(r).vary)
        .doc("Whether responses have `Vary: Accept-Encoding`.", "gzip_vary on;"),
    list("gzip_disable", HSL, Args::at_least(1), disable)
        .doc("Browsers whose responses are not compressed.", "gzip_disable msie6;")
        .takes("REGEX… | msie6")
        .without("none"),
    buffers("gzip_buffers", HSL, |r| &mut gzip_mut(r).buffers)
        .doc("Without effect: the buffers size themselves.", "gzip_buffers 16 8k;"),
    value("gzip_window", HSL, Args::ONE, |r, node| {
        let window = size(node.arg(0))?;
        if !matches!(window, 512 | 1024 | 2048 | 4096 | 8192 | 16384 | 32768) {
            return Err(ReadFault::Value("must be 512, 1k, 2k, 4k, 8k, 16k, or 32k"));
        }
        gzip_mut(r).window = window;
        Ok(())
    })
    .doc("Without effect: the window is 32k.", "gzip_window 32k;")
    .takes("SIZE (512 to 32k, a power of two)")
    .default("32k"),
    accepted("gzip_hash", HSL, Args::ONE, DirectiveForm::Check(hash_size))
        .doc("Without effect: the hash size of the compressor.", "gzip_hash 16k;")
        .takes("SIZE"),
    accepted("gzip_no_buffer", HSL, Args::ONE, DirectiveForm::Flag)
        .doc("Without effect: whether each piece is sent at once.", "gzip_no_buffer off;"),
    accepted("postpone_gzipping", HSL, Args::ONE, DirectiveForm::Size)
        .doc("Without effect: the least data to compress at once.", "postpone_gzipping 0;"),
    value("gzip_static", HSL, Args::ONE, |r, node| {
        gzip_mut(r).precompressed = precompressed(node)?;
        Ok(())
    })
    .doc("Whether a precompressed `.gz` file is sent instead.", "gzip_static on;")
    .takes("on | off | always")
    .default("off"),
];

fn gzip_mut(r: &mut ConfReader) -> &mut Gzip {
    Arc::make_mut(&mut r.settings().gzip)
}

/// `off`, `on` or `always`.
pub(super) fn precompressed(node: &Node) -> Result<Precompressed, ReadFault> {
    let choices =
        [("off", Precompressed::Off), ("on", Precompressed::On), ("always", Precompressed::Always)];
    chosen(node, &choices)
}

fn hash_size(_: &mut ConfReader, node: &Node) -> ReadResult {
    let size = size(node.arg(0))?;
    match size.is_power_of_two() && (512..=128 << 10).contains(&size) {
        true => Ok(()),
        false => Err(ReadFault::Value("must be 512, 1k, 2k, 4k, 8k, 16k, 32k, 64k, or 128k")),
    }
}

fn proxied(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut proxied = if r.again { r.settings().gzip.proxied } else { GzipProxied::default() };
    let mut off = false;
    for word in node.args() {
        let bit = match &*word.to_ascii_lowercase() {
            b"off" => &mut off,
            b"expired" => &mut proxied.expired,
            b"no-cache" => &mut proxied.no_cache,
            b"no-store" => &mut proxied.no_store,
            b"private" => &mut proxied.private,
            b"no_last_modified" => &mut proxied.no_last_modified,
            b"no_etag" => &mut proxied.no_etag,
            b"auth" => &mut proxied.auth,
            b"any" => &mut proxied.any,
            _ => return Err(invalid_value(word)),
        };
        *bit = true;
        say_once(r, node, word);
    }
    gzip_mut(r).proxied = if off { GzipProxied::default() } else { proxied };
    Ok(())
}

/// The expression for `msie6`: versions 4 to 6, but not the second service pack of 6.
const MSIE6: &[u8] = br"MSIE (?:[45]\.|6\.(?!.*SV1))";

fn disable(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut expressions = if r.again { r.settings().gzip.disable.to_vec() } else { Vec::new() };
    for word in node.args() {
        let expression = match word {
            b"msie6" => r.regex(MSIE6, LetterCase::Sensitive)?,
            // A build option of nginx that disables compression when memory is short.
            b"degradation" => continue,
            _ => r.regex(word, LetterCase::Insensitive)?,
        };
        expressions.push(expression);
    }
    gzip_mut(r).disable = Arc::new(expressions);
    Ok(())
}
