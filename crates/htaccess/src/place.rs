//! `apache_directory`: directives of `.htaccess` files in the server configuration, for a directory
//! that it names. Refuses directives that a file could not have.

use crate::effort::Effort;
use crate::fault::{HtaccessFault, ParseResult, shown};
use crate::maps::{self, MapSource, RewriteMap};
use crate::overrides::AllowedOverrides;
use crate::parse;
use crate::pattern::{Letters, Pattern, fits};
use crate::settings::HtaccessFile;
use crate::world::Stop;

/// Where a section applies.
#[derive(Clone, Debug)]
enum PlacePath {
    /// Everywhere, before any directory.
    Server,
    /// For a directory; the components of its path, with wildcards.
    Directory(Vec<Box<[u8]>>),
    /// For paths that an expression matches, after all directories.
    Matching(Box<Pattern>),
}

/// A section.
#[derive(Clone, Debug)]
pub struct ServerPlace {
    path: PlacePath,
    overrides: Option<AllowedOverrides>,
    maps: Vec<RewriteMap>,
    file: HtaccessFile,
}

/// The components of an absolute path.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty())
}

impl ServerPlace {
    /// Parses a section: `-`, a path, or `~` and an expression; then its lines.
    ///
    /// # Errors
    ///
    /// The error, in Apache's words where Apache has some. The line counts from the section's first
    /// one.
    pub fn parse(words: &[&[u8]]) -> Result<Self, HtaccessFault> {
        let at_first = |message: String| HtaccessFault { line: 1, message };
        let (path, lines) = Self::path(words).map_err(at_first)?;
        let (mut text, mut overrides, mut maps) = (Vec::new(), None, Vec::new());
        for (number, line) in (1..).zip(lines) {
            let fault = |message| HtaccessFault { line: number, message };
            if let Some(arguments) = arguments_of(line, b"AllowOverride") {
                overrides = Some(AllowedOverrides::parse(arguments).map_err(fault)?);
            } else if let Some(arguments) = arguments_of(line, b"RewriteMap")
                && matches!(path, PlacePath::Server)
            {
                maps.push(maps::parse(arguments).map_err(fault)?);
            } else {
                text.extend_from_slice(line);
            }
            text.push(b'\n');
        }
        let file = parse(&text)?;
        match file.notes().first() {
            // In the configuration, what has no effect is refused.
            Some(note) => Err(note.clone()),
            None => Ok(Self { path, overrides, maps, file }),
        }
    }

    fn path<'w, 'a>(words: &'w [&'a [u8]]) -> ParseResult<(PlacePath, &'w [&'a [u8]])> {
        match words {
            [b"-", lines @ ..] => Ok((PlacePath::Server, lines)),
            [b"~", source, lines @ ..] => {
                let pattern = Pattern::new(source, Letters::Exact)
                    .ok_or_else(|| format!("Regex could not be compiled: {}", shown(source)))?;
                Ok((PlacePath::Matching(Box::new(pattern)), lines))
            }
            [path @ [b'/', ..], lines @ ..] => {
                Ok((PlacePath::Directory(parts(path).map(Box::from).collect()), lines))
            }
            _ => {
                Err("a section is for an absolute path, \"-\", or \"~\" with an expression".into())
            }
        }
    }

    /// Whether it applies before any directory.
    #[must_use]
    pub const fn is_of_server(&self) -> bool {
        matches!(self.path, PlacePath::Server)
    }

    /// Whether it is for `directory`.
    #[must_use]
    pub fn is_of(&self, directory: &[u8]) -> bool {
        let PlacePath::Directory(own) = &self.path else { return false };
        let mut others = parts(directory);
        own.iter().all(|glob| others.next().is_some_and(|part| fits(glob, part)))
            && others.next().is_none()
    }

    /// Whether its expression matches the path of a file.
    ///
    /// # Errors
    ///
    /// The match took too many steps.
    pub fn finds(&self, file: &[u8]) -> Result<bool, Stop> {
        match &self.path {
            PlacePath::Matching(pattern) => pattern.is_match(file, &Effort::default()),
            PlacePath::Server | PlacePath::Directory(_) => Ok(false),
        }
    }

    /// What files may use from here on; none if it does not say.
    #[must_use]
    pub const fn overrides(&self) -> Option<AllowedOverrides> {
        self.overrides
    }

    /// The source of the map called `name`, by its last `RewriteMap`.
    #[must_use]
    pub fn map(&self, name: &[u8]) -> Option<&MapSource> {
        self.maps.iter().rfind(|map| *map.name == *name).map(|map| &map.source)
    }

    /// Its directives.
    #[must_use]
    pub const fn file(&self) -> &HtaccessFile {
        &self.file
    }
}

/// The arguments of a directive, if the line is one.
fn arguments_of<'a>(line: &'a [u8], directive: &[u8]) -> Option<&'a [u8]> {
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    line[..end].eq_ignore_ascii_case(directive).then(|| line[end..].trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::ServerPlace;
    use crate::maps::{MapFunction, MapSource};
    use crate::overrides::AllowedOverrides;

    fn place(words: &[&str]) -> ServerPlace {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        ServerPlace::parse(&words).unwrap()
    }

    #[test]
    fn a_section_is_of_its_directory_alone() {
        let own = place(&["/srv/*/www/", "Require all granted", " AllowOverride all"]);
        assert!(own.is_of(b"/srv/a/www/") && own.is_of(b"/srv/a/www"));
        assert!(!own.is_of(b"/srv/a/") && !own.is_of(b"/srv/a/www/b/"));
        assert!(!own.is_of(b"/srv/a/b/www/"));
        assert_eq!(own.overrides(), Some(AllowedOverrides::ALL));
        assert!(place(&["/"]).is_of(b"/"));
        assert!(place(&["-"]).is_of_server());
        assert!(place(&["~", r"/\.git(/|$)"]).finds(b"/srv/.git/config").unwrap());
    }

    #[test]
    fn maps_are_of_the_server() {
        let own = place(&["-", "RewriteMap a int:toupper", "rewritemap a int:tolower"]);
        assert_eq!(own.map(b"a"), Some(&MapSource::Function(MapFunction::Lower)));
        assert_eq!(own.map(b"b"), None);
        let fault = |words: &[&[u8]]| ServerPlace::parse(words).unwrap_err().to_string();
        assert!(fault(&[b"/", b"RewriteMap a int:toupper"]).contains("not allowed here"));
        assert!(fault(&[b"-", b"", b"RewriteMap a prg:/x"]).starts_with("2: RewriteMap: maps of"));
    }

    #[test]
    fn faults_have_their_line() {
        let fault = |words: &[&[u8]]| ServerPlace::parse(words).unwrap_err().to_string();
        assert!(fault(&[b"/", b"Require all granted", b"Requiere x"]).starts_with("2: Invalid"));
        assert!(fault(&[b"/", b"", b"AllowOverride x"]).starts_with("2: Illegal override"));
        assert!(fault(&[b"srv"]).starts_with("1: a section"));
        assert!(fault(&[b"~", b"("]).starts_with("1: Regex could not"));
    }
}
