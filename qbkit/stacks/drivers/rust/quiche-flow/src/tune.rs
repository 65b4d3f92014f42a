//! The controllers of this release, and the knobs of the flow.

use common::Arguments;
use quiche::{BbrParams, Config, CongestionControlAlgorithm};

pub const CONTROLLERS: &[&str] = &["cubic", "reno", "bbr2"];
pub const KNOBS: &[&str] = &[
    "bbr_drain_pacing_gain",
    "bbr_probe_down_pacing_gain",
    "bbr_probe_up_pacing_gain",
    "bbr_startup_pacing_gain",
    "hystart",
    "initial_window_packets",
    "max_pacing_rate_mbps",
    "pacing",
    "qlog",
];

pub fn tune(config: &mut Config, arguments: &Arguments) {
    let knobs = &arguments.knobs;
    config.set_cc_algorithm(match arguments.controller.as_str() {
        "reno" => CongestionControlAlgorithm::Reno,
        "cubic" => CongestionControlAlgorithm::CUBIC,
        _ => CongestionControlAlgorithm::Bbr2Gcongestion,
    });
    if let Some(packets) = knobs.get("initial_window_packets") {
        config.set_initial_congestion_window_packets(packets);
    }
    if let Some(on) = knobs.get("hystart") {
        config.enable_hystart(on);
    }
    if let Some(on) = knobs.get("pacing") {
        config.enable_pacing(on);
    }
    if let Some(rate_mbps) = knobs.get("max_pacing_rate_mbps") {
        config.set_max_pacing_rate(rate_mbps); // Mbit/s, though its documentation does not say so
    }
    config.set_custom_bbr_params(BbrParams {
        startup_pacing_gain: knobs.get("bbr_startup_pacing_gain"),
        drain_pacing_gain: knobs.get("bbr_drain_pacing_gain"),
        probe_bw_probe_up_pacing_gain: knobs.get("bbr_probe_up_pacing_gain"),
        probe_bw_probe_down_pacing_gain: knobs.get("bbr_probe_down_pacing_gain"),
        ..BbrParams::default()
    });
}
