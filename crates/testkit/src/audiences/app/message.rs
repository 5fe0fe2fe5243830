//! Requests and responses of the application, over HTTP and FastCGI.

use std::collections::BTreeMap;

/// A request, with parameters as in CGI.
#[derive(Clone, Debug, Default)]
pub struct AudienceAppRequest {
    /// The parameters by name; `HTTP_*` are the fields.
    pub params: BTreeMap<String, String>,
}

impl AudienceAppRequest {
    /// An HTTP request: request line and fields, one per line.
    #[must_use]
    pub fn by_http(head: &str) -> Self {
        let mut params = BTreeMap::new();
        let mut lines = head.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        for (name, value) in [
            ("REQUEST_METHOD", method),
            ("REQUEST_URI", target),
            ("DOCUMENT_URI", path),
            ("QUERY_STRING", query),
        ] {
            params.insert(name.to_owned(), value.to_owned());
        }
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let name = match name.to_ascii_lowercase().as_str() {
                "x-way" => "WAY".to_owned(),
                "x-cache" => "CACHE".to_owned(),
                "x-server" => "SERVER_NAME".to_owned(),
                // The original address of a rewritten request, by which purges select.
                "x-address" => "ADDRESS".to_owned(),
                other => format!("HTTP_{}", other.to_ascii_uppercase().replace('-', "_")),
            };
            params.insert(name, value.to_owned());
        }
        Self { params }
    }

    /// A FastCGI request, from its PARAMS records.
    #[must_use]
    pub fn by_fastcgi(params: &[u8]) -> Self {
        Self { params: crate::app::pairs(params) }
    }

    /// Whether the response has no body.
    pub(super) fn is_head(&self) -> bool {
        self.param("REQUEST_METHOD") == "HEAD"
    }

    pub(super) fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", |value| value)
    }

    /// The cookie with this name as PHP reads it: the first one.
    pub(super) fn cookie(&self, name: &str) -> &str {
        let pairs = self.param("HTTP_COOKIE").split(';').map(str::trim);
        let mut values = pairs.filter_map(|pair| pair.split_once('='));
        values.find(|(known, _)| *known == name).map_or("-", |(_, value)| value)
    }
}

/// A response of the application.
#[derive(Clone, Debug, Default)]
pub struct AudienceAppResponse {
    /// The status.
    pub status: u16,
    /// The fields.
    pub fields: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl AudienceAppResponse {
    fn head(&self) -> String {
        let lines = self.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("Content-Type: text/html\r\n{}", lines.collect::<String>())
    }

    /// The HTTP/1.1 response to `received`.
    #[must_use]
    pub fn in_http(&self, received: &AudienceAppRequest) -> Vec<u8> {
        let body = if received.is_head() { "" } else { &*self.body };
        let (status, len, head) = (self.status, self.body.len(), self.head());
        let end = "Connection: close\r\n\r\n";
        format!("HTTP/1.1 {status} X\r\n{head}Content-Length: {len}\r\n{end}{body}").into_bytes()
    }

    /// The same in FastCGI records.
    ///
    /// # Panics It exceeds one record.
    #[must_use]
    pub fn in_fastcgi(&self, received: &AudienceAppRequest) -> Vec<u8> {
        let body = if received.is_head() { "" } else { &*self.body };
        let text = format!("Status: {} X\r\n{}\r\n{body}", self.status, self.head());
        let (stdout, end) = (6, 3);
        let mut out = Vec::new();
        for (kind, content) in [(stdout, text.as_bytes()), (stdout, b""), (end, &[0; 8])] {
            let len = u16::try_from(content.len()).unwrap().to_be_bytes();
            out.extend_from_slice(&[1, kind, 0, 1, len[0], len[1], 0, 0]);
            out.extend_from_slice(content);
        }
        out
    }
}
