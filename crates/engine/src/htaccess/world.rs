//! A request as the evaluation of `.htaccess` files sees it.

use std::io::Write as _;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use bolide_base::Now;
use bolide_base::prng::Prng;
use bolide_conf::model::ApacheDirectory;
use bolide_files::{
    FileKind, FileTable, Known, OpenFailure, Probe, ProbePolicy, SymlinkPolicy, Want,
};
use bolide_htaccess::{
    Ahead, AheadKind, Asked, Effort, MAP_FILE_MAX, MapSource, PathTest, Pattern, RequestVariable,
    Stop, Surroundings, TextMap, TimePart, choose,
};
use bolide_http::date::CivilDate;
use bolide_http::uri::MergeSlashes;
use bolide_http::{HttpVersion, Name, Scheme};

use super::asked::{AskedUrl, truth};
use super::looks::AheadState;
use super::questions::{AskedText, Question, Reply, RequestTexts};
use super::reliance::Reliance;
use super::ruling::method_name;
use super::target::{HtaccessTarget, TargetKind};
use super::tls;
use crate::connection::ConnInfo;
use crate::request::Request;
use crate::site::Site;
use crate::vars::address;

/// LIMIT: paths of one round whose link state is stored.
const LINKS_MAX: usize = 16;

/// The target of questions that are not about a path.
static NO_TARGET: HtaccessTarget = HtaccessTarget {
    root: Vec::new(),
    prefix: Vec::new(),
    document_root: Vec::new(),
    file: Vec::new(),
    path_info: Vec::new(),
    kind: TargetKind::Missing,
};

/// The state that an evaluation borrows.
pub(super) struct RequestWorld<'a> {
    pub(super) request: &'a Request,
    /// How the path of the client's request is read.
    pub(super) merge: MergeSlashes,
    pub(super) conn: &'a ConnInfo,
    pub(super) now: Now,
    pub(super) utc_offset: i32,
    /// None while a response is sent: no file lookups are possible then.
    pub(super) files: Option<&'a mut FileTable>,
    pub(super) target: &'a HtaccessTarget,
    /// The method that is evaluated.
    pub(super) method: &'a [u8],
    /// Whether it is a part of another request, as the search for an index is.
    pub(super) is_inside: bool,
    pub(super) user: Option<&'a [u8]>,
    pub(super) groups: Option<&'a [u8]>,
    /// The directives of the configuration, for its maps.
    pub(super) places: &'a [ApacheDirectory],
    /// The source of random numbers, where there may be maps.
    pub(super) prng: Option<&'a mut Prng>,
    /// Records what the evaluation relied on, if needed.
    pub(super) reliance: Option<&'a Reliance>,
    /// Paths that are known to be links or not. The table of open files knows a path by one policy
    /// at a time, and an evaluation may need another one.
    pub(super) links: &'a mut Vec<(Box<[u8]>, bool)>,
    /// The state of looks ahead; none where rules cannot look ahead.
    pub(super) ahead: Option<&'a mut AheadState>,
    /// The file lookup that is missing.
    pub(super) wanted: Option<Probe>,
}

/// Appends `http://host:port`, as the client wrote it.
pub(super) fn push_origin(request: &Request, conn: &ConnInfo, out: &mut Vec<u8>) {
    out.extend_from_slice(match conn.scheme {
        Scheme::Http => b"http://",
        Scheme::Https => b"https://",
    });
    push_host(request, conn, out);
    if let Some(port) = request.port {
        // Writing to a vector cannot fail.
        let _ = write!(out, ":{port}");
    }
}

fn push_host(request: &Request, conn: &ConnInfo, out: &mut Vec<u8>) {
    match request.host.is_empty() {
        true => {
            address(out, conn.local);
        }
        false => out.extend_from_slice(&request.host),
    }
}

const fn version(version: HttpVersion) -> &'static [u8] {
    match version {
        HttpVersion::Http09 => b"HTTP/0.9",
        HttpVersion::Http10 => b"HTTP/1.0",
        HttpVersion::Http11 => b"HTTP/1.1",
        HttpVersion::Http2 => b"HTTP/2.0",
        HttpVersion::Http3 => b"HTTP/3.0",
    }
}

