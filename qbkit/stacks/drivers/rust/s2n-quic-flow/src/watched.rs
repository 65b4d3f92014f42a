//! A controller that does what the one inside does, and notes the state that no event has.

use crate::watch::Latest;
use common::Arguments;
use s2n_quic::provider::congestion_controller::{
    CongestionController, Endpoint, PathInfo, Publisher, RandomGenerator, RttEstimator, Timestamp,
};
use std::fmt::{Debug, Formatter};

/// A controller's state and, once there is one, its slow-start threshold in bytes.
pub type Told = (Option<&'static str>, Option<u64>);

/// How the controller inside is watched and changed.
#[derive(Clone)]
pub struct Rules {
    latest: Latest,
    /// How to read what only its Debug text tells.
    pub tells: Option<fn(&dyn Debug) -> Told>,
    /// Whether it gets RTT samples; in CUBIC only HyStart uses them.
    pub rtt: bool,
    /// Whether its departure times count.
    pacing: bool,
}

/// Builds a watched controller for each path.
pub struct Watching<F> {
    make: F,
    window_packets: Option<u32>,
    pub rules: Rules,
}

impl<F> Watching<F> {
    pub fn new(arguments: &Arguments, latest: &Latest, make: F) -> Self {
        let pacing = arguments.knobs.get("pacing").unwrap_or(true);
        let rules = Rules { latest: latest.clone(), tells: None, rtt: true, pacing };
        Watching { make, window_packets: arguments.knobs.get("initial_window_packets"), rules }
    }
}

impl<F> Debug for Watching<F> {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("Watching")
    }
}

impl<E: Endpoint, F: Fn(Option<u32>) -> E + Send + 'static> Endpoint for Watching<F> {
    type CongestionController = Watched<E::CongestionController>;

    fn new_congestion_controller(&mut self, path: PathInfo) -> Self::CongestionController {
        let window_bytes = self.window_packets.map(|n| n * u32::from(path.max_datagram_size));
        let inner = (self.make)(window_bytes).new_congestion_controller(path);
        Watched { inner, rules: self.rules.clone() }
    }
}

#[derive(Clone)]
pub struct Watched<C> {
    inner: C,
    rules: Rules,
}

impl<C: Debug> Debug for Watched<C> {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl<C: CongestionController> Watched<C> {
    fn note(&self) {
        if let Some(tells) = self.rules.tells {
            let (state, ssthresh_bytes) = tells(&self.inner);
            self.rules.latest.change(|sample| {
                sample.state = state;
                sample.ssthresh_bytes = ssthresh_bytes;
            });
        }
    }
}

impl<C: CongestionController> CongestionController for Watched<C> {
    type PacketInfo = C::PacketInfo;

    fn congestion_window(&self) -> u32 {
        self.inner.congestion_window()
    }

    fn bytes_in_flight(&self) -> u32 {
        self.inner.bytes_in_flight()
    }

    fn is_congestion_limited(&self) -> bool {
        self.inner.is_congestion_limited()
    }

    fn requires_fast_retransmission(&self) -> bool {
        self.inner.requires_fast_retransmission()
    }

    fn on_packet_sent<P: Publisher>(
        &mut self,
        sent: Timestamp,
        bytes: usize,
        app_limited: Option<bool>,
        rtt: &RttEstimator,
        publisher: &mut P,
    ) -> Self::PacketInfo {
        self.inner.on_packet_sent(sent, bytes, app_limited, rtt, publisher)
    }

    fn on_rtt_update<P: Publisher>(
        &mut self,
        sent: Timestamp,
        now: Timestamp,
        rtt: &RttEstimator,
        publisher: &mut P,
    ) {
        if self.rules.rtt {
            self.inner.on_rtt_update(sent, now, rtt, publisher);
        }
    }

    fn on_ack<P: Publisher>(
        &mut self,
        newest_sent: Timestamp,
        bytes: usize,
        newest: Self::PacketInfo,
        rtt: &RttEstimator,
        random: &mut dyn RandomGenerator,
        now: Timestamp,
        publisher: &mut P,
    ) {
        self.inner.on_ack(newest_sent, bytes, newest, rtt, random, now, publisher);
        self.note();
    }

    fn on_packet_lost<P: Publisher>(
        &mut self,
        bytes: u32,
        packet: Self::PacketInfo,
        persistent_congestion: bool,
        new_loss_burst: bool,
        random: &mut dyn RandomGenerator,
        now: Timestamp,
        publisher: &mut P,
    ) {
        self.inner.on_packet_lost(
            bytes,
            packet,
            persistent_congestion,
            new_loss_burst,
            random,
            now,
            publisher,
        );
        self.note();
    }

    fn on_explicit_congestion<P: Publisher>(
        &mut self,
        ce_count: u64,
        now: Timestamp,
        publisher: &mut P,
    ) {
        self.inner.on_explicit_congestion(ce_count, now, publisher);
        self.note();
    }

    fn on_mtu_update<P: Publisher>(&mut self, max_data_size: u16, publisher: &mut P) {
        self.inner.on_mtu_update(max_data_size, publisher);
    }

    fn on_packet_discarded<P: Publisher>(&mut self, bytes: usize, publisher: &mut P) {
        self.inner.on_packet_discarded(bytes, publisher);
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.inner.earliest_departure_time().filter(|_| self.rules.pacing)
    }

    fn send_quantum(&self) -> Option<usize> {
        self.inner.send_quantum()
    }
}
