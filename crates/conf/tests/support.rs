//! A source made of texts, and short ways to read one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bolide_conf::model::{Config, Http, LocationConf, ServerConf};
use bolide_conf::{ConfSource, LoadOptions, Loaded};

/// Files by path, below `/conf`.
#[derive(Default)]
pub(crate) struct Files(BTreeMap<PathBuf, Vec<u8>>);

impl Files {
    pub(crate) fn with(mut self, path: &str, text: &str) -> Self {
        self.0.insert(Path::new("/conf").join(path), text.as_bytes().to_vec());
        self
    }

    pub(crate) fn parse(&self) -> Loaded {
        bolide_conf::parse(self, Path::new("/conf/nginx.conf"), &options())
    }
}

impl ConfSource for Files {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if self.0.keys().any(|known| known != path && known.starts_with(path)) {
            return Err(io::Error::from_raw_os_error(21));
        }
        self.0.get(path).cloned().ok_or_else(|| io::Error::from_raw_os_error(2))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let inside = self.0.keys().filter_map(|path| path.strip_prefix(dir).ok());
        let names =
            inside.filter_map(|rest| Some(rest.components().next()?.as_os_str().to_owned()));
        // Out of order on purpose: sorting is not the source's business.
        Ok(names.rev().collect())
    }

    fn resolve(&self, host: &str) -> Vec<IpAddr> {
        match host {
            "localhost" => vec![[127, 0, 0, 1].into()],
            "both.test" => vec![[10, 0, 0, 1].into(), [10, 0, 0, 2].into()],
            _ => Vec::new(),
        }
    }
}

pub(crate) fn options() -> LoadOptions {
    LoadOptions {
        prefix: PathBuf::from("/conf"),
        privileged: true,
        hostname: "Box.Test".to_owned(),
        reads_unbuilt: true,
        ..LoadOptions::default()
    }
}

/// Reads one file.
pub(crate) fn outcome(text: &str) -> Loaded {
    Files::default().with("nginx.conf", text).parse()
}

/// Reads one file that must be fine.
pub(crate) fn config(text: &str) -> Config {
    let outcome = outcome(text);
    outcome.config.unwrap_or_else(|| panic!("{:#?}", outcome.diagnostics))
}

/// The `http` block around `inside`.
pub(crate) fn http(inside: &str) -> Http {
    config(&format!("events {{}} http {{ {inside} }}")).http.expect("an http block")
}

/// The messages of one file, as nginx's lines without their head.
pub(crate) fn messages(outcome: &Loaded) -> Vec<String> {
    let lines = outcome.diagnostics.iter();
    lines.map(|message| format!("[{}] {message}", message.level.text())).collect()
}

/// The first location of the tree below `server` whose name is `name`.
pub(crate) fn location<'h>(http: &'h Http, server: &ServerConf, name: &str) -> &'h LocationConf {
    let mut open = vec![server.root];
    while let Some(id) = open.pop() {
        let location = http.location(id);
        if *location.name == *name.as_bytes() {
            return location;
        }
        open.extend(location.nested.iter().rev());
    }
    panic!("no location {name}");
}
