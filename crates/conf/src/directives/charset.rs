//! The `charset` of responses.

use std::sync::Arc;

use super::types::content_types;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, value};
use crate::model::{Charset, CharsetOf};
use crate::reader::{ConfReader, ReadFault};
use crate::vars::{Template, TemplatePart};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("charset", Contexts::HSLI, Args::ONE, |r, node| {
        let name = name(r, node)?;
        charset_mut(r).charset = name;
        Ok(())
    })
    .doc("The charset named in `Content-Type`.", "charset utf-8;")
    .takes("CHARSET | VARIABLE | off")
    .default("off"),
    value("source_charset", Contexts::HSLI, Args::ONE, |r, node| {
        let name = name(r, node)?;
        charset_mut(r).source = name;
        Ok(())
    })
    .doc("The charset of files.", "source_charset koi8-r;")
    .takes("CHARSET | VARIABLE | off")
    .default("off"),
    list("charset_types", HSL, Args::at_least(1), |r, node| {
        let before = r.again.then(|| r.settings().charset.types.clone());
        let types = content_types(r, node, before);
        charset_mut(r).types = types;
        Ok(())
    })
    .doc("The content types that get a charset.", "charset_types text/css;")
    .takes("TYPE…")
    .default(
        "text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml",
    ),
    flag("override_charset", Contexts::HSLI, |r| &mut charset_mut(r).overrides)
        .doc("Whether a charset that the upstream set is replaced.", "override_charset on;"),
];

fn charset_mut(r: &mut ConfReader) -> &mut Charset {
    Arc::make_mut(&mut r.settings().charset)
}

fn name(r: &mut ConfReader, node: &Node) -> Result<CharsetOf, ReadFault> {
    match node.arg(0) {
        b"off" => Ok(CharsetOf::Off),
        [b'$', _, ..] => {
            // The rest is the name: no other text may surround it.
            let name = ConfReader::defined_name(node.arg(0))?;
            let var = r.variable(&name)?;
            Ok(CharsetOf::Name(Template::new(vec![TemplatePart::Var(var)])))
        }
        b"$" => Err(ReadFault::Text("invalid variable name \"$\"".to_owned())),
        word => Ok(CharsetOf::Name(Template::text(word))),
    }
}
