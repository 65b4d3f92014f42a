//! What differs between quinn and its fork noq, before quinn's controllers told of themselves.

use common::Sample;
use futures_util::FutureExt;
use quinn::congestion::Bbr;
pub use quinn::congestion::BbrConfig;
use quinn::{Connection, ConnectionError, RecvStream};
use std::sync::Arc;

pub const CONTROLLERS: &[&str] = &["cubic", "newreno", "bbr"];

/// BBR, as a controller of its own type.
pub fn bbr(config: Arc<BbrConfig>) -> Bbr {
    Bbr::new(config)
}

/// Length of the next bytes of a stream, in order; None at its end.
pub async fn read(stream: &mut RecvStream) -> Option<usize> {
    let chunk = stream.read_chunk(usize::MAX, true).await.ok()?;
    chunk.map(|chunk| chunk.bytes.len())
}

/// What the connection itself reports.
pub fn path_sample(connection: &Connection) -> Sample {
    let path = connection.stats().path;
    Sample { cwnd_bytes: Some(path.cwnd), srtt: Some(path.rtt), ..Sample::default() }
}

/// No stream can be opened on a connection that has ended.
pub fn close_reason(connection: &Connection) -> Option<ConnectionError> {
    connection.open_bi().now_or_never()?.err()
}
