//! The ruling of a request: the result of its `.htaccess` files, until its response is sent.

use std::rc::Rc;
use std::sync::Arc;

use bolide_htaccess::{
    Applied, AuthSetup, CacheOrders, Effort, EnvTable, HtaccessFile, OutputFilter, SectionChoices,
    ServerPlace, add_cookie,
};
use bolide_http::Method;

use super::looks::{AheadState, LookOf};
use crate::request::Request;

/// The source of directives.
#[derive(Clone, Debug)]
pub(crate) enum LevelSource {
    /// A `.htaccess` file.
    Read(Rc<HtaccessFile>),
    /// `apache_directory`
    Configured(Arc<ServerPlace>),
}

/// The directives of one directory.
#[derive(Clone, Debug)]
pub(crate) struct HtaccessLevel {
    /// The directory, with a final slash; empty if the section belongs to none.
    pub(crate) directory: Box<[u8]>,
    pub(crate) source: LevelSource,
}

impl HtaccessLevel {
    /// Whether both are the same, from the same reading of the file.
    fn is(&self, other: &Self) -> bool {
        let is_same = match (&self.source, &other.source) {
            (LevelSource::Read(one), LevelSource::Read(other)) => Rc::ptr_eq(one, other),
            (LevelSource::Configured(one), LevelSource::Configured(other)) => {
                Arc::ptr_eq(one, other)
            }
            _ => false,
        };
        is_same && self.directory == other.directory
    }

    /// The directory and its directives.
    pub(super) fn parts(&self) -> (&[u8], &HtaccessFile) {
        let file = match &self.source {
            LevelSource::Read(file) => &**file,
            LevelSource::Configured(place) => place.file(),
        };
        (&self.directory, file)
    }
}

/// The files and sections that apply to a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct HtaccessPlaces {
    pub(crate) levels: Vec<HtaccessLevel>,
    /// The last component of the path on disk.
    pub(crate) name: Vec<u8>,
    /// The sections that apply; none until they were evaluated.
    pub(crate) choices: Option<SectionChoices>,
    /// Whether a directive concerns response fields.
    pub(crate) describes: bool,
}

impl HtaccessPlaces {
    /// The directives that apply.
    pub(crate) fn applied(&self) -> Applied<'_> {
        let levels = self.levels.iter().map(HtaccessLevel::parts);
        Applied::again(levels, &self.name, self.choices.as_ref())
    }

    /// Its approximate memory in bytes, without the files, which belong to the table of open files.
    fn bytes(&self) -> usize {
        let level = |level: &HtaccessLevel| level.directory.len() + size_of_val(level);
        let choices = |all: &SectionChoices| all.conditions.len() + all.names.len();
        self.levels.iter().map(level).sum::<usize>()
            + self.choices.as_ref().map_or(0, choices)
            + self.name.capacity()
            + size_of_val(self)
    }
}

