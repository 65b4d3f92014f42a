//! What is above the transport: an application that sends, and one that reads.

use crate::end::{end_of, end_of_stream};
use crate::app::{chunk, until, App, Due, Reading};
use bytes::Bytes;
use common::{End, Role, HEADER_BYTES};
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::Connection;
use std::cell::RefCell;
use tokio::time::sleep;

thread_local! {
    static READING: RefCell<Reading> = RefCell::new(Reading::given());
}

/// Sends what the application has, when it has it, until the connection ends; returns at once
/// without an application.
pub async fn feed(connection: &mut Connection) -> Result<(), End> {
    let Some(mut app) = App::given() else { return Ok(()) };
    let broken = |e| end_of_stream(&e, Role::Send);
    let mut stream = open(connection).await?;
    loop {
        match app.due() {
            Due::Bytes(most) => {
                let chunk = chunk(most);
                stream.send(Bytes::from_static(chunk)).await.map_err(broken)?;
                app.written(chunk.len());
            }
            Due::At(at_ns) => sleep(until(at_ns)).await,
            Due::Answer => {
                stream.finish().map_err(broken)?;
                while let Some(_nothing) = stream.receive().await.map_err(broken)? {}
                app.answered();
                stream = open(connection).await?;
            }
        }
    }
}

async fn open(connection: &mut Connection) -> Result<BidirectionalStream, End> {
    let opened = connection.open_bidirectional_stream().await;
    let mut stream = opened.map_err(|e| end_of(&e, Role::Send))?;
    let header = Bytes::from_static(&[0; HEADER_BYTES]);
    stream.send(header).await.map_err(|e| end_of_stream(&e, Role::Send))?;
    Ok(stream)
}

/// So many bytes were read; returns when the application reads again.
pub async fn read(bytes: usize) {
    if let Some(pause) = READING.with_borrow_mut(|reading| reading.read(bytes)) {
        sleep(pause).await;
    }
}
