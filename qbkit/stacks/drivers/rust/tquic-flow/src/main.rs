//! One QUIC flow by tquic and the IETF perf protocol.

mod config;
mod end;
mod link;
mod receive;
mod send;

use common::Role;
use std::rc::Rc;

const CONTROLLERS: &[&str] = &["cubic", "bbr", "bbr3", "copa"];

fn main() {
    let arguments = Rc::new(common::arguments("tquic", CONTROLLERS, config::KNOBS));
    match arguments.role {
        Role::Recv => receive::receive(&arguments),
        Role::Send => send::send(&arguments),
    }
}
