//! Listings of directories.

use crate::directive::{Args, Contexts, Directive, flag, value};
use crate::model::AutoindexFormat;
use crate::reader::invalid_value;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[Directive] = &[
    flag("autoindex", HSL, |r| &mut r.settings().autoindex.on)
        .doc("Whether a directory without an index file is listed.", "autoindex on;"),
    flag("autoindex_exact_size", HSL, |r| &mut r.settings().autoindex.exact_size)
        .doc("Whether sizes are given in bytes.", "autoindex_exact_size off;"),
    flag("autoindex_localtime", HSL, |r| &mut r.settings().autoindex.localtime)
        .doc("Whether times are local.", "autoindex_localtime on;"),
    value("autoindex_format", HSL, Args::ONE, |r, node| {
        r.settings().autoindex.format = match node.arg(0) {
            b"html" => AutoindexFormat::Html,
            b"xml" => AutoindexFormat::Xml,
            b"json" => AutoindexFormat::Json,
            b"jsonp" => AutoindexFormat::Jsonp,
            word => return Err(invalid_value(word)),
        };
        Ok(())
    })
    .doc("The format of listings.", "autoindex_format json;"),
];