impl RequestWorld<'_> {
    fn push_time(&self, part: TimePart, out: &mut Vec<u8>) {
        let local = self.now.unix_seconds() as i64 + i64::from(self.utc_offset);
        let date = CivilDate::from_unix(local);
        // Writing to a vector cannot fail.
        let _ = match part {
            TimePart::Year => write!(out, "{:04}", date.year),
            TimePart::Month => write!(out, "{:02}", date.month),
            TimePart::Day => write!(out, "{:02}", date.day),
            TimePart::Hour => write!(out, "{:02}", date.hour),
            TimePart::Minute => write!(out, "{:02}", date.minute),
            TimePart::Second => write!(out, "{:02}", date.second),
            TimePart::Weekday => write!(out, "{}", date.weekday),
            TimePart::Whole => write!(
                out,
                "{:04}{:02}{:02}{:02}{:02}{:02}",
                date.year, date.month, date.day, date.hour, date.minute, date.second
            ),
        };
    }

    /// Records a dependency on something that differs between requests.
    fn depends(&self) {
        if let Some(reliance) = self.reliance {
            reliance.depends();
        }
    }

    /// The entries of a map's text file.
    fn text_map(&mut self, path: &[u8]) -> Result<Rc<TextMap>, Stop> {
        let Some(files) = &mut self.files else {
            return Err(Stop::Refused(500, "a RewriteMap cannot be asked here"));
        };
        let policy = ProbePolicy::default();
        match files.lookup(path, self.now, &policy) {
            Known::File(file) => {
                let too_large = Stop::Refused(500, "the file of a RewriteMap is too large");
                file.reading(TextMap::parse).ok_or(too_large)
            }
            Known::Directory(_) | Known::Missing(_) | Known::Closed(..) => {
                Err(Stop::Refused(500, "the file of a RewriteMap cannot be read"))
            }
            Known::Seen(meta) if meta.kind != FileKind::File => {
                Err(Stop::Refused(500, "the file of a RewriteMap is no file"))
            }
            Known::Seen(_) | Known::Stale | Known::Unknown => {
                let want = Want::Open { content_max: MAP_FILE_MAX as u64 };
                self.wanted = Some(files.probe(path, want, &policy));
                Err(Stop::Wait)
            }
        }
    }

    fn push_port(&self, port: u16, out: &mut Vec<u8>) {
        // Writing to a vector cannot fail.
        let _ = write!(out, "{port}");
    }
}

/// Whether its value depends on the path and the location alone.
const fn is_of_path(which: RequestVariable) -> bool {
    matches!(
        which,
        RequestVariable::RequestFilename
            | RequestVariable::RequestUri
            | RequestVariable::PathInfo
            | RequestVariable::IsSubrequest
            | RequestVariable::ServerSoftware
            | RequestVariable::DocumentRoot
            | RequestVariable::ContextDocumentRoot
            | RequestVariable::ContextPrefix
    )
}

/// Whether its value differs between almost all requests, or depends on more than the request.
const fn is_momentary(which: RequestVariable) -> bool {
    matches!(
        which,
        RequestVariable::Time(_)
            | RequestVariable::RemotePort
            | RequestVariable::RemoteUser
            | RequestVariable::AuthType
            | RequestVariable::Tls(_)
    )
}

impl RequestTexts for RequestWorld<'_> {
    fn text<'s>(
        &'s self,
        asked: Asked<'_>,
        name: Name,
        spare: &'s mut Vec<u8>,
    ) -> Option<&'s [u8]> {
        spare.clear();
        let text = match asked {
            Asked::Variable(RequestVariable::QueryString) => return Some(self.request.args()),
            Asked::Variable(which) => {
                self.push_variable(which, spare);
                return Some(spare);
            }
            Asked::Field(text) => text,
        };
        let head = self.request.head();
        // In newer HTTP versions, the host is not among the fields.
        if name == Name::Host {
            return Some(&head.authority[..]).filter(|authority| !authority.is_empty());
        }
        let fields = head.fields.iter().filter(|field| {
            field.name == name && (name != Name::Other || field.text.eq_ignore_ascii_case(text))
        });
        let mut values = fields.map(|field| field.value);
        let first = values.next()?;
        let Some(second) = values.next() else { return Some(first) };
        let separator: &[u8] = if name == Name::Cookie { b"; " } else { b", " };
        spare.extend_from_slice(first);
        for value in std::iter::once(second).chain(values) {
            spare.extend_from_slice(separator);
            spare.extend_from_slice(value);
        }
        Some(spare)
    }
}

impl<'a> RequestWorld<'a> {
    /// A world for questions about fields and variables that do not depend on the path; it records
    /// nothing.
    pub(super) fn outside(
        request: &'a Request,
        conn: &'a ConnInfo,
        now: Now,
        links: &'a mut Vec<(Box<[u8]>, bool)>,
        site: &Site,
    ) -> Self {
        let is_index = request.htaccess.as_ref().is_some_and(|ruling| ruling.is_looked_for());
        Self {
            request,
            merge: site.server(request.server).merge_slashes,
            conn,
            now,
            utc_offset: 0,
            files: None,
            target: &NO_TARGET,
            // As in Apache, an index is searched for with `GET`.
            method: if is_index { b"GET" } else { method_name(request) },
            is_inside: false,
            user: None,
            groups: None,
            places: &[],
            prng: None,
            reliance: None,
            links,
            ahead: None,
            wanted: None,
        }
    }

