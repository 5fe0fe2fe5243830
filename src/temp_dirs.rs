//! The directories for bodies and responses that exceed memory: made at start, by the account that
//! may make them, and given to the account that writes in them.

use std::collections::HashSet;
use std::path::Path;

use bolide_conf::model::{Config, Handler, LocationConf};

/// Makes missing directories. `owner` is the workers' account, where it is another than ours.
///
/// # Errors
///
/// A directory that the configuration names cannot be made. A default one may be made later, when a
/// worker needs it.
pub(crate) fn make(config: &Config, owner: Option<(u32, u32)>) -> Result<(), String> {
    let Some(http) = &config.http else { return Ok(()) };
    for path in &http.temp_paths {
        one(path, owner)?;
    }
    let writes = |at: &&LocationConf| {
        matches!(at.handler, Handler::Pass(_)) || !at.settings.dav.methods.is_empty()
    };
    let passing = http.locations.iter().filter(writes);
    let mut implied: HashSet<&Path> = HashSet::new();
    for location in passing {
        implied.insert(&**location.settings.client_body_temp_path.path);
        implied.insert(&location.settings.origin.temp_path.path);
    }
    for path in implied {
        let _ = one(path, owner);
    }
    Ok(())
}

fn one(path: &Path, owner: Option<(u32, u32)>) -> Result<(), String> {
    // Every reload runs with our rights, in directories that workers could write to.
    bolide_io::file::make_owned_directory(path, 0o700, owner).map_err(|(call, error)| {
        let why = bolide_base::errno::describe(&error);
        format!("{call} \"{}\" failed ({why})", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::one;

    #[test]
    fn a_directory_is_made_once_and_its_parents_are_not() {
        let base = bolide_testkit::site::temp_dir();
        let path = base.join("a");
        assert_eq!((one(&path, None), one(&path, None)), (Ok(()), Ok(())));
        let missing = base.join("b/c");
        let expected =
            format!("mkdir() \"{}\" failed (2: No such file or directory)", missing.display());
        assert_eq!(one(&missing, None), Err(expected));
    }
}
