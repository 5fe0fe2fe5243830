//! `post_action`: the internal request after the response was sent.

use std::sync::Arc;

use crate::directive::{Args, Contexts, DirectiveSpec, value};

pub(super) const TABLE: &[DirectiveSpec] =
    &[value("post_action", Contexts::HSLI, Args::ONE, |r, node| {
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
    .without("none")];
