//! One QUIC flow by s2n-quic and the IETF perf protocol.

mod controllers;
mod end;
mod endpoint;
mod receive;
mod send;
mod socket;
mod tls;
mod watch;
mod watched;

use common::Role;

const KNOBS: &[&str] = &[
    "bbr_cwnd_gain_percent",
    "bbr_loss_threshold_percent",
    "bbr_probe_up_gain_percent",
    "hystart",
    "hystart_plus_plus",
    "initial_window_packets",
    "max_ack_delay_ms",
    "pacing",
    "segmentation",
];

fn main() {
    let arguments = common::arguments("s2n-quic", controllers::NAMES, KNOBS);
    if arguments.knobs.get("hystart_plus_plus") == Some(true) {
        std::env::set_var("S2N_UNSTABLE_USE_HYSTART_PP", "1"); // its only way in
    }
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
