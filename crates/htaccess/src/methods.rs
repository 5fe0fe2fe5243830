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
    pub(crate) fn only(listed: Vec<Box<[u8]>>) -> Self {
        Self { listed: joined(listed), is_except: false }
    }

    /// All but the listed ones, unknown ones included.
    pub(crate) fn except(listed: Vec<Box<[u8]>>) -> Self {
        Self { listed: joined(listed), is_except: true }
    }

    pub(crate) fn contains(&self, method: &[u8]) -> bool {
        let method = if method == b"HEAD" { b"GET" } else { method };
        self.listed.iter().any(|listed| **listed == *method) != self.is_except
    }
}

/// With `GET` in place of `HEAD`.
fn joined(mut listed: Vec<Box<[u8]>>) -> Vec<Box<[u8]>> {
    for method in &mut listed {
        if **method == *b"HEAD" {
            *method = b"GET"[..].into();
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::MethodSet;

    #[test]
    fn head_is_get_wherever_it_is_named() {
        for name in [&b"HEAD"[..], b"GET"] {
            let only = MethodSet::only(vec![name.into()]);
            assert!(only.contains(b"GET") && only.contains(b"HEAD") && !only.contains(b"POST"));
            let except = MethodSet::except(vec![name.into()]);
            assert!(!except.contains(b"GET") && !except.contains(b"HEAD"));
            assert!(except.contains(b"POST") && except.contains(b"get"));
        }
    }
}
