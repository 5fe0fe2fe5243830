//! From a normalised URI path to a path on disk (`root`, `alias`).
//!
//! A URI that [`bolide_http::uri::normalise`] produced cannot climb: it has no `.` or `..` segment
//! and no NUL. One built from variables can, as in nginx; [`is_settled`] checks it.

use bolide_http::negotiate::Coding;

/// Writes `root` followed by the whole URI to `path` (cleared first).
pub fn under_root(path: &mut Vec<u8>, root: &[u8], uri: &[u8]) {
    path.clear();
    path.extend_from_slice(root.strip_suffix(b"/").unwrap_or(root));
    path.extend_from_slice(uri);
}

/// Writes `alias`, followed by the URI without its first `prefix_len` bytes (the location's), to
/// `path` (cleared first). For a regular-expression location `prefix_len` is that of the URI.
pub fn under_alias(path: &mut Vec<u8>, alias: &[u8], uri: &[u8], prefix_len: usize) {
    path.clear();
    path.extend_from_slice(alias);
    path.extend_from_slice(uri.get(prefix_len..).unwrap_or_default());
}

/// Writes the path of the precompressed sibling of the file at `file` to `path` (cleared first).
pub fn sibling(path: &mut Vec<u8>, file: &[u8], coding: Coding) {
    path.clear();
    path.extend_from_slice(file);
    path.extend_from_slice(coding.suffix().as_bytes());
}

/// What a trail to the file or directory at `path` is named by: the path to its last name.
#[must_use]
pub fn trail(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let slash = path.iter().rposition(|byte| *byte == b'/');
    &path[..slash.map_or(0, |slash| slash + 1)]
}

/// The path of the file that the file at `path` may be a precompressed sibling of.
#[must_use]
pub fn base_of_sibling(path: &[u8]) -> Option<&[u8]> {
    let codings = [Coding::Gzip, Coding::Brotli, Coding::Zstd];
    codings.iter().find_map(|coding| path.strip_suffix(coding.suffix().as_bytes()))
}

/// Whether `uri` is in normalised form: rooted, without NUL and without `..` segments.
#[must_use]
pub fn is_settled(uri: &[u8]) -> bool {
    uri.first() == Some(&b'/')
        && !uri.contains(&0)
        && !uri.split(|&byte| byte == b'/').any(|segment| segment == b"..")
}

#[cfg(test)]
mod tests {
    use super::{base_of_sibling, is_settled, sibling, trail, under_alias, under_root};
    use bolide_http::negotiate::Coding;

    #[test]
    fn root_takes_the_whole_uri_and_alias_its_rest() {
        let mut path = b"old".to_vec();
        under_root(&mut path, b"/srv/www", b"/a/b");
        assert_eq!(path, b"/srv/www/a/b");
        under_root(&mut path, b"/srv/www/", b"/a");
        assert_eq!(path, b"/srv/www/a");
        under_root(&mut path, b"/", b"/a");
        assert_eq!(path, b"/a");
        under_alias(&mut path, b"/data/other/", b"/x/a.txt", 3);
        assert_eq!(path, b"/data/other/a.txt");
        under_alias(&mut path, b"/data/one.txt", b"/x/a.txt", 8);
        assert_eq!(path, b"/data/one.txt");
        sibling(&mut path, b"/a.css", Coding::Zstd);
        assert_eq!(path, b"/a.css.zst");
    }

    #[test]
    fn a_trail_ends_before_the_last_name() {
        assert_eq!(trail(b"/srv/www/a.css"), b"/srv/www/");
        assert_eq!(trail(b"/srv/www/"), b"/srv/");
        assert_eq!((trail(b"/a"), trail(b"/"), trail(b"a")), (&b"/"[..], &b""[..], &b""[..]));
        assert_eq!(base_of_sibling(b"/a.css.br"), Some(&b"/a.css"[..]));
        assert_eq!(base_of_sibling(b"/a.css"), None);
    }

    #[test]
    fn only_rooted_uris_without_dots_are_settled() {
        assert!(is_settled(b"/a/..b/c..") && is_settled(b"/"));
        assert!(!is_settled(b"a") && !is_settled(b"/a/../b") && !is_settled(b"/a\0"));
        assert!(!is_settled(b"/.."));
    }
}
