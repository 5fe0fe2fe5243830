//! Sections: which of them are transparent, which hold settings of their own.

use super::{ParseFault, Parsed, Parser, Tag, Within, names, tag};
use crate::access::Requirement;
use crate::effort::Effort;
use crate::expr;
use crate::fault::{HtaccessFault, ParseResult, shown};
use crate::lines::ArgumentWords;
use crate::methods::MethodSet;
use crate::modules;
use crate::overrides::OverrideClass;
use crate::pattern::{Letters, Pattern};
use crate::settings::{FileSection, SectionBranch, Settings};

/// Within `<Files>`, `<If>` and their kin.
const PARTIAL: Within = Within { methods: None, is_partial: true };

impl Parser<'_> {
    pub(super) fn section(
        &mut self,
        name: &[u8],
        arguments: &[u8],
        settings: &mut Settings,
        within: &Within,
    ) -> Parsed<()> {
        if self.depth >= super::DEPTH_MAX {
            return Err("too many sections in one another".to_owned().into());
        }
        self.depth += 1;
        let read = self.section_inside(name, arguments, settings, within);
        self.depth -= 1;
        read
    }

    fn section_inside(
        &mut self,
        name: &[u8],
        arguments: &[u8],
        settings: &mut Settings,
        within: &Within,
    ) -> Parsed<()> {
        let (opened, known) = (self.line, self.known);
        match &name.to_ascii_lowercase()[..] {
            b"ifmodule" => {
                let is_there = |name: &[u8]| known.has_module(name);
                self.conditional("IfModule", arguments, is_there, settings, within)
            }
            b"ifdefine" => {
                let is_there = |name: &[u8]| known.defines(name);
                self.conditional("IfDefine", arguments, is_there, settings, within)
            }
            b"ifdirective" => {
                self.conditional("IfDirective", arguments, names::is_known, settings, within)
            }
            b"ifversion" => {
                let holds = version_fits(arguments)?;
                self.conditional_if("IfVersion", holds, settings, within)
            }
            b"files" | b"filesmatch" => {
                refuse_within_limit(name, within)?;
                let regex = name.eq_ignore_ascii_case(b"filesmatch");
                let make = name_section(name, arguments, regex)?;
                let mut inner = Settings::default();
                let name = if regex { "FilesMatch" } else { "Files" };
                self.closed_body(&mut inner, &PARTIAL, name, opened)?;
                settings.sections.push(match make {
                    FileName::Glob(glob) => FileSection::Named(glob, Box::new(inner)),
                    FileName::Pattern(pattern) => FileSection::Matching(pattern, Box::new(inner)),
                });
                Ok(())
            }
            b"if" | b"elseif" | b"else" => {
                refuse_within_limit(name, within)?;
                self.branch(name, arguments, settings, opened)
            }
            b"limit" | b"limitexcept" => {
                refuse_within_limit(name, within)?;
                let methods = methods(name, arguments)?;
                let name = if name.len() == 5 { "Limit" } else { "LimitExcept" };
                let limited = Within { methods: Some(methods), ..within.clone() };
                self.closed_body(settings, &limited, name, opened)
            }
            b"requireall" | b"requireany" | b"requirenone" => {
                let rule = self.container(name, opened)?;
                if matches!(rule, Requirement::Not(_)) {
                    // What stands outside of sections is a `<RequireAny>`.
                    let message = "negative <RequireNone> directive has no effect in <RequireAny> \
                                   directive";
                    return Err(message.to_owned().into());
                }
                self.needs.note(OverrideClass::AuthConfig, opened);
                settings.rules.push(match &within.methods {
                    Some(methods) => Requirement::For(methods.clone(), Box::new(rule)),
                    None => rule,
                });
                Ok(())
            }
            lower if OF_SERVER.contains(&lower) => {
                Err(format!("<{} not allowed here", shown(name)).into())
            }
            _ => Err(super::unknown(&[b"<", name].concat()).into()),
        }
    }

    /// A body that has to be closed.
    fn closed_body(
        &mut self,
        settings: &mut Settings,
        within: &Within,
        name: &str,
        opened: u32,
    ) -> Parsed<()> {
        match self.body(settings, within, Some(name))? {
            true => Ok(()),
            false => Err(ParseFault::At(HtaccessFault {
                line: opened,
                message: format!("<{name}> was not closed."),
            })),
        }
    }

    fn conditional(
        &mut self,
        name: &str,
        arguments: &[u8],
        is_there: impl Fn(&[u8]) -> bool,
        settings: &mut Settings,
        within: &Within,
    ) -> Parsed<()> {
        let word = ArgumentWords::new(arguments).next_word().unwrap_or_default();
        let holds = match &word[..] {
            b"" => return Err(format!("<{name}> directive requires additional arguments").into()),
            [b'!', rest @ ..] => !is_there(rest),
            rest => is_there(rest),
        };
        self.conditional_if(name, holds, settings, within)
    }

    fn conditional_if(
        &mut self,
        name: &str,
        holds: bool,
        settings: &mut Settings,
        within: &Within,
    ) -> Parsed<()> {
        if holds {
            // As in Apache, its end may be missing.
            self.body(settings, within, Some(name))?;
            return Ok(());
        }
        let mut depth = 1;
        while let Some(line) = self.next_line()? {
            if line.first() != Some(&b'<') {
                continue;
            }
            let is_name = |rest: &[u8]| {
                rest.len() >= name.len()
                    && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes())
                    && !rest.get(name.len()).is_some_and(u8::is_ascii_alphanumeric)
            };
            if line.get(1) == Some(&b'/') {
                depth -= i32::from(is_name(&line[2..]));
            } else {
                depth += i32::from(is_name(&line[1..]));
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(format!("Expected </{name}> before end of configuration").into())
    }

    /// `<If>`, `<ElseIf>`, `<Else>`
    fn branch(
        &mut self,
        name: &[u8],
        arguments: &[u8],
        settings: &mut Settings,
        opened: u32,
    ) -> Parsed<()> {
        let lower = name.to_ascii_lowercase();
        let (shown_name, has_condition) = match &lower[..] {
            b"if" => ("If", true),
            b"elseif" => ("ElseIf", true),
            _ => ("Else", false),
        };
        let condition = match (has_condition, arguments) {
            (false, b"") => None,
            (false, _) => {
                return Err("<Else> directive does not take an argument".to_owned().into());
            }
            (true, b"") => {
                return Err(
                    format!("<{shown_name}> directive requires additional arguments").into()
                );
            }
            (true, text) => {
                let mut words = ArgumentWords::new(text);
                let word = words.next_word().unwrap_or_default();
                let is_quoted = matches!(text.first(), Some(b'"' | b'\''));
                let text = if is_quoted && words.rest().is_empty() { word } else { text.to_vec() };
                Some(expr::condition(&text)?)
            }
        };
        let mut inner = Settings::default();
        self.closed_body(&mut inner, &PARTIAL, shown_name, opened)?;
        let branch = SectionBranch { condition, settings: inner, line: opened };
        if shown_name == "If" {
            settings.sections.push(FileSection::Branches(vec![branch]));
            return Ok(());
        }
        match settings.sections.last_mut() {
            Some(FileSection::Branches(all))
                if all.last().is_some_and(|last| last.condition.is_some()) =>
            {
                all.push(branch);
                Ok(())
            }
            _ => Err(format!("<{shown_name}> section without previous <If> or <ElseIf>").into()),
        }
    }

    /// `<RequireAll>` and its kin.
    fn container(&mut self, name: &[u8], opened: u32) -> Parsed<Requirement> {
        let lower = name.to_ascii_lowercase();
        let (shown_name, is_all) = match &lower[..] {
            b"requireall" => ("RequireAll", true),
            b"requireany" => ("RequireAny", false),
            _ => ("RequireNone", false),
        };
        let mut rules = Vec::new();
        while let Some(line) = self.next_line()? {
            if line.first() != Some(&b'<') {
                let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
                if !line[..end].eq_ignore_ascii_case(b"require") {
                    return Err(format!("{} not allowed here", shown(&line[..end])).into());
                }
                rules.push(crate::access::require(&line[end..])?);
                continue;
            }
            match tag(&line)? {
                Tag::Close(name) if name.eq_ignore_ascii_case(shown_name.as_bytes()) => {
                    return Ok(container_of(shown_name, is_all, rules)?);
                }
                Tag::Close(name) => {
                    let name = shown(&name);
                    return Err(format!("</{name}> without matching <{name}> section").into());
                }
                Tag::Open { name, .. } if name.to_ascii_lowercase().starts_with(b"require") => {
                    if self.depth >= super::DEPTH_MAX {
                        return Err("too many sections in one another".to_owned().into());
                    }
                    self.depth += 1;
                    let rule = self.container(&name, self.line);
                    self.depth -= 1;
                    rules.push(rule?);
                }
                Tag::Open { name, .. } => {
                    return Err(format!("<{} not allowed here", shown(&name)).into());
                }
            }
        }
        Err(ParseFault::At(HtaccessFault {
            line: opened,
            message: format!("<{shown_name}> was not closed."),
        }))
    }
}

