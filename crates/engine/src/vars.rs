//! Evaluates variables for one request, when they are read.
//!
//! Knows every variable; one whose feature is off has no value.

mod addresses;
mod browsers;
mod date;
pub(crate) mod file_names;
mod first_values;
mod named;
pub(crate) mod preview;
mod proxy_protocol;
mod real_root;
mod sent;
pub(crate) mod system;
mod tls;
pub(crate) mod trace;
mod upstream;
mod users;
mod value;

use std::io::Write as _;

use bolide_base::TcpInfo;
use bolide_conf::model::Mapping;
use bolide_conf::vars::{FieldName, Template, TemplatePart, Var};
use bolide_http::digits::push_decimal;
use bolide_http::escape::{UriPart, push_uri};
use bolide_http::fields::Field;
use bolide_http::{FieldMap, HttpVersion, Name, RequestHead, Scheme};

use crate::answer::Answer;
use crate::connection::{ClientAddress, ConnInfo, SendCtx};
use crate::counters::{RequestTallies, TallyCount};
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

pub(crate) use addresses::address;
use addresses::{binary_address, port};
pub(crate) use first_values::FirstValues;
use named::cookie;
pub(crate) use named::{argument, cookie_in};
pub(crate) use real_root::RealRoot;
use users::{authenticated_user, remote_user};
pub(crate) use value::{VariableValue, push_status};
use value::{maybe, millis, number, text};

/// Everything that a variable may read.
#[derive(Clone, Copy)]
pub(crate) struct VariableScope<'a> {
    pub(crate) request: &'a Request,
    pub(crate) answer: &'a Answer,
    /// The fields of a response in progress that are not part of it yet.
    pub(crate) sent: Option<&'a FieldMap>,
    pub(crate) site: &'a Site,
    pub(crate) conn: &'a ConnInfo,
    pub(crate) now: bolide_base::Now,
    pub(crate) clock: &'a bolide_http::date::DateClock,
    pub(crate) counters: &'a RequestTallies,
    pub(crate) pid: u32,
    pub(crate) tcp: Option<&'a TcpInfo>,
}

/// How `$1` and its kin are written into a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureGroups {
    /// Unchanged.
    Plain,
    /// Percent-encoded, for arguments.
    Encoded,
}

/// Appends the part of `uri` that names the file below the directory of `location`.
#[inline]
pub(crate) fn push_mapped(
    request: &Request,
    location: &CompiledLocation,
    uri: &[u8],
    out: &mut Vec<u8>,
) {
    match location.settings.root.mapping {
        Mapping::Whole => out.extend_from_slice(uri),
        Mapping::Without(len) => out.extend_from_slice(uri.get(len..).unwrap_or_default()),
        Mapping::Nothing if request.appends_uri => out.extend_from_slice(uri),
        Mapping::Nothing => {}
    }
}

impl<'a> VariableScope<'a> {
    /// The scope of a request whose response is being sent.
    pub(crate) const fn of_send(
        request: &'a Request,
        answer: &'a Answer,
        site: &'a Site,
        send_ctx: &SendCtx<'a>,
    ) -> Self {
        let SendCtx { now, clock, conn, counters, pid } = *send_ctx;
        let (now, tcp) = (*now, None);
        Self { request, answer, sent: None, site, conn, now, clock, counters, pid, tcp }
    }

    /// The client's address.
    pub(crate) fn client(&self) -> ClientAddress {
        self.request.client(self.conn)
    }

