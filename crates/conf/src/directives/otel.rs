//! Traces of OpenTelemetry: which requests have a span, what it tells, and where spans are sent.
//!
//! Spans are sent by OTLP over HTTP (`POST`, protobuf), where nginx's module speaks gRPC:
//! collectors listen for it on port 4318. A worker never waits for the collector: spans without
//! room are dropped, and the drops are logged once a minute. Ids are in `$otel_trace_id`,
//! `$otel_span_id` and `$otel_parent_id`; `$otel_parent_sampled` is `1` where the client's request
//! is traced.

use std::sync::Arc;
use std::time::Duration;

use bolide_http::structured::is_token;

use crate::ast::Node;
use crate::choice::chosen;
use crate::directive::{
    Args, Contexts, DirectiveSpec, Inheritance, leaf, list, millis, number, own, value,
};
use crate::model::{LogLevel, OtelContext, OtelEndpoint, OtelExporter, OtelSettings};
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, show};
use crate::vars::{Template, TemplatePart};

const X: Contexts = Contexts::OTEL_EXPORTER;
const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    leaf("otel_exporter", Contexts::HTTP, Args::NONE, Inheritance::Own, otel_exporter).doc(
        "Where spans are sent, and how many at once.",
        "otel_exporter { endpoint http://127.0.0.1:4318; interval 5s; }",
    ),
    value("endpoint", X, Args::ONE, endpoint)
        .doc(
            "The collector, by OTLP over HTTP. `HOST:PORT` is `http://HOST:PORT`; without a path \
             it is `/v1/traces`, and without a port 80, or 443 of `https`.",
            "endpoint https://collector.example.com:4318;",
        )
        .takes("URL | HOST")
        .without("none; a block has to name one"),
    millis("interval", X, |r| &mut exporter(r).interval)
        .doc("The longest time between two exports.", "interval 5s;"),
    number("batch_size", X, |r| &mut exporter(r).batch_size)
        .doc("The most spans of one worker in one request.", "batch_size 512;"),
    number("batch_count", X, |r| &mut exporter(r).batch_count).doc(
        "The batches of one worker that may wait; further spans are dropped.",
        "batch_count 4;",
    ),
    own("header", X, Args::TWO, header)
        .doc("A field of the requests to the collector.", "header X-API-Token 1234;")
        .takes("NAME TEXT")
        .without("none"),
    value("trusted_certificate", X, Args::ONE, |r, node| {
        let path = r.beside_conf(node.arg(0));
        exporter(r).trusted_certificate = Some(path);
        Ok(())
    })
    .doc(
        "The authorities by which the certificate of an `https` endpoint is verified.",
        "trusted_certificate collector-ca.pem;",
    )
    .takes("FILE")
    .without("those of the system"),
    value("otel_service_name", Contexts::HTTP, Args::ONE, |r, node| {
        r.http.otel.service_name = show(node.arg(0)).into_owned();
        Ok(())
    })
    .doc("The attribute `service.name` of all spans.", "otel_service_name shop;")
    .takes("NAME")
    .default("unknown_service:nginx"),
    own("otel_resource_attr", Contexts::HTTP, Args::TWO, |r, node| {
        let (name, value) = (show(node.arg(0)).into_owned(), show(node.arg(1)).into_owned());
        r.http.otel.resource.push((name, value));
        Ok(())
    })
    .doc(
        "An attribute of the resource, which all spans share.",
        "otel_resource_attr deployment.environment production;",
    )
    .takes("NAME TEXT")
    .without("none"),
    value("otel_trace", HSL, Args::ONE, |r, node| {
        let trace = match node.arg(0) {
            b"off" => None,
            word => Some(trace(r, word)?),
        };
        settings(r).trace = trace;
        Ok(())
    })
    .doc(
        "Whether requests have a span: `on`, `off`, or a variable that is `on` or `1`, such as \
         one of `split_clients \"$otel_trace_id\"` for a share of them. It is decided where a \
         request enters the first location that has this or `otel_trace_context` on; redirects \
         inside the server do not change it.",
        "otel_trace $otel_parent_sampled;",
    )
    .takes("on | off | $NAME")
    .default("off"),
    value("otel_trace_context", HSL, Args::ONE, |r, node| {
        settings(r).context = chosen(
            node,
            &[
                ("ignore", OtelContext::Ignore),
                ("extract", OtelContext::Extract),
                ("inject", OtelContext::Inject),
                ("propagate", OtelContext::Propagate),
            ],
        )?;
        Ok(())
    })
    .doc(
        "What becomes of `traceparent` and `tracestate` (W3C Trace Context): `extract` takes up \
         what a client sends, `inject` sends a context of this server to upstream servers in place \
         of the client's, `propagate` does both.",
        "otel_trace_context propagate;",
    )
    .takes("extract | inject | propagate | ignore")
    .default("ignore"),
    value("otel_span_name", HSL, Args::ONE, |r, node| {
        let name = r.template(node.arg(0))?;
        settings(r).span_name = Some(name);
        Ok(())
    })
    .doc("The name of spans.", "otel_span_name $request_method;")
    .takes("TEXT")
    .without("the name of the location"),
    list("otel_span_attr", HSL, Args::TWO, |r, node| {
        let name: Arc<str> = show(node.arg(0)).into();
        let value = r.template(node.arg(1))?;
        let again = r.again;
        let all = Arc::make_mut(&mut settings(r).span_attrs);
        if !again {
            all.clear();
        }
        all.push((name, value));
        Ok(())
    })
    .doc(
        "An attribute of spans, beside those of every span: `http.method`, `http.target`, \
         `http.route`, `http.scheme`, `http.flavor`, `http.user_agent`, \
         `http.request_content_length`, `http.response_content_length`, `http.status_code`, \
         `net.host.name`, `net.host.port`, `net.sock.peer.addr`, `net.sock.peer.port`.",
        "otel_span_attr cache $upstream_cache_status;",
    )
    .takes("NAME TEXT")
    .without("none"),
];

