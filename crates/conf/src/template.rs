//! Compiles texts with variables, and tracks the variables that captures define.

use std::sync::Arc;

use crate::model::Definition;
use crate::reader::{ConfReader, ReadFault, show};
use crate::vars::{Template, TemplatePart, Var};

/// The meaning of `$1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digits {
    /// A group of the last expression.
    Captures,
    /// A name like any other, as in log formats.
    Names,
}

/// The text of a template as it is cut.
#[derive(Default)]
struct Cutter {
    parts: Vec<TemplatePart>,
    text: Vec<u8>,
}

impl Cutter {
    fn push_var(&mut self, var: Var) {
        if !self.text.is_empty() {
            self.parts.push(TemplatePart::Text(Arc::from(self.text.as_slice())));
            self.text.clear();
        }
        self.parts.push(TemplatePart::Var(var));
    }

    fn finish(mut self) -> Template {
        if !self.text.is_empty() {
            self.parts.push(TemplatePart::Text(Arc::from(self.text.as_slice())));
        }
        Template::new(self.parts)
    }
}

/// Compiles a text of the program itself, all of whose variables exist.
pub(crate) fn fixed(text: &str) -> Template {
    let mut cutter = Cutter::default();
    let mut rest = text.as_bytes();
    while let Some(dollar) = rest.iter().position(|byte| *byte == b'$') {
        let len = rest[dollar + 1..].iter().take_while(|byte| is_name_byte(**byte)).count();
        let (name, tail) = rest[dollar + 1..].split_at(len);
        cutter.text.extend_from_slice(&rest[..dollar]);
        let var = std::str::from_utf8(name).ok().and_then(Var::parse);
        cutter.push_var(var.expect("the program knows the variables of its own texts"));
        rest = tail;
    }
    cutter.text.extend_from_slice(rest);
    cutter.finish()
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl ConfReader {
    /// Compiles a text in which `$name`, `${name}` and `$1` are variables.
    pub(crate) fn template(&mut self, text: &[u8]) -> Result<Template, ReadFault> {
        self.cut(text, Digits::Captures)
    }

    /// Compiles a log format, in which `$1` is a name.
    pub(crate) fn log_template(&mut self, text: &[u8]) -> Result<Template, ReadFault> {
        self.cut(text, Digits::Names)
    }

    fn cut(&mut self, text: &[u8], digits: Digits) -> Result<Template, ReadFault> {
        let mut cutter = Cutter::default();
        let mut rest = text;
        while let Some(dollar) = rest.iter().position(|byte| *byte == b'$') {
            cutter.text.extend_from_slice(&rest[..dollar]);
            let from_dollar = &rest[dollar..];
            let after = &from_dollar[1..];
            if let (Digits::Captures, [digit @ b'1'..=b'9', tail @ ..]) = (digits, after) {
                cutter.push_var(Var::Capture(digit - b'0'));
                rest = tail;
                continue;
            }
            let (name, tail) = cut_name(after, from_dollar, digits)?;
            let var = self.variable(name)?;
            cutter.push_var(var);
            rest = tail;
        }
        cutter.text.extend_from_slice(rest);
        Ok(cutter.finish())
    }

    /// The variable of a name; one that only a capture can define is checked at the end.
    pub(crate) fn variable(&mut self, name: &str) -> Result<Var, ReadFault> {
        match Var::parse(name) {
            Some(var) => {
                let reads = matches!(var, Var::SslCiphers | Var::SslCurves | Var::SslSessionId);
                self.http.reads_offers |= reads;
                self.record_lookup(&var);
                Ok(var)
            }
            None => {
                let id = self.intern(name)?;
                if crate::directives::is_classic_geo(&name.to_ascii_lowercase()) {
                    self.http.defined.insert(id);
                }
                Ok(Var::Named(id))
            }
        }
    }

    /// Records a variable that needs a system call.
    const fn record_lookup(&mut self, var: &Var) {
        match var {
            Var::TcpinfoRtt | Var::TcpinfoRttvar | Var::TcpinfoSndCwnd | Var::TcpinfoRcvSpace => {
                self.http.on_demand_vars.tcp_info = true;
            }
            Var::RealpathRoot => self.http.on_demand_vars.real_root = true,
            Var::PageCacheReason => self.http.on_demand_vars.cache_reason = true,
            _ => {}
        }
    }

    /// Defines a variable by a named group.
    pub(crate) fn define(&mut self, name: &str) -> Result<(), ReadFault> {
        let id = self.intern(name)?;
        if Var::parse(name).is_none() {
            self.http.defined.insert(id);
            // As in nginx, a capture may be without a value, and `set` does not change that.
            let definition = self.http.definitions.entry(id).or_insert(Definition::Captured);
            if *definition == Definition::Assigned {
                *definition = Definition::Captured;
            }
            return Ok(());
        }
        let definition = match self.http.definitions.get(&id) {
            None | Some(Definition::Assigned) => Definition::Captured,
            Some(definition) => definition.clone(),
        };
        self.define_as(name, definition)?;
        Ok(())
    }

    /// Defines a variable by a directive: `definition` applies where no value was assigned.
    pub(crate) fn define_as(
        &mut self,
        name: &str,
        definition: Definition,
    ) -> Result<u16, ReadFault> {
        let known = Var::parse(name);
        if known.is_some() && !is_redefinable(&name.to_ascii_lowercase()) {
            return Err(ReadFault::Text(format!("the duplicate \"{name}\" variable")));
        }
        let id = self.intern(name)?;
        self.http.defined.insert(id);
        if let Some(var) = known
            && !self.http.redefined.iter().any(|(_, known)| *known == id)
        {
            self.http.redefined.push((var, id));
        }
        match definition {
            // A `map` supplies the value until `set` assigns one.
            Definition::Assigned => {
                self.http.definitions.entry(id).or_insert(definition);
            }
            definition => {
                self.http.definitions.insert(id, definition);
            }
        }
        Ok(id)
    }

    /// The same for a variable that may stay without a value without a warning.
    pub(crate) fn define_quietly(&mut self, name: &str) -> Result<u16, ReadFault> {
        let id = self.intern(name)?;
        let definition = self.http.definitions.get(&id).cloned();
        self.define_as(name, definition.unwrap_or_default())
    }

    /// The name of the variable that a directive defines, without its `$`.
    pub(crate) fn defined_name(word: &[u8]) -> Result<String, ReadFault> {
        match word {
            [b'$', name @ ..] if !name.is_empty() => Ok(show(name).into_owned()),
            _ => Err(ReadFault::Text(format!("invalid variable name \"{}\"", show(word)))),
        }
    }

    fn intern(&mut self, name: &str) -> Result<u16, ReadFault> {
        let key = name.to_ascii_lowercase();
        let order = self.order();
        if let Some(id) = self.http.named_index.get(&key) {
            let first = &mut self.http.named_first[usize::from(*id)];
            *first = order.min(*first);
            return Ok(*id);
        }
        let Ok(id) = u16::try_from(self.http.named.len()) else {
            return Err(ReadFault::Text("too many variables".to_owned()));
        };
        self.http.named.push(key.clone());
        self.http.named_first.push(order);
        self.http.named_index.insert(key, id);
        Ok(id)
    }
}

/// Whether a directive may define a variable that the server has.
fn is_redefinable(name: &str) -> bool {
    const FIXED: [&str; 15] = [
        "http_host",
        "http_user_agent",
        "http_referer",
        "http_via",
        "http_x_forwarded_for",
        "http_cookie",
        "sent_http_content_type",
        "sent_http_content_length",
        "sent_http_location",
        "sent_http_last_modified",
        "sent_http_connection",
        "sent_http_keep_alive",
        "sent_http_transfer_encoding",
        "sent_http_cache_control",
        "sent_http_link",
    ];
    let prefixes = [
        "http_",
        "sent_http_",
        "sent_trailer_",
        "cookie_",
        "arg_",
        "upstream_http_",
        "upstream_trailer_",
        "upstream_cookie_",
        "proxy_protocol_tlv_",
        "ssl_",
    ];
    matches!(name, "args" | "limit_rate" | "invalid_referer" | "uid_reset")
        || matches!(name, "modern_browser" | "ancient_browser" | "msie")
        || matches!(name, "proxy_host" | "proxy_port")
        || prefixes.iter().any(|prefix| name.starts_with(prefix)) && !FIXED.contains(&name)
}

/// Splits a variable's name off `after`, the text after the `$`; returns the name and the rest.
fn cut_name<'t>(
    after: &'t [u8],
    from_dollar: &[u8],
    digits: Digits,
) -> Result<(&'t str, &'t [u8]), ReadFault> {
    let (body, braced) = match after {
        [b'{', body @ ..] => (body, true),
        body => (body, false),
    };
    let len = body.iter().take_while(|byte| is_name_byte(**byte)).count();
    let (name, tail) = body.split_at(len);
    let name = std::str::from_utf8(name).unwrap_or_default();
    // Of a text that ends behind the brace, nginx says that there is no name.
    if braced && !body.is_empty() && tail.first() != Some(&b'}') {
        return Err(ReadFault::Text(format!(
            "the closing bracket in \"{name}\" variable is missing"
        )));
    }
    if name.is_empty() {
        return Err(ReadFault::Text(match digits {
            Digits::Captures => "invalid variable name".to_owned(),
            Digits::Names => format!("invalid parameter \"{}\"", show(from_dollar)),
        }));
    }
    Ok((name, if braced { &tail[1..] } else { tail }))
}
