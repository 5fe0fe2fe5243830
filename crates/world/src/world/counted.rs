//! The cost of one request by a counter of the caller, such as allocations.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_engine::{BodyPiece, Due, StepEffect, Wake};
use bolide_http::RequestHead;

use super::FuzzWorld;

impl FuzzWorld {
    /// By how much `counter` grows while a request is answered that needs nothing from the disk,
    /// from its start to its log line; what the world itself does is not counted.
    ///
    /// # Panics
    ///
    /// When the answer is not complete after one step and a pull.
    pub fn count(&mut self, head: Box<RequestHead>, counter: impl Fn() -> u64) -> u64 {
        let mut out = SendChain::new(CopyPolicy::Contiguous);
        out.push_with(64 * 1024, |_| 1);
        out.clear();
        self.effects.reserve(8);
        self.requests += 1;
        let before = counter();
        self.exchange.start(head, self.site.clone(), None);
        self.wake(Wake::Start);
        let mut used = counter() - before;
        while let Some(
            StepEffect::Probe(_) | StepEffect::Compress(_) | StepEffect::CompressObject(..),
        ) = self.effects.first()
        {
            match self.effects.remove(0) {
                StepEffect::Probe(probe) => {
                    let probed = self.door.perform(&probe);
                    self.files.insert_watched(&probe, probed, self.now);
                    self.wake(Wake::Probed);
                }
                StepEffect::Compress(job) => {
                    let output = job.run();
                    self.files.finish_job(&job, output);
                    self.wake(Wake::Compressed);
                }
                StepEffect::CompressObject(object, coding, level) => {
                    self.code(&object, coding, level);
                }
                _ => {}
            }
            used = u64::MAX;
        }
        assert!(matches!(self.effects[..], [StepEffect::Respond]), "answered in one step");
        self.effects.clear();
        let before = counter();
        while matches!(self.exchange.response_body().pull(16 * 1024, &mut out), BodyPiece::More) {}
        self.wake(Wake::Sent { body_bytes: out.len(), head_bytes: 100 });
        let head = self.exchange.take_request();
        used = used.saturating_add(counter() - before);
        drop(head);
        self.effects.clear();
        // The worker writes log lines out between turns and keeps the buffer.
        while let Some(id) = self.logs.poll_write(self.now.mono, Due::Everything) {
            let bytes = self.logs.batch(id).lines.len();
            self.logs.written(id, bytes, self.now.mono);
        }
        used
    }
}