/// Sections of a server's configuration.
const OF_SERVER: [&[u8]; 9] = [
    b"directory",
    b"directorymatch",
    b"location",
    b"locationmatch",
    b"virtualhost",
    b"proxy",
    b"proxymatch",
    b"macro",
    b"authnprovideralias",
];

fn container_of(name: &str, is_all: bool, rules: Vec<Requirement>) -> ParseResult<Requirement> {
    if rules.is_empty() {
        return Err(format!("<{name}> directive contains no authorization directives"));
    }
    if name == "RequireNone" {
        if rules.iter().any(Requirement::only_refuses) {
            return Err(
                "negative Require directive has no effect in <RequireNone> directive".to_owned()
            );
        }
        return Ok(Requirement::Not(Box::new(Requirement::Any(rules))));
    }
    if !is_all && rules.iter().any(Requirement::only_refuses) {
        return Err("negative Require directive has no effect in <RequireAny> directive".to_owned());
    }
    Ok(if is_all { Requirement::All(rules) } else { Requirement::Any(rules) })
}

enum FileName {
    Glob(Box<[u8]>),
    Pattern(Pattern),
}

fn name_section(name: &[u8], arguments: &[u8], regex: bool) -> ParseResult<FileName> {
    let mut words = ArgumentWords::new(arguments);
    let mut word = words.next_word();
    let mut regex = regex;
    if !regex && word.as_deref() == Some(b"~") {
        regex = true;
        word = words.next_word();
    }
    let Some(word) = word else {
        return Err(format!("<{}> directive requires additional arguments", shown(name)));
    };
    if !words.rest().is_empty() {
        return Err(format!("Multiple <{}> arguments not (yet) supported.", shown(name)));
    }
    match regex {
        true => match Pattern::new(&word, Letters::Exact) {
            Some(pattern) => Ok(FileName::Pattern(pattern)),
            None => Err("Regex could not be compiled".to_owned()),
        },
        false => Ok(FileName::Glob(word.into())),
    }
}

