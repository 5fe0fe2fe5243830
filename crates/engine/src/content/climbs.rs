//! `..` segments in paths.

/// The number of `..` segments in `path`.
pub(crate) fn climbs(path: &[u8]) -> usize {
    // PERF: two dots in a row are rare.
    if !memchr::memchr_iter(b'.', path).any(|at| path.get(at + 1) == Some(&b'.')) {
        return 0;
    }
    path.split(|&byte| byte == b'/').filter(|segment| *segment == b"..").count()
}
