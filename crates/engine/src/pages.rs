//! The built-in pages for errors and redirects, in nginx's look.
//!
//! They are built once per configuration; responses share them.

use bytes::Bytes;

/// The product name, for `Server` and the foot of pages.
pub(crate) const PRODUCT: &str = "bolide";
/// The product name with its version, for `server_tokens on`.
pub(crate) const PRODUCT_VERSION: &str = concat!("bolide/", env!("CARGO_PKG_VERSION"));

/// The product name in `Server` and at the foot of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature {
    /// `server_tokens off`: the bare name.
    Name,
    /// `server_tokens on`: name and version.
    Version,
}

impl Signature {
    /// The text itself.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Name => PRODUCT,
            Self::Version => PRODUCT_VERSION,
        }
    }
}

/// The title, which is also the heading unless a second text is given, and an extra line.
struct Page {
    title: &'static str,
    heading: &'static str,
    extra: &'static str,
}

const fn plain(title: &'static str) -> Option<Page> {
    Some(Page { title, heading: title, extra: "" })
}

const fn bad(title: &'static str, extra: &'static str) -> Option<Page> {
    Some(Page { title, heading: "400 Bad Request", extra })
}

/// nginx's page for `status`; `None` where it sends an empty body.
const fn page(status: u16) -> Option<Page> {
    match status {
        301 => plain("301 Moved Permanently"),
        302 => plain("302 Found"),
        303 => plain("303 See Other"),
        307 => plain("307 Temporary Redirect"),
        308 => plain("308 Permanent Redirect"),
        400 => plain("400 Bad Request"),
        401 => plain("401 Authorization Required"),
        402 => plain("402 Payment Required"),
        403 => plain("403 Forbidden"),
        // 498 is a code of nginx without a meaning.
        404 | 498 => plain("404 Not Found"),
        405 => plain("405 Not Allowed"),
        406 => plain("406 Not Acceptable"),
        407 => plain("407 Proxy Authentication Required"),
        408 => plain("408 Request Time-out"),
        409 => plain("409 Conflict"),
        410 => plain("410 Gone"),
        411 => plain("411 Length Required"),
        412 => plain("412 Precondition Failed"),
        413 => plain("413 Request Entity Too Large"),
        414 => plain("414 Request-URI Too Large"),
        415 => plain("415 Unsupported Media Type"),
        416 => plain("416 Requested Range Not Satisfiable"),
        421 => plain("421 Misdirected Request"),
        429 => plain("429 Too Many Requests"),
        494 => bad(
            "400 Request Header Or Cookie Too Large",
            "<center>Request Header Or Cookie Too Large</center>\r\n",
        ),
        495 => {
            bad("400 The SSL certificate error", "<center>The SSL certificate error</center>\r\n")
        }
        496 => bad(
            "400 No required SSL certificate was sent",
            "<center>No required SSL certificate was sent</center>\r\n",
        ),
        497 => bad(
            "400 The plain HTTP request was sent to HTTPS port",
            "<center>The plain HTTP request was sent to HTTPS port</center>\r\n",
        ),
        500 => plain("500 Internal Server Error"),
        501 => plain("501 Not Implemented"),
        502 => plain("502 Bad Gateway"),
        503 => plain("503 Service Temporarily Unavailable"),
        504 => plain("504 Gateway Time-out"),
        505 => plain("505 HTTP Version Not Supported"),
        507 => plain("507 Insufficient Storage"),
        _ => None,
    }
}

/// The status that is sent for one of nginx's internal codes (400 for 494 to 497).
pub(crate) const fn shown_status(status: u16) -> u16 {
    match status {
        494..=497 => 400,
        other => other,
    }
}

/// Whether nginx closes the connection after a response with `status`, internal codes included. A
/// refused head closes it anyway.
pub(crate) const fn closes(status: u16) -> bool {
    matches!(status, 400 | 408 | 413 | 414 | 495..=497 | 500 | 501)
}

/// Whether `status` is a redirect, even one with an empty address.
pub(crate) const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

const FIRST: u16 = 301;
const LAST: u16 = 507;

/// All pages in one of the two signatures.
#[derive(Debug)]
pub(crate) struct ErrorPages(Vec<Bytes>);

impl ErrorPages {
    /// Writes every page.
    pub(crate) fn new(signature: Signature) -> Self {
        Self((FIRST..=LAST).map(|status| render(status, signature)).collect())
    }

    /// The page of `status`; empty where nginx has none.
    pub(crate) fn of(&self, status: u16) -> Bytes {
        let index = usize::from(status.wrapping_sub(FIRST));
        self.0.get(index).cloned().unwrap_or_default()
    }
}

fn render(status: u16, signature: Signature) -> Bytes {
    let Some(page) = page(status) else { return Bytes::new() };
    let parts = [
        "<html>\r\n<head><title>",
        page.title,
        "</title></head>\r\n<body>\r\n<center><h1>",
        page.heading,
        "</h1></center>\r\n",
        page.extra,
        "<hr><center>",
        signature.text(),
        "</center>\r\n</body>\r\n</html>\r\n",
    ];
    Bytes::from(parts.concat().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::{ErrorPages, Signature, shown_status};

    #[test]
    fn a_page_names_the_error_and_the_server_as_configured() {
        let text = ErrorPages::new(Signature::Name).of(404);
        assert_eq!(
            text,
            "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n\
             <center><h1>404 Not Found</h1></center>\r\n<hr><center>bolide</center>\r\n\
             </body>\r\n</html>\r\n"
        );
        let text = ErrorPages::new(Signature::Version).of(497);
        assert!(text.starts_with(b"<html>\r\n<head><title>400 The plain HTTP request"));
        assert!(text.ends_with(b"<hr><center>bolide/0.1.0</center>\r\n</body>\r\n</html>\r\n"));
    }

    #[test]
    fn codes_without_a_page_have_an_empty_body_and_internal_codes_show_as_400() {
        let pages = ErrorPages::new(Signature::Name);
        assert!(pages.of(418).is_empty() && pages.of(200).is_empty() && pages.of(999).is_empty());
        assert_eq!((shown_status(494), shown_status(497), shown_status(404)), (400, 400, 404));
    }
}
