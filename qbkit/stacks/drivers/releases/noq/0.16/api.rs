//! noq-proto 0.16 and 0.17: quinn's controllers, with a BBRv1.

#[path = "shared.rs"]
mod shared;

use crate::watch::Watched;
use quinn::congestion::Bbr;
pub use quinn::congestion::BbrConfig;
use quinn::congestion::{Controller, ControllerMetrics};
use quinn::RecvStream;
use quinn_proto::RttEstimator;
pub use shared::{path_sample, write_qlog};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

pub const CONTROLLERS: &[&str] = &["cubic", "newreno", "bbr"];

/// BBR's mode as its text writes it, and as the telemetry does.
pub const BBR_STATES: &[(&str, &str)] = &[
    ("mode: Startup", "startup"),
    ("mode: Drain", "drain"),
    ("mode: ProbeBw", "probe_bw"),
    ("mode: ProbeRtt", "probe_rtt"),
];
/// The field that follows the mode in that text.
pub const AFTER_BBR_STATE: &str = "loss_state";

/// BBR, as a controller of its own type.
pub fn bbr(config: Arc<BbrConfig>, _: Instant, mtu: u16) -> Bbr {
    Bbr::new(config, mtu)
}

/// The pacing rate in bit/s, as these releases count it.
pub fn pacing_rate_bps(metrics: &ControllerMetrics) -> Option<u64> {
    metrics.pacing_rate
}

/// Length of the next bytes of a stream, in order; None at its end.
pub async fn read(stream: &mut RecvStream) -> Option<usize> {
    let chunk = stream.read_chunk(usize::MAX).await.ok()?;
    chunk.map(|chunk| chunk.bytes.len())
}

impl<C: Controller + Clone + Debug + 'static> Controller for Watched<C> {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
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
    ) {
        self.inner.on_congestion_event(now, sent, persistent, is_ecn, lost_bytes);
        self.congested();
    }

    shared::passed_on! {
        fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64);
        fn on_spurious_congestion_event(&mut self);
        fn on_mtu_update(&mut self, new_mtu: u16);
    }
}
