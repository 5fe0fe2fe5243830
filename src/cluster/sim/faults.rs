//! Random faults.

use std::rc::Rc;
use std::time::Duration;

use bolide_cluster::PurgeRecord;
use tokio::time::sleep;

use super::World;
use super::keeper::Value;
use super::server::{Kept, Trouble};

const PURGES: &[u8] = b"bolide:{sim}:purges";
const NODES: &[u8] = b"bolide:{sim}:nodes";
/// Events of a history.
const EVENTS: u64 = 24;

impl World {
    /// Injects faults, and ends with none in effect.
    pub(super) async fn inject_faults(self: Rc<Self>) {
        let trouble = [(0, 0), (0, 20), (8, 0), (8, 30), (40, 60)];
        let (cut, late) = trouble[self.below(trouble.len() as u64) as usize];
        self.server.state().trouble = Trouble { cut, late };
        sleep(Duration::from_millis(self.below(1500))).await;
        if self.below(3) == 0 {
            // Ids do not follow a clock that is behind them.
            self.server.state().jump_ms -= 3_600_000;
            self.server.record_disturbance();
        }
        let mut changes = tokio::task::JoinSet::new();
        let mut busy = vec![false; self.plan.nodes];
        for _ in 0..EVENTS {
            sleep(Duration::from_millis(self.below(900))).await;
            while let Some(done) = changes.try_join_next() {
                busy[done.expect("a process is replaced")] = false;
            }
            let at = self.below(self.plan.nodes as u64) as usize;
            let what = self.below(20);
            self.say(|| format!("event {what} for {at}"));
            match what {
                0 if self.below(8) == 0 => {
                    // For longer than leases last.
                    self.server.cut(at, 70_000);
                    sleep(Duration::from_secs(65)).await;
                }
                0 | 1 => self.server.cut(at, self.below(3000)),
                2 | 3 => self.server.hold(at, self.below(2500)),
                4..=6 => {
                    let kept = [Kept::All, Kept::Saved, Kept::Saved, Kept::Nothing];
                    let kept = kept[self.below(4) as usize];
                    let down_ms = self.below(2) * self.below(2000);
                    self.say(|| format!("restart with {kept:?}"));
                    self.server.restart(kept, down_ms);
                }
                7 | 8 => self.jump(),
                14 => self.set_clock(at),
                9..=13 if !busy[at] => {
                    busy[at] = true;
                    let (world, is_kill, ms) =
                        (self.clone(), self.below(2) == 0, self.below(2) * self.below(3000));
                    let is_reload = self.below(4) == 0;
                    changes.spawn_local(async move {
                        match is_reload {
                            true => world.replace_thread(at).await,
                            false => world.replace_process(at, is_kill, ms).await,
                        }
                        world
                            .say(|| format!("node {at} begins: reload {is_reload} kill {is_kill}"));
                        at
                    });
                }
                _ => self.spoil().await,
            }
        }
        self.say(|| "all is well".to_owned());
        self.server.heal();
        self.members.borrow().iter().for_each(|member| member.clock.set(0));
        let odd = [PURGES, NODES];
        odd.into_iter().for_each(|key| self.mend(key));
        while let Some(done) = changes.join_next().await {
            done.expect("a process is replaced");
        }
    }

    /// The server's clock is set.
    fn jump(&self) {
        let size = [1, 50, 5_000, 3_600_000][self.below(4) as usize];
        let by = self.below(2 * size + 1) as i64 - size as i64;
        self.say(|| format!("the clock jumps by {by}"));
        self.server.state().jump_ms += by;
        self.server.record_disturbance();
    }

    /// The clock of a node is set.
    fn set_clock(&self, at: usize) {
        let skew_ms = self.below(90_000) as i64 - 45_000;
        self.say(|| format!("the clock of {at} is off by {skew_ms}"));
        if let Some(member) = self.members.borrow().get(at) {
            member.clock.set(skew_ms);
        }
    }

    /// Damages data in Valkey.
    async fn spoil(&self) {
        let millis = Duration::from_millis(self.below(1500));
        let what = self.below(9);
        self.say(|| format!("spoils {what}"));
        match what {
            0 => {
                self.server.state().keeper.is_full = true;
                sleep(millis).await;
                self.server.state().keeper.is_full = false;
            }
            1 => {
                self.server.state().keeper.refuses_scripts = true;
                sleep(millis).await;
                self.server.state().keeper.refuses_scripts = false;
            }
            2 => {
                self.server.state().keeper.drop_all();
                self.server.record_disturbance();
            }
            3 => {
                // Of another kind, until an operator drops it.
                let key = [PURGES, NODES][self.below(2) as usize];
                self.server.state().keeper.put(key, Value::Text(b"odd".to_vec()));
                sleep(millis).await;
                self.mend(key);
            }
            4 => {
                // All but a few entries are dropped, or the newest is.
                let (few, is_newest) = (self.below(3) as usize, self.below(3) == 0);
                if let Some(stream) = self.server.state().keeper.stream(PURGES) {
                    match is_newest {
                        true => drop(stream.entries.pop()),
                        false => {
                            let old = stream.entries.len().saturating_sub(few);
                            stream.entries.drain(..old);
                        }
                    }
                }
            }
            5 => {
                let mut bytes = Vec::new();
                let (cluster, node) = (&b"other"[..], &b"node"[..]);
                PurgeRecord { cluster, node, life: 1, number: 1, purges: b"" }.write(&mut bytes);
                if self.below(2) == 0 {
                    bytes = b"hello".to_vec();
                }
                self.server
                    .order(&[b"XADD", PURGES, b"MAXLEN", b"=", b"1000", b"*", b"purges", &bytes]);
            }
            6 => {
                let change = self.below(1 << 16) as usize;
                self.server.record_disturbance();
                for (_, bytes) in self.server.state().keeper.texts() {
                    let at = change % bytes.len().max(1);
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1;
                    }
                }
            }
            7 => {
                let change = self.below(1 << 16) as usize;
                if let Some(stream) = self.server.state().keeper.stream(PURGES)
                    && let Some(entry) = stream.entries.last_mut()
                {
                    let at = change % entry.bytes.len().max(1);
                    if let Some(byte) = entry.bytes.get_mut(at) {
                        *byte ^= 1;
                    }
                }
            }
            _ => drop(self.server.order(&[b"XTRIM", PURGES, b"MINID", b"=", b"1700000005000"])),
        }
    }

    /// An operator drops what is of another kind.
    fn mend(&self, key: &[u8]) {
        let state = &mut *self.server.state();
        if state.keeper.texts().any(|(other, _)| other == key) {
            state.keeper.drop_key(key);
        }
    }
}