/// A block without a line.
pub(super) fn empty() -> OtelExporter {
    OtelExporter {
        endpoint: OtelEndpoint::default(),
        interval: Duration::from_secs(5),
        batch_size: 512,
        batch_count: 4,
        headers: Vec::new(),
        trusted_certificate: None,
    }
}

fn exporter(r: &mut ConfReader) -> &mut OtelExporter {
    r.http.otel.exporter.get_or_insert_with(empty)
}

fn settings(r: &mut ConfReader) -> &mut OtelSettings {
    Arc::make_mut(&mut r.settings().otel)
}

fn otel_exporter(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.http.otel.exporter.is_some() {
        return Err(DUPLICATE);
    }
    r.http.otel.exporter = Some(empty());
    let scope = r.inner_scope(X);
    let _ = r.read_leaf(node, scope);
    let made = exporter(r);
    if made.endpoint.host.is_empty() {
        return Err(ReadFault::Text("\"otel_exporter\" requires \"endpoint\"".to_owned()));
    }
    if made.batch_size == 0 || made.batch_count == 0 || made.interval.is_zero() {
        let text = "\"interval\", \"batch_size\" and \"batch_count\" must be greater than zero";
        return Err(ReadFault::Text(text.to_owned()));
    }
    Ok(())
}

/// `on` or one variable.
fn trace(r: &mut ConfReader, word: &[u8]) -> Result<Template, ReadFault> {
    let template = r.template(word)?;
    match template.parts() {
        [TemplatePart::Var(_)] => Ok(template),
        _ if word == b"on" => Ok(template),
        _ => Err(ReadFault::Text(format!(
            "invalid value \"{}\" in \"otel_trace\", it must be \"on\", \"off\" or a variable",
            show(word)
        ))),
    }
}

