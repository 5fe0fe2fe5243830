//! The further faults and oddities of applications in scenarios with PHP pools.

use super::page::PageReply;
use super::{After, Conn, SimUpstream};
use crate::fault_record::AppReaction;
use crate::time::MILLI;

/// How long a late application may be silent, in nanoseconds: longer than `fastcgi_read_timeout`,
/// shorter than `request_timeout`.
const LATE_MAX: u64 = 4400 * MILLI;

impl SimUpstream {
    /// Draws a fault.
    pub(super) fn draw_odd_reaction(&mut self, has_body: bool) -> AppReaction {
        let all = [
            AppReaction::CloseEarly,
            AppReaction::Hang,
            AppReaction::Refuse,
            AppReaction::CloseInResponse,
            AppReaction::OversizedHead,
            AppReaction::Malformed,
            AppReaction::ShortBody,
            AppReaction::LongBody,
            AppReaction::EndEarly,
            AppReaction::Late,
            AppReaction::Late,
        ];
        let known = if has_body { all.len() } else { 3 };
        all[self.chance.index(known)]
    }

    /// Adds unusual lines to the head of a response, which all mean what they say.
    pub(super) fn make_odd(&mut self, reply: &mut PageReply, reaction: AppReaction) {
        let all = [
            "",
            "",
            "Status: 200\r\n",
            "Status: 200 Fine, thank you\r\n",
            "X-Accel-Buffering: no\r\n",
            "X-Accel-Expires: 0\r\n",
            "X-Accel-Limit-Rate: 900000\r\n",
            "Connection: close\r\n",
        ];
        let lines = match reaction {
            AppReaction::Refuse => "Status: 503 Not now\r\n",
            _ => all[self.chance.index(all.len())],
        };
        reply.head.insert_str(0, lines);
    }

    /// Decides how long an application with this reaction works, and whether it reads.
    pub(super) fn prolong(&mut self, conn: &mut Conn, reaction: AppReaction, now: u64) {
        conn.is_deaf = !conn.has_body && conn.secured.is_none() && self.chance.one_in(2);
        if reaction == AppReaction::Late {
            conn.rests_until = now + self.chance.below(LATE_MAX);
        }
        let killed_at = conn.seat.map(|seat| seat.killed_at());
        if let Some(at) = killed_at
            && reaction == AppReaction::Hang
            && conn.output.is_empty()
            && !self.chance.one_in(4)
        {
            conn.rests_until = at.max(now);
            conn.after = After::Close { rude: true };
        }
    }

    /// The Content-Length of a response.
    pub(super) fn stated_length(answer: &[u8]) -> usize {
        let text = String::from_utf8_lossy(&answer[..answer.len().min(1000)]).into_owned();
        let rest = text.split_once("Content-Length: ").map_or("", |(_, rest)| rest);
        rest.split_once('\r').and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
    }
}
