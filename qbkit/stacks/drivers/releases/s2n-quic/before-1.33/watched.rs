//! A controller as it is: before 1.33 no program outside of s2n-quic could put one around it.

use crate::watch::Latest;
use common::Arguments;
use s2n_quic::provider::congestion_controller::{Endpoint, PathInfo};
use std::fmt::{Debug, Formatter};

/// Builds the controller of each path.
pub struct Watching<F>(F);

impl<F> Watching<F> {
    pub fn new(_: &Arguments, _: &Latest, make: F) -> Self {
        Watching(make)
    }
}

impl<F> Debug for Watching<F> {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("Watching")
    }
}

impl<E: Endpoint, F: Fn(Option<u32>) -> E + Send + 'static> Endpoint for Watching<F> {
    type CongestionController = E::CongestionController;

    fn new_congestion_controller(&mut self, path: PathInfo) -> Self::CongestionController {
        (self.0)(None).new_congestion_controller(path)
    }
}
