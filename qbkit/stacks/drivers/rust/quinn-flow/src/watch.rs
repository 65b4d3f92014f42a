//! A controller that does what the one inside does, and notes what it is told and answers.

use quinn::congestion::{Controller, ControllerMetrics};
use quinn_proto::RttEstimator;
use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The controller's state after the latest event.
#[derive(Default)]
pub struct Latest {
    pub cwnd_bytes: u64,
    pub bytes_in_flight: Option<u64>,
    pub ssthresh_bytes: Option<u64>,
    pub pacing_rate_bps: Option<u64>,
    pub srtt: Duration,
    pub latest_rtt: Duration,
    pub state: Option<&'static str>,
}

#[derive(Clone)]
pub struct Watched<C> {
    inner: C,
    latest: Arc<Mutex<Latest>>,
    latest_rtt: Duration,
}

impl<C: Controller + Clone + Debug + 'static> Watched<C> {
    pub fn new(inner: C, latest: Arc<Mutex<Latest>>) -> Self {
        Watched { inner, latest, latest_rtt: Duration::ZERO }
    }

    fn note(&self, change: impl FnOnce(&mut Latest)) {
        let mut latest = self.latest.lock().expect("one thread");
        let metrics = self.inner.metrics();
        latest.cwnd_bytes = metrics.congestion_window;
        latest.ssthresh_bytes = metrics.ssthresh.filter(|&bytes| bytes < u64::MAX);
        latest.pacing_rate_bps = metrics.pacing_rate;
        change(&mut latest);
    }

    /// BBR keeps its mode private, but derives Debug; the others are told by ssthresh.
    fn state(&self) -> Option<&'static str> {
        if let Some(ssthresh) = self.inner.metrics().ssthresh {
            let slow = self.inner.window() < ssthresh;
            return Some(if slow { "slow_start" } else { "congestion_avoidance" });
        }
        let text = format!("{:?}", self.inner);
        [
            ("mode: Startup", "startup"),
            ("mode: Drain", "drain"),
            ("mode: ProbeBw", "probe_bw"),
            ("mode: ProbeRtt", "probe_rtt"),
        ]
        .into_iter()
        .find_map(|(mode, state)| text.contains(mode).then_some(state))
    }
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
        self.latest_rtt = now - sent; // acknowledged in order: the last one of a batch stays
        let srtt = rtt.get();
        self.note(|latest| latest.srtt = srtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        let (rtt, state) = (self.latest_rtt, self.state());
        self.note(|latest| {
            latest.bytes_in_flight = Some(in_flight);
            latest.latest_rtt = rtt;
            latest.state = state;
        });
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        let state = self.state();
        self.note(|latest| latest.state = state);
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
