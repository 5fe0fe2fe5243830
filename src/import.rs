//! Apache configurations: `bolide import apache` prints the translation, and `-c` uses it. The
//! language of a file is detected from its text.

use std::ffi::OsString;
use std::io::Result as IoResult;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bolide_apache::{ApacheFiles, ConfPlace, ImportRequest, Imported};
use bolide_conf::ConfSource;
use bolide_conf::model::SourcePlace;

use crate::source::{DiskSource, read_conf};

/// The usual names of the file in packages.
const NAMES: [&str; 3] = ["apache2.conf", "httpd.conf", "conf/httpd.conf"];

/// The files of this machine, the first of which may be in Apache's language.
#[derive(Debug)]
pub(crate) struct ConfFiles {
    path: PathBuf,
    imported: Option<Imported>,
}

impl ApacheFiles for DiskSource {
    fn read(&self, path: &Path) -> IoResult<Vec<u8>> {
        read_conf(path)
    }

    fn list(&self, path: &Path) -> IoResult<Vec<OsString>> {
        ConfSource::list(self, path)
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }
}

impl ConfFiles {
    /// Opens the configuration, and translates it if it is Apache's.
    ///
    /// # Errors
    ///
    /// What is invalid in Apache as well, with its file and line.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let text = read_conf(path).unwrap_or_default();
        let imported = match bolide_apache::is_apache(&text) {
            true => Some(translated(path)?),
            false => None,
        };
        Ok(Self { path: path.to_path_buf(), imported })
    }

    /// The place in Apache's files of a line of the translation.
    pub(crate) fn place(&self, place: &SourcePlace) -> Option<SourcePlace> {
        let places = &self.imported.as_ref()?.places;
        if Path::new(&*place.file) != self.path {
            return None;
        }
        let at = places.get((place.line as usize).checked_sub(1)?)?.as_ref()?;
        Some(SourcePlace { file: (&*at.file).into(), line: at.line })
    }

    /// One message about all places that answer with an error, because their access rules are not
    /// supported.
    pub(crate) fn closed_places_warning(&self) -> Option<String> {
        let closed = &self.imported.as_ref()?.closed;
        (!closed.is_empty()).then(|| {
            format!("not understood, and so closed for all (see bolide import): {}", listed(closed))
        })
    }

    /// One message about all lines that lead to a backend whose certificate is verified less.
    pub(crate) fn unverified_warning(&self) -> Option<String> {
        let unverified = &self.imported.as_ref()?.unverified;
        (!unverified.is_empty()).then(|| {
            format!(
                "certificates of backends are not verified, of which Apache checks the name or the \
                 date (see bolide import): {}",
                listed(unverified)
            )
        })
    }
}

fn listed(places: &[ConfPlace]) -> String {
    places.iter().map(ConfPlace::to_string).collect::<Vec<_>>().join(", ")
}

impl ConfSource for ConfFiles {
    fn read(&self, path: &Path) -> IoResult<Vec<u8>> {
        match &self.imported {
            Some(imported) if path == self.path => Ok(imported.text.clone().into()),
            _ => ConfSource::read(&DiskSource, path),
        }
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<OsString>> {
        ConfSource::list(&DiskSource, dir)
    }

    fn resolve(&self, host: &str) -> Vec<IpAddr> {
        DiskSource.resolve(host)
    }
}

fn translated(path: &Path) -> Result<Imported, String> {
    let environment = std::env::vars_os();
    let environment = environment
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let request = ImportRequest {
        path: path.to_path_buf(),
        environment: environment.collect(),
        types: include_str!("../conf/mime.types"),
    };
    bolide_apache::import(&DiskSource, &request).map_err(|fault| fault.to_string())
}

/// The translation of a configuration; `path` is its file, or the directory of it.
///
/// # Errors
///
/// As [`ConfFiles::open`].
pub(crate) fn text(path: &Path) -> Result<String, Vec<String>> {
    let absolute = std::path::absolute(path);
    let absolute = absolute.map_err(|error| vec![format!("{}: {error}", path.display())])?;
    let file = match absolute.is_dir() {
        true => NAMES.iter().map(|name| absolute.join(name)).find(|file| file.is_file()),
        false => Some(absolute.clone()),
    };
    let Some(file) = file else {
        return Err(vec![format!("{}: no apache2.conf or httpd.conf in it", path.display())]);
    };
    translated(&file).map(|imported| imported.text).map_err(|text| vec![text])
}
