//! Uploads for a time or so many bytes, and samples the connection each 10 ms.

use crate::api;
use crate::controllers::Chosen;
use crate::end::end_of;
use crate::tls;
use crate::transport::transport;
use crate::watch::Latest;
use bytes::Bytes;
use common::{cannot_connect, fail, Arguments, Limit, Sample, Samples, Upload, SAMPLE_EVERY};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint};
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
    let ended = connection.close_reason().and_then(|e| end_of(&e, arguments.role));
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
    settings.congestion_controller_factory(Arc::new(Chosen::new(arguments, latest)));
    let tls = QuicClientConfig::try_from(tls::client()).expect("TLS 1.3 is on");
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(settings));
    let any_port = (std::net::Ipv4Addr::UNSPECIFIED, 0).into();
    let endpoint = Endpoint::client(any_port)
        .unwrap_or_else(|e| fail(format_args!("cannot open a UDP socket: {e}")));
    let address = arguments.address;
    let connecting = endpoint
        .connect_with(config, address, common::SERVER_NAME)
        .unwrap_or_else(|e| fail(format_args!("cannot connect to {address}: {e}")));
    match timeout(common::CONNECT_LIMIT, connecting).await {
        Ok(Ok(connection)) => (endpoint, connection),
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
    send.finish().map_err(|e| cannot(&e))?;
    recv.read_to_end(1).await.map_err(|e| format!("the receiver did not answer: {e}"))?;
    Ok(())
}

async fn watch(connection: &Connection, latest: &Mutex<Latest>, samples: &mut Samples) {
    let mut tick = interval(SAMPLE_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tick.tick().await;
        let told = latest.lock().expect("one thread");
        samples.add(Sample {
            bytes_in_flight: told.bytes_in_flight,
            ssthresh_bytes: told.ssthresh_bytes,
            latest_rtt: Some(told.latest_rtt),
            pacing_rate_mbps: told.pacing_rate_bps.map(|bps| bps as f64 / 1e6),
            state: told.state,
            ..api::path_sample(connection)
        });
    }
}
