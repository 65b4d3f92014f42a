//! What differs between noq and quinn; the crates bear quinn's names here.

use crate::watch::Watched;
use common::{Arguments, Sample};
pub use quinn::congestion::Bbr3Config as BbrConfig;
use quinn::congestion::{Bbr3 as Bbr, ControllerFactory};
use quinn::congestion::{Controller, ControllerMetrics};
use quinn::{Connection, PathId, RecvStream, TransportConfig};
use quinn_proto::RttEstimator;
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
pub fn bbr(config: Arc<BbrConfig>, now: Instant, mtu: u16) -> Bbr {
    let built = config.build(now, mtu).into_any().downcast();
    *built.expect("its configuration builds a Bbr3")
}

/// The pacing rate in bit/s; noq counts bytes.
pub fn pacing_rate_bps(metrics: &ControllerMetrics) -> Option<u64> {
    metrics.pacing_rate.map(|bytes| 8 * bytes)
}

/// Length of the next bytes of a stream, in order; None at its end.
pub async fn read(stream: &mut RecvStream) -> Option<usize> {
    let chunk = stream.read_chunk(usize::MAX).await.ok()?;
    chunk.map(|bytes| bytes.len())
}

/// What the connection itself reports.
pub fn path_sample(connection: &Connection) -> Sample {
    let Some(path) = connection.path_stats(PathId::ZERO) else { return Sample::default() };
    Sample {
        cwnd_bytes: Some(path.cwnd),
        srtt: Some(path.rtt),
        lost_packets: Some(path.lost_packets),
        ..Sample::default()
    }
}

pub fn write_qlog(config: &mut TransportConfig, arguments: &Arguments) {
    config.qlog_from_path(&arguments.out, &format!("{:?}", arguments.role).to_lowercase());
}

impl<C: Controller + Clone + Debug + 'static> Controller for Watched<C> {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, packet_number: u64) {
        self.inner.on_packet_sent(now, bytes, packet_number);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

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

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.acks_ended(in_flight);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost: u64,
    ) {
        let persistent = is_persistent_congestion;
        self.inner.on_congestion_event(now, sent, persistent, is_ecn, lost_bytes, largest_lost);
        self.congested();
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, packet_number: u64, now: Instant) {
        self.inner.on_packet_lost(lost_bytes, packet_number, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_ack_delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, max_ack_delay);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.inner)
    }
}
