//! What an exchange knows of its request: as sent, and as redirects inside the server made it.

use base::Now;
use http::{Method, RequestHead};

use crate::captures::Captures;
use crate::ctx::SiteRef;
use crate::route::LocationId;

/// A request in work. Its buffers are kept between requests.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The head as framing left it.
    pub(crate) head: Box<RequestHead>,
    /// The site that the request belongs to until its end.
    pub(crate) site: Option<SiteRef>,
    /// The server.
    pub(crate) server: u32,
    /// The location, or the server's own pseudo-location.
    pub(crate) location: LocationId,
    /// The method, `GET` after an error page was chosen.
    pub(crate) method: Method,
    /// `Host` without port, in lower case; empty if there was none.
    pub(crate) host: Vec<u8>,
    /// The port in `Host`.
    pub(crate) port: Option<u16>,
    /// The decoded path.
    pub(crate) uri: Vec<u8>,
    /// The query, if there is one.
    pub(crate) args: Option<Vec<u8>>,
    /// What regexes captured.
    pub(crate) captures: Captures,
    /// Whether the request arrived at its location through the server itself.
    pub(crate) internal: bool,
    /// Whether an error page was chosen already.
    pub(crate) in_error_page: bool,
    /// Redirects inside the server that are left.
    pub(crate) redirects_left: u8,
    /// Whether `try_files` under a regex alias made the path part of the file name.
    pub(crate) appends_uri: bool,
    /// When the head was complete.
    pub(crate) started: Now,
    /// Body bytes that arrived.
    pub(crate) body_received: u64,
    /// Requests on the connection so far.
    pub(crate) number_on_conn: u64,
    /// `$request_id`
    pub(crate) id: [u64; 2],
    spare_args: Vec<u8>,
}

impl Request {
    /// Takes a new head in and forgets the last request.
    pub(crate) fn begin(&mut self, head: Box<RequestHead>, site: SiteRef) {
        self.method = head.method;
        self.head = head;
        self.site = Some(site);
        self.server = 0;
        self.location = 0;
        self.host.clear();
        self.port = None;
        self.uri.clear();
        self.drop_args();
        self.captures.clear();
        self.internal = false;
        self.in_error_page = false;
        self.redirects_left = base::limits::INTERNAL_REDIRECTS_MAX;
        self.appends_uri = false;
        self.body_received = 0;
    }

    /// Sets the query.
    pub(crate) fn set_args(&mut self, args: &[u8]) {
        let mut buffer = self.args.take().unwrap_or_else(|| std::mem::take(&mut self.spare_args));
        buffer.clear();
        buffer.extend_from_slice(args);
        self.args = Some(buffer);
    }

    /// Removes the query and keeps its memory.
    pub(crate) fn drop_args(&mut self) {
        if let Some(args) = self.args.take() {
            self.spare_args = args;
        }
    }

    /// The query without `?`; empty if there is none.
    pub(crate) fn args(&self) -> &[u8] {
        self.args.as_deref().unwrap_or_default()
    }

    /// Splits a target of a redirect inside the server and makes it the request's own.
    pub(crate) fn redirect_to(&mut self, target: &[u8]) {
        let mark = memchr::memchr(b'?', target);
        let (path, args) = match mark {
            Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
            None => (target, None),
        };
        self.uri.clear();
        self.uri.extend_from_slice(path);
        match args {
            Some(args) => self.set_args(args),
            None => self.drop_args(),
        }
        self.internal = true;
        self.appends_uri = false;
    }
}
