//! Transport parameters of both ends.

use crate::api;
use common::{window_bytes, Arguments};
use quinn::{TransportConfig, VarInt};
use std::time::Duration;

/// Windows that never limit a sender, and the knobs of the flow.
pub fn transport(arguments: &Arguments) -> TransportConfig {
    let mut config = TransportConfig::default();
    let window = VarInt::from_u64(window_bytes()).expect("it fits 62 bits");
    config.stream_receive_window(window).receive_window(window).send_window(window_bytes());
    config.max_idle_timeout(Some(Duration::from_secs(60).try_into().expect("it fits")));
    if let Some(packets) = arguments.knobs.get("packet_threshold") {
        config.packet_threshold(packets);
    }
    api::set_knobs(&mut config, &arguments.knobs);
    config
}
