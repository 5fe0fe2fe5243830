//! WebDAV and stored responses: requests, and which responses and files are correct.
//!
//! Owns the names that all clients change at once. A response is correct if the files had, at some
//! moment between the request and it, the state that it reports; whatever happens, a file with a
//! name is a complete body.

use crate::ask::SimAsk;
use crate::chance::Chance;
use crate::deeds::{Deeds, application_answer, upload_byte};
use crate::kernel::Kernel;
use crate::kernel::dav::{MOUNT, is_beside};
use crate::kernel::disk::{DiskSeen, SimDisk};

/// Directives of the `http` block.
pub const HTTP: &str = "client_body_temp_path /bodies 1 2;";

/// What is served.
pub const LOCATIONS: &str = "
        location /dav/ { alias /dav/; dav_methods PUT DELETE MKCOL COPY MOVE;
            create_full_put_path on; }
        location /stored { fastcgi_pass app; fastcgi_store /store/$args;
            fastcgi_temp_path /bodies 1 2; }
        location /metered { fastcgi_pass app; fastcgi_limit_rate 60k; }
        location /mirrored { mirror /copied; fastcgi_pass app; }
        location /copied { internal; fastcgi_pass app; }
";

/// Where applications are asked.
pub const APPS: &[&str] = &["/stored", "/stored", "/metered", "/mirrored"];

/// Names that may be files or directories.
pub const NAMES: [&str; 9] = [
    "/dav/a.txt",
    "/dav/b.txt",
    "/dav/d",
    "/dav/d/a.txt",
    "/dav/d/e",
    "/dav/d/e/a.txt",
    MOUNT,
    "/dav/f/a.txt",
    "/dav/f/e",
];

/// Sizes of bodies. Each body begins as the longest does, so its size tells whether it is whole.
const SIZES: [usize; 5] = [1, 20, 700, 5000, 60_000];

/// Files of a directory that takes long to copy and to remove.
const MANY: usize = 40;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DavVerb {
    /// `GET`
    Get,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `MKCOL`
    MakeCollection,
    /// `COPY`
    Copy,
    /// `MOVE`
    Move,
}

/// A request about files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DavAct {
    /// The method.
    pub verb: DavVerb,
    /// One of [`NAMES`].
    pub path: &'static str,
    /// Another one, for those that have two.
    pub to: &'static str,
    /// Whether names end with a slash.
    pub has_slash: bool,
    /// What `Depth` says, if it is there.
    pub depth: Option<&'static str>,
    /// What `Overwrite` says.
    pub overwrites: bool,
}

impl DavAct {
    /// Any request, and the size of its body.
    pub fn any(chance: &mut Chance) -> (Self, usize) {
        let verb = match chance.below(9) {
            0 | 1 => DavVerb::Get,
            2 | 3 => DavVerb::Put,
            4 => DavVerb::Delete,
            5 => DavVerb::MakeCollection,
            6 | 7 => DavVerb::Copy,
            _ => DavVerb::Move,
        };
        let path = chance.index(NAMES.len());
        let to = (path + 1 + chance.index(NAMES.len() - 1)) % NAMES.len();
        let is_rather_directory = !NAMES[path].ends_with("txt");
        let has_slash = match verb {
            DavVerb::Put | DavVerb::Get => false,
            DavVerb::MakeCollection => !chance.one_in(8),
            _ => is_rather_directory != chance.one_in(6),
        };
        let depth = [None, None, None, Some("infinity"), Some("0"), Some("1")][chance.index(6)];
        let overwrites = !chance.one_in(4);
        let act = Self { verb, path: NAMES[path], to: NAMES[to], has_slash, depth, overwrites };
        (act, SIZES[chance.index(SIZES.len())])
    }

