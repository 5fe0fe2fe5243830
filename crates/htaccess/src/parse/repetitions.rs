//! The length of an expression with its repeated groups expanded, as PCRE expands them: that
//! determines the time and memory, not the length of the source.

/// The size of a class besides its byte: a bit for each byte value.
const CLASS: usize = 32;

/// The bytes added to a line by expanding repeated groups. A text that is no expression is treated
/// as one.
pub(super) fn repetitions(line: &[u8]) -> usize {
    let (mut outer, mut len, mut at) = (Vec::new(), 0_usize, 0);
    let (mut repeated, mut has_classes) = (0_usize, true);
    while let Some(byte) = line.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            // If one class has no end, none after it has: the rest is searched once.
            b'[' if has_classes => match class_end(line, at) {
                Some(end) => (at, len) = (end, len.saturating_add(CLASS)),
                None => has_classes = false,
            },
            b'(' => outer.push(std::mem::take(&mut len)),
            b')' => {
                let more = (len + 1).saturating_mul(repeats(&line[at..]) - 1);
                repeated = repeated.saturating_add(more);
                len = len.saturating_add(more).saturating_add(outer.pop().unwrap_or(0));
            }
            _ => {}
        }
        len = len.saturating_add(1);
    }
    repeated
}

/// The end of the class that begins before `at`, if it has one.
fn class_end(line: &[u8], at: usize) -> Option<usize> {
    let first = at + usize::from(line.get(at) == Some(&b'^'));
    let mut end = first + 1;
    while let Some(byte) = line.get(end) {
        match byte {
            b'\\' => end += 1,
            b']' => return Some(end + 1),
            _ => {}
        }
        end += 1;
    }
    None
}

/// The most repetitions of `{n}`, `{n,}` or `{n,m}`, at least one.
fn repeats(rest: &[u8]) -> usize {
    let Some(inner) = rest.strip_prefix(b"{") else { return 1 };
    let end = inner.iter().position(|byte| !byte.is_ascii_digit() && *byte != b',');
    let inner = &inner[..end.unwrap_or(inner.len())];
    let counts = inner.split(|byte| *byte == b',');
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<usize>().ok();
    counts.filter_map(number).max().map_or(1, |most| most.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::repetitions;

    #[test]
    fn groups_count_as_often_as_they_are_repeated() {
        let of = |text: &str| repetitions(text.as_bytes());
        for once in ["abc", r"a{900}[(]{9}\({9}", "(a|b)*(c)?", "%{HTTP:Cookie} (a){x}", "(", ")"] {
            assert_eq!(of(once), 0, "{once}");
        }
        assert!((3000..8000).contains(&of("(abc){1000}")));
        assert!((3000..8000).contains(&of("(abc){,1000}")));
        assert!((3000..8000).contains(&of("x(abc){1000,} y")));
        assert!((20_000..50_000).contains(&of("([^)]){1000}")));
        assert!((100_000..1_000_000).contains(&of("((a{9}b){250}){1,100}")));
        assert!(of("(((a){60000}){60000}){60000}(") > 1 << 40);
        // A line of a file's length is gone through once, whatever has no end in it.
        for open in ["[", "(", "[^", "{1", "\\", ")"] {
            assert_eq!(of(&open.repeat(1_000_000 / open.len())), 0, "{open}");
        }
    }
}
