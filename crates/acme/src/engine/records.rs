//! Reading the files of orders and accounts; a damaged one is renamed.

use super::Engine;
use crate::accounts::account_stem;
use crate::host::AcmeLogLevel;
use crate::plan::{AcmeIssuer, OrderId};
use crate::record::{AccountRecord, OrderRecord, RECORD_MAX};
use crate::state::AcmeStore;

impl Engine {
    pub(super) fn order_record(&self, id: &OrderId) -> OrderRecord {
        let Some(files) = self.files.get(id) else { return OrderRecord::default() };
        let name = format!("{}.state", files.stem);
        self.read(&files.store, &name, OrderRecord::parse)
    }

    pub(super) fn account_record(&self, issuer: &AcmeIssuer) -> AccountRecord {
        let name = format!("{}.state", account_stem(issuer));
        self.read(&self.shared.store(issuer), &name, AccountRecord::parse)
    }

    /// Reads a record; a damaged one is renamed.
    fn read<T: Default>(
        &self,
        store: &AcmeStore,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        let content = match store.read(name, RECORD_MAX) {
            Ok(Some(content)) => content,
            Ok(None) => return T::default(),
            Err(why) => {
                self.log(AcmeLogLevel::Error, &why);
                return T::default();
            }
        };
        let parsed = std::str::from_utf8(&content).ok().and_then(parse);
        parsed.unwrap_or_else(|| {
            let aside = store.set_aside(name).map_or_else(|why| why, |()| "it is set aside".into());
            self.log(AcmeLogLevel::Error, &format!("\"{name}\" is damaged; {aside}"));
            T::default()
        })
    }
}
