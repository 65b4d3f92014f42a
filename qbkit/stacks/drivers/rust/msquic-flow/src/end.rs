//! How msquic reports the end of a connection.

use common::{Code, End, Role};
use msquic::{Status, StatusCode};

/// The transport of either end closed it: msquic does not report which.
pub fn closed_by_transport(status: &Status, code: u64) -> End {
    match status.try_as_status_code() {
        Ok(
            StatusCode::QUIC_STATUS_CONNECTION_IDLE | StatusCode::QUIC_STATUS_CONNECTION_TIMEOUT,
        ) => End::timeout(),
        _ => End::unknown(format_args!("msquic says {status}")).with(Code::Transport(code)),
    }
}

/// The application of the other end closed it.
pub fn closed_by_peer(role: Role, code: u64) -> End {
    End::closed(role.peer(), Code::Application(code), "")
}
