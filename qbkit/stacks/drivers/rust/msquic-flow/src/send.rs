//! Uploads for a time or so many bytes, and samples the connection each 10 ms.

use crate::connection::{close, open, Shared, State};
use crate::end::end_of;
use crate::{fail, leave, setup, signals};
use common::{
    Arguments, Limit, Role, Sample, Samples, Upload, CONNECT_LIMIT, LOST_CONNECTION, SAMPLE_EVERY,
};
use msquic::{
    BufferRef, Connection, ConnectionShutdownFlags, SendFlags, Status, Stream, StreamEvent,
    StreamOpenFlags, StreamStartFlags,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// So many sends of 1 MiB wait in msquic at any time: more than any path holds.
const POSTED: usize = 64;

pub fn send(arguments: &Arguments) {
    let begin = Instant::now();
    let end = match arguments.limit {
        Limit::Duration(duration) => Some(begin + duration),
        Limit::Bytes(_) => None,
    };
    let registration = setup::registration();
    let configuration = setup::configuration(&registration, arguments);
    let state = Shared::default();
    let connection = open(&registration, &state);
    let address = arguments.address;
    let cannot = |e: Status| -> ! { fail(format_args!("cannot connect to {address}: {e}")) };
    connection
        .start(&configuration, &address.ip().to_string(), address.port())
        .unwrap_or_else(|e| cannot(e));
    let mut samples = Samples::new();
    let mut stream = None;
    let problem = loop {
        let due = end.filter(|_| stream.is_some());
        let left = due.map(|at| at.saturating_duration_since(Instant::now()));
        let tick = left.map_or(SAMPLE_EVERY, |time| time.min(SAMPLE_EVERY));
        if tick.is_zero() || signals::wait(tick) {
            break None;
        }
        // Not held any longer: msquic's thread may want it while it answers what is asked below.
        let told = state.lock().expect("no panics").clone();
        if told.answered || told.lost.is_some() {
            break told.lost;
        }
        if told.connected {
            stream.get_or_insert_with(|| upload(&connection, arguments.limit, &state));
            samples.add(sample(arguments, &connection, &told));
        } else if begin.elapsed() >= CONNECT_LIMIT {
            let limit_s = CONNECT_LIMIT.as_secs();
            fail(format_args!("cannot connect to {address} within {limit_s} s"));
        }
    };
    connection.shutdown(ConnectionShutdownFlags::NONE, 0);
    samples.write(arguments);
    drop(stream);
    close(connection);
    if let Some(end) = problem {
        end.write(arguments);
        leave(LOST_CONNECTION);
    }
}

/// The perf stream, with its first sends posted; each that is acknowledged is followed by another.
fn upload(connection: &Connection, limit: Limit, state: &Shared) -> Stream {
    let shared = state.clone();
    let upload = Arc::new(Mutex::new(Upload::new(limit)));
    let mine = upload.clone();
    // SAFETY: the stream asks of its connection, which outlives it.
    let handle = unsafe { connection.as_raw() };
    let stream = Stream::open(connection, StreamOpenFlags::NONE, move |stream, event| {
        match event {
            StreamEvent::SendComplete { cancelled, client_context } => {
                // SAFETY: `post` made this pointer of such a box, and it comes back once.
                drop(unsafe { Box::from_raw(client_context.cast::<[BufferRef; 1]>().cast_mut()) });
                if !cancelled {
                    post(&stream, &mut mine.lock().expect("no panics"));
                }
            }
            StreamEvent::PeerSendShutdown => shared.lock().expect("no panics").answered = true,
            // Asks the connection before the lock is taken, which its callback takes too.
            ref last @ StreamEvent::ShutdownComplete { .. } => {
                let lost = end_of(last, handle, Role::Send);
                shared.lock().expect("no panics").lost = lost;
            }
            _ => {}
        }
        Ok(())
    })
    .unwrap_or_else(|e| fail(format_args!("cannot open a stream: {e}")));
    if let Err(e) = stream.start(StreamStartFlags::NONE) {
        fail(format_args!("cannot open a stream: {e}"));
    }
    let mut upload = upload.lock().expect("no panics");
    for _ in 0..POSTED {
        post(&stream, &mut upload);
    }
    drop(upload);
    stream
}

/// Hands the next bytes to msquic, the last with FIN.
fn post(stream: &Stream, upload: &mut Upload) {
    if upload.complete() {
        return;
    }
    let chunk = upload.chunk();
    upload.written(chunk.len());
    let flags = if upload.complete() { SendFlags::FIN } else { SendFlags::NONE };
    let buffer = Box::new([BufferRef::from(chunk)]);
    // SAFETY: buffer and bytes live until SendComplete: the one is leaked, the others are static.
    unsafe {
        let leaked: *mut [BufferRef; 1] = Box::into_raw(buffer);
        if stream.send(&*leaked, flags, leaked.cast()).is_err() {
            drop(Box::from_raw(leaked)); // the connection is closing
        }
    }
}

fn sample(arguments: &Arguments, connection: &Connection, state: &State) -> Sample {
    let Ok(told) = connection.get_stats_v2() else { return Sample::default() };
    let time = |us: u32| Some(Duration::from_micros(us.into()));
    Sample {
        cwnd_bytes: Some(told.SendCongestionWindow.into()),
        bytes_in_flight: state.bytes_in_flight,
        delivery_rate_mbps: state.bandwidth_mbps.filter(|_| arguments.controller == "bbr"),
        srtt: time(told.Rtt),
        min_rtt: time(told.MinRtt).filter(|t| t.as_secs() < 60), // none yet: the largest number
        lost_packets: Some(told.SendSuspectedLostPackets),
        spurious_losses: Some(told.SendSpuriousLostPackets),
        ..Sample::default()
    }
}
