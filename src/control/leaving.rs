//! `bolide drain`: the server says that it wants no new requests, and quits some time later.

use bolide_base::Instant;
use bolide_conf::model::LogLevel;

use super::{ControlThread, Life};
use crate::admin::AdminClient;
use crate::admin::drain::after;
use crate::admin::line_protocol::Words;

/// Who waits for the end of the process, and when it begins.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    quits_at: Option<Instant>,
    /// They are told when the last request is answered.
    clients: Vec<AdminClient>,
}

impl Leaving {
    /// Tells those who waited that the server has ended.
    pub(super) fn end(&mut self) {
        self.clients.drain(..).for_each(|client| client.reply(Ok(Vec::new())));
    }
}

impl ControlThread<'_> {
    /// Carries out `bolide drain`.
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

    /// Quits if that was ordered for this moment.
    pub(super) fn leave_if_due(&mut self, now: Instant) {
        if self.leaving_word.quits_at.take_if(|at| *at <= now).is_some()
            && self.life == Life::Serving
        {
            self.quit();
        }
    }
}
