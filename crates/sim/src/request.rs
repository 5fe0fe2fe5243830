//! The requests of a client.

use crate::assembly::AssemblyPiece;
use crate::chance::Chance;
use crate::pages::{PURGE_KINDS, PageLocation, SIZES, esi};
use crate::php_pools;
use crate::upkeep::CREDENTIALS;
use crate::webdav::request::{APPS as DAV_APPS, SimDavMethod, SimDavRequest};

/// The kind of a request and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A file, by its path.
    File(&'static str),
    /// A file that is found by `try_files`.
    Fallback,
    /// A file with `limit_rate`.
    Paced,
    /// A directory with an index file.
    Index(&'static str),
    /// A directory without the final slash.
    Directory,
    /// A file that does not exist.
    Missing,
    /// The number of the configuration.
    Version,
    /// The server's facts about the client.
    Who,
    /// A directory listing.
    Listed,
    /// A file with basic authentication, and the index of the credentials.
    Guarded(usize),
    /// An upload that `return` answers.
    Upload,
    /// A file with a method that it does not support.
    BadMethod,
    /// A WebDAV request.
    Dav(SimDavRequest),
    /// An application: its location and the number of filler bytes in the response.
    App(&'static str, usize),
    /// An ESI page: filler bytes and levels of fragments.
    Assembly(usize, u8),
    /// A page of a cache.
    Page(PageLocation, usize),
    /// An edit, whose response purges: the kind of purge and the page.
    Edit(u64, usize),
    /// A purge of a page.
    Purge(PageLocation, usize),
    /// A refresh of a page.
    Refresh(PageLocation, usize),
}

impl RequestKind {
    /// Whether [`crate::pages::PageModel`] checks its responses.
    #[must_use]
    pub const fn is_page(self) -> bool {
        matches!(self, Self::Page(..) | Self::Edit(..) | Self::Purge(..) | Self::Refresh(..))
    }

    /// Whether an application responds.
    #[must_use]
    pub const fn is_app(self) -> bool {
        self.is_page() || matches!(self, Self::App(..) | Self::Assembly(..))
    }

    /// Whether the response takes time: an application responds, or a limit delays it.
    #[must_use]
    pub const fn may_wait(self) -> bool {
        self.is_app()
            || matches!(self, Self::Paced | Self::Guarded(_) | Self::Listed | Self::Dav(_))
    }
}

/// The locations of applications, each with settings of its own.
pub const APPS: &[&str] = &["/app", "/stream", "/kept", "/tight", "/heedless"];

/// The same for upstreams by name.
pub const DNS_APPS: &[&str] = &["/name0", "/name1", "/name2", "/name4", "/named", "/app"];

/// The same for upstreams by TLS.
pub const SECURE_APPS: &[&str] = &["/app", "/safe", "/safe", "/shown", FALSE];

/// The same for request bodies in files.
pub const UPKEEP_APPS: &[&str] = &["/app", "/filed", "/filed"];

/// The upstream whose certificate has another name.
pub const FALSE: &str = "/false";

/// The body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimUpload {
    /// None.
    None,
    /// With a Content-Length.
    Length(usize),
    /// Chunked, or in frames without a Content-Length.
    Pieces(usize),
}

impl SimUpload {
    /// Bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::None => 0,
            Self::Length(size) | Self::Pieces(size) => size,
        }
    }
}

/// `client_max_body_size` of the site.
pub(crate) const BODY_MAX: usize = 64 * 1024;

