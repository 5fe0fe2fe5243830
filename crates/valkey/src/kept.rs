//! The commands of values that servers keep for each other under a name; what they mean is sealed.

use redis::Value;

use crate::line::Line;
use crate::{ValkeyFault, replies};

/// Replaces a value by another one, if it is still what it was. Key: the value. Arguments: the
/// bytes before, the bytes now, the time.
const REPLACE: &str = "\
local now = redis.call('GET', KEYS[1])
if (now or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1";

/// Takes a lease, unless it has another token. Key: the lease. Arguments: the token, the time.
const TAKE_LEASE: &str = "\
local now = redis.call('GET', KEYS[1])
if now and now ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1";

/// Has a lease last longer, if it has this token. Key: the lease. Arguments: the token, the time.
const RENEW_LEASE: &str = "\
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 1";

/// Ends a lease, if it has this token. Key: the lease. Argument: the token.
const END_LEASE: &str = "\
if redis.pcall('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1";

impl Line {
    /// The value of that name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn secret(&self, name: &str) -> Result<Option<Vec<u8>>, ValkeyFault> {
        let mut command = redis::cmd("GET");
        command.arg(format!("{}{name}", self.keys.secrets));
        self.ask_for(&command, |value| match value {
            Value::BulkString(bytes) => Some(Some(bytes)),
            Value::Nil => Some(None),
            _ => None,
        })
        .await
    }

    /// Keeps a value for so many milliseconds, unless there is one of that name.
    ///
    /// # Errors
    ///
    /// There is no good reply; the value may be there.
    pub async fn keep_first(&self, name: &str, bytes: &[u8], ms: u64) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("SET");
        command.arg(format!("{}{name}", self.keys.secrets)).arg(bytes);
        command.arg("NX").arg("PX").arg(ms.max(1));
        self.ask_for(&command, |value| matches!(value, Value::Okay | Value::Nil).then_some(()))
            .await
    }

    /// Keeps a value for so many milliseconds, if what is there is still this. Returns whether it
    /// was; an empty value stands for none.
    ///
    /// # Errors
    ///
    /// There is no good reply; the value may be there.
    pub async fn replace_secret(
        &self,
        name: &str,
        (before, bytes): (&[u8], &[u8]),
        ms: u64,
    ) -> Result<bool, ValkeyFault> {
        let mut command = redis::cmd("EVAL");
        command.arg(REPLACE).arg(1).arg(format!("{}{name}", self.keys.secrets));
        command.arg(before).arg(bytes).arg(ms.max(1));
        self.ask_for(&command, |value| replies::number(&value)).await.map(|done| done == 1)
    }

    /// Takes a lease for so many milliseconds, by a token that no other lease has. Returns
    /// whether it is this server's; it may be asked again with the same token.
    ///
    /// # Errors
    ///
    /// There is no good reply; the lease may be this server's.
    pub async fn take_lease(&self, name: &str, token: &str, ms: u64) -> Result<bool, ValkeyFault> {
        let mut command = redis::cmd("EVAL");
        command.arg(TAKE_LEASE).arg(1).arg(format!("{}{name}", self.keys.secrets));
        command.arg(token).arg(ms.max(1));
        self.ask_for(&command, |value| replies::number(&value)).await.map(|taken| taken == 1)
    }

    /// Has a lease that has this token last for so many milliseconds from now on.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn renew_lease(&self, name: &str, token: &str, ms: u64) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("EVAL");
        command.arg(RENEW_LEASE).arg(1).arg(format!("{}{name}", self.keys.secrets));
        command.arg(token).arg(ms.max(1));
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }

    /// Ends a lease that has this token.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn end_lease(&self, name: &str, token: &str) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("EVAL");
        command.arg(END_LEASE).arg(1).arg(format!("{}{name}", self.keys.secrets)).arg(token);
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }

    /// All fields of a table and their values.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn secret_table(&self, name: &str) -> Result<Vec<(Vec<u8>, Vec<u8>)>, ValkeyFault> {
        let mut command = redis::cmd("HGETALL");
        command.arg(format!("{}{name}", self.keys.secrets));
        self.ask_for(&command, replies::byte_pairs).await
    }

    /// Writes a field of a table.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn set_secret_field(
        &self,
        name: &str,
        field: &[u8],
        bytes: &[u8],
    ) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("HSET");
        command.arg(format!("{}{name}", self.keys.secrets)).arg(field).arg(bytes);
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }

    /// Drops a field of a table.
    ///
    /// # Errors
    ///
    /// There is no good reply.
    pub async fn drop_secret_field(&self, name: &str, field: &[u8]) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("HDEL");
        command.arg(format!("{}{name}", self.keys.secrets)).arg(field);
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }
}
