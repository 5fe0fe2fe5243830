//! Checks that precede the search for a location: methods that no server supports, possible
//! replays, misdirected requests, and client certificates.

use bolide_base::client_cert::ClientCertFault;
use bolide_conf::model::VerifyClient;
use bolide_http::host::HostError;
use bolide_http::uri::UriError;
use bolide_http::{FieldMap, HttpVersion, Method, Name};

use crate::ctx::{ConnInfo, RequestRefusal, TlsFacts};
use crate::request::Request;
use crate::site::Site;
use bolide_patterns::Captures;

/// Admits a request whose server and path are known, or returns why not, in nginx's order. A
/// misdirected request is moved back to the server of its handshake, which sends the error page:
/// the other server's pages are for clients that it has verified.
pub(super) fn admit(
    request: &mut Request,
    site: &Site,
    conn: &ConnInfo,
) -> Result<(), RequestRefusal> {
    let server = site.server(request.server);
    let is_silent = match request.head().version {
        HttpVersion::Http2 => server.disabled.http2 && !is_spoken_by_all(request, site),
        HttpVersion::Http3 => server.disabled.http3,
        _ => false,
    };
    if is_silent {
        return Err(RequestRefusal {
            status: 421,
            reason: "client attempted to request the server name for which the negotiated protocol \
                     is disabled",
        });
    }
    let verify = server.verify_client;
    let asked = if verify == VerifyClient::Off { None } else { conn.tls.as_ref() };
    if let Some(tls) = asked
        && let Some(name) = other_name(request, site, tls)
    {
        request.server = site.server_of_host(request.listen, &name, request.captures.get_mut());
        request.location = site.server(request.server).root;
        forget_misdirected(request);
        return Err(OTHER_NAME);
    }
    if let Some(tls) = asked
        && let Some(judge) = other_judge(request, site, tls)
    {
        request.server = judge;
        request.location = site.server(judge).root;
        return Err(OTHER_NAME);
    }
    match request.head().method {
        Method::Trace => {
            return Err(RequestRefusal { status: 405, reason: "client sent TRACE method" });
        }
        Method::Connect => {
            return Err(RequestRefusal { status: 405, reason: "client sent CONNECT method" });
        }
        // RFC 8470 §5.2: a request in early data may be a replay, so it gets 425 unless it is safe.
        method if request.head().early && !method.is_safe() => {
            let reason = "client sent unsafe request in early data";
            return Err(RequestRefusal { status: 425, reason });
        }
        _ => {}
    }
    asked.map_or(Ok(()), |tls| verdict(verify, tls))
}

const OTHER_NAME: RequestRefusal = RequestRefusal {
    status: 421,
    reason: "client attempted to request the server name different from the one that was \
             negotiated",
};

/// The server of a connection before `Host` is known: that of the name in its handshake, else the
/// default one; none if `Host` is that name. As in nginx, its rules apply to the request line.
pub(super) fn first_server(request: &Request, site: &Site, conn: &ConnInfo) -> Option<u32> {
    let name = conn.tls.as_ref().and_then(|tls| tls.server_name.as_deref());
    match name {
        None => Some(site.default_server(request.listen)),
        Some(name) if *name.as_bytes() == *request.host => None,
        Some(name) => Some(site.server_named(request.listen, name)),
    }
}

/// The server whose rules apply to the request target: `first` if there is one. As in nginx, over
/// HTTP/2 it is the server of the request if `:authority` came before `:path`.
pub(super) fn target_reader(request: &Request, first: Option<u32>) -> u32 {
    match first {
        Some(first) if !is_host_first(request) => first,
        _ => request.server,
    }
}

/// Whether the host of a request was known before its target.
fn is_host_first(request: &Request) -> bool {
    let head = request.head();
    head.version == HttpVersion::Http2 && !head.target_first
}

