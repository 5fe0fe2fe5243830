//! A name server over UDP and TCP with responses that a test defines, forged ones included. It
//! records the queries.
//!
//! It reads and writes messages by itself (RFC 1035 §4) and shares no code with the product.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

/// The type of queries for IPv4 addresses.
pub const A: u16 = 1;
/// The type of queries for IPv6 addresses.
pub const AAAA: u16 = 28;

/// A query that the server received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAsked {
    /// The name, with dots, as it was sent.
    pub name: String,
    /// [`A`] or [`AAAA`].
    pub kind: u16,
    /// The id.
    pub id: u16,
    /// Whether it came over TCP.
    pub is_stream: bool,
}

/// The response to a query.
#[derive(Clone, Debug, Default)]
pub struct NameReply {
    /// The records, each with a pointer to the name of the question in place of its own.
    pub records: Vec<Vec<u8>>,
    /// Flags to add: the response code, or others.
    pub flags: u16,
    /// A number to add to the id.
    pub id_shift: u16,
    /// Whether there is no response.
    pub is_silent: bool,
}

impl NameReply {
    /// These records.
    #[must_use]
    pub fn of(records: &[Vec<u8>]) -> Self {
        Self { records: records.to_vec(), ..Self::default() }
    }

    /// These addresses, with a TTL of five minutes.
    ///
    /// # Panics One of them is invalid.
    #[must_use]
    pub fn ips(ips: &[&str]) -> Self {
        Self::of(&ips.iter().map(|ip| address(ip, 300)).collect::<Vec<_>>())
    }

    /// No record, and this response code.
    #[must_use]
    pub fn code(code: u16) -> Self {
        Self { flags: code, ..Self::default() }
    }

    /// No response.
    #[must_use]
    pub fn silence() -> Self {
        Self { is_silent: true, ..Self::default() }
    }
}

/// An address record.
///
/// # Panics The address is invalid.
#[must_use]
pub fn address(ip: &str, ttl: u32) -> Vec<u8> {
    match ip.parse().unwrap() {
        IpAddr::V4(ip) => record(A, ttl, &ip.octets()),
        IpAddr::V6(ip) => record(AAAA, ttl, &ip.octets()),
    }
}

/// A CNAME record.
#[must_use]
pub fn alias(name: &str, ttl: u32) -> Vec<u8> {
    let mut data = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        data.push(label.len() as u8);
        data.extend_from_slice(label.as_bytes());
    }
    data.push(0);
    record(5, ttl, &data)
}

/// Any record.
#[must_use]
pub fn record(kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut out = vec![0xc0, 12];
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(data);
    out
}

#[derive(Default)]
struct NameState {
    /// By name and type: the first response, the second, and the last for all others.
    plans: BTreeMap<(String, u16), Vec<NameReply>>,
    asked: Vec<NameAsked>,
    /// Names and types whose responses wait.
    held: Vec<(String, u16)>,
    waiting: Vec<(String, u16, Vec<u8>, SocketAddr)>,
}

/// A running name server. It ends with the test process.
pub struct TestNames {
    address: SocketAddr,
    socket: UdpSocket,
    state: Arc<Mutex<NameState>>,
}

impl Default for TestNames {
    fn default() -> Self {
        Self::start()
    }
}

