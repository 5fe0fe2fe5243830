//! `post_action`: the internal request after the response was sent.

use std::sync::Arc;

use crate::directive::{Args, Contexts, DirectiveSpec, value};

pub(super) const TABLE: &[DirectiveSpec] = &[value(
    "post_action",
    Contexts::HSLI,
    Args::ONE,
    |r, node| {
        // As in nginx, the text has neither variables nor a query, and there is no `off`.
        r.settings().post_action = Some(Arc::from(node.arg(0)));
        Ok(())
    },
)
.doc(
    "A path, or a named location, where a request goes on when its answer has left: nobody sees \
     what is answered there, and the log is written behind it.",
    "post_action /done;",
)
.takes("URI")
.without("none")];
