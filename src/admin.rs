//! Commands to a running server, and its replies: `bolide explain`, `bolide cache`, `bolide
//! status`.
//!
//! Owns the conversation over the command socket. Each command runs in a thread of its own under
//! the workers' account, so that neither the control thread nor a worker waits for it.

mod ban;
pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod drain;
mod explain;
mod format;
pub(crate) mod line_protocol;
mod list;
pub(crate) mod metrics;
mod purge;
pub(crate) mod reload;
pub(crate) mod rollover;
pub(crate) mod service;
mod stats;
pub(crate) mod status;
pub(crate) mod warm;

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use bolide_engine::SiteRef;
use bolide_engine::explain::{ExplainRequest, ExplainSpace, ExplainUrl};
use bolide_io::epoll::Epoll;
use bolide_worker::{ConsoleReply, Generation};

use crate::account::{WorkerAccount, give_up_rights};
use crate::cluster::ClusterDesk;
use crate::messages::err;
use line_protocol::Words;
use status::Scene;

/// LIMIT: concurrent commands.
const BUSY_MAX: usize = 4;
/// How long a client may leave its result unread.
const PATIENCE: Duration = Duration::from_secs(2);
/// The beginning of a reply that reports an error.
const ERROR: &str = "error: ";
/// The beginning of a successful reply.
const OK: &str = "ok\n";

/// The result of a command: its output, or its error.
type CommandResult = Result<Vec<u8>, String>;

/// Runs commands on threads.
#[derive(Debug)]
pub(crate) struct CommandThreads {
    cluster: ClusterDesk,
    /// Each thread holds one more.
    busy: Arc<()>,
}

impl CommandThreads {
    pub(crate) fn new(cluster: ClusterDesk) -> Self {
        Self { cluster, busy: Arc::default() }
    }

    /// Executes `words` for `client`.
    pub(crate) fn handle(
        &self,
        client: AdminClient,
        words: Words,
        generation: &Arc<Generation>,
        account: Option<&WorkerAccount>,
        scene: Option<Scene>,
    ) {
        if Arc::strong_count(&self.busy) > BUSY_MAX {
            return client.reply(Err("too many commands at once".to_owned()));
        }
        let (generation, account) = (generation.clone(), account.cloned());
        let (held, cluster) = (self.busy.clone(), self.cluster.clone());
        let body = move || {
            let _held = held;
            // A command must not show what workers cannot see.
            if let Err(why) = give_up_rights(account) {
                return client.reply(Err(why));
            }
            let desk = AdminDesk::new(&generation, scene, cluster);
            let result = desk.carry_out(&words);
            client.reply(desk.write_purges().and(result));
        };
        let started = std::thread::Builder::new().name("admin".to_owned()).spawn(body);
        if let Err(error) = started {
            err(&format!("bolide: [alert] cannot start a thread: {error}"));
        }
    }
}

/// An `Io` backend for the command.
fn door() -> Result<Epoll, String> {
    Epoll::new().map_err(|error| format!("epoll: {error}"))
}

/// The client that waits for the result of a command.
#[derive(Debug)]
pub(crate) enum AdminClient {
    /// Another process.
    Command(UnixStream),
    /// The client of a console.
    Console(ConsoleReply),
}

impl AdminClient {
    /// Sends the result; a client that left, or that does not read, needs none.
    pub(crate) fn reply(self, result: CommandResult) {
        if let Self::Command(client) = &self {
            let _ = client.set_write_timeout(Some(PATIENCE));
        }
        match (self, result) {
            (Self::Command(mut client), Ok(text)) => {
                let _ = client.write_all(OK.as_bytes()).and_then(|()| client.write_all(&text));
            }
            (Self::Command(mut client), Err(why)) => {
                let _ = client.write_all(format!("{ERROR}{why}\n").as_bytes());
            }
            (Self::Console(client), result) => {
                client.send(result.map(|text| String::from_utf8_lossy(&text).trim().to_owned()));
            }
        }
    }
}

