//! The state of a request: as received, and as internal redirects changed it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bolide_base::Now;
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

/// A message from the evaluation of a variable, for the error log.
#[derive(Debug)]
pub(crate) enum RequestNote {
    /// The variable of this slot was read and never set.
    Uninitialized(u16),
    /// The variable of this slot depends on itself.
    Cycle(u16),
    /// A regular expression exceeded its limit of steps.
    Match(Box<MatchFailure>),
    /// A message at level `error`.
    Text(String),
    /// A message at level `error`, not UTF-8.
    Error(Vec<u8>),
    /// A message at level `notice`.
    Notice(Vec<u8>),
    /// A message at level `crit`.
    Critical(Vec<u8>),
    /// A message at level `alert`.
    Alert(Vec<u8>),
}

/// A request in progress. Its buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The head as received; none between requests.
    held: Option<Box<RequestHead>>,
    /// The site that serves the request to its end.
    pub(crate) site: Option<SiteRef>,
    /// The index of its listen in `site`; a reload may have moved the connection to a newer site.
    pub(crate) listen: usize,
    /// The server.
    pub(crate) server: u32,
    /// The location, or the server's own pseudo-location.
    pub(crate) location: LocationIndex,
    /// The method, `GET` after an error page was chosen.
    pub(crate) method: Method,
    /// `$request_method` while the key of another request is made.
    pub(crate) method_in_key: Option<&'static str>,
    /// `Host` without port, in lower case; empty if there was none.
    pub(crate) host: Vec<u8>,
    /// The port in `Host`.
    pub(crate) port: Option<u16>,
    /// The host that the client sent, if an edit of the fields replaced `host`.
    asked_host: Option<Box<[u8]>>,
    last_host: LastHost,
    /// The decoded path.
    pub(crate) uri: Vec<u8>,
    /// The query, if there is one.
    pub(crate) args: Option<Vec<u8>>,
    /// The captures of regular expressions and the values of `set`; reading a variable may change
    /// them.
    pub(crate) captures: RefCell<Captures>,
    /// Whether a `map` or an edit of fields exceeded the limit of steps, so that the request has to
    /// fail.
    pub(crate) is_undecided: Cell<bool>,
    /// Whether it was logged that an edit of its response fields failed.
    pub(crate) has_logged_edit: Cell<bool>,
    /// Whether it was logged that a filter of a body failed.
    pub(crate) has_logged_search: Cell<bool>,
    /// Bytes of memory for expressions of `.htaccess` files that were compiled with JIT for it.
    pub(crate) jit_taken: Cell<usize>,
    /// Messages of variables, not logged yet.
    pub(crate) notes: RefCell<Vec<RequestNote>>,
    /// The nesting depth of variables that are being evaluated.
    pub(crate) depth: Cell<u8>,
    /// The values of variables that are evaluated once per request.
    pub(crate) first_values: RefCell<FirstValues>,
    /// Buffers for intermediate values.
    pub(crate) spare: RefCell<Vec<Vec<u8>>>,
    /// The resolved root of the location, if a variable needs it.
    pub(crate) real_root: RealRoot,
    /// `$limit_rate` if it was assigned, or `X-Accel-Limit-Rate`: the last value holds for all
    /// later locations.
    pub(crate) limit_rate: Cell<Option<u64>>,
    /// Whether `rewrite` changed the path, so that the location has to be looked for again.
    pub(crate) uri_changed: bool,
    /// Whether a `rewrite` matched or `$args` was set, even if that changed nothing: the URL as the
    /// client wrote it does not count any more.
    pub(crate) is_rewritten: bool,
    /// Whether only `try_files` has changed the path, so that an upstream gets the URL as the
    /// client wrote it.
    pub(crate) is_only_tried: bool,
    /// Whether a `rewrite` that a `break` followed changed the path, so that it may not belong to
    /// the location.
    pub(crate) rewritten_here: bool,
    /// Whether groups of an encoded path are encoded again when they are read.
    pub(crate) encodes_groups: bool,
    /// Whether not even the request line could be parsed.
    pub(crate) is_unread: bool,
    /// Whether its path may have dot segments: the configuration wrote it.
    pub(crate) has_dots: bool,
    /// Whether an internal redirect led to its location.
    pub(crate) internal: bool,
    /// Whether `error_page` was applied already.
    pub(crate) in_error_page: bool,
    /// How the request arrived at its location, for its identity in the cache.
    pub(crate) arrival: RequestArrival,
    /// The location caches responses and failed; an error page replaces its response, which must
    /// not be stored.
    pub(crate) replaces_failed: bool,
    /// Whether its head was refused before `Content-Length` was read, as nginx reads it.
    pub(crate) is_length_unread: bool,
    /// One more than the internal redirects that are left.
    pub(crate) redirects_left: u8,
    /// Whether `try_files` under a regex alias made the path part of the file name.
    pub(crate) appends_uri: bool,
    /// The client's address according to a trusted proxy (`set_real_ip_from`).
    pub(crate) real: Option<ClientAddress>,
    /// When the head began, over HTTP/1; over HTTP/2 and HTTP/3 when it was complete.
    pub(crate) started: Now,
    /// The same until the request is processed, if the rest of its head came later.
    pub(crate) head_began: Option<Now>,
    /// Body bytes that arrived.
    pub(crate) body_received: u64,
    /// The request body.
    pub(crate) upload: RequestUpload,
    /// Whether `upload` is in use and must be cleared with the request.
    has_upload: bool,
    /// Requests on the connection so far.
    pub(crate) number_on_conn: u64,
    /// `$request_id`
    pub(crate) id: [u64; 2],
    spare_args: Vec<u8>,
    /// The parts of a `proxy_pass` address that variables produced.
    pub(crate) proxy_url: Option<Arc<bolide_conf::model::ProxyUrl>>,
    /// The address of the upstream, where variables give it: evaluated once, before the cache key.
    pub(crate) pass_address: Vec<u8>,
    /// The path and query of the request to an HTTP upstream; empty if there was none.
    pub(crate) origin_target: Vec<u8>,
    /// The protocol and address of the last upstream server: later lines of the error log name it.
    pub(crate) last_origin: RefCell<Option<(&'static str, Arc<str>)>>,
    /// Who the request belongs to: a client, `post_action`, or another request.
    pub(crate) role: RequestRole,
    /// What the fragments of its response share, if it has fragments and is none itself.
    pub(crate) own_lineage: Option<Box<Lineage>>,
    /// Whether its processing so far depended on nothing but its address.
    pub(crate) is_straight: bool,
    /// Whether `auth_request` admitted it, or the checks of the page that includes it did.
    pub(crate) is_authorized: bool,
    /// The location whose `auth_basic` has found its password right.
    pub(crate) password_right_in: Option<LocationIndex>,
    /// What it shares with its parts by SSI or `addition`, if there are any.
    pub(crate) family: Option<Rc<SubrequestPlace>>,
    /// The results of `limit_req` and `limit_conn`.
    pub(crate) limited: Limited,
    /// The decision about its trace span.
    pub(crate) tracing: TraceDecision,
    /// The state of `secure_link`; reading a variable may change it.
    pub(crate) link: RefCell<CompiledSecureLink>,
    /// The identifiers of `userid`; reading a variable may change them.
    pub(crate) user: RefCell<KnownUser>,
    /// The state of `slice`; reading a variable may change it.
    pub(crate) slicing: Cell<Slicing>,
    /// The ruling of `.htaccess` files, where they apply.
    pub(crate) htaccess: Option<Rc<HtaccessRuling>>,
    /// The record of a trial run; none for requests of clients.
    pub(crate) trace: Option<Box<Trace>>,
}

