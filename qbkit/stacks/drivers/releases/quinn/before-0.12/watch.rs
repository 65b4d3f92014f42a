//! A controller that does what the one inside does, and notes what it is told.

use crate::api;
use quinn::congestion::Controller;
use quinn_proto::RttEstimator;
use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// BBR's mode as its text writes it, and as the telemetry does.
const BBR_STATES: &[(&str, &str)] = &[
    ("mode: Startup", "startup"),
    ("mode: Drain", "drain"),
    ("mode: ProbeBw", "probe_bw"),
    ("mode: ProbeRtt", "probe_rtt"),
];
const SSTHRESH: &str = "ssthresh: ";

/// The controller's state after the latest event.
#[derive(Debug, Default)]
pub struct Latest {
    pub bytes_in_flight: Option<u64>,
    pub ssthresh_bytes: Option<u64>,
    pub latest_rtt: Option<Duration>,
    pub state: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct Watched<C> {
    inner: C,
    latest: Arc<Mutex<Latest>>,
    latest_rtt: Option<Duration>,
}

pub fn watched<C>(inner: C, latest: Arc<Mutex<Latest>>) -> Watched<C> {
    Watched { inner, latest, latest_rtt: None }
}

impl<C: Controller + Clone + Debug + 'static> Watched<C> {
    /// The controllers of these releases keep ssthresh and mode private, but derive Debug.
    fn note(&self, in_flight: Option<u64>) {
        let text = format!("{:?}", self.inner);
        let ssthresh = ssthresh(&text);
        let mut latest = self.latest.lock().expect("one thread");
        latest.bytes_in_flight = in_flight.or(latest.bytes_in_flight);
        latest.ssthresh_bytes = ssthresh.filter(|&bytes| bytes < u64::MAX);
        latest.latest_rtt = self.latest_rtt;
        latest.state = match ssthresh {
            Some(bytes) if self.inner.window() < bytes => Some("slow_start"),
            Some(_) => Some("congestion_avoidance"),
            None => BBR_STATES.iter().find_map(|(mode, name)| text.contains(mode).then_some(*name)),
        };
    }
}

fn ssthresh(text: &str) -> Option<u64> {
    let rest = &text[text.find(SSTHRESH)? + SSTHRESH.len()..];
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
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
        self.latest_rtt = Some(now - sent);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.note(Some(in_flight));
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        self.note(None);
    }

    api::more_methods!();

    fn window(&self) -> u64 {
        self.inner.window()
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
