//! URLs and paths that rules generate.

/// The length of a leading `scheme://`.
pub(super) fn scheme_len(text: &[u8]) -> Option<usize> {
    let len = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'+').count();
    let starts = len > 0 && text[0].is_ascii_alphabetic();
    (starts && text[len..].starts_with(b"://")).then_some(len + 3)
}

/// `path` without dot segments and double slashes; none if it leaves its root.
#[must_use]
pub fn resolved(path: &[u8]) -> Option<Vec<u8>> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    for segment in path.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()?),
            _ => segments.push(segment),
        }
    }
    let is_directory = matches!(last, b"" | b"." | b"..") && !segments.is_empty();
    let mut out = vec![b'/'];
    out.extend_from_slice(&segments.join(&b'/'));
    if is_directory {
        out.push(b'/');
    }
    Some(out)
}
