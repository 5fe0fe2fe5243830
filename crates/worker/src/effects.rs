//! What exchanges want done, done through the door.

use std::sync::Arc;

use bolide_base::SlabKey;
use bolide_engine::{PasswordCheck, StepEffect, Wake};
use bolide_files::{
    CompressJob, DirEntry, FileKind, Meta, OpenFailure, Probe, Probed, SymlinkPolicy, VariantKey,
    Want,
};
use bolide_http::negotiate::Coding;
use bolide_io::{Io, OpenRequest, Reset, Stat, SymlinkRule};
use bytes::Bytes;

use crate::exchanges::{ActiveExchange, Owner};
use crate::jobs::{FinishedJob, Job, Output, Task};
use crate::worker::Worker;

/// Files up to this many bytes are compressed in the turn: a thread would answer later.
const COMPRESS_AT_ONCE: usize = 16 * 1024;

impl<I: Io> Worker<I> {
    /// Finds out where a path leads through symbolic links.
    fn resolve(&mut self, path: Box<[u8]>) -> Wake {
        let real = self.io.real_path(&path).map(Vec::into_boxed_slice);
        self.core.files.real.insert(path, real, self.now.mono);
        Wake::Probed
    }

    /// Does one thing; the wake that it leads to at once, if any.
    pub(crate) fn perform(
        &mut self,
        key: SlabKey<ActiveExchange>,
        effect: StepEffect,
    ) -> Option<Wake> {
        match effect {
            StepEffect::Probe(probe) => {
                let found = look(&mut self.io, &probe);
                self.core.files.insert_probe(&probe, found, self.now);
                Some(Wake::Probed)
            }
            StepEffect::Resolve(path) => Some(self.resolve(path)),
            StepEffect::Compress(job) => self.compress(key, job),
            StepEffect::CheckPassword(check) => self.check_password(key, &check),
            StepEffect::Respond => self.respond(key),
            StepEffect::Fragments => self.start_fragments(key),
            StepEffect::AuthSubrequest => self.start_auth_subrequest(key),
            StepEffect::Ready => self.tell_stream(key, StreamAct::Ready),
            StepEffect::DiscardBody => {
                self.end_upload(key.to_bits());
                self.tell_stream(key, StreamAct::Discard)
            }
            StepEffect::WantBody(window) => self.tell_stream(key, StreamAct::Wanted(window)),
            StepEffect::BodyConsumed(bytes) => self.tell_stream(key, StreamAct::Consumed(bytes)),
            StepEffect::Spool(place) => {
                self.spool(key, place);
                None
            }
            StepEffect::Fill(fill) => {
                if let Some(live) = self.core.exchanges.get_mut(key) {
                    live.fill = Some(fill);
                }
                None
            }
            StepEffect::Refresh(request, fill) => {
                self.begin_refresh(key, request, fill);
                None
            }
            StepEffect::Recall(permit) => Some(self.recall(*permit)),
            StepEffect::News(wakes) => {
                self.post(wakes);
                None
            }
            StepEffect::CompressObject(object, coding, level) => {
                self.compress_object(object, VariantKey { coding, level });
                None
            }
            StepEffect::Fetch(request) => {
                self.begin_fetch(key, request);
                None
            }
            StepEffect::FetchBody(bytes) => {
                self.feed_fetch(key, bytes);
                None
            }
            StepEffect::FetchBodyEnd => {
                self.finish_fetch_body(key);
                None
            }
            // Before each read it is asked whether there is room.
            StepEffect::FetchMore(false) => None,
            StepEffect::FetchMore(true) => {
                self.resume_fetch(key);
                None
            }
            StepEffect::FetchDrop => {
                self.drop_fetch(key);
                None
            }
            StepEffect::Interim(head) => {
                self.interim(key, &head);
                None
            }
            StepEffect::Deadline(at) => {
                self.wheel.arm_once(at, crate::token::PollToken::Exchange(key).pack());
                let owner = self.core.exchanges.get(key).map(|live| live.owner);
                if let Some(Owner::Quic(conn)) = owner.and_then(|owner| self.root_owner(owner)) {
                    self.ping_while_waiting(conn);
                }
                None
            }
            StepEffect::CloseSilently => self.close_silently(key),
            StepEffect::Outlive => self.outlive(key),
            StepEffect::Finish => {
                self.retire(key);
                None
            }
        }
    }

