//! Counts what comes until SIGTERM.

use crate::end::end_of;
use crate::link::{log, Link};
use common::{Arguments, Counter, HEADER_BYTES};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use tquic::{Connection, TransportHandler};
use udp::Socket;

const BUFFER_BYTES: usize = 1 << 20;

pub fn receive(arguments: &Rc<Arguments>) {
    let stop = common::stop_flag();
    let socket = Socket::bind(arguments.address);
    let counter = Rc::new(RefCell::new(Counter::create(arguments)));
    let handler = Receiver {
        arguments: arguments.clone(),
        counter: counter.clone(),
        header: HEADER_BYTES,
        buffer: vec![0; BUFFER_BYTES],
    };
    let mut link = Link::new(socket, arguments, true, Box::new(handler));
    println!("ready");
    while !stop.load(Ordering::Relaxed) {
        link.turn(None);
    }
    link.endpoint.close(false);
    link.process();
    counter.borrow_mut().close();
}

struct Receiver {
    arguments: Rc<Arguments>,
    counter: Rc<RefCell<Counter>>,
    header: usize,
    buffer: Vec<u8>,
}

impl TransportHandler for Receiver {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        log(connection, &self.arguments, "receiver");
    }

    fn on_conn_established(&mut self, _: &mut Connection) {
        self.header = HEADER_BYTES;
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        if let Some(end) = end_of(connection, self.arguments.role) {
            end.write(&self.arguments);
        }
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    /// Reads a perf stream to its end and answers it with an empty one.
    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        while let Ok((n, ended)) = connection.stream_read(stream, &mut self.buffer) {
            let skipped = n.min(self.header);
            self.header -= skipped;
            self.counter.borrow_mut().add(n - skipped);
            if ended {
                let nothing = bytes::Bytes::new();
                let _ = connection.stream_write(stream, nothing, true); // the peer may be gone
                return;
            }
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        let _ = connection.stream_want_write(stream, false);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
