//! The PROXY protocol, versions 1 and 2: a header in which a load balancer names the client.
//!
//! Owns the header and no byte behind it. A header may arrive byte by byte. INVARIANT: the result
//! for more bytes never contradicts the result for fewer.

use std::net::{Ipv4Addr, Ipv6Addr};

/// LIMIT: bytes of a header.
pub const SIZE_MAX: usize = 4096;

/// The first bytes of a version 2 header.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of signature, version and command, family and transport, length.
const FIXED: usize = 16;

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The client's address. In version 1 only its characters are checked.
    pub source: Box<str>,
    /// The client's port.
    pub source_port: u16,
    /// The address that the client connected to.
    pub target: Box<str>,
    /// The port that the client connected to.
    pub target_port: u16,
    /// The TLVs of version 2: type, two bytes of length, value, repeated.
    pub fields: Box<[u8]>,
}

/// The result of reading the front of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyRead {
    /// The input is the beginning of a header.
    More,
    /// A header of this many bytes. It is `None` for `UNKNOWN`, `LOCAL` and unknown families, which
    /// name no client.
    Header(Option<Box<ProxyHeader>>, usize),
}

/// Why the input is no header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It is a header of neither version.
    Header,
    /// It is longer than [`SIZE_MAX`].
    TooLarge,
    /// A version other than 1 and 2.
    Version(u8),
    /// Its length field leaves no room for its addresses.
    Short,
}

impl Broken {
    /// The text that nginx writes to the error log about `input`; `None` where nginx logs nothing.
    #[must_use]
    pub fn message(&self, input: &[u8]) -> Option<String> {
        let what = match self {
            Self::Header => {
                let shown = input.split(|byte| matches!(byte, b'\r' | b'\n')).next();
                let shown = shown.unwrap_or_default();
                format!("broken header: \"{}\"", shown.escape_ascii())
            }
            Self::TooLarge => "header is too large".to_owned(),
            Self::Version(version) => format!("unknown PROXY protocol version: {version}"),
            Self::Short => return None,
        };
        Some(format!("{what} while reading PROXY protocol"))
    }
}

/// Reads the header at the front of `input`.
///
/// # Errors
///
/// The input cannot become a header, whatever bytes follow.
pub fn read(input: &[u8]) -> Result<ProxyRead, Broken> {
    let seen = input.len().min(SIGNATURE.len());
    if seen > 0 && input[..seen] == SIGNATURE[..seen] {
        return binary(input);
    }
    text(&input[..input.len().min(SIZE_MAX)])
}

/// Version 1: `PROXY TCP4 SOURCE TARGET SOURCE-PORT TARGET-PORT` and CR LF.
fn text(input: &[u8]) -> Result<ProxyRead, Broken> {
    let begins_like = |text: &[u8], rest: &[u8]| {
        let len = text.len().min(rest.len());
        text[..len] == rest[..len]
    };
    if !begins_like(b"PROXY ", input) {
        return Err(Broken::Header);
    }
    let rest = input.get(6..).unwrap_or_default();
    let is_unknown = !rest.is_empty() && begins_like(b"UNKNOWN", rest);
    let family = [&b"TCP4 "[..], b"TCP6 "].into_iter().find(|family| begins_like(family, rest));
    if family.is_none() && !is_unknown {
        return Err(Broken::Header);
    }
    let end = input.windows(2).position(|pair| pair == b"\r\n");
    // The first CR or LF must be the end of the line.
    let stop = input.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    let goes_on = |at: usize| input[at] == b'\r' && at + 1 == input.len();
    match end {
        Some(end) if is_unknown && rest.len() >= 7 => Ok(ProxyRead::Header(None, end + 2)),
        Some(end) if !is_unknown && stop == Some(end) => {
            let header = family.and_then(|family| addresses(input.get(6 + family.len()..end)?));
            header.map_or(Err(Broken::Header), |header| {
                Ok(ProxyRead::Header(Some(Box::new(header)), end + 2))
            })
        }
        Some(_) => Err(Broken::Header),
        None if input.len() >= SIZE_MAX => Err(Broken::Header),
        None if is_unknown && rest.len() >= 7 => Ok(ProxyRead::More),
        None if stop.is_some_and(|at| !goes_on(at)) => Err(Broken::Header),
        None => Ok(ProxyRead::More),
    }
}

fn addresses(line: &[u8]) -> Option<ProxyHeader> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let mut address = || {
        let is_part = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':');
        words.next().filter(|word| word.bytes().all(is_part))
    };
    let (source, target) = (address()?, address()?);
    let mut port = || {
        let word = words.next()?;
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| word.parse::<u16>().ok())?
    };
    let (source_port, target_port) = (port()?, port()?);
    words.next().is_none().then(|| ProxyHeader {
        source: source.into(),
        source_port,
        target: target.into(),
        target_port,
        fields: Box::default(),
    })
}

/// Version 2: fixed part, addresses, TLVs.
fn binary(input: &[u8]) -> Result<ProxyRead, Broken> {
    let Some(&version_command) = input.get(SIGNATURE.len()) else { return Ok(ProxyRead::More) };
    if version_command >> 4 != 2 {
        return Err(Broken::Version(version_command >> 4));
    }
    let Some(&[family, high, low]) = input.get(13..FIXED) else { return Ok(ProxyRead::More) };
    let size = FIXED + usize::from(u16::from_be_bytes([high, low]));
    if size > SIZE_MAX {
        return Err(Broken::TooLarge);
    }
    let is_proxied = version_command & 0xf == 1;
    let needed = match family {
        0x11 if is_proxied => 12,
        0x21 if is_proxied => 36,
        _ => 0,
    };
    if size < FIXED + needed {
        return Err(Broken::Short);
    }
    let Some(body) = input.get(FIXED..size) else { return Ok(ProxyRead::More) };
    let header = (needed > 0).then(|| {
        let (addresses, fields) = body.split_at(needed);
        Box::new(header(addresses, fields))
    });
    Ok(ProxyRead::Header(header, size))
}

/// Parses two addresses of one family and two ports.
fn header(addresses: &[u8], fields: &[u8]) -> ProxyHeader {
    let (ips, ports) = addresses.split_at(addresses.len() - 4);
    let (source, target) = ips.split_at(ips.len() / 2);
    let show = |ip: &[u8]| {
        let v4 = <[u8; 4]>::try_from(ip).map(|ip| Ipv4Addr::from(ip).to_string());
        let v6 = || <[u8; 16]>::try_from(ip).map(|ip| Ipv6Addr::from(ip).to_string());
        v4.or_else(|_| v6()).unwrap_or_default().into_boxed_str()
    };
    ProxyHeader {
        source: show(source),
        source_port: u16::from_be_bytes([ports[0], ports[1]]),
        target: show(target),
        target_port: u16::from_be_bytes([ports[2], ports[3]]),
        fields: fields.into(),
    }
}

#[cfg(test)]
#[path = "../../fuzz-entries/src/proxy.rs"]
pub mod fuzz;
#[cfg(test)]
mod tests;
