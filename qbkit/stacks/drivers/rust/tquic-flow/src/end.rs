//! How tquic reports the end of a connection.

use common::{Code, End, Role};
use tquic::Connection;

/// The end of a connection as `role` sees it; None while it lives.
pub fn end_of(connection: &Connection, role: Role) -> Option<End> {
    if let Some(e) = connection.peer_error() {
        return Some(End::closed(role.peer(), Code::new(e.is_app, e.error_code), &e.reason));
    }
    if let Some(e) = connection.local_error() {
        return Some(End::closed(role, Code::new(e.is_app, e.error_code), &e.reason));
    }
    if connection.is_idle_timeout() {
        return Some(End::timeout());
    }
    connection.is_closed().then(|| End::unknown("tquic does not report why"))
}
