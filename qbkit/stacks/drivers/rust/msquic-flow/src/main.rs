//! One QUIC flow by msquic and the IETF perf protocol.

mod connection;
mod receive;
mod send;
mod setup;
mod signals;

use common::Role;

const CONTROLLERS: &[&str] = &["cubic", "bbr"];

fn main() {
    let arguments = common::arguments("msquic", CONTROLLERS, setup::KNOBS);
    signals::block(); // before msquic starts its threads, which inherit it
    match arguments.role {
        Role::Recv => receive::receive(&arguments),
        Role::Send => send::send(&arguments),
    }
}
