//! What both ends set: windows that never limit a sender, and the knobs of the flow.

use common::{fail, window_bytes, Arguments};
use s2n_quic::provider::limits::Limits;
use std::fmt::Display;
use std::time::Duration;

const IDLE_LIMIT: Duration = Duration::from_secs(60);

pub fn limits(arguments: &Arguments) -> Limits {
    let mut limits = windows();
    if let Some(ms) = arguments.knobs.get("max_ack_delay_ms") {
        limits = limits
            .with_max_ack_delay(Duration::from_millis(ms))
            .unwrap_or_else(|e| cannot(&format!("delay acknowledgements by {ms} ms"), &e));
    }
    limits
}

fn windows() -> Limits {
    let window = window_bytes();
    Limits::new()
        .with_data_window(window)
        .and_then(|l| l.with_bidirectional_local_data_window(window))
        .and_then(|l| l.with_bidirectional_remote_data_window(window))
        .and_then(|l| l.with_max_send_buffer_size(window as u32))
        .and_then(|l| l.with_max_idle_timeout(IDLE_LIMIT))
        .expect("windows below 4 GB")
}

pub fn cannot(what: &str, why: &dyn Display) -> ! {
    fail(format_args!("cannot {what}: {why}"))
}