/// Decodes the path by the rules of the server `reader`, which sends the error page if it is
/// invalid.
pub(super) fn settle_target(
    request: &mut Request,
    reader: u32,
    site: &Site,
) -> Result<(), UriError> {
    match request.settle_target(site.server(reader).merge_slashes) {
        Ok(()) => request.location = site.server(request.server).root,
        Err(error) => {
            request.server = reader;
            request.location = site.server(reader).root;
            return Err(error);
        }
    }
    Ok(())
}

/// The part of a refused head that nginx would not have parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadPart {
    /// Everything: the request line is invalid.
    Line,
    /// Everything after the request line: its target is invalid.
    Fields,
    /// Everything after this field.
    Behind(Name),
}

/// What nginx would not have parsed after an invalid target; if its first byte is invalid already,
/// nginx has not even the request line.
pub(super) fn unread_of_target(request: &Request) -> UnreadPart {
    let head = request.head();
    match head.target == b"*" && head.version < HttpVersion::Http2 {
        true => UnreadPart::Line,
        false => UnreadPart::Fields,
    }
}

/// Forgets what nginx would not have parsed of a refused head, so that no variable and no error
/// page shows it.
#[cold]
pub(super) fn forget_unread(request: &mut Request, unread: UnreadPart) {
    let version = request.head().version;
    if version >= HttpVersion::Http2 && unread != UnreadPart::Fields {
        return;
    }
    request.is_unread = unread == UnreadPart::Line;
    if !matches!(unread, UnreadPart::Behind(_)) {
        if !is_host_first(request) {
            request.host.clear();
            request.port = None;
        }
        request.uri.clear();
        request.drop_args();
    }
    let Some(head) = request.head_mut() else { return };
    match unread {
        UnreadPart::Behind(_) => {}
        UnreadPart::Fields => {
            head.target.clear();
            if version == HttpVersion::Http2 {
                // There is no request line before there is a target.
                head.line.clear();
            } else {
                head.wire_size = u32::try_from(head.line.len() + 2).unwrap_or(u32::MAX);
            }
        }
        UnreadPart::Line => {
            head.target.clear();
            head.method_text.clear();
            head.wire_size = 0;
        }
    }
    let mut read = FieldMap::new();
    if let UnreadPart::Behind(last) = unread {
        read_until(&head.fields, last, &mut read);
        if version < HttpVersion::Http2 {
            head.wire_size = read_size(&head.line, &read);
        }
    }
    debug_assert!(read.len() <= head.fields.len(), "no more is read than was sent");
    head.fields.copy_from(&read);
    mark_unread_length(request);
}

/// As in nginx, a `Content-Length` that was not parsed (HTTP/1) is unknown.
fn mark_unread_length(request: &mut Request) {
    let head = request.head();
    let is_read = head.fields.get(Name::ContentLength).is_some();
    request.is_length_unread = head.version < HttpVersion::Http2 && !is_read;
}

/// Forgets what nginx would not have parsed of an HTTP/1 request whose host differs from its
/// handshake's, and the host itself. The target stays. A request without a host has been parsed.
#[cold]
fn forget_misdirected(request: &mut Request) {
    if request.head().version >= HttpVersion::Http2 {
        return;
    }
    let head = request.head();
    let mut words = head.line.splitn(3, |byte| *byte == b' ').skip(1);
    let is_absolute = words.next().is_some_and(|target| !target.starts_with(b"/"));
    if !is_absolute && head.fields.get(Name::Host).is_none() {
        return;
    }
    let mut read = FieldMap::new();
    if !is_absolute {
        read_until(&head.fields, Name::Host, &mut read);
    }
    request.host.clear();
    request.port = None;
    let Some(head) = request.head_mut() else { return };
    head.fields.copy_from(&read);
    head.wire_size = read_size(&head.line, &read);
    mark_unread_length(request);
}

/// Copies fields up to the first one of this name.
fn read_until(fields: &FieldMap, last: Name, out: &mut FieldMap) {
    for field in fields.iter() {
        out.push_parsed(field.name, field.text, field.value);
        if field.name == last {
            break;
        }
    }
}

