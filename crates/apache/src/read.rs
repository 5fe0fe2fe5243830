//! From files to lines: includes, variables, conditions and macros are carried out, as Apache does
//! while it reads. Refuses files that are not there, and more than its limits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bolide_htaccess::{Lines, fits};

use crate::defines::{Variables, envvars, substituted};
use crate::import::{ApacheFiles, ConfPlace, ImportFault, ImportRequest};
use crate::names;
use crate::words::words;

/// LIMIT: files and macros in one another.
const DEPTH_MAX: usize = 32;
/// LIMIT: lines of a configuration.
const LINES_MAX: usize = 500_000;
/// The version that is stood in for.
const VERSION: [u32; 3] = [2, 4, 66];

/// A line that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine {
    pub(crate) place: ConfPlace,
    pub(crate) text: String,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct ReadLines {
    pub(crate) lines: Vec<SourceLine>,
    /// What was carried out, or left out, and why.
    pub(crate) notes: Vec<(ConfPlace, String)>,
    pub(crate) names: SettledNames,
}

/// What `.htaccess` files may ask for.
#[derive(Debug, Default)]
pub(crate) struct SettledNames {
    /// The modules that `LoadModule` loads.
    pub(crate) modules: BTreeSet<String>,
    /// The names that are defined when all is read.
    pub(crate) defines: BTreeSet<String>,
}

/// A macro.
#[derive(Clone, Debug)]
struct Macro {
    parameters: Vec<String>,
    body: Vec<SourceLine>,
}

/// What becomes of the lines within a section that is carried out here.
#[derive(Debug)]
enum Within {
    /// They count.
    Counting,
    /// They are left out.
    Skipping,
    /// They belong to a macro.
    Macro { name: String, own: Macro },
}

struct Reader<'a> {
    files: &'a dyn ApacheFiles,
    environment: Variables,
    defines: Variables,
    modules: BTreeSet<String>,
    macros: BTreeMap<String, Macro>,
    root: PathBuf,
    stack: Vec<Within>,
    read: ReadLines,
}

/// Reads a configuration.
pub(crate) fn read(
    files: &dyn ApacheFiles,
    request: &ImportRequest<'_>,
) -> Result<ReadLines, ImportFault> {
    let root = request.path.parent().unwrap_or(Path::new("/")).to_path_buf();
    let mut environment: Variables = request.environment.iter().cloned().collect();
    if let Ok(text) = files.read(&root.join("envvars")) {
        environment.extend(envvars(&String::from_utf8_lossy(&text)));
    }
    let mut reader = Reader {
        files,
        environment,
        defines: Variables::new(),
        modules: names::STATIC_MODULES.iter().map(|name| (*name).to_owned()).collect(),
        macros: BTreeMap::new(),
        root,
        stack: Vec::new(),
        read: ReadLines::default(),
    };
    let place = ConfPlace { file: request.path.to_string_lossy().into(), line: 1 };
    reader.file(&request.path, &place, 0)?;
    reader.read.names.defines = reader.defines.into_keys().collect();
    Ok(reader.read)
}

