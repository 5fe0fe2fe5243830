//! Requests over HTTP for the status of certificates: an OCSP question, or a list. They follow no
//! redirect, and time and size have a limit.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::addresses;
use crate::transport::{AGENT, AcmeConnect, AcmeStream};

/// LIMIT: time for a whole request to a responder, and for a list.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);
const LIST_TIME_MAX: Duration = Duration::from_secs(120);
/// LIMIT: bytes of a response head.
const HEAD_MAX: usize = 16 << 10;
/// LIMIT: bytes of an OCSP response, and of a list.
const ANSWER_MAX: usize = 64 << 10;
const LIST_MAX: usize = 16 << 20;

/// How to connect, if not by TCP.
pub(crate) type OtherWay = Option<Arc<dyn AcmeConnect>>;

/// Sends an OCSP request (RFC 6960, appendix A.1), and returns the response.
///
/// # Errors
///
/// There is none.
pub(crate) async fn answer(way: &OtherWay, url: &str, question: Vec<u8>) -> Result<Bytes, String> {
    let request = fetch(way, url, Some(question), ANSWER_MAX);
    timeout(ANSWER_TIME_MAX, request).await.unwrap_or_else(|_| Err(too_late()))
}

/// Fetches a list.
///
/// # Errors
///
/// There is none.
pub(crate) async fn list(way: &OtherWay, url: &str) -> Result<Bytes, String> {
    let request = fetch(way, url, None, LIST_MAX);
    timeout(LIST_TIME_MAX, request).await.unwrap_or_else(|_| Err(too_late()))
}

fn too_late() -> String {
    "no complete response in time".to_owned()
}

async fn fetch(
    way: &OtherWay,
    url: &str,
    question: Option<Vec<u8>>,
    size_max: usize,
) -> Result<Bytes, String> {
    let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
    let host = uri.host().ok_or("the URL has no host")?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = uri.port_u16().unwrap_or(80);
    let stream: Box<dyn AcmeStream> = match way {
        Some(way) => way.connect(host, port).await?,
        None => Box::new(addresses::connect(host, port, TcpStream::connect).await?),
    };
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let method = if question.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, authority.rsplit('@').next().unwrap_or_default())
        .header(USER_AGENT, AGENT)
        .header(CONNECTION, HeaderValue::from_static("close"));
    if question.is_some() {
        request = request.header(CONTENT_TYPE, "application/ocsp-request");
    }
    let request = request.body(Full::new(Bytes::from(question.unwrap_or_default())));
    let request = request.map_err(|error| error.to_string())?;
    let made = Builder::new().max_buf_size(HEAD_MAX).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = made.map_err(|error| error.to_string())?;
    // It ends when its sender is dropped, and its failures appear in the request.
    drop(tokio::spawn(connection));
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    if response.status() != StatusCode::OK {
        return Err(format!("status {}", response.status().as_u16()));
    }
    let body = Limited::new(response.into_body(), size_max).collect().await;
    Ok(body.map_err(|error| format!("the response broke off: {error}"))?.to_bytes())
}
