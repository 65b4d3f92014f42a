//! What the interfaces of noq before 1.2 have in common.

use common::{Arguments, Sample};
use quinn::{Connection, PathId, TransportConfig};

/// Methods of a watched controller that only pass on what they are told, or its answer.
macro_rules! passed_on {
    ($(fn $name:ident(&mut self $(, $argument:ident: $kind:ty)*);)*) => {
        $(fn $name(&mut self $(, $argument: $kind)*) {
            self.inner.$name($($argument),*);
        })*

        fn window(&self) -> u64 {
            self.inner.window()
        }

        fn metrics(&self) -> ControllerMetrics {
            self.inner.metrics()
        }

        fn initial_window(&self) -> u64 {
            self.inner.initial_window()
        }

        fn clone_box(&self) -> Box<dyn Controller> {
            Box::new(self.clone())
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any> {
            Box::new(self.inner)
        }
    };
}
pub(crate) use passed_on;

/// What the connection itself reports.
pub fn path_sample(connection: &Connection) -> Sample {
    let Some(path) = connection.path_stats(PathId::ZERO) else { return Sample::default() };
    Sample {
        cwnd_bytes: Some(path.cwnd),
        srtt: Some(path.rtt),
        lost_packets: Some(path.lost_packets),
        ..Sample::default()
    }
}

pub fn write_qlog(config: &mut TransportConfig, arguments: &Arguments) {
    config.qlog_from_path(&arguments.out, &format!("{:?}", arguments.role).to_lowercase());
}
