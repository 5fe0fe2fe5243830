//! One request to a collector and its response (OTLP/HTTP), on a connection of its own.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bolide_conf::model::{OtelEndpoint, OtelExporter};
use bolide_tls::{AcceptorOptions, OriginOptions, OriginSession, OriginTls};

use crate::tls_setup::authorities;

/// How long a collector may take for each step, and for all of them.
const STEP: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(10);
/// LIMIT: bytes of the response head.
const HEAD_MAX: usize = 16 << 10;
/// LIMIT: certificates between that of a collector and its CA.
const DEPTH: u32 = 10;

/// The usual files of the system's CA certificates.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Why spans were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// For the log.
    pub(super) why: String,
    /// Whether the same spans would be refused again.
    pub(super) is_final: bool,
    /// The collector's `Retry-After`.
    pub(super) after: Option<Duration>,
}

impl Refusal {
    const fn passing(why: String) -> Self {
        Self { why, is_final: false, after: None }
    }
}

/// A collector.
#[derive(Debug)]
pub(super) struct Collector {
    endpoint: OtelEndpoint,
    /// The request head up to the length.
    head: String,
    tls: Option<OriginTls>,
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtelEndpoint { secure, path, .. } = &self.endpoint;
        let scheme = if *secure { "https" } else { "http" };
        write!(f, "collector: {scheme}://{}{path}", authority(&self.endpoint))
    }
}

/// Host and port, in the form for fields and addresses.
fn authority(endpoint: &OtelEndpoint) -> String {
    let OtelEndpoint { host, port, .. } = endpoint;
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl Collector {
    /// # Errors
    ///
    /// The certificates that it trusts cannot be read.
    pub(super) fn new(conf: &OtelExporter) -> Result<Self, String> {
        let endpoint = conf.endpoint.clone();
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: bolide/{}\r\nConnection: close\r\n\
             Content-Type: application/x-protobuf\r\n",
            endpoint.path,
            authority(&endpoint),
            env!("CARGO_PKG_VERSION")
        );
        for (name, value) in &conf.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let trusted = conf.trusted_certificate.clone();
        let tls = endpoint.secure.then(|| tls(trusted)).transpose()?;
        Ok(Self { endpoint, head, tls })
    }

    /// Sends an `ExportTraceServiceRequest`.
    ///
    /// # Errors
    ///
    /// The collector refused it.
    pub(super) fn post(&self, body: &[u8]) -> Result<(), Refusal> {
        let OtelEndpoint { host, port, .. } = &self.endpoint;
        let found = (host.as_str(), *port).to_socket_addrs();
        let addresses: Vec<SocketAddr> = found
            .map_err(|error| Refusal::passing(format!("{host} could not be resolved ({error})")))?
            .collect();
        let mut failed = format!("{host} could not be resolved");
        for address in addresses {
            match TcpStream::connect_timeout(&address, STEP) {
                Ok(socket) => return self.ask(socket, body),
                Err(error) => failed = said("connect", &error),
            }
        }
        Err(Refusal::passing(failed))
    }

    fn ask(&self, socket: TcpStream, body: &[u8]) -> Result<(), Refusal> {
        let mut line =
            Line::open(socket, &self.endpoint, self.tls.as_ref()).map_err(Refusal::passing)?;
        let head = format!("{}Content-Length: {}\r\n\r\n", self.head, body.len());
        line.send(&[head.as_bytes(), body].concat()).map_err(Refusal::passing)?;
        let head = line.head().map_err(Refusal::passing)?;
        judge(&head)
    }
}

/// The result in a response head.
fn judge(head: &[u8]) -> Result<(), Refusal> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
    let Some(status) = status.and_then(|digits| digits.parse::<u16>().ok()) else {
        return Err(Refusal::passing("the collector's answer is no HTTP".to_owned()));
    };
    if (200..300).contains(&status) {
        return Ok(());
    }
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let after = fields.find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
    let after = after.and_then(|(_, value)| value.trim().parse().ok()).map(Duration::from_secs);
    // OTLP: these are temporary, and no others.
    let is_final = !matches!(status, 429 | 502..=504);
    Err(Refusal { why: format!("the collector answered {status}"), is_final, after })
}

fn said(call: &str, error: &std::io::Error) -> String {
    format!("{call}() failed ({})", bolide_base::errno::describe(error))
}

/// The file of the system's CA certificates, if there is one.
pub(crate) fn system_authorities() -> Option<PathBuf> {
    BUNDLES.iter().map(PathBuf::from).find(|path| path.exists())
}

