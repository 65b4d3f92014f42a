//! An endpoint and its socket.

use common::{fail, Arguments};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tquic::{Connection, Endpoint, PacketInfo, PacketSendHandler, TransportHandler};
use udp::Socket;

/// The endpoint sends through it, the loop receives from it.
pub struct Shared(pub RefCell<Socket>);

impl PacketSendHandler for Shared {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        let mut socket = self.0.borrow_mut();
        for (bytes, info) in packets {
            socket.queue(|buffer| {
                buffer[..bytes.len()].copy_from_slice(bytes);
                Some((bytes.len(), info.dst))
            });
        }
        socket.flush();
        Ok(packets.len())
    }
}

pub struct Link {
    pub endpoint: Endpoint,
    pub socket: Rc<Shared>,
}

impl Link {
    pub fn new(
        socket: Socket,
        arguments: &Arguments,
        is_server: bool,
        handler: Box<dyn TransportHandler>,
    ) -> Self {
        let socket = Rc::new(Shared(RefCell::new(socket)));
        let config = Box::new(crate::config::config(arguments));
        let endpoint = Endpoint::new(config, is_server, handler, socket.clone());
        Link { endpoint, socket }
    }

    /// Waits for packets, the endpoint's own timer or `limit`, and works off what is there.
    pub fn turn(&mut self, limit: Option<Duration>) {
        let timeout = self.endpoint.timeout().into_iter().chain(limit).min();
        let mut socket = self.socket.0.borrow_mut();
        socket.wait(timeout.map(|after| Instant::now() + after));
        let (local, endpoint) = (socket.local, &mut self.endpoint);
        while socket.receive(|bytes, peer| {
            let info = PacketInfo { src: peer, dst: local, time: Instant::now() };
            let _ = endpoint.recv(bytes, &info); // what cannot be read is dropped, as RFC 9000 asks
        }) {}
        drop(socket);
        self.endpoint.on_timeout(Instant::now());
        self.process();
    }

    /// Lets the endpoint call back and send.
    pub fn process(&mut self) {
        if let Err(e) = self.endpoint.process_connections() {
            fail(format_args!("tquic failed: {e}"));
        }
    }
}

/// The stack's own qlog, if that was asked for.
pub fn log(connection: &mut Connection, arguments: &Arguments, name: &str) {
    if arguments.knobs.get("qlog") != Some(true) {
        return;
    }
    let path = arguments.out.join(format!("{name}.sqlog"));
    let file = std::fs::File::create(&path)
        .unwrap_or_else(|e| fail(format_args!("cannot write {}: {e}", path.display())));
    let writer = Box::new(std::io::BufWriter::with_capacity(1 << 20, file));
    connection.set_qlog(writer, "qbkit".into(), name.into());
}
