//! Thin safe wrappers: each one system call or one libc function, arguments checked by type.

mod child;
mod epoll;
mod file;
mod foreign;
mod inotify;
mod process;
mod socket;
mod store;
mod trusted;
mod udp;

pub(crate) use child::{
    CleanSlate, adopt_orphans, ended_child, is_readable, kill_group, prepare_child, reap,
};
pub(crate) use epoll::{EpollEvents, EpollFd, event_fd};
pub(crate) use file::{
    create_temp, list, open, open_append, open_at_once, open_not_linked, read, read_at,
    read_bounded, read_small, send_file, standard_error, stat_fd, stat_link, take_shown, write,
    write_at, write_unwaiting,
};
pub(crate) use foreign::{duplicate_of, open_process, signal_process};
pub(crate) use inotify::Inotify;
pub(crate) use process::{
    allow_core, become_user, block_signals, daemonize, dup_to, effective_gid, effective_uid, end,
    find_user, kernel, kill, lowest_free, monotonic_nanos, nofile, now, pin_to_cores, raise_nofile,
    remove_environment, set_core_max, set_environment, set_nofile, set_priority, signal_fd,
    take_signal, thread_id, user_name, utc_offset_seconds, zone_name,
};
pub(crate) use socket::{
    MoreToRead, SockOpt, accept, accepts, attach_reuseport_filter, bind, bind_unix, call_datagrams,
    close, connect, connect_datagrams, datagram_socket, is_datagram, listen, local_address,
    local_path, receive, send, send_pieces, set_buffer, set_inheritable, set_linger_zero,
    set_option, set_reuse, set_unblocking, shut_write, socket_error, stream_socket, take_inherited,
    tcp_info, unix_socket,
};
pub(crate) use store::{
    append_journal, create, entries, free_bytes, lock_exclusive, lock_shared, make_directory,
    name_of, open_journal, remove_directory, rename, set_access, set_modified, sync, take_entries,
    unlink,
};
pub(crate) use trusted::{
    make_owned_directory, open_trusted, rename_trusted, replace_small, unlink_trusted,
};
pub(crate) use udp::{prepare_quic, receive_datagrams, send_datagrams};

use std::io::{Error, Result};

/// The result of a call that returns -1 on failure.
fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// The same for calls that return a size.
fn check_size(result: isize) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}
