//! Truncates long error-log lines at nginx's place, in nginx's way.

/// LIMIT: the longest line in bytes, with its line feed.
const LINE_MAX: usize = 2048;
/// Bytes that a message leaves for the number and text of an errno.
const CALL_ROOM: usize = 50;

/// Truncates the line since `start`, which has no line feed yet. Its message ends before
/// `message_end`; an errno still follows a truncated message.
pub(super) fn cut_line(out: &mut Vec<u8>, start: usize, message_end: usize) {
    debug_assert!(start <= message_end && message_end <= out.len(), "a message is in its line");
    if out.len() - start >= LINE_MAX {
        cut_long(out, start, message_end);
    }
}

#[cold]
fn cut_long(out: &mut Vec<u8>, start: usize, message_end: usize) {
    let room = start + LINE_MAX - CALL_ROOM;
    if let Some(at) = failure(&out[start..message_end])
        && start + at > room
    {
        out.splice(room..start + at, *b"...");
    }
    out.truncate(start + LINE_MAX - 1);
}

/// Where the final ` (2: No such file or directory)` of a message begins.
fn failure(message: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'(', message).map(|at| at.saturating_sub(1)).find(|&at| {
        let Some(number) = message[at..].strip_prefix(b" (") else { return false };
        let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && number[digits..].starts_with(b": ")
    })
}

#[cfg(test)]
mod tests {
    use super::{LINE_MAX, cut_line};

    fn cut(message: &str, context: &str) -> String {
        let mut out = b"before\n".to_vec();
        let start = out.len();
        out.extend_from_slice(message.as_bytes());
        let end = out.len();
        out.extend_from_slice(context.as_bytes());
        cut_line(&mut out, start, end);
        assert!(out.starts_with(b"before\n"), "other lines stay");
        String::from_utf8(out.split_off(start)).expect("text")
    }

    #[test]
    fn a_line_with_its_end_has_2048_bytes() {
        assert_eq!(cut("short", ", client: a"), "short, client: a");
        let long = "x".repeat(2047);
        assert_eq!(cut(&long, ""), long);
        assert_eq!(cut(&long, ", client: a"), long);
        assert_eq!(cut("short", &long), format!("short{}", "x".repeat(2042)));
    }

    #[test]
    fn what_failed_is_told_behind_a_message_that_is_cut() {
        let long = "x".repeat(3000);
        let line =
            cut(&format!("open() \"{long}\" failed (36: File name too long)"), ", client: a");
        assert_eq!(
            line,
            format!("open() \"{}... (36: File name too long), client: a", "x".repeat(1990))
        );
        assert!(line.len() < LINE_MAX);
        let line = cut("connect() failed (111: Connection refused) while connecting", &long);
        assert!(line.starts_with("connect() failed (111: Connection refused) while connectingxxx"));
        assert_eq!(line.len(), LINE_MAX - 1);
        // What a client writes is no failed call.
        let line = cut(&format!("\"{long} (x: y\" is forbidden"), "");
        assert!(line.ends_with("xxx"), "{line}");
    }
}
