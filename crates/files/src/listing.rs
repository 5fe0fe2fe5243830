//! Bodies of directory listings (`autoindex`), in nginx's layout: html, json, jsonp and xml.
//!
//! The names come from the disk and may contain any byte; each format escapes them its own way.

use std::sync::Arc;

use bolide_http::date::{CivilDate, MONTHS, http_date};
use bolide_http::digits::{push_decimal, push_right};
use bolide_http::escape::{UriPart, push_html, push_json, push_uri};

use crate::{DirEntry, FileKind};

/// `autoindex_format`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A page.
    #[default]
    Html,
    /// A list of objects.
    Json,
    /// JSON as the argument of a function that the client names; without a name plain JSON.
    Jsonp,
    /// A `list` element.
    Xml,
}

/// `autoindex_exact_size`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sizes {
    /// In bytes.
    #[default]
    Exact,
    /// Rounded to K, M and G.
    Rounded,
}

/// How names are measured and cut in a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// A byte is a column.
    #[default]
    Bytes,
    /// A character is a column: for a location with `charset utf-8`.
    Utf8,
}

/// A listing that is to be written, maybe by another thread.
#[derive(Clone, Debug)]
pub struct ListingJob {
    /// The path of the directory, as clients see it.
    pub uri: Vec<u8>,
    /// What is in it, in order.
    pub entries: Arc<Vec<DirEntry>>,
    /// The layout.
    pub style: Style,
    /// What [`callback`] gave.
    pub callback: Option<Vec<u8>>,
}

impl ListingJob {
    /// The listing.
    #[must_use]
    pub fn run(&self) -> Vec<u8> {
        let mut text = Vec::new();
        write(&mut text, &self.uri, &self.entries, &self.style, self.callback.as_deref());
        text
    }
}

/// The layout of a listing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// The format.
    pub format: Format,
    /// Sizes in a page.
    pub sizes: Sizes,
    /// Measure of names in a page.
    pub columns: Columns,
    /// Seconds east of Greenwich of the times in a page; 0 unless `autoindex_localtime`.
    pub offset: i32,
}

/// An invalid callback name; it gets a 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackError;

/// Columns of the name in a page.
const NAME_COLUMNS: usize = 50;
/// Columns shown of a name that is too long.
const NAME_KEPT: usize = NAME_COLUMNS - 3;
/// Bytes of the longest callback name.
const CALLBACK_MAX: usize = 128;

/// Puts directories first and names in byte order.
pub fn sort(entries: &mut [DirEntry]) {
    entries.sort_unstable_by(|one, two| {
        let is_file = |entry: &DirEntry| entry.kind != FileKind::Directory;
        (is_file(one), &one.name).cmp(&(is_file(two), &two.name))
    });
}

/// Checks the `callback` argument: letters, digits, `_` and `.`, at most 128 bytes. An empty one
/// counts as none.
///
/// # Errors
///
/// [`CallbackError`] for any other name.
pub fn callback(argument: Option<&[u8]>) -> Result<Option<&[u8]>, CallbackError> {
    let name = argument.unwrap_or_default();
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    match name.len() {
        0 => Ok(None),
        1..=CALLBACK_MAX if name.iter().all(fits) => Ok(Some(name)),
        _ => Err(CallbackError),
    }
}

/// The media type of a listing.
#[must_use]
pub const fn content_type(format: Format, callback: Option<&[u8]>) -> &'static str {
    match (format, callback) {
        (Format::Html, _) => "text/html",
        (Format::Json, _) | (Format::Jsonp, None) => "application/json",
        (Format::Jsonp, Some(_)) => "application/javascript",
        (Format::Xml, _) => "text/xml",
    }
}

/// Appends the listing of the directory at `uri`; `entries` appear in the given order. `callback`
/// comes from [`callback`] and applies to [`Format::Jsonp`] only.
pub fn write(
    out: &mut Vec<u8>,
    uri: &[u8],
    entries: &[DirEntry],
    style: &Style,
    callback: Option<&[u8]>,
) {
    match (style.format, callback) {
        (Format::Html, _) => write_html(out, uri, entries, style),
        (Format::Json, _) | (Format::Jsonp, None) => write_json(out, entries),
        (Format::Jsonp, Some(name)) => {
            out.extend_from_slice(b"/* callback */\r\n");
            out.extend_from_slice(name);
            out.push(b'(');
            write_json(out, entries);
            out.extend_from_slice(b");");
        }
        (Format::Xml, _) => write_xml(out, entries),
    }
}

fn write_html(out: &mut Vec<u8>, uri: &[u8], entries: &[DirEntry], style: &Style) {
    out.extend_from_slice(b"<html>\r\n<head><title>Index of ");
    push_html(out, uri);
    out.extend_from_slice(b"</title></head>\r\n<body>\r\n<h1>Index of ");
    push_html(out, uri);
    out.extend_from_slice(b"</h1><hr><pre><a href=\"../\">../</a>\r\n");
    for entry in entries {
        write_row(out, entry, style);
    }
    out.extend_from_slice(b"</pre><hr></body>\r\n</html>\r\n");
}

