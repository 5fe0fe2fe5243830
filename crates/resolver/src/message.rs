//! Messages of DNS (RFC 1035 §4): questions written, answers read.
//!
//! Owns nginx's judgement of an answer, in its order: the header, the question, and only once the
//! caller has found out that it waits for this answer, the records.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::name;
use crate::resolver::Transport;

/// Bytes of a header.
const HEADER: usize = 12;
/// Bytes of a question behind its name.
const QUESTION: usize = 4;
/// Bytes of a record behind its name: type, class, TTL and length.
const RECORD: usize = 10;
/// The least that a name takes in a record: a pointer.
const NAME_MIN: usize = 2;
/// The class of the Internet.
const IN: u16 = 1;
/// The flag of a message that was cut.
const TRUNCATED: u16 = 0x0200;
/// Flags that are the same in all answers to standard queries: QR, the opcode, and the three bits
/// that are not asked for.
const FIXED: u16 = 0xf870;
const ANSWER: u16 = 0x8000;
/// Types of records.
const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
const TYPE_DNAME: u16 = 39;
/// The code of a question that the server could not read, and the last one that is a verdict.
pub(crate) const FORMAT_ERROR: u8 = 1;
const REFUSED: u8 = 5;

/// Which addresses a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// A records.
    V4,
    /// AAAA records.
    V6,
}

/// Why an answer does not count: a line for the error log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DnsFault {
    /// What there is to say.
    Text(&'static str),
    /// The same, with numbers or names in it.
    Line(String),
    /// The server says that it failed with this code, which is no verdict.
    Code {
        /// The code.
        code: u8,
        /// The id of the answer.
        id: u16,
    },
    /// It was cut again, and a whole one is on its way: not worth a line.
    Repeated,
}

/// An answer whose header and question are in order.
#[derive(Debug)]
pub(crate) struct DnsReply<'a> {
    message: &'a [u8],
    /// The id of the question.
    pub(crate) id: u16,
    /// The code: 0, or 2 to 5.
    pub(crate) code: u8,
    /// Whether it was cut, so that it has to be asked for again over a stream.
    pub(crate) is_truncated: bool,
    /// The name that was asked for.
    pub(crate) name: Vec<u8>,
    /// What was asked for.
    pub(crate) family: Family,
    /// The number of records.
    pub(crate) records: u16,
    /// Where they begin.
    answers: usize,
}

/// The records of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DnsRecords {
    /// The addresses in their order.
    pub(crate) addresses: Vec<IpAddr>,
    /// Where the name of the last CNAME begins.
    pub(crate) alias: Option<usize>,
    /// The smallest TTL of all records, in seconds.
    pub(crate) ttl: u32,
    /// Types that have no place here.
    pub(crate) unexpected: Vec<u16>,
}

impl Display for DnsFault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Line(line) => f.write_str(line),
            Self::Code { code, id } => {
                let words = if *code == FORMAT_ERROR { "Format error" } else { "Unknown error" };
                write!(f, "DNS error ({code}: {words}), query id:{id}")
            }
            Self::Repeated => f.write_str("DNS response was truncated"),
        }
    }
}

impl Family {
    const fn type_number(self) -> u16 {
        match self {
            Self::V4 => TYPE_A,
            Self::V6 => TYPE_AAAA,
        }
    }
}

/// The question for the addresses of a name, recursion desired; `None` if there is no such name.
pub(crate) fn question(id: u16, name: &[u8], family: Family) -> Option<Vec<u8>> {
    let mut message = Vec::with_capacity(HEADER + name.len() + 2 + QUESTION);
    message.extend_from_slice(&id.to_be_bytes());
    message.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    if !name::push_labels(name, &mut message) {
        return None;
    }
    message.extend_from_slice(&family.type_number().to_be_bytes());
    message.extend_from_slice(&IN.to_be_bytes());
    Some(message)
}

/// Two bytes, which the caller knows to be there.
fn number(message: &[u8], at: usize) -> u16 {
    let byte = |at: usize| message.get(at).copied().unwrap_or_default();
    u16::from_be_bytes([byte(at), byte(at + 1)])
}

const SHORT: DnsFault = DnsFault::Text("short DNS response");

