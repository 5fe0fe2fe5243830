//! Variables by name: `%{NAME}` of rewriting and of expressions. Refuses names without a value
//! here.

use crate::fault::{ParseResult, shown};
use crate::tls::TlsVariable;
use crate::world::{Ahead, Asked, Evaluation};

/// A property of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestVariable {
    /// The path on disk, up to its first component that does not exist.
    RequestFilename,
    /// The decoded path.
    RequestUri,
    /// The decoded path of the client's request, before internal redirects (LiteSpeed's
    /// `ORG_REQ_URI`).
    AskedUri,
    /// The query of the client's request, undecoded (LiteSpeed's `ORG_QUERY_STRING`).
    AskedQuery,
    /// Whether the path is that of the client's request: `true` or `false`.
    IsAskedUri,
    /// The path after the file.
    PathInfo,
    /// The method.
    RequestMethod,
    /// `http` or `https`
    RequestScheme,
    /// The request line as sent.
    TheRequest,
    /// The query, undecoded.
    QueryString,
    /// The client's address.
    RemoteAddr,
    /// The address of the connection's other end, which may be a proxy.
    ConnRemoteAddr,
    /// The client's port.
    RemotePort,
    /// The user.
    RemoteUser,
    /// `Basic` if there is a user.
    AuthType,
    /// The server's name.
    ServerName,
    /// The server's port.
    ServerPort,
    /// The server's address.
    ServerAddr,
    /// `HTTP/1.1`
    ServerProtocol,
    /// The server's product name.
    ServerSoftware,
    /// The document root.
    DocumentRoot,
    /// The directory of this URL's prefix.
    ContextDocumentRoot,
    /// That prefix.
    ContextPrefix,
    /// `on` or `off`
    Https,
    /// Whether the request is a part of another one: `true` or `false`
    IsSubrequest,
    /// A part of the date.
    Time(TimePart),
    /// A property of the TLS connection; empty in plain text.
    Tls(TlsVariable),
}

/// A part of the date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePart {
    /// `2026`
    Year,
    /// `01`–`12`
    Month,
    /// `01`–`31`
    Day,
    /// `00`–`23`
    Hour,
    /// `00`–`59`
    Minute,
    /// `00`–`60`
    Second,
    /// `0` (Sunday) – `6`
    Weekday,
    /// All but the weekday, concatenated.
    Whole,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Of the request.
    Request(RequestVariable),
    /// A header.
    Header(Box<[u8]>),
    /// An environment variable.
    Env(Box<[u8]>),
    /// Always this text.
    Fixed(&'static str),
}

/// Fields with a variable name of their own.
const HEADERS: [(&str, &str); 7] = [
    ("HTTP_ACCEPT", "accept"),
    ("HTTP_COOKIE", "cookie"),
    ("HTTP_FORWARDED", "forwarded"),
    ("HTTP_HOST", "host"),
    ("HTTP_PROXY_CONNECTION", "proxy-connection"),
    ("HTTP_REFERER", "referer"),
    ("HTTP_USER_AGENT", "user-agent"),
];

