//! Counts what comes until SIGTERM.

use crate::end::end_of;
use crate::{fail, leave, setup, signals};
use common::{Arguments, Counter, HEADER_BYTES};
use msquic::{
    Addr, Configuration, Connection, ConnectionEvent, ConnectionRef, Listener, ListenerEvent,
    Status, Stream, StreamEvent, StreamRef, StreamShutdownFlags,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Shared = Arc<Mutex<Counter>>;

pub fn receive(arguments: &Arguments) {
    let registration = setup::registration();
    let configuration = Arc::new(setup::configuration(&registration, arguments));
    let counter = Arc::new(Mutex::new(Counter::create(arguments)));
    let (shared, of_flow) = (counter.clone(), arguments.clone());
    let address = arguments.address;
    let cannot = |e: Status| -> ! { fail(format_args!("cannot listen on {address}: {e}")) };
    let listener = Listener::open(&registration, move |_, event| match event {
        ListenerEvent::NewConnection { connection, .. } => {
            accept(&connection, &configuration, &shared, &of_flow)
        }
        ListenerEvent::StopComplete { .. } => Ok(()),
    })
    .unwrap_or_else(|e| cannot(e));
    listener.start(&setup::alpn(), Some(&Addr::from(address))).unwrap_or_else(|e| cannot(e));
    println!("ready");
    while !signals::wait(Duration::from_secs(3600)) {}
    counter.lock().expect("no panics").close();
    leave(0); // the peer is gone or going
}

fn accept(
    connection: &ConnectionRef,
    configuration: &Configuration,
    counter: &Shared,
    arguments: &Arguments,
) -> Result<(), Status> {
    let (shared, of_flow) = (counter.clone(), arguments.clone());
    connection.set_callback_handler(move |connection: ConnectionRef, event: ConnectionEvent| {
        match event {
            ConnectionEvent::PeerStreamStarted { stream, .. } => {
                serve(&stream, &connection, &shared, &of_flow);
            }
            // SAFETY: the handle is ours to close after this, the last event.
            ConnectionEvent::ShutdownComplete { .. } => unsafe {
                drop(Connection::from_raw(connection.as_raw()));
            },
            _ => {}
        }
        Ok(())
    });
    connection.set_configuration(configuration)
}

/// Reads a perf stream to its end and answers with an empty one.
fn serve(stream: &StreamRef, connection: &ConnectionRef, counter: &Shared, arguments: &Arguments) {
    let (shared, of_flow) = (counter.clone(), arguments.clone());
    // SAFETY: the stream asks of its connection, which outlives it.
    let handle = unsafe { connection.as_raw() };
    let mut header = HEADER_BYTES;
    stream.set_callback_handler(move |stream: StreamRef, event: StreamEvent| {
        match event {
            StreamEvent::Receive { buffers, .. } => {
                let bytes: usize = buffers.iter().map(|b| b.as_bytes().len()).sum();
                let skipped = bytes.min(header);
                header -= skipped;
                shared.lock().expect("no panics").add(bytes - skipped);
            }
            StreamEvent::PeerSendShutdown => {
                let _ = stream.shutdown(StreamShutdownFlags::GRACEFUL, 0);
            }
            ref last @ StreamEvent::ShutdownComplete { .. } => {
                if let Some(end) = end_of(last, handle, of_flow.role) {
                    end.write(&of_flow);
                }
                // SAFETY: the handle is ours to close after this, the last event.
                drop(unsafe { Stream::from_raw(stream.as_raw()) });
            }
            _ => {}
        }
        Ok(())
    });
}
