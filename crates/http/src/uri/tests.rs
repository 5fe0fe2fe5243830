//! Normalised and refused targets; no path climbs above its root.

use super::{MergeSlashes, RequestTarget, UriError, normalise, push_decoded};
use crate::escape::{UriPart, push_uri};
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};

fn run(raw: &str, merge: MergeSlashes) -> Result<(String, String), UriError> {
    let mut decoded = Vec::new();
    let target = normalise(raw.as_bytes(), merge, &mut decoded)?;
    let path = target.path(raw.as_bytes(), &decoded);
    let args = target.args(raw.as_bytes());
    Ok((String::from_utf8_lossy(path).into(), String::from_utf8_lossy(args).into()))
}

#[test]
fn targets_become_the_paths_that_nginx_makes_of_them() {
    let cases = [
        ("/", "/", ""),
        ("/index.html", "/index.html", ""),
        ("/a/b.c/d", "/a/b.c/d", ""),
        ("/a?b=c&d", "/a", "b=c&d"),
        ("/a?b?c", "/a", "b?c"),
        ("/a?", "/a", ""),
        ("/a#frag", "/a", ""),
        ("/a?b#frag", "/a", "b"),
        ("/a#frag?b", "/a", ""),
        ("//a///b//", "/a/b/", ""),
        ("/a/./b", "/a/b", ""),
        ("/a/.", "/a/", ""),
        ("/a/./?x", "/a/", "x"),
        ("/a/.?x", "/a/", "x"),
        ("/a/../b", "/b", ""),
        ("/a/..", "/", ""),
        ("/a/..?x", "/", "x"),
        ("/a/b/../../c", "/c", ""),
        ("/a/...", "/a/...", ""),
        ("/a/.b", "/a/.b", ""),
        ("/a/..b/", "/a/..b/", ""),
        ("/.well-known/x", "/.well-known/x", ""),
        ("/a%20b", "/a b", ""),
        ("/%2e%2E/a/../%61", "!", ""),
        ("/x/%2e%2E/a", "/a", ""),
        ("/x%2f..%2fa", "/a", ""),
        ("/a%2fb", "/a/b", ""),
        ("/a%3fb?c%3f", "/a?b", "c%3f"),
        ("/a%23b", "/a#b", ""),
        ("/a%2541", "/a%41", ""),
        ("/a/.%25", "/a/.%", ""),
        ("/a+b", "/a+b", ""),
        ("/%0a", "/\n", ""),
        ("", "/", ""),
        ("?x=y", "/", "x=y"),
        ("#x", "/", ""),
    ];
    for (raw, path, args) in cases {
        if path == "!" {
            assert_eq!(run(raw, MergeSlashes::On), Err(UriError::AboveRoot), "{raw}");
        } else {
            assert_eq!(run(raw, MergeSlashes::On), Ok((path.into(), args.into())), "{raw}");
        }
    }
}

#[test]
fn slashes_stay_when_they_are_not_merged() {
    assert_eq!(run("//a//b", MergeSlashes::Off), Ok(("//a//b".into(), String::new())));
    assert_eq!(run("/a//../b", MergeSlashes::Off), Ok(("/a/b".into(), String::new())));
    assert_eq!(run("/a//.//b", MergeSlashes::Off), Ok(("/a///b".into(), String::new())));
}

#[test]
fn broken_targets_are_refused() {
    let cases = [
        ("/..", UriError::AboveRoot),
        ("/../a", UriError::AboveRoot),
        ("/a/../../a", UriError::AboveRoot),
        ("/%2e./", UriError::AboveRoot),
        ("/..?x", UriError::AboveRoot),
        ("/..#x", UriError::AboveRoot),
        ("/%", UriError::BadEscape),
        ("/%2", UriError::BadEscape),
        ("/%g0", UriError::BadEscape),
        ("/%2?a", UriError::BadEscape),
        ("/a%00b", UriError::Nul),
        ("/a b", UriError::BadByte),
        ("/a?b c", UriError::BadByte),
        ("/a\u{7f}", UriError::BadByte),
        ("/a#\r", UriError::BadByte),
        ("*", UriError::NotAPath),
        ("a/b", UriError::NotAPath),
        ("%2fa", UriError::NotAPath),
    ];
    for (raw, error) in cases {
        assert_eq!(run(raw, MergeSlashes::On), Err(error), "{raw}");
        assert!(error.reason().starts_with("client sent invalid request"));
    }
}

#[test]
fn a_plain_path_is_borrowed_and_the_buffer_stays_untouched() {
    let mut decoded = b"kept".to_vec();
    let raw = b"/css/site.css?v=3";
    let target = normalise(raw, MergeSlashes::On, &mut decoded).unwrap();
    assert!(!target.is_decoded());
    assert_eq!(target, RequestTarget { plain_len: Some(13), args: 14..17 });
    assert_eq!(decoded, b"kept");
}

#[test]
fn loose_decoding_keeps_broken_escapes() {
    let mut out = Vec::new();
    push_decoded(&mut out, b"a%20b%zz%4");
    assert_eq!(out, b"a b%zz%4");
}

/// Targets made of the pieces that matter.
fn targets() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec![
        "/", "//", ".", "..", "/../", "/./", "%2e", "%2F", "%25", "%3f", "%23", "%00", "%", "a",
        "b.c", "?", "#", "+", "\u{e4}", " ",
    ];
    let shaped = prop::collection::vec(prop::sample::select(pieces), 0..24)
        .prop_map(|pieces| [b"/", pieces.concat().as_bytes()].concat());
    prop_oneof![4 => shaped, 1 => any::<Vec<u8>>()]
}

proptest! {
    #[test]
    fn no_path_leaves_its_root_and_normalising_again_changes_nothing(
        raw in targets(),
        off in any::<bool>(),
    ) {
        let merge = if off { MergeSlashes::Off } else { MergeSlashes::On };
        crate::fuzz::check_uri(&raw, merge);
        let mut decoded = Vec::new();
        if let Ok(target) = normalise(&raw, merge, &mut decoded) {
            let path = target.path(&raw, &decoded).to_vec();
            let mut again = Vec::new();
            push_uri(&mut again, &path, UriPart::Path);
            let mut decoded = Vec::new();
            let target = normalise(&again, merge, &mut decoded).unwrap();
            assert_eq!(target.path(&again, &decoded), &path[..]);
            assert!(target.args(&again).is_empty());
        }
    }
}
