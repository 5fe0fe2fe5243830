//! The commands and their parameters.

use crate::SsiFault;
use crate::scan::{PARAMS_MAX, SsiCommand};

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Include,
    Echo,
    Config,
    Set,
    If,
    Elif,
    Else,
    Endif,
    Block,
    Endblock,
}

/// A parameter: its name, and whether it is required.
type Param = (&'static [u8], bool);

impl CommandKind {
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"include" => Self::Include,
            b"echo" => Self::Echo,
            b"config" => Self::Config,
            b"set" => Self::Set,
            b"if" => Self::If,
            b"elif" => Self::Elif,
            b"else" => Self::Else,
            b"endif" => Self::Endif,
            b"block" => Self::Block,
            b"endblock" => Self::Endblock,
            _ => return None,
        })
    }

    const fn params(self) -> &'static [Param] {
        match self {
            Self::Include => &[
                (b"virtual", false),
                (b"file", false),
                (b"wait", false),
                (b"set", false),
                (b"stub", false),
            ],
            Self::Echo => &[(b"var", true), (b"default", false), (b"encoding", false)],
            Self::Config => &[(b"errmsg", false), (b"timefmt", false)],
            Self::Set => &[(b"var", true), (b"value", true)],
            Self::If | Self::Elif => &[(b"expr", true)],
            Self::Block => &[(b"name", true)],
            Self::Else | Self::Endif | Self::Endblock => &[],
        }
    }

    /// Whether it runs even where no text is sent.
    pub(crate) const fn steers(self) -> bool {
        matches!(self, Self::Elif | Self::Else | Self::Endif | Self::Endblock)
    }
}

impl SsiCommand {
    /// The value of a parameter.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.params.iter().find(|(key, _)| key == name).map(|(_, value)| &value[..])
    }

    /// Checks that the parameters are exactly those of `kind`.
    pub(crate) fn check(&self, kind: CommandKind) -> Result<(), SsiFault> {
        let known = kind.params();
        if self.params.len() > PARAMS_MAX {
            let parts: [&[u8]; 3] = [b"too many SSI command parameters: \"", &self.name, b"\""];
            return Err(parts.concat());
        }
        let fault = |what: [&[u8]; 3]| {
            let [before, name, after] = what;
            let parts: [&[u8]; 6] = [before, name, after, b" in \"", &self.name, b"\" SSI command"];
            Err(parts.concat())
        };
        for (at, (key, _)) in self.params.iter().enumerate() {
            if !known.iter().any(|(name, _)| name == key) {
                return fault([b"invalid parameter name: \"", key, b"\""]);
            }
            if self.params[..at].iter().any(|(before, _)| before == key) {
                return fault([b"duplicate \"", key, b"\" parameter"]);
            }
        }
        for (name, is_mandatory) in known {
            if *is_mandatory && self.get(name).is_none() {
                return fault([b"mandatory \"", name, b"\" parameter is absent"]);
            }
        }
        Ok(())
    }

    /// Appends it as nginx writes it into a block.
    pub(crate) fn push_source(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<!--#");
        out.extend_from_slice(&self.name);
        out.push(b' ');
        for (key, value) in &self.params {
            out.extend_from_slice(key);
            out.extend_from_slice(b"=\"");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\" ");
        }
        out.extend_from_slice(b"-->");
    }
}