/// Replaces the query that the client sent. A query that the configuration wrote stays.
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

/// The last host that was normalised.
///
/// PERF: a client sends the same host in most of its requests.
#[derive(Debug, Default)]
struct LastHost {
    /// As the client sent it; empty if it was invalid.
    authority: Vec<u8>,
    host: Vec<u8>,
    port: Option<u16>,
}

impl Request {
    /// Takes a new head and clears the state of the last request.
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
        self.has_logged_edit.set(false);
        self.has_logged_search.set(false);
        self.jit_taken.set(0);
        self.limit_rate.set(None);
        self.tracing = TraceDecision::default();
        self.uri_changed = false;
        (self.rewritten_here, self.is_rewritten, self.is_only_tried) = (false, false, false);
        (self.has_dots, self.is_unread) = (false, false);
        (self.encodes_groups, self.internal) = (false, false);
        (self.in_error_page, self.replaces_failed) = (false, false);
        self.is_length_unread = false;
        self.arrival.clear();
        self.redirects_left = bolide_base::limits::INTERNAL_REDIRECTS_MAX + 1;
        (self.appends_uri, self.real) = (false, None);
        self.real_root.clear();
        self.body_received = 0;
        self.proxy_url = None;
        self.pass_address.clear();
        self.htaccess = None;
        self.origin_target.clear();
        self.last_origin.take();
        self.role = RequestRole::Client;
        self.own_lineage = None;
        self.is_authorized = false;
        self.password_right_in = None;
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

