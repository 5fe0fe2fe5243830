//! DNS messages (RFC 1035 §4): writes queries, parses responses.
//!
//! Checks responses in nginx's order: the header, the question, and, only when the caller knows
//! that it waits for this response, the records.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::name;
use crate::resolver::Transport;

/// Bytes of a header.
const HEADER: usize = 12;
/// Bytes of a question after its name.
const QUESTION: usize = 4;
/// Bytes of a record after its name: type, class, TTL and length.
const RECORD: usize = 10;
/// The least size of a name in a record: a pointer.
const NAME_MIN: usize = 2;
/// The class of the Internet.
const IN: u16 = 1;
/// The flag of a truncated message (TC).
const TRUNCATED: u16 = 0x0200;
/// Flags that are the same in all responses to standard queries: QR, the opcode, and the Z bits.
const FIXED: u16 = 0xf870;
const ANSWER: u16 = 0x8000;
/// Types of records.
const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
const TYPE_DNAME: u16 = 39;
/// The code of a query that the server could not parse, and the last code that is a final result.
pub(crate) const FORMAT_ERROR: u8 = 1;
const REFUSED: u8 = 5;

/// The address family of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// A records.
    V4,
    /// AAAA records.
    V6,
}

/// Why a response is ignored: a line for the error log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DnsFault {
    /// A fixed message.
    Text(&'static str),
    /// A message with numbers or names.
    Line(String),
    /// The server reports this code, which is no final result.
    Code {
        /// The code.
        code: u8,
        /// The id of the response.
        id: u16,
    },
    /// It was truncated again, and a complete one is on its way: not logged.
    Repeated,
}

/// A response with a valid header and question.
#[derive(Debug)]
pub(crate) struct DnsReply<'a> {
    message: &'a [u8],
    /// The id of the query.
    pub(crate) id: u16,
    /// The code: 0, or 2 to 5.
    pub(crate) code: u8,
    /// Whether it was truncated, so that the query has to be repeated over TCP.
    pub(crate) is_truncated: bool,
    /// The queried name.
    pub(crate) name: Vec<u8>,
    /// The queried address family.
    pub(crate) family: Family,
    /// The number of records.
    pub(crate) records: u16,
    /// The offset of the records.
    answers: usize,
}

/// The records of a response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DnsRecords {
    /// The addresses in their order.
    pub(crate) addresses: Vec<IpAddr>,
    /// The offset of the last CNAME's target.
    pub(crate) alias: Option<usize>,
    /// The smallest TTL of all records, in seconds.
    pub(crate) ttl: u32,
    /// Unexpected record types.
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

/// A query for the addresses of a name, with recursion desired; `None` if the name is invalid.
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

/// Two bytes, which must exist.
fn number(message: &[u8], at: usize) -> u16 {
    let byte = |at: usize| message.get(at).copied().unwrap_or_default();
    u16::from_be_bytes([byte(at), byte(at + 1)])
}

const SHORT: DnsFault = DnsFault::Text("short DNS response");

impl<'a> DnsReply<'a> {
    /// Parses header and question.
    ///
    /// # Errors
    ///
    /// It is no response to one of our queries, whatever its records say.
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

    /// Parses the records. All addresses count, whatever their owner name.
    ///
    /// # Errors
    ///
    /// A record is invalid, or exceeds the message.
    pub(crate) fn read_records(&self) -> Result<DnsRecords, DnsFault> {
        let mut found = DnsRecords { ttl: u32::MAX, ..DnsRecords::default() };
        let mut at = self.answers;
        for _ in 0..self.records {
            at = self.read_record(at, &mut found)?;
        }
        Ok(found)
    }

    /// Parses the record at `at`; returns the offset of the next one.
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
        // RFC 2181 §8: a TTL with the most significant bit set is zero.
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

    /// The name at `at`, an offset from [`Self::read_records`].
    ///
    /// # Errors
    ///
    /// It is invalid.
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

/// The end of the question's name, which is not compressed.
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

/// The end of a record's owner name.
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
