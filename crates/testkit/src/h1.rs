//! An HTTP/1 client over a plain socket, which sends exactly the given bytes.
//!
//! A response that it cannot parse fails the test.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// A connection.
pub struct H1TestClient {
    socket: TcpStream,
    pending: Vec<u8>,
}

/// A response.
#[derive(Debug, Clone, Default)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// The whole first line.
    pub status_line: String,
    /// Fields in order, names as sent.
    pub headers: Vec<(String, String)>,
    /// The decoded body.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of the first field with this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl H1TestClient {
    /// Connects. Every read times out after ten seconds.
    ///
    /// # Panics The connection is refused.
    #[must_use]
    pub fn connect(addr: SocketAddr) -> Self {
        let socket = TcpStream::connect(addr).unwrap_or_else(|e| panic!("connect {addr}: {e}"));
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket, pending: Vec::new() }
    }

    /// Sends bytes. A closed connection is no error: a response may have come before.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _closed_early = self.socket.write_all(bytes.as_ref());
        self
    }

    /// Shuts down the sending side.
    pub fn finish(&mut self) -> &mut Self {
        let _closed_already = self.socket.shutdown(Shutdown::Write);
        self
    }

    /// Sends a request and reads its response; `head` ends before the empty line.
    pub fn ask(&mut self, head: &str) -> Response {
        self.send(format!("{head}\r\n\r\n"));
        self.answer_to(head.split(' ').next().unwrap_or("GET"))
    }

    /// `GET path` for `Host: localhost`, with more fields (each ended by CR LF).
    pub fn get(&mut self, path: &str, fields: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        self.answer()
    }

    /// Reads the response to a GET.
    pub fn answer(&mut self) -> Response {
        self.answer_to("GET")
    }

    /// Reads the response to a request of `method`.
    ///
    /// # Panics No complete response comes.
    pub fn answer_to(&mut self, method: &str) -> Response {
        self.try_answer(method).unwrap_or_else(|why| panic!("no answer: {why}"))
    }

    /// Reads a response, or returns why there is none.
    ///
    /// # Errors The connection closes, times out or sends something else.
    pub fn try_answer(&mut self, method: &str) -> Result<Response, String> {
        let head = self.take_until(b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let status_line = lines.next().unwrap_or_default().to_owned();
        let status = status_line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or_else(|| format!("not a status line: {status_line:?}"))?;
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(": ").ok_or(format!("not a field: {line:?}"))?;
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut response = Response { status, status_line, headers, body: Vec::new() };
        if method != "HEAD" && status >= 200 && status != 204 && status != 304 {
            response.body = self.body(&response)?;
        }
        Ok(response)
    }

    fn body(&mut self, head: &Response) -> Result<Vec<u8>, String> {
        if head.header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            let mut body = Vec::new();
            loop {
                let line = self.take_until(b"\r\n")?;
                let size = String::from_utf8_lossy(&line[..line.len() - 2]).into_owned();
                let size = usize::from_str_radix(&size, 16)
                    .map_err(|_| format!("not a chunk size: {size:?}"))?;
                let chunk = self.take(size + 2)?;
                if size == 0 {
                    return Ok(body);
                }
                body.extend_from_slice(&chunk[..size]);
            }
        }
        match head.header("content-length") {
            Some(len) => self.take(len.parse().map_err(|_| format!("bad length {len}"))?),
            None => self.to_end(),
        }
    }

    /// Reads until the peer closes.
    ///
    /// # Errors It does not close.
    pub fn to_end(&mut self) -> Result<Vec<u8>, String> {
        while self.fill()? {}
        Ok(std::mem::take(&mut self.pending))
    }

    /// Whether the peer closes without sending more.
    pub fn is_closed(&mut self) -> bool {
        self.to_end().is_ok_and(|rest| rest.is_empty())
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors Fewer bytes come.
    pub fn take(&mut self, len: usize) -> Result<Vec<u8>, String> {
        while self.pending.len() < len {
            if !self.fill()? {
                return Err(format!("closed after {} of {len} bytes", self.pending.len()));
            }
        }
        Ok(self.pending.drain(..len).collect())
    }

    fn take_until(&mut self, mark: &[u8]) -> Result<Vec<u8>, String> {
        let mut from = 0;
        loop {
            if let Some(at) = self.pending[from..].windows(mark.len()).position(|w| w == mark) {
                return Ok(self.pending.drain(..from + at + mark.len()).collect());
            }
            from = self.pending.len().saturating_sub(mark.len());
            if !self.fill()? {
                let have = String::from_utf8_lossy(&self.pending);
                return Err(format!("closed after {:?}", have.get(..300).unwrap_or(&have)));
            }
        }
    }

    /// Reads once; false at the end of the stream.
    fn fill(&mut self) -> Result<bool, String> {
        let mut buffer = [0; 16_384];
        let mut got = self.socket.read(&mut buffer);
        while got.as_ref().is_err_and(|e| e.kind() == ErrorKind::Interrupted) {
            got = self.socket.read(&mut buffer);
        }
        match got {
            Ok(0) => Ok(false),
            Ok(len) => {
                self.pending.extend_from_slice(&buffer[..len]);
                Ok(true)
            }
            // A server that closes with unread input resets the connection; the response came
            // before.
            Err(e) if e.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(e) => Err(format!("read: {e}")),
        }
    }
}