/// One request.
#[derive(Clone, Debug)]
pub struct SimRequest {
    /// Its number among the requests of its client.
    pub number: u32,
    /// The client.
    pub client: usize,
    /// Its kind.
    pub what: RequestKind,
    /// `HEAD` instead of `GET`.
    pub head_only: bool,
    /// First and last byte.
    pub range: Option<(u64, u64)>,
    /// Whether gzip is accepted.
    pub gzip: bool,
    /// An entity tag for If-None-Match.
    pub known: Option<String>,
    /// The body.
    pub upload: SimUpload,
    /// When its first byte was sent.
    pub since: u64,
    /// The port that it was sent to.
    pub port: u16,
    /// The session and the language of the client, for pages.
    pub page_client: Option<(Option<usize>, &'static str)>,
    /// The facts about the client that `/who` must return.
    pub client_facts: String,
    /// The response must be an error.
    pub expects_error: bool,
    /// It has an id for the logs.
    pub has_log_id: bool,
}

impl SimRequest {
    /// A random request.
    pub fn any(client: usize, number: u32, chance: &mut Chance, mix: RequestMix) -> Self {
        if let RequestMix::Pages { purges, with_esi } = mix {
            return Self::page(client, number, chance, (purges, with_esi));
        }
        let files: &[&'static str] = match mix {
            RequestMix::Large => &["/www/big.bin", "/www/big.txt", "/www/style.css"],
            _ => &crate::site_files::FILES[1..6],
        };
        let file = RequestKind::File(files[chance.index(files.len())]);
        if mix == RequestMix::Assemblies && !chance.one_in(8) {
            let depth = chance.below(3) as u8;
            return Self::assembly(client, number, depth, chance);
        }
        let (apps, is_app) = match mix {
            RequestMix::Apps => (APPS, !chance.one_in(8)),
            RequestMix::Pools => (php_pools::APPS, !chance.one_in(16)),
            RequestMix::Dns => (DNS_APPS, !chance.one_in(8)),
            RequestMix::Secure => (SECURE_APPS, chance.one_in(2)),
            RequestMix::Dav => (DAV_APPS, chance.one_in(4)),
            RequestMix::Upkeep | RequestMix::SyscallFaults => (UPKEEP_APPS, chance.one_in(3)),
            _ => (APPS, false),
        };
        let act = (mix == RequestMix::Dav && !is_app && !chance.one_in(16))
            .then(|| SimDavRequest::any(chance));
        let asks_who = mix == RequestMix::Secure && chance.one_in(3);
        let is_guarded =
            matches!(mix, RequestMix::Upkeep | RequestMix::SyscallFaults) && chance.one_in(4);
        let is_listed = mix == RequestMix::SyscallFaults && chance.one_in(4);
        let what = match chance.below(17) {
            _ if is_app => RequestKind::App(apps[chance.index(apps.len())], chance.size(200_000)),
            _ if asks_who => RequestKind::Who,
            _ if let Some((act, _)) = act => RequestKind::Dav(act),
            _ if is_listed => RequestKind::Listed,
            _ if is_guarded => RequestKind::Guarded(chance.index(CREDENTIALS.len())),
            0 => RequestKind::Index(["/www/index.html", "/www/docs/index.html"][chance.index(2)]),
            1 => RequestKind::Directory,
            2 => RequestKind::Missing,
            3 | 4 => RequestKind::Version,
            5 | 6 => RequestKind::Upload,
            7 => RequestKind::BadMethod,
            8 => RequestKind::Fallback,
            9 => RequestKind::Paced,
            _ => file,
        };
        let upload = match what {
            RequestKind::Dav(SimDavRequest { method: SimDavMethod::Put, .. }) => {
                let size = act.map_or(0, |(_, size)| size);
                if chance.one_in(3) { SimUpload::Pieces(size) } else { SimUpload::Length(size) }
            }
            RequestKind::Dav(_) => SimUpload::None,
            RequestKind::Upload | RequestKind::BadMethod => match chance.below(4) {
                0 => SimUpload::Length(chance.size(BODY_MAX)),
                1 => SimUpload::Pieces(chance.size(BODY_MAX)),
                2 => SimUpload::Length(chance.size(300)),
                _ => SimUpload::Length(BODY_MAX + chance.size(200_000)),
            },
            RequestKind::App(..) => match chance.below(5) {
                0 => SimUpload::Length(chance.size(BODY_MAX)),
                1 => SimUpload::Pieces(chance.size(BODY_MAX)),
                2 => SimUpload::Length(chance.size(3000)),
                _ => SimUpload::None,
            },
            _ => SimUpload::None,
        };
        let is_file = matches!(what, RequestKind::File(_));
        Self {
            number,
            client,
            what,
            head_only: upload == SimUpload::None && act.is_none() && chance.one_in(10),
            range: (is_file && chance.one_in(5)).then(|| {
                let bits = chance.below(13);
                let first = chance.below(100 << bits);
                (first, first + chance.below(40_000))
            }),
            gzip: is_file && chance.one_in(3),
            known: None,
            upload,
            since: 0,
            port: 0,
            page_client: None,
            client_facts: String::new(),
            expects_error: false,
            has_log_id: mix == RequestMix::Upkeep,
        }
    }

