//! The driver's command, for quinn and for its fork.

use crate::{api, receive, send};
use common::Role;

const KNOBS: &[&str] =
    &["ack_every_packets", "initial_window_packets", "packet_threshold", "qlog", "segmentation"];

pub fn run(stack: &str) {
    let arguments = common::arguments(stack, api::CONTROLLERS, KNOBS);
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
