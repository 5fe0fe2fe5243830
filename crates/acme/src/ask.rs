//! The request to the operator's program whether a name is allowed: `GET URL?domain=NAME`; 200
//! means yes. It follows no redirect and reads no body.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderValue, USER_AGENT};
use http::{Request, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::addresses;
use crate::demand::DemandAnswer;
use crate::tls::TlsConnect;
use crate::transport::{AGENT, AcmeConnect, AcmeStream};

/// LIMIT: time for a whole request.
const QUESTION_MAX: Duration = Duration::from_secs(5);
/// LIMIT: bytes of a response head.
const HEAD_MAX: usize = 16 << 10;

/// Asks about one name; the text says why there is no answer.
pub(crate) async fn ask(url: &str, name: &str) -> (DemandAnswer, Option<String>) {
    let asked = timeout(QUESTION_MAX, status(url, name)).await;
    match asked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
        Ok(200) => (DemandAnswer::Allowed, None),
        // RFC 9110 §15.6: the program failed.
        Ok(status @ 500..) => (DemandAnswer::Silent, Some(format!("status {status}"))),
        Ok(_) => (DemandAnswer::Refused, None),
        Err(why) => (DemandAnswer::Silent, Some(why)),
    }
}

async fn status(url: &str, name: &str) -> Result<u16, String> {
    let uri: Uri = url.parse().map_err(|error| format!("\"{url}\": {error}"))?;
    let host = uri.host().ok_or_else(|| format!("\"{url}\" has no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream: Box<dyn AcmeStream> = match uri.scheme_str() {
        Some("https") => {
            let connect: Arc<dyn AcmeConnect> = Arc::new(TlsConnect::of_system()?);
            connect.connect(host, uri.port_u16().unwrap_or(443)).await?
        }
        _ => {
            let port = uri.port_u16().unwrap_or(80);
            Box::new(addresses::connect(host, port, TcpStream::connect).await?)
        }
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let sign = if uri.query().is_some() { '&' } else { '?' };
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let request = Request::get(format!("{path}{sign}domain={name}"))
        .header(HOST, authority)
        .header(USER_AGENT, AGENT)
        .header(CONNECTION, HeaderValue::from_static("close"))
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let made = Builder::new().max_buf_size(HEAD_MAX).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = made.map_err(|error| error.to_string())?;
    // It ends when its sender is dropped, and its failures appear in the request.
    drop(tokio::spawn(connection));
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    Ok(response.status().as_u16())
}
