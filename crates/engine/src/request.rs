//! What an exchange knows of its request: as sent, and as redirects inside the server made it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bolide_base::{Now, Spool};
use bolide_http::{FieldMap, HttpVersion, Method, RequestBody, RequestHead};

use crate::body::RequestUpload;
use crate::caching::RequestArrival;
use crate::connection::{ClientAddress, ConnInfo};
use crate::content::climbs::climbs;
use crate::explain::Trace;
use crate::filter::user_id::KnownUser;
use crate::htaccess::ruling::HtaccessRuling;
use crate::phase::limits::Limited;
use crate::phase::secure_link::CompiledSecureLink;
use crate::route::LocationIndex;
use crate::site::SiteRef;
use crate::subrequest::{Lineage, RequestRole, Slicing, Subrequest, SubrequestPlace};
use crate::tracing::decision::TraceDecision;
use crate::vars::{FirstValues, RealRoot};
use bolide_patterns::{Captures, MatchFailure};

/// Something that went wrong while a variable was evaluated.
#[derive(Debug)]
pub(crate) enum RequestNote {
    /// The variable of this slot was read and never set.
    Uninitialized(u16),
    /// The variable of this slot depends on itself.
    Cycle(u16),
    /// A match took too many steps.
    Match(Box<MatchFailure>),
    /// A line for the log.
    Text(String),
    /// The same, of bytes.
    Error(Vec<u8>),
    /// A line for the log that is less than an error.
    Notice(Vec<u8>),
    /// A line for the log that is more than an error.
    Critical(Vec<u8>),
    /// A line for the log about what should not be possible.
    Alert(Vec<u8>),
}