/// The objects that commands inspect.
pub(crate) struct AdminDesk {
    site: SiteRef,
    /// The running server, for commands about it.
    scene: Option<Scene>,
    cluster: Option<ClusterDesk>,
}

impl AdminDesk {
    /// Of a running server.
    fn new(generation: &Generation, scene: Option<Scene>, cluster: ClusterDesk) -> Self {
        let site = SiteRef::new(generation.site.clone(), generation.groups.clone());
        Self { site, scene, cluster: Some(cluster) }
    }

    /// Of a configuration without a running server.
    pub(crate) fn of_site(site: Arc<bolide_engine::Site>) -> Self {
        let upstreams = site.config().http.as_ref().map_or(&[][..], |http| &http.upstreams);
        let groups = Arc::new(bolide_upstream::UpstreamGroups::new(upstreams, None));
        Self { site: SiteRef::new(site, groups), scene: None, cluster: None }
    }

    pub(crate) fn carry_out(&self, words: &Words) -> CommandResult {
        match &*words.command {
            "explain" => explain::run(self, words),
            "cache-list" => list::run(self, words),
            "cache-stats" => stats::run(self, words),
            "cache-purge" => purge::run(self, words),
            "cache-ban" => ban::run(self, words),
            "cache-bans" => ban::list(self, words),
            status::COMMAND => status::run(self, words),
            metrics::COMMAND => metrics::run(self, words),
            rollover::COMMAND => rollover::run(self, words),
            cluster::STATUS => cluster::status(self, words),
            cluster::PEERS => cluster::peers(self, words),
            cluster::PURGES => cluster::purges(self, words),
            other => Err(format!("the server does not know \"{other}\"; is it an older one?")),
        }
    }

    /// Writes the purges of a command to the journals, before the reply to the command.
    fn write_purges(&self) -> Result<(), String> {
        let unwritten = self.site.store().filter(|store| store.disk().has_unwritten_purges());
        let Some(store) = unwritten else { return Ok(()) };
        bolide_worker::write_purges(&mut door()?, store);
        Ok(())
    }

    fn cluster(&self) -> Result<&ClusterDesk, String> {
        self.cluster.as_ref().ok_or_else(|| "no server runs here".to_owned())
    }

    fn store(&self) -> Result<&Arc<bolide_cache::Store>, String> {
        let nothing = "the server has no cache: page_cache, proxy_cache, fastcgi_cache are off";
        self.site.store().ok_or_else(|| nothing.to_owned())
    }

    /// The spaces that `vhost=` and `zone=` name; all, if both are absent.
    fn spaces(&self, words: &Words) -> Result<Vec<ExplainSpace>, String> {
        let all = self.site.spaces();
        let mut chosen = Vec::new();
        for (word, is_zone) in [("zone", true), ("vhost", false)] {
            for name in words.all(word) {
                let name = String::from_utf8_lossy(name);
                let of_kind = || all.iter().filter(|space| space.is_zone == is_zone);
                let found = of_kind().filter(|space| space.name == *name);
                let before = chosen.len();
                chosen.extend(found.cloned());
                if chosen.len() == before {
                    let known: Vec<String> =
                        of_kind().map(|space| format!("\"{}\"", space.name)).collect();
                    let known = match known.is_empty() {
                        true => "there are none".to_owned(),
                        false => format!("known are {}", known.join(", ")),
                    };
                    return Err(format!("there is no {word} \"{name}\": {known}"));
                }
            }
        }
        Ok(if words.has("zone") || words.has("vhost") { chosen } else { all })
    }

    /// The request that `words` describe.
    fn question(&self, words: &Words) -> Result<ExplainRequest, String> {
        ExplainUrl {
            url: words.value("url").unwrap_or_default(),
            method: words.value("method"),
            cookies: words.all("cookie").collect(),
            headers: words.all("header").collect(),
            from: words.value("from"),
            listen: words.value("listen"),
        }
        .question(&self.site)
    }
}