impl TestNames {
    /// Starts a server without names: it responds without records.
    ///
    /// # Panics There is no port for both UDP and TCP.
    #[must_use]
    pub fn start() -> Self {
        let both = || {
            let socket = UdpSocket::bind(("127.0.0.1", 0)).ok()?;
            let listener = TcpListener::bind(socket.local_addr().ok()?).ok()?;
            Some((socket, listener))
        };
        let (socket, listener) = (0..100).find_map(|_| both()).expect("a port for UDP and TCP");
        let state = Arc::new(Mutex::new(NameState::default()));
        let (all, own) = (Arc::clone(&state), socket.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((len, from)) = own.recv_from(&mut buffer) {
                if let Some(reply) = all.lock().unwrap().answer(&buffer[..len], Some(from)) {
                    let _ = own.send_to(&reply, from);
                }
            }
        });
        let all = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                std::thread::spawn(move || serve(stream, &all));
            }
        });
        Self { address: socket.local_addr().unwrap(), socket, state }
    }

    /// The address, for `resolver`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Sets the responses to queries for a name; the last one repeats.
    pub fn plan(&self, name: &str, kind: u16, replies: &[NameReply]) {
        let key = (name.to_owned(), kind);
        self.state.lock().unwrap().plans.insert(key, replies.to_vec());
    }

    /// Sets the responses for both types.
    pub fn say(&self, name: &str, a: NameReply, aaaa: NameReply) {
        self.plan(name, A, &[a]);
        self.plan(name, AAAA, &[aaaa]);
    }

    /// Makes responses for this name wait for [`Self::release`].
    pub fn hold(&self, name: &str, kind: u16) {
        self.state.lock().unwrap().held.push((name.to_owned(), kind));
    }

    /// Sends the waiting responses.
    pub fn release(&self, name: &str, kind: u16) {
        let mut state = self.state.lock().unwrap();
        let key = (name.to_owned(), kind);
        state.held.retain(|held| *held != key);
        for (waiting, of, reply, to) in std::mem::take(&mut state.waiting) {
            if (&waiting, of) == (&key.0, kind) {
                let _ = self.socket.send_to(&reply, to);
            } else {
                state.waiting.push((waiting, of, reply, to));
            }
        }
    }

    /// The queries for a name so far.
    #[must_use]
    pub fn asked(&self, name: &str) -> Vec<NameAsked> {
        let state = self.state.lock().unwrap();
        state.asked.iter().filter(|asked| asked.name == name).cloned().collect()
    }

    /// The number of queries of one type.
    #[must_use]
    pub fn count(&self, name: &str, kind: u16) -> usize {
        self.asked(name).iter().filter(|asked| asked.kind == kind).count()
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<NameState>) {
    let mut len = [0; 2];
    while stream.read_exact(&mut len).is_ok() {
        let mut question = vec![0; usize::from(u16::from_be_bytes(len))];
        if stream.read_exact(&mut question).is_err() {
            return;
        }
        let reply = state.lock().unwrap().answer(&question, None);
        let Some(reply) = reply else { continue };
        let framed = [&(reply.len() as u16).to_be_bytes()[..], &reply].concat();
        if stream.write_all(&framed).is_err() {
            return;
        }
    }
}

impl NameState {
    /// The response to a query; `None` if it is not to be sent now. `from` is `None` over TCP.
    fn answer(&mut self, question: &[u8], from: Option<SocketAddr>) -> Option<Vec<u8>> {
        let asked = read(question, from.is_none())?;
        let key = (asked.name.clone(), asked.kind);
        self.asked.push(asked);
        let reply = match self.plans.get_mut(&key) {
            Some(plan) if plan.len() > 1 => plan.remove(0),
            Some(plan) => plan.first().cloned().unwrap_or_default(),
            None => NameReply::default(),
        };
        if reply.is_silent {
            return None;
        }
        let mut out = question.to_vec();
        let id = u16::from_be_bytes([out[0], out[1]]).wrapping_add(reply.id_shift);
        let flags = 0x8180 ^ reply.flags;
        out[..2].copy_from_slice(&id.to_be_bytes());
        out[2..4].copy_from_slice(&flags.to_be_bytes());
        out[6..8].copy_from_slice(&(reply.records.len() as u16).to_be_bytes());
        out.extend(reply.records.concat());
        match from.filter(|_| self.held.contains(&key)) {
            Some(from) => {
                self.waiting.push((key.0, key.1, out, from));
                None
            }
            None => Some(out),
        }
    }
}

/// Parses a query; `None` if it is not one plain query.
fn read(message: &[u8], is_stream: bool) -> Option<NameAsked> {
    let header = [1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    if message.get(2..12)? != header {
        return None;
    }
    let (mut at, mut labels) = (12, Vec::new());
    loop {
        let len = usize::from(*message.get(at)?);
        at += 1;
        if len == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(message.get(at..at + len)?).into_owned());
        at += len;
    }
    let tail = message.get(at..)?;
    let (id, kind) =
        (u16::from_be_bytes([message[0], message[1]]), [*tail.first()?, *tail.get(1)?]);
    let kind = u16::from_be_bytes(kind);
    (tail.len() == 4 && tail[2..] == [0, 1]).then(|| NameAsked {
        name: labels.join("."),
        kind,
        id,
        is_stream,
    })
}
