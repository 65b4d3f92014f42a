//! One QUIC flow by quinn and the IETF perf protocol.

mod api;
mod controllers;
mod end;
mod receive;
mod run;
mod send;
mod tls;
mod transport;
mod watch;

fn main() {
    run::run("quinn");
}
