//! What is above the transport: an application that sends, and one that reads.

use crate::api;
use crate::app::{chunk, until, App, Due, Reading, UNSENT_BYTES};
use bytes::Bytes;
use common::HEADER_BYTES;
use quinn::{Connection, RecvStream, SendStream};
use std::error::Error;
use std::sync::{LazyLock, Mutex};
use tokio::time::sleep;

static READING: LazyLock<Mutex<Reading>> = LazyLock::new(|| Mutex::new(Reading::given()));

/// Sends what the application has, when it has it, until the connection ends; returns at once
/// without an application.
pub async fn feed(connection: &Connection) -> Result<(), Box<dyn Error>> {
    let Some(mut app) = App::given() else { return Ok(()) };
    let (mut send, mut recv) = open(connection).await?;
    loop {
        match app.due() {
            Due::Bytes(most) => {
                // The window of the controller, and what may wait behind it.
                let cwnd_bytes = api::path_sample(connection).cwnd_bytes.unwrap_or(0);
                connection.set_send_window(cwnd_bytes + UNSENT_BYTES);
                let chunk = chunk(most);
                send.write_chunk(Bytes::from_static(chunk)).await?;
                app.written(chunk.len());
            }
            Due::At(at_ns) => sleep(until(at_ns)).await,
            Due::Answer => {
                send.finish()?;
                recv.read_to_end(1).await?;
                app.answered();
                (send, recv) = open(connection).await?;
            }
        }
    }
}

async fn open(connection: &Connection) -> Result<(SendStream, RecvStream), Box<dyn Error>> {
    let (mut send, recv) = connection.open_bi().await?;
    send.write_all(&[0; HEADER_BYTES]).await?;
    Ok((send, recv))
}

/// So many bytes were read; returns when the application reads again.
pub async fn read(bytes: usize) {
    let pause = READING.lock().expect("one thread").read(bytes);
    if let Some(pause) = pause {
        sleep(pause).await;
    }
}
