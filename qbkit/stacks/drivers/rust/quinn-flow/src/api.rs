//! What differs between quinn and its fork noq.

use crate::watch::Watched;
use common::{fail, Arguments, Sample};
use quinn::congestion::Bbr;
pub use quinn::congestion::BbrConfig;
use quinn::congestion::{Controller, ControllerMetrics};
use quinn::{Connection, QlogConfig, RecvStream, TransportConfig};
use quinn_proto::RttEstimator;
use std::any::Any;
use std::fmt::Debug;
use std::fs::File;
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

/// The pacing rate in bit/s; quinn counts bits.
pub fn pacing_rate_bps(metrics: &ControllerMetrics) -> Option<u64> {
    metrics.pacing_rate
}

/// Length of the next bytes of a stream, in order; None at its end.
pub async fn read(stream: &mut RecvStream) -> Option<usize> {
    let chunk = stream.read_chunk(usize::MAX, true).await.ok()?;
    chunk.map(|chunk| chunk.bytes.len())
}

/// What the connection itself reports.
pub fn path_sample(connection: &Connection) -> Sample {
    let path = connection.stats().path;
    Sample {
        cwnd_bytes: Some(path.cwnd),
        srtt: Some(path.rtt),
        min_rtt: Some(path.min_rtt),
        lost_packets: Some(path.lost_packets),
        ..Sample::default()
    }
}

pub fn write_qlog(config: &mut TransportConfig, arguments: &Arguments) {
    let path = arguments.out.join(format!("{:?}.sqlog", arguments.role).to_lowercase());
    let file = File::create(&path)
        .unwrap_or_else(|e| fail(format_args!("cannot write {}: {e}", path.display())));
    let mut qlog = QlogConfig::default();
    qlog.writer(Box::new(std::io::BufWriter::new(file)));
    config.qlog_stream(qlog.into_stream());
}

impl<C: Controller + Clone + Debug + 'static> Controller for Watched<C> {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

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
        lost_bytes: u64,
    ) {
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        self.congested();
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
