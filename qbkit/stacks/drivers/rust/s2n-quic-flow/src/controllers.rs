//! The controllers of s2n-quic, each watched.

use crate::watch::Latest;
use crate::watched::{Told, Watching};
use common::Arguments;
use s2n_quic::provider::congestion_controller as cc;
use std::fmt::Debug;

pub const NAMES: &[&str] = &["cubic", "bbr"];

/// What a client is built with.
pub trait Controller: cc::Provider {}
impl<T: cc::Provider> Controller for T {}

pub fn cubic(arguments: &Arguments, latest: &Latest) -> impl Controller {
    let make = |window_bytes| {
        let cubic = cc::cubic::Builder::default();
        match window_bytes {
            Some(bytes) => cubic.with_initial_congestion_window(bytes).build(),
            None => cubic.build(),
        }
    };
    let mut watching = Watching::new(arguments, latest, make);
    watching.rules.tells = Some(cubic_tells);
    watching.rules.rtt = arguments.knobs.get("hystart").unwrap_or(true);
    watching
}

pub fn bbr(arguments: &Arguments, latest: &Latest) -> impl Controller {
    let gain = |name| arguments.knobs.get::<u32>(name);
    let cwnd = gain("bbr_cwnd_gain_percent");
    let loss = gain("bbr_loss_threshold_percent");
    let up = gain("bbr_probe_up_gain_percent");
    latest.change(|sample| sample.state = Some("startup"));
    Watching::new(arguments, latest, move |window_bytes| {
        let mut bbr = cc::bbr::Builder::default();
        if let Some(bytes) = window_bytes {
            bbr = bbr.with_initial_congestion_window(bytes);
        }
        if let Some(percent) = cwnd {
            bbr = bbr.with_probe_bw_cwnd_gain(percent);
        }
        if let Some(percent) = loss {
            bbr = bbr.with_loss_threshold(percent);
        }
        if let Some(percent) = up {
            bbr = bbr.with_probe_bw_up_pacing_gain(percent);
        }
        bbr.build()
    })
}

/// CUBIC keeps them private, but derives Debug.
fn cubic_tells(controller: &dyn Debug) -> Told {
    let text = format!("{controller:?}");
    let state = [
        (" state: SlowStart", "slow_start"),
        (" state: Recovery", "recovery"),
        (" state: CongestionAvoidance", "congestion_avoidance"),
    ]
    .into_iter()
    .find_map(|(told, state)| text.contains(told).then_some(state));
    let threshold = text.split(" threshold: ").nth(1).and_then(|rest| rest.split(',').next());
    let bytes = threshold.and_then(|number| number.parse().ok()).filter(|&b: &f32| b < f32::MAX);
    (state, bytes.map(|b| b as u64))
}
