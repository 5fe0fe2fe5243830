//! The locations with cached pages, and their settings.

/// The locations with cached pages. Each has settings and an application of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageLocation {
    /// Public by LiteSpeed's fields.
    Page,
    /// Public by Cache-Control.
    Http,
    /// Private.
    Private,
    /// Private for requests with a session, public for others.
    Mixed,
    /// Not cacheable.
    NoStore,
    /// Sometimes public, sometimes not cacheable.
    Flip,
    /// Public, and often larger than `page_cache_max_object`.
    Brief,
    /// Cached by `fastcgi_cache` with lock, background update, revalidation and stale responses.
    Zone,
    /// Cached from the second request (`fastcgi_cache_min_uses`), without a lock.
    Rare,
    /// Cached with a lock whose timeout is short, without background update.
    Lone,
    /// Assembled from other pages by ESI.
    Esi,
}

/// The locations of all pages.
pub const LOCATIONS: &str = "
        location /page { fastcgi_pass app; page_cache auto; page_cache_purge_allow all;
            fastcgi_param QUERY_STRING $query_string; fastcgi_param SERVER_PORT $server_port;
            fastcgi_param REQUEST_METHOD $request_method; page_cache_stale 2s error=6s;
            cache_status on; }
        location /http { fastcgi_pass kept; fastcgi_keep_conn on; page_cache auto;
            fastcgi_param QUERY_STRING $query_string; fastcgi_param SERVER_PORT $server_port;
            fastcgi_param REQUEST_METHOD $request_method;
            page_cache_purge_allow all; page_cache_stale off; }
        location /own { fastcgi_pass app; page_cache auto; page_cache_purge_allow all;
            page_cache_stale 1s; }
        location /mixed { fastcgi_pass kept; page_cache auto; page_cache_purge_allow all;
            page_cache_stale 2s error=6s; }
        location /never { fastcgi_pass app; page_cache auto; page_cache_purge_allow all; }
        location /flip { fastcgi_pass app; page_cache auto; page_cache_purge_allow all; }
        location /brief { fastcgi_pass app; page_cache auto; page_cache_purge_allow all;
            page_cache_max_object 8k; }
        location /whole { fastcgi_pass app; page_cache auto; page_cache_purge_allow all;
            page_cache_stale 2s error=6s; }
        location /edit { fastcgi_pass app; page_cache auto; }
        location /zone { fastcgi_pass app; fastcgi_cache zone; fastcgi_cache_key $request_uri;
            fastcgi_cache_valid 200 1s; fastcgi_cache_lock on; fastcgi_cache_lock_timeout 20s;
            fastcgi_cache_lock_age 20s; fastcgi_cache_background_update on;
            fastcgi_cache_revalidate on; fastcgi_cache_purge PURGE from all;
            fastcgi_cache_use_stale error timeout invalid_header updating http_503; }
        location /rare { fastcgi_pass app; fastcgi_cache few; fastcgi_cache_key $request_uri;
            fastcgi_cache_valid 200 2s; fastcgi_cache_min_uses 2; fastcgi_cache_use_stale error;
            fastcgi_cache_purge PURGE from all; }
        location /lone { fastcgi_pass app; fastcgi_cache few; fastcgi_cache_key $request_uri;
            fastcgi_cache_valid 200 2s; fastcgi_cache_lock on; fastcgi_cache_lock_timeout 1s;
            fastcgi_cache_lock_age 1s; fastcgi_cache_purge PURGE from all; }
";

/// The pages of each location: bytes behind the first line.
pub const SIZES: [usize; 4] = [300, 3_000, 12_000, 40_000];

impl PageLocation {
    /// All but [`Self::Esi`].
    pub const ALL: [Self; 10] = [
        Self::Page,
        Self::Http,
        Self::Private,
        Self::Mixed,
        Self::NoStore,
        Self::Flip,
        Self::Brief,
        Self::Zone,
        Self::Rare,
        Self::Lone,
    ];

    /// Its name in URLs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Http => "http",
            Self::Private => "own",
            Self::Mixed => "mixed",
            Self::NoStore => "never",
            Self::Flip => "flip",
            Self::Brief => "brief",
            Self::Zone => "zone",
            Self::Rare => "rare",
            Self::Lone => "lone",
            Self::Esi => "whole",
        }
    }

    /// The location of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::Esi]).find(|place| place.name() == name)
    }

    /// Whether nginx's directives cache it.
    #[must_use]
    pub const fn is_zone(self) -> bool {
        matches!(self, Self::Zone | Self::Rare | Self::Lone)
    }

    /// Whether its responses vary by language.
    #[must_use]
    pub const fn varies(self, page: usize) -> bool {
        page % 2 == 1 && matches!(self, Self::Page | Self::Http | Self::Private | Self::Zone)
    }

    /// Whether at most one exchange may fetch it at a time. Without the stored vary values of a
    /// page, copies cannot be coalesced.
    pub(super) const fn coalesces(self, page: usize) -> bool {
        matches!(self, Self::Page | Self::Http | Self::Zone) && !self.varies(page)
    }
}
