//! Name lookups while serving: connects resolvers with fetches, the log and deadlines.

use bolide_base::{Instant, SlabKey};
use bolide_conf::model::LogLevel;
use bolide_io::{Io, Readiness};
use bolide_upstream::{FetchWake, NameTarget};

use crate::env::WorkerEnv;
use crate::fetches::LiveFetch;
use crate::lookups::{LookupNews, LookupWaiter, NameLookup};
use crate::name_sockets::NameSocket;
use crate::token::PollToken;
use crate::upstream_groups::Origins;

impl Origins {
    /// Starts the name lookup of a fetch.
    pub(crate) fn begin_lookup<I: Io>(
        &mut self,
        fetch: SlabKey<LiveFetch>,
        target: &NameTarget,
        env: &mut WorkerEnv<I>,
    ) {
        let waiter = LookupWaiter::Fetch(fetch.to_bits());
        let seed = env.prng.next_u64();
        let question = (&*target.host, &target.servers, target.timeout);
        let lookup = self.lookups.ask(waiter, question, seed, env.now, &mut env.io);
        if let Some(live) = self.fetches.get_mut(fetch) {
            live.lookup = lookup;
        }
        settle_names(self, env);
    }

    /// Cancels the lookup of a fetch.
    pub(crate) fn leave_lookup<I: Io>(&mut self, lookup: NameLookup, env: &mut WorkerEnv<I>) {
        self.lookups.leave(lookup, env.now, &mut env.io);
        settle_names(self, env);
    }

    /// Handles a readiness report of a socket to a name server.
    pub(crate) fn wake_names<I: Io>(
        &mut self,
        socket: NameSocket,
        report: Readiness,
        env: &mut WorkerEnv<I>,
    ) {
        self.lookups.wake(socket, report, env.now, &mut env.io);
        settle_names(self, env);
    }
}

/// Handles the deadline of a resolver.
pub(crate) fn expire_names<I: Io>(
    origins: &mut Origins,
    place: u32,
    at: Instant,
    env: &mut WorkerEnv<I>,
) {
    if let Some(armed) = origins.lookups.armed(place) {
        armed.fired(at);
    }
    origins.lookups.expire(place, env.now, &mut env.io);
    settle_names(origins, env);
}

/// Passes on the results and messages of resolvers.
pub(crate) fn settle_names<I: Io>(origins: &mut Origins, env: &mut WorkerEnv<I>) {
    for news in origins.lookups.take_news() {
        match news {
            LookupNews::Found(LookupWaiter::Fetch(fetch), verdict) => {
                let found = verdict.result.map_err(|failure| failure.to_string());
                let wake = FetchWake::Resolved(found);
                origins.named.push_back((SlabKey::from_bits(fetch), wake));
            }
            LookupNews::Found(LookupWaiter::Server(number), verdict) => {
                origins.handle_server_lookup(number, verdict, env);
            }
            LookupNews::Log(line) => env.log_server(LogLevel::Error, &line),
            LookupNews::Due(place, at) => {
                if let Some(armed) = origins.lookups.armed(place) {
                    env.wheel.arm(armed, at, PollToken::NamesDue(place).pack());
                }
            }
        }
    }
}
