use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// Becomes true on SIGTERM or SIGINT; a blocking system call then ends with EINTR.
pub fn stop_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGTERM, libc::SIGINT] {
        signal_hook::flag::register(signal, flag.clone()).expect("a signal that can be caught");
    }
    flag
}
