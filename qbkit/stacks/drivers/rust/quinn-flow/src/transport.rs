//! Transport parameters of both ends.

use crate::api;
use common::{window_bytes, Arguments};
use quinn::{AckFrequencyConfig, TransportConfig, VarInt};
use std::time::Duration;

/// Windows that never limit a sender, and the knobs of the flow.
pub fn transport(arguments: &Arguments) -> TransportConfig {
    let knobs = &arguments.knobs;
    let mut config = TransportConfig::default();
    let window = VarInt::from_u64(window_bytes()).expect("it fits 62 bits");
    config.stream_receive_window(window).receive_window(window).send_window(window_bytes());
    config.max_idle_timeout(Some(Duration::from_secs(60).try_into().expect("it fits")));
    if let Some(packets) = knobs.get::<u32>("ack_every_packets") {
        let mut asked = AckFrequencyConfig::default();
        // The threshold is how many packets may come without an immediate ACK.
        asked.ack_eliciting_threshold(VarInt::from_u32(packets.saturating_sub(1)));
        config.ack_frequency_config(Some(asked));
    }
    if let Some(packets) = knobs.get("packet_threshold") {
        config.packet_threshold(packets);
    }
    if let Some(on) = knobs.get("segmentation") {
        config.enable_segmentation_offload(on);
    }
    if knobs.get("qlog") == Some(true) {
        api::write_qlog(&mut config, arguments);
    }
    config
}
