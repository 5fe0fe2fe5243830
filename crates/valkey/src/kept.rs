//! The commands of values that servers keep for each other under a name; what they mean is sealed.

use redis::{Cmd, Value};

use crate::line::Line;
use crate::{ValkeyFault, ValkeyFaultKind, replies};

/// Replaces a value by another one, if it is still what it was. Key: the value. Arguments: the
/// bytes before, the bytes now, the time.
const REPLACE: &str = "\
local now = redis.call('GET', KEYS[1])
if (now or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1";

/// Finds values that are others than those that are known. Keys: the values. Arguments: what is
/// known of each, see [`stamp_of`], and a limit of bytes. Of each it returns the bytes, 0 if they
/// are known, 1 if it is of another kind or too large, or nothing if there is none.
const LOOK: &str = "\
local out, most = {}, tonumber(ARGV[#ARGV])
for at, key in ipairs(KEYS) do
  local it = redis.pcall('GET', key)
  if it == false then out[at] = false
  elseif type(it) ~= 'string' or #it > most then out[at] = 1
  elseif string.sub(it, 1, 28) .. #it == ARGV[at] then out[at] = 0
  else out[at] = it end
end
return out";

/// Takes leases, unless they have other tokens. Keys: the leases. Arguments: a token of each, the
/// time. Returns of each whether it has the token. One that has more time than leases get is from
/// before the server's clock was set back, and would last for as long.
const TAKE_LEASES: &str = "\
local out = {}
for at, key in ipairs(KEYS) do
  local now, left = redis.call('GET', key), redis.pcall('PTTL', key)
  local is_over = type(left) == 'number' and left > tonumber(ARGV[#ARGV])
  if now and now ~= ARGV[at] and not is_over then out[at] = 0
  else
    redis.call('SET', key, ARGV[at], 'PX', ARGV[#ARGV])
    out[at] = 1
  end
end
return out";

/// Has leases last longer that have these tokens. Keys: the leases. Arguments: a token of each, the
/// time.
const RENEW_LEASES: &str = "\
for at, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == ARGV[at] then
    redis.call('SET', key, ARGV[at], 'PX', ARGV[#ARGV])
  end
end
return 1";

/// Ends leases that have these tokens. Keys: the leases. Arguments: a token of each.
const END_LEASES: &str = "\
for at, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == ARGV[at] then redis.call('DEL', key) end
end
return 1";

/// Finds the fields of a table that are small enough. Key: the table. Arguments: the most of them,
/// and of bytes of each.
const TABLE: &str = "\
local all, out = redis.call('HGETALL', KEYS[1]), {}
for at = 1, #all, 2 do
  local size = #all[at] + #all[at + 1]
  if size <= tonumber(ARGV[2]) and #out < 2 * tonumber(ARGV[1]) then
    out[#out + 1] = all[at]
    out[#out + 1] = all[at + 1]
  end
end
return out";

/// LIMIT: fields of a table that are read, and bytes of each.
const FIELDS_MAX: usize = 2000;
const FIELD_MAX: usize = 8 << 10;
/// LIMIT: values in one command.
const BATCH: usize = 64;
/// LIMIT: bytes of a value. As many as are in one command are half of what a reply may be.
pub const VALUE_MAX: usize = 256 << 10;
/// Bytes that a value begins with, and that are others whenever it is another one.
const STAMP: usize = 28;

/// What was found under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptValue {
    /// Nothing.
    None,
    /// What was known.
    Known,
    /// Something that is no value of servers: of another kind, or too large.
    Odd,
    /// These bytes.
    Bytes(Vec<u8>),
}

/// What identifies a sealed value: its beginning, which has random bytes, and its length.
#[must_use]
pub fn stamp_of(bytes: &[u8]) -> Vec<u8> {
    let start = &bytes[..bytes.len().min(STAMP)];
    [start, bytes.len().to_string().as_bytes()].concat()
}

impl Line {
    /// The value of that name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The request failed, or the value is of another kind or too large.
    pub async fn secret(&self, name: &str) -> Result<Option<Vec<u8>>, ValkeyFault> {
        match self.look_at_secrets(&[(name, b"")]).await?.pop() {
            Some(KeptValue::Bytes(bytes)) => Ok(Some(bytes)),
            Some(KeptValue::None) => Ok(None),
            _ => {
                let text = format!("\"{name}\" in Valkey is of another kind, or too large");
                Err(ValkeyFault { kind: ValkeyFaultKind::Refused, text })
            }
        }
    }

    /// Keeps a value for so many milliseconds, unless there is one of that name.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid; the value may have been stored.
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
    /// The request failed or its reply is invalid; the value may have been stored.
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

    /// Of each name the value, if it is another one than is known by its stamp; an empty stamp
    /// stands for none.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn look_at_secrets(
        &self,
        wanted: &[(&str, &[u8])],
    ) -> Result<Vec<KeptValue>, ValkeyFault> {
        let mut found = Vec::with_capacity(wanted.len());
        for wanted in wanted.chunks(BATCH) {
            let mut command = self.script(LOOK, wanted);
            command.arg(VALUE_MAX);
            let values = self.ask_for(&command, |value| replies::each(value, wanted.len())).await?;
            for value in values {
                found.push(match value {
                    Value::BulkString(bytes) => KeptValue::Bytes(bytes),
                    Value::Nil => KeptValue::None,
                    Value::Int(0) => KeptValue::Known,
                    Value::Int(_) => KeptValue::Odd,
                    _ => return Err(self.strange()),
                });
            }
        }
        Ok(found)
    }

    /// Takes leases for so many milliseconds, each by a token that no other lease has. Returns of
    /// each whether it is this server's; it may be asked again with the same token.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid; this server may have the leases.
    pub async fn take_leases(
        &self,
        leases: &[(String, String)],
        ms: u64,
    ) -> Result<Vec<bool>, ValkeyFault> {
        let mut taken = Vec::with_capacity(leases.len());
        for leases in leases.chunks(BATCH) {
            let mut command = self.script(TAKE_LEASES, leases);
            command.arg(ms.max(1));
            let read = |value| {
                let values = replies::each(value, leases.len())?;
                values.iter().map(replies::number).collect::<Option<Vec<_>>>()
            };
            taken.extend(self.ask_for(&command, read).await?.into_iter().map(|taken| taken == 1));
        }
        Ok(taken)
    }

    /// Has leases that have these tokens last for so many milliseconds from now on.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn renew_leases(
        &self,
        leases: &[(String, String)],
        ms: u64,
    ) -> Result<(), ValkeyFault> {
        for leases in leases.chunks(BATCH) {
            let mut command = self.script(RENEW_LEASES, leases);
            command.arg(ms.max(1));
            self.ask_for(&command, |value| replies::number(&value)).await?;
        }
        Ok(())
    }

    /// Ends leases that have these tokens.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn end_leases(&self, leases: &[(String, String)]) -> Result<(), ValkeyFault> {
        for leases in leases.chunks(BATCH) {
            let command = self.script(END_LEASES, leases);
            self.ask_for(&command, |value| replies::number(&value)).await?;
        }
        Ok(())
    }

    /// A script over values of these names, with an argument for each.
    fn script<N: AsRef<str>, A: AsRef<[u8]>>(&self, script: &str, values: &[(N, A)]) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(values.len());
        for (name, _) in values {
            command.arg(format!("{}{}", self.keys.secrets, name.as_ref()));
        }
        for (_, argument) in values {
            command.arg(argument.as_ref());
        }
        command
    }

    /// The fields of a table and their values, but for those that are too large.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
    pub async fn secret_table(&self, name: &str) -> Result<Vec<(Vec<u8>, Vec<u8>)>, ValkeyFault> {
        let mut command = redis::cmd("EVAL");
        command.arg(TABLE).arg(1).arg(format!("{}{name}", self.keys.secrets));
        command.arg(FIELDS_MAX).arg(FIELD_MAX);
        self.ask_for(&command, replies::byte_pairs).await
    }

    /// Writes a field of a table.
    ///
    /// # Errors
    ///
    /// The request failed or its reply is invalid.
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
    /// The request failed or its reply is invalid.
    pub async fn drop_secret_field(&self, name: &str, field: &[u8]) -> Result<(), ValkeyFault> {
        let mut command = redis::cmd("HDEL");
        command.arg(format!("{}{name}", self.keys.secrets)).arg(field);
        self.ask_for(&command, |value| replies::number(&value)).await.map(drop)
    }
}