fn methods(name: &[u8], arguments: &[u8]) -> ParseResult<MethodSet> {
    let listed: Vec<Box<[u8]>> = ArgumentWords::new(arguments).map(Into::into).collect();
    if listed.is_empty() {
        return Err(format!("<{}> directive requires additional arguments", shown(name)));
    }
    if listed.iter().any(|method| **method == *b"TRACE") {
        return Err("TRACE cannot be controlled by <Limit>, see TraceEnable".to_owned());
    }
    Ok(match name.eq_ignore_ascii_case(b"limit") {
        true => MethodSet::only(listed),
        false => MethodSet::except(listed),
    })
}

fn refuse_within_limit(name: &[u8], within: &Within) -> ParseResult<()> {
    match within.methods {
        Some(_) => {
            Err(format!("<{}> cannot occur within <Limit/LimitExcept> section", shown(name)))
        }
        None => Ok(()),
    }
}

/// `[!]OPERATOR VERSION`
fn version_fits(arguments: &[u8]) -> ParseResult<bool> {
    let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    let (operator, version) = match &words[..] {
        [version] => (&b"="[..], version),
        [operator, version] => (&operator[..], version),
        _ => return Err("<IfVersion> directive requires additional arguments".to_owned()),
    };
    let (negated, operator) = match operator {
        b"!=" => (true, &b"="[..]),
        [b'!', rest @ ..] => (true, rest),
        _ => (false, operator),
    };
    let mut parts = [0_u32; 3];
    let text = String::from_utf8_lossy(version);
    let is_regex = operator == b"~" || text.starts_with('/');
    if is_regex {
        let source = text.trim_matches('/');
        let pattern = Pattern::new(source.as_bytes(), Letters::Exact)
            .ok_or_else(|| "Unable to compile expression".to_owned())?;
        let own = modules::VERSION.map(|part| part.to_string()).join(".");
        let found = pattern.is_match(own.as_bytes(), &Effort::for_a_version());
        return Ok(found.map_err(|_| "expression gave up".to_owned())? != negated);
    }
    for (index, part) in text.split('.').enumerate() {
        let number = part.parse().ok().filter(|_| index < 3);
        parts[index.min(2)] =
            number.ok_or_else(|| format!("Version appears to be invalid: '{text}'"))?;
    }
    let order = modules::VERSION.cmp(&parts);
    let holds = match operator {
        b"=" | b"==" => order.is_eq(),
        b">" => order.is_gt(),
        b">=" => order.is_ge(),
        b"<" => order.is_lt(),
        b"<=" => order.is_le(),
        _ => return Err(format!("unrecognized operator '{}'", shown(operator))),
    };
    Ok(holds != negated)
}
