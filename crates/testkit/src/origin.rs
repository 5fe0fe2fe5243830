//! An HTTP/1 upstream server that sends exactly the bytes that a test defines. It records the
//! requests.
//!
//! It does not use the product's HTTP code. A request that it cannot parse ends the connection.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A request that the server received.
#[derive(Debug, Clone, Default)]
pub struct UpstreamRequest {
    /// The number of its connection, from 0.
    pub connection: usize,
    /// Request line and fields as received, without the empty line.
    pub head: String,
    /// The decoded body.
    pub body: Vec<u8>,
}

impl UpstreamRequest {
    /// The request line.
    #[must_use]
    pub fn line(&self) -> &str {
        self.head.split("\r\n").next().unwrap_or_default()
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.line().split(' ').next().unwrap_or_default()
    }

    /// Path and query.
    #[must_use]
    pub fn target(&self) -> &str {
        self.line().split(' ').nth(1).unwrap_or_default()
    }

    /// The values of all fields with this name, in order.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        fields.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim()).collect()
    }

    /// The value of the first field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }
}

#[derive(Default)]
struct State {
    /// By path and query: the first response, the second, and the last for all others.
    plans: BTreeMap<String, Vec<Vec<u8>>>,
    asked: Vec<UpstreamRequest>,
    /// Requests for this target wait.
    held: Option<String>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    released: Condvar,
    connections: AtomicUsize,
    closed: AtomicUsize,
    gone: AtomicBool,
}

/// A running server. It ends with the test process.
pub struct TestUpstream {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A connection to the server, for scripts.
pub struct TestPeer {
    socket: TcpStream,
    pending: Vec<u8>,
    shared: Arc<Shared>,
    /// The number of the connection, from 0.
    pub number: usize,
}

/// A response with these fields (one per line, or none) and this body, with `Content-Length`.
#[must_use]
pub fn answer(fields: &str, body: &str) -> Vec<u8> {
    answer_of("200 OK", fields, body)
}

/// The same with another status.
#[must_use]
pub fn answer_of(status: &str, fields: &str, body: &str) -> Vec<u8> {
    let lines = fields.lines().map(str::trim).filter(|line| !line.is_empty());
    let fields: String = lines.map(|line| format!("{line}\r\n")).collect();
    let kind = match fields.to_ascii_lowercase().contains("content-type:") {
        true => "",
        false => "Content-Type: text/plain\r\n",
    };
    let len = body.len();
    format!("HTTP/1.1 {status}\r\n{kind}{fields}Content-Length: {len}\r\n\r\n{body}").into_bytes()
}

impl Default for TestUpstream {
    fn default() -> Self {
        Self::start()
    }
}

impl TestUpstream {
    /// Starts a server that responds with `run N` to everything and keeps connections alive.
    #[must_use]
    pub fn start() -> Self {
        Self::scripted(|peer| while peer.answer_as_planned().is_ok() {})
    }

    /// Starts a server that runs `script` for each connection, and then closes it.
    ///
    /// # Panics The socket cannot be created.
    #[must_use]
    pub fn scripted(script: impl Fn(&mut TestPeer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (shared, script) = (Arc::new(Shared::default()), Arc::new(script));
        let all = Arc::clone(&shared);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                if all.gone.load(Ordering::Acquire) {
                    return;
                }
                let (shared, script) = (Arc::clone(&all), Arc::clone(&script));
                socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                socket.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
                socket.set_nodelay(true).unwrap();
                let number = shared.connections.fetch_add(1, Ordering::AcqRel);
                std::thread::spawn(move || {
                    let mut peer = TestPeer { socket, pending: Vec::new(), shared, number };
                    script(&mut peer);
                    drop(peer.socket);
                    peer.shared.closed.fetch_add(1, Ordering::AcqRel);
                });
            }
        });
        Self { address, shared }
    }

    /// The address for a URL, behind `http://`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Sets the response to all requests for `target`.
    pub fn say(&self, target: &str, answer: Vec<u8>) {
        self.plan(target, vec![answer]);
    }

    /// Sets the responses to requests for `target` in order; the last one repeats.
    pub fn plan(&self, target: &str, answers: Vec<Vec<u8>>) {
        let mut state = self.shared.state.lock().unwrap();
        state.asked.retain(|asked| asked.target() != target);
        state.plans.insert(target.to_owned(), answers);
    }

    /// All requests so far.
    #[must_use]
    pub fn all(&self) -> Vec<UpstreamRequest> {
        self.shared.state.lock().unwrap().asked.clone()
    }

    /// The requests for `target`, in order, since its responses were set.
    #[must_use]
    pub fn asked(&self, target: &str) -> Vec<UpstreamRequest> {
        self.all().into_iter().filter(|asked| asked.target() == target).collect()
    }

    /// The number of requests for `target`.
    #[must_use]
    pub fn count(&self, target: &str) -> usize {
        self.asked(target).len()
    }

    /// The number of connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }

    /// The number of connections whose script has ended.
    #[must_use]
    pub fn closed(&self) -> usize {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Makes requests for `target` wait until [`Self::release`].
    pub fn hold(&self, target: &str) {
        self.shared.state.lock().unwrap().held = Some(target.to_owned());
    }

    /// Releases the waiting requests.
    pub fn release(&self) {
        self.shared.state.lock().unwrap().held = None;
        self.shared.released.notify_all();
    }

    /// Stops listening.
    pub fn vanish(&self) {
        self.shared.gone.store(true, Ordering::Release);
        // One more connection wakes the accepting thread, so that it ends.
        let _last = TcpStream::connect(self.address);
        crate::wait_until("the origin to be gone", || TcpStream::connect(self.address).is_err());
    }
}

