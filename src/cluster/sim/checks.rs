//! Compares the reports of nodes with what they serve: a purge counts for a node once it has
//! reported the entry, as for `bolide cache purge --wait`.

use std::rc::Rc;
use std::sync::mpsc::{SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::member::name;
use super::{PAGES, World};
use crate::cluster::{ClusterMail, CommandResult};

/// The pause between two queries of nodes: at first, doubled each time, and at most.
const STEPS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));
/// How long a purge may take without faults.
const PROMPT: Duration = Duration::from_secs(1);
/// How long a purge waits for nodes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A purge.
#[derive(Clone, Debug)]
pub(super) struct Purge {
    pub(super) at: usize,
    pub(super) life: u64,
    /// Its number among those of the process.
    pub(super) number: u64,
    pub(super) tick: u64,
    pub(super) subjects: Vec<usize>,
}

/// What happened in histories.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) hits: u64,
    pub(super) taken: u64,
    pub(super) fetches: u64,
    /// Histories at whose end a page was fetched twice.
    pub(super) in_vain: u64,
    pub(super) purges: u64,
    pub(super) confirmed: u64,
    pub(super) losses: u64,
    pub(super) connections: u64,
    /// Tickets sealed by keys in common, tickets of others opened, orders begun in common.
    pub(super) sealed: u64,
    pub(super) opened: u64,
    pub(super) orders: u64,
}

impl Tally {
    pub(super) const fn add(&mut self, other: &Self) {
        self.hits += other.hits;
        self.taken += other.taken;
        self.fetches += other.fetches;
        self.in_vain += other.in_vain;
        self.purges += other.purges;
        self.confirmed += other.confirmed;
        self.losses += other.losses;
        self.connections += other.connections;
        self.sealed += other.sealed;
        self.opened += other.opened;
        self.orders += other.orders;
    }

    /// Histories without events prove nothing. In rare cases a node fetches a page that another one
    /// has.
    pub(super) fn assert_rich(&self, count: u64) {
        let least = [
            (self.hits, 50),
            (self.taken, 10),
            (self.fetches, 50),
            (self.purges, 10),
            (self.confirmed, 10),
            (self.losses, 1),
            (self.sealed, 20),
            (self.opened, 20),
            (self.orders, 1),
        ];
        assert!(50 * self.in_vain <= count, "pages are fetched once: {self:?}");
        for (at, (number, each)) in least.into_iter().enumerate() {
            assert!(number >= each * count, "{at}: {self:?}");
        }
    }
}

async fn rest(step: &mut Duration) {
    sleep(*step).await;
    *step = (*step * 2).min(STEPS.1);
}

