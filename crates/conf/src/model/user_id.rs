//! `userid*`: cookies that tell clients apart.

use std::sync::Arc;

/// The cookie of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserId {
    /// `userid`
    pub mode: UserIdMode,
    /// `userid_name`
    pub name: Arc<[u8]>,
    /// `userid_domain`; `None` for `none`.
    pub domain: Option<Arc<[u8]>>,
    /// `userid_path`
    pub path: Arc<[u8]>,
    /// `userid_expires`
    pub expires: UserIdExpires,
    /// `userid_flags`
    pub flags: UserIdFlags,
    /// `userid_mark`: the byte in place of the first `=` behind the identifier.
    pub mark: Option<u8>,
    /// `userid_p3p`: the value of `P3P`; empty for none.
    pub p3p: Arc<[u8]>,
    /// `userid_service`; `None` where the server's address stands for it.
    pub service: Option<u32>,
}

/// The mode of `userid`: whether cookies are set, read, or only logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserIdMode {
    /// `off`
    Off,
    /// `log`: read and not set.
    Log,
    /// `v1`: read, and set in the older form.
    V1,
    /// `on`: read and set.
    On,
}

/// When the cookie ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserIdExpires {
    /// `off`: with the browser's session.
    Off,
    /// `max`: at the end of 2037.
    Max,
    /// This many seconds from now.
    After(u64),
}

/// `userid_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserIdFlags {
    /// `secure`
    pub secure: bool,
    /// `httponly`
    pub http_only: bool,
    /// `samesite=…`, the whole attribute.
    pub same_site: Option<&'static str>,
}

impl Default for UserId {
    fn default() -> Self {
        Self {
            mode: UserIdMode::Off,
            name: Arc::from(&b"uid"[..]),
            domain: None,
            path: Arc::from(&b"/"[..]),
            expires: UserIdExpires::Off,
            flags: UserIdFlags::default(),
            mark: None,
            p3p: Arc::from(&b""[..]),
            service: None,
        }
    }
}
