//! TCP connections to name servers, for responses that do not fit a datagram.

use super::message::{DnsQuestion, RESPONSE};
use super::{DnsMode, MILLI, SECOND, SimDns};

/// A TCP stream of a worker to a name server.
#[derive(Debug)]
pub(crate) struct SimDnsStream {
    pub(crate) fd: i32,
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    rests_until: u64,
    /// It is closed after its output.
    pub(crate) ends: bool,
}

impl SimDnsStream {
    pub(crate) const fn new(fd: i32) -> Self {
        Self { fd, input: Vec::new(), output: Vec::new(), rests_until: 0, ends: false }
    }

    /// Until when the stream rests, if it does.
    pub(crate) fn rests(&self, now: u64) -> Option<u64> {
        (self.rests_until > now).then_some(self.rests_until)
    }

    /// The next complete message of the input.
    fn take(&mut self) -> Option<Vec<u8>> {
        let (len, behind) = self.input.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_be_bytes(*len));
        let message = behind.get(..len)?.to_vec();
        self.input.drain(..2 + len);
        Some(message)
    }
}

impl SimDns {
    /// Responds to the next complete query of a stream, if there is one. Returns a line for the
    /// trace.
    ///
    /// # Errors
    ///
    /// Why the query is not valid.
    pub(crate) fn answer_by_stream(
        &mut self,
        stream: &mut SimDnsStream,
        now: u64,
    ) -> Result<Option<String>, String> {
        let Some(message) = stream.take() else { return Ok(None) };
        let (query, name) = DnsQuestion::read(&message)?;
        let kind = if self.mode == DnsMode::Reliable { 3 } else { self.chance.below(9) };
        let line = format!("a name server is asked for {} by a stream: {kind}", query.name);
        let messages = match kind {
            // It closes, stops responding, or sends an empty message.
            0 => Vec::new(),
            1 => return Ok(Some(line)),
            2 => vec![Vec::new()],
            4 => vec![vec![7; self.chance.size(3000)]],
            5 => vec![self.forged_response(stream.fd, &query, name).1],
            6 => vec![query.reply(RESPONSE | 2, &[])],
            _ => {
                let mut all: Vec<_> =
                    (0..self.chance.index(3)).map(|_| query.reply(0x0100, &[])).collect();
                all.push(self.valid_response(&query, name, now));
                all
            }
        };
        stream.ends = messages.is_empty() || self.chance.one_in(3);
        for message in messages {
            stream.output.extend_from_slice(&(message.len() as u16).to_be_bytes());
            stream.output.extend_from_slice(&message);
        }
        let longest = if self.mode == DnsMode::Reliable { 300 * MILLI } else { 3 * SECOND };
        stream.rests_until = now + self.chance.below(longest);
        Ok(Some(line))
    }
}
