//! Listings and encoders with arbitrary bytes, and their invariants.

use bolide_http::negotiate::Coding;

use bolide_files::listing::{self, Columns, Format, Style};
use bolide_files::{CodingEncoder, DirEntry, FileKind};

/// Splits `data` into names and lists them in every format.
pub fn listing(data: &[u8]) {
    let names: Vec<Vec<u8>> = data.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
    check_listing(&names, Columns::Bytes);
    check_listing(&names, Columns::Utf8);
}

/// The markup of a listing depends on the number of names, never on their contents.
pub fn check_listing(names: &[Vec<u8>], columns: Columns) {
    let entry = |name: &Vec<u8>| DirEntry {
        name: name.as_slice().into(),
        kind: FileKind::File,
        size: 1,
        mtime_secs: 1,
    };
    let entries: Vec<_> = names.iter().map(entry).collect();
    let count = |out: &[u8], wanted: u8| out.iter().filter(|&&byte| byte == wanted).count();
    let write = |format| {
        let mut out = Vec::new();
        let style = Style { format, columns, ..Style::default() };
        listing::write(&mut out, b"/", &entries, &style, None);
        out
    };
    let html = write(Format::Html);
    assert_eq!(count(&html, b'<'), 16 + 2 * names.len());
    assert_eq!(count(&html, b'"'), 2 + 2 * names.len());
    let xml = write(Format::Xml);
    assert_eq!(count(&xml, b'<'), 3 + 2 * names.len());
    let json = write(Format::Json);
    assert_eq!(count(&json, b'\n'), names.len() + 1);
}

/// Feeds a stream of each coding; the first byte determines the pieces and the flushes.
pub fn encode(data: &[u8]) {
    let Some((&cut, rest)) = data.split_first() else { return };
    for coding in Coding::ALL {
        let Ok(mut encoder) = CodingEncoder::new(coding, 1) else { return };
        let mut out = Vec::new();
        for chunk in rest.chunks(usize::from(cut).max(1)) {
            assert!(encoder.feed(chunk, &mut out).is_ok());
            if cut % 2 == 0 {
                assert!(encoder.flush(&mut out).is_ok());
            }
        }
        assert!(encoder.finish(&mut out).is_ok());
        assert!(!out.is_empty());
    }
}
