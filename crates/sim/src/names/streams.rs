//! TCP connections to name servers, for responses that do not fit a datagram.

use super::message::{RESPONSE, SimQuestion};
use super::{MILLI, Mood, SECOND, SimNames};

/// A stream that some worker made.
#[derive(Debug)]
pub(crate) struct NameCaller {
    pub(crate) fd: i32,
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    rests_until: u64,
    /// It is closed behind its output.
    pub(crate) ends: bool,
}

impl NameCaller {
    pub(crate) const fn new(fd: i32) -> Self {
        Self { fd, input: Vec::new(), output: Vec::new(), rests_until: 0, ends: false }
    }

    /// Until when it does nothing, if it has something to do.
    pub(crate) fn rests(&self, now: u64) -> Option<u64> {
        (self.rests_until > now).then_some(self.rests_until)
    }

    /// A whole question behind its length.
    fn take(&mut self) -> Option<Vec<u8>> {
        let (len, behind) = self.input.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_be_bytes(*len));
        let message = behind.get(..len)?.to_vec();
        self.input.drain(..2 + len);
        Some(message)
    }
}

impl SimNames {
    /// Answers the next question that has come by a stream, if there is a whole one.
    ///
    /// # Errors
    ///
    /// In words, why this is no question that a worker may ask.
    pub(crate) fn answer_by_stream(
        &mut self,
        caller: &mut NameCaller,
        now: u64,
    ) -> Result<Option<String>, String> {
        let Some(message) = caller.take() else { return Ok(None) };
        let (query, name) = SimQuestion::read(&message)?;
        let kind = if self.mood == Mood::Good { 3 } else { self.chance.below(9) };
        let told = format!("a name server is asked for {} by a stream: {kind}", query.name);
        let messages = match kind {
            // It closes, says nothing any more, or something else.
            0 => Vec::new(),
            1 => return Ok(Some(told)),
            2 => vec![Vec::new()],
            4 => vec![vec![7; self.chance.size(3000)]],
            5 => vec![self.lie_about(caller.fd, &query, name).1],
            6 => vec![query.reply(RESPONSE | 2, &[])],
            _ => {
                let mut all: Vec<_> =
                    (0..self.chance.index(3)).map(|_| query.reply(0x0100, &[])).collect();
                all.push(self.truth(&query, name, now));
                all
            }
        };
        caller.ends = messages.is_empty() || self.chance.one_in(3);
        for message in messages {
            caller.output.extend_from_slice(&(message.len() as u16).to_be_bytes());
            caller.output.extend_from_slice(&message);
        }
        let longest = if self.mood == Mood::Good { 300 * MILLI } else { 3 * SECOND };
        caller.rests_until = now + self.chance.below(longest);
        Ok(Some(told))
    }
}