    /// The request's location.
    pub(crate) fn location(&self) -> &'a CompiledLocation {
        self.site.location(self.request.location)
    }

    /// Appends the value of `template`.
    pub(crate) fn expand(&self, template: &Template, out: &mut Vec<u8>) {
        self.expand_as(template, CaptureGroups::Plain, out);
    }

    /// Appends the value of `template`, with captures written as `groups` says.
    pub(crate) fn expand_as(&self, template: &Template, groups: CaptureGroups, out: &mut Vec<u8>) {
        if self.site.maps_capture {
            self.evaluate_first(template);
        }
        for part in template.parts() {
            match part {
                TemplatePart::Text(text) => out.extend_from_slice(text),
                TemplatePart::Var(Var::Capture(index)) if groups == CaptureGroups::Encoded => {
                    let captures = self.request.captures.borrow();
                    let group = captures.numbered(usize::from(*index)).unwrap_or_default();
                    push_uri(out, group, UriPart::Args);
                }
                TemplatePart::Var(var) => {
                    self.write(var, out);
                }
            }
        }
    }

    /// Whether a condition holds: its value is not empty and not `0`.
    pub(crate) fn is_true(&self, template: &Template, scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        self.expand(template, scratch);
        !scratch.is_empty() && scratch[..] != *b"0"
    }

    /// Appends the directory of `root` or `alias`.
    pub(crate) fn push_root(&self, location: &CompiledLocation, out: &mut Vec<u8>) {
        match &location.fixed_root {
            Some(root) => out.extend_from_slice(root),
            None => self.push_file(&location.settings.root.path, |bases| &bases.prefix, out),
        }
    }

    /// Appends the file that `uri` maps to under `location`.
    #[inline]
    pub(crate) fn push_path(&self, location: &CompiledLocation, uri: &[u8], out: &mut Vec<u8>) {
        self.push_root(location, out);
        push_mapped(self.request, location, uri, out);
    }

    /// Appends the value of `var`.
    pub(crate) fn write(&self, var: &Var, out: &mut Vec<u8>) -> VariableValue {
        if !self.site.redefined().is_empty()
            && let Some(found) = self.write_redefined(var, out)
        {
            return found;
        }
        self.write_request(var, out)
            .or_else(|| self.write_answer(var, out))
            .or_else(|| self.write_conn(var, out))
            .or_else(|| self.write_tls(var, out))
            .or_else(|| self.write_proxy_protocol(var, out))
            .or_else(|| self.write_origin(var, out))
            .or_else(|| self.write_trace(var, out))
            .unwrap_or(VariableValue::No)
    }

    fn write_request(&self, var: &Var, out: &mut Vec<u8>) -> Option<VariableValue> {
        let (request, head) = (self.request, self.request.head());
        Some(match var {
            // An invalid request line has no URI.
            Var::Uri if request.is_unread && request.uri.is_empty() => VariableValue::No,
            Var::Uri => text(out, &request.uri),
            // PERF: keys of caches have it.
            Var::Scheme => text(out, scheme(self.conn.scheme)),
            Var::RequestUri => maybe(out, (!head.target.is_empty()).then_some(&head.target)),
            Var::Args => maybe(out, request.args.as_deref()),
            Var::IsArgs => text(out, if request.args().is_empty() { b"" } else { b"?" }),
            Var::Arg(name) => maybe(out, argument(request.args(), name.as_bytes())),
            Var::Host if request.host.is_empty() => {
                text(out, self.site.server(request.server).name.as_bytes())
            }
            Var::Host => text(out, &request.host),
            Var::RequestField(name)
                if name.name == Name::TransferEncoding
                    && head.body == bolide_http::RequestBody::Unknown
                    && head.version == HttpVersion::Http11 =>
            {
                text(out, b"chunked")
            }
            Var::RequestField(name) => joined(&head.fields, name, out),
            Var::ProxyAddXForwardedFor => {
                for value in head.fields.all(Name::XForwardedFor) {
                    out.extend_from_slice(value);
                    out.extend_from_slice(b", ");
                }
                address(out, self.client())
            }
            Var::Cookie(name) => maybe(out, cookie(&head.fields, name.as_bytes())),
            Var::ContentType => joined_known(&head.fields, Name::ContentType, out),
            Var::ContentLength => self.content_length(out),
            Var::Request => maybe(out, first_line(head)),
            Var::RequestMethod => maybe(out, shown_method(request)),
            // No client sent a subrequest.
            Var::RequestLength if request.role.is_subrequest() => number(out, 0),
            Var::RequestLength => {
                let counts = head.version >= HttpVersion::Http2 || request.upload.counts();
                let body = if counts { request.body_received } else { 0 };
                number(out, u64::from(head.wire_size) + body)
            }
            Var::RequestPort => match request.port {
                Some(port) => number(out, u64::from(port)),
                None => VariableValue::Yes,
            },
            Var::IsRequestPort => text(out, if request.port.is_some() { b":" } else { b"" }),
            Var::RequestId => {
                for word in request.id {
                    let _ = write!(out, "{word:016x}");
                }
                VariableValue::Yes
            }
            Var::RequestTime => {
                millis(out, self.now.unix_millis.saturating_sub(request.started.unix_millis))
            }
            Var::RequestFilename => self.request_filename(out),
            Var::DocumentRoot => {
                self.push_root(self.location(), out);
                VariableValue::Yes
            }
            Var::RealpathRoot => self.write_real_root(out),
            Var::RemoteUser => remote_user(&head.fields, out),
            Var::AuthenticatedUser => {
                let admitted = request.htaccess.as_ref().and_then(|ruling| ruling.user.as_deref());
                let is_checked = request.password_right_in == Some(request.location);
                authenticated_user(admitted, is_checked.then_some(&head.fields), out)
            }
            // Nothing is known of an invalid request line.
            Var::ServerProtocol if request.is_unread || head.version == HttpVersion::Http09 => {
                VariableValue::No
            }
            Var::ServerProtocol => text(out, head.version.text().as_bytes()),
            Var::ServerName => text(out, self.site.server(request.server).name.as_bytes()),
            Var::Http2 => text(out, http2(head.version, self.conn.scheme)),
            Var::Http3 => text(out, if head.version == HttpVersion::Http3 { b"h3" } else { b"" }),
            Var::Capture(index) => {
                maybe(out, request.captures.borrow().numbered(usize::from(*index)))
            }
            Var::Named(slot) => self.write_named(*slot, out),
            Var::LimitRate => number(out, self.limit_rate()),
            Var::LimitReqStatus => maybe(out, request.limited.requests.text()),
            Var::LimitConnStatus => maybe(out, request.limited.connections.text()),
            Var::SecureLink => self.write_secure_link(out),
            Var::SecureLinkExpires => self.write_link_expires(out),
            Var::ModernBrowser => self.write_modern_browser(out),
            Var::AncientBrowser => self.write_ancient_browser(out),
            Var::Msie => self.write_msie(out),
            Var::UidGot => self.write_uid_got(out),
            Var::UidSet => self.write_uid_set(out),
            Var::UidReset => VariableValue::Yes,
            Var::InvalidReferer => text(out, if self.has_valid_referer() { b"" } else { b"1" }),
            _ => return None,
        })
    }

    fn write_answer(&self, var: &Var, out: &mut Vec<u8>) -> Option<VariableValue> {
        let answer = self.answer;
        Some(match var {
            Var::Status => {
                // As in nginx, a request without version has this status before it has one.
                let early = u16::from(self.request.head().version == HttpVersion::Http09) * 9;
                // As in nginx, ranges are cut behind what the configuration adds.
                let is_cut = !answer.ranges.is_empty() && answer.head.status == 206
                    || answer.unsatisfied.is_some();
                let status = match self.sent {
                    Some(_) if is_cut => 200,
                    _ => answer.logged_status(),
                };
                push_status(out, status.max(early));
                VariableValue::Yes
            }
            Var::BodyBytesSent => number(out, answer.body_sent),
            Var::BytesSent => number(out, answer.body_sent + answer.head_sent),
            Var::RequestCompletion => {
                let is_complete =
                    answer.is_complete && !answer.fails_condition && !self.is_in_parts();
                once(self.request, var, out, |out| text(out, if is_complete { b"OK" } else { b"" }))
            }
            Var::SentField(name) => once(self.request, var, out, |out| self.write_sent(name, out)),
            Var::SentTrailer(name) => {
                once(self.request, var, out, |out| joined(&answer.trailers, name, out))
            }
            Var::GzipRatio => once(self.request, var, out, |out| ratio(answer, "gzip", out)),
            Var::BrotliRatio => ratio(answer, "br", out),
            Var::ZstdRatio => ratio(answer, "zstd", out),
            _ => return None,
        })
    }

    fn write_conn(&self, var: &Var, out: &mut Vec<u8>) -> Option<VariableValue> {
        let conn = self.conn;
        Some(match var {
            Var::RemoteAddr => address(out, self.client()),
            Var::RealipRemoteAddr => address(out, conn.remote),
            Var::RemotePort => port(out, self.client()),
            Var::RealipRemotePort => port(out, conn.remote),
            Var::BinaryRemoteAddr => binary_address(out, self.client()),
            Var::ServerAddr => match (conn.local, self.site.listens().get(self.request.listen)) {
                // With its path, as in nginx.
                (ClientAddress::Unix, Some(listen)) => {
                    text(out, listen.address.to_string().as_bytes())
                }
                _ => address(out, conn.local),
            },
            Var::ServerPort => port(out, conn.local),
            Var::Https => text(out, if conn.scheme == Scheme::Https { b"on" } else { b"" }),
            Var::Connection => number(out, conn.serial),
            Var::ConnectionRequests => number(out, self.request.number_on_conn),
            Var::ConnectionTime => {
                millis(out, self.now.unix_millis.saturating_sub(conn.started.unix_millis))
            }
            Var::ConnectionsActive => number(out, self.counters.sum(TallyCount::Active)),
            Var::ConnectionsReading => number(out, self.counters.sum(TallyCount::Reading)),
            Var::ConnectionsWriting => number(out, self.counters.sum(TallyCount::Writing)),
            Var::ConnectionsWaiting => number(out, self.counters.sum(TallyCount::Waiting)),
            Var::Msec => millis(out, self.now.unix_millis),
            Var::TimeLocal => text(out, self.clock.time_local()),
            Var::DateLocal | Var::DateGmt => self.write_date(var, out),
            Var::TimeIso8601 => text(out, self.clock.time_iso8601()),
            Var::Hostname if !self.site.hostname().is_empty() => {
                text(out, self.site.hostname().as_bytes())
            }
            Var::TcpinfoRtt => self.tcp_figure(|tcp| tcp.rtt, out),
            Var::TcpinfoRttvar => self.tcp_figure(|tcp| tcp.rttvar, out),
            Var::TcpinfoSndCwnd => self.tcp_figure(|tcp| tcp.snd_cwnd, out),
            Var::TcpinfoRcvSpace => self.tcp_figure(|tcp| tcp.rcv_space, out),
            Var::Pid => number(out, u64::from(self.pid)),
            Var::NginxVersion => text(out, env!("CARGO_PKG_VERSION").as_bytes()),
            Var::Pipe => text(out, if self.request.head().pipelined { b"p" } else { b"." }),
            _ => return None,
        })
    }
}

