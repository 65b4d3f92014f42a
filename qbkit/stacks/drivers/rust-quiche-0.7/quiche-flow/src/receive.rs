//! Counts what comes until SIGTERM. One client after another, as a flow has one.

use crate::end::end_of;
use crate::link::Link;
use crate::setup::setup;
use common::{Arguments, Counter, Role, HEADER_BYTES};
use quiche::{Config, Header, Type, MAX_CONN_ID_LEN};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use udp::Socket;

const BUFFER_BYTES: usize = 1 << 20;

pub fn receive(arguments: &Arguments) {
    let stop = common::stop_flag();
    let mut socket = Socket::bind(arguments.address);
    let mut config = setup(arguments);
    let mut perf = Perf::new(arguments);
    let mut link: Option<Link> = None;
    let mut reported = false;
    println!("ready");
    while !stop.load(Ordering::Relaxed) {
        socket.wait(link.as_ref().and_then(Link::deadline));
        while socket.receive(|bytes, peer| {
            if link.as_ref().is_none_or(|l| l.connection.is_closed()) {
                link = accept(bytes, peer, &mut config);
                perf.header = HEADER_BYTES;
            }
            if let Some(link) = &mut link {
                link.take(bytes);
            }
        }) {}
        if let Some(link) = &mut link {
            link.connection.on_timeout();
            perf.read(link);
            link.send(&mut socket);
            if let Some(end) = end_of(link, Role::Recv).filter(|_| !reported) {
                end.write(arguments);
                reported = true;
            }
        }
    }
    perf.counter.close();
    if let Some(mut link) = link {
        link.close(&mut socket);
    }
}

fn accept(bytes: &mut [u8], peer: SocketAddr, config: &mut Config) -> Option<Link> {
    let header = Header::from_slice(bytes, MAX_CONN_ID_LEN).ok()?;
    if header.ty != Type::Initial {
        return None;
    }
    let connection = quiche::accept(&header.dcid, None, config).ok()?;
    Some(Link::new(connection, peer))
}

/// The server of the perf protocol.
struct Perf {
    counter: Counter,
    /// Bytes of the header that are still to come.
    header: usize,
    buffer: Vec<u8>,
}

impl Perf {
    fn new(arguments: &Arguments) -> Self {
        let counter = Counter::create(arguments);
        Perf { counter, header: HEADER_BYTES, buffer: vec![0; BUFFER_BYTES] }
    }

    /// Reads the streams to their ends and answers each with an empty one.
    fn read(&mut self, link: &mut Link) {
        let connection = &mut link.connection;
        for stream in connection.readable() {
            while let Ok((n, ended)) = connection.stream_recv(stream, &mut self.buffer) {
                let skipped = n.min(self.header);
                self.header -= skipped;
                self.counter.add(n - skipped);
                if ended {
                    let _ = connection.stream_send(stream, b"", true); // the peer may be gone
                }
            }
        }
    }
}
