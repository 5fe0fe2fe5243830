//! The requests of a client, and a response as it arrived.

use crate::assembly::AssemblyPiece;
use crate::chance::Chance;
use crate::dav::{self, DavAct, DavVerb};
use crate::pages::{DROPS, PagePlace, SIZES, whole};
use crate::upkeep::CREDENTIALS;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A file, by its place on the disk.
    File(&'static str),
    /// A file that is reached through `try_files`.
    Fallback,
    /// A file that leaves at a pace.
    Paced,
    /// A directory by its index.
    Index(&'static str),
    /// A directory without its slash.
    Directory,
    /// Something that never was there.
    Missing,
    /// The number of the configuration.
    Version,
    /// What the server knows of its client.
    Who,
    /// The names of a directory.
    Listed,
    /// A file for those with a password, by one of some credentials.
    Guarded(usize),
    /// Somewhere to send bodies to.
    Upload,
    /// A file, by a method that it does not answer.
    Refused,
    /// Files, by WebDAV.
    Dav(DavAct),
    /// An application, under one of its locations, for so many bytes of answer.
    App(&'static str, usize),
    /// A page of so many bytes and levels that is put together.
    Assembly(usize, u8),
    /// A page that is kept, or not.
    Page(PagePlace, usize),
    /// A change of a page, which drops things in one of some ways.
    Edit(u64, usize),
    /// A page is to be dropped.
    Purge(PagePlace, usize),
    /// A page is to be asked for again.
    Refresh(PagePlace, usize),
}

impl What {
    /// Whether it is judged by [`crate::pages::PageModel`].
    #[must_use]
    pub const fn is_page(self) -> bool {
        matches!(self, Self::Page(..) | Self::Edit(..) | Self::Purge(..) | Self::Refresh(..))
    }

    /// Whether an application answers.
    #[must_use]
    pub const fn is_app(self) -> bool {
        self.is_page() || matches!(self, Self::App(..) | Self::Assembly(..))
    }

    /// Whether the answer is not made at once: an application works, or a limit holds it back.
    #[must_use]
    pub const fn may_wait(self) -> bool {
        self.is_app()
            || matches!(self, Self::Paced | Self::Guarded(_) | Self::Listed | Self::Dav(_))
    }
}

/// Where applications are, each with settings of its own.
pub const APPS: &[&str] = &["/app", "/stream", "/kept", "/tight", "/heedless"];

/// The same where names lead to most of them.
pub const NAME_APPS: &[&str] = &["/name0", "/name1", "/name2", "/name4", "/named", "/app"];

/// The same where some of them are spoken to by TLS.
pub const SECURE_APPS: &[&str] = &["/app", "/safe", "/safe", "/shown", FALSE];

/// The same where bodies are kept in files.
pub const UPKEEP_APPS: &[&str] = &["/app", "/filed", "/filed"];

/// The one that is never who it should be.
pub const FALSE: &str = "/false";

/// The body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimUpload {
    /// None.
    None,
    /// So many bytes, announced.
    Length(usize),
    /// So many bytes in chunks, or frames without an announcement.
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
pub struct SimAsk {
    /// Its number among those of its client.
    pub number: u32,
    /// Who asks.
    pub client: usize,
    /// What is asked for.
    pub what: What,
    /// `HEAD` instead of `GET`.
    pub head_only: bool,
    /// First and last byte.
    pub range: Option<(u64, u64)>,
    /// Whether gzip is accepted.
    pub gzip: bool,
    /// A tag that the client holds.
    pub known: Option<String>,
    /// The body.
    pub upload: SimUpload,
    /// When it began to leave.
    pub since: u64,
    /// The port it was sent to.
    pub port: u16,
    /// The session and the language of a client that asks for pages.
    pub traits: Option<(Option<usize>, &'static str)>,
    /// What the server has to know of the client.
    pub told: String,
    /// It must be answered with an error.
    pub is_barred: bool,
    /// It tells the log who it is.
    pub is_tracked: bool,
}

impl SimAsk {
    /// Any request.
    pub fn any(client: usize, number: u32, chance: &mut Chance, weights: Weights) -> Self {
        if let Weights::Pages { purges, wholes } = weights {
            return Self::page(client, number, chance, (purges, wholes));
        }
        let files: &[&'static str] = match weights {
            Weights::Large => &["/www/big.bin", "/www/big.txt", "/www/style.css"],
            _ => &crate::site_files::FILES[1..6],
        };
        let file = What::File(files[chance.index(files.len())]);
        if weights == Weights::Assemblies && !chance.one_in(8) {
            let depth = chance.below(3) as u8;
            return Self::assembly(client, number, depth, chance);
        }
        let (apps, is_app) = match weights {
            Weights::Apps => (APPS, !chance.one_in(8)),
            Weights::Names => (NAME_APPS, !chance.one_in(8)),
            Weights::Secure => (SECURE_APPS, chance.one_in(2)),
            Weights::Dav => (dav::APPS, chance.one_in(4)),
            Weights::Upkeep | Weights::Dearth => (UPKEEP_APPS, chance.one_in(3)),
            _ => (APPS, false),
        };
        let act =
            (weights == Weights::Dav && !is_app && !chance.one_in(16)).then(|| DavAct::any(chance));
        let asks_who = weights == Weights::Secure && chance.one_in(3);
        let is_guarded = matches!(weights, Weights::Upkeep | Weights::Dearth) && chance.one_in(4);
        let is_listed = weights == Weights::Dearth && chance.one_in(4);
        let what = match chance.below(17) {
            _ if is_app => What::App(apps[chance.index(apps.len())], chance.size(200_000)),
            _ if asks_who => What::Who,
            _ if let Some((act, _)) = act => What::Dav(act),
            _ if is_listed => What::Listed,
            _ if is_guarded => What::Guarded(chance.index(CREDENTIALS.len())),
            0 => What::Index(["/www/index.html", "/www/docs/index.html"][chance.index(2)]),
            1 => What::Directory,
            2 => What::Missing,
            3 | 4 => What::Version,
            5 | 6 => What::Upload,
            7 => What::Refused,
            8 => What::Fallback,
            9 => What::Paced,
            _ => file,
        };
        let upload = match what {
            What::Dav(DavAct { verb: DavVerb::Put, .. }) => {
                let size = act.map_or(0, |(_, size)| size);
                if chance.one_in(3) { SimUpload::Pieces(size) } else { SimUpload::Length(size) }
            }
            What::Dav(_) => SimUpload::None,
            What::Upload | What::Refused => match chance.below(4) {
                0 => SimUpload::Length(chance.size(BODY_MAX)),
                1 => SimUpload::Pieces(chance.size(BODY_MAX)),
                2 => SimUpload::Length(chance.size(300)),
                _ => SimUpload::Length(BODY_MAX + chance.size(200_000)),
            },
            What::App(..) => match chance.below(5) {
                0 => SimUpload::Length(chance.size(BODY_MAX)),
                1 => SimUpload::Pieces(chance.size(BODY_MAX)),
                2 => SimUpload::Length(chance.size(3000)),
                _ => SimUpload::None,
            },
            _ => SimUpload::None,
        };
        let is_file = matches!(what, What::File(_));
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
            traits: None,
            told: String::new(),
            is_barred: false,
            is_tracked: weights == Weights::Upkeep,
        }
    }

    /// A request for a page that is put together.
    fn assembly(client: usize, number: u32, depth: u8, chance: &mut Chance) -> Self {
        let session = chance.one_in(2).then_some(client % 4);
        Self {
            number,
            client,
            what: What::Assembly(chance.size(30_000), depth),
            head_only: chance.one_in(10),
            range: None,
            gzip: chance.one_in(3),
            known: None,
            upload: SimUpload::None,
            since: 0,
            port: 0,
            traits: Some((session, "")),
            told: String::new(),
            is_barred: false,
            is_tracked: false,
        }
    }

    /// A request for a page, or something that drops pages.
    fn page(
        client: usize,
        number: u32,
        chance: &mut Chance,
        (purges, wholes): (bool, bool),
    ) -> Self {
        let place = PagePlace::ALL[chance.index(PagePlace::ALL.len())];
        let place = if wholes && chance.one_in(2) { PagePlace::Whole } else { place };
        let page = chance.index(SIZES.len());
        let kind = if purges { chance.below(16) } else { 15 };
        let what = match kind {
            0 | 1 => What::Edit(chance.below(DROPS), page),
            2 | 3 => What::Purge(place, page),
            4 if !place.is_zone() => What::Refresh(place, page),
            _ => What::Page(place, page),
        };
        let is_page = matches!(what, What::Page(..));
        let session = (client % 4).checked_sub(1);
        let upload = if matches!(what, What::Edit(..)) { chance.size(300) } else { 0 };
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
            traits: Some((session, ["", "de", "en"][chance.index(3)])),
            told: String::new(),
            is_barred: false,
            is_tracked: false,
        }
    }

    /// The value of the cookie that names the client's session.
    #[must_use]
    pub fn session(&self) -> Option<String> {
        let (session, _) = self.traits?;
        session.map(|session| format!("{session:020}"))
    }

    /// The language that is asked for.
    #[must_use]
    pub fn lang(&self) -> &'static str {
        self.traits.map_or("", |(_, lang)| lang)
    }

    /// What no other request has in its cookies.
    #[must_use]
    pub fn visitor(&self) -> String {
        format!("c{}n{}", self.client, self.number)
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self.what {
            What::Dav(act) => act.method(),
            What::Upload | What::Refused => "POST",
            What::App(..) if !matches!(self.upload, SimUpload::None) => "POST",
            What::Edit(..) => "POST",
            What::Purge(..) => "PURGE",
            What::Refresh(..) => "REFRESH",
            _ if self.head_only => "HEAD",
            _ => "GET",
        }
    }

    /// The path and query.
    #[must_use]
    pub fn target(&self) -> String {
        match self.what {
            What::File(path) => path["/www".len()..].to_owned(),
            What::Dav(act) => act.target(),
            What::Fallback => "/try/x".to_owned(),
            What::Paced => "/paced/style.css".to_owned(),
            What::Index(path) => path["/www".len()..path.len() - "index.html".len()].to_owned(),
            What::Directory => "/docs".to_owned(),
            What::Missing => format!("/missing?{}", self.number),
            What::Version => "/version".to_owned(),
            What::Who => "/who".to_owned(),
            What::Guarded(_) => "/guarded/small.txt".to_owned(),
            What::Listed => "/listed/".to_owned(),
            What::Upload => "/upload".to_owned(),
            What::Refused => "/small.txt".to_owned(),
            What::App(place, size) => format!("{place}?{}&{size}", self.token()),
            What::Assembly(size, depth) => AssemblyPiece::page(self.token(), size, depth).target(),
            What::Page(place, page) | What::Purge(place, page) | What::Refresh(place, page) => {
                whole::target((place, page))
            }
            What::Edit(number, page) => format!("/edit?edit&{number}.{page}"),
        }
    }

    /// Names it among all requests.
    #[must_use]
    pub fn token(&self) -> String {
        match self.what {
            what if what.is_page() => self.target(),
            _ => format!("c{}n{}", self.client, self.number),
        }
    }

    /// Fields but for the host and what frames the body.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        if self.traits.is_some() {
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
        if self.is_tracked {
            fields.push(("x-ask", self.visitor()));
            fields.push(("x-client", self.client.to_string()));
        }
        if let What::Guarded(which) = self.what {
            fields.push(("authorization", CREDENTIALS[which].to_owned()));
        }
        if let What::Dav(act) = self.what {
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

    /// The file that decides the answer.
    pub(crate) const fn path(&self) -> Option<&'static str> {
        match self.what {
            What::File(path) | What::Index(path) => Some(path),
            What::Dav(DavAct { verb: DavVerb::Get, path, .. }) => Some(path),
            What::Paced => Some("/www/style.css"),
            What::Fallback | What::Refused | What::Guarded(0) => Some("/www/small.txt"),
            What::Directory => Some("/www/docs"),
            What::Missing => Some("/www/missing"),
            _ => None,
        }
    }
}

