//! One QUIC flow by noq, a fork of quinn, and the IETF perf protocol.

mod api;
#[path = "../../quinn-flow/src/controllers.rs"]
mod controllers;
#[path = "../../quinn-flow/src/end.rs"]
mod end;
#[path = "../../quinn-flow/src/receive.rs"]
mod receive;
#[path = "../../quinn-flow/src/run.rs"]
mod run;
#[path = "../../quinn-flow/src/send.rs"]
mod send;
#[path = "../../quinn-flow/src/tls.rs"]
mod tls;
#[path = "../../quinn-flow/src/transport.rs"]
mod transport;
#[path = "../../quinn-flow/src/watch.rs"]
mod watch;

fn main() {
    run::run("noq");
}
