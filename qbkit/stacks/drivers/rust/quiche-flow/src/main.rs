//! One QUIC flow by quiche and the IETF perf protocol.

mod config;
mod link;
mod receive;
mod send;

use common::Role;

const CONTROLLERS: &[&str] = &["cubic", "reno", "bbr2"];

fn main() {
    let arguments = common::arguments("quiche", CONTROLLERS, config::KNOBS);
    match arguments.role {
        Role::Recv => receive::receive(&arguments),
        Role::Send => send::send(&arguments),
    }
}