impl Variable {
    /// The variable called `name`; none if it is unknown.
    ///
    /// # Errors
    ///
    /// It is not supported here.
    pub(crate) fn parse(name: &[u8]) -> ParseResult<Option<Self>> {
        use RequestVariable as Of;
        if let Some((kind, rest)) = split(name, b':') {
            return match kind.to_ascii_uppercase().as_slice() {
                b"HTTP" => Ok(Some(Self::Header(rest.to_ascii_lowercase().into()))),
                b"ENV" => Ok(Some(Self::Env(rest.into()))),
                b"SSL" if rest.eq_ignore_ascii_case(b"HTTPS") => Ok(Some(Self::Request(Of::Https))),
                b"SSL" => Self::of_tls(rest).map(Some),
                // Rules parse these themselves.
                b"LA-U" | b"LA-F" => Err(format!("%{{{}}} is not available here", shown(name))),
                _ => Ok(None),
            };
        }
        let upper = name.to_ascii_uppercase();
        let Ok(upper) = std::str::from_utf8(&upper) else { return Ok(None) };
        if let Some((_, header)) = HEADERS.iter().find(|(known, _)| *known == upper) {
            return Ok(Some(Self::Header(header.as_bytes().into())));
        }
        let which = match upper {
            "REQUEST_FILENAME" | "SCRIPT_FILENAME" => Of::RequestFilename,
            // LiteSpeed's `CURRENT_URI` is Apache's `REQUEST_URI`.
            "REQUEST_URI" | "CURRENT_URI" => Of::RequestUri,
            "ORG_REQ_URI" => Of::AskedUri,
            "ORG_QUERY_STRING" => Of::AskedQuery,
            "PATH_INFO" => Of::PathInfo,
            "REQUEST_METHOD" => Of::RequestMethod,
            "REQUEST_SCHEME" => Of::RequestScheme,
            "THE_REQUEST" => Of::TheRequest,
            "QUERY_STRING" => Of::QueryString,
            "REMOTE_ADDR" | "REMOTE_HOST" => Of::RemoteAddr,
            "CONN_REMOTE_ADDR" => Of::ConnRemoteAddr,
            "REMOTE_PORT" => Of::RemotePort,
            "REMOTE_USER" => Of::RemoteUser,
            "AUTH_TYPE" => Of::AuthType,
            "SERVER_NAME" => Of::ServerName,
            "SERVER_PORT" => Of::ServerPort,
            "SERVER_ADDR" => Of::ServerAddr,
            "SERVER_PROTOCOL" => Of::ServerProtocol,
            "SERVER_SOFTWARE" => Of::ServerSoftware,
            "DOCUMENT_ROOT" => Of::DocumentRoot,
            "CONTEXT_DOCUMENT_ROOT" => Of::ContextDocumentRoot,
            "CONTEXT_PREFIX" => Of::ContextPrefix,
            "HTTPS" => Of::Https,
            "TIME_YEAR" => Of::Time(TimePart::Year),
            "TIME_MON" => Of::Time(TimePart::Month),
            "TIME_DAY" => Of::Time(TimePart::Day),
            "TIME_HOUR" => Of::Time(TimePart::Hour),
            "TIME_MIN" => Of::Time(TimePart::Minute),
            "TIME_SEC" => Of::Time(TimePart::Second),
            "TIME_WDAY" => Of::Time(TimePart::Weekday),
            "TIME" => Of::Time(TimePart::Whole),
            "IS_SUBREQ" => Of::IsSubrequest,
            "SCRIPT_USER" | "SCRIPT_GROUP" => {
                return Err(format!("%{{{upper}}} is not available here"));
            }
            _ => return Ok(None),
        };
        Ok(Some(Self::Request(which)))
    }

    /// As [`Self::parse`] in an expression, where TLS variables have no prefix.
    pub(crate) fn parse_in_expression(name: &[u8]) -> ParseResult<Option<Self>> {
        match name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"SSL_")) {
            true => Self::of_tls(name).map(Some),
            false => Self::parse(name),
        }
    }

    fn of_tls(name: &[u8]) -> ParseResult<Self> {
        let upper = name.to_ascii_uppercase();
        let found = std::str::from_utf8(&upper).ok().and_then(TlsVariable::parse);
        match found {
            Some(variable) => Ok(Self::Request(RequestVariable::Tls(variable))),
            None => Err(format!("%{{{}}} is not available here", shown(name))),
        }
    }

    /// Appends its value.
    pub(crate) fn push(&self, evaluation: &Evaluation<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Request(which) => match evaluation.made(*which) {
                Some(made) => out.extend_from_slice(made),
                None => evaluation.world.variable(*which, out),
            },
            Self::Header(name) => {
                evaluation.world.header(name, out);
            }
            Self::Env(name) => out.extend_from_slice(evaluation.env.of(name).unwrap_or_default()),
            Self::Fixed(text) => out.extend_from_slice(text.as_bytes()),
        }
    }

    /// Its value in a request that is looked ahead to.
    pub(crate) fn push_ahead(&self, found: &Ahead, by: &Evaluation<'_>, out: &mut Vec<u8>) {
        use RequestVariable as Of;
        let text: &[u8] = match self {
            Self::Request(Of::RequestFilename) => &found.file,
            Self::Request(Of::RequestUri) => &found.uri,
            Self::Request(Of::PathInfo) => &found.path_info,
            Self::Request(Of::QueryString) => &found.args,
            Self::Request(Of::RequestMethod) => b"GET",
            Self::Request(Of::IsSubrequest) => b"true",
            Self::Request(Of::RemoteUser) => found.user.as_deref().unwrap_or_default(),
            Self::Request(Of::AuthType) if found.user.is_some() => b"Basic",
            Self::Request(Of::AuthType) => b"",
            Self::Env(name) => found.env.of(name).unwrap_or_default(),
            _ => return self.push(by, out),
        };
        out.extend_from_slice(text);
    }

    /// The question about the request; none if the variable is none of the request.
    pub(crate) fn asked(&self) -> Option<Asked<'_>> {
        match self {
            Self::Request(which) => Some(Asked::Variable(*which)),
            Self::Header(name) => Some(Asked::Field(name)),
            Self::Env(_) | Self::Fixed(_) => None,
        }
    }

    /// The field that it reads.
    pub(crate) fn header(&self) -> Option<&[u8]> {
        match self {
            Self::Header(name) => Some(name),
            _ => None,
        }
    }
}

/// The texts before and after the first `at` in `text`.
pub(crate) fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == at)?;
    Some((&text[..place], &text[place + 1..]))
}
