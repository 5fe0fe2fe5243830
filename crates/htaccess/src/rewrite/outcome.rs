//! Where a pass of rules begins and what it comes to.

/// What rules are applied to.
#[derive(Clone, Copy, Debug)]
pub struct RewritePlace<'a> {
    /// The path on disk, to its first element that is not there.
    pub file: &'a [u8],
    /// The rest of the path.
    pub path_info: &'a [u8],
    /// The query.
    pub args: Option<&'a [u8]>,
    /// The request line's target as sent.
    pub target: &'a [u8],
    /// The directory that URLs lead to, without a slash at its end.
    pub root: &'a [u8],
    /// The URL prefix that leads to `root`, without a slash at its end.
    pub prefix: &'a [u8],
    /// `http://host:port`
    pub origin: &'a [u8],
    /// Whether another request asks, of which this one is a part.
    pub is_inside: bool,
    /// The moment, in seconds since 1970.
    pub now: u64,
}

/// What a pass comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rewritten {
    /// The request goes on as it was.
    #[default]
    Nothing,
    /// Its query is another one; none if there is none.
    Query(Option<Vec<u8>>),
    /// It starts over inside the server.
    Inside {
        /// The path.
        path: Vec<u8>,
        /// The query.
        args: Option<Vec<u8>>,
    },
    /// Another server is asked.
    Proxied {
        /// `scheme://host:port`
        origin: Vec<u8>,
        /// The path, decoded.
        path: Vec<u8>,
        /// The query.
        args: Option<Vec<u8>>,
    },
    /// The client is sent to this address.
    Redirect(u16, Vec<u8>),
    /// It is answered with this status.
    Status(u16),
}

/// What a pass comes to, with what it does beside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassOutcome {
    /// What becomes of the request.
    pub result: Rewritten,
    /// Whether no other pass follows.
    pub ends: bool,
    /// Whether a rule made an address of it, though it may be the same.
    pub is_changed: bool,
    /// Whether what goes on behind the file counts no more (`DPI`), where the path stays.
    pub drops_path_info: bool,
    /// Whether rules looked at what the place says of the request beside its path and query: its
    /// origin, its target as sent, the moment.
    pub is_particular: bool,
    /// The media type that was asked for.
    pub media_type: Option<Vec<u8>>,
    /// The handler that was asked for.
    pub handler: Option<Vec<u8>>,
    /// The query that rules made of a request that is answered with a status; none if it is the
    /// same.
    pub args: Option<Vec<u8>>,
    /// Values of `Set-Cookie`.
    pub cookies: Vec<Vec<u8>>,
}