/// What kind of requests a client makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Everything.
    Mixed,
    /// Above all large files.
    Large,
    /// Above all applications.
    Apps,
    /// Above all pages that are put together.
    Assemblies,
    /// The same as below, and directories.
    Dearth,
    /// Above all files by WebDAV, and responses that become files.
    Dav,
    /// Applications, bodies in files and passwords, each with a name for the log.
    Upkeep,
    /// Above all applications whose addresses names have.
    Names,
    /// Above all applications that are spoken to by TLS, and what the server knows of its client.
    Secure,
    /// Pages that are kept, and maybe what drops them.
    Pages {
        /// Whether something is dropped.
        purges: bool,
        /// Whether some pages are put together.
        wholes: bool,
    },
}

impl Weights {
    /// The same, with nothing dropped.
    #[must_use]
    pub const fn without_purges(self) -> Self {
        match self {
            Self::Pages { wholes, .. } => Self::Pages { purges: false, wholes },
            other => other,
        }
    }
}

/// An answer as it arrived, complete.
#[derive(Clone, Debug, Default)]
pub struct SimAnswer {
    /// The status code.
    pub status: u16,
    /// Names in lower case, and values.
    pub fields: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
}

impl SimAnswer {
    /// The first field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Whether there is no body whatever the fields say.
    #[must_use]
    pub const fn is_bodiless(status: u16, head_only: bool) -> bool {
        head_only || matches!(status, 100..=199 | 204 | 304)
    }
}