impl<'a> DnsReply<'a> {
    /// Reads header and question.
    ///
    /// # Errors
    ///
    /// It is no answer to a question of ours, whatever its records say.
    pub(crate) fn read(message: &'a [u8], over: Transport) -> Result<Self, DnsFault> {
        if message.len() < HEADER {
            return Err(SHORT);
        }
        let (id, flags) = (number(message, 0), number(message, 2));
        let is_truncated = flags & TRUNCATED != 0;
        if flags & FIXED != ANSWER || is_truncated && over == Transport::Stream {
            let over = match over {
                Transport::Datagram => "UDP",
                Transport::Stream => "TCP",
            };
            return Err(DnsFault::Line(format!("invalid {over} DNS response {id} fl:{flags:04X}")));
        }
        let code = (flags & 0xf) as u8;
        if code == FORMAT_ERROR || code > REFUSED {
            return Err(DnsFault::Code { code, id });
        }
        if number(message, 4) != 1 {
            return Err(DnsFault::Text("invalid number of questions in DNS response"));
        }
        let behind = end_of_question(message)?;
        let records = number(message, 6);
        let answers = behind + QUESTION;
        if answers + usize::from(records) * (NAME_MIN + RECORD) > message.len() {
            return Err(SHORT);
        }
        let class = number(message, behind + 2);
        if class != IN {
            return Err(DnsFault::Line(format!("unknown query class {class} in DNS response")));
        }
        let family = match number(message, behind) {
            TYPE_A => Family::V4,
            TYPE_AAAA => Family::V6,
            other => {
                return Err(DnsFault::Line(format!("unknown query type {other} in DNS response")));
            }
        };
        let name = name::read(message, HEADER)?;
        Ok(Self { message, id, code, is_truncated, name, family, records, answers })
    }

    /// Reads the records. All addresses count, whatever name they stand under.
    ///
    /// # Errors
    ///
    /// A record is not what it should be, or does not fit the message.
    pub(crate) fn read_records(&self) -> Result<DnsRecords, DnsFault> {
        let mut found = DnsRecords { ttl: u32::MAX, ..DnsRecords::default() };
        let mut at = self.answers;
        for _ in 0..self.records {
            at = self.read_record(at, &mut found)?;
        }
        Ok(found)
    }

    /// Reads the record at `at`; where the next one begins.
    fn read_record(&self, at: usize, found: &mut DnsRecords) -> Result<usize, DnsFault> {
        let message = self.message;
        let at = end_of_owner(message, at)?;
        let data = at + RECORD;
        if data > message.len() {
            return Err(SHORT);
        }
        let (kind, class) = (number(message, at), number(message, at + 2));
        if class != IN {
            return Err(DnsFault::Line(format!("unexpected RR class {class} in DNS response")));
        }
        let ttl = u32::from(number(message, at + 4)) << 16 | u32::from(number(message, at + 6));
        // RFC 2181 §8: a TTL with the topmost bit set is zero.
        found.ttl = found.ttl.min(if ttl > i32::MAX as u32 { 0 } else { ttl });
        let len = usize::from(number(message, at + 8));
        let octets = message.get(data..data + len);
        match kind {
            TYPE_A | TYPE_AAAA if kind != self.family.type_number() => {
                return Err(DnsFault::Text(match kind {
                    TYPE_A => "unexpected A record in DNS response",
                    _ => "unexpected AAAA record in DNS response",
                }));
            }
            TYPE_A if len != 4 => {
                return Err(DnsFault::Text("invalid A record in DNS response"));
            }
            TYPE_AAAA if len != 16 => {
                return Err(DnsFault::Text("invalid AAAA record in DNS response"));
            }
            TYPE_A | TYPE_AAAA => found.addresses.push(address(octets.ok_or(SHORT)?)?),
            TYPE_CNAME => found.alias = Some(data),
            TYPE_DNAME => {}
            other => found.unexpected.push(other),
        }
        octets.map(|_| data + len).ok_or(SHORT)
    }

    /// The name that begins at `at`, a place that [`Self::read_records`] told.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn name_at(&self, at: usize) -> Result<Vec<u8>, DnsFault> {
        name::read(self.message, at)
    }
}

fn address(octets: &[u8]) -> Result<IpAddr, DnsFault> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Ok(Ipv4Addr::from(octets).into());
    }
    <[u8; 16]>::try_from(octets).map(|octets| Ipv6Addr::from(octets).into()).map_err(|_| SHORT)
}

/// Where the name of the question ends, which is not compressed.
fn end_of_question(message: &[u8]) -> Result<usize, DnsFault> {
    let mut at = HEADER;
    loop {
        match message.get(at) {
            None => return Err(SHORT),
            Some(0) if at == HEADER => {
                return Err(DnsFault::Text("zero-length domain name in DNS response"));
            }
            Some(0) => return Ok(at + 1),
            Some(0x40..) => {
                return Err(DnsFault::Text("unexpected compression pointer in DNS response"));
            }
            Some(len) => at += 1 + usize::from(*len),
        }
    }
}

/// Where the name of a record ends.
fn end_of_owner(message: &[u8], start: usize) -> Result<usize, DnsFault> {
    let mut at = start;
    loop {
        match message.get(at) {
            None => return Err(SHORT),
            Some(0) if at == start => {
                return Err(DnsFault::Text("invalid name in DNS response"));
            }
            Some(0) => return Ok(at + 1),
            Some(0x40..) => return Ok(at + 2),
            Some(len) => at += 1 + usize::from(*len),
        }
    }
}

#[cfg(test)]
mod tests;
