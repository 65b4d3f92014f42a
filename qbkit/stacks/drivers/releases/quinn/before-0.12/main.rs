//! One QUIC flow by an earlier release of quinn and the IETF perf protocol. `api` is what differs
//! between the releases.

mod api;
mod controllers;
mod end;
mod receive;
mod send;
mod tls;
mod transport;
mod watch;

use common::Role;

fn main() {
    let arguments = common::arguments("quinn", &["cubic", "newreno", "bbr"], api::KNOBS);
    // The guest has one processor; so has this runtime.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap_or_else(|e| common::fail(format_args!("cannot start: {e}")));
    match arguments.role {
        Role::Recv => runtime.block_on(receive::receive(&arguments)),
        Role::Send => runtime.block_on(send::send(&arguments)),
    }
}
