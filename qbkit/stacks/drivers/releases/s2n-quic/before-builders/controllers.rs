//! The controllers of s2n-quic before they had builders, each watched.

use crate::watch::Latest;
use crate::watched::Watching;
use common::Arguments;
use s2n_quic::provider::congestion_controller as cc;

pub const NAMES: &[&str] = &["cubic", "bbr"];

/// What a client is built with.
pub trait Controller: cc::Provider {}
impl<T: cc::Provider> Controller for T {}

pub fn cubic(arguments: &Arguments, latest: &Latest) -> impl Controller {
    Watching::new(arguments, latest, |_| cc::Cubic::default())
}

pub fn bbr(arguments: &Arguments, latest: &Latest) -> impl Controller {
    latest.change(|sample| sample.state = Some("startup"));
    Watching::new(arguments, latest, |_| cc::Bbr::default())
}
