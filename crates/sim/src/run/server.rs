//! One life of the server: workers, librarian, mailboxes, sockets. The disk outlives it.

use std::cell::RefCell;
use std::sync::Arc;

use cache::StoreLimits;
use io::wake::Bell;
use worker::librarian::Librarian;
use worker::{Generation, Inbox, Jobs, Mail, Post, Startup, Worker};

use crate::door::{Anchor, Shared, SimIo};
use crate::kernel::Kernel;
use crate::site::{Layout, Sockets};

/// A server.
pub(crate) struct Server {
    pub(crate) workers: Vec<Worker<SimIo>>,
    pub(crate) posts: Arc<Vec<Post>>,
    pub(crate) jobs: Jobs,
    pub(crate) sockets: Sockets,
    /// Who looks after the files of the cache, if there are any.
    librarian: Option<Librarian<SimIo>>,
    bell: Bell,
}

/// What a life of a server begins with.
pub(crate) struct Birth<'a> {
    pub(crate) anchor: &'a Anchor,
    pub(crate) limits: StoreLimits,
    pub(crate) layout: &'a Layout,
    /// Whether answers are kept on the disk.
    pub(crate) has_shelves: bool,
    /// Chance.
    pub(crate) seed: u64,
    /// Counts the servers.
    pub(crate) life: u64,
}

impl Server {
    /// Starts one.
    pub(crate) fn start(birth: &Birth<'_>, kernel: &Shared) -> Result<Self, String> {
        let words = |error: std::io::Error| error.to_string();
        let &Birth { anchor, limits, layout, has_shelves, seed, life } = birth;
        let mut sockets = Sockets::new(anchor.clone(), limits, seed).map_err(words)?;
        let generation = sockets.generation(layout, &mut kernel.borrow_mut())?;
        let (mut posts, mut inboxes) = (Vec::new(), Vec::new());
        for _ in 0..layout.workers {
            let (post, inbox) = Inbox::new().map_err(words)?;
            posts.push(post);
            inboxes.push(inbox);
        }
        let posts = Arc::new(posts);
        let jobs = Jobs::without_thread();
        let epoch = quic::Clock::starting_at(io::process::epoch());
        let bell = Bell::new().map_err(words)?;
        let seed = seed ^ life << 32;
        let door = |number| SimIo::new(kernel.clone(), number, anchor.clone());
        let librarian = has_shelves.then(|| {
            generation.site.open_shelves();
            let store = Arc::clone(sockets.store());
            let mut librarian = Librarian::new(door(layout.workers), store, !seed);
            librarian.attend(&bell);
            // The first worker starts when the shelves are open.
            let now = kernel.borrow().now();
            librarian.settle(now);
            librarian
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
                librarian: bell.clone(),
            })
        });
        let workers = workers.collect();
        Ok(Self { workers, posts, jobs, sockets, librarian, bell })
    }

    /// How many take turns: the workers, and after them the librarian.
    pub(crate) fn turners(&self) -> usize {
        self.workers.len() + usize::from(self.librarian.is_some())
    }

    /// Lets one of them take a turn.
    pub(crate) fn turn(&mut self, number: usize, kernel: &RefCell<Kernel>) {
        match self.workers.get_mut(number) {
            Some(worker) => worker.turn(),
            None => self.look_after(kernel),
        }
        self.ring_bells(kernel);
    }

    fn look_after(&mut self, kernel: &RefCell<Kernel>) {
        let Some(librarian) = &mut self.librarian else { return };
        let _ = librarian.turn(&self.bell, || false);
        for (_, text) in librarian.take_notes() {
            kernel.borrow_mut().tell(|| format!("librarian: {text}"));
        }
    }

    /// Has the librarian do what is left, before the end.
    pub(crate) fn quit(&mut self, kernel: &RefCell<Kernel>) {
        kernel.borrow_mut().tell(|| "the server quits".to_owned());
        if let Some(librarian) = &mut self.librarian {
            let _ = librarian.turn(&self.bell, || true);
        }
    }

    /// Another configuration is in force.
    pub(crate) fn settle(&self, generation: &Generation) {
        if self.librarian.is_some() {
            generation.site.open_shelves();
            self.bell.ring();
        }
    }

    /// Tells the kernel of mail that somebody sent to others.
    fn ring_bells(&self, kernel: &RefCell<Kernel>) {
        for (worker, post) in self.posts.iter().enumerate() {
            if post.has_mail() {
                kernel.borrow_mut().ring(worker);
            }
        }
        if self.librarian.is_some() && self.bell.has_rung() {
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
    pub(crate) fn compute(&self, kernel: &RefCell<Kernel>) -> bool {
        let Some(worker) = self.jobs.compute_one(&self.posts) else { return false };
        let mut kernel = kernel.borrow_mut();
        kernel.tell(|| format!("worker {worker} is told: compressed"));
        kernel.ring(usize::from(worker));
        true
    }
}
