//! `secure_link*`: links authenticated by a hash.
//!
//! There are two forms, and a block may use one of them. Directives of one form drop inherited ones
//! of the other.

use std::sync::Arc;

use crate::ast::Node;
use crate::diagnostic::Diagnostic;
use crate::directive::{Args, Contexts, DirectiveSpec, value};
use crate::drafts::LinkForms;
use crate::model::{LogLevel, SecureLink};
use crate::reader::{ConfReader, ReadResult};
use crate::vars::Template;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("secure_link", HSL, Args::ONE, |r, node| text(r, node, |link| &mut link.given))
        .doc(
            "The hash of a link and, after a comma, its expiry time, for `$secure_link`.",
            "secure_link $arg_md5,$arg_expires;",
        )
        .takes("TEXT")
        .without("none"),
    value("secure_link_md5", HSL, Args::ONE, |r, node| text(r, node, |link| &mut link.hashed))
        .doc(
            "The text whose MD5 hash a link must contain.",
            "secure_link_md5 \"$secure_link_expires$uri secret\";",
        )
        .takes("TEXT")
        .without("none"),
    value("secure_link_secret", HSL, Args::ONE, secret)
        .doc(
            "The secret word in the hash of a link of the form `/prefix/HASH/link`.",
            "secure_link_secret word;",
        )
        .takes("WORD")
        .without("none"),
];

fn text(
    r: &mut ConfReader,
    node: &Node,
    slot: fn(&mut SecureLink) -> &mut Option<Template>,
) -> ReadResult {
    let template = r.template(node.arg(0))?;
    r.scope.links.texts = true;
    check(r);
    let link = Arc::make_mut(r.settings().secure_link.get_or_insert_default());
    link.secret = None;
    *slot(link) = Some(template);
    Ok(())
}

fn secret(r: &mut ConfReader, node: &Node) -> ReadResult {
    r.scope.links.secret = true;
    check(r);
    let secret = Some(node.arg(0).into());
    r.settings().secure_link = Some(Arc::new(SecureLink { secret, ..SecureLink::default() }));
    Ok(())
}

/// Refuses both forms in one block; as in nginx that is checked when the `http` block ends.
fn check(r: &mut ConfReader) {
    let LinkForms { texts, secret } = r.scope.links;
    if texts && secret {
        let message = "\"secure_link_secret\" cannot be mixed with \"secure_link\" and \
                       \"secure_link_md5\"";
        let place = Some(r.http.closed_at.clone());
        r.note(r.http.closed, Diagnostic::new(LogLevel::Emerg, message, place));
    }
}