impl Drop for TestUpstream {
    fn drop(&mut self) {
        self.release();
    }
}

impl TestPeer {
    /// Reads a request with its body and records it.
    ///
    /// # Errors No request arrives.
    pub fn request(&mut self) -> Result<UpstreamRequest> {
        let mut request = self.head()?;
        request.body = match request.field("transfer-encoding") {
            Some(_) => self.chunks()?,
            None => {
                let len = request.field("content-length").map_or(Ok(0), str::parse);
                self.take(len.map_err(|_| bad("a length"))?)?
            }
        };
        self.remember(request.clone());
        Ok(request)
    }

    /// Reads the head of a request only.
    ///
    /// # Errors No request arrives.
    pub fn head(&mut self) -> Result<UpstreamRequest> {
        let head = self.until(b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&head).into_owned();
        Ok(UpstreamRequest { connection: self.number, head, body: Vec::new() })
    }

    /// Records a request.
    pub fn remember(&self, request: UpstreamRequest) {
        self.shared.state.lock().unwrap().asked.push(request);
    }

    /// Reads `len` bytes.
    ///
    /// # Errors Fewer bytes arrive.
    pub fn take(&mut self, len: usize) -> Result<Vec<u8>> {
        while self.pending.len() < len {
            self.more()?;
        }
        Ok(self.pending.drain(..len).collect())
    }

    /// Reads up to `mark` and removes it.
    ///
    /// # Errors The mark does not arrive.
    pub fn until(&mut self, mark: &[u8]) -> Result<Vec<u8>> {
        loop {
            if let Some(at) = self.pending.windows(mark.len()).position(|w| w == mark) {
                let taken = self.pending.drain(..at).collect();
                self.pending.drain(..mark.len());
                return Ok(taken);
            }
            self.more()?;
        }
    }

    /// Reads to the end of input.
    pub fn to_end(&mut self) -> Vec<u8> {
        while self.more().is_ok() {}
        std::mem::take(&mut self.pending)
    }

    /// Sends bytes.
    ///
    /// # Errors The peer does not accept them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.socket.write_all(bytes.as_ref())
    }

    /// Shuts down the sending side.
    pub fn finish(&mut self) {
        let _closed_already = self.socket.shutdown(Shutdown::Write);
    }

    /// Waits while requests for `target` are held.
    pub fn wait(&self, target: &str) {
        let mut state = self.shared.state.lock().unwrap();
        while state.held.as_deref() == Some(target) {
            state = self.shared.released.wait(state).unwrap();
        }
    }

    /// Reads a request and sends the planned response.
    ///
    /// # Errors The connection ended, also by `Connection: close` in the response.
    pub fn answer_as_planned(&mut self) -> Result<()> {
        let request = self.request()?;
        let target = request.target();
        let (said, number) = {
            let state = self.shared.state.lock().unwrap();
            let number = state.asked.iter().filter(|asked| asked.target() == target).count();
            let plan = state.plans.get(target).filter(|plan| !plan.is_empty());
            (plan.map(|plan| plan[(number - 1).min(plan.len() - 1)].clone()), number)
        };
        self.wait(target);
        let mut said = said.unwrap_or_else(|| answer("", &format!("run {number}")));
        let head = said.windows(4).position(|w| w == b"\r\n\r\n").map_or(said.len(), |at| at + 4);
        let text = String::from_utf8_lossy(&said[..head]).to_ascii_lowercase();
        if request.method() == "HEAD" {
            said.truncate(head);
        }
        self.send(said)?;
        match text.contains("\r\nconnection: close") {
            true => Err(bad("asked to close")),
            false => Ok(()),
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n")?;
            let size = String::from_utf8_lossy(&line).into_owned();
            let size = usize::from_str_radix(&size, 16).map_err(|_| bad("a chunk"))?;
            let chunk = self.take(size + 2)?;
            if size == 0 {
                return Ok(body);
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }

    fn more(&mut self) -> Result<()> {
        let mut buffer = [0; 16_384];
        match self.socket.read(&mut buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            len => {
                self.pending.extend_from_slice(&buffer[..len]);
                Ok(())
            }
        }
    }
}

fn bad(what: &str) -> Error {
    Error::other(what.to_owned())
}