    /// The method.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self.verb {
            DavVerb::Get => "GET",
            DavVerb::Put => "PUT",
            DavVerb::Delete => "DELETE",
            DavVerb::MakeCollection => "MKCOL",
            DavVerb::Copy => "COPY",
            DavVerb::Move => "MOVE",
        }
    }

    /// The path of the request.
    #[must_use]
    pub fn target(self) -> String {
        self.with_slash(self.path)
    }

    /// Fields that it has beside those of all requests.
    #[must_use]
    pub fn fields(self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        fields.extend(self.depth.map(|depth| ("depth", depth.to_owned())));
        if matches!(self.verb, DavVerb::Copy | DavVerb::Move) {
            let overwrite = if self.overwrites { "T" } else { "F" };
            fields.push(("destination", self.with_slash(self.to)));
            fields.push(("overwrite", overwrite.to_owned()));
        }
        fields
    }

    /// Whether `Depth` is not what the method is for (RFC 4918 §9.6.1, §9.8.3, §9.9.2).
    fn is_too_shallow(self) -> bool {
        match self.verb {
            DavVerb::Copy => self.depth == Some("1"),
            DavVerb::Move => matches!(self.depth, Some("0" | "1")),
            DavVerb::Delete => match self.has_slash {
                true => matches!(self.depth, Some("0" | "1")),
                false => self.depth == Some("1"),
            },
            _ => false,
        }
    }

    fn with_slash(self, path: &str) -> String {
        format!("{path}{}", if self.has_slash { "/" } else { "" })
    }
}

/// What the files were while a request was under way.
struct Span<'a> {
    disk: &'a SimDisk,
    since: u64,
    until: u64,
}

impl Span<'_> {
    fn any(&self, path: &str, mut is: impl FnMut(&DiskSeen) -> bool) -> bool {
        self.disk.states(path, self.since, self.until).any(&mut is)
    }

    fn absent(&self, path: &str) -> bool {
        self.any(path, |seen| matches!(seen, DiskSeen::Absent))
    }

    fn file(&self, path: &str) -> bool {
        self.any(path, |seen| matches!(seen, DiskSeen::File(_)))
    }

    fn directory(&self, path: &str) -> bool {
        self.any(path, |seen| matches!(seen, DiskSeen::Directory))
    }

    fn became(&self, path: &str, mut is: impl FnMut(&DiskSeen) -> bool) -> bool {
        self.disk.steps(path, self.since, self.until).any(&mut is)
    }

    /// Whether some directory that leads to a path was missing.
    fn lacks_way(&self, path: &str) -> bool {
        let above = path.match_indices('/').skip(2).map(|(at, _)| &path[..at]);
        above.into_iter().any(|above| self.absent(above) || self.file(above))
    }

    /// Whether something changed at a path, above it or below it.
    fn changed(&self, path: &str) -> bool {
        let near = |other: &&str| is_within(other, path) || is_within(path, other);
        self.disk.remembered().filter(near).any(|other| self.became(other, |_| true))
    }
}

