//! The process: command line, configuration, control. Nothing here answers a request.

mod account;
mod acme;
mod admin;
mod adopt;
mod adopted_sockets;
mod assemble;
mod check;
mod cli;
mod cluster;
mod commands;
mod control;
mod control_log;
mod demo;
mod disk_writer_thread;
mod early_log;
mod geo_databases;
mod given_sockets;
mod import;
mod invocation;
mod messages;
mod otel;
mod patience;
mod php;
mod pid;
mod reading;
mod retired;
mod serve;
mod service_manager;
mod signalling;
mod sockets;
mod source;
mod stapling;
mod start;
mod temp_dirs;
mod testing;
mod tls_setup;
mod unread_files;
mod upgrade;
mod version;

use std::process::ExitCode;

/// Short-lived small blocks dominate (QUIC packets, TLS records), and threads do not share them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os()) {
        Ok(invocation) => messages::end(commands::run(&invocation)),
        Err(text) => {
            messages::err(&format!("bolide: {text}"));
            ExitCode::FAILURE
        }
    }
}
