//! Sets of methods, as `<Limit>` and `<LimitExcept>` name them.

/// Methods. `GET` stands for `HEAD` as well, as in Apache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MethodSet {
    listed: Vec<Box<[u8]>>,
    is_except: bool,
}

impl MethodSet {
    /// Every method.
    pub(crate) const fn all() -> Self {
        Self { listed: Vec::new(), is_except: true }
    }

    /// The listed ones.
    pub(crate) const fn only(listed: Vec<Box<[u8]>>) -> Self {
        Self { listed, is_except: false }
    }

    /// All but the listed ones, unknown ones included.
    pub(crate) const fn except(listed: Vec<Box<[u8]>>) -> Self {
        Self { listed, is_except: true }
    }

    pub(crate) fn contains(&self, method: &[u8]) -> bool {
        let method = if method == b"HEAD" { b"GET" } else { method };
        self.listed.iter().any(|listed| **listed == *method) != self.is_except
    }
}
