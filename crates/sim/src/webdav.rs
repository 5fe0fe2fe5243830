//! WebDAV and stored responses: requests, and the oracle for responses and files.
//!
//! Owns the names that all clients change concurrently. A response is correct if the files had, at
//! some moment between the request and it, the state that it reports; whatever happens, a file with
//! a name is a complete body.

pub mod request;

use crate::chance::Chance;
use crate::fault_record::{FaultRecord, application_response, upload_byte};
use crate::kernel::Kernel;
use crate::kernel::disk::{PathState, SimDisk};
use crate::kernel::file_system::is_partial_copy;
use crate::request::SimRequest;
use request::{MOUNT, NAMES, SIZES, SimDavMethod, SimDavRequest};

/// Directives of the `http` block.
pub const HTTP: &str = "client_body_temp_path /bodies 1 2;";

/// The locations of the site.
pub const LOCATIONS: &str = "
        location /dav/ { alias /dav/; dav_methods PUT DELETE MKCOL COPY MOVE;
            create_full_put_path on; }
        location /stored { fastcgi_pass app; fastcgi_store /store/$args;
            fastcgi_temp_path /bodies 1 2; }
        location /metered { fastcgi_pass app; fastcgi_limit_rate 60k; }
        location /mirrored { mirror /copied; fastcgi_pass app; }
        location /copied { internal; fastcgi_pass app; }
";

/// Files of a directory that takes long to copy and to remove.
const MANY: usize = 40;

/// The states of the files during a request.
struct Span<'a> {
    disk: &'a SimDisk,
    since: u64,
    until: u64,
}

impl Span<'_> {
    fn any(&self, path: &str, mut is: impl FnMut(&PathState) -> bool) -> bool {
        self.disk.states(path, self.since, self.until).any(&mut is)
    }

    fn absent(&self, path: &str) -> bool {
        self.any(path, |seen| matches!(seen, PathState::Absent))
    }

    fn file(&self, path: &str) -> bool {
        self.any(path, |seen| matches!(seen, PathState::File(_)))
    }

    fn directory(&self, path: &str) -> bool {
        self.any(path, |seen| matches!(seen, PathState::Directory))
    }

    fn became(&self, path: &str, mut is: impl FnMut(&PathState) -> bool) -> bool {
        self.disk.transitions(path, self.since, self.until).any(&mut is)
    }

    /// Whether a parent directory of a path was missing.
    fn lacks_parent(&self, path: &str) -> bool {
        let above = path.match_indices('/').skip(2).map(|(at, _)| &path[..at]);
        above.into_iter().any(|above| self.absent(above) || self.file(above))
    }

    /// Whether a path, a parent of it or a path below it changed.
    fn changed(&self, path: &str) -> bool {
        let near = |other: &&str| is_within(other, path) || is_within(path, other);
        self.disk.known_paths().filter(near).any(|other| self.became(other, |_| true))
    }
}