/// The length of a request line and fields with one blank after each colon.
fn read_size(line: &[u8], fields: &FieldMap) -> u32 {
    let size = |field: bolide_http::fields::Field<'_>| field.text.len() + 2 + field.value.len() + 2;
    let len = line.len() + 2 + fields.iter().map(size).sum::<usize>();
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Forgets what nginx would not have parsed of a request with an invalid host, and returns the
/// reason for the log: nginx checks the target before the fields.
#[cold]
pub(super) fn refuse_host(
    request: &mut Request,
    host: HostError,
    first: Option<u32>,
    site: &Site,
) -> &'static str {
    let server = first.unwrap_or(request.server);
    let is_http1 = request.head().version < HttpVersion::Http2;
    match settle_target(request, server, site) {
        Err(error) if is_http1 => {
            forget_unread(request, unread_of_target(request));
            error.reason()
        }
        _ => {
            forget_unread(request, UnreadPart::Behind(Name::Host));
            host.reason()
        }
    }
}

/// Chooses the server that sends the error page for an invalid head. Its valid part may be enough
/// to know the server, unless the request line itself is invalid. An invalid target is reported
/// first.
pub(super) fn refused(
    request: &mut Request,
    refusal: RequestRefusal,
    has_line: bool,
    site: &Site,
    conn: &ConnInfo,
) -> RequestRefusal {
    let host = request.settle_host();
    let first = first_server(request, site, conn);
    request.server = match (host, first) {
        (host, Some(first)) if host.is_err() || request.host.is_empty() || !has_line => first,
        _ => site.server_of_host(request.listen, &request.host, request.captures.get_mut()),
    };
    request.location = site.server(request.server).root;
    if !has_line {
        forget_unread(request, UnreadPart::Line);
        return refusal;
    }
    // The target of CONNECT has another form; the method is refused later.
    if request.head().method == Method::Connect {
        return refusal;
    }
    let reader = target_reader(request, first);
    match settle_target(request, reader, site) {
        Err(error) => {
            forget_unread(request, unread_of_target(request));
            RequestRefusal { status: 400, reason: error.reason() }
        }
        Ok(()) => refusal,
    }
}

/// Whether `listen … http2` enables HTTP/2 for all servers on the address.
#[cold]
fn is_spoken_by_all(request: &Request, site: &Site) -> bool {
    let http = site.config().http.as_ref();
    http.and_then(|http| http.listens.get(request.listen)).is_some_and(|listen| listen.http2)
}

/// The server name of the handshake, if it belongs to another server than the request's: that
/// server may have requested other client certificates, or none.
#[cold]
fn other_name(request: &Request, site: &Site, tls: &TlsFacts) -> Option<Vec<u8>> {
    let mut name = tls.server_name.as_deref()?.to_ascii_lowercase().into_bytes();
    if name.last() == Some(&b'.') {
        name.pop();
    }
    let is_other =
        *name != *request.host && site.is_named(request.listen, &name, &mut Captures::default());
    is_other.then_some(name)
}

/// The server whose CAs verified the client's certificate, if the request's server trusts others:
/// nginx accepts that verdict.
#[cold]
fn other_judge(request: &Request, site: &Site, tls: &TlsFacts) -> Option<u32> {
    tls.client.as_ref()?;
    let judge = match tls.server_name.as_deref() {
        Some(name) => site.server_named(request.listen, name),
        None => site.default_server(request.listen),
    };
    let is_other = site.server(judge).trust != site.server(request.server).trust;
    is_other.then_some(judge)
}

#[cold]
fn verdict(verify: VerifyClient, tls: &TlsFacts) -> Result<(), RequestRefusal> {
    let overlooked = |fault: ClientCertFault| {
        verify == VerifyClient::OptionalNoCa && fault.is_only_unknown_authority()
    };
    match &tls.client {
        Some(cert) => match cert.fault {
            Some(fault) if !overlooked(fault) => {
                Err(RequestRefusal { status: 495, reason: fault.complaint() })
            }
            _ => Ok(()),
        },
        None if verify == VerifyClient::On => {
            Err(RequestRefusal { status: 496, reason: "client sent no required SSL certificate" })
        }
        None => Ok(()),
    }
}