/// A request in work. Its buffers are kept between requests.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The head as framing left it; absent between requests.
    held: Option<Box<RequestHead>>,
    /// The site that the request belongs to until its end.
    pub(crate) site: Option<SiteRef>,
    /// Where it came in, as the site counts it; the connection may belong to a later one by now.
    pub(crate) listen: usize,
    /// The server.
    pub(crate) server: u32,
    /// The location, or the server's own pseudo-location.
    pub(crate) location: LocationIndex,
    /// The method, `GET` after an error page was chosen.
    pub(crate) method: Method,
    /// `Host` without port, in lower case; empty if there was none.
    pub(crate) host: Vec<u8>,
    /// The port in `Host`.
    pub(crate) port: Option<u16>,
    /// The host that was asked for, where an edit of the fields gave `host` another value.
    asked_host: Option<Box<[u8]>>,
    last_host: LastHost,
    /// The decoded path.
    pub(crate) uri: Vec<u8>,
    /// The query, if there is one.
    pub(crate) args: Option<Vec<u8>>,
    /// What regexes captured and variables were assigned; reading a variable may change it.
    pub(crate) captures: RefCell<Captures>,
    /// Whether a match of a `map`, or an edit of fields, took too many steps: what follows is
    /// unknown.
    pub(crate) is_undecided: Cell<bool>,
    /// Whether the log has why an edit of its answer's fields was not made.
    pub(crate) tells_edit: Cell<bool>,
    /// The same of the search of a body.
    pub(crate) tells_search: Cell<bool>,
    /// Bytes of memory in which expressions of `.htaccess` files were compiled for it.
    pub(crate) jit_taken: Cell<usize>,
    /// What evaluating variables wants logged.
    pub(crate) notes: RefCell<Vec<RequestNote>>,
    /// Variables that are being evaluated on behalf of one another.
    pub(crate) depth: Cell<u8>,
    /// What variables were worth that are evaluated once.
    pub(crate) first_values: RefCell<FirstValues>,
    /// Memory for values on their way.
    pub(crate) spare: RefCell<Vec<Vec<u8>>>,
    /// Where the location's root leads, if a variable may want to know.
    pub(crate) real_root: RealRoot,
    /// `$limit_rate` where something assigned to it, or `X-Accel-Limit-Rate`: the last one counts,
    /// wherever the request goes.
    pub(crate) limit_rate: Cell<Option<u64>>,
    /// Whether `rewrite` changed the path, so that the location has to be looked for again.
    pub(crate) uri_changed: bool,
    /// Whether a `rewrite` made the path, be it the same: what the client wrote does not count.
    pub(crate) is_rewritten: bool,
    /// Whether a `rewrite` that a `break` followed changed the path, so that it may not belong to
    /// the location.
    pub(crate) rewritten_here: bool,
    /// Whether groups of an encoded path are encoded again when they are read.
    pub(crate) encodes_groups: bool,
    /// Whether not even its first line could be read.
    pub(crate) is_unread: bool,
    /// Whether its path may have dot segments, since the configuration made it.
    pub(crate) has_dots: bool,
    /// Whether the request arrived at its location through the server itself.
    pub(crate) internal: bool,
    /// Whether an error page was chosen already.
    pub(crate) in_error_page: bool,
    /// How it arrived where it is answered.
    pub(crate) arrival: RequestArrival,
    /// It has failed where answers are kept, and another one comes instead.
    pub(crate) replaces_failed: bool,
    /// Whether the length of its body was not read before its head was refused.
    pub(crate) is_length_unread: bool,
    /// One more than the redirects inside the server that are left; the last one fails.
    pub(crate) redirects_left: u8,
    /// Whether `try_files` under a regex alias made the path part of the file name.
    pub(crate) appends_uri: bool,
    /// Who asks, where the connection's other end only hands on.
    pub(crate) real: Option<ClientAddress>,
    /// When the head was complete.
    pub(crate) started: Now,
    /// Body bytes that arrived.
    pub(crate) body_received: u64,
    /// The body.
    pub(crate) upload: RequestUpload,
    /// Whether there is one, which is to be forgotten with the request.
    has_upload: bool,
    /// Requests on the connection so far.
    pub(crate) number_on_conn: u64,
    /// `$request_id`
    pub(crate) id: [u64; 2],
    spare_args: Vec<u8>,
    /// What the address of an HTTP origin said that variables made.
    pub(crate) proxy_url: Option<Arc<bolide_conf::model::ProxyUrl>>,
    /// Path and query that an HTTP origin was asked for; empty if none was asked.
    pub(crate) origin_target: Vec<u8>,
    /// The origin that was asked last, with the protocol's name: lines of the error log name it to
    /// the end of the request, unless another one is to be asked.
    pub(crate) last_origin: RefCell<Option<(&'static str, Arc<str>)>>,
    /// On whose behalf it is answered.
    pub(crate) role: RequestRole,
    /// What the fragments of its answer share, if it has some and is none itself.
    pub(crate) own_lineage: Option<Box<Lineage>>,
    /// Whether its way so far depended on nothing but its address.
    pub(crate) is_straight: bool,
    /// Whether another location said who asks.
    pub(crate) is_authorized: bool,
    /// What it shares with the parts of its answer, if there are any.
    pub(crate) family: Option<Rc<SubrequestPlace>>,
    /// What limits made of it.
    pub(crate) limited: Limited,
    /// What was decided about its span.
    pub(crate) tracing: TraceDecision,
    /// What is known of a link that proves itself; reading a variable may change it.
    pub(crate) link: RefCell<CompiledSecureLink>,
    /// The identifiers of `userid`; reading a variable may change it.
    pub(crate) user: RefCell<KnownUser>,
    /// What it knows of its slices; reading a variable may change it.
    pub(crate) slicing: Cell<Slicing>,
    /// What `.htaccess` files say about it, where they are read.
    pub(crate) htaccess: Option<Rc<HtaccessRuling>>,
    /// Where a trial run writes its way down; none for requests of clients.
    pub(crate) trace: Option<Box<Trace>>,
}

/// Asks by `query` instead of the one that was sent. A query that the configuration made stays.
pub(crate) fn replace_query(request: &mut Request, query: &[u8]) {
    let Some(head) = &mut request.held else { return };
    let Some(at) = memchr::memchr(b'?', &head.target) else { return };
    let is_as_sent = request.args.as_deref().unwrap_or_default() == &head.target[at + 1..];
    head.target.truncate(at);
    if !query.is_empty() {
        head.target.push(b'?');
        head.target.extend_from_slice(query);
    }
    match (is_as_sent, query) {
        (true, []) => request.drop_args(),
        (true, _) => request.set_args(query),
        (false, _) => {}
    }
}

