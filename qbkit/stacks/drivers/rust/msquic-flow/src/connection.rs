//! The sender's connection, with a callback of its own: the crate's one knows no event of network
//! statistics, which alone tells the bytes in flight.

use crate::fail;
use common::End;
use msquic::ffi::{
    HQUIC, QUIC_CONNECTION_EVENT,
    QUIC_CONNECTION_EVENT_TYPE_QUIC_CONNECTION_EVENT_NETWORK_STATISTICS as NETWORK_STATISTICS,
};
use msquic::{Api, Connection, ConnectionEvent, Registration, Status};
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// What the callbacks tell the main thread.
#[derive(Clone, Default)]
pub struct State {
    pub connected: bool,
    pub answered: bool,
    pub lost: Option<End>,
    /// As of the latest acknowledgement.
    pub bytes_in_flight: Option<u64>,
    /// What BBR estimates; with CUBIC it is the window over the RTT.
    pub bandwidth_mbps: Option<f64>,
}

pub type Shared = Arc<Mutex<State>>;

pub fn open(registration: &Registration, state: &Shared) -> Connection {
    let open = Api::get_ffi().ConnectionOpen.expect("msquic has its functions");
    let context = Arc::into_raw(state.clone()).cast_mut().cast();
    let mut handle: HQUIC = std::ptr::null_mut();
    // SAFETY: the context lives on until the process ends.
    let status = unsafe { open(registration.as_raw(), Some(hear), context, &raw mut handle) };
    if let Err(e) = Status::ok_from_raw(status) {
        fail(format_args!("msquic cannot open a connection: {e}"));
    }
    // SAFETY: the handle is open and nobody else closes it.
    unsafe { Connection::from_raw(handle) }
}

/// Waits until the closing packet is sent.
pub fn close(connection: Connection) {
    // SAFETY: `hear` takes no context; the crate would free ours as if it were one of its own.
    unsafe { connection.set_context(std::ptr::null_mut()) };
    drop(connection);
}

unsafe extern "C" fn hear(
    _: HQUIC,
    context: *mut c_void,
    event: *mut QUIC_CONNECTION_EVENT,
) -> u32 {
    if context.is_null() {
        return 0; // closing
    }
    // SAFETY: `open` gave this context, and the event lives over the call.
    let (state, event) = unsafe { (&*context.cast::<Mutex<State>>(), &*event) };
    let mut state = state.lock().expect("no panics");
    if event.Type == NETWORK_STATISTICS {
        // SAFETY: the event is of this kind.
        let told = unsafe { event.__bindgen_anon_1.NETWORK_STATISTICS };
        state.bytes_in_flight = Some(told.BytesInFlight.into());
        state.bandwidth_mbps = Some(told.Bandwidth as f64 * 8e-6);
        return 0;
    }
    if let ConnectionEvent::Connected { .. } = ConnectionEvent::from(event) {
        state.connected = true;
    }
    0
}
