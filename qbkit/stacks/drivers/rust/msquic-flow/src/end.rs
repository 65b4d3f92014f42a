//! How msquic reports the end of a connection: the last event of its stream says which end closed.

use common::{Code, End, Role};
use msquic::ffi::{HQUIC, QUIC_PARAM_CONN_CLOSE_REASON_PHRASE};
use msquic::{Api, Status, StatusCode, StreamEvent};

/// The longest reason that msquic keeps.
const MOST_REASON_BYTES: usize = 512;

/// How the connection ended; None for any other event of its stream.
pub fn end_of(event: &StreamEvent, connection: HQUIC, role: Role) -> Option<End> {
    let &StreamEvent::ShutdownComplete {
        connection_shutdown: true,
        connection_shutdown_by_app: by_app,
        connection_closed_remotely: remotely,
        connection_error_code: code,
        connection_close_status: ref status,
        ..
    } = event
    else {
        return None;
    };
    Some(match (remotely, status.try_as_status_code()) {
        (true, _) => End::closed(role.peer(), Code::new(by_app, code), reason(connection)),
        (
            false,
            Ok(
                StatusCode::QUIC_STATUS_CONNECTION_IDLE
                | StatusCode::QUIC_STATUS_CONNECTION_TIMEOUT,
            ),
        ) => End::timeout(),
        _ => End::closed(role, Code::new(by_app, code), format!("msquic says {status}")),
    })
}

/// The reason that the other end gave.
fn reason(connection: HQUIC) -> Vec<u8> {
    let mut text = vec![0; MOST_REASON_BYTES + 1];
    let mut length = text.len() as u32;
    let get = Api::get_ffi().GetParam.expect("msquic has its functions");
    let buffer = text.as_mut_ptr().cast();
    // SAFETY: the buffer is as long as said, and the connection lives while its stream does.
    let status =
        unsafe { get(connection, QUIC_PARAM_CONN_CLOSE_REASON_PHRASE, &raw mut length, buffer) };
    // It ends with a NUL, and there is none where the other end gave no reason.
    text.truncate(if Status::ok_from_raw(status).is_ok() { length as usize - 1 } else { 0 });
    text
}