/// The result of `.htaccess` files for a request. It survives internal redirects: each round
/// evaluates the files again.
#[derive(Clone, Debug, Default)]
pub(crate) struct HtaccessRuling {
    /// The directives that apply; none if there are none.
    pub(crate) places: Option<Rc<HtaccessPlaces>>,
    /// The environment variables.
    pub(crate) env: EnvTable,
    /// The environment variables of the next round.
    pub(crate) next_env: EnvTable,
    /// Names of request fields that the response depends on.
    pub(crate) varies: Vec<Box<[u8]>>,
    /// Values of `Set-Cookie`.
    pub(crate) cookies: Vec<Vec<u8>>,
    /// Whether rewrite rules do not apply any more (`END`).
    pub(crate) is_final: bool,
    /// Whether the path is that of an index, which is not rewritten.
    pub(crate) is_index: bool,
    /// Whether the next round is about a path that is searched for like an index.
    pub(crate) leads_to_index: bool,
    /// Whether it is stored and leads to another internal path whose round depends on it.
    pub(crate) opens_round: bool,
    /// Whether `try_files` found the path.
    pub(crate) is_found: bool,
    /// Whether `PATH_INFO` is dropped.
    pub(crate) drops_path_info: bool,
    /// The media type and the handler of a rule.
    pub(crate) media_type: Option<Vec<u8>>,
    pub(crate) handler: Option<Vec<u8>>,
    /// The program that answers.
    pub(crate) program: Option<Rc<HandlerProgram>>,
    /// The authenticated user.
    pub(crate) user: Option<Vec<u8>>,
    /// The proof of their identity.
    pub(crate) proof: Option<Rc<UserProof>>,
    /// The limit of the request body in bytes; 0 for none.
    pub(crate) body_max: u64,
    /// Whether directives concern content codings.
    pub(crate) has_codings: bool,
    /// The body filters for the extensions of the name.
    pub(crate) named_filters: Vec<OutputFilter>,
    /// The error that an error document of files is sent for.
    pub(crate) stands_for: Option<Rc<FirstError>>,
    /// The directives of the previous round, which granted access; or those of the error that this
    /// round's document is sent for.
    pub(crate) before: Option<Rc<HtaccessPlaces>>,
    /// The path whose links were checked in this round.
    pub(crate) followed: Option<Vec<u8>>,
    /// Paths whose link state was determined in this round.
    pub(crate) links: Vec<(Box<[u8]>, bool)>,
    /// The state of looks ahead in this round.
    pub(crate) ahead: Option<Box<AheadState>>,
    /// The fields that `RequestHeader` replaced in this round, with the client's values.
    pub(crate) replaced: Vec<ReplacedField>,
}

/// The files and realm by which a password was accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UserProof {
    realm: Box<[u8]>,
    user_file: Option<Box<[u8]>>,
    group_file: Option<Box<[u8]>>,
}

impl UserProof {
    pub(super) fn new(setup: &AuthSetup<'_>) -> Self {
        Self {
            realm: setup.realm.into(),
            user_file: setup.user_file.map(Box::from),
            group_file: setup.group_file.map(Box::from),
        }
    }

    /// Whether a place uses the same files and realm.
    pub(super) fn is_by(&self, setup: &AuthSetup<'_>) -> bool {
        let Self { realm, user_file, group_file } = self;
        **realm == *setup.realm
            && user_file.as_deref() == setup.user_file
            && group_file.as_deref() == setup.group_file
    }
}

/// A program that answers in place of the location.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HandlerProgram {
    /// Its location.
    pub(super) location: u32,
    /// The script.
    pub(crate) file: Box<[u8]>,
    /// The length of what follows the script in the path.
    pub(super) path_info: usize,
}

impl HandlerProgram {
    /// The program that answers a request, if it is at the program's location.
    pub(crate) fn of(request: &Request) -> Option<&Self> {
        let program = request.htaccess.as_ref()?.program.as_deref()?;
        (program.location == request.location).then_some(program)
    }

    /// Splits the path into that of the script and what follows it.
    pub(crate) fn split<'a>(&self, uri: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        uri.split_at(uri.len().saturating_sub(self.path_info))
    }

    /// Its approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.file.len() + size_of_val(self)
    }
}

/// An error, and the state of the request at that time.
#[derive(Debug)]
pub(crate) struct FirstError {
    pub(super) status: u16,
    pub(super) location: u32,
    pub(super) uri: Vec<u8>,
    pub(super) ruling: Rc<HtaccessRuling>,
}

/// A client's field with its original values.
pub(crate) type ReplacedField = (Box<[u8]>, Vec<Box<[u8]>>);

impl HtaccessRuling {
    /// The next round is about an index: rewriting does not apply to its name.
    pub(crate) fn enter_index(&mut self) {
        (self.is_index, self.opens_round) = (true, false);
        self.next_env = self.env.clone();
    }