/// The host that was normalised last.
///
/// PERF: a client names the same one in most of its requests.
#[derive(Debug, Default)]
struct LastHost {
    /// As the client sent it; empty if it was no host.
    authority: Vec<u8>,
    host: Vec<u8>,
    port: Option<u16>,
}

impl Request {
    /// Takes a new head in and forgets the last request.
    pub(crate) fn begin(&mut self, head: Box<RequestHead>, site: SiteRef) {
        self.method = head.method;
        self.held = Some(head);
        self.site = Some(site);
        self.server = 0;
        self.location = 0;
        self.host.clear();
        self.port = None;
        self.asked_host = None;
        self.uri.clear();
        self.uri.push(b'/');
        self.drop_args();
        self.captures.get_mut().clear();
        self.notes.get_mut().clear();
        self.first_values.get_mut().clear();
        self.depth.set(0);
        self.is_undecided.set(false);
        self.tells_edit.set(false);
        self.tells_search.set(false);
        self.jit_taken.set(0);
        self.limit_rate.set(None);
        self.tracing = TraceDecision::default();
        self.uri_changed = false;
        (self.rewritten_here, self.is_rewritten) = (false, false);
        (self.has_dots, self.is_unread) = (false, false);
        self.encodes_groups = false;
        self.internal = false;
        (self.in_error_page, self.replaces_failed) = (false, false);
        self.is_length_unread = false;
        self.arrival.clear();
        self.redirects_left = bolide_base::limits::INTERNAL_REDIRECTS_MAX + 1;
        self.appends_uri = false;
        self.real = None;
        self.real_root.clear();
        self.body_received = 0;
        self.proxy_url = None;
        self.htaccess = None;
        self.origin_target.clear();
        self.last_origin.take();
        self.role = RequestRole::Client;
        self.own_lineage = None;
        self.is_authorized = false;
        self.family = None;
        self.is_straight = true;
        self.limited.clear();
        self.link.get_mut().clear();
        self.user.get_mut().clear();
        self.slicing.set(Slicing::No);
        if self.has_upload {
            self.upload.clear();
        }
        self.has_upload = self.head().body != RequestBody::None;
    }

    /// The head as framing left it; an empty one between requests.
    #[inline]
    pub(crate) fn head(&self) -> &RequestHead {
        self.held.as_deref().unwrap_or(&NO_HEAD)
    }

    /// Whether the client expects `100 Continue` and was not told; it is told once at most.
    pub(crate) fn take_expectation(&mut self) -> bool {
        self.held.as_mut().is_some_and(|head| std::mem::take(&mut head.expects_continue))
    }

    /// The head, for edits.
    pub(crate) fn head_mut(&mut self) -> Option<&mut RequestHead> {
        self.held.as_deref_mut()
    }

    /// The host by which its answer is known: what the client asked for.
    pub(crate) fn asked_host(&self) -> &[u8] {
        self.asked_host.as_deref().unwrap_or(&self.host)
    }

    /// Takes a `Host` that an edit of the fields made; none if it is no host.
    pub(crate) fn change_host(&mut self, field: &[u8]) {
        if self.asked_host.is_none() {
            self.asked_host = Some(Box::from(&self.host[..]));
        }
        if bolide_http::host::normalise(field, &mut self.host).is_err() {
            self.host.clear();
        }
    }

    /// The same request for who looks at its variables later; its body is not in it.
    pub(crate) fn snapshot(&self) -> Self {
        Self {
            held: self.held.clone(),
            site: self.site.clone(),
            server: self.server,
            location: self.location,
            method: self.method,
            host: self.host.clone(),
            port: self.port,
            asked_host: self.asked_host.clone(),
            uri: self.uri.clone(),
            args: self.args.clone(),
            captures: self.captures.clone(),
            encodes_groups: self.encodes_groups,
            appends_uri: self.appends_uri,
            real: self.real,
            started: self.started,
            body_received: self.body_received,
            number_on_conn: self.number_on_conn,
            id: self.id,
            tracing: self.tracing,
            ..Self::default()
        }
    }

    /// Who asks.
    #[inline]
    pub(crate) fn client(&self, conn: &ConnInfo) -> ClientAddress {
        self.real.unwrap_or(conn.remote)
    }

    /// Gives the head back.
    pub(crate) fn take_head(&mut self) -> Box<RequestHead> {
        self.limited.let_go();
        self.held.take().unwrap_or_default()
    }

