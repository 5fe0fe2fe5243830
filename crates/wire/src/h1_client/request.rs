//! Encodes the head of a request: request line and fields.
//!
//! The caller chooses the fields. Only texts with CR, LF or NUL are refused, because they would
//! allow request splitting.

use bolide_http::UpstreamHead;

/// Bytes around a field, and around the parts of the request line.
const FIELD_OVERHEAD: usize = 4;
const LINE_OVERHEAD: usize = 16;

/// Appends the head; `None` if HTTP/1 cannot encode the request.
pub(super) fn push_head(out: &mut Vec<u8>, head: &UpstreamHead) -> Option<()> {
    if !head.is_encodable() {
        return None;
    }
    let (method, target) = (head.method(), head.target());
    out.reserve(head.size() + FIELD_OVERHEAD * head.len() + LINE_OVERHEAD);
    for part in [method, b" ", target, b" ", head.version().text(), b"\r\n"] {
        out.extend_from_slice(part);
    }
    for (name, value) in head.fields() {
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
    Some(())
}
