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
    /// The client's path follows, even if it was rewritten.
    pub(super) with_asked_path: bool,
}

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
}

impl Planned {
    fn new(param: &Param, is_php: bool) -> Self {
        let (name, if_not_empty) = (Box::from(&*param.name), param.if_not_empty);
        // As under Apache, these two keep the client's path.
        if is_php
            && matches!(&*param.name, b"SCRIPT_URI" | b"SCRIPT_URL")
            && let [before @ .., TemplatePart::Var(Var::Uri)] = param.value.parts()
        {
            let value = Template::new(before.to_vec());
            return Self { name, value, if_not_empty, with_asked_path: true };
        }
        Self { name, value: param.value.clone(), if_not_empty, with_asked_path: false }
    }

    /// As in nginx 1.30, `HTTP_HOST` is the host of the request target, which takes precedence over
    /// the `Host` field.
    fn host() -> Self {
        let parts = [Var::Host, Var::IsRequestPort, Var::RequestPort].map(TemplatePart::Var);
        let value = Template::new(parts.to_vec());
        Self { name: Box::from(*b"HTTP_HOST"), value, if_not_empty: true, with_asked_path: false }
    }
}