    /// Records a question and its reply.
    fn note(&self, question: impl FnOnce() -> Question, reply: impl FnOnce() -> Reply) {
        if let Some(reliance) = self.reliance {
            reliance.asked(question, reply);
        }
    }

    fn push_variable(&self, which: RequestVariable, out: &mut Vec<u8>) {
        let (request, conn) = (self.request, self.conn);
        let head = request.head();
        let text: &[u8] = match which {
            RequestVariable::RequestFilename => &self.target.file,
            RequestVariable::RequestUri => &request.uri,
            RequestVariable::AskedUri => return AskedUrl(request).push_path(self.merge, out),
            RequestVariable::AskedQuery => return AskedUrl(request).push_query(self.merge, out),
            RequestVariable::IsAskedUri => truth(AskedUrl(request).is_current(self.merge)),
            RequestVariable::PathInfo => &self.target.path_info,
            RequestVariable::RequestMethod => self.method,
            RequestVariable::RequestScheme => match conn.scheme {
                Scheme::Http => b"http",
                Scheme::Https => b"https",
            },
            RequestVariable::TheRequest => {
                out.extend_from_slice(&head.method_text);
                if head.method_text.is_empty() {
                    out.extend_from_slice(method_name(request));
                }
                out.push(b' ');
                out.extend_from_slice(&head.target);
                out.push(b' ');
                version(head.version)
            }
            RequestVariable::QueryString => request.args(),
            RequestVariable::RemoteAddr => {
                address(out, request.client(conn));
                b""
            }
            RequestVariable::ConnRemoteAddr => {
                address(out, conn.remote);
                b""
            }
            RequestVariable::RemotePort => {
                return self.push_port(request.client(conn).port(), out);
            }
            RequestVariable::RemoteUser => self.user.unwrap_or_default(),
            RequestVariable::AuthType => match self.user {
                Some(_) => b"Basic",
                None => b"",
            },
            RequestVariable::ServerName => return push_host(request, conn, out),
            RequestVariable::ServerPort => {
                let port = request.port.unwrap_or(match conn.scheme {
                    Scheme::Http => 80,
                    Scheme::Https => 443,
                });
                return self.push_port(port, out);
            }
            RequestVariable::ServerAddr => {
                address(out, conn.local);
                b""
            }
            RequestVariable::ServerProtocol => version(head.version),
            RequestVariable::ServerSoftware => b"Bolide",
            RequestVariable::DocumentRoot => &self.target.document_root,
            RequestVariable::ContextDocumentRoot => &self.target.root,
            RequestVariable::ContextPrefix => &self.target.prefix,
            RequestVariable::Https => match conn.scheme {
                Scheme::Http => b"off",
                Scheme::Https => b"on",
            },
            RequestVariable::IsSubrequest => truth(self.is_inside),
            RequestVariable::Time(part) => return self.push_time(part, out),
            RequestVariable::Tls(which) => return tls::push(which, conn, self.now, out),
        };
        out.extend_from_slice(text);
    }
}