    /// Takes host and port from what the client sent, without asking whether there is a host.
    ///
    /// # Errors
    ///
    /// A host that is none; there is no host then.
    pub(crate) fn settle_host(&mut self) -> Result<(), bolide_http::host::HostError> {
        let Some(head) = &self.held else { return Ok(()) };
        if head.authority.is_empty() {
            return Ok(());
        }
        if head.authority != self.last_host.authority {
            self.last_host.authority.clear();
            let port = bolide_http::host::normalise(&head.authority, &mut self.last_host.host)?;
            self.last_host.port = port;
            self.last_host.authority.extend_from_slice(&head.authority);
        }
        self.host.clear();
        self.host.extend_from_slice(&self.last_host.host);
        self.port = self.last_host.port;
        Ok(())
    }

    /// Whether an answer could make its connection a tunnel.
    pub(crate) fn may_tunnel(&self) -> bool {
        let head = self.head();
        head.version == HttpVersion::Http11
            && head.body == RequestBody::None
            && !self.role.is_subrequest()
    }

    /// What it shares with the fragments of its page, or of its own answer.
    pub(crate) fn lineage(&self) -> Option<&Lineage> {
        self.role.fragment().or(self.own_lineage.as_deref())
    }

    /// Lets what the client says behind its request be handed on, should it become a tunnel; the
    /// spool holds `memory` bytes.
    pub(crate) fn open_tunnel(&mut self, memory: usize) -> Spool {
        self.has_upload = true;
        self.upload.stream(memory)
    }

    /// Decodes the target and takes path and query from it.
    ///
    /// # Errors
    ///
    /// What is wrong with the target.
    pub(crate) fn settle_target(
        &mut self,
        merge: bolide_http::uri::MergeSlashes,
    ) -> Result<(), bolide_http::uri::UriError> {
        let (uri, args) = match &self.role {
            RequestRole::Subrequest(Subrequest::Auth(auth)) => (Some(&auth.uri[..]), None),
            RequestRole::Subrequest(Subrequest::Part(part)) => {
                (Some(&part.uri[..]), part.args.clone())
            }
            RequestRole::Subrequest(Subrequest::Mirror(mirrored)) => {
                (Some(&mirrored.uri[..]), mirrored.args.clone())
            }
            RequestRole::Subrequest(Subrequest::Slice(slice)) => {
                (Some(&slice.uri[..]), slice.args.clone())
            }
            _ => (None, None),
        };
        if let Some(uri) = uri {
            self.uri.clear();
            self.uri.extend_from_slice(uri);
            if let Some(args) = &args {
                self.set_args(args);
            }
            self.note_dots();
            return Ok(());
        }
        let Some(head) = self.held.take() else { return Ok(()) };
        let settled = bolide_http::uri::normalise(&head.target, merge, &mut self.uri);
        if let Ok(target) = &settled {
            if !target.is_decoded() {
                self.uri.clear();
                self.uri.extend_from_slice(target.path(&head.target, &[]));
            }
            let args = target.args(&head.target);
            // As in nginx, `/a?` has no query.
            if !args.is_empty() {
                self.set_args(args);
            }
        }
        self.held = Some(head);
        if settled.is_err() {
            self.uri.clear();
        }
        settled.map(|_| ())
    }

    /// Path and query by which its answer is known: what the client asked for, unless it is a part
    /// of that.
    pub(crate) fn address(&self) -> &[u8] {
        match self.role.part() {
            Some(part) => &part.target,
            None => &self.head().target,
        }
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
        self.note_dots();
    }

    /// Looks whether a path that the configuration made has dot segments; one of a client has none.
    pub(crate) fn note_dots(&mut self) {
        self.has_dots = climbs(&self.uri) > 0;
    }
}

/// What there is between requests.
static NO_HEAD: RequestHead = RequestHead {
    method: Method::Get,
    method_text: Vec::new(),
    version: HttpVersion::Http11,
    target: Vec::new(),
    authority: Vec::new(),
    fields: FieldMap::new(),
    line: Vec::new(),
    body: RequestBody::None,
    expects_continue: false,
    wire_size: 0,
    early: false,
    pipelined: false,
    target_first: false,
};
