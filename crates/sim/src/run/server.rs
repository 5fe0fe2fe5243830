//! One process of the server: workers, disk writer, mailboxes, sockets. The disk survives it.

use std::cell::RefCell;
use std::sync::Arc;

use bolide_cache::StoreLimits;
use bolide_io::wake::Bell;
use bolide_worker::disk_writer::DiskWriter;
use bolide_worker::{Doing, Generation, Inbox, Jobs, Mail, Post, Startup, Worker};

use crate::kernel::Kernel;
use crate::sim_io::{DescriptorSource, SharedKernel, SimIo};
use crate::site::{Layout, SimSockets};

/// A server process.
pub(crate) struct SimServer {
    pub(crate) workers: Vec<Worker<SimIo>>,
    pub(crate) posts: Arc<Vec<Post>>,
    pub(crate) jobs: Jobs,
    pub(crate) sockets: SimSockets,
    /// The disk writer, if the scenario has a disk cache.
    disk_writer: Option<DiskWriter<SimIo>>,
    /// The `Io` of the job thread.
    jobs_io: SimIo,
    bell: Bell,
}

/// The parameters of a server process.
pub(crate) struct ServerSetup<'a> {
    pub(crate) descriptors: &'a DescriptorSource,
    pub(crate) limits: StoreLimits,
    pub(crate) layout: &'a Layout,
    /// Whether the cache has disk trees.
    pub(crate) has_disk_cache: bool,
    /// The seed of the run.
    pub(crate) seed: u64,
    /// The number of servers before this one.
    pub(crate) instance: u64,
}

impl SimServer {
    /// Starts a server.
    pub(crate) fn start(setup: &ServerSetup<'_>, kernel: &SharedKernel) -> Result<Self, String> {
        let words = |error: std::io::Error| error.to_string();
        let &ServerSetup { descriptors, limits, layout, has_disk_cache, seed, instance } = setup;
        let mut sockets = SimSockets::new(descriptors.clone(), limits, seed).map_err(words)?;
        let generation = sockets.generation(layout, &mut kernel.borrow_mut())?;
        let (mut posts, mut inboxes) = (Vec::new(), Vec::new());
        for _ in 0..layout.workers {
            let (post, inbox) = Inbox::new().map_err(words)?;
            posts.push(post);
            inboxes.push(inbox);
        }
        let posts = Arc::new(posts);
        if layout.has_upkeep {
            sockets.open_logs(&mut kernel.borrow_mut()).map_err(words)?;
        }
        let jobs = Jobs::without_thread();
        let epoch = bolide_quic::QuicClock::starting_at(bolide_io::process::epoch());
        let bell = Bell::new().map_err(words)?;
        let seed = seed ^ instance << 32;
        let io = |number| SimIo::new(kernel.clone(), number, descriptors.clone());
        let jobs_io = io(layout.workers + 1);
        let disk_writer = has_disk_cache.then(|| {
            generation.site.open_trees();
            let store = Arc::clone(sockets.store());
            let mut disk_writer = DiskWriter::new(io(layout.workers), store, !seed);
            disk_writer.attend(&bell);
            // Workers start when the disk trees are open.
            let now = kernel.borrow().now();
            disk_writer.settle(now);
            disk_writer
        });
        let workers = inboxes.into_iter().enumerate().map(|(number, inbox)| {
            Worker::new(Startup {
                number: number as u16,
                io: io(number),
                generation: generation.clone(),
                logs: sockets.logs(),
                inbox,
                posts: posts.clone(),
                jobs: jobs.clone(),
                seed: seed ^ number as u64,
                ids: (1, number as u32),
                clock: epoch,
                disk_writer: bell.clone(),
                console: bolide_worker::ConsoleDesk::new().expect("a descriptor is free"),
            })
        });
        let workers = workers.collect();
        Ok(Self { workers, posts, jobs, sockets, disk_writer, jobs_io, bell })
    }

    /// The number of workers and the disk writer, which take turns.
    pub(crate) fn turners(&self) -> usize {
        self.workers.len() + usize::from(self.disk_writer.is_some())
    }

    /// One turn of a worker or of the disk writer.
    pub(crate) fn turn(&mut self, number: usize, kernel: &RefCell<Kernel>) {
        match self.workers.get_mut(number) {
            Some(worker) => {
                let pulse = self.posts[number].pulse();
                let before = pulse.beat();
                worker.turn();
                let after = pulse.beat();
                // The watchdog must see each turn and what it ends with.
                if (after.turn, after.doing) != (before.turn + 1, Doing::Logs) {
                    let text = format!("worker {number} shows {before:?}, then {after:?}");
                    kernel.borrow_mut().violations.push(text);
                }
            }
            None => self.turn_disk_writer(kernel),
        }
        self.ring_bells(kernel);
    }

    fn turn_disk_writer(&mut self, kernel: &RefCell<Kernel>) {
        let Some(disk_writer) = &mut self.disk_writer else { return };
        let _ = disk_writer.turn(&self.bell, || false);
        for (_, text) in disk_writer.take_notes() {
            kernel.borrow_mut().trace(|| format!("disk_writer: {text}"));
        }
    }

    /// The disk writer writes pending objects before the server quits.
    pub(crate) fn quit(&mut self, kernel: &RefCell<Kernel>) {
        kernel.borrow_mut().trace(|| "the server quits".to_owned());
        if let Some(disk_writer) = &mut self.disk_writer {
            let _ = disk_writer.turn(&self.bell, || true);
        }
    }

    /// Opens the disk trees of a new configuration.
    pub(crate) fn settle(&self, generation: &Generation) {
        if self.disk_writer.is_some() {
            generation.site.open_trees();
            self.bell.ring();
        }
    }

    /// Wakes the workers that have mail from other workers.
    fn ring_bells(&self, kernel: &RefCell<Kernel>) {
        for (worker, post) in self.posts.iter().enumerate() {
            if post.has_mail() {
                kernel.borrow_mut().ring(worker);
            }
        }
        if self.disk_writer.is_some() && self.bell.has_rung() {
            kernel.borrow_mut().ring(self.workers.len());
        }
    }

    pub(crate) fn send_all(&self, kernel: &RefCell<Kernel>, what: &str, mail: impl Fn() -> Mail) {
        for (worker, post) in self.posts.iter().enumerate() {
            let mut kernel = kernel.borrow_mut();
            kernel.trace(|| format!("worker {worker} gets mail: {what}"));
            // A mailbox holds thousands of messages.
            let _ = post.send(mail());
            kernel.ring(worker);
        }
    }

    /// Computes one job.
    pub(crate) fn compute(&mut self, kernel: &RefCell<Kernel>) -> bool {
        let Some(worker) = self.jobs.compute_one(&self.posts, &mut self.jobs_io) else {
            return false;
        };
        let mut kernel = kernel.borrow_mut();
        kernel.trace(|| format!("worker {worker} gets mail: compressed"));
        kernel.ring(usize::from(worker));
        true
    }
}
