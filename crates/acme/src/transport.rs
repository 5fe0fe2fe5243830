//! Requests to issuers: HTTP/1.1 on one kept connection, with a bound for each time and size.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, LINK, RETRY_AFTER, USER_AGENT};
use http::response::Parts;
use http::{HeaderMap, Request, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::schedule::RETRY_AFTER_MAX;

/// For connecting to all addresses of a host, and for a whole request.
const CONNECT_MAX: Duration = Duration::from_secs(15);
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// LIMIT: bytes of a response.
const BODY_MAX: usize = 1 << 20;
/// LIMIT: alternate chains that are looked at.
const ALTERNATES_MAX: usize = 8;
pub(crate) const AGENT: &str = concat!("bolide/", env!("CARGO_PKG_VERSION"), " instant-acme");

/// A connection.
pub trait AcmeStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> AcmeStream for T {}

/// What a connection is made of.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Box<dyn AcmeStream>, String>> + Send>>;

/// Makes connections to issuers.
pub trait AcmeConnect: Send + Sync {
    /// A connection to a host and port, with TLS if the issuer is asked by it.
    fn connect(&self, host: &str, port: u16) -> Connecting;
}

/// Decides in tests at which step the process crashes.
pub type CrashHook = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The parts of the last response that the library does not return.
#[derive(Clone, Debug, Default)]
pub struct TransportNotes {
    /// Seconds until the issuer wants the next request.
    pub retry_after: Option<u64>,
    /// Its status; none: there was no response.
    pub status: Option<u16>,
    /// If it was a chain: its text, and the addresses of its alternates.
    pub chain: Option<(String, Vec<String>)>,
}

/// The connection of one attempt.
#[derive(Clone)]
pub struct AcmeTransport(Arc<Inner>);

struct Inner {
    connect: Arc<dyn AcmeConnect>,
    kept: tokio::sync::Mutex<Option<Kept>>,
    notes: Mutex<TransportNotes>,
    crash_hook: Option<CrashHook>,
    /// Seconds since 1970.
    clock: Arc<dyn Fn() -> u64 + Send + Sync>,
}

struct Kept {
    host: String,
    port: u16,
    sender: SendRequest<BodyWrapper<Bytes>>,
}

/// Not even addresses: they may be secrets of an issuer.
impl fmt::Debug for AcmeTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeTransport").finish_non_exhaustive()
    }
}

impl AcmeTransport {
    /// One without a connection.
    pub fn new(
        connect: Arc<dyn AcmeConnect>,
        crash_hook: Option<CrashHook>,
        clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    ) -> Self {
        let (kept, notes) = (tokio::sync::Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { connect, kept, notes, crash_hook, clock }))
    }

    /// The noted parts of the last response.
    #[must_use]
    pub fn notes(&self) -> TransportNotes {
        self.0.notes().clone()
    }

    /// The boundary of a step: where a test lets the process die, the attempt stays forever.
    pub async fn step(&self, name: &str) {
        self.0.step(name).await;
    }
}