    /// A random request for an ESI page.
    fn assembly(client: usize, number: u32, depth: u8, chance: &mut Chance) -> Self {
        let session = chance.one_in(2).then_some(client % 4);
        Self {
            number,
            client,
            what: RequestKind::Assembly(chance.size(30_000), depth),
            head_only: chance.one_in(10),
            range: None,
            gzip: chance.one_in(3),
            known: None,
            upload: SimUpload::None,
            since: 0,
            port: 0,
            page_client: Some((session, "")),
            client_facts: String::new(),
            expects_error: false,
            has_log_id: false,
        }
    }

    /// A random request for a page, an edit, a purge or a refresh.
    fn page(
        client: usize,
        number: u32,
        chance: &mut Chance,
        (purges, with_esi): (bool, bool),
    ) -> Self {
        let place = PageLocation::ALL[chance.index(PageLocation::ALL.len())];
        let place = if with_esi && chance.one_in(2) { PageLocation::Esi } else { place };
        let page = chance.index(SIZES.len());
        let kind = if purges { chance.below(16) } else { 15 };
        let what = match kind {
            0 | 1 => RequestKind::Edit(chance.below(PURGE_KINDS), page),
            2 | 3 => RequestKind::Purge(place, page),
            4 if !place.is_zone() => RequestKind::Refresh(place, page),
            _ => RequestKind::Page(place, page),
        };
        let is_page = matches!(what, RequestKind::Page(..));
        let session = (client % 4).checked_sub(1);
        let upload = if matches!(what, RequestKind::Edit(..)) { chance.size(300) } else { 0 };
        Self {
            number,
            client,
            what,
            head_only: is_page && chance.one_in(10),
            range: (is_page && chance.one_in(6)).then(|| {
                let first = chance.below(30_000);
                (first, first + chance.below(40_000))
            }),
            gzip: is_page && chance.one_in(3),
            known: None,
            upload: if upload > 0 { SimUpload::Length(upload) } else { SimUpload::None },
            since: 0,
            port: 0,
            page_client: Some((session, ["", "de", "en"][chance.index(3)])),
            client_facts: String::new(),
            expects_error: false,
            has_log_id: false,
        }
    }

    /// The value of the session cookie.
    #[must_use]
    pub fn session(&self) -> Option<String> {
        let (session, _) = self.page_client?;
        session.map(|session| format!("{session:020}"))
    }

    /// The accepted language.
    #[must_use]
    pub fn lang(&self) -> &'static str {
        self.page_client.map_or("", |(_, lang)| lang)
    }

    /// A cookie value that no other request has.
    #[must_use]
    pub fn visitor(&self) -> String {
        format!("c{}n{}", self.client, self.number)
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self.what {
            RequestKind::Dav(act) => act.method(),
            RequestKind::Upload | RequestKind::BadMethod => "POST",
            RequestKind::App(..) if !matches!(self.upload, SimUpload::None) => "POST",
            RequestKind::Edit(..) => "POST",
            RequestKind::Purge(..) => "PURGE",
            RequestKind::Refresh(..) => "REFRESH",
            _ if self.head_only => "HEAD",
            _ => "GET",
        }
    }