impl Surroundings for RequestWorld<'_> {
    fn variable(&self, which: RequestVariable, out: &mut Vec<u8>) {
        let start = out.len();
        self.push_variable(which, out);
        if is_of_path(which) {
            return;
        }
        match is_momentary(which) {
            true => self.depends(),
            false => self.note(
                || Question::Text(AskedText::Variable(which)),
                || Reply::Text(Some(out[start..].into())),
            ),
        }
    }

    fn header(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        let (asked, mut spare) = (Asked::Field(name), Vec::new());
        let text = self.text(asked, Name::parse(name), &mut spare);
        self.note(|| Question::Text(AskedText::of(asked)), || Reply::Text(text.map(Box::from)));
        out.extend_from_slice(text.unwrap_or_default());
        text.is_some()
    }

    fn matches(
        &self,
        asked: Asked<'_>,
        pattern: &Arc<Pattern>,
        effort: &Effort,
    ) -> Result<bool, Stop> {
        let mut spare = Vec::new();
        let name = match asked {
            Asked::Variable(_) => Name::Other,
            Asked::Field(name) => Name::parse(name),
        };
        let text = self.text(asked, name, &mut spare).unwrap_or_default();
        effort.spend(text.len());
        let matches = pattern.is_match(text, effort)?;
        match asked {
            Asked::Variable(which) if is_of_path(which) => {}
            Asked::Variable(which) if is_momentary(which) => self.depends(),
            Asked::Variable(_) | Asked::Field(_) => self.note(
                || Question::Matches(AskedText::of(asked), Arc::clone(pattern)),
                || Reply::Matches(matches),
            ),
        }
        Ok(matches)
    }

    fn each_header(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        self.depends();
        for field in self.request.head().fields.iter() {
            visit(field.text, field.value);
        }
    }

    fn test(&mut self, test: PathTest, path: &[u8]) -> Result<bool, Stop> {
        let Some(files) = &mut self.files else {
            return Err(Stop::Refused(500, "a file cannot be tested here"));
        };
        if path.first() != Some(&b'/') || path.contains(&0) {
            return Ok(false);
        }
        let mut policy = ProbePolicy::default();
        let (path, is_directory) = match path {
            [rest @ .., b'/'] if !rest.is_empty() => (rest, true),
            _ => (path, false),
        };
        if test == PathTest::Link {
            if let Some((_, is_link)) = self.links.iter().find(|(known, _)| **known == *path) {
                let is_link = *is_link;
                self.depends();
                return Ok(is_link);
            }
            let from = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            policy.symlinks = SymlinkPolicy::Refuse { from };
        }
        let meta = match files.lookup(path, self.now, &policy) {
            Known::File(file) => Ok(file.meta),
            Known::Directory(meta) | Known::Seen(meta) | Known::Closed(meta, _) => Ok(meta),
            Known::Missing(failure) => Err(failure),
            Known::Stale | Known::Unknown => {
                self.wanted = Some(files.probe(path, Want::Stat, &policy));
                return Err(Stop::Wait);
            }
        };
        if let Some(reliance) = self.reliance {
            reliance.relies_on(files, path, &policy);
        }
        Ok(match (test, meta) {
            (PathTest::Link, meta) => {
                let is_link = meta == Err(OpenFailure::Loop);
                if self.links.len() < LINKS_MAX {
                    self.links.push((path.into(), is_link));
                }
                is_link
            }
            (_, Err(_)) => false,
            // A file with a final slash does not exist.
            (_, Ok(meta)) if is_directory && meta.kind == FileKind::File => false,
            (PathTest::Directory, Ok(meta)) => meta.kind == FileKind::Directory,
            (PathTest::File, Ok(meta)) => meta.kind == FileKind::File,
            (PathTest::FileWithContent, Ok(meta)) => meta.kind == FileKind::File && meta.size > 0,
            (PathTest::Executable, Ok(meta)) => meta.is_executable(),
            (PathTest::Anything, Ok(_)) => true,
        })
    }

    fn look_ahead(&mut self, kind: AheadKind, target: &[u8]) -> Result<Option<Rc<Ahead>>, Stop> {
        self.depends();
        match &mut self.ahead {
            Some(ahead) => ahead.ask(kind, target),
            None => Err(Stop::Refused(500, "rules cannot look ahead here")),
        }
    }

    fn map(&mut self, name: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop> {
        self.depends();
        let mut places = self.places.iter().rev().map(|one| &one.place);
        let Some(source) = places.find_map(|place| place.map(name)) else {
            return Err(Stop::Refused(500, "there is no such RewriteMap in the configuration"));
        };
        let (path, is_random) = match source {
            MapSource::Function(function) => {
                function.push(key, out);
                return Ok(true);
            }
            MapSource::Text(path) => (path, false),
            MapSource::Random(path) => (path, true),
        };
        let map = self.text_map(path)?;
        let Some(value) = map.of(key) else { return Ok(false) };
        let chance = match &mut self.prng {
            Some(prng) if is_random => prng.next_u64(),
            _ => 0,
        };
        out.extend_from_slice(if is_random { choose(value, chance) } else { value });
        Ok(true)
    }

    fn client(&self) -> Option<IpAddr> {
        self.variable(RequestVariable::RemoteAddr, &mut Vec::new());
        self.request.client(self.conn).ip()
    }

    fn user(&self) -> Option<&[u8]> {
        self.depends();
        self.user
    }

    fn is_in_group(&self, group: &[u8]) -> bool {
        let (Some(groups), Some(user)) = (self.groups, self.user) else { return false };
        groups.split(|byte| *byte == b'\n').any(|line| {
            let Some(at) = line.iter().position(|byte| *byte == b':') else { return false };
            let mut members = line[at + 1..].split(u8::is_ascii_whitespace);
            line[..at].trim_ascii() == group && members.any(|member| member == user)
        })
    }
}
