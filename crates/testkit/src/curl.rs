//! Requests with curl, for HTTP/2 and HTTP/3 above all.

use std::fs;
use std::path::Path;

use crate::tools::run;

/// The required HTTP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proto {
    /// HTTP/1.1.
    H1,
    /// HTTP/2, negotiated by ALPN.
    H2,
    /// HTTP/2 in cleartext with prior knowledge.
    H2c,
    /// HTTP/3 only.
    H3,
}

impl Proto {
    /// The three versions over TLS.
    pub const TLS: [Self; 3] = [Self::H1, Self::H2, Self::H3];

    fn flag(self) -> &'static str {
        match self {
            Self::H1 => "--http1.1",
            Self::H2 => "--http2",
            Self::H2c => "--http2-prior-knowledge",
            Self::H3 => "--http3-only",
        }
    }

    /// curl's name for the HTTP version.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::H1 => "1.1",
            Self::H2 | Self::H2c => "2",
            Self::H3 => "3",
        }
    }
}

/// A request with curl.
pub struct Curl {
    args: Vec<String>,
    proto: Proto,
}

/// The result of curl.
#[derive(Debug, Clone, Default)]
pub struct CurlReply {
    /// curl's exit status; 0 if the transfer was complete.
    pub exit: i32,
    /// Status code of the last response.
    pub status: u16,
    /// `1.1`, `2` or `3`.
    pub version: String,
    /// Fields of the last response, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Trailer fields, names in lower case.
    pub trailers: Vec<(String, String)>,
    /// The earlier heads (interim responses and redirects), as text.
    pub before: Vec<String>,
    /// The body as received.
    pub body: Vec<u8>,
    /// curl's error messages.
    pub stderr: String,
}

impl CurlReply {
    /// The value of the first field with this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Curl {
    /// A request with `proto`. Certificates are checked only after [`Curl::trusting`].
    #[must_use]
    pub fn new(proto: Proto) -> Self {
        let fixed = ["-sS", "-4", "--max-time", "60", proto.flag()];
        Self { args: fixed.map(str::to_owned).to_vec(), proto }
    }

    /// Adds curl arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a request field, `Name: value`.
    #[must_use]
    pub fn field(self, field: &str) -> Self {
        self.args(["-H", field])
    }

    /// Verifies the server with this certificate.
    #[must_use]
    pub fn trusting(self, cert: &Path) -> Self {
        self.args(["--cacert", cert.to_str().unwrap()])
    }

    /// Makes the request.
    ///
    /// # Panics curl failed or used another HTTP version.
    #[must_use]
    pub fn get(self, url: &str) -> CurlReply {
        let wanted = self.proto.version();
        let reply = self.attempt(url);
        assert_eq!(reply.exit, 0, "curl {url}: {}", reply.stderr);
        assert_eq!(reply.version, wanted, "version of HTTP for {url}");
        reply
    }

    /// Makes the request and returns any result.
    ///
    /// # Panics curl is missing.
    #[must_use]
    pub fn attempt(mut self, url: &str) -> CurlReply {
        let dir = crate::site::temp_dir();
        let (head, body) = (dir.join("head"), dir.join("body"));
        if !self.args.iter().any(|arg| arg == "--cacert") {
            self.args.push("-k".to_owned());
        }
        let out = ["-D", head.to_str().unwrap(), "-o", body.to_str().unwrap()];
        self = self.args(out).args(["-w", "%{http_code} %{http_version}", "--", url]);
        let done = run("curl-h3", &self.args);
        let text = done.text();
        let (status, version) = text.split_once(' ').unwrap_or(("0", ""));
        let head = fs::read(&head).unwrap_or_default();
        let head = String::from_utf8_lossy(&head);
        let mut heads: Vec<&str> = head.trim_end().split("\r\n\r\n").collect();
        let mut last = heads.pop().unwrap_or_default();
        let mut trailers = Vec::new();
        if !last.starts_with("HTTP/") && !heads.is_empty() {
            trailers = last.lines().filter_map(field).collect();
            last = heads.pop().unwrap_or_default();
        }
        let reply = CurlReply {
            trailers,
            exit: done.code,
            status: status.parse().unwrap_or(0),
            version: version.to_owned(),
            headers: fields(last),
            before: heads.into_iter().map(str::to_owned).collect(),
            body: fs::read(&body).unwrap_or_default(),
            stderr: done.stderr,
        };
        fs::remove_dir_all(&dir).unwrap();
        reply
    }
}

/// The fields of a head.
fn fields(head: &str) -> Vec<(String, String)> {
    head.lines().skip(1).filter_map(field).collect()
}

/// The field of a line.
fn field(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim().to_owned()))
}