fn endpoint(r: &mut ConfReader, node: &Node) -> ReadResult {
    let text = show(node.arg(0)).into_owned();
    let read = parse(&text);
    exporter(r).endpoint = read.ok_or_else(|| {
        ReadFault::Text(format!(
            "invalid endpoint \"{text}\", expected [http://|https://]HOST:PORT"
        ))
    })?;
    Ok(())
}

fn parse(text: &str) -> Option<OtelEndpoint> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let secure = match scheme.to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => false,
        "" if !text.contains("://") => false,
        _ => return None,
    };
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ if scheme.is_empty() => return None,
        _ => (authority, if secure { 443 } else { 80 }),
    };
    let bare = host.strip_prefix('[').map_or(Some(host), |rest| rest.strip_suffix(']'))?;
    let is_v6 = bare.parse::<std::net::Ipv6Addr>().is_ok();
    let is_plain =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'@' | b'?' | b'#' | b'\\');
    let is_host = !bare.is_empty() && bare.bytes().all(is_plain) && (is_v6 || !bare.contains(':'));
    let is_path = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    let is_good = is_host && is_path && port > 0 && is_v6 == host.starts_with('[');
    let path = if path == "/" { "/v1/traces" } else { path };
    is_good.then(|| OtelEndpoint { secure, host: bare.to_owned(), port, path: path.to_owned() })
}

/// Fields that the request has already, or that say where it ends.
const TAKEN: [&str; 6] =
    ["host", "connection", "content-length", "content-type", "transfer-encoding", "expect"];

fn header(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (name, value) = (node.arg(0), node.arg(1));
    let is_text = |byte: &u8| *byte == b'\t' || (b' '..=b'~').contains(byte);
    let text = show(name).into_owned();
    if name.is_empty() || !name.iter().copied().all(is_token) || !value.iter().all(is_text) {
        return Err(ReadFault::Text(format!("invalid header \"{text}\"")));
    }
    if TAKEN.contains(&text.to_ascii_lowercase().as_str()) {
        return Err(ReadFault::Text(format!("the header \"{text}\" is set by the server")));
    }
    let value = show(value).into_owned();
    exporter(r).headers.push((text, value));
    Ok(())
}

/// Refuses traces that lead nowhere, and warns of an exporter without any.
pub(crate) fn check(r: &mut ConfReader) {
    let settings = r.http.locations.iter().map(|location| &location.settings.otel);
    let traces = settings.filter(|otel| otel.trace.is_some()).count();
    let (level, text) = match (traces, &r.http.otel.exporter) {
        (1.., None) => (LogLevel::Emerg, "\"otel_exporter\" block is missing"),
        (0, Some(_)) => {
            (LogLevel::Warn, "\"otel_exporter\" has nothing to send: no \"otel_trace\" is on")
        }
        _ => return,
    };
    let place = Some(r.http.closed_at.clone());
    r.say(level, text.to_owned(), place);
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn endpoints_are_urls_or_hosts_with_a_port() {
        let read = |text: &str| {
            let read = parse(text)?;
            let scheme = if read.secure { "https" } else { "http" };
            Some(format!("{scheme} {} {} {}", read.host, read.port, read.path))
        };
        for (text, wanted) in [
            ("localhost:4317", "http localhost 4317 /v1/traces"),
            ("HTTP://a:1/", "http a 1 /v1/traces"),
            ("http://a", "http a 80 /v1/traces"),
            ("https://a/otlp/v1/traces?k=1", "https a 443 /otlp/v1/traces?k=1"),
            ("[::1]:4318", "http ::1 4318 /v1/traces"),
            ("https://[::1]/x", "https ::1 443 /x"),
        ] {
            assert_eq!(read(text).as_deref(), Some(wanted), "{text}");
        }
        for text in [
            "",
            "a",
            ":1",
            "a:0",
            "a:65536",
            "a:x",
            "ftp://a:1",
            "://a:1",
            "http://",
            "::1:4318",
            "u@a:1",
            "http://a:1/ b",
            "[a]:1",
            "unix:/s",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
