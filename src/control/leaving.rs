//! `bolide drain`: readiness probes fail from now on, and the server quits some time later.

use bolide_base::Instant;
use bolide_conf::model::LogLevel;

use super::{ControlThread, Life};
use crate::admin::AdminClient;
use crate::admin::drain::after;
use crate::admin::line_protocol::Words;

/// The clients that wait for the end of the process, and when it begins.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    quits_at: Option<Instant>,
    /// They get their reply when the last request is answered.
    clients: Vec<AdminClient>,
}

impl Leaving {
    /// Replies to the waiting clients that the server has ended.
    pub(super) fn end(&mut self) {
        self.clients.drain(..).for_each(|client| client.reply(Ok(Vec::new())));
    }
}

impl ControlThread<'_> {
    /// Executes `bolide drain`.
    pub(super) fn drain_by_command(&mut self, client: AdminClient, words: &Words) {
        let after = match after(words) {
            Ok(after) => after,
            Err(why) => return client.reply(Err(why)),
        };
        self.leaving_word.clients.push(client);
        if self.leaving_word.quits_at.is_none() && self.life == Life::Serving {
            let seconds = after.as_secs();
            self.log.write(LogLevel::Notice, &format!("leaving, quits in {seconds} seconds"));
            self.shared.figures.leave();
            self.leaving_word.quits_at = Some(bolide_io::process::now().mono.after(after));
        }
    }

    /// Quits if the time has come.
    pub(super) fn leave_if_due(&mut self, now: Instant) {
        if self.leaving_word.quits_at.take_if(|at| *at <= now).is_some()
            && self.life == Life::Serving
        {
            self.quit();
        }
    }
}
