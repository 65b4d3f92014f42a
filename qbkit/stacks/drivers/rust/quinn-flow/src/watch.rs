//! A controller that does what the one inside does, and notes what it is told and answers.

use crate::api;
use quinn::congestion::Controller;
use std::fmt::{Debug, Error, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The controller's state after the latest event.
#[derive(Debug, Default)]
pub struct Latest {
    pub bytes_in_flight: Option<u64>,
    pub ssthresh_bytes: Option<u64>,
    pub pacing_rate_bps: Option<u64>,
    pub latest_rtt: Duration,
    pub state: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct Watched<C> {
    pub inner: C,
    latest: Arc<Mutex<Latest>>,
    latest_rtt: Duration,
}

impl<C: Controller + Clone + Debug + 'static> Watched<C> {
    pub fn new(inner: C, latest: Arc<Mutex<Latest>>) -> Self {
        Watched { inner, latest, latest_rtt: Duration::ZERO }
    }

    /// After an acknowledged packet; those of a batch come in the order of their sending, so the
    /// last one's round trip stays.
    pub fn acked(&mut self, round_trip: Duration) {
        self.latest_rtt = round_trip;
        self.note(|_| ());
    }

    /// After the last of a batch of acknowledged packets.
    pub fn acks_ended(&self, in_flight: u64) {
        let (rtt, state) = (self.latest_rtt, self.state());
        self.note(|latest| {
            latest.bytes_in_flight = Some(in_flight);
            latest.latest_rtt = rtt;
            latest.state = state;
        });
    }

    /// After a congestion event.
    pub fn congested(&self) {
        let state = self.state();
        self.note(|latest| latest.state = state);
    }

    fn note(&self, change: impl FnOnce(&mut Latest)) {
        let mut latest = self.latest.lock().expect("one thread");
        let metrics = self.inner.metrics();
        latest.ssthresh_bytes = metrics.ssthresh.filter(|&bytes| bytes < u64::MAX);
        latest.pacing_rate_bps = api::pacing_rate_bps(&metrics);
        change(&mut latest);
    }

    /// BBR keeps its mode private, but derives Debug; the others are told by ssthresh.
    fn state(&self) -> Option<&'static str> {
        if let Some(ssthresh) = self.inner.metrics().ssthresh {
            let slow = self.inner.window() < ssthresh;
            return Some(if slow { "slow_start" } else { "congestion_avoidance" });
        }
        let mut text = Text(String::new());
        let _ = write!(text, "{:?}", self.inner); // an error: the text is complete
        api::BBR_STATES.iter().find_map(|(mode, state)| text.0.contains(mode).then_some(*state))
    }
}

/// The beginning of a controller's text, up to its state.
struct Text(String);

impl Write for Text {
    fn write_str(&mut self, part: &str) -> Result<(), Error> {
        self.0.push_str(part);
        if self.0.ends_with(api::AFTER_BBR_STATE) {
            Err(Error)
        } else {
            Ok(())
        }
    }
}
