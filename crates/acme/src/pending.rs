//! An order that the issuer knows, with the key of its certificate, for a restart to continue.

/// An order that can be continued.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PendingOrder {
    /// The name of the issuer's block.
    pub issuer: String,
    /// The URL of the order.
    pub url: String,
    /// In PEM form.
    pub key: String,
}

impl PendingOrder {
    /// The content of its file.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        format!("bolide-acme 1\nissuer {}\nurl {}\n{}", self.issuer, self.url, self.key)
    }

    /// Parses a file; `None` if it is damaged.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("bolide-acme 1\nissuer ")?;
        let (issuer, rest) = rest.split_once("\nurl ")?;
        let (url, key) = rest.split_once('\n')?;
        let is_key = key.trim_end().ends_with("-----END PRIVATE KEY-----");
        let plain = |text: &str| !text.is_empty() && !text.contains(char::is_control);
        (is_key && plain(issuer) && plain(url)).then(|| Self {
            issuer: issuer.to_owned(),
            url: url.to_owned(),
            key: key.to_owned(),
        })
    }
}
