//! noq-proto 1.0 and 1.1: BBRv3 instead of BBRv1, which hears of single packets.

#[path = "shared.rs"]
mod shared;

use crate::watch::Watched;
pub use quinn::congestion::Bbr3Config as BbrConfig;
use quinn::congestion::{Bbr3, Controller, ControllerFactory, ControllerMetrics};
use quinn::RecvStream;
use quinn_proto::RttEstimator;
pub use shared::{path_sample, write_qlog};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const CONTROLLERS: &[&str] = &["cubic", "newreno", "bbr3"];

/// BBR's state as its text writes it, and as the telemetry does.
pub const BBR_STATES: &[(&str, &str)] = &[
    ("state: Startup", "startup"),
    ("state: Drain", "drain"),
    ("state: ProbeBw", "probe_bw"),
    ("state: ProbeRtt", "probe_rtt"),
];
/// The field that follows the state in that text.
pub const AFTER_BBR_STATE: &str = "undo_state";

/// BBR, as a controller of its own type.
pub fn bbr(config: Arc<BbrConfig>, now: Instant, mtu: u16) -> Bbr3 {
    let built = config.build(now, mtu).into_any().downcast();
    *built.expect("its configuration builds a Bbr3")
}

/// The pacing rate in bit/s; these releases count bytes.
pub fn pacing_rate_bps(metrics: &ControllerMetrics) -> Option<u64> {
    metrics.pacing_rate.map(|bytes| 8 * bytes)
}

/// Length of the next bytes of a stream, in order; None at its end.
pub async fn read(stream: &mut RecvStream) -> Option<usize> {
    let chunk = stream.read_chunk(usize::MAX).await.ok()?;
    chunk.map(|bytes| bytes.len())
}

impl<C: Controller + Clone + Debug + 'static> Controller for Watched<C> {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        packet_number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, packet_number, app_limited, rtt);
        self.acked(now - sent);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, limited: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, limited, largest);
        self.acks_ended(in_flight);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost: u64,
    ) {
        self.inner.on_congestion_event(now, sent, persistent, is_ecn, lost_bytes, largest_lost);
        self.congested();
    }

    shared::passed_on! {
        fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64);
        fn on_packet_sent(&mut self, now: Instant, bytes: u16, packet_number: u64);
        fn on_packet_lost(&mut self, lost_bytes: u16, packet_number: u64, now: Instant);
        fn on_spurious_congestion_event(&mut self);
        fn on_mtu_update(&mut self, new_mtu: u16);
        fn on_ack_frequency_update(&mut self, threshold: u64, max_ack_delay: Duration);
    }
}
