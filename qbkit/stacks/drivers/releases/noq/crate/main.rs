//! One QUIC flow by a release of noq and the IETF perf protocol.

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
    run::run("noq");
}
