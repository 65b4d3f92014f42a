//! One QUIC flow by msquic and the IETF perf protocol.

mod connection;
mod end;
mod receive;
mod send;
mod setup;
mod signals;

use common::Role;

const CONTROLLERS: &[&str] = &["cubic", "bbr"];

fn main() {
    let arguments = common::arguments("msquic", CONTROLLERS, setup::KNOBS);
    signals::block(); // before msquic starts its threads, which inherit it
    match arguments.role {
        Role::Recv => receive::receive(&arguments),
        Role::Send => send::send(&arguments),
    }
}

/// One sentence on stderr, exit status 1.
fn fail(sentence: impl std::fmt::Display) -> ! {
    eprintln!("{sentence}");
    leave(1);
}

/// Ends at once: the crate closes msquic at a process's exit, which waits for every open handle.
fn leave(status: i32) -> ! {
    // SAFETY: all files are written, and nothing of the process is used any more.
    unsafe { libc::_exit(status) }
}
