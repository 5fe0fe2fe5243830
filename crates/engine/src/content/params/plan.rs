//! The parameters of a location, compiled.

use bolide_conf::model::Param;
use bolide_conf::vars::{Template, TemplatePart, Var};

/// The parameters of a location, compiled.
#[derive(Debug, Default)]
pub(crate) struct ParamPlan {
    pub(super) params: Vec<Planned>,
    /// Names of fields, as in `HTTP_*`, that parameters of the configuration replace.
    pub(super) decided: Vec<Box<[u8]>>,
}

#[derive(Debug)]
pub(super) struct Planned {
    pub(super) name: Box<[u8]>,
    pub(super) value: Template,
    pub(super) if_not_empty: bool,
    pub(super) then: PlannedRest,
}

/// What follows the value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedRest {
    Nothing,
    /// The client's path, even if it was rewritten.
    AskedPath,
    /// The file of the script, by `root` or `alias`.
    ScriptFile,
}

/// The parameter by which PHP finds the script.
pub(super) const SCRIPT_FILENAME: &[u8] = b"SCRIPT_FILENAME";

impl ParamPlan {
    /// Compiles `params`, with the defaults for our PHP pools if `is_php`.
    pub(crate) fn new(params: &[Param], is_php: bool) -> Self {
        let mut plan = Self::default();
        for param in params {
            if let Some(field) = param.name.strip_prefix(b"HTTP_") {
                plan.decided.push(field.into());
                // As in nginx, a parameter without any value only suppresses the field.
                if param.value.is_empty() {
                    continue;
                }
            }
            plan.params.push(Planned::new(param, is_php));
        }
        if !plan.decided.iter().any(|name| **name == *b"HOST") {
            plan.decided.push(Box::from(*b"HOST"));
            plan.params.push(Planned::host());
        }
        plan
    }

    /// The parameters that name the script, the one in effect first: of several, PHP takes the last
    /// that is sent.
    pub(super) fn scripts(&self) -> impl Iterator<Item = &Planned> {
        self.params.iter().rev().filter(|param| *param.name == *SCRIPT_FILENAME)
    }
}

impl Planned {
    fn new(param: &Param, is_php: bool) -> Self {
        let (name, if_not_empty) = (Box::from(&*param.name), param.if_not_empty);
        let (parts, then) = match param.value.parts() {
            // As under Apache, these two keep the client's path.
            [before @ .., TemplatePart::Var(Var::Uri)]
                if is_php && matches!(&*param.name, b"SCRIPT_URI" | b"SCRIPT_URL") =>
            {
                (before, PlannedRest::AskedPath)
            }
            // With `alias` the two together name no file.
            [TemplatePart::Var(Var::DocumentRoot), TemplatePart::Var(Var::FastcgiScriptName)]
                if is_php && *param.name == *SCRIPT_FILENAME =>
            {
                (&[][..], PlannedRest::ScriptFile)
            }
            parts => (parts, PlannedRest::Nothing),
        };
        Self { name, value: Template::new(parts.to_vec()), if_not_empty, then }
    }

    /// As in nginx 1.30, `HTTP_HOST` is the host of the request target, which takes precedence over
    /// the `Host` field.
    fn host() -> Self {
        let parts = [Var::Host, Var::IsRequestPort, Var::RequestPort].map(TemplatePart::Var);
        let value = Template::new(parts.to_vec());
        let then = PlannedRest::Nothing;
        Self { name: Box::from(*b"HTTP_HOST"), value, if_not_empty: true, then }
    }
}
