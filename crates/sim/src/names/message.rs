//! DNS messages as name servers parse and write them (RFC 1035 §4), in independent code.

use std::net::IpAddr;

use super::{ADDRESSES, NAMES};

/// Types of records.
pub(super) const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
/// Flags: a response, with recursion.
pub(super) const RESPONSE: u16 = 0x8180;
/// The flag of a message that was cut.
pub(super) const TRUNCATED: u16 = 0x0200;

/// A question.
#[derive(Clone, Debug)]
pub(super) struct SimQuestion {
    pub(super) id: u16,
    pub(super) name: String,
    pub(super) kind: u16,
}

impl SimQuestion {
    /// The question in a message, and the number of its name.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, usize), String> {
        let question = Self::parse(bytes).ok_or_else(|| format!("no question: {bytes:?}"))?;
        let number = NAMES.iter().position(|name| *name == question.name);
        let number = number.ok_or_else(|| format!("{} is asked for", question.name))?;
        Ok((question, number))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (id, mut rest) = (u16::from_be_bytes(*bytes.first_chunk()?), bytes.get(12..)?);
        let mut labels = Vec::new();
        loop {
            let (len, behind) = rest.split_first()?;
            if *len == 0 {
                let kind = u16::from_be_bytes(*behind.first_chunk()?);
                return Some(Self { id, name: labels.join("."), kind });
            }
            let (label, behind) = behind.split_at_checked(usize::from(*len))?;
            labels.push(String::from_utf8_lossy(label).into_owned());
            rest = behind;
        }
    }

    /// A message that answers it.
    pub(super) fn reply(&self, flags: u16, records: &[Vec<u8>]) -> Vec<u8> {
        let mut out = self.id.to_be_bytes().to_vec();
        out.extend_from_slice(&flags.to_be_bytes());
        for count in [1, records.len() as u16, 0, 0] {
            out.extend_from_slice(&count.to_be_bytes());
        }
        push_name(&mut out, &self.name);
        out.extend_from_slice(&self.kind.to_be_bytes());
        out.extend_from_slice(&[0, 1]);
        records.iter().for_each(|record| out.extend_from_slice(record));
        out
    }

    /// The record of an address of this name; of another family where it is not asked for.
    pub(super) fn address(&self, ip: IpAddr, ttl: u32) -> Vec<u8> {
        match ip {
            IpAddr::V4(ip) => record(A, ttl, &ip.octets()),
            IpAddr::V6(ip) => record(AAAA, ttl, &ip.octets()),
        }
    }

    /// The address of this number that a name has, of the family that is asked for.
    pub(super) fn ip(&self, name: usize, number: u8) -> IpAddr {
        match self.kind {
            A => IpAddr::from([203, 0, 113, name as u8 * ADDRESSES + number]),
            _ => {
                let last = name as u16 * u16::from(ADDRESSES) + u16::from(number);
                IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last])
            }
        }
    }

    /// An address that only lies tell.
    pub(super) fn lie(&self, number: u8) -> IpAddr {
        match self.kind {
            A => IpAddr::from([203, 0, 113, 200 + number]),
            _ => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0xbad]),
        }
    }
}

/// Whose address this is: of no name if only lies tell it, and nothing if it is no address of ours.
pub(super) fn owner(ip: IpAddr) -> Option<Option<usize>> {
    let number = match ip {
        IpAddr::V4(ip) => match ip.octets() {
            [203, 0, 113, last] => usize::from(last),
            _ => return None,
        },
        IpAddr::V6(ip) => match ip.segments() {
            [0x2001, 0xdb8, 0, 0, 0, 0, 0, last] => usize::from(last),
            _ => return None,
        },
    };
    Some(Some(number / usize::from(ADDRESSES)).filter(|name| *name < NAMES.len()))
}

/// The record that leads to another name.
pub(super) fn alias(name: &str, ttl: u32) -> Vec<u8> {
    let mut data = Vec::new();
    push_name(&mut data, name);
    record(CNAME, ttl, &data)
}

fn record(kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut out = vec![0xc0, 12];
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(data);
    out
}

fn push_name(out: &mut Vec<u8>, name: &str) {
    for label in name.split('.') {
        out.push(label.len() as u8);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
}
