//! The block that is being read: what it inherits, and what is its own.

use std::collections::HashSet;
use std::sync::Arc;

use crate::ast::DirectiveNode;
use crate::defaults;
use crate::directive::Contexts;
use crate::drafts::{AcmeDraft, CacheDraft, LinkForms, MapKeys, OriginDraft, TlsDraft};
use crate::model::{
    AddHeader, DirectiveFamily, Except, Handler, LocationId, LocationSettings, Matcher, Pass,
    Protocol, Redirect, RewriteOp, ServerName, ServerSettings, SourcePlace, TryFiles,
    WrittenLocation,
};

/// The two directives that share one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootWord {
    /// `root`
    Root,
    /// `alias`
    Alias,
}

impl RootWord {
    /// The directive's name.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Alias => "alias",
        }
    }
}

/// The state of the block being read.
#[derive(Clone, Debug)]
pub(crate) struct BlockScope {
    pub(crate) context: Contexts,
    pub(crate) settings: Arc<LocationSettings>,
    pub(crate) server: Arc<ServerSettings>,
    pub(crate) tls: Arc<TlsDraft>,
    pub(crate) http2: bool,
    pub(crate) http3: bool,
    pub(crate) names: Vec<ServerName>,
    pub(crate) primary_name: Option<Arc<str>>,
    pub(crate) has_listen: bool,
    pub(crate) matcher: Matcher,
    pub(crate) name: Arc<[u8]>,
    pub(crate) internal: bool,
    pub(crate) handler: Handler,
    /// Instructions of the rewrite phase, with their order numbers.
    pub(crate) rewrite: Vec<(DirectiveNode, SourcePlace, RewriteOp)>,
    /// Its directives, and their places.
    pub(crate) written: Vec<WrittenLocation>,
    /// Its `add_header`s and `add_trailer`s.
    pub(crate) headers: Vec<AddHeader>,
    pub(crate) trailers: Vec<AddHeader>,
    /// Whether this block has `allow` or `deny`.
    pub(crate) has_access: bool,
    /// Whether this block has `valid_referers`, and whether with expressions.
    pub(crate) has_referers: bool,
    pub(crate) has_referer_regexes: bool,
    /// The forms of secure links in this block.
    pub(crate) links: LinkForms,
    pub(crate) try_files: Option<Arc<TryFiles>>,
    pub(crate) except: Option<Except>,
    pub(crate) nested: Vec<LocationId>,
    /// Which of them occupies the one slot of this block.
    pub(crate) root_word: Option<RootWord>,
    /// Whether this block has `access_log off`.
    pub(crate) access_log_off: bool,
    /// Upstream buffer sizes that were written, not derived, of each family.
    pub(crate) origins: [OriginDraft; DirectiveFamily::ALL.len()],
    /// Where its certificates come from.
    pub(crate) acme: AcmeDraft,
    /// The cache directives of the block, of each family.
    pub(crate) caches: [CacheDraft; DirectiveFamily::ALL.len()],
    /// Directives that are sets, with the words that they had in this block.
    pub(crate) said: HashSet<Vec<u8>>,
    /// Hosts of `valid_referers` in this block.
    pub(crate) referers: MapKeys,
    /// Rows used in this block, by number.
    pub(super) seen: Seen,
}

/// A set of row numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen([u64; 14]);

impl Seen {
    /// Adds a number; returns whether it was in already.
    pub(super) fn insert(&mut self, number: u16) -> bool {
        let (word, bit) = (usize::from(number / 64), 1_u64 << (number % 64));
        debug_assert!(word < self.0.len(), "the set holds every row");
        let Some(word) = self.0.get_mut(word) else { return false };
        let was = *word & bit != 0;
        *word |= bit;
        was
    }
}

impl BlockScope {
    pub(super) fn outermost(settings: LocationSettings) -> Self {
        Self {
            context: Contexts::MAIN,
            settings: Arc::new(settings),
            server: Arc::new(defaults::server()),
            tls: Arc::new(TlsDraft {
                conf: defaults::tls(),
                certificates: Vec::new(),
                keys: Vec::new(),
            }),
            http2: false,
            http3: true,
            names: Vec::new(),
            primary_name: None,
            has_listen: false,
            matcher: Matcher::Root,
            name: Arc::from(&b""[..]),
            internal: false,
            handler: Handler::Static,
            rewrite: Vec::new(),
            written: Vec::new(),
            headers: Vec::new(),
            trailers: Vec::new(),
            has_access: false,
            has_referers: false,
            has_referer_regexes: false,
            links: LinkForms::default(),
            try_files: None,
            except: None,
            nested: Vec::new(),
            root_word: None,
            access_log_off: false,
            origins: Default::default(),
            acme: AcmeDraft::default(),
            caches: Default::default(),
            said: HashSet::new(),
            referers: MapKeys::default(),
            seen: Seen::default(),
        }
    }

    /// A block inside this one: it inherits the inheritable settings and has none of its own.
    pub(super) fn inner(&self, context: Contexts) -> Self {
        Self {
            context,
            settings: self.inner_settings(),
            server: Arc::clone(&self.server),
            tls: Arc::clone(&self.tls),
            http2: self.http2,
            http3: self.http3,
            names: Vec::new(),
            primary_name: None,
            has_listen: false,
            matcher: Matcher::Root,
            name: Arc::clone(&self.name),
            internal: self.internal,
            handler: Handler::Static,
            rewrite: Vec::new(),
            written: Vec::new(),
            headers: Vec::new(),
            trailers: Vec::new(),
            has_access: false,
            has_referers: false,
            has_referer_regexes: false,
            links: LinkForms::default(),
            try_files: None,
            except: None,
            nested: Vec::new(),
            root_word: None,
            access_log_off: false,
            origins: self.origins,
            acme: AcmeDraft { wanted: None, auto: self.acme.auto.clone() },
            caches: Default::default(),
            said: HashSet::new(),
            referers: MapKeys::default(),
            seen: Seen::default(),
        }
    }

    /// The settings that blocks inside begin with: as in nginx, `proxy_redirect default` is that of
    /// the outermost `proxy_pass`.
    fn inner_settings(&self) -> Arc<LocationSettings> {
        let mut settings = Arc::clone(&self.settings);
        let Handler::Pass(Pass { protocol: Protocol::Http, url: Some(url), .. }) = &self.handler
        else {
            return settings;
        };
        let is_own = |rule: &Redirect| matches!(rule, Redirect::Default(None));
        let proxied = settings.origin_of(DirectiveFamily::Proxy);
        if proxied.proxy.redirects.iter().any(is_own) {
            let proxied = Arc::make_mut(&mut settings).origin_mut(DirectiveFamily::Proxy);
            let rules = Arc::make_mut(&mut Arc::make_mut(&mut proxied.proxy).redirects);
            for rule in rules.iter_mut().filter(|rule| is_own(rule)) {
                *rule = Redirect::Default(Some(Arc::clone(url)));
            }
        }
        settings
    }
}
