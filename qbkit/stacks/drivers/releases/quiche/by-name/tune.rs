//! The controllers of all releases, by quiche's names; a release says which it does not have.

use crate::config::cannot;
use common::Arguments;
use quiche::Config;

pub const CONTROLLERS: &[&str] = &["cubic", "reno", "bbr", "bbr2"];
pub const KNOBS: &[&str] = &["hystart"];

pub fn tune(config: &mut Config, arguments: &Arguments) {
    config.set_cc_algorithm_name(&arguments.controller).unwrap_or_else(|e| cannot(e));
    if let Some(on) = arguments.knobs.get("hystart") {
        config.enable_hystart(on);
    }
}