/// The name of HTTP/2, where it is spoken.
const fn http2(version: HttpVersion, scheme: Scheme) -> &'static [u8] {
    match (version, scheme) {
        (HttpVersion::Http2, Scheme::Https) => b"h2",
        (HttpVersion::Http2, Scheme::Http) => b"h2c",
        _ => b"",
    }
}

/// Appends the first value of `var`; `write` computes it.
fn once(
    request: &Request,
    var: &Var,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> VariableValue,
) -> VariableValue {
    debug_assert!(first_values::is_kept(var), "it is one of those that nginx keeps");
    if let Some(value) = request.first_values.borrow().find(var) {
        return maybe(out, value);
    }
    let start = out.len();
    let found = write(out);
    let value = (found == VariableValue::Yes).then(|| &out[start..]);
    request.first_values.borrow_mut().keep(var, value);
    found
}

/// `http` or `https`.
pub(crate) const fn scheme(scheme: Scheme) -> &'static [u8] {
    match scheme {
        Scheme::Http => b"http",
        Scheme::Https => b"https",
    }
}

/// Appends all values of a field, joined by `, ` (cookies by `; `).
fn joined(fields: &FieldMap, name: &FieldName, out: &mut Vec<u8>) -> VariableValue {
    joined_from(fields.iter(), name, out)
}

