//! The account that workers run as.

use std::thread::JoinHandle;

use bolide_conf::model::Config;

/// The default account of workers when root starts the server.
pub(crate) const NOBODY: &str = "nobody";

/// The account that workers run as: name, user and group number.
pub(crate) type WorkerAccount = (String, u32, u32);

/// The account that a configuration names; none if this process has no rights to give up.
///
/// # Errors
///
/// There is no such account, in nginx's words.
pub(crate) fn account(config: &Config) -> Result<Option<WorkerAccount>, Vec<String>> {
    if !bolide_io::process::is_root() {
        return Ok(None);
    }
    let Some(user) = &config.main.user else {
        let (uid, gid) = bolide_io::process::find_user(NOBODY, None)
            .ok_or_else(|| vec![format!("getpwnam(\"{NOBODY}\") failed")])?;
        return Ok(Some((NOBODY.to_owned(), uid, gid)));
    };
    match bolide_io::process::find_user(user, config.main.group.as_deref()) {
        Some((uid, gid)) => Ok(Some((user.clone(), uid, gid))),
        None => {
            let group = config.main.group.as_deref().unwrap_or_default();
            let call = match bolide_io::process::find_user(user, None) {
                Some(_) => format!("getgrnam(\"{group}\")"),
                None => format!("getpwnam(\"{user}\")"),
            };
            let bolide_conf::SourcePlace { file, line } = &config.main.user_place;
            Err(vec![format!("{call} failed in {file}:{line}")])
        }
    }
}

/// Makes the directories of temporary files, and of issuers' state, for that account.
///
/// # Errors
///
/// There is no such account, or a directory cannot be made.
pub(crate) fn make_temp_dirs(config: &Config) -> Result<(), Vec<String>> {
    let owner = account(config)?.map(|(_, uid, gid)| (uid, gid));
    crate::temp_dirs::make(config, owner).map_err(|text| vec![text])?;
    crate::acme::make_directories(config, owner).map_err(|text| vec![text])
}

/// Takes the account for the current thread.
///
/// # Errors
///
/// The system refuses.
pub(crate) fn give_up_rights(account: Option<WorkerAccount>) -> Result<(), String> {
    let Some((user, uid, gid)) = account else { return Ok(()) };
    let failed = |error| format!("setuid({uid}) failed ({})", bolide_base::errno::describe(&error));
    bolide_io::process::become_user(&user, uid, gid).map_err(failed)
}

/// Starts a thread that runs `body` as `account`. If the system refuses that account, the thread
/// calls `refused` with the reason and ends.
///
/// # Errors
///
/// The system has no thread.
pub(crate) fn spawn_as(
    account: Option<&WorkerAccount>,
    name: &str,
    body: impl FnOnce() + Send + 'static,
    refused: impl FnOnce(&str) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let account = account.cloned();
    let body = move || match give_up_rights(account) {
        Ok(()) => body(),
        Err(why) => refused(&why),
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}