    /// Ends a connection whose request is not answered.
    fn close_silently(&mut self, key: SlabKey<ActiveExchange>) -> Option<Wake> {
        let live = self.core.exchanges.get(key)?;
        let owner = live.owner;
        let settings = live.exchange.settings();
        let resets = settings.is_some_and(|settings| settings.reset_timedout_connection);
        self.retire(key);
        match owner {
            Owner::Tcp(conn) => self.close(conn, if resets { Reset::Yes } else { Reset::No }),
            Owner::Quic(conn) => self.close_quic(conn),
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
        None
    }

    /// Sends a head that another one follows.
    fn interim(&mut self, key: SlabKey<ActiveExchange>, head: &bolide_http::ResponseHead) {
        let Some(live) = self.core.exchanges.get(key) else { return };
        // An exchange that is gone or has answered has no use for it.
        match live.owner {
            Owner::Tcp(conn) => {
                if let Some(framing) = self.conns.get_mut(conn).and_then(|c| c.framing.as_mut()) {
                    let _ = framing.respond(live.stream, head, &mut self.scratch.replies);
                    self.mark_dirty(conn);
                }
            }
            Owner::Quic(conn) => {
                if let Some(found) = self.quics.get_mut(conn) {
                    let _ = found.h3.respond(live.stream, head);
                    self.mark_quic(conn);
                }
            }
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    fn respond(&mut self, key: SlabKey<ActiveExchange>) -> Option<Wake> {
        let live = self.core.exchanges.get(key)?;
        let head = live.exchange.head();
        let paced = live.exchange.is_paced();
        let answered = match live.owner {
            Owner::Tcp(conn) => {
                let owner = self.conns.get_mut(conn)?;
                let framing = owner.framing.as_mut()?;
                if framing.is_plain_h1() {
                    // As nginx has it: over HTTP/1 the location says how long the client may idle.
                    owner.idle_max = live.exchange.settings().map(|s| s.keepalive_timeout);
                    if let Some(manners) = live.exchange.manners() {
                        owner.manners = Some(manners);
                    }
                }
                let answered = framing.respond(live.stream, head, &mut self.scratch.replies);
                self.mark_dirty(conn);
                answered
            }
            Owner::Quic(conn) => {
                let answered = self.quics.get_mut(conn)?.h3.respond(live.stream, head);
                self.mark_quic(conn);
                answered
            }
            Owner::PostAction(_) => return None,
            // Only the page has a pace.
            Owner::Parent(page) => return self.respond_fragment(key, page),
        };
        if paced {
            self.pace(key);
        }
        answered.is_err().then_some(Wake::ClientGone)
    }

    /// The moment has come that an exchange, or the pace of its answer, waited for.
    pub(crate) fn expire_exchange_of(&mut self, key: SlabKey<ActiveExchange>) {
        let Some(live) = self.core.exchanges.get(key) else { return };
        if live.throttle.is_some() {
            self.with_stream(key, StreamAct::Ready);
        } else {
            self.step(key, Wake::Deadline);
        }
    }

    /// Wakes streams when their pace lets them go on.
    pub(crate) fn arm_paced(&mut self) {
        while let Some((user, at)) = self.scratch.paced.pop() {
            self.wheel
                .arm_once(at, crate::token::PollToken::Exchange(SlabKey::from_bits(user)).pack());
        }
    }

    fn tell_stream(&mut self, key: SlabKey<ActiveExchange>, act: StreamAct) -> Option<Wake> {
        self.with_stream(key, act);
        None
    }

    pub(crate) fn with_stream(&mut self, key: SlabKey<ActiveExchange>, act: StreamAct) {
        if let StreamAct::Consumed(bytes) = act {
            self.note_consumed(key, bytes);
        }
        let Some(live) = self.core.exchanges.get(key) else { return };
        let stream = live.stream;
        match live.owner {
            Owner::Tcp(conn) => {
                let Some(framing) = self.conns.get_mut(conn).and_then(|c| c.framing.as_mut())
                else {
                    return;
                };
                match act {
                    StreamAct::Continue => framing.send_continue(stream),
                    StreamAct::Ready => framing.body_ready(stream),
                    StreamAct::Discard => framing.discard_body(stream),
                    StreamAct::Wanted(window) => framing.body_wanted(stream, window),
                    StreamAct::Consumed(bytes) => framing.body_consumed(stream, bytes),
                }
                self.mark_dirty(conn);
            }
            Owner::Quic(conn) => {
                self.quic_stream(conn, stream, act);
                self.mark_quic(conn);
            }
            Owner::Parent(page) if matches!(act, StreamAct::Ready) => self.with_stream(page, act),
            Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    fn compress(&mut self, key: SlabKey<ActiveExchange>, job: CompressJob) -> Option<Wake> {
        if job.data().len() > COMPRESS_AT_ONCE {
            let ticket = self.tickets;
            let task = Task::Compress(job.key(), job.data().clone());
            if self.jobs.submit(Job { worker: self.number, ticket, task }) {
                self.tickets += 1;
                self.compressing.insert(ticket, (key, job));
                return None;
            }
        }
        let output = job.run();
        self.core.files.finish_job(&job, output);
        Some(Wake::Compressed)
    }

    /// Has a kept answer compressed by the thread; if that has too much to do, the next request
    /// asks again.
    fn compress_object(&mut self, object: Arc<bolide_cache::Object>, key: VariantKey) {
        let data = object.body().unwrap_or_else(|| {
            let mut whole = Vec::with_capacity(object.body_len() as usize);
            object.pieces().for_each(|piece| whole.extend_from_slice(piece));
            Bytes::from(whole)
        });
        let (ticket, task) = (self.tickets, Task::Compress(key, data));
        if self.jobs.submit(Job { worker: self.number, ticket, task }) {
            self.tickets += 1;
            self.coding.insert(ticket, (object, key.coding));
        } else {
            object.unclaim_variant(key.coding);
        }
    }

    fn keep_variant(
        &self,
        object: &Arc<bolide_cache::Object>,
        coding: Coding,
        output: Result<Vec<u8>, bolide_files::EncodeError>,
    ) {
        let Some(front) = &self.core.cache else { return };
        let variant = match output {
            Ok(form) if (form.len() as u64) < object.body_len() => {
                bolide_cache::ObjectVariant::Ready(Bytes::from(form))
            }
            Ok(_) | Err(_) => bolide_cache::ObjectVariant::NotWorth,
        };
        // It may have left the index meanwhile.
        let _is_kept = front.store().set_variant(object, coding, variant);
    }

    fn check_password(
        &mut self,
        key: SlabKey<ActiveExchange>,
        check: &PasswordCheck,
    ) -> Option<Wake> {
        if check.is_slow() {
            let fingerprint = self.verified.fingerprint(check);
            if self.verified.knows(&fingerprint) {
                return Some(Wake::PasswordChecked(true));
            }
            let ticket = self.tickets;
            let task = Task::Check(check.clone());
            if self.jobs.submit(Job { worker: self.number, ticket, task }) {
                self.tickets += 1;
                self.checking.insert(ticket, (key, fingerprint));
                return None;
            }
        }
        Some(Wake::PasswordChecked(check.run()))
    }

    /// Keeps what a background job made and wakes who waits for it.
    pub(crate) fn handle_finished(&mut self, finished: FinishedJob) {
        match finished.output {
            Output::Compressed(output) => {
                if let Some((object, coding)) = self.coding.remove(&finished.ticket) {
                    return self.keep_variant(&object, coding, output);
                }
                let Some((key, job)) = self.compressing.remove(&finished.ticket) else { return };
                self.core.files.finish_job(&job, output);
                drop(job);
                self.step(key, Wake::Compressed);
            }
            Output::Checked(is_right) => {
                let Some((key, fingerprint)) = self.checking.remove(&finished.ticket) else {
                    return;
                };
                if is_right {
                    self.verified.note(fingerprint);
                }
                self.step(key, Wake::PasswordChecked(is_right));
            }
        }
    }
}

/// What is done to one stream, whichever framing carries it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StreamAct {
    Continue,
    Ready,
    Discard,
    /// It is read, with a window of so many bytes.
    Wanted(u32),
    Consumed(usize),
}

/// Looks at the disk as `files` asks.
pub fn look(io: &mut impl Io, probe: &Probe) -> Probed {
    let result = match probe.want {
        Want::Stat => open(io, probe, true, 0).map(|(meta, _, _)| Probed::Seen(meta)),
        Want::List => list(io, probe),
        Want::Open { content_max } => open_whole(io, probe, content_max),
    };
    result.unwrap_or_else(|failure| Probed::Failed(OpenFailure::from_errno(failure.errno)))
}

type FileLookupDone<T> = Result<T, bolide_io::FileFailure>;

fn open(
    io: &mut impl Io,
    probe: &Probe,
    stat_only: bool,
    content_max: u64,
) -> FileLookupDone<(Meta, Option<bolide_base::FileRef>, Option<Vec<u8>>)> {
    let symlinks = match probe.policy.symlinks {
        SymlinkPolicy::Follow => SymlinkRule::Follow,
        SymlinkPolicy::Refuse { from } => SymlinkRule::Refuse { from },
        SymlinkPolicy::RefuseForeign { from } => SymlinkRule::SameOwner { from },
    };
    let request = OpenRequest { path: &probe.path, symlinks, content_max, stat_only };
    let opened = io.open(&request)?;
    Ok((meta(&opened.stat), opened.file, opened.content))
}

fn open_whole(io: &mut impl Io, probe: &Probe, content_max: u64) -> FileLookupDone<Probed> {
    if let Some(known) = probe.known {
        let (now, _, _) = open(io, probe, true, 0)?;
        if now == known {
            return Ok(Probed::Unchanged);
        }
    }
    Ok(match open(io, probe, false, content_max)? {
        (meta, _, Some(content)) => Probed::Content(meta, Bytes::from(content)),
        (meta, Some(file), None) => Probed::Open(meta, file),
        (meta, None, None) => Probed::Seen(meta),
    })
}

fn list(io: &mut impl Io, probe: &Probe) -> FileLookupDone<Probed> {
    let (own, _, _) = open(io, probe, true, 0)?;
    let entries = io.list(&probe.path)?.into_iter().map(|(name, stat)| DirEntry {
        name: name.into_boxed_slice(),
        kind: kind(&stat),
        size: stat.size,
        mtime_secs: stat.mtime_seconds,
    });
    Ok(Probed::Listing(own, entries.collect()))
}

const fn kind(stat: &Stat) -> FileKind {
    if stat.is_dir {
        FileKind::Directory
    } else if stat.is_regular {
        FileKind::File
    } else {
        FileKind::Other
    }
}

/// Attributes as `files` names them.
pub(crate) const fn meta(stat: &Stat) -> Meta {
    Meta {
        kind: kind(stat),
        size: stat.size,
        mtime_secs: stat.mtime_seconds,
        mtime_nanos: stat.mtime_nanos,
        ctime_secs: stat.ctime_seconds,
        ctime_nanos: stat.ctime_nanos,
        inode: stat.inode,
        dev: stat.device,
        mode: stat.mode,
    }
}
