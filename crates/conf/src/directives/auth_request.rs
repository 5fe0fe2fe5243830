//! `auth_request`, `auth_request_set`: access control by a subrequest.

use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, list, value};
use crate::model::{AuthRequest, SetTarget};
use crate::reader::{ConfReader, ReadResult};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("auth_request", HSL, Args::ONE, |r, node| {
        let word = node.arg(0);
        rule_mut(r).uri = (word != b"off" && !word.is_empty()).then(|| Arc::from(word));
        Ok(())
    })
    .doc("The URI of a subrequest whose status decides access.", "auth_request /auth;")
    .takes("URI | off")
    .without("off: no subrequest"),
    list("auth_request_set", HSL, Args::TWO, set)
        .doc(
            "Sets a variable from the response to the subrequest of `auth_request`.",
            "auth_request_set $user $upstream_http_x_user;",
        )
        .takes("VARIABLE TEXT")
        .without("none"),
];

fn rule_mut(r: &mut ConfReader) -> &mut AuthRequest {
    Arc::make_mut(&mut r.settings().auth_request)
}

fn set(r: &mut ConfReader, node: &Node) -> ReadResult {
    let name = ConfReader::defined_name(node.arg(0))?;
    let target = match &*name.to_ascii_lowercase() {
        "args" => SetTarget::Args,
        "limit_rate" => SetTarget::LimitRate,
        _ => SetTarget::Named(r.define_quietly(&name)?),
    };
    let value = r.template(node.arg(1))?;
    let again = r.again;
    let set = &mut rule_mut(r).set;
    if !again {
        *set = Arc::default();
    }
    Arc::make_mut(set).push((target, value));
    Ok(())
}
