//! Lookups of cached objects on disk and at other nodes: the file reads of a turn, and mail to and
//! from the cluster's thread.

use std::time::Duration;

use bolide_base::errno::{ENOENT, ENOTDIR};
use bolide_base::limits::SHARED_DESK_MS;
use bolide_base::{ChainStamp, FileRef, SlabKey};
use bolide_cache::disk::{DiskQuery, READ_MAX, Recall, Unfit};
use bolide_cache::{FillPermit, Lookup, ObjectKind, SharedAnswer, TagVerdict};
use bolide_engine::{Recalled, Wake};
use bolide_io::{Io, OpenRequest, SymlinkRule};
use bytes::Bytes;

use crate::disk_lookup::read_head;
use crate::env::WorkerEnv;
use crate::exchange_table::{ActiveExchange, NodesQuestion};
use crate::mail::Mail;
use crate::token::PollToken;
use crate::worker::Worker;

impl<I: Io> WorkerEnv<I> {
    /// Looks up the object of a permit on disk.
    pub(crate) fn recall(&mut self, permit: FillPermit) -> Wake {
        let Some(disk_query) = permit.disk_query() else { return absent(permit) };
        let path = disk_query.path();
        let request = OpenRequest {
            path: &path,
            symlinks: SymlinkRule::Follow,
            content_max: READ_MAX,
            stat_only: false,
        };
        let now = (self.now.mono.as_nanos() / 1_000_000_000) as u32;
        let opened = match self.with_room(|io| io.open(&request)) {
            Ok(opened) => opened,
            Err(failure) => {
                if matches!(failure.errno, ENOENT | ENOTDIR) {
                    disk_query.forget();
                }
                return absent(permit);
            }
        };
        let now_ms = self.now.unix_millis;
        if let Some(content) = opened.content {
            return match disk_query.restore(permit, &Bytes::from(content), now_ms, now) {
                Recall::Restored(wakes) => {
                    self.news.post(wakes);
                    Wake::Recalled(Box::new(Recalled::Kept))
                }
                Recall::Unfit(permit, unfit) => self.turn_away(permit, &disk_query, unfit),
            };
        }
        let Some(file) = opened.file else { return absent(permit) };
        let stamp = ChainStamp {
            size: opened.stat.size,
            mtime_seconds: opened.stat.mtime_seconds,
            mtime_nanos: opened.stat.mtime_nanos,
        };
        self.recall_large(permit, &disk_query, (file, stamp), now)
    }

    /// A body that exceeds one read stays in its file.
    fn recall_large(
        &mut self,
        permit: FillPermit,
        disk_query: &DiskQuery,
        opened: (FileRef, ChainStamp),
        now: u32,
    ) -> Wake {
        let Some(head) = read_head(&mut self.io, &opened.0) else {
            return self.turn_away(permit, disk_query, Unfit::Dead);
        };
        let now_ms = self.now.unix_millis;
        let (object, verdict) = match disk_query.judge(&permit, &head, now_ms) {
            Ok((record, _)) if record.size() as u64 + record.body_len != opened.1.size => {
                return self.turn_away(permit, disk_query, Unfit::Dead);
            }
            // A vary marker is no response.
            Ok((record, _)) if record.kind != ObjectKind::Content => return absent(permit),
            // An ESI page is read as a whole, or not at all.
            Ok((record, _)) if bolide_cache::is_esi(record.head) => return absent(permit),
            Ok((record, verdict)) => (disk_query.outline(&permit, &record, opened, now), verdict),
            Err(unfit) => return self.turn_away(permit, disk_query, unfit),
        };
        let times = object.times();
        let found = if verdict == TagVerdict::Good && now_ms < times.expires_ms {
            self.news.post(permit.abandon(bolide_cache::AbandonReason::Gone));
            Lookup::Hit(object)
        } else if now_ms < times.stale_until_ms() {
            Lookup::Stale(object, Some(permit))
        } else {
            Lookup::Miss(permit)
        };
        Wake::Recalled(Box::new(Recalled::Found(found)))
    }

    /// Looks up the object of a permit at other nodes; the result comes by mail.
    pub(crate) fn ask_nodes(
        &mut self,
        permit: FillPermit,
        key: SlabKey<ActiveExchange>,
    ) -> NodesQuestion {
        debug_assert!(permit.key().session().is_none(), "private objects are not asked for");
        let (post, exchange) = (self.news.posts[usize::from(self.number)].clone(), key.to_bits());
        let mut asked = permit.ask_nodes(move |answer| {
            // A mailbox accepts every result, even if it is full.
            let _ = post.send(Mail::Shared { exchange, answer: Box::new(answer) });
        });
        // Whatever happens to that thread, this exchange goes on.
        let until = asked.mark_sent(self.now.mono);
        self.wheel.arm_once(until, PollToken::Asked(key).pack());
        NodesQuestion(asked)
    }

    /// Takes the result of a lookup at other nodes, for an exchange of this worker.
    fn handle_node_answer(&mut self, key: SlabKey<ActiveExchange>, answer: SharedAnswer) {
        let recalled = match answer {
            SharedAnswer::Kept(wakes) => {
                self.news.post(wakes);
                Recalled::Kept
            }
            SharedAnswer::Absent(permit) => Recalled::Alone(*permit),
        };
        self.news.wake(key, Wake::Recalled(Box::new(recalled)));
    }

    fn turn_away(&mut self, permit: FillPermit, disk_query: &DiskQuery, unfit: Unfit) -> Wake {
        if unfit == Unfit::Dead {
            // If it cannot be removed, it will be rejected again.
            disk_query.unlink(|path| self.io.unlink(path));
        }
        absent(permit)
    }
}

impl<I: Io> Worker<I> {
    /// Takes the result of a lookup at other nodes, for an exchange of this worker.
    pub(crate) fn handle_node_answer(
        &mut self,
        key: SlabKey<ActiveExchange>,
        answer: SharedAnswer,
    ) {
        if let Some(live) = self.requests.exchanges.live.get_mut(key) {
            debug_assert!(live.asked.is_some(), "an answer has a question");
            live.asked = None;
        }
        self.requests.env.handle_node_answer(key, answer);
    }

    /// Continues without other nodes after the timeout.
    pub(crate) fn stop_asking(&mut self, key: SlabKey<ActiveExchange>) {
        let now = self.requests.env.now.mono;
        let Some(live) = self.requests.exchanges.live.get_mut(key) else { return };
        // The deadline of a finished lookup does not apply to the next one.
        let Some(asked) = live.asked.as_ref().filter(|asked| asked.0.until() <= now) else {
            return;
        };
        match asked.0.take_back() {
            Some(permit) => {
                debug_assert!(
                    permit.key().session().is_none(),
                    "private objects are not asked for"
                );
                live.asked = None;
                self.requests.step(key, Wake::Recalled(Box::new(Recalled::Alone(*permit))));
            }
            // It is being checked, or the result is in the mail.
            None => {
                let again = now.after(Duration::from_millis(SHARED_DESK_MS));
                self.requests.env.wheel.arm_once(again, PollToken::Asked(key).pack());
            }
        }
    }
}

fn absent(permit: FillPermit) -> Wake {
    Wake::Recalled(Box::new(Recalled::Found(Lookup::Miss(permit))))
}
