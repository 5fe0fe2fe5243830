//! Reads of a stream that skip entries too large to be read: any client of Valkey may add an entry
//! of hundreds of megabytes, and no reply may be that large.
//!
//! Each is a script. Where scripts are not allowed, the plain command is sent, and a reply that is
//! too large ends the connection.

use bolide_cluster::EntryId;
use redis::{Cmd, Value};

use crate::line::{Line, StreamEntry, StreamState};
use crate::{ValkeyFault, ValkeyFaultKind, replies};

/// LIMIT: bytes of one entry, and of all entries of a reply. Entries of servers are far smaller.
const ENTRY_MAX: usize = 8 << 20;
const ENTRIES_MAX: usize = 24 << 20;

/// Reads entries. One that is too large has the number of its bytes in place of its fields; if all
/// together are too large, the first ones are returned. The framing of an entry and of each of its
/// parts counts as well: no reply exceeds its limit, however many parts there are. Key: the stream.
/// Arguments: the command, start and end, number of entries, bytes of one and of all.
const READ: &str = "\
local all = redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[3], 'COUNT', ARGV[4])
local out, left = {}, tonumber(ARGV[6])
for _, entry in ipairs(all) do
  local size = 64
  for _, part in ipairs(entry[2] or {}) do size = size + #part + 16 end
  if size > tonumber(ARGV[5]) then
    entry[2] = size
  else
    left = left - size
    if left < 0 then break end
  end
  out[#out + 1] = entry
end
return out";

/// Returns the state of a stream by the ids of its first and last entries. Key: the stream.
const STATE: &str = "\
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local all, out = redis.call('XINFO', 'STREAM', KEYS[1]), {}
for at = 1, #all, 2 do
  local name, it = all[at], all[at + 1]
  if name == 'first-entry' or name == 'last-entry' then
    if type(it) == 'table' then out[#out + 1] = name; out[#out + 1] = {it[1]} end
  elseif name == 'last-generated-id' or name == 'length' then
    out[#out + 1] = name
    out[#out + 1] = it
  end
end
return out";

/// The entries to read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Range {
    /// From this one on, inclusive.
    From(EntryId),
    /// Those after it.
    Behind(EntryId),
    /// The newest, the newest first.
    Newest,
}

impl Range {
    /// The command, its start, and its end.
    fn words(self) -> [String; 3] {
        let forward = |start: String| ["XRANGE".to_owned(), start, "+".to_owned()];
        match self {
            Self::From(id) => forward(id.to_string()),
            Self::Behind(id) => forward(format!("({id}")),
            Self::Newest => ["XREVRANGE", "+", "-"].map(str::to_owned),
        }
    }
}

impl Line {
    /// Whether the server runs scripts for this connection, so that replies omit entries that are
    /// too large. [`Line::wait`] does not.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn can_leave_out(&self) -> Result<bool, ValkeyFault> {
        let mut script = redis::cmd("EVAL");
        script.arg("return 1").arg(0);
        match self.ask(&script, self.timeout).await {
            Ok(_) => Ok(true),
            Err(fault) if fault.kind == ValkeyFaultKind::Refused => {
                self.disable_scripts();
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Up to `count` entries of a stream with their bytes in this field.
    pub(crate) async fn read_range(
        &self,
        (key, field): (&str, &str),
        range: Range,
        count: usize,
    ) -> Result<Vec<StreamEntry>, ValkeyFault> {
        let words = range.words();
        let mut script = redis::cmd("EVAL");
        script.arg(READ).arg(1).arg(key).arg(&words).arg(count).arg(ENTRY_MAX).arg(ENTRIES_MAX);
        let [name, start, end] = &words;
        let mut plain = redis::cmd(name);
        plain.arg(key).arg(start).arg(end).arg("COUNT").arg(count);
        let value = self.ask_small(&script, &plain).await?;
        replies::entries_of(value, field).ok_or_else(|| self.strange())
    }

    /// The state of a stream; `None` if there is none.
    pub(crate) async fn state_of(&self, key: &str) -> Result<Option<StreamState>, ValkeyFault> {
        let mut exists = redis::cmd("EXISTS");
        exists.arg(key);
        let mut script = redis::cmd("EVAL");
        script.arg(STATE).arg(1).arg(key);
        // The command itself has no distinct reply for a stream that does not exist.
        if self.ask_for(&exists, |value| replies::number(&value)).await? == 0 {
            return Ok(None);
        }
        let mut plain = redis::cmd("XINFO");
        plain.arg("STREAM").arg(key);
        match self.ask_small(&script, &plain).await? {
            Value::Nil => Ok(None),
            value => replies::state(&value).map(Some).ok_or_else(|| self.strange()),
        }
    }

    async fn ask_small(&self, script: &Cmd, plain: &Cmd) -> Result<Value, ValkeyFault> {
        if self.has_scripts() {
            match self.ask(script, self.timeout).await {
                Err(fault) if fault.kind == ValkeyFaultKind::Refused => {}
                answered => return answered,
            }
        }
        let answered = self.ask(plain, self.timeout).await;
        if answered.is_ok() {
            self.disable_scripts();
        }
        answered
    }
}