impl World {
    /// The reply of a node to a query, if it comes in time.
    async fn ask_node<T>(
        &self,
        purge: &Purge,
        mail: impl FnOnce(SyncSender<CommandResult<T>>) -> ClusterMail,
    ) -> Option<T> {
        let (reply, answer) = sync_channel(1);
        {
            let members = self.members.borrow();
            let member = members.get(purge.at).filter(|member| member.life == purge.life)?;
            member.mail.try_send(mail(reply)).ok()?;
        }
        let (start, mut step) = (Instant::now(), STEPS.0);
        while start.elapsed() < PATIENCE {
            rest(&mut step).await;
            match answer.try_recv() {
                Ok(result) => return result.ok(),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        None
    }

    /// Waits until nodes have a purge, as `bolide cache purge --wait` does. From then on a node
    /// that reported it must not serve what was purged.
    pub(super) async fn wait_for(self: Rc<Self>, purge: Purge) {
        let (start, mut step) = (Instant::now(), STEPS.0);
        let entry = loop {
            let progress = self.ask_node(&purge, ClusterMail::Progress).await;
            match progress {
                Some((sent, entry)) if sent >= purge.number => break entry,
                _ if start.elapsed() > PATIENCE => return,
                _ => rest(&mut step).await,
            }
        };
        self.say(|| format!("the purge at {} is before {}", purge.tick, entry.id));
        let mut have = vec![purge.at];
        while have.len() < self.plan.nodes && start.elapsed() < PATIENCE {
            let ask = |reply| ClusterMail::Peers(Some(entry), reply);
            for peer in self.ask_node(&purge, ask).await.unwrap_or_default() {
                let at = (0..self.plan.nodes).find(|at| name(*at) == peer.name);
                let at = at.expect("a node of this cluster");
                if peer.has_entry && !have.contains(&at) {
                    have.push(at);
                    self.say(|| format!("node {at} has the purge at {}", purge.tick));
                    self.members.borrow_mut()[at].record_purged(&purge.subjects, purge.tick);
                    self.tally.borrow_mut().confirmed += 1;
                }
            }
            rest(&mut step).await;
        }
        let is_prompt = have.len() == self.plan.nodes && start.elapsed() <= PROMPT;
        assert!(
            is_prompt || !self.is_calm_since(start),
            "seed {}: a purge reaches {have:?}: {}",
            self.seed,
            self.describe()
        );
    }

    /// Faults have ended: waits until all nodes are connected, and have received all purges.
    pub(super) async fn calm(&self) {
        self.is_over.set(true);
        // Held connections continue, and pauses after errors end.
        sleep(Duration::from_secs(9)).await;
        self.await_that(60_000, "all nodes are connected again", || {
            let members = self.members.borrow();
            members.iter().all(|member| {
                let status = member.status();
                status.is_caught_up
                    && status.connected.is_some()
                    && status.waiting == 0
                    && member.store.sharing().is_answering()
            })
        })
        .await;
        self.calm_since.set(Some(Instant::now()));
    }

    fn is_calm_since(&self, start: Instant) -> bool {
        self.calm_since.get().is_some_and(|since| start >= since)
    }

    /// The guarantees without faults.
    pub(super) async fn check_calm(self: &Rc<Self>) {
        let seed = self.seed;
        let counts = || -> Vec<_> {
            let members = self.members.borrow();
            members
                .iter()
                .map(|member| member.status())
                .map(|it| (it.received, it.losses))
                .collect()
        };
        // Everything in transit arrives, and abandoned leases expire.
        sleep(PROMPT + Duration::from_millis(self.plan.lease_ms)).await;
        let nodes = self.plan.nodes;
        for at in 0..nodes {
            // Behind an entry that could not be read, the next one of its process shows a gap.
            let purge = self.purge(at).expect("it is there");
            self.clone().wait_for(purge).await;
        }
        let before = counts();
        let mut done = vec![0; nodes];
        for number in 0..6 {
            let at = number % nodes;
            let purge = self.purge(at).expect("it is there");
            done[at] += 1;
            self.clone().wait_for(purge).await;
        }
        for (at, ((had, lost), (has, losses))) in before.into_iter().zip(counts()).enumerate() {
            assert_eq!(losses, lost, "seed {seed}: node {at} drops all without a reason");
            assert_eq!(has - had, 6 - done[at], "seed {seed}: node {at} repeats purges once each");
        }
        let fetches = self.fetches.get();
        self.say(|| self.describe());
        let mut asked = tokio::task::JoinSet::new();
        for at in 0..nodes {
            for page in 0..PAGES {
                asked.spawn_local(self.clone().ask_for(at, page));
            }
        }
        asked.join_all().await;
        let fetched = self.fetches.get() - fetches;
        self.say(|| format!("{fetched} fetches of {PAGES} pages"));
        self.check_kept();
        let mut tally = self.tally.borrow_mut();
        // A page that is not shared yet is fetched by others as well.
        let most = PAGES as u64 * u64::from(self.plan.min_uses);
        tally.in_vain = u64::from(fetched > most);
        tally.fetches = self.fetches.get();
        tally.losses = counts().iter().map(|(_, losses)| losses).sum();
        tally.connections = self.members.borrow().iter().map(|it| it.status().attempts).sum();
    }

    /// No private page is in Valkey.
    fn check_kept(&self) {
        let mut state = self.server.state();
        assert!(!state.is_flooded, "seed {}: commands come without end", self.seed);
        for (key, bytes) in state.keeper.texts() {
            for subject in PAGES..super::SUBJECTS {
                let words = format!("subject {subject} of");
                let has = bytes.windows(words.len()).any(|part| part == words.as_bytes());
                assert!(!has, "seed {}: {}", self.seed, String::from_utf8_lossy(key));
            }
        }
    }
}