fn fault<T>(place: &ConfPlace, message: impl Into<String>) -> Result<T, ImportFault> {
    Err(ImportFault { place: place.clone(), message: message.into() })
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, from: &ConfPlace, depth: usize) -> Result<(), ImportFault> {
        if depth > DEPTH_MAX {
            return fault(from, "files include one another too deeply");
        }
        let bytes = match self.files.read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                return fault(from, format!("Could not open {}: {error}", path.display()));
            }
        };
        let file: Rc<str> = path.to_string_lossy().into();
        let held = std::mem::take(&mut self.stack);
        for (line, text) in Lines::new(&bytes) {
            let place = ConfPlace { file: Rc::clone(&file), line };
            let Ok(text) = std::str::from_utf8(&text) else {
                return fault(&place, "a line is no UTF-8");
            };
            self.line(&place, text, depth)?;
        }
        match std::mem::replace(&mut self.stack, held).is_empty() {
            true => Ok(()),
            false => fault(
                &ConfPlace { file, line: 1 },
                "a <IfModule>, <IfDefine>, <IfVersion> or <Macro> was not closed.",
            ),
        }
    }

    fn line(&mut self, place: &ConfPlace, raw: &str, depth: usize) -> Result<(), ImportFault> {
        if self.read.lines.len() > LINES_MAX {
            return fault(place, format!("more than {LINES_MAX} lines"));
        }
        let name_end = raw.find(|one: char| one.is_ascii_whitespace() || one == '>');
        let lower = raw[..name_end.unwrap_or(raw.len())].to_ascii_lowercase();
        let is_ours = |name: &str| {
            let name = name.trim_start_matches(['<', '/']);
            matches!(name, "ifmodule" | "ifdefine" | "ifversion" | "macro" | "iffile")
        };
        if is_ours(&lower) && lower.starts_with("</") {
            return self.close(place, &lower, raw);
        }
        match self.stack.last_mut() {
            Some(Within::Skipping) => {
                if is_ours(&lower) && lower.starts_with('<') {
                    self.stack.push(Within::Skipping);
                }
                return Ok(());
            }
            Some(Within::Macro { own, .. }) => {
                own.body.push(SourceLine { place: place.clone(), text: raw.to_owned() });
                return Ok(());
            }
            _ => {}
        }
        let text = substituted(raw, |name| {
            self.defines.get(name).or_else(|| self.environment.get(name)).cloned()
        });
        if is_ours(&lower) && lower.starts_with('<') {
            return self.open(place, &lower, &text);
        }
        self.directive(place, &lower, &text, depth)
    }

    fn close(&mut self, place: &ConfPlace, lower: &str, raw: &str) -> Result<(), ImportFault> {
        let in_macro = matches!(self.stack.last(), Some(Within::Macro { .. }));
        if in_macro && !lower.starts_with("</macro") {
            if let Some(Within::Macro { own, .. }) = self.stack.last_mut() {
                own.body.push(SourceLine { place: place.clone(), text: raw.to_owned() });
            }
            return Ok(());
        }
        match self.stack.pop() {
            Some(Within::Macro { name, own }) => {
                self.macros.insert(name, own);
                Ok(())
            }
            Some(_) => Ok(()),
            None => fault(place, format!("{lower}> without matching section")),
        }
    }

    /// A section that is carried out here.
    fn open(&mut self, place: &ConfPlace, lower: &str, text: &str) -> Result<(), ImportFault> {
        let Some(close) = text.rfind('>').filter(|close| *close >= lower.len()) else {
            return fault(place, format!("{lower}> directive missing closing '>'"));
        };
        let arguments = text[lower.len()..close].trim();
        if lower == "<macro" {
            let mut all = words(arguments).into_iter();
            let name = all.next().unwrap_or_default().to_ascii_lowercase();
            let own = Macro { parameters: all.collect(), body: Vec::new() };
            self.read.notes.push((place.clone(), format!("{text} is put in where it is used")));
            self.stack.push(Within::Macro { name, own });
            return Ok(());
        }
        let word = words(arguments).into_iter().next().unwrap_or_default();
        let (bare, wanted) = match word.strip_prefix('!') {
            Some(bare) => (bare, false),
            None => (&word[..], true),
        };
        let holds = match lower {
            "<ifmodule" => self.modules.contains(&names::module(bare)) == wanted,
            "<ifdefine" => self.defines.contains_key(bare) == wanted,
            "<iffile" => {
                let path = self.root.join(bare);
                (self.files.is_directory(&path) || self.files.read(&path).is_ok()) == wanted
            }
            _ => match version_holds(arguments) {
                Some(holds) => holds,
                None => return fault(place, format!("bad <IfVersion {arguments}>")),
            },
        };
        self.stack.push(if holds { Within::Counting } else { Within::Skipping });
        let what = if holds { "holds" } else { "does not hold, and is left out" };
        self.read.notes.push((place.clone(), format!("{text} {what}")));
        Ok(())
    }

    fn directive(
        &mut self,
        place: &ConfPlace,
        lower: &str,
        text: &str,
        depth: usize,
    ) -> Result<(), ImportFault> {
        let rest = text.get(lower.len()..).unwrap_or_default();
        let done = |note: String| (place.clone(), note);
        match lower {
            "include" | "includeoptional" => {
                self.read.notes.push(done(text.to_owned()));
                self.include(place, rest, lower == "include", depth)
            }
            "define" => {
                let mut all = words(rest).into_iter();
                let name = all.next().unwrap_or_default();
                self.defines.insert(name, all.next().unwrap_or_default());
                self.read.notes.push(done(text.to_owned()));
                Ok(())
            }
            "undefine" => {
                self.defines.remove(rest.trim());
                self.read.notes.push(done(text.to_owned()));
                Ok(())
            }
            "loadmodule" => {
                let all = words(rest);
                for name in &all {
                    self.modules.insert(names::module(name));
                }
                let name = all.first().and_then(|name| name.strip_suffix("_module"));
                self.read.names.modules.extend(name.map(str::to_owned));
                self.read.notes.push(done(format!("LoadModule {}", rest.trim())));
                Ok(())
            }
            "use" => {
                self.read.notes.push(done(text.to_owned()));
                self.expand(place, rest, depth)
            }
            "undefmacro" => {
                self.macros.remove(&rest.trim().to_ascii_lowercase());
                self.read.notes.push(done(text.to_owned()));
                Ok(())
            }
            "remoteipinternalproxylist" | "remoteiptrustedproxylist" => {
                self.read.notes.push(done(text.to_owned()));
                self.list_of_proxies(place, &text[..lower.len() - "List".len()], rest)
            }
            "error" => fault(place, rest.trim()),
            _ => {
                if lower == "serverroot"
                    && let Some(root) = words(rest).into_iter().next()
                {
                    self.root = PathBuf::from(root);
                }
                let text = match matches!(lower, "errorlog" | "customlog" | "transferlog") {
                    // These are relative to what counts where they stand.
                    true => rooted(text, lower.len(), &self.root),
                    false => text.to_owned(),
                };
                self.read.lines.push(SourceLine { place: place.clone(), text });
                Ok(())
            }
        }
    }

    /// A file with proxies, as lines that name them.
    fn list_of_proxies(
        &mut self,
        place: &ConfPlace,
        name: &str,
        rest: &str,
    ) -> Result<(), ImportFault> {
        let path = self.root.join(words(rest).into_iter().next().unwrap_or_default());
        let bytes = self.files.read(&path);
        let bytes = bytes
            .or_else(|error| fault(place, format!("Could not open {}: {error}", path.display())))?;
        for line in String::from_utf8_lossy(&bytes).lines().map(str::trim) {
            if !line.is_empty() && !line.starts_with('#') {
                let text = format!("{name} {line}");
                self.read.lines.push(SourceLine { place: place.clone(), text });
            }
        }
        Ok(())
    }

    fn expand(&mut self, place: &ConfPlace, rest: &str, depth: usize) -> Result<(), ImportFault> {
        if depth > DEPTH_MAX {
            return fault(place, "macros use one another too deeply");
        }
        let mut all = words(rest).into_iter();
        let name = all.next().unwrap_or_default();
        let Some(own) = self.macros.get(&name.to_ascii_lowercase()).cloned() else {
            return fault(place, format!("macro '{name}' undefined"));
        };
        let values: Vec<String> = all.collect();
        if values.len() != own.parameters.len() {
            let wanted = own.parameters.len();
            return fault(place, format!("macro '{name}' takes {wanted} arguments"));
        }
        let mut pairs: Vec<_> = own.parameters.iter().zip(&values).collect();
        // Where one name begins with another, the longer one is meant.
        pairs.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for line in own.body {
            let mut text = String::new();
            let mut rest = &line.text[..];
            while let Some(one) = rest.chars().next() {
                match pairs.iter().find(|(name, _)| !name.is_empty() && rest.starts_with(&name[..]))
                {
                    Some((name, value)) => {
                        text.push_str(value);
                        rest = &rest[name.len()..];
                    }
                    None => {
                        text.push(one);
                        rest = &rest[one.len_utf8()..];
                    }
                }
            }
            self.line(&line.place, &text, depth + 1)?;
        }
        Ok(())
    }

    fn include(
        &mut self,
        place: &ConfPlace,
        rest: &str,
        is_needed: bool,
        depth: usize,
    ) -> Result<(), ImportFault> {
        let Some(pattern) = words(rest).into_iter().next() else {
            return fault(place, "Include takes one argument");
        };
        let path = self.root.join(&pattern);
        let mut found = Vec::new();
        self.matching(&path, &mut found, 0);
        let has_wildcard = pattern.contains(['*', '?', '[']);
        if found.is_empty() && is_needed && has_wildcard {
            return fault(place, format!("No matches for the wildcard '{pattern}'"));
        }
        if found.is_empty() && (is_needed || !has_wildcard) {
            if !is_needed {
                return Ok(());
            }
            found.push(path);
        }
        for path in found {
            self.file(&path, place, depth + 1)?;
        }
        Ok(())
    }

    /// The files of a path with wildcards, or of a directory and those in it, sorted.
    fn matching(&self, path: &Path, found: &mut Vec<PathBuf>, depth: usize) {
        let text = path.to_string_lossy().into_owned();
        if text.contains(['*', '?', '[']) {
            let mut sofar = vec![PathBuf::new()];
            for part in path.components() {
                let part = part.as_os_str();
                let glob = part.to_string_lossy();
                if !glob.contains(['*', '?', '[']) {
                    sofar.iter_mut().for_each(|path| path.push(part));
                    continue;
                }
                let mut next = Vec::new();
                for base in &sofar {
                    let mut all = self.files.list(base).unwrap_or_default();
                    all.sort();
                    let fits = all.into_iter().filter(|name| {
                        let name = name.to_string_lossy();
                        let hides = name.starts_with('.') && !glob.starts_with('.');
                        !hides && fits(glob.as_bytes(), name.as_bytes())
                    });
                    next.extend(fits.map(|name| base.join(name)));
                }
                sofar = next;
            }
            sofar.retain(|path| self.files.is_directory(path) || self.files.read(path).is_ok());
            sofar.iter().for_each(|path| self.whole(path, found, depth));
        } else {
            self.whole(path, found, depth);
        }
    }

    fn whole(&self, path: &Path, found: &mut Vec<PathBuf>, depth: usize) {
        if !self.files.is_directory(path) {
            if self.files.read(path).is_ok() {
                found.push(path.to_path_buf());
            }
            return;
        }
        let mut all = self.files.list(path).unwrap_or_default();
        all.sort();
        if depth < DEPTH_MAX {
            all.iter().for_each(|name| self.whole(&path.join(name), found, depth + 1));
        }
    }
}

