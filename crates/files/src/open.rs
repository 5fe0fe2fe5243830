//! A file as of its last lookup, with everything that a hot response needs.

use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use bolide_base::FileRef;
use bolide_http::conditional::Validator;
use bolide_http::date;
use bolide_http::digits::{Decimal, push_hex};
use bolide_http::negotiate::{Coding, Codings};
use bytes::Bytes;

use crate::variant::{FileVariant, VariantKey, VariantSet};

/// The type of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    #[default]
    File,
    /// A directory.
    Directory,
    /// A device, socket or pipe.
    Other,
}

/// The result of `fstat`. Two equal values mean that the file has not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Its type.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// Last change of the content, in seconds since 1970.
    pub mtime_secs: i64,
    /// And nanoseconds.
    pub mtime_nanos: u32,
    /// Last change of content or attributes, in seconds since 1970.
    pub ctime_secs: i64,
    /// And nanoseconds.
    pub ctime_nanos: u32,
    /// Inode number.
    pub inode: u64,
    /// Device number.
    pub dev: u64,
    /// Permission bits and type as in `st_mode`.
    pub mode: u32,
    /// Whether it has several names. Writes through another name are not reported to the directory
    /// of this one.
    pub is_shared: bool,
}

impl Meta {
    /// Whether any execute bit is set, as `-x` tests.
    #[must_use]
    pub const fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without slashes.
    pub name: Box<[u8]>,
    /// Its type, symbolic links followed.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// Seconds since 1970.
    pub mtime_secs: i64,
}

/// The source of a file's bytes.
#[derive(Clone, Debug)]
pub enum FileBody {
    /// The whole content, read at the lookup.
    Memory(Bytes),
    /// Still on disk.
    Disk(FileRef),
}

/// An entity tag, inline: `"mtime-size"` in hexadecimal, with its weak form.
#[derive(Clone, Copy, Debug)]
pub struct Etag {
    /// `W/"…"`
    text: [u8; 37],
    len: u8,
}

impl Etag {
    fn new(meta: &Meta, scratch: &mut Vec<u8>) -> Self {
        scratch.clear();
        scratch.extend_from_slice(b"W/\"");
        push_hex(scratch, meta.mtime_secs as u64);
        scratch.push(b'-');
        push_hex(scratch, meta.size);
        scratch.push(b'"');
        let mut text = [0; 37];
        text[..scratch.len()].copy_from_slice(scratch);
        Self { text, len: scratch.len() as u8 }
    }

    /// The tag of `size` bytes generated from a file.
    #[must_use]
    pub fn of_part(meta: &Meta, size: u64) -> Self {
        Self::new(&Meta { size, ..*meta }, &mut Vec::new())
    }

    /// `"5f3c-400"`
    #[must_use]
    pub fn strong(&self) -> &[u8] {
        &self.text[2..usize::from(self.len)]
    }

    /// `W/"5f3c-400"`, for a body that was compressed on the way.
    #[must_use]
    pub fn weak(&self) -> &[u8] {
        &self.text[..usize::from(self.len)]
    }
}

/// An open regular file. Shared by all requests of one worker until the file changes.
#[derive(Debug)]
pub struct OpenFile {
    /// Where it is.
    pub path: Rc<[u8]>,
    /// Its bytes.
    pub body: FileBody,
    /// Its attributes at the last lookup.
    pub meta: Meta,
    /// For `ETag`.
    pub etag: Etag,
    /// For `Last-Modified`.
    pub last_modified: [u8; 29],
    /// The size in decimal.
    pub length: Decimal,
    /// Precompressed siblings found missing since the last check.
    missing_siblings: Cell<Codings>,
    /// Data that another layer parsed from its content.
    reading: OnceCell<Rc<dyn Any>>,
    /// The memory of that data, in bytes.
    pub(crate) reading_weight: Cell<u64>,
    pub(crate) variants: VariantSet,
}

impl OpenFile {
    pub(crate) fn new(path: Rc<[u8]>, body: FileBody, meta: Meta, variants: VariantSet) -> Self {
        Self {
            path,
            body,
            meta,
            etag: Etag::new(&meta, &mut Vec::with_capacity(37)),
            last_modified: date::http_date(meta.mtime_secs),
            length: Decimal::new(meta.size),
            missing_siblings: Cell::new(Codings::NONE),
            reading: OnceCell::new(),
            reading_weight: Cell::new(0),
            variants,
        }
    }

    /// The result of `read` on its content, computed once and stored with the file. `None` if the
    /// content is not in memory.
    pub fn reading<T: 'static>(&self, read: impl FnOnce(&[u8]) -> T) -> Option<Rc<T>> {
        let content = self.content()?;
        let reading = self.reading.get_or_init(|| Rc::new(read(content)));
        reading.clone().downcast().ok()
    }

    /// The validator for preconditions.
    #[must_use]
    pub fn validator(&self) -> Validator<'_> {
        Validator {
            etag: Some(self.etag.strong()),
            last_modified: Some(u64::try_from(self.meta.mtime_secs).unwrap_or(0)),
        }
    }

    /// The bytes, if they are in memory.
    #[must_use]
    pub const fn content(&self) -> Option<&Bytes> {
        match &self.body {
            FileBody::Memory(content) => Some(content),
            FileBody::Disk(_) => None,
        }
    }

    /// The state of the compressed form for `key`.
    #[must_use]
    pub fn variant(&self, key: VariantKey) -> FileVariant {
        self.variants.find(key)
    }

    /// Whether the precompressed sibling was found missing since the last check of the file.
    #[must_use]
    pub fn lacks_sibling(&self, coding: Coding) -> bool {
        self.missing_siblings.get().contains(coding)
    }

    /// Records that there is no precompressed sibling; holds until the next check of the file.
    pub fn record_missing_sibling(&self, coding: Coding) {
        self.missing_siblings.set(self.missing_siblings.get().with(coding));
    }

    /// Clears the record of missing siblings.
    pub(crate) fn forget_siblings(&self) {
        self.missing_siblings.set(Codings::NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::{Etag, Meta};

    #[test]
    fn etags_are_mtime_and_size_in_hexadecimal() {
        let meta = Meta { mtime_secs: 784_111_777, size: 1024, ..Meta::default() };
        let etag = Etag::new(&meta, &mut Vec::new());
        assert_eq!(etag.strong(), b"\"2ebc98a1-400\"");
        assert_eq!(etag.weak(), b"W/\"2ebc98a1-400\"");
        let largest = Meta { mtime_secs: -1, size: u64::MAX, ..Meta::default() };
        let etag = Etag::new(&largest, &mut Vec::new());
        assert_eq!(etag.strong(), b"\"ffffffffffffffff-ffffffffffffffff\"");
        let empty = Etag::new(&Meta::default(), &mut Vec::new());
        assert_eq!(empty.strong(), b"\"0-0\"");
    }
}