fn is_within(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a response to a method other than `GET` is correct.
pub(crate) fn is_correct(
    act: SimDavRequest,
    request: &SimRequest,
    status: u16,
    until: u64,
    (disk, fault_record): (&SimDisk, &FaultRecord),
) -> bool {
    let span = Span { disk, since: request.since, until };
    if status >= 400 && fault_record.temp_file_errors > 0 {
        return true;
    }
    let SimDavRequest { path, has_slash, .. } = act;
    match (act.method, status) {
        (SimDavMethod::Get, _) => false,
        (_, 400) if act.is_too_shallow() => true,
        (_, 201 | 204) if act.is_too_shallow() => false,
        (SimDavMethod::Put, 201 | 204) => span.became(path, |seen| {
            let size = request.upload.size();
            matches!(seen, PathState::File(content) if is_body(&content.bytes, size))
        }),
        (SimDavMethod::Put, 409) => span.directory(path),
        (SimDavMethod::Put, 500) => span.lacks_parent(path),
        (SimDavMethod::Delete, 204) => span.became(path, |seen| matches!(seen, PathState::Absent)),
        (SimDavMethod::Delete, 404) => span.absent(path),
        (SimDavMethod::Delete, 409) => {
            let is_other = if has_slash { span.file(path) } else { span.directory(path) };
            span.lacks_parent(path) || is_other
        }
        (SimDavMethod::Delete, 500) => {
            span.directory(path) && (span.changed(path) || path == MOUNT)
        }
        (SimDavMethod::MakeCollection, 201) => {
            span.became(path, |seen| matches!(seen, PathState::Directory))
        }
        (SimDavMethod::MakeCollection, 405) => span.file(path) || span.directory(path),
        (SimDavMethod::MakeCollection, 409) => !has_slash || span.lacks_parent(path),
        (SimDavMethod::Copy | SimDavMethod::Move, _) => is_correct_transfer(act, status, &span),
        _ => false,
    }
}

/// Whether a response to `COPY` or `MOVE` is correct.
fn is_correct_transfer(act: SimDavRequest, status: u16, span: &Span<'_>) -> bool {
    let SimDavRequest { method, path, to, has_slash, overwrites, .. } = act;
    match status {
        201 | 204 if has_slash => {
            let is_there = span.became(to, |seen| matches!(seen, PathState::Directory));
            is_there && span.directory(path) && (method == SimDavMethod::Copy || span.absent(path))
        }
        201 | 204 => {
            let is_copy = span.became(to, |copy| {
                let PathState::File(copy) = copy else { return false };
                span.any(
                    path,
                    |seen| matches!(seen, PathState::File(source) if source.bytes == copy.bytes),
                )
            });
            is_copy && (method == SimDavMethod::Copy || span.absent(path))
        }
        400 => !has_slash && span.directory(path),
        403 => has_slash && (is_within(path, to) || is_within(to, path)),
        404 => {
            let is_other = has_slash && span.file(path);
            span.absent(path) || is_other || span.lacks_parent(path) || span.lacks_parent(to)
        }
        409 => !has_slash && span.directory(to) || span.lacks_parent(to),
        412 => !overwrites && (span.file(to) || span.directory(to)),
        500 => {
            span.lacks_parent(to)
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

/// Creates the files that exist before the server starts.
pub(crate) fn prepare(kernel: &mut Kernel, seed: u64) {
    let mut chance = Chance::new(seed, 7);
    kernel.fault_rates.spool_in = [0, 0, 0, 60][chance.index(4)];
    kernel.fault_rates.app_fault_in = [0, 8][chance.index(2)];
    kernel.disk.watches.max = [0, 2, 64, 64][chance.index(4)];
    kernel.lookup_valid = 0;
    kernel.disk.has_mount = chance.one_in(2);
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

/// Checks the files that are left.
pub(crate) fn check(kernel: &Kernel) -> Vec<String> {
    let mut wrong = Vec::new();
    let disk = &kernel.disk;
    if kernel.fault_record.temp_file_errors == 0 {
        let temporary =
            disk.below("/").filter(|path| is_partial_copy(path) || path.starts_with("/bodies"));
        wrong.extend(temporary.map(|path| format!("{path} is left")));
    }
    let files = ["/dav/", "/store/"].into_iter().flat_map(|start| disk.below(start));
    for path in files.filter(|path| !is_partial_copy(path)) {
        let PathState::File(content) = disk.lookup(path) else { continue };
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

/// Whether these bytes are the complete response of an application.
fn is_answer(query: &str, bytes: &[u8]) -> bool {
    let Some((token, size)) = query.split_once('&') else { return false };
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let sent = String::from_utf8_lossy(line);
    let sent = sent.split(' ').nth(2).and_then(|sent| sent.parse().ok());
    let (Ok(size), Some(sent)) = (size.parse(), sent) else { return false };
    *bytes == application_response(token, size, sent)
}
