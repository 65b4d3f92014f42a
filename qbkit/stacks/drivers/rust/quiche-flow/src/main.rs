//! One QUIC flow by quiche and the IETF perf protocol.

mod api;
mod config;
mod end;
mod link;
mod receive;
mod sample;
mod send;
mod tune;

use common::Role;

fn main() {
    let arguments = common::arguments("quiche", tune::CONTROLLERS, tune::KNOBS);
    match arguments.role {
        Role::Recv => receive::receive(&arguments),
        Role::Send => send::send(&arguments),
    }
}
