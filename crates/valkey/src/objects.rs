//! The commands of shared objects: each is one script, so that it is one step for all nodes.

use std::time::Duration;

use redis::Value;

use crate::line::Line;
use crate::{ValkeyFault, replies};

/// How long a failed fill is recorded, so that waiting nodes continue. A lease may be shorter.
const NOTHING_MS: u64 = 1000;

/// How long misses of a page count that is not shared yet.
const USES_MS: u64 = 60 * 60 * 1000;

/// Gets an object that does not have this mark, or takes the lease of its key, if it was missed
/// often enough. Keys: the count of its misses, the object, its lease, the lease of its page.
/// Arguments: token, time of the lease, mark, size limit, least misses, time of the count. A lease
/// with more remaining time than leases get is from before the server's clock was set back: its
/// owner has finished, or fetches once more.
const ASK: &str = "\
local n = redis.pcall('STRLEN', KEYS[2])
if type(n) == 'number' and n > 0 and n <= tonumber(ARGV[4]) then
  local found = redis.call('GET', KEYS[2])
  if #ARGV[3] == 0 or string.sub(found, 1, #ARGV[3]) ~= ARGV[3] then return {1, found} end
end
for i = 3, #KEYS do
  local lease = redis.pcall('GET', KEYS[i])
  if type(lease) == 'table' then return {4} end
  local left = redis.pcall('PTTL', KEYS[i])
  local is_over = type(left) == 'number' and left > math.max(tonumber(ARGV[2]), 1000)
  if lease == '-' and i == 3 and not is_over then return {4} end
  if lease and lease ~= '-' and not is_over then return {2} end
end
if tonumber(ARGV[5]) > 1 then
  local had = redis.pcall('GET', KEYS[1])
  local uses = (type(had) == 'string' and tonumber(had) or 0) + 1
  redis.call('SET', KEYS[1], uses, 'PX', ARGV[6])
  if uses < tonumber(ARGV[5]) then return {4} end
end
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
return {3}";

/// Stores an object: with a token only while that lease exists, which it ends; without one only
/// while there is no lease and it was missed often enough. Keys: the object, the lease, the count
/// of its misses, which lasts as long. Arguments: bytes, time, token, least misses, least time of
/// the count.
const OFFER: &str = "\
local lease = redis.pcall('GET', KEYS[2])
local least, uses = tonumber(ARGV[4]), redis.pcall('GET', KEYS[3])
if ARGV[3] ~= '' then
  if lease ~= ARGV[3] then return 0 end
elseif type(lease) == 'string' and lease ~= '-' then
  return 0
elseif least > 1 and (type(uses) ~= 'string' or (tonumber(uses) or 0) < least) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if least > 1 and type(uses) == 'string' then
  redis.call('SET', KEYS[3], uses, 'PX', math.max(tonumber(ARGV[2]), tonumber(ARGV[5])))
end
if ARGV[3] ~= '' then redis.call('DEL', KEYS[2]) end
return 1";

/// Ends a lease without an object. Key: the lease. Arguments: token, time.
const RELEASE: &str = "\
if redis.pcall('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], '-', 'PX', ARGV[2]) end
return 1";

/// Moves a lease to another key, unless that one is leased: nodes that wait for the first key
/// continue. Keys: the lease, the other one. Arguments: token, time.
const MOVE: &str = "\
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.pcall('PTTL', KEYS[1])
redis.call('DEL', KEYS[1])
local other = redis.pcall('GET', KEYS[2])
if type(other) == 'string' and other ~= '-' then return 0 end
if type(left) ~= 'number' or left < 1 then left = ARGV[2] end
redis.call('SET', KEYS[2], ARGV[1], 'PX', left)
return 1";

/// A request for an object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectAsk<'a> {
    /// The key of the object.
    pub key: u128,
    /// The key of the page of which it is a variant.
    pub base: Option<u128>,
    /// The token of a lease of this node; unique.
    pub token: &'a [u8],
    /// How long the lease lasts.
    pub lease: Duration,
    /// The mark of an object that is not usable.
    pub mark: &'a [u8],
    /// LIMIT: bytes of an object.
    pub size_max: u64,
    /// The misses of all nodes, this one included, after which the object is shared.
    pub min_uses: u32,
}