/// TLS settings that verify the collector's certificate.
fn tls(trusted: Option<PathBuf>) -> Result<OriginTls, String> {
    let offered = AcceptorOptions::default();
    let options = OriginOptions {
        versions: offered.versions,
        ciphers: offered.ciphers,
        ciphersuites: offered.ciphersuites,
        curves: offered.curves,
        tells_name: true,
        keeps_sessions: true,
        alpn: Vec::new(),
    };
    let bundle = trusted.or_else(system_authorities);
    let bundle = bundle.ok_or("no authorities of the system are found for \"otel_exporter\"")?;
    let mut made = OriginTls::new(&options, None)?;
    made.trust(authorities(None, Some(&bundle as &Path), None, DEPTH)?);
    Ok(made)
}

/// A connection to a collector.
struct Line {
    socket: TcpStream,
    session: Option<OriginSession>,
    plain: Vec<u8>,
    end: bolide_base::Instant,
}

impl Line {
    fn open(
        socket: TcpStream,
        endpoint: &OtelEndpoint,
        tls: Option<&OriginTls>,
    ) -> Result<Self, String> {
        let limits =
            socket.set_read_timeout(Some(STEP)).and_then(|()| socket.set_write_timeout(Some(STEP)));
        limits.map_err(|error| said("setsockopt", &error))?;
        let session = tls
            .map(|tls| tls.session(endpoint.host.as_bytes(), &endpoint.host, None))
            .transpose()?;
        let end = bolide_io::process::now().mono.after(WHOLE);
        let mut line = Self { socket, session, plain: Vec::new(), end };
        line.shake_hands()?;
        Ok(line)
    }

    fn shake_hands(&mut self) -> Result<(), String> {
        loop {
            let Some(session) = &mut self.session else { return Ok(()) };
            let mut out = Vec::new();
            session.transmit(&mut out);
            let is_handshaking = session.is_handshaking();
            let verdict = if is_handshaking { None } else { session.verdict() };
            if let Some(why) = verdict {
                return Err(why);
            }
            self.write(&out)?;
            if !is_handshaking {
                return Ok(());
            }
            if !self.read()? {
                return Err("the collector closed the connection in its handshake".to_owned());
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        for part in bytes.chunks(64 << 10) {
            self.look_at_time()?;
            self.socket.write_all(part).map_err(|error| said("send", &error))?;
        }
        Ok(())
    }

    fn send(&mut self, plain: &[u8]) -> Result<(), String> {
        let Some(session) = &mut self.session else { return self.write(plain) };
        let mut out = Vec::new();
        session.seal(plain, &mut out);
        self.write(&out)
    }

    /// Reads the available bytes; returns whether the connection is still open.
    fn read(&mut self) -> Result<bool, String> {
        self.look_at_time()?;
        let mut part = [0; 4096];
        let len = self.socket.read(&mut part).map_err(|error| said("recv", &error))?;
        match &mut self.session {
            Some(session) => {
                session.receive(&part[..len], &mut self.plain).map_err(|error| {
                    format!("SSL_do_handshake() or SSL_read() failed ({error})")
                })?;
            }
            None => self.plain.extend_from_slice(&part[..len]),
        }
        Ok(len > 0)
    }

    /// The head of the answer.
    fn head(&mut self) -> Result<Vec<u8>, String> {
        loop {
            let end = self.plain.windows(4).position(|window| window == b"\r\n\r\n");
            if let Some(end) = end {
                return Ok(self.plain[..end].to_vec());
            }
            if self.plain.len() > HEAD_MAX {
                return Err("the collector sent too large a head".to_owned());
            }
            if !self.read()? {
                return Err("the collector closed the connection without an answer".to_owned());
            }
        }
    }

    /// A collector that sends single bytes would delay all others.
    fn look_at_time(&self) -> Result<(), String> {
        let is_late = bolide_io::process::now().mono >= self.end;
        if is_late { Err("the collector timed out".to_owned()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::judge;

    #[test]
    fn an_answer_says_whether_the_same_may_be_sent_again() {
        let ask = |text: &str| judge(text.as_bytes());
        for good in ["HTTP/1.1 200 OK", "HTTP/1.0 202 Yes\r\nA: b", "HTTP/1.1 204"] {
            assert_eq!(ask(good), Ok(()), "{good}");
        }
        for (text, is_final, after) in [
            ("HTTP/1.1 400 Bad", true, None),
            ("HTTP/1.1 500 Oh", true, None),
            ("HTTP/1.1 301 Moved", true, None),
            ("HTTP/1.1 503 Busy\r\nX: y\r\nretry-after: 7", false, Some(7)),
            ("HTTP/1.1 429 Many\r\nRetry-After: tomorrow", false, None),
            ("HTTP/1.1 502 No", false, None),
            ("HTTP/2 200", false, None),
            ("junk", false, None),
            ("", false, None),
        ] {
            let refusal = ask(text).unwrap_err();
            let after = after.map(Duration::from_secs);
            assert_eq!((refusal.is_final, refusal.after), (is_final, after), "{text}");
        }
    }
}
