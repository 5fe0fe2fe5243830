//! The oracle's application behind FastCGI and HTTP, whichever it is spoken to by. What it says may
//! leave in two pieces, with others being asked in between.

use testkit::audiences::{Oracle, Received, Said};

use crate::chance::Chance;
use crate::kernel::{Got, Kernel};
use crate::origin::pairs;

/// Record types of FastCGI.
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const END: u8 = 3;
/// Bytes of a record's content.
const CONTENT_MAX: usize = 60_000;

struct Conn {
    fd: i32,
    input: Vec<u8>,
    /// What is still to be said, in pieces.
    output: Vec<Vec<u8>>,
    /// Times that it is passed over before it says the next one.
    rests: u64,
    is_answered: bool,
}

/// The application.
pub(super) struct Origin {
    chance: Chance,
    conns: Vec<Conn>,
}

impl Origin {
    pub(super) const fn new(seed: u64) -> Self {
        Self { chance: Chance::new(seed, 3), conns: Vec::new() }
    }

    /// Lets it do something; whether it did.
    pub(super) fn act(&mut self, kernel: &mut Kernel, oracle: &mut Oracle) -> bool {
        while let Some((fd, _)) = kernel.callers.pop_front() {
            let (input, output) = (Vec::new(), Vec::new());
            self.conns.push(Conn { fd, input, output, rests: 0, is_answered: false });
        }
        let mut any = false;
        let chance = &mut self.chance;
        self.conns.retain_mut(|conn| {
            let (worked, stays) = conn.work(kernel, oracle, chance);
            any |= worked;
            stays
        });
        any
    }
}

impl Conn {
    /// Reads, answers, writes: whether something was done, and whether the connection stays.
    fn work(
        &mut self,
        kernel: &mut Kernel,
        oracle: &mut Oracle,
        chance: &mut Chance,
    ) -> (bool, bool) {
        match kernel.client_read(self.fd, usize::MAX) {
            Got::Bytes(bytes) => self.input.extend_from_slice(&bytes),
            Got::End | Got::Reset => {
                kernel.client_leave(self.fd, false);
                return (true, false);
            }
            Got::Nothing if self.output.is_empty() => return (false, true),
            Got::Nothing => {}
        }
        if !self.is_answered
            && let Some((received, is_fcgi)) = self.request()
        {
            self.is_answered = true;
            let said = oracle.app.answer(&received);
            kernel.tell(|| format!("application: {received:?}\n            {said:?}"));
            let is_head = received.params.get("REQUEST_METHOD").is_some_and(|m| m == "HEAD");
            let bytes = if is_fcgi { records(&said, is_head) } else { message(&said, is_head) };
            let cut = if chance.one_in(3) { chance.index(bytes.len()) } else { bytes.len() };
            self.output = vec![bytes[cut..].to_vec(), bytes[..cut].to_vec()];
            self.output.retain(|piece| !piece.is_empty());
            self.rests = chance.below(3);
        }
        if self.rests > 0 {
            self.rests -= 1;
            return (true, true);
        }
        if let Some(mut piece) = self.output.pop() {
            let taken = kernel.client_write(self.fd, &piece).unwrap_or(piece.len());
            piece.drain(..taken);
            if !piece.is_empty() {
                self.output.push(piece);
            }
            self.rests = chance.below(3);
        }
        if self.output.is_empty() && self.is_answered {
            kernel.client_leave(self.fd, false);
            return (true, false);
        }
        (true, true)
    }

    /// The whole request, once it is here, and whether it came by FastCGI.
    fn request(&self) -> Option<(Received, bool)> {
        if self.input.first()? != &1 {
            let at = self.input.windows(4).position(|four| four == b"\r\n\r\n")?;
            let head = String::from_utf8_lossy(&self.input[..at]);
            return Some((Received::by_http(&head), false));
        }
        let (mut rest, mut params) = (&self.input[..], Vec::new());
        while let Some(header) = rest.first_chunk::<8>() {
            let [_, kind, _, _, high, low, padding, _] = *header;
            let len = usize::from(u16::from_be_bytes([high, low]));
            let content = rest.get(8..8 + len)?;
            rest = rest.get(8 + len + usize::from(padding)..)?;
            match kind {
                PARAMS => params.extend_from_slice(content),
                STDIN if len == 0 => {
                    let params = pairs(&params).collect();
                    return Some((Received { params }, true));
                }
                _ => {}
            }
        }
        None
    }
}

fn head(said: &Said) -> String {
    let lines = said.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("Content-Type: text/html\r\n{}", lines.collect::<String>())
}

fn records(said: &Said, is_head: bool) -> Vec<u8> {
    let body = if is_head { "" } else { &*said.body };
    let text = format!("Status: {} X\r\n{}\r\n{body}", said.status, head(said));
    let mut out = Vec::new();
    let mut push = |kind, content: &[u8]| {
        let len = (content.len() as u16).to_be_bytes();
        out.extend_from_slice(&[1, kind, 0, 1, len[0], len[1], 0, 0]);
        out.extend_from_slice(content);
    };
    text.as_bytes().chunks(CONTENT_MAX).for_each(|piece| push(STDOUT, piece));
    push(STDOUT, b"");
    push(END, &[0; 8]);
    out
}

fn message(said: &Said, is_head: bool) -> Vec<u8> {
    let body = if is_head { "" } else { &*said.body };
    let len = said.body.len();
    let (status, head) = (said.status, head(said));
    format!("HTTP/1.1 {status} X\r\n{head}Content-Length: {len}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}
