//! `proxy_pass`, and the form of requests to HTTP upstreams.

use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, flag, list, own, value,
};
use crate::model::ProxySettings;
use crate::model::{Handler, Matcher, Pass, PassTo, Protocol, ProxyField, ProxyUrl, ProxyVersion};
use crate::proxy_url;
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, invalid_value};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    own("proxy_pass", Contexts::LIE, Args::ONE, proxy_pass)
        .doc(
            "The HTTP or HTTPS upstream; a URI in it replaces the location's prefix.",
            "proxy_pass http://127.0.0.1:8080;",
        )
        .takes("http://HOST[URI] | https://HOST[URI] | TEXT")
        .without("none"),
    list("proxy_set_header", HSL, Args::TWO, set_header)
        .doc(
            "A header field of upstream requests; an empty value omits it.",
            "proxy_set_header Host $host;",
        )
        .takes("NAME TEXT")
        .without(
            "`Host` is `$proxy_host`; hop-by-hop fields are dropped; all others are the client's",
        ),
    value("proxy_method", HSL, Args::ONE, |r, node| {
        let method = r.template(node.arg(0))?;
        settings(r).method = Some(method);
        Ok(())
    })
    .doc("The method of upstream requests.", "proxy_method POST;")
    .takes("TEXT")
    .without("the method of the client"),
    value("proxy_http_version", HSL, Args::ONE, |r, node| {
        settings(r).version = match node.arg(0) {
            b"1.0" => ProxyVersion::V10,
            b"1.1" => ProxyVersion::V11,
            b"2" => ProxyVersion::V2,
            word => return Err(invalid_value(word)),
        };
        Ok(())
    })
    .doc("The HTTP version of upstream requests.", "proxy_http_version 1.1;")
    .takes("1.0 | 1.1 | 2")
    .default("1.1"),
    value("proxy_set_body", HSL, Args::ONE, |r, node| {
        let body = r.template(node.arg(0))?;
        settings(r).body = Some(body);
        Ok(())
    })
    .doc("The body of upstream requests.", "proxy_set_body \"from=$remote_addr\";")
    .takes("TEXT")
    .without("the body of the client"),
    flag("proxy_pass_trailers", HSL, |r| &mut settings(r).pass_trailers)
        .doc("Whether trailer fields of the upstream are passed on.", "proxy_pass_trailers on;"),
    flag("proxy_cache_convert_head", HSL, |r| &mut settings(r).convert_head).doc(
        "Whether HEAD becomes GET upstream when the response may be cached.",
        "proxy_cache_convert_head on;",
    ),
    accepted("proxy_headers_hash_max_size", HSL, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "proxy_headers_hash_max_size 512;"),
    accepted("proxy_headers_hash_bucket_size", HSL, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "proxy_headers_hash_bucket_size 64;"),
];

/// The settings being made.
pub(super) fn settings(r: &mut ConfReader) -> &mut ProxySettings {
    Arc::make_mut(&mut r.origin().proxy)
}

fn proxy_pass(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.again {
        return Err(DUPLICATE);
    }
    let text = r.template(node.arg(0))?;
    if text.as_text().is_none() {
        let to = PassTo::Text(text);
        r.scope.handler = Handler::Pass(Pass { protocol: Protocol::Http, to, url: None });
        return Ok(());
    }
    let fault = |text: &str| ReadFault::Text(text.to_owned());
    let cut = proxy_url::parse(node.arg(0)).map_err(|error| fault(error.text()))?;
    let port = if cut.secure { 443 } else { 80 };
    let id = super::pass::group(r, node, cut.origin, (cut.rest, Some(port)))?;
    let is_prefix = matches!(r.scope.matcher, Matcher::Prefix { .. } | Matcher::Exact(_));
    if cut.uri.is_some() && !is_prefix {
        return Err(fault(
            "\"proxy_pass\" cannot have URI part in location given by regular expression, or \
             inside named location, or inside \"if\" statement, or inside \"limit_except\" block",
        ));
    }
    let url = ProxyUrl {
        secure: cut.secure,
        host: cut.host.into(),
        port: cut.port.into(),
        uri: cut.uri.map(Arc::from),
        replaces: Arc::clone(&r.scope.name),
        written: node.arg(0).into(),
    };
    let (to, url) = (PassTo::Group(id), Some(Arc::new(url)));
    r.scope.handler = Handler::Pass(Pass { protocol: Protocol::Http, to, url });
    Ok(())
}

pub(super) fn set_header(r: &mut ConfReader, node: &Node) -> ReadResult {
    // nginx reads values when the block ends, so an error in one is reported there.
    let value = match r.template(node.arg(1)) {
        Ok(value) => value,
        Err(ReadFault::Text(message)) => {
            r.http.param_faults.push(message);
            crate::vars::Template::default()
        }
        Err(fault) => return Err(fault),
    };
    let again = r.again;
    let fields = &mut settings(r).fields;
    if !again {
        *fields = Arc::default();
    }
    Arc::make_mut(fields).push(ProxyField { name: node.arg(0).into(), value });
    Ok(())
}
