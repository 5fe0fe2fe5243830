//! Messages before the logs of a configuration are open, or without any: on the terminal and in the
//! log of `-e`. With `-e stderr` both are one, and lines have a log's form.

use std::path::PathBuf;

use bolide_base::errno::describe;
use bolide_conf::model::LogLevel;

use crate::control_log::line;
use crate::invocation::Invocation;
use crate::messages::err;

/// The target of such lines.
#[derive(Debug)]
pub(crate) enum EarlyLog {
    /// The terminal alone.
    Terminal,
    /// This file, and the terminal for warnings and worse.
    File(PathBuf),
}

impl EarlyLog {
    /// The log that a command line names; reports one that cannot be opened.
    pub(crate) fn of(invocation: &Invocation) -> Self {
        let path = match &invocation.error_log {
            Some(path) if path.as_os_str().is_empty() || path.as_os_str() == "stderr" => {
                return Self::Terminal;
            }
            Some(path) => invocation.prefix.join(path),
            None => invocation.prefix.join("logs/error.log"),
        };
        if invocation.error_log.is_some()
            && let Err(error) = bolide_io::file::open_append(path.as_os_str().as_encoded_bytes())
        {
            let (path, why) = (path.display(), describe(&error));
            err(&format!(
                "bolide: [alert] could not open error log file: open() \"{path}\" failed ({why})"
            ));
        }
        Self::File(path)
    }

    /// Writes these texts.
    pub(crate) fn write_lines(&self, level: LogLevel, texts: &[String]) {
        self.write(level, texts, level <= LogLevel::Warn);
    }

    /// Writes the notices of a configuration, as in nginx on the terminal as well.
    pub(crate) fn write_notices(&self, texts: &[String]) {
        self.write(LogLevel::Notice, texts, true);
    }

    fn write(&self, level: LogLevel, texts: &[String], is_loud: bool) {
        for text in texts {
            match self {
                Self::Terminal => err(line(level, text).trim_end()),
                Self::File(_) if is_loud => {
                    err(&format!("bolide: [{}] {text}", level.text()));
                }
                Self::File(_) => {}
            }
        }
        // A log that cannot be opened was reported already.
        if let Self::File(path) = self
            && !texts.is_empty()
            && let Ok(file) = bolide_io::file::open_append(path.as_os_str().as_encoded_bytes())
        {
            for text in texts {
                // Hints for the terminal are not part of a log line.
                let text = text.lines().next().unwrap_or_default();
                bolide_io::file::append(&file, line(level, text).as_bytes());
            }
        }
    }
}