fn write_row(out: &mut Vec<u8>, entry: &DirEntry, style: &Style) {
    let is_directory = entry.kind == FileKind::Directory;
    out.extend_from_slice(b"<a href=\"");
    push_uri(out, &entry.name, UriPart::Component);
    if is_directory {
        out.push(b'/');
    }
    out.extend_from_slice(b"\">");
    let columns = columns(&entry.name, style.columns);
    if columns > NAME_COLUMNS {
        push_html(out, cut(&entry.name, style.columns));
        out.extend_from_slice(b"..&gt;</a>");
    } else {
        push_html(out, &entry.name);
        let slash = usize::from(is_directory && columns < NAME_COLUMNS);
        out.extend_from_slice(&b"/"[..slash]);
        out.extend_from_slice(b"</a>");
        out.resize(out.len() + NAME_COLUMNS - columns - slash, b' ');
    }
    out.push(b' ');
    push_time(out, entry.mtime_secs + i64::from(style.offset));
    match (style.sizes, is_directory) {
        (Sizes::Exact, true) => push_dash(out, 19),
        (Sizes::Exact, false) => push_right(out, entry.size, 19),
        (Sizes::Rounded, true) => push_dash(out, 7),
        (Sizes::Rounded, false) => push_rounded(out, entry.size),
    }
    out.extend_from_slice(b"\r\n");
}

fn columns(name: &[u8], measure: Columns) -> usize {
    match (measure, std::str::from_utf8(name)) {
        (Columns::Utf8, Ok(text)) => text.chars().count(),
        _ => name.len(),
    }
}

/// The visible part of a name that is too long.
fn cut(name: &[u8], measure: Columns) -> &[u8] {
    match (measure, std::str::from_utf8(name)) {
        (Columns::Utf8, Ok(text)) => {
            let end = text.char_indices().nth(NAME_KEPT).map_or(name.len(), |(at, _)| at);
            &name[..end]
        }
        _ => &name[..NAME_KEPT],
    }
}

/// `06-Nov-1994 08:49 `
fn push_time(out: &mut Vec<u8>, unix_seconds: i64) {
    let civil = CivilDate::from_unix(unix_seconds);
    push_two(out, civil.day, b'-');
    out.extend_from_slice(MONTHS[civil.month as usize - 1]);
    out.push(b'-');
    push_decimal(out, civil.year.into());
    out.push(b' ');
    push_two(out, civil.hour, b':');
    push_two(out, civil.minute, b' ');
}

/// Two digits and the byte after them.
fn push_two(out: &mut Vec<u8>, number: u32, after: u8) {
    out.extend_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8, after]);
}

fn push_dash(out: &mut Vec<u8>, width: usize) {
    out.resize(out.len() + width - 1, b' ');
    out.push(b'-');
}

/// A size in seven columns: bytes up to 9999, then K, M or G, rounded half up.
fn push_rounded(out: &mut Vec<u8>, size: u64) {
    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;
    const G: u64 = 1 << 30;
    let rounded = |unit: u64| size / unit + u64::from(size % unit > unit / 2 - 1);
    let (number, unit) = match size {
        G.. => (rounded(G), b'G'),
        M.. => (rounded(M), b'M'),
        10_000.. => (rounded(K), b'K'),
        _ => return push_right(out, size, 7),
    };
    push_right(out, number, 6);
    out.push(unit);
}

const fn word(kind: FileKind) -> &'static [u8] {
    match kind {
        FileKind::Directory => b"directory",
        FileKind::File => b"file",
        FileKind::Other => b"other",
    }
}

fn write_json(out: &mut Vec<u8>, entries: &[DirEntry]) {
    out.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"\r\n" } else { b",\r\n" });
        out.extend_from_slice(b"{ \"name\":\"");
        push_json(out, &entry.name);
        out.extend_from_slice(b"\", \"type\":\"");
        out.extend_from_slice(word(entry.kind));
        out.extend_from_slice(b"\", \"mtime\":\"");
        out.extend_from_slice(&http_date(entry.mtime_secs));
        out.push(b'"');
        if entry.kind == FileKind::File {
            out.extend_from_slice(b", \"size\":");
            push_decimal(out, entry.size);
        }
        out.extend_from_slice(b" }");
    }
    out.extend_from_slice(b"\r\n]");
}

fn write_xml(out: &mut Vec<u8>, entries: &[DirEntry]) {
    out.extend_from_slice(b"<?xml version=\"1.0\"?>\r\n<list>\r\n");
    for entry in entries {
        out.push(b'<');
        out.extend_from_slice(word(entry.kind));
        out.extend_from_slice(b" mtime=\"");
        let time = bolide_http::date::iso_date(entry.mtime_secs, 0);
        out.extend_from_slice(&time[..19]);
        out.extend_from_slice(b"Z\"");
        if entry.kind == FileKind::File {
            out.extend_from_slice(b" size=\"");
            push_decimal(out, entry.size);
            out.push(b'"');
        }
        out.push(b'>');
        push_html(out, &entry.name);
        out.extend_from_slice(b"</");
        out.extend_from_slice(word(entry.kind));
        out.extend_from_slice(b">\r\n");
    }
    out.extend_from_slice(b"</list>\r\n");
}

#[cfg(test)]
mod tests;
