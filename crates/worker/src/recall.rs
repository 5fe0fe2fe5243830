//! Looks for kept answers on disk, and asks other nodes: what a turn reads of the files of a cache,
//! and the mail that other nodes are asked by.

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
    /// Looks on disk for what a permit is about.
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
        let opened = match self.io.open(&request) {
            Ok(opened) => opened,
            Err(failure) => {
                if matches!(failure.errno, ENOENT | ENOTDIR) {
                    disk_query.note_gone();
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

    /// A body that is larger than what is read at once stays where it is.
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
            // What a URL varies by is no answer.
            Ok((record, _)) if record.kind != ObjectKind::Content => return absent(permit),
            // What is put together from parts is read whole, or not at all.
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

    /// Has other nodes asked for what a permit is about; the answer comes by mail.
    pub(crate) fn ask_nodes(
        &mut self,
        permit: FillPermit,
        key: SlabKey<ActiveExchange>,
    ) -> NodesQuestion {
        debug_assert!(permit.key().session().is_none(), "private objects are not asked for");
        let (post, exchange) = (self.news.posts[usize::from(self.number)].clone(), key.to_bits());
        let mut asked = permit.ask_nodes(move |answer| {
            // A mailbox takes every answer, however full it is.
            let _ = post.send(Mail::Shared { exchange, answer: Box::new(answer) });
        });
        // Whatever the thread that asks does, this one goes on.
        let until = asked.note_asked(self.now.mono);
        self.wheel.arm_once(until, PollToken::Asked(key).pack());
        NodesQuestion(asked)
    }

    /// What other nodes have for an exchange of this worker.
    fn handle_node_answer(&mut self, key: SlabKey<ActiveExchange>, answer: SharedAnswer) {
        let recalled = match answer {
            SharedAnswer::Kept(wakes) => {
                self.news.post(wakes);
                Recalled::Kept
            }
            SharedAnswer::Absent(permit) => Recalled::Alone(*permit),
        };
        self.news.tell(key, Wake::Recalled(Box::new(recalled)));
    }

    fn turn_away(&mut self, permit: FillPermit, disk_query: &DiskQuery, unfit: Unfit) -> Wake {
        if unfit == Unfit::Dead {
            // If it cannot be taken away, it will be turned away again.
            let _ = self.io.unlink(&disk_query.path());
            disk_query.note_gone();
        }
        absent(permit)
    }
}

impl<I: Io> Worker<I> {
    /// What other nodes have for an exchange of this worker.
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

    /// Goes on without other nodes, if they were waited for long enough.
    pub(crate) fn stop_asking(&mut self, key: SlabKey<ActiveExchange>) {
        let now = self.requests.env.now.mono;
        let Some(live) = self.requests.exchanges.live.get_mut(key) else { return };
        // The end of the wait for an answer that has come is none of the next one.
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
            // It is being judged, or the answer is in the mail.
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