    /// Whether the client waits for `100 Continue`; true at most once.
    pub(crate) fn take_expectation(&mut self) -> bool {
        self.held.as_mut().is_some_and(|head| std::mem::take(&mut head.expects_continue))
    }

    /// The head, for edits.
    pub(crate) fn head_mut(&mut self) -> Option<&mut RequestHead> {
        self.held.as_deref_mut()
    }

    /// The host for cache keys: the one that the client sent.
    pub(crate) fn asked_host(&self) -> &[u8] {
        self.asked_host.as_deref().unwrap_or(&self.host)
    }

    /// Takes a `Host` that an edit of the fields made; none if it is invalid.
    pub(crate) fn change_host(&mut self, field: &[u8]) {
        if self.asked_host.is_none() {
            self.asked_host = Some(Box::from(&self.host[..]));
        }
        if bolide_http::host::normalise(field, &mut self.host).is_err() {
            self.host.clear();
        }
    }

    /// A copy for variables that are read later; the request body is not in it.
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

    /// The client's address: the real one, or the peer of the connection.
    #[inline]
    pub(crate) fn client(&self, conn: &ConnInfo) -> ClientAddress {
        self.real.unwrap_or(conn.remote)
    }

    /// Returns the head to its pool.
    pub(crate) fn take_head(&mut self) -> Box<RequestHead> {
        self.limited.let_go();
        self.held.take().unwrap_or_default()
    }

    /// Sets host and port from the head; a missing host is no error.
    ///
    /// # Errors
    ///
    /// The host is invalid; `host` is then empty.
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

    /// Prepares to forward what the client sends in a tunnel.
    pub(crate) fn begin_tunnel(&mut self) {
        debug_assert!(self.may_tunnel(), "only such a request's connection becomes a tunnel");
        self.has_upload = true;
        self.upload.begin_tunnel();
    }

    /// What the fragments of its page, or of its own response, share.
    pub(crate) fn lineage(&self) -> Option<&Lineage> {
        self.role.fragment().or(self.own_lineage.as_deref())
    }

    /// Decodes the target and sets path and query from it.
    ///
    /// # Errors
    ///
    /// The target is invalid.
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
            self.mark_dots();
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

    /// The path and query for cache keys: those that the client sent, or those of a subrequest.
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

    /// Removes the query, but keeps its buffer.
    pub(crate) fn drop_args(&mut self) {
        if let Some(args) = self.args.take() {
            self.spare_args = args;
        }
    }

    /// The query without `?`; empty if there is none.
    pub(crate) fn args(&self) -> &[u8] {
        self.args.as_deref().unwrap_or_default()
    }

    /// Sets path and query from the target of an internal redirect.
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
        (self.internal, self.is_only_tried) = (true, false);
        self.appends_uri = false;
        self.mark_dots();
    }

    /// Records whether a path that the configuration wrote has dot segments; a client's path has
    /// none.
    pub(crate) fn mark_dots(&mut self) {
        self.has_dots = climbs(&self.uri) > 0;
    }
}

/// The head between requests.
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
