//! Calls that take a descriptor: where there is none, idle files are closed and the call is made
//! once more. For a client, idle connections to origins and to other clients go as well.

use bolide_base::errno::{EMFILE, ENFILE};
use bolide_files::{Probe, Probed};
use bolide_io::{FileFailure, Io};

use crate::env::WorkerEnv;
use crate::look::look;
use crate::worker::Worker;

/// Whether a call failed because there was no descriptor.
pub(crate) const fn is_out_of_descriptors(failure: &FileFailure) -> bool {
    matches!(failure.errno, EMFILE | ENFILE)
}

/// Closes what is worth less than a new connection, because descriptors are needed; false if there
/// is nothing.
pub(crate) fn make_room_for_client<I: Io>(worker: &mut Worker<I>) -> bool {
    let (origins, env, _) = worker.requests.upstream();
    env.end_waiting()
        || env.give_up_descriptors()
        || origins.links.give_up_idle(env)
        || worker.make_room()
}

impl<I: Io> WorkerEnv<I> {
    /// Closes idle files, because descriptors are needed; false if there are none.
    pub(crate) fn give_up_descriptors(&mut self) -> bool {
        self.files.give_up_descriptors(self.now)
    }

    /// Makes a call that takes a descriptor.
    ///
    /// # Errors
    ///
    /// The failure of the last call.
    pub(crate) fn with_room<T>(
        &mut self,
        mut call: impl FnMut(&mut I) -> Result<T, FileFailure>,
    ) -> Result<T, FileFailure> {
        let is_out = |done: &Result<T, _>| done.as_ref().is_err_and(is_out_of_descriptors);
        self.twice_if(is_out, |io| call(io))
    }

    /// Looks a file up.
    pub(crate) fn look_at(&mut self, probe: &Probe) -> Probed {
        self.twice_if(Probed::is_out_of_descriptors, |io| look(io, probe))
    }

    /// Makes a call, and once more if `is_out` says of its result that there was no descriptor and
    /// idle files were closed.
    pub(crate) fn twice_if<T>(
        &mut self,
        is_out: impl Fn(&T) -> bool,
        mut call: impl FnMut(&mut I) -> T,
    ) -> T {
        let done = call(&mut self.io);
        if is_out(&done) && self.give_up_descriptors() { call(&mut self.io) } else { done }
    }
}