/// The reply to a request for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectFound {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// Another node has the lease and fetches it.
    Held,
    /// This node has the lease now.
    Leased,
    /// Another node has fetched it, and it cannot be shared; or it was not missed often enough.
    Alone,
}

/// An object for other nodes.
#[derive(Clone, Copy, Debug)]
pub struct ObjectOffer<'a> {
    /// Its key.
    pub key: u128,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its lifetime, in milliseconds.
    pub keep_ms: u64,
    /// The key and the token of the lease, if this node has it.
    pub lease: Option<(u128, &'a [u8])>,
    /// As in [`ObjectAsk`].
    pub min_uses: u32,
}

impl Line {
    /// Checks that the server responds within this time.
    ///
    /// # Errors
    ///
    /// It does not.
    pub async fn look(&self, timeout: Duration) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("EXISTS");
        command.arg(&self.keys.objects);
        self.ask(&command, timeout).await.map(drop)
    }

    fn object_key(&self, key: u128) -> String {
        format!("{}{key:032x}", self.keys.objects)
    }

    fn uses_key(&self, key: u128) -> String {
        format!("{}{key:032x}", self.keys.uses)
    }

    fn lease_key(&self, key: u128) -> String {
        format!("{}{key:032x}", self.keys.leases)
    }

    /// Requests an object, with this timeout.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid; this node may have the lease.
    pub async fn ask_object(
        &self,
        asked: ObjectAsk<'_>,
        timeout: Duration,
    ) -> Result<ObjectFound, ValkeyFault> {
        let mut command = redis::cmd("EVAL");
        command.arg(ASK).arg(if asked.base.is_some() { 4 } else { 3 });
        command
            .arg(self.uses_key(asked.key))
            .arg(self.object_key(asked.key))
            .arg(self.lease_key(asked.key));
        if let Some(base) = asked.base {
            command.arg(self.lease_key(base));
        }
        command.arg(asked.token).arg(asked.lease.as_millis() as u64);
        command.arg(asked.mark).arg(asked.size_max).arg(asked.min_uses).arg(USES_MS);
        let reply = self.ask(&command, timeout).await?;
        replies::object(reply).ok_or_else(|| self.strange())
    }

    /// Stores an object. Returns whether it was accepted.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid; the object may have been stored.
    pub async fn offer_object(&self, offer: ObjectOffer<'_>) -> Result<bool, ValkeyFault> {
        let mut command = redis::cmd("EVAL");
        let (lease, token) = offer.lease.unwrap_or((offer.key, b""));
        command.arg(OFFER).arg(3).arg(self.object_key(offer.key)).arg(self.lease_key(lease));
        command.arg(self.uses_key(offer.key)).arg(offer.bytes).arg(offer.keep_ms).arg(token);
        command.arg(offer.min_uses).arg(USES_MS);
        self.ask_number(&command).await.map(|taken| taken == 1)
    }

    /// Stores a list of vary names, whichever node has its lease.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn offer_vary(&self, offer: ObjectOffer<'_>) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("SET");
        command.arg(self.object_key(offer.key)).arg(offer.bytes).arg("PX").arg(offer.keep_ms);
        match self.ask(&command, self.timeout).await? {
            Value::Okay => Ok(()),
            _ => Err(self.strange()),
        }
    }

    /// Ends a lease without an object: waiting nodes continue.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn release(&self, key: u128, token: &[u8]) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("EVAL");
        command.arg(RELEASE).arg(1).arg(self.lease_key(key)).arg(token).arg(NOTHING_MS);
        self.ask_number(&command).await.map(drop)
    }

    /// Moves a lease to the key `to`, which lasts as long.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn move_lease(
        &self,
        (from, to): (u128, u128),
        token: &[u8],
        lease: Duration,
    ) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("EVAL");
        command.arg(MOVE).arg(2).arg(self.lease_key(from)).arg(self.lease_key(to));
        command.arg(token).arg(lease.as_millis() as u64);
        self.ask_number(&command).await.map(drop)
    }

    async fn ask_number(&self, command: &redis::Cmd) -> Result<u64, ValkeyFault> {
        let reply = self.ask(command, self.timeout).await?;
        replies::number(&reply).ok_or_else(|| self.strange())
    }
}