/// The same for a name that is known here.
fn joined_known(fields: &FieldMap, name: Name, out: &mut Vec<u8>) -> VariableValue {
    for (at, value) in fields.all(name).enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        out.extend_from_slice(value);
    }
    VariableValue::when(fields.get(name).is_some())
}

fn joined_from<'a>(
    fields: impl Iterator<Item = Field<'a>>,
    name: &FieldName,
    out: &mut Vec<u8>,
) -> VariableValue {
    let mut found = VariableValue::No;
    let separator: &[u8] = if name.name == Name::Cookie { b"; " } else { b", " };
    for field in fields {
        let matches = field.name == name.name
            && (name.name != Name::Other || same_field(field.text, name.text.as_bytes()));
        if matches {
            if found == VariableValue::Yes {
                out.extend_from_slice(separator);
            }
            found = VariableValue::Yes;
            out.extend_from_slice(field.value);
        }
    }
    found
}

/// Whether the spelled name of a field is `meant`; case and `_` for `-` do not matter.
fn same_field(spelled: &[u8], meant: &[u8]) -> bool {
    spelled.len() == meant.len()
        && spelled.iter().zip(meant).all(|(spelled, meant)| {
            let spelled = spelled.to_ascii_lowercase();
            *meant == if spelled == b'_' { b'-' } else { spelled }
        })
}

