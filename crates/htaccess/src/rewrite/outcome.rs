//! The input and the result of a pass of rules.

/// The input of rules.
#[derive(Clone, Copy, Debug)]
pub struct RewritePlace<'a> {
    /// The path on disk, up to its first component that does not exist.
    pub file: &'a [u8],
    /// The rest of the path (`PATH_INFO`).
    pub path_info: &'a [u8],
    /// The query.
    pub args: Option<&'a [u8]>,
    /// The request target as sent.
    pub target: &'a [u8],
    /// The directory of the URL prefix, without a final slash.
    pub root: &'a [u8],
    /// The URL prefix that maps to `root`, without a final slash.
    pub prefix: &'a [u8],
    /// `http://host:port`
    pub origin: &'a [u8],
    /// Whether the request is a part of another one.
    pub is_inside: bool,
    /// The time in seconds since 1970.
    pub now: u64,
}

/// The result of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rewritten {
    /// The request is unchanged.
    #[default]
    Nothing,
    /// Only the query changes; none removes it.
    Query(Option<Vec<u8>>),
    /// An internal redirect.
    Inside {
        /// The path.
        path: Vec<u8>,
        /// The query.
        args: Option<Vec<u8>>,
    },
    /// The request is proxied.
    Proxied {
        /// `scheme://host:port`
        origin: Vec<u8>,
        /// The path, decoded.
        path: Vec<u8>,
        /// The query.
        args: Option<Vec<u8>>,
    },
    /// The client is redirected to this URL.
    Redirect(u16, Vec<u8>),
    /// The response has this status.
    Status(u16),
}

/// The result of a pass, with its side effects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassOutcome {
    /// The effect on the request.
    pub result: Rewritten,
    /// Whether no other pass follows.
    pub ends: bool,
    /// Whether a rule rewrote the path, even to the same one.
    pub is_changed: bool,
    /// Whether `PATH_INFO` is dropped (`DPI`), if the path stays.
    pub drops_path_info: bool,
    /// Whether rules used properties of the request besides path and query: its origin, its target
    /// as sent, the time.
    pub is_particular: bool,
    /// The media type that a rule sets.
    pub media_type: Option<Vec<u8>>,
    /// The handler that a rule sets.
    pub handler: Option<Vec<u8>>,
    /// The rewritten query of a request that gets a status; none if unchanged.
    pub args: Option<Vec<u8>>,
    /// Values of `Set-Cookie`.
    pub cookies: Vec<Vec<u8>>,
}
