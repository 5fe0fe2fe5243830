//! Listings of directories.

use crate::choice::chosen;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, value};
use crate::model::AutoindexFormat;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("autoindex", HSL, |r| &mut r.settings().autoindex.on)
        .doc("Whether directories without an index file are listed.", "autoindex on;"),
    flag("autoindex_exact_size", HSL, |r| &mut r.settings().autoindex.exact_size)
        .doc("Whether sizes are given in bytes.", "autoindex_exact_size off;"),
    flag("autoindex_localtime", HSL, |r| &mut r.settings().autoindex.localtime)
        .doc("Whether times are local.", "autoindex_localtime on;"),
    value("autoindex_format", HSL, Args::ONE, |r, node| {
        let formats = [
            ("html", AutoindexFormat::Html),
            ("json", AutoindexFormat::Json),
            ("jsonp", AutoindexFormat::Jsonp),
            ("xml", AutoindexFormat::Xml),
        ];
        r.settings().autoindex.format = chosen(node, &formats)?;
        Ok(())
    })
    .doc("The format of listings.", "autoindex_format json;")
    .takes("html | xml | json | jsonp")
    .default("html"),
];
