//! Listings as texts, and that no name breaks out of its place.

use super::{
    CallbackError, Columns, Format, Sizes, Style, callback, content_type, push_rounded, sort, write,
};
use crate::{DirEntry, FileKind};
use proptest::prelude::{any, prop, proptest};

fn entry(name: &str, kind: FileKind, size: u64) -> DirEntry {
    DirEntry { name: name.as_bytes().into(), kind, size, mtime_secs: 784_111_777 }
}

fn entries() -> Vec<DirEntry> {
    let mut entries = vec![
        entry("b & c.txt", FileKind::File, 12_345),
        entry("zoo", FileKind::Directory, 4096),
        entry("a\"<b>.html", FileKind::File, 5),
        entry("Images", FileKind::Directory, 4096),
        entry("pipe", FileKind::Other, 0),
    ];
    sort(&mut entries);
    entries
}

fn text(uri: &str, entries: &[DirEntry], style: Style, callback: Option<&[u8]>) -> String {
    let mut out = Vec::new();
    write(&mut out, uri.as_bytes(), entries, &style, callback);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn a_page_lists_directories_first_in_columns() {
    let page = text("/x & y/", &entries(), Style::default(), None);
    let expected = "<html>\r\n\
        <head><title>Index of /x &amp; y/</title></head>\r\n\
        <body>\r\n\
        <h1>Index of /x &amp; y/</h1><hr><pre><a href=\"../\">../</a>\r\n\
        <a href=\"Images/\">Images/</a>                                            \
        06-Nov-1994 08:49                   -\r\n\
        <a href=\"zoo/\">zoo/</a>                                               \
        06-Nov-1994 08:49                   -\r\n\
        <a href=\"a%22%3Cb%3E.html\">a&quot;&lt;b&gt;.html</a>\
        \x20                                        \
        06-Nov-1994 08:49                   5\r\n\
        <a href=\"b%20%26%20c.txt\">b &amp; c.txt</a>                                          \
        06-Nov-1994 08:49               12345\r\n\
        <a href=\"pipe\">pipe</a>                                               \
        06-Nov-1994 08:49                   0\r\n\
        </pre><hr></body>\r\n\
        </html>\r\n";
    assert_eq!(page, expected);
}

#[test]
fn times_and_sizes_follow_the_style() {
    let style = Style { sizes: Sizes::Rounded, offset: 5400, ..Style::default() };
    let page = text("/", &entries(), style, None);
    assert!(page.contains("06-Nov-1994 10:19       -\r\n"));
    assert!(page.contains("06-Nov-1994 10:19     12K\r\n"));
    let sizes = [
        (0, "      0"),
        (9_999, "   9999"),
        (10_000, "    10K"),
        (10_751, "    10K"),
        (10_752, "    11K"),
        (1_048_575, "  1024K"),
        (1_048_576, "     1M"),
        (1_572_863, "     1M"),
        (1_572_864, "     2M"),
        (5_368_709_120, "     5G"),
    ];
    for (size, expected) in sizes {
        let mut out = Vec::new();
        push_rounded(&mut out, size);
        assert_eq!(out, expected.as_bytes(), "{size}");
    }
}

#[test]
fn long_names_are_cut_and_those_of_fifty_columns_are_not() {
    let row = |name: &str, kind, columns| {
        let style = Style { columns, ..Style::default() };
        let page = text("/", &[entry(name, kind, 1)], style, None);
        let row = page.lines().nth(4).unwrap().to_owned();
        row[row.find("\">").unwrap() + 2..].to_owned()
    };
    let fifty = "x".repeat(50);
    let shown = row(&fifty, FileKind::File, Columns::Bytes);
    assert!(shown.starts_with(&format!("{fifty}</a> 06-Nov")), "{shown}");
    let shown = row(&fifty, FileKind::Directory, Columns::Bytes);
    assert!(shown.starts_with(&format!("{fifty}</a> 06-Nov")), "{shown}");
    let shown = row(&fifty[1..], FileKind::Directory, Columns::Bytes);
    assert!(shown.starts_with(&format!("{}/</a> 06-Nov", &fifty[1..])), "{shown}");
    let shown = row(&"x".repeat(51), FileKind::File, Columns::Bytes);
    assert!(shown.starts_with(&format!("{}..&gt;</a> 06-Nov", "x".repeat(47))), "{shown}");
    let wide = "\u{e4}".repeat(50);
    let shown = row(&wide, FileKind::File, Columns::Utf8);
    assert!(shown.starts_with(&format!("{wide}</a> 06-Nov")), "{shown}");
    let shown = row(&"\u{e4}".repeat(51), FileKind::File, Columns::Utf8);
    assert!(shown.starts_with(&format!("{}..&gt;</a>", "\u{e4}".repeat(47))), "{shown}");
    let shown = row(&"\u{e4}".repeat(20), FileKind::File, Columns::Bytes);
    assert!(shown.contains(&format!("</a>{} 06-Nov", " ".repeat(10))), "{shown}");
}

#[test]
fn json_is_a_list_of_objects_and_jsonp_its_call() {
    let style = Style { format: Format::Json, ..Style::default() };
    let entries = [entry("d", FileKind::Directory, 1), entry("a\"\n", FileKind::File, 7)];
    let json = "[\r\n\
        { \"name\":\"d\", \"type\":\"directory\", \
        \"mtime\":\"Sun, 06 Nov 1994 08:49:37 GMT\" },\r\n\
        { \"name\":\"a\\\"\\n\", \"type\":\"file\", \"mtime\":\"Sun, 06 Nov 1994 08:49:37 GMT\", \
        \"size\":7 }\r\n]";
    assert_eq!(text("/", &entries, style, None), json);
    assert_eq!(text("/", &[], style, None), "[\r\n]");
    let style = Style { format: Format::Jsonp, ..style };
    assert_eq!(text("/", &entries, style, None), json);
    let call = text("/", &entries, style, Some(b"a.b_1"));
    assert_eq!(call, format!("/* callback */\r\na.b_1({json});"));
}

#[test]
fn xml_names_each_kind() {
    let style = Style { format: Format::Xml, ..Style::default() };
    let entries = [
        entry("d", FileKind::Directory, 1),
        entry("<&>", FileKind::File, 7),
        entry("p", FileKind::Other, 0),
    ];
    let expected = "<?xml version=\"1.0\"?>\r\n<list>\r\n\
        <directory mtime=\"1994-11-06T08:49:37Z\">d</directory>\r\n\
        <file mtime=\"1994-11-06T08:49:37Z\" size=\"7\">&lt;&amp;&gt;</file>\r\n\
        <other mtime=\"1994-11-06T08:49:37Z\">p</other>\r\n\
        </list>\r\n";
    assert_eq!(text("/", &entries, style, None), expected);
}

#[test]
fn callbacks_are_plain_names_and_types_fit_the_format() {
    assert_eq!(callback(None), Ok(None));
    assert_eq!(callback(Some(b"")), Ok(None));
    assert_eq!(callback(Some(b"a.B_9")), Ok(Some(&b"a.B_9"[..])));
    for bad in [&b"a("[..], b"a[0]", b"@", b"a b", &[b'a'; 129]] {
        assert_eq!(callback(Some(bad)), Err(CallbackError));
    }
    assert_eq!(content_type(Format::Html, None), "text/html");
    assert_eq!(content_type(Format::Json, Some(b"x")), "application/json");
    assert_eq!(content_type(Format::Jsonp, None), "application/json");
    assert_eq!(content_type(Format::Jsonp, Some(b"x")), "application/javascript");
    assert_eq!(content_type(Format::Xml, None), "text/xml");
}

proptest! {
    #[test]
    fn no_name_breaks_out_of_its_place(
        names in prop::collection::vec(any::<Vec<u8>>(), 0..4),
        utf8 in any::<bool>(),
    ) {
        let columns = if utf8 { Columns::Utf8 } else { Columns::Bytes };
        crate::fuzz::check_listing(&names, columns);
    }
}
