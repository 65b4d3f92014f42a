//! What the stack's events and the watched controller told last.

use common::Sample;
use s2n_quic::provider::event::{events, ConnectionInfo, ConnectionMeta, Subscriber};
use std::sync::{Arc, Mutex};

/// One sample that the stack writes and the sender reads.
#[derive(Clone, Debug, Default)]
pub struct Latest(Arc<Mutex<Sample>>);

impl Latest {
    pub fn get(&self) -> Sample {
        *self.0.lock().expect("one thread")
    }

    pub fn change(&self, change: impl FnOnce(&mut Sample)) {
        change(&mut self.0.lock().expect("one thread"));
    }
}

/// Listens to the events of the client's one connection.
pub struct Watcher(pub Latest);

impl Subscriber for Watcher {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) {}

    fn on_recovery_metrics(
        &mut self,
        _: &mut (),
        _: &ConnectionMeta,
        event: &events::RecoveryMetrics,
    ) {
        self.0.change(|sample| {
            sample.cwnd_bytes = Some(event.congestion_window.into());
            sample.bytes_in_flight = Some(event.bytes_in_flight.into());
            sample.srtt = Some(event.smoothed_rtt);
            sample.latest_rtt = Some(event.latest_rtt);
            sample.min_rtt = Some(event.min_rtt);
            sample.lost_packets.get_or_insert(0);
        });
    }

    fn on_packet_lost(&mut self, _: &mut (), _: &ConnectionMeta, event: &events::PacketLost) {
        if !event.is_mtu_probe {
            self.0.change(|sample| *sample.lost_packets.get_or_insert(0) += 1);
        }
    }

    fn on_pacing_rate_updated(
        &mut self,
        _: &mut (),
        _: &ConnectionMeta,
        event: &events::PacingRateUpdated,
    ) {
        self.0.change(|sample| sample.pacing_rate_mbps = Some(mbps(event.bytes_per_second)));
    }

    fn on_delivery_rate_sampled(
        &mut self,
        _: &mut (),
        _: &ConnectionMeta,
        event: &events::DeliveryRateSampled,
    ) {
        let rate = event.rate_sample.delivery_rate_bytes_per_second;
        self.0.change(|sample| sample.delivery_rate_mbps = Some(mbps(rate)));
    }

    fn on_bbr_state_changed(
        &mut self,
        _: &mut (),
        _: &ConnectionMeta,
        event: &events::BbrStateChanged,
    ) {
        use events::BbrState::{Drain, ProbeRtt, Startup};
        let state = match event.state {
            Startup { .. } => "startup",
            Drain { .. } => "drain",
            ProbeRtt { .. } => "probe_rtt",
            _ => "probe_bw",
        };
        self.0.change(|sample| sample.state = Some(state));
    }
}

fn mbps(bytes_per_second: u64) -> f64 {
    bytes_per_second as f64 * 8e-6
}