    /// Whether it contains nothing but the fact that the next round is about an index.
    pub(super) fn is_only_index(&self) -> bool {
        self.is_index
            && !self.is_final
            && !self.is_found
            && self.next_env.is_empty()
            && self.varies.is_empty()
            && self.cookies.is_empty()
            && self.replaced.is_empty()
            && self.user.is_none()
            // A round that waited skips its previous results: it does not begin anew.
            && self.followed.is_none()
            && self.links.is_empty()
            // The media type may depend on the query.
            && self.media_type.is_none()
    }

    /// Its approximate memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        let text = |text: &Option<Vec<u8>>| text.as_ref().map_or(0, Vec::capacity);
        let texts = [&self.media_type, &self.handler, &self.user, &self.followed].map(text);
        let places = [&self.places, &self.before];
        let field = |(name, values): &ReplacedField| {
            name.len() + values.iter().map(|value| value.len() + size_of_val(value)).sum::<usize>()
        };
        let parts = [
            self.env.bytes(),
            self.next_env.bytes(),
            self.varies.iter().map(|name| name.len() + size_of_val(name)).sum(),
            self.cookies.iter().map(|value| value.capacity() + size_of_val(value)).sum(),
            self.links.iter().map(|link| link.0.len() + size_of_val(link)).sum(),
            self.replaced.iter().map(|one| field(one) + size_of_val(one)).sum(),
            places.into_iter().flatten().map(|places| places.bytes()).sum(),
            texts.iter().sum(),
            self.program.as_ref().map_or(0, |program| program.bytes()),
            size_of_val(self),
        ];
        parts.iter().sum()
    }

    /// `try_files` found another path: the next round evaluates its `.htaccess` files as well.
    pub(crate) fn enter_found(&mut self) {
        self.enter_index();
        self.is_found = true;
    }

    /// The environment variables that can differ between requests for one URL, so that a cache key
    /// needs them. Empty ones do not count, and `REDIRECT_URL` and its kin follow from the URL.
    pub(super) fn exported_variables(&self) -> EnvTable {
        let of_the_way = |name: &[u8]| {
            let mut name = name;
            let mut is_redirected = false;
            while let Some(rest) = name.strip_prefix(b"REDIRECT_") {
                (name, is_redirected) = (rest, true);
            }
            is_redirected && matches!(name, b"STATUS" | b"URL" | b"QUERY_STRING")
        };
        let exported =
            self.env.exported().filter(|(name, value)| !value.is_empty() && !of_the_way(name));
        let mut table = EnvTable::default();
        exported.for_each(|(name, value)| table.set(name, value));
        table
    }

    /// Whether it must be kept although no directive applies to the path.
    pub(super) fn is_carried(&self) -> bool {
        self.is_final
            || self.is_index
            || self.is_found
            || !self.next_env.is_empty()
            || self.next_env.cache().is_concluded()
            || !self.cookies.is_empty()
    }

    /// Whether there was a round before this one.
    pub(super) fn is_later(&self) -> bool {
        self.is_index || self.is_final || self.next_env.has_variables()
    }

    /// The last component of the path on disk.
    pub(super) fn name(&self) -> &[u8] {
        self.places.as_ref().map_or(b"", |places| &places.name)
    }

    /// Whether the path is that of an index or a fallback.
    pub(super) const fn is_looked_for(&self) -> bool {
        self.is_index && !self.is_found
    }

    /// Adds values of `Set-Cookie`.
    pub(super) fn add_cookies(&mut self, cookies: impl Iterator<Item = Vec<u8>>, effort: &Effort) {
        cookies.for_each(|cookie| add_cookie(&mut self.cookies, cookie, effort));
    }

    /// Whether the round is part of another request: a search for an index, or a look ahead.
    pub(super) fn is_part(&self) -> bool {
        self.is_looked_for() || self.ahead.as_ref().is_some_and(|ahead| ahead.is_look())
    }

    /// The method to evaluate: as in Apache, an index is searched for with `GET`.
    pub(super) fn method<'a>(&self, request: &'a Request) -> &'a [u8] {
        match self.is_part() {
            true => b"GET",
            false => method_name(request),
        }
    }

    /// The sections of the previous round, if the same files apply: as in Apache, access is not
    /// checked again then.
    pub(super) fn settled_before(&self) -> Option<SectionChoices> {
        let before = self.before.as_ref()?;
        let now = self.places.as_ref()?;
        let is_same = before.levels.len() == now.levels.len()
            && before.levels.iter().zip(&now.levels).all(|(one, other)| one.is(other));
        before.choices.clone().filter(|_| is_same)
    }

    /// That of a look ahead from here, or of an entry in a listing, before it is evaluated.
    pub(super) fn of_look(&self, of: LookOf) -> Self {
        let mut look = Self {
            before: self.places.clone(),
            next_env: self.env.clone(),
            ahead: Some(Box::new(AheadState::new(of))),
            ..Self::default()
        };
        look.begin_env(false);
        look
    }

    /// Sets the initial environment of a round, for the path of the client's request or for another
    /// one.
    pub(super) fn begin_env(&mut self, is_asked: bool) {
        self.env = self.next_env.clone();
        self.env.enter_round(is_asked);
    }

    /// The round is over: what its files said of the page cache is said for the next one, too,
    /// whatever leads there; `is_left` if rules do, so that not all of them were reached.
    pub(super) fn keep_cache_orders(&mut self, is_left: bool) {
        if self.places.is_none() {
            return;
        }
        if !is_left {
            self.env.conclude();
        }
        self.next_env.keep_orders(&self.env);
    }

    /// The directives for the page cache, so far.
    pub(crate) const fn cache_orders(&self) -> &CacheOrders {
        self.env.cache()
    }

    /// Whether a script continues when its client disconnects (LiteSpeed's `E=noabort:1`).
    pub(crate) fn ignores_client_abort(&self) -> bool {
        self.env.of(b"noabort").is_some_and(|value| !matches!(value, b"" | b"0"))
    }

    /// The directives for a missing index of this ruling's directory.
    pub(super) fn of_missing_index(&self) -> Self {
        let (user, proof, before) = (self.user.clone(), self.proof.clone(), self.places.clone());
        let mut own = Self { user, proof, before, ..Self::default() };
        own.enter_index();
        own.next_env = self.env.clone();
        own.begin_env(false);
        own
    }

    /// Clears the results for the previous path, for another round.
    pub(super) fn begin_round(&mut self, is_asked: bool) {
        self.places = None;
        self.opens_round = false;
        self.begin_env(is_asked);
        // As in Apache, the type that a rule gave a directory is that of its index.
        if !self.is_looked_for() {
            self.media_type = None;
        }
        (self.has_codings, self.drops_path_info) = (false, false);
        self.named_filters.clear();
        self.body_max = 0;
        (self.handler, self.program) = (None, None);
    }
}

/// The environment of the next round.
pub(super) fn next_round(
    env: &EnvTable,
    request: &Request,
    args: Option<&[u8]>,
    status: u16,
) -> EnvTable {
    let mut next = env.redirected();
    next.set(b"REDIRECT_STATUS", status.to_string().as_bytes());
    next.set(b"REDIRECT_URL", &request.uri);
    if let Some(args) = args {
        next.set(b"REDIRECT_QUERY_STRING", args);
    }
    next
}

/// The environment of an error document.
pub(super) fn round_of_error(ruling: &HtaccessRuling, request: &Request, status: u16) -> EnvTable {
    let mut next = next_round(&ruling.env, request, request.args.as_deref(), status);
    next.set(b"REDIRECT_REQUEST_METHOD", method_name(request));
    next
}

/// When the request began, in microseconds since 1970.
pub(super) fn received(request: &Request) -> u64 {
    request.started.unix_seconds().saturating_mul(1_000_000)
}

/// The method's name.
pub(super) fn method_name(request: &Request) -> &[u8] {
    match request.method {
        Method::Get => b"GET",
        Method::Head => b"HEAD",
        Method::Post => b"POST",
        _ => &request.head().method_text,
    }
}
