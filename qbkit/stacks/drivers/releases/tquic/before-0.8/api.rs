//! Before 0.7 the qlog has no metrics either, and before 0.8 all are read from the debug log.

use common::{Sample, SERVER_NAME};
use log::{LevelFilter, Log, Metadata, Record};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tquic::{Connection, Endpoint};

pub fn connect(endpoint: &mut Endpoint, local: SocketAddr, peer: SocketAddr) -> tquic::Result<u64> {
    endpoint.connect(local, peer, Some(SERVER_NAME), None, None)
}

/// What loss recovery logged last.
#[derive(Clone, Default)]
pub struct Watch(Arc<Mutex<Sample>>);

impl Watch {
    pub fn begin(&self, _: &mut Connection) {
        self.0.lock().expect("one thread").lost_packets = Some(0);
        log::set_boxed_logger(Box::new(self.clone())).expect("one connection");
        log::set_max_level(LevelFilter::Trace);
    }

    pub fn latest(&self) -> Sample {
        *self.0.lock().expect("one thread")
    }
}

impl Log for Watch {
    fn enabled(&self, metadata: &Metadata) -> bool {
        metadata.target() == "tquic::connection::recovery"
    }

    fn log(&self, record: &Record) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let line = record.args().to_string();
        let mut sample = self.0.lock().expect("one thread");
        sample.cwnd_bytes = number(&line, " cwnd=").or(sample.cwnd_bytes);
        sample.bytes_in_flight = number(&line, " inflight=").or(sample.bytes_in_flight);
        if line.contains(" ON_LOST ") {
            sample.lost_packets = sample.lost_packets.map(|lost| lost + 1);
        }
    }

    fn flush(&self) {}
}

/// The number after a key.
fn number(line: &str, key: &str) -> Option<u64> {
    let (_, rest) = line.split_once(key)?;
    rest.split(' ').next()?.parse().ok()
}