fn is_within(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether an answer to anything but `GET` is right.
pub(crate) fn is_right(
    act: DavAct,
    ask: &SimAsk,
    status: u16,
    until: u64,
    (disk, deeds): (&SimDisk, &Deeds),
) -> bool {
    let span = Span { disk, since: ask.since, until };
    if status >= 400 && deeds.full_disks > 0 {
        return true;
    }
    let DavAct { path, has_slash, .. } = act;
    match (act.verb, status) {
        (DavVerb::Get, _) => false,
        (_, 400) if act.is_too_shallow() => true,
        (_, 201 | 204) if act.is_too_shallow() => false,
        (DavVerb::Put, 201 | 204) => span.became(path, |seen| {
            matches!(seen, DiskSeen::File(content) if is_body(&content.bytes, ask.upload.size()))
        }),
        (DavVerb::Put, 409) => span.directory(path),
        (DavVerb::Put, 500) => span.lacks_way(path),
        (DavVerb::Delete, 204) => span.became(path, |seen| matches!(seen, DiskSeen::Absent)),
        (DavVerb::Delete, 404) => span.absent(path),
        (DavVerb::Delete, 409) => {
            span.lacks_way(path) || if has_slash { span.file(path) } else { span.directory(path) }
        }
        (DavVerb::Delete, 500) => span.directory(path) && (span.changed(path) || path == MOUNT),
        (DavVerb::MakeCollection, 201) => {
            span.became(path, |seen| matches!(seen, DiskSeen::Directory))
        }
        (DavVerb::MakeCollection, 405) => span.file(path) || span.directory(path),
        (DavVerb::MakeCollection, 409) => !has_slash || span.lacks_way(path),
        (DavVerb::Copy | DavVerb::Move, _) => is_right_transfer(act, status, &span),
        _ => false,
    }
}

/// The same of a copy or a move.
fn is_right_transfer(act: DavAct, status: u16, span: &Span<'_>) -> bool {
    let DavAct { verb, path, to, has_slash, overwrites, .. } = act;
    match status {
        201 | 204 if has_slash => {
            let is_there = span.became(to, |seen| matches!(seen, DiskSeen::Directory));
            is_there && span.directory(path) && (verb == DavVerb::Copy || span.absent(path))
        }
        201 | 204 => {
            let is_copy = span.became(to, |copy| {
                let DiskSeen::File(copy) = copy else { return false };
                span.any(
                    path,
                    |seen| matches!(seen, DiskSeen::File(source) if source.bytes == copy.bytes),
                )
            });
            is_copy && (verb == DavVerb::Copy || span.absent(path))
        }
        400 => !has_slash && span.directory(path),
        403 => has_slash && (is_within(path, to) || is_within(to, path)),
        404 => {
            let is_other = has_slash && span.file(path);
            span.absent(path) || is_other || span.lacks_way(path) || span.lacks_way(to)
        }
        409 => !has_slash && span.directory(to) || span.lacks_way(to),
        412 => !overwrites && (span.file(to) || span.directory(to)),
        500 => {
            span.lacks_way(to)
                || span.changed(path)
                || span.changed(to)
                || [path, to].contains(&MOUNT)
        }
        _ => false,
    }
}

fn is_body(bytes: &[u8], size: usize) -> bool {
    bytes.len() == size && bytes.iter().enumerate().all(|(at, byte)| *byte == upload_byte(at))
}

/// Has the disk hold what is there before a server begins.
pub(crate) fn prepare(kernel: &mut Kernel, seed: u64) {
    let mut chance = Chance::new(seed, 7);
    kernel.faults.spool_in = [0, 0, 0, 60][chance.index(4)];
    kernel.faults.deed_in = [0, 8][chance.index(2)];
    kernel.disk.watches.max = [0, 2, 64, 64][chance.index(4)];
    kernel.look_valid = 0;
    kernel.disk.is_apart = chance.one_in(2);
    for directory in ["/bodies", "/store", "/dav", "/dav/d", MOUNT] {
        kernel.disk.make_directory(directory);
    }
    for name in NAMES {
        kernel.disk.remove(name, 0);
    }
    kernel.disk.make_directory("/dav/d");
    kernel.disk.make_directory(MOUNT);
    let body = |size| (0..size).map(upload_byte).collect::<Vec<_>>();
    kernel.disk.replace("/dav/a.txt", body(SIZES[3]), 0);
    for number in 0..MANY {
        kernel.disk.replace(&format!("/dav/d/n{number}"), body(SIZES[2]), 0);
    }
}

/// What is wrong with the files that are left.
pub(crate) fn check(kernel: &Kernel) -> Vec<String> {
    let mut wrong = Vec::new();
    let disk = &kernel.disk;
    if kernel.deeds.full_disks == 0 {
        let temporary =
            disk.below("/").filter(|path| is_beside(path) || path.starts_with("/bodies"));
        wrong.extend(temporary.map(|path| format!("{path} is left")));
    }
    let files = ["/dav/", "/store/"].into_iter().flat_map(|start| disk.below(start));
    for path in files.filter(|path| !is_beside(path)) {
        let DiskSeen::File(content) = disk.look(path) else { continue };
        let is_whole = match path.strip_prefix("/store/") {
            Some(name) => is_answer(name, &content.bytes),
            None => SIZES.iter().any(|size| is_body(&content.bytes, *size)),
        };
        if !is_whole {
            wrong.push(format!("{path} has {} bytes that are no whole body", content.bytes.len()));
        }
    }
    wrong
}

/// Whether these bytes are all of what an application answers to a request.
fn is_answer(query: &str, bytes: &[u8]) -> bool {
    let Some((token, size)) = query.split_once('&') else { return false };
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let sent = String::from_utf8_lossy(line);
    let sent = sent.split(' ').nth(2).and_then(|sent| sent.parse().ok());
    let (Ok(size), Some(sent)) = (size.parse(), sent) else { return false };
    *bytes == application_answer(token, size, sent)
}
