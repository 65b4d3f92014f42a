//! Uploads for a time or so many bytes, and samples the connection each 10 ms.

use crate::api;
use crate::controllers::Chosen;
use crate::end::end_of;
use crate::tls;
use crate::transport::transport;
use crate::watch::Latest;
use bytes::Bytes;
use common::{cannot_connect, fail, Arguments, Limit, Sample, Samples, Upload, SAMPLE_EVERY};
use quinn::{Connection, Endpoint};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::signal::unix::{signal, SignalKind};
use tokio::time::{interval, sleep_until, timeout, Instant, MissedTickBehavior};

pub async fn send(arguments: &Arguments) {
    let end = match arguments.limit {
        Limit::Duration(duration) => Instant::now() + duration,
        Limit::Bytes(_) => Instant::now() + Duration::from_secs(u32::MAX.into()),
    };
    let mut term = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    let latest = Arc::new(Mutex::new(Latest::default()));
    let mut samples = Samples::new();
    let (endpoint, connection) = tokio::select! {
        connected = connect(arguments, latest.clone()) => connected,
        _ = term.recv() => return samples.write(arguments),
    };
    let result = tokio::select! {
        result = upload(&connection, arguments.limit) => result,
        () = watch(&connection, &latest, &mut samples) => unreachable!("it watches for ever"),
        () = sleep_until(end) => Ok(()),
        _ = term.recv() => Ok(()),
    };
    let ended = api::close_reason(&connection).and_then(|e| end_of(&e, arguments.role));
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    samples.write(arguments);
    if let Some(end) = ended {
        end.leave(arguments);
    }
    if let Err(sentence) = result {
        fail(sentence);
    }
}

async fn connect(arguments: &Arguments, latest: Arc<Mutex<Latest>>) -> (Endpoint, Connection) {
    let mut settings = transport(arguments);
    api::set_controller(&mut settings, Chosen::new(arguments, latest));
    let config = api::client_config(tls::client(), settings);
    let any_port = (std::net::Ipv4Addr::UNSPECIFIED, 0).into();
    let endpoint = Endpoint::client(any_port)
        .unwrap_or_else(|e| fail(format_args!("cannot open a UDP socket: {e}")));
    let address = arguments.address;
    let connecting = endpoint
        .connect_with(config, address, common::SERVER_NAME)
        .unwrap_or_else(|e| fail(format_args!("cannot connect to {address}: {e}")));
    match timeout(common::CONNECT_LIMIT, connecting).await {
        Ok(Ok(connected)) => (endpoint, api::connection(connected)),
        Ok(Err(quinn::ConnectionError::TimedOut)) | Err(_) => cannot_connect(arguments),
        Ok(Err(e)) => fail(format_args!("cannot connect to {address}: {e}")),
    }
}

/// Writes all and waits until it has arrived; without a limit it never ends.
async fn upload(connection: &Connection, limit: Limit) -> Result<(), String> {
    let cannot = |e: &dyn std::fmt::Display| format!("cannot send: {e}");
    let (mut send, mut recv) = connection.open_bi().await.map_err(|e| cannot(&e))?;
    let mut upload = Upload::new(limit);
    while !upload.complete() {
        let chunk = upload.chunk();
        // Not `write`, which copies: it would fill the whole window in the first instant.
        send.write_chunk(Bytes::from_static(chunk)).await.map_err(|e| cannot(&e))?;
        upload.written(chunk.len());
    }
    api::finish(&mut send).await.map_err(|e| cannot(&e))?;
    recv.read_to_end(1).await.map_err(|e| format!("the receiver did not answer: {e}"))?;
    Ok(())
}

async fn watch(connection: &Connection, latest: &Mutex<Latest>, samples: &mut Samples) {
    let mut tick = interval(SAMPLE_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tick.tick().await;
        let path = connection.stats().path;
        let told = latest.lock().expect("one thread");
        samples.add(Sample {
            cwnd_bytes: Some(path.cwnd),
            bytes_in_flight: told.bytes_in_flight,
            ssthresh_bytes: told.ssthresh_bytes,
            srtt: Some(path.rtt),
            latest_rtt: told.latest_rtt,
            lost_packets: api::lost_packets(connection),
            state: told.state,
            ..Sample::default()
        });
    }
}
