//! DNS messages as name servers parse and write them (RFC 1035 §4), in independent code.

use std::net::IpAddr;

use super::{ADDRESSES, NAMES};

/// Record types.
pub(super) const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
/// Flags of a recursive response.
pub(super) const RESPONSE: u16 = 0x8180;
/// The flag of a truncated message.
pub(super) const TRUNCATED: u16 = 0x0200;

/// The question section of a query.
#[derive(Clone, Debug)]
pub(super) struct DnsQuestion {
    pub(super) id: u16,
    pub(super) name: String,
    pub(super) kind: u16,
}

impl DnsQuestion {
    /// The question of a message, and the index of its name.
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

    /// A response to the question.
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

    /// An address record for the question's name.
    pub(super) fn address(&self, ip: IpAddr, ttl: u32) -> Vec<u8> {
        match ip {
            IpAddr::V4(ip) => record(A, ttl, &ip.octets()),
            IpAddr::V6(ip) => record(AAAA, ttl, &ip.octets()),
        }
    }

    /// Address `number` of a name, in the family of the question.
    pub(super) fn ip(&self, name: usize, number: u8) -> IpAddr {
        match self.kind {
            A => IpAddr::from([203, 0, 113, name as u8 * ADDRESSES + number]),
            _ => {
                let last = name as u16 * u16::from(ADDRESSES) + u16::from(number);
                IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last])
            }
        }
    }

    /// An address that only forged responses contain.
    pub(super) fn forged_ip(&self, number: u8) -> IpAddr {
        match self.kind {
            A => IpAddr::from([203, 0, 113, 200 + number]),
            _ => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0xbad]),
        }
    }
}

/// The index of the name that owns an address. `Some(None)`: only forged responses contain it.
/// `None`: it belongs to no simulated name.
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

/// A CNAME record.
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
