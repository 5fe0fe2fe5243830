//! The parameters of a location, made ready when the configuration is compiled.

use bolide_conf::model::Param;
use bolide_conf::vars::{Template, TemplatePart, Var};

/// The parameters of a location, ready to be written.
#[derive(Debug, Default)]
pub(crate) struct ParamPlan {
    pub(super) params: Vec<Planned>,
    /// Names of fields, as `HTTP_*` has them, that configuration decides about.
    pub(super) decided: Vec<Box<[u8]>>,
}

#[derive(Debug)]
pub(super) struct Planned {
    pub(super) name: Box<[u8]>,
    pub(super) value: Template,
    pub(super) if_not_empty: bool,
    /// The path that the client asked for follows, whatever it was rewritten to.
    pub(super) with_asked_path: bool,
}

impl ParamPlan {
    /// The parameters `params`, those for PHP of our own if `is_php`.
    pub(crate) fn new(params: &[Param], is_php: bool) -> Self {
        let mut plan = Self::default();
        for param in params {
            if let Some(field) = param.name.strip_prefix(b"HTTP_") {
                plan.decided.push(field.into());
                // As in nginx, one without any value only keeps the field out.
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
        // As under Apache, these two keep to the path that was asked for.
        if is_php
            && matches!(&*param.name, b"SCRIPT_URI" | b"SCRIPT_URL")
            && let [before @ .., TemplatePart::Var(Var::Uri)] = param.value.parts()
        {
            let value = Template::new(before.to_vec());
            return Self { name, value, if_not_empty, with_asked_path: true };
        }
        Self { name, value: param.value.clone(), if_not_empty, with_asked_path: false }
    }

    /// As in nginx 1.30, an application is told the host that the request is for, which is not
    /// what the field says where the target names another.
    fn host() -> Self {
        let parts = [Var::Host, Var::IsRequestPort, Var::RequestPort].map(TemplatePart::Var);
        let value = Template::new(parts.to_vec());
        Self { name: Box::from(*b"HTTP_HOST"), value, if_not_empty: true, with_asked_path: false }
    }
}
