//! One process of the server: workers, disk writer, mailboxes, sockets. The disk survives it.

use std::cell::RefCell;
use std::sync::Arc;

use bolide_cache::StoreLimits;
use bolide_io::wake::Bell;
use bolide_worker::disk_writer::DiskWriter;
use bolide_worker::{Doing, Generation, Inbox, Jobs, Mail, Post, Startup, Worker};

use crate::kernel::Kernel;
use crate::sim_io::{Anchor, SharedKernel, SimIo};
use crate::site::{Layout, SimSockets};

/// A server.
pub(crate) struct SimServer {
    pub(crate) workers: Vec<Worker<SimIo>>,
    pub(crate) posts: Arc<Vec<Post>>,
    pub(crate) jobs: Jobs,
    pub(crate) sockets: SimSockets,
    /// Who looks after the files of the cache, if there are any.
    disk_writer: Option<DiskWriter<SimIo>>,
    /// The door of the thread of jobs.
    jobs_door: SimIo,
    bell: Bell,
}

/// What a life of a server begins with.
pub(crate) struct Birth<'a> {
    pub(crate) anchor: &'a Anchor,
    pub(crate) limits: StoreLimits,
    pub(crate) layout: &'a Layout,
    /// Whether answers are kept on the disk.
    pub(crate) has_trees: bool,
    /// Chance.
    pub(crate) seed: u64,
    /// Counts the servers.
    pub(crate) life: u64,
}

impl SimServer {
    /// Starts one.
    pub(crate) fn start(birth: &Birth<'_>, kernel: &SharedKernel) -> Result<Self, String> {
        let words = |error: std::io::Error| error.to_string();
        let &Birth { anchor, limits, layout, has_trees, seed, life } = birth;
        let mut sockets = SimSockets::new(anchor.clone(), limits, seed).map_err(words)?;
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
        let seed = seed ^ life << 32;
        let door = |number| SimIo::new(kernel.clone(), number, anchor.clone());
        let jobs_door = door(layout.workers + 1);
        let disk_writer = has_trees.then(|| {
            generation.site.open_trees();
            let store = Arc::clone(sockets.store());
            let mut disk_writer = DiskWriter::new(door(layout.workers), store, !seed);
            disk_writer.attend(&bell);
            // The first worker starts when the trees are open.
            let now = kernel.borrow().now();
            disk_writer.settle(now);
            disk_writer
        });
        let workers = inboxes.into_iter().enumerate().map(|(number, inbox)| {
            Worker::new(Startup {
                number: number as u16,
                io: door(number),
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
        Ok(Self { workers, posts, jobs, sockets, disk_writer, jobs_door, bell })
    }

    /// How many take turns: the workers, and after them the disk writer.
    pub(crate) fn turners(&self) -> usize {
        self.workers.len() + usize::from(self.disk_writer.is_some())
    }

    /// Lets one of them take a turn.
    pub(crate) fn turn(&mut self, number: usize, kernel: &RefCell<Kernel>) {
        match self.workers.get_mut(number) {
            Some(worker) => {
                let pulse = self.posts[number].pulse();
                let before = pulse.beat();
                worker.turn();
                let after = pulse.beat();
                // The watchdog must see that turns go on, and what they end with.
                if (after.turn, after.doing) != (before.turn + 1, Doing::Logs) {
                    let text = format!("worker {number} shows {before:?}, then {after:?}");
                    kernel.borrow_mut().offences.push(text);
                }
            }
            None => self.look_after(kernel),
        }
        self.ring_bells(kernel);
    }

    fn look_after(&mut self, kernel: &RefCell<Kernel>) {
        let Some(disk_writer) = &mut self.disk_writer else { return };
        let _ = disk_writer.turn(&self.bell, || false);
        for (_, text) in disk_writer.take_notes() {
            kernel.borrow_mut().tell(|| format!("disk_writer: {text}"));
        }
    }

    /// Has the disk writer do what is left, before the end.
    pub(crate) fn quit(&mut self, kernel: &RefCell<Kernel>) {
        kernel.borrow_mut().tell(|| "the server quits".to_owned());
        if let Some(disk_writer) = &mut self.disk_writer {
            let _ = disk_writer.turn(&self.bell, || true);
        }
    }

    /// Another configuration is in force.
    pub(crate) fn settle(&self, generation: &Generation) {
        if self.disk_writer.is_some() {
            generation.site.open_trees();
            self.bell.ring();
        }
    }

    /// Tells the kernel of mail between workers.
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

    pub(crate) fn tell_all(&self, kernel: &RefCell<Kernel>, what: &str, mail: impl Fn() -> Mail) {
        for (worker, post) in self.posts.iter().enumerate() {
            let mut kernel = kernel.borrow_mut();
            kernel.tell(|| format!("worker {worker} is told: {what}"));
            // A box holds thousands of notes.
            let _ = post.send(mail());
            kernel.ring(worker);
        }
    }

    /// Lets the thread of long computations do one.
    pub(crate) fn compute(&mut self, kernel: &RefCell<Kernel>) -> bool {
        let Some(worker) = self.jobs.compute_one(&self.posts, &mut self.jobs_door) else {
            return false;
        };
        let mut kernel = kernel.borrow_mut();
        kernel.tell(|| format!("worker {worker} is told: compressed"));
        kernel.ring(usize::from(worker));
        true
    }
}