    /// Path and query.
    #[must_use]
    pub fn target(&self) -> String {
        match self.what {
            RequestKind::File(path) => path["/www".len()..].to_owned(),
            RequestKind::Dav(act) => act.target(),
            RequestKind::Fallback => "/try/x".to_owned(),
            RequestKind::Paced => "/paced/style.css".to_owned(),
            RequestKind::Index(path) => {
                path["/www".len()..path.len() - "index.html".len()].to_owned()
            }
            RequestKind::Directory => "/docs".to_owned(),
            RequestKind::Missing => format!("/missing?{}", self.number),
            RequestKind::Version => "/version".to_owned(),
            RequestKind::Who => "/who".to_owned(),
            RequestKind::Guarded(_) => "/guarded/small.txt".to_owned(),
            RequestKind::Listed => "/listed/".to_owned(),
            RequestKind::Upload => "/upload".to_owned(),
            RequestKind::BadMethod => "/small.txt".to_owned(),
            RequestKind::App(place, size) => format!("{place}?{}&{size}", self.token()),
            RequestKind::Assembly(size, depth) => {
                AssemblyPiece::page(self.token(), size, depth).target()
            }
            RequestKind::Page(place, page)
            | RequestKind::Purge(place, page)
            | RequestKind::Refresh(place, page) => esi::target((place, page)),
            RequestKind::Edit(number, page) => format!("/edit?edit&{number}.{page}"),
        }
    }

    /// An identifier of the request.
    #[must_use]
    pub fn token(&self) -> String {
        match self.what {
            what if what.is_page() => self.target(),
            _ => format!("c{}n{}", self.client, self.number),
        }
    }

    /// Its fields, without Host and framing.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        if self.page_client.is_some() {
            let mut cookies = format!("visitor={}", self.visitor());
            if let Some(session) = self.session() {
                cookies = format!("{cookies}; lsc_private={session}");
            }
            if !self.lang().is_empty() {
                cookies = format!("lang={}; {cookies}", self.lang());
                fields.push(("lang", self.lang().to_owned()));
            }
            fields.push(("cookie", cookies));
        }
        if self.has_log_id {
            fields.push(("x-ask", self.visitor()));
            fields.push(("x-client", self.client.to_string()));
        }
        if let RequestKind::Guarded(which) = self.what {
            fields.push(("authorization", CREDENTIALS[which].to_owned()));
        }
        if let RequestKind::Dav(act) = self.what {
            fields.extend(act.fields());
        }
        if let Some((first, last)) = self.range {
            fields.push(("range", format!("bytes={first}-{last}")));
        }
        if self.gzip {
            fields.push(("accept-encoding", "gzip".to_owned()));
        }
        if let Some(tag) = &self.known {
            fields.push(("if-none-match", tag.clone()));
        }
        fields
    }

    /// The file that determines the response.
    pub(crate) const fn path(&self) -> Option<&'static str> {
        match self.what {
            RequestKind::File(path) | RequestKind::Index(path) => Some(path),
            RequestKind::Dav(SimDavRequest { method: SimDavMethod::Get, path, .. }) => Some(path),
            RequestKind::Paced => Some("/www/style.css"),
            RequestKind::Fallback | RequestKind::BadMethod | RequestKind::Guarded(0) => {
                Some("/www/small.txt")
            }
            RequestKind::Directory => Some("/www/docs"),
            RequestKind::Missing => Some("/www/missing"),
            _ => None,
        }
    }
}

/// The mix of requests that clients send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMix {
    /// All kinds.
    Mixed,
    /// Mostly large files.
    Large,
    /// Mostly applications.
    Apps,
    /// Mostly ESI pages.
    Assemblies,
    /// The mix of `Upkeep`, and directory listings.
    SyscallFaults,
    /// Mostly WebDAV, and stored responses.
    Dav,
    /// Applications, request bodies in files, passwords; each request has an id for the logs.
    Upkeep,
    /// Mostly upstreams by name.
    Dns,
    /// Mostly PHP pools.
    Pools,
    /// Mostly upstreams by TLS, and the server's facts about the client.
    Secure,
    /// Cached pages.
    Pages {
        /// With edits and purges.
        purges: bool,
        /// With ESI pages.
        with_esi: bool,
    },
}

impl RequestMix {
    /// The same mix without purges.
    #[must_use]
    pub const fn without_purges(self) -> Self {
        match self {
            Self::Pages { with_esi, .. } => Self::Pages { purges: false, with_esi },
            other => other,
        }
    }
}
