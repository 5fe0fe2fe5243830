//! The words of `bolide adopt`.

use std::path::PathBuf;
use std::time::Duration;

use bolide_conf::value::{self, Unit};
use lexopt::prelude::*;

use super::{Globals, path, text};
use crate::invocation::{AdoptOptions, AdoptPurpose};

/// nginx's configuration where packages have it.
const CONF: &str = "/etc/nginx/nginx.conf";
/// How long the server is watched.
const WATCH: Duration = Duration::from_mins(1);

/// Reads the rest of the command.
pub(super) fn adopt(
    parser: &mut lexopt::Parser,
    globals: &mut Globals,
) -> Result<AdoptOptions, String> {
    let mut adopt = AdoptOptions { nginx_pid: None, purpose: AdoptPurpose::TakeOver, watch: WATCH };
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Long("dry-run") => adopt.purpose = AdoptPurpose::Preview,
            Long("nginx-pid") => {
                adopt.nginx_pid = Some(path(parser, "--nginx-pid", "file name")?);
            }
            Long("watch") => {
                let word = text(parser, "--watch", "a time")?;
                let time = value::time(word.as_bytes(), Unit::Seconds);
                adopt.watch = time.ok_or_else(|| format!("invalid time \"{word}\""))?;
            }
            Short(letter @ ('q' | 'p' | 'c' | 'e' | 'g')) => globals.take(letter, parser)?,
            other => return Err(other.unexpected().to_string()),
        }
    }
    // Options before the command count as well.
    globals.conf.get_or_insert_with(|| PathBuf::from(CONF));
    Ok(adopt)
}
