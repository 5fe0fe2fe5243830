//! The families of directives about upstreams: each has the same settings under its own prefix.

/// A family of directives about upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectiveFamily {
    /// `fastcgi_*`, and everything else.
    Application,
    /// `proxy_*`
    Proxy,
    /// `uwsgi_*`
    Uwsgi,
    /// `scgi_*`
    Scgi,
    /// `memcached_*`, which has no caches.
    Memcached,
    /// `grpc_*`, which has no caches either.
    Grpc,
}

impl DirectiveFamily {
    /// Every family, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Application, Self::Proxy, Self::Uwsgi, Self::Scgi, Self::Memcached, Self::Grpc];

    /// The family of a directive.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|family| name.starts_with(family.prefix())).unwrap_or(Self::Application)
    }

    /// How its directives begin.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Application => "fastcgi_",
            Self::Proxy => "proxy_",
            Self::Uwsgi => "uwsgi_",
            Self::Scgi => "scgi_",
            Self::Memcached => "memcached_",
            Self::Grpc => "grpc_",
        }
    }

    /// Whether a status of the upstream's own upstreams is meant anywhere: only proxies have such.
    #[must_use]
    pub const fn has_gateway_statuses(self) -> bool {
        matches!(self, Self::Proxy)
    }
}
