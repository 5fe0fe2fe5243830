//! `post_action` and `mirror`: internal requests whose responses no client gets.

use std::sync::Arc;

use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, value};
use crate::reader::DUPLICATE;

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("post_action", Contexts::HSLI, Args::ONE, |r, node| {
        // As in nginx, the text has neither variables nor a query, and there is no `off`.
        r.settings().post_action = Some(Arc::from(node.arg(0)));
        Ok(())
    })
    .doc(
        "The URI or named location of an internal request made after the response was sent. \
             Its own response is discarded, and the request is logged after it.",
        "post_action /done;",
    )
    .takes("URI")
    .without("none"),
    list("mirror", HSL, Args::ONE, |r, node| {
        let (again, word) = (r.again, node.arg(0));
        let mirrors = &mut r.settings().mirrors;
        if again && (word == b"off" || mirrors.is_empty()) {
            return Err(DUPLICATE);
        }
        let mut all = if again { mirrors.to_vec() } else { Vec::new() };
        // As in nginx, the text has neither variables nor a query.
        if word != b"off" && !word.is_empty() {
            all.push(Arc::from(word));
        }
        *mirrors = all.into();
        Ok(())
    })
    .doc("The URI of a subrequest for each request; its response is ignored.", "mirror /mirror;")
    .takes("URI | off")
    .without("off: no subrequest"),
    flag("mirror_request_body", HSL, |r| &mut r.settings().mirror_request_body).doc(
        "Whether subrequests of `mirror` have the body of the request, which is read before any \
         content is made then.",
        "mirror_request_body off;",
    ),
];
