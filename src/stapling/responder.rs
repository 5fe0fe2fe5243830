//! An OCSP responder: its URL, and one request to it over HTTP (RFC 6960, appendix A.1).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a responder may take for each step.
const PATIENCE: Duration = Duration::from_secs(10);
/// LIMIT: bytes of a response.
const ANSWER_MAX: usize = 64 << 10;

/// The responder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Responder {
    pub(super) host: String,
    pub(super) port: u16,
    /// With a slash at its end.
    path: String,
}

impl Responder {
    /// # Errors
    ///
    /// nginx's message, and the text that it is about.
    pub(super) fn parse(url: &str) -> Result<Self, (&'static str, String)> {
        let wrong_prefix = || ("invalid URL prefix", url.to_owned());
        let is_http = url.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("http://"));
        let rest = url.get(7..).filter(|rest| is_http && !rest.is_empty());
        let rest = rest.ok_or_else(wrong_prefix)?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (host, port.ok_or(("invalid port", rest.to_owned()))?)
            }
            _ => (authority, 80),
        };
        if host.is_empty() {
            return Err(("no host", rest.to_owned()));
        }
        let slash = if path.ends_with('/') { "" } else { "/" };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port, path: format!("{path}{slash}") })
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        found.map(Iterator::collect).unwrap_or_default()
    }

    /// One request and its response.
    pub(super) fn ask(&self, request: &[u8]) -> Result<Vec<u8>, String> {
        let addresses = self.addresses();
        let address =
            addresses.first().ok_or_else(|| format!("{} could not be resolved", self.host))?;
        let failed = |call: &str, error: &std::io::Error| {
            format!("{call}() failed ({})", bolide_base::errno::describe(error))
        };
        let mut socket = TcpStream::connect_timeout(address, PATIENCE)
            .map_err(|error| failed("connect", &error))?;
        let limits = socket
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| socket.set_write_timeout(Some(PATIENCE)));
        limits.map_err(|error| failed("setsockopt", &error))?;
        let Self { host, path, .. } = self;
        let question = escaped(&base64(request));
        let request = format!("GET {path}{question} HTTP/1.0\r\nHost: {host}\r\n\r\n");
        socket.write_all(request.as_bytes()).map_err(|error| failed("send", &error))?;
        let mut answer = Vec::new();
        let end = bolide_io::process::now().mono.after(PATIENCE);
        let mut part = [0; 4096];
        while answer.len() < ANSWER_MAX {
            // A responder that sends single bytes would delay all other certificates.
            if bolide_io::process::now().mono >= end {
                return Err("OCSP responder timed out".to_owned());
            }
            match socket.read(&mut part).map_err(|error| failed("recv", &error))? {
                0 => break,
                len => answer.extend_from_slice(&part[..len]),
            }
        }
        body_of(answer)
    }
}

/// The body of an HTTP response, if it is an OCSP response.
fn body_of(mut answer: Vec<u8>) -> Result<Vec<u8>, String> {
    if answer.is_empty() {
        return Err("OCSP responder prematurely closed connection".to_owned());
    }
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.filter(|_| answer.starts_with(b"HTTP/"));
    let Some(end) = end else { return Err("OCSP responder sent invalid response".to_owned()) };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let field = |name: &str| {
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let mut fields = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        fields.next().map(|(_, value)| value.trim().to_owned())
    };
    let kind = field("Content-Type").unwrap_or_default();
    if !kind.eq_ignore_ascii_case("application/ocsp-response") {
        return Err(format!("OCSP responder sent invalid \"Content-Type\" header: \"{kind}\""));
    }
    answer.drain(..end + 4);
    if let Some(len) = field("Content-Length").and_then(|text| text.parse::<usize>().ok()) {
        if answer.len() < len {
            return Err("OCSP responder prematurely closed connection".to_owned());
        }
        answer.truncate(len);
    }
    Ok(answer)
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(group >> (18 - 6 * place)) as usize & 63];
            out.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

/// RFC 6960 §A.1: the request is escaped in the path.
fn escaped(text: &str) -> String {
    text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

#[cfg(test)]
mod tests {
    use super::{Responder, base64, body_of, escaped};

    #[test]
    fn questions_are_written_as_rfc_4648_and_rfc_6960_say() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xef, 0xff]), "++//");
        assert_eq!(escaped("+/="), "%2B%2F%3D");
    }

    #[test]
    fn responders_are_asked_over_http_only() {
        let good = |url: &str| Responder::parse(url).map(|it| (it.host, it.port, it.path));
        assert_eq!(good("http://a.test"), Ok(("a.test".into(), 80, "/".into())));
        assert_eq!(good("HTTP://a.test:81/x"), Ok(("a.test".into(), 81, "/x/".into())));
        assert_eq!(good("http://[::1]/x/"), Ok(("::1".into(), 80, "/x/".into())));
        for url in ["https://a.test/", "a.test", "http://", ""] {
            assert_eq!(good(url), Err(("invalid URL prefix", url.to_owned())));
        }
        assert_eq!(good("http://a:x/"), Err(("invalid port", "a:x/".to_owned())));
        assert_eq!(good("http://:80/"), Err(("no host", ":80/".to_owned())));
    }

    #[test]
    fn an_answer_says_what_it_is() {
        let ask = |text: &str| body_of(text.as_bytes().to_vec());
        let kind = "Content-Type: application/ocsp-response";
        assert_eq!(ask(&format!("HTTP/1.0 200 OK\r\n{kind}\r\n\r\nxyz")), Ok(b"xyz".to_vec()));
        let cut = format!("HTTP/1.0 200 OK\r\n{kind}\r\nContent-Length: 2\r\n\r\nxyz");
        assert_eq!(ask(&cut), Ok(b"xy".to_vec()));
        let short = format!("HTTP/1.0 200 OK\r\n{kind}\r\nContent-Length: 9\r\n\r\nxyz");
        for text in ["", "junk", "junk\r\n\r\n", &*short, "HTTP/1.0 404 No\r\n\r\n"] {
            assert!(ask(text).is_err(), "{text}");
        }
    }
}