impl HttpClient for AcmeTransport {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let inner = self.0.clone();
        Box::pin(async move {
            *inner.notes() = TransportNotes::default();
            inner.step("request").await;
            let answer = match timeout(REQUEST_MAX, inner.exchange(request)).await {
                Ok(answer) => answer,
                Err(_) => Err("the issuer does not answer in time".to_owned()),
            };
            inner.step("response").await;
            let (mut parts, body) = answer.map_err(|why| Error::Other(why.into()))?;
            inner.record(&parts, &body);
            bound_retry_after(&mut parts.headers, (inner.clock)());
            check_directory(&body).map_err(|why| Error::Other(why.into()))?;
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

impl Inner {
    fn notes(&self) -> MutexGuard<'_, TransportNotes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn step(&self, name: &str) {
        if self.crash_hook.as_ref().is_some_and(|crash_hook| crash_hook(name)) {
            std::future::pending::<()>().await;
        }
    }

    async fn exchange(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Result<(Parts, Bytes), String> {
        let (mut parts, body) = request.into_parts();
        let (host, port) = target(&parts.uri)?;
        let authority = parts.uri.authority().map(ToString::to_string).unwrap_or_default();
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        parts.headers.insert(HOST, value(&authority)?);
        parts.headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = path.parse().map_err(|error| format!("\"{path}\": {error}"))?;
        let mut request = Request::from_parts(parts, body);
        let mut kept = self.kept.lock().await;
        let mut old = kept.take().filter(|kept| kept.host == host && kept.port == port);
        loop {
            let is_new = old.is_none();
            let mut one = match old.take() {
                Some(kept) => kept,
                None => self.open(&host, port).await?,
            };
            if one.sender.ready().await.is_err() && !is_new {
                continue;
            }
            let response = match one.sender.try_send_request(request).await {
                Ok(response) => response,
                Err(mut error) => match error.take_message() {
                    // The issuer closed the kept connection, and did not get the request.
                    Some(message) if !is_new => {
                        request = message;
                        continue;
                    }
                    _ => return Err(describe(error.error())),
                },
            };
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, BODY_MAX).collect().await;
            let body = body.map_err(|error| format!("the response broke off: {error}"))?;
            *kept = Some(one);
            return Ok((parts, body.to_bytes()));
        }
    }

    async fn open(&self, host: &str, port: u16) -> Result<Kept, String> {
        let connected = timeout(CONNECT_MAX, self.connect.connect(host, port)).await;
        let stream = connected.map_err(|_| format!("no connection to {host} in time"))??;
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| describe(&error))?;
        // It ends with its sender, and its failures are those of the requests.
        drop(tokio::spawn(connection));
        Ok(Kept { host: host.to_owned(), port, sender })
    }

    fn record(&self, parts: &Parts, body: &Bytes) {
        let mut notes = self.notes();
        notes.status = Some(parts.status.as_u16());
        notes.retry_after = retry_after(&parts.headers, (self.clock)());
        let kind = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if parts.status.is_success() && kind.starts_with(b"application/pem-certificate-chain") {
            let text = String::from_utf8_lossy(body).into_owned();
            notes.chain = Some((text, alternates(&parts.headers)));
        }
    }
}

fn describe(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn target(uri: &Uri) -> Result<(String, u16), String> {
    if uri.scheme_str() != Some("https") {
        return Err(format!("\"{uri}\" does not begin with https://"));
    }
    let host = uri.host().ok_or_else(|| format!("\"{uri}\" has no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), uri.port_u16().unwrap_or(443)))
}

fn retry_after(headers: &HeaderMap, now: u64) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let date = date.duration_since(std::time::SystemTime::UNIX_EPOCH).ok()?;
    Some(date.as_secs().saturating_sub(now))
}

/// Replaces `Retry-After` by seconds up to [`RETRY_AFTER_MAX`]: the library adds them to the time,
/// and a sum that does not fit is a panic.
fn bound_retry_after(headers: &mut HeaderMap, now: u64) {
    if let Some(seconds) = retry_after(headers, now) {
        headers.insert(RETRY_AFTER, seconds.min(RETRY_AFTER_MAX).into());
    } else {
        headers.remove(RETRY_AFTER);
    }
}

/// Checks the address for nonces, if this is a directory: the library panics if it is none.
fn check_directory(body: &[u8]) -> Result<(), String> {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(address) = body.get("newNonce").and_then(serde_json::Value::as_str) else {
        return Ok(());
    };
    let uri = address.parse::<Uri>().map_err(|error| format!("newNonce \"{address}\": {error}"))?;
    target(&uri).map(drop)
}

/// The addresses of `Link: <...>;rel="alternate"` (RFC 8555, section 7.4.2).
fn alternates(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    let links = values.flat_map(|value| value.split(','));
    let links = links.filter_map(|link| {
        let (address, relation) = link.trim().strip_prefix('<')?.split_once('>')?;
        relation.contains("alternate").then(|| address.to_owned())
    });
    links.take(ALTERNATES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let seconds = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, 784_111_777)
        };
        assert_eq!(seconds("17"), Some(17));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:47 GMT"), Some(10));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:27 GMT"), Some(0));
        assert_eq!(seconds("-1"), None);
        assert_eq!(seconds("soon"), None);
    }

    #[test]
    fn the_library_gets_no_retry_after_beyond_the_limit() {
        let bounded = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.append(RETRY_AFTER, text.parse().unwrap());
            bound_retry_after(&mut headers, 784_111_777);
            headers.get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned())
        };
        let most = Some(RETRY_AFTER_MAX.to_string());
        assert_eq!(bounded("17").as_deref(), Some("17"));
        assert_eq!(bounded("18446744073709551615"), most);
        assert_eq!(bounded("Fri, 31 Dec 9999 23:59:59 GMT"), most);
        assert_eq!(bounded("99999999999999999999"), None);
    }

    #[test]
    fn a_directory_names_where_nonces_are() {
        let check = |address: &str| {
            check_directory(serde_json::json!({ "newNonce": address }).to_string().as_bytes())
        };
        assert_eq!(check("https://a.example/nonce"), Ok(()));
        for address in ["", " ", "a b", "/nonce", "http://a.example/", "https://\u{e9}/"] {
            assert!(check(address).is_err(), "{address}");
        }
        assert_eq!(check_directory(b"{\"newOrder\":7}"), Ok(()));
        assert_eq!(check_directory(b"<html>"), Ok(()));
    }

    #[test]
    fn only_https_is_asked() {
        let of = |uri: &'static str| target(&Uri::from_static(uri));
        assert_eq!(of("https://a.example/x"), Ok(("a.example".into(), 443)));
        assert_eq!(of("https://[::1]:14000/dir"), Ok(("::1".into(), 14000)));
        assert!(of("http://a.example/").is_err());
        assert!(of("/relative").is_err());
    }

    #[test]
    fn alternates_are_links_of_that_relation() {
        let mut headers = HeaderMap::new();
        headers.append(LINK, "<https://a/1>;rel=\"alternate\"".parse().unwrap());
        headers.append(LINK, "<https://a/d>;rel=\"index\"".parse().unwrap());
        assert_eq!(alternates(&headers), ["https://a/1"]);
    }
}
