//! `limit_except`: rules for requests by other methods.

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, block};
use crate::model::{Except, Handler, Matcher};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};

/// Methods that nginx knows by name.
const METHODS: [&str; 14] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "MKCOL",
    "COPY",
    "MOVE",
    "OPTIONS",
    "PROPFIND",
    "PROPPATCH",
    "LOCK",
    "UNLOCK",
    "PATCH",
];

pub(super) const TABLE: &[DirectiveSpec] =
    &[block("limit_except", Contexts::LOCATION, Args::at_least(1), limit_except)
        .doc(
            "Access control for all methods but the named ones; `GET` includes `HEAD`.",
            "location /files/ { limit_except GET { deny all; } }",
        )
        .takes("METHOD…")];

fn limit_except(r: &mut ConfReader, node: &mut Node) -> ReadResult {
    if r.scope.except.is_some() {
        return Err(ReadFault::Value("is duplicate"));
    }
    let mut methods = Vec::new();
    for word in node.args() {
        let known = METHODS.iter().find(|known| word.eq_ignore_ascii_case(known.as_bytes()));
        let Some(known) = known else {
            return Err(ReadFault::Text(format!("invalid method \"{}\"", show(word))));
        };
        methods.push(*known);
        if *known == "GET" {
            methods.push("HEAD");
        }
    }
    let mut scope = r.inner_scope(Contexts::LIMIT_EXCEPT);
    scope.matcher = Matcher::If;
    // As in nginx, an upstream answers these requests, too; the server's own handlers do not.
    if let Handler::Pass(_) = &r.scope.handler {
        scope.handler = r.scope.handler.clone();
    }
    let id = super::server::reserve(r, node, &scope);
    let mut scope = r.read_inner(node, scope);
    super::server::fill(&mut r.http.locations[id.index()], &mut scope);
    r.scope.except = Some(Except { methods, location: id });
    Ok(())
}
