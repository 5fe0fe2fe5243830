//! The commands of values that servers keep for each other under a name; what they mean is sealed.

use redis::Value;

use crate::ValkeyFault;
use crate::line::Line;

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
}
