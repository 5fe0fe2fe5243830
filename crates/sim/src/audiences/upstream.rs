//! The oracle's application behind FastCGI and HTTP. A response may leave in two pieces, with other
//! requests in between.

use bolide_testkit::audiences::{AudienceAppRequest, Oracle};

use crate::chance::Chance;
use crate::kernel::{Kernel, SocketGot};

/// Record types of FastCGI.
const PARAMS: u8 = 4;
const STDIN: u8 = 5;

struct Conn {
    fd: i32,
    input: Vec<u8>,
    /// The parts of the response that are still to be sent.
    output: Vec<Vec<u8>>,
    /// Steps to skip before the next part.
    rests: u64,
    is_answered: bool,
}

/// The simulated application.
pub(super) struct AudienceUpstream {
    chance: Chance,
    conns: Vec<Conn>,
}

impl AudienceUpstream {
    pub(super) const fn new(seed: u64) -> Self {
        Self { chance: Chance::new(seed, 3), conns: Vec::new() }
    }

    /// One step of the application. Returns whether it made progress.
    pub(super) fn step(&mut self, kernel: &mut Kernel, oracle: &mut Oracle) -> bool {
        while let Some((fd, _)) = kernel.pending_connects.pop_front() {
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
    /// Reads, responds and writes. Returns whether it made progress, and whether the connection
    /// stays open.
    fn work(
        &mut self,
        kernel: &mut Kernel,
        oracle: &mut Oracle,
        chance: &mut Chance,
    ) -> (bool, bool) {
        match kernel.client_read(self.fd, usize::MAX) {
            SocketGot::Bytes(bytes) => self.input.extend_from_slice(&bytes),
            SocketGot::End | SocketGot::Reset => {
                kernel.client_leave(self.fd, false);
                return (true, false);
            }
            SocketGot::Nothing if self.output.is_empty() => return (false, true),
            SocketGot::Nothing => {}
        }
        if !self.is_answered
            && let Some((received, is_fcgi)) = self.request()
        {
            self.is_answered = true;
            let said = oracle.app.answer(&received);
            kernel.trace(|| format!("application: {received:?}\n            {said:?}"));
            let bytes = match is_fcgi {
                true => said.in_fastcgi(&received),
                false => said.in_http(&received),
            };
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

    /// The complete request, if it has arrived, and whether it came by FastCGI.
    fn request(&self) -> Option<(AudienceAppRequest, bool)> {
        if self.input.first()? != &1 {
            let at = self.input.windows(4).position(|four| four == b"\r\n\r\n")?;
            let head = String::from_utf8_lossy(&self.input[..at]);
            return Some((AudienceAppRequest::by_http(&head), false));
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
                    return Some((AudienceAppRequest::by_fastcgi(&params), true));
                }
                _ => {}
            }
        }
        None
    }
}
