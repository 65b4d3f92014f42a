//! One QUIC flow by quiche 0.7.0 (QUIC draft 29, at both ends) and the IETF perf protocol.

mod end;
mod link;
mod receive;
mod send;
mod setup;

use common::Role;

const CONTROLLERS: &[&str] = &["cubic", "reno"];

fn main() {
    let arguments = common::arguments("quiche-0.7", CONTROLLERS, setup::KNOBS);
    match arguments.role {
        Role::Recv => receive::receive(&arguments),
        Role::Send => send::send(&arguments),
    }
}