/// A log's path with the server's root before it.
fn rooted(text: &str, name_len: usize, root: &Path) -> String {
    let (name, rest) = text.split_at(name_len);
    let first = words(rest).into_iter().next().unwrap_or_default();
    let is_path = !first.starts_with(['/', '|'])
        && !first.to_ascii_lowercase().starts_with("syslog")
        && first != "off";
    if !is_path || first.is_empty() {
        return text.to_owned();
    }
    let after = rest.trim_start();
    let quote = usize::from(after.starts_with(['"', '\'']));
    let after = after.get(first.len() + 2 * quote..).unwrap_or_default();
    format!("{name} \"{}\"{after}", root.join(first).display())
}

/// Whether `<IfVersion …>` holds; none where it cannot be read.
fn version_holds(arguments: &str) -> Option<bool> {
    let all = words(arguments);
    let (operator, wanted) = match &all[..] {
        [wanted] => ("=", wanted),
        [operator, wanted] => (&operator[..], wanted),
        _ => return None,
    };
    let (operator, is_not) = match operator.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (operator, false),
    };
    let mut version = [0; 3];
    let parts: Vec<&str> = wanted.split('.').collect();
    for (at, part) in parts.iter().take(3).enumerate() {
        version[at] = part.parse().ok()?;
    }
    let len = parts.len().min(3);
    let holds = match operator {
        "=" | "==" => VERSION[..len] == version[..len],
        ">" => VERSION > version,
        ">=" => VERSION >= version,
        "<" => VERSION < version,
        "<=" => VERSION <= version,
        _ => return None,
    };
    Some(holds != is_not)
}
