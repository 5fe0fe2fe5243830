//! Steps upwards in paths.

/// The steps upwards in `path`.
pub(crate) fn climbs(path: &[u8]) -> usize {
    // PERF: two dots in a row are rare.
    if !memchr::memchr_iter(b'.', path).any(|at| path.get(at + 1) == Some(&b'.')) {
        return 0;
    }
    path.split(|&byte| byte == b'/').filter(|segment| *segment == b"..").count()
}

/// Whether `path` leads out of the directory that its first `root` bytes name: whether it goes more
/// steps upwards behind it than it has gone down by then.
pub(crate) fn leads_above(path: &[u8], root: usize) -> bool {
    if climbs(path) == 0 {
        return false;
    }
    let (mut at, mut depth) = (0, 0_usize);
    for segment in path.split(|&byte| byte == b'/') {
        let (begin, end) = (at, at + segment.len());
        at = end + 1;
        match segment {
            // What the directory itself consists of.
            _ if end <= root => {}
            b"" | b"." => {}
            b".." => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return true,
            },
            // One that goes on with the directory's last segment is none below it.
            _ if begin >= root => depth += 1,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::leads_above;

    #[test]
    fn steps_upwards_count_from_where_a_path_is() {
        for (root, rest, leads) in [
            ("/r", "/a/b", false),
            ("/r", "/a/../b", false),
            ("/r", "/a/..", false),
            ("/r", "/a/../..", true),
            ("/r", "/a/../../r/b", true),
            ("/r", "/./../b", true),
            ("/r", "//../b", true),
            ("/r/", "../b", true),
            ("/r/", "a/../b", false),
            ("/r", "a/../b", true),
            ("/r/.", "./b", true),
            ("/r/..", "/b", false),
            ("/r/..", "/b/../c", false),
            ("/r/../", "../c", true),
            ("/r", "", false),
        ] {
            let path = format!("{root}{rest}");
            assert_eq!(leads_above(path.as_bytes(), root.len()), leads, "{root} {rest}");
        }
    }
}