/// How much smaller a body made on the fly is, with two decimals.
fn ratio(answer: &Answer, coding: &str, out: &mut Vec<u8>) -> VariableValue {
    let Some((name, before, after)) = answer.compression else { return VariableValue::No };
    if name != coding || after == 0 {
        return VariableValue::No;
    }
    push_decimal(out, before / after);
    let hundredths = (before % after * 100 / after) as u8;
    out.extend_from_slice(&[b'.', b'0' + hundredths / 10, b'0' + hundredths % 10]);
    VariableValue::Yes
}

/// The value of `$request_method`.
pub(crate) fn shown_method(request: &Request) -> Option<&[u8]> {
    let head = request.head();
    match (request.method_in_key, request.method, head.method) {
        (Some(method), ..) => Some(method.as_bytes()),
        (_, bolide_http::Method::Get, sent) if sent != bolide_http::Method::Get => Some(b"GET"),
        _ => (!head.method_text.is_empty()).then_some(&head.method_text),
    }
}

/// The first line of a request. As in nginx, a client that sent blank lines alone has one of no
/// bytes.
fn first_line(head: &RequestHead) -> Option<&[u8]> {
    let has_line = !head.line.is_empty() || head.version < HttpVersion::Http2;
    has_line.then_some(&head.line)
}

#[cfg(test)]
mod tests {
    use bolide_http::{FieldMap, Name};

    use super::{argument, cookie, same_field};

    #[test]
    fn arguments_and_cookies_are_the_first_of_their_name() {
        assert_eq!(argument(b"a=1&B=2&b=3&c", b"b"), Some(&b"2"[..]));
        assert_eq!(argument(b"a=1&c", b"c"), None);
        let mut fields = FieldMap::new();
        fields.push(Name::Cookie, b"x=1; sid=abc");
        fields.push(Name::Cookie, b"sid=later");
        assert_eq!(cookie(&fields, b"sid"), Some(&b"abc"[..]));
        assert_eq!(cookie(&fields, b"no"), None);
    }

    #[test]
    fn a_field_name_matches_whatever_its_case_and_dashes() {
        assert!(same_field(b"X-Real_Name", b"x-real-name"));
        assert!(!same_field(b"X-Real", b"x-real-name"));
    }
}
