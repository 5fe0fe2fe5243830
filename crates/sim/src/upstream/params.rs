//! The params of a request as FastCGI has them, which all protocols are converted to.

/// The value of a param.
pub(super) fn param(mut pairs: &[u8], wanted: &[u8]) -> String {
    fn length(bytes: &mut &[u8]) -> Option<usize> {
        let first = *bytes.first()?;
        if first < 128 {
            *bytes = &bytes[1..];
            return Some(usize::from(first));
        }
        let four = bytes.first_chunk::<4>()?;
        let len = u32::from_be_bytes(*four) & 0x7fff_ffff;
        *bytes = &bytes[4..];
        Some(len as usize)
    }
    while let (Some(name), Some(value)) = (length(&mut pairs), length(&mut pairs)) {
        let Some((pair, rest)) = pairs.split_at_checked(name + value) else { break };
        if &pair[..name] == wanted {
            return String::from_utf8_lossy(&pair[name..]).into_owned();
        }
        pairs = rest;
    }
    String::new()
}

/// Appends a param.
pub(super) fn push_pair(out: &mut Vec<u8>, name: &str, value: &str) {
    for len in [name.len(), value.len()] {
        out.extend_from_slice(&(len as u32 | 1 << 31).to_be_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(value.as_bytes());
}
