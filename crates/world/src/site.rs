//! Sites from the text of a configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bolide_engine::Site;

/// The files of a configuration, in memory.
struct Texts<'a>(&'a str);

impl bolide_conf::source::ConfSource for Texts<'_> {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path == Path::new(CONF_PATH) {
            return Ok(self.0.as_bytes().to_vec());
        }
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn list(&self, _: &Path) -> std::io::Result<Vec<std::ffi::OsString>> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn resolve(&self, _: &str) -> Vec<std::net::IpAddr> {
        Vec::new()
    }
}

const CONF_PATH: &str = "/etc/nginx/nginx.conf";

/// Compiles a configuration given as text; relative paths start at `/srv`.
///
/// # Errors
///
/// All messages, one per line.
pub fn compile(text: &str) -> Result<Site, String> {
    let options = bolide_conf::source::LoadOptions {
        prefix: PathBuf::from("/srv"),
        error_log: PathBuf::from("/srv/logs/error.log"),
        access_log: PathBuf::from("/srv/logs/access.log"),
        ..bolide_conf::source::LoadOptions::default()
    };
    let outcome = bolide_conf::parse(&Texts(text), Path::new(CONF_PATH), &options);
    let texts = |all: &[bolide_conf::Diagnostic]| {
        let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    let Some(config) = outcome.config else { return Err(texts(&outcome.diagnostics)) };
    Site::compile(Arc::new(config)).map_err(|diagnostics| texts(&diagnostics))
}
