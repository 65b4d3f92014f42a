//! One QUIC flow by quinn and the IETF perf protocol.

mod controllers;
mod receive;
mod send;
mod tls;
mod transport;
mod watch;

use common::Role;

const KNOBS: &[&str] =
    &["ack_every_packets", "initial_window_packets", "packet_threshold", "qlog", "segmentation"];

fn main() {
    let arguments = common::arguments("quinn", controllers::NAMES, KNOBS);
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
