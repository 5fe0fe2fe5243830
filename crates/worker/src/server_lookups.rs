//! Lookups of upstream servers with `resolve`, which one worker does for all.

use std::collections::HashMap;

use bolide_base::Instant;
use bolide_base::deadline_queue::Armed;
use bolide_conf::model::LogLevel;
use bolide_io::Io;
use bolide_resolver::{ResolveFailure, ResolveVerdict};
use bolide_upstream::{NameVerdict, UpstreamGroups, UpstreamNames};

use crate::env::WorkerEnv;
use crate::lookups::{LookupWaiter, NameLookup};
use crate::naming::settle_names;
use crate::token::PollToken;
use crate::upstream_groups::Origins;

/// LIMIT: names that are looked up in one turn; the others follow in the next.
const NAMES_PER_PASS: usize = 64;

/// The names that this worker has claimed.
#[derive(Debug, Default)]
pub(crate) struct ServerLookups {
    names: UpstreamNames,
    /// The pending lookups, by number.
    asked: HashMap<usize, NameLookup>,
    armed: Armed,
}

impl Origins {
    /// A configuration is in force: looks up its names, and no longer those of the previous one.
    pub(crate) fn claim_names<I: Io>(&mut self, groups: &UpstreamGroups, env: &mut WorkerEnv<I>) {
        for (_, lookup) in self.servers.asked.drain() {
            self.lookups.leave(lookup, env.now, &mut env.io);
        }
        self.servers.names = UpstreamNames::claim(groups, env.now.mono);
        self.lookups.retire(env.now.mono);
        settle_names(self, env);
        self.arm_servers(env);
    }

    /// Looks up the names that are due.
    pub(crate) fn expire_servers<I: Io>(&mut self, at: Instant, env: &mut WorkerEnv<I>) {
        self.servers.armed.fired(at);
        for _ in 0..NAMES_PER_PASS {
            let Some((number, target)) = self.servers.names.take_due(env.now.mono) else { break };
            let waiter = LookupWaiter::Server(number);
            let seed = env.prng.next_u64();
            let question = (&*target.host, &target.servers, target.timeout);
            let lookup = self.lookups.ask(waiter, question, seed, env.now, &mut env.io);
            debug_assert!(!self.servers.asked.contains_key(&number), "a name is asked for once");
            self.servers.asked.extend(lookup.map(|lookup| (number, lookup)));
        }
        settle_names(self, env);
        self.arm_servers(env);
    }

    /// Takes the result of a lookup.
    pub(crate) fn handle_server_lookup<I: Io>(
        &mut self,
        number: usize,
        verdict: ResolveVerdict,
        env: &mut WorkerEnv<I>,
    ) {
        debug_assert!(verdict.good_until > env.now.mono, "a verdict counts for a while");
        self.servers.asked.remove(&number);
        let found = match verdict.result {
            Ok(ips) => NameVerdict::Found(ips),
            Err(failure @ ResolveFailure::NotFound) => NameVerdict::NotFound(failure.to_string()),
            Err(failure) => NameVerdict::Failed(failure.to_string()),
        };
        let good_until = verdict.good_until;
        if let Some(line) = self.servers.names.handle_verdict(number, &found, good_until) {
            env.log_server(LogLevel::Error, &line);
        }
        self.arm_servers(env);
    }

    fn arm_servers<I: Io>(&mut self, env: &mut WorkerEnv<I>) {
        if let Some(at) = self.servers.names.next_due() {
            env.wheel.arm(&mut self.servers.armed, at, PollToken::ServersDue.pack());
        }
    }
}
