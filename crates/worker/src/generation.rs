//! One configuration as the workers use it: the compiled site and the settings of each socket.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_conf::model::{Listen, ListenAddress, ListenTransport};
use bolide_engine::Site;
use bolide_io::listen::Listener;

use crate::settings::{ListenSettings, Profile};

/// The listening sockets of one worker, each with its index among the configuration's `listens`: at
/// least one for each index.
pub type GenerationSockets = Vec<(usize, Arc<Listener>)>;

/// The sockets of every worker. Each list is taken once, unless it is given again: a connection
/// that outlives its configuration must not keep ports open that the next one has closed.
#[derive(Debug)]
pub struct Handout(Mutex<Vec<GenerationSockets>>);

impl Handout {
    /// One list per worker.
    #[must_use]
    pub const fn new(by_worker: Vec<GenerationSockets>) -> Self {
        Self(Mutex::new(by_worker))
    }

    /// Gives the lists again to workers that have closed theirs.
    pub fn refill(&self, by_worker: Vec<GenerationSockets>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = by_worker;
    }

    /// Takes the list of one worker; empty when it was taken before.
    pub(crate) fn take(&self, worker: u16) -> GenerationSockets {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(usize::from(worker)).map(std::mem::take).unwrap_or_default()
    }
}

/// The index of each address among the listens of a configuration: for TCP and for QUIC.
#[derive(Debug, Default)]
pub struct Addresses(HashMap<ListenAddress, [Option<usize>; 2]>);

impl Addresses {
    /// The indices of these listens.
    #[must_use]
    pub fn new(listens: &[Listen]) -> Self {
        let mut places: HashMap<ListenAddress, [Option<usize>; 2]> = HashMap::new();
        for (place, listen) in listens.iter().enumerate() {
            let both = places.entry(listen.address.clone()).or_default();
            both[Self::side(listen)].get_or_insert(place);
        }
        Self(places)
    }

    fn find(&self, listen: &Listen) -> Option<usize> {
        self.0.get(&listen.address)?[Self::side(listen)]
    }

    fn side(listen: &Listen) -> usize {
        usize::from(listen.transport == ListenTransport::Quic)
    }
}

/// A configuration in use. Connections hold the one of their last request.
#[derive(Debug)]
pub struct Generation {
    /// Counts up with each reload.
    pub number: u64,
    /// The compiled configuration.
    pub site: Arc<Site>,
    /// Its upstream groups; their state outlives it.
    pub groups: Arc<bolide_upstream::UpstreamGroups>,
    /// The TLS settings of upstreams, by the site's index.
    pub origin_tls: Arc<[bolide_tls::OriginTls]>,
    /// One entry for each listen of the configuration.
    pub listens: Vec<ListenSettings>,
    /// The indices of listens by address.
    pub addresses: Addresses,
    /// Sockets by worker.
    pub sockets: Handout,
    /// Secrets that QUIC endpoints share.
    pub quic_keys: Arc<bolide_quic::SharedKeys>,
    /// The most connections of one worker.
    pub connections_max: u32,
}

impl Generation {
    /// The profile of limits for a connection: that of the server which its client named (SNI).
    pub(crate) fn profile(&self, info: &bolide_engine::ConnInfo) -> Profile {
        let listen = &self.listens[info.listen];
        let name = info.tls.as_ref().and_then(|facts| facts.server_name.as_deref());
        match name.filter(|_| listen.has_profiles()) {
            Some(name) => listen.profile(self.site.server_named(info.listen, name)),
            None => Profile::default(),
        }
    }

    /// The index of the listen with the same address as `listen` of an older configuration.
    pub(crate) fn same_listen(&self, older: &Self, listen: usize) -> Option<usize> {
        let theirs = older.site.config().http.as_ref()?;
        self.addresses.find(theirs.listens.get(listen)?)
    }

    /// Moves a connection of another configuration to this one; returns the profile of its limits,
    /// or none if this has no listen for its address.
    pub(crate) fn take_over(
        self: &Arc<Self>,
        info: &mut bolide_engine::ConnInfo,
        generation: &mut Arc<Self>,
    ) -> Option<Profile> {
        let listen = self.same_listen(generation, info.listen)?;
        debug_assert_eq!(self.is_quic(listen), generation.is_quic(info.listen), "as it was");
        info.listen = listen;
        *generation = self.clone();
        Some(self.profile(info))
    }

    /// Whether a listen is a UDP socket.
    pub(crate) fn is_quic(&self, listen: usize) -> bool {
        let http = self.site.config().http.as_ref();
        http.and_then(|http| http.listens.get(listen))
            .is_some_and(|listen| listen.transport == ListenTransport::Quic)
    }
}
