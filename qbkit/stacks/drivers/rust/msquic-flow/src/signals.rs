//! The main thread waits for signals; msquic's own threads do the work.

use std::time::Duration;

fn ours() -> libc::sigset_t {
    // SAFETY: the set is filled by sigemptyset before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        set
    }
}

/// From here on SIGTERM and SIGINT come through `wait` only.
pub fn block() {
    // SAFETY: the set lives over the call.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &ours(), std::ptr::null_mut()) };
}

/// Whether one of them came within the time.
pub fn wait(limit: Duration) -> bool {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    };
    // SAFETY: set and time live over the call.
    unsafe { libc::sigtimedwait(&ours(), std::ptr::null_mut(), &limit) > 0 }
}
