//! A UDP socket for stacks that bring none: few system calls, no spinning, exact waits.

use common::fail;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Datagrams of one system call.
const BATCH: usize = 64;
const DATAGRAM_BYTES: usize = 2048;
static BUFFER_BYTES: libc::c_int = 32 << 20;

/// Datagrams in a row of buffers, as sendmmsg and recvmmsg want them.
struct Batch {
    bytes: Vec<[u8; DATAGRAM_BYTES]>,
    lengths: [usize; BATCH],
    peers: [libc::sockaddr_in; BATCH],
    used: usize,
}

impl Batch {
    fn new() -> Self {
        // SAFETY: a sockaddr_in of zeroes is a valid one.
        let nobody: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        Batch {
            bytes: vec![[0; DATAGRAM_BYTES]; BATCH],
            lengths: [0; BATCH],
            peers: [nobody; BATCH],
            used: 0,
        }
    }

    /// Headers of the datagrams from `first` to before `end`, pointing into this batch.
    fn headers(
        &mut self,
        parts: &mut [libc::iovec; BATCH],
        first: usize,
        end: usize,
    ) -> Vec<libc::mmsghdr> {
        (first..end)
            .map(|i| {
                parts[i] = libc::iovec {
                    iov_base: self.bytes[i].as_mut_ptr().cast(),
                    iov_len: self.lengths[i],
                };
                // SAFETY: a msghdr of zeroes is a valid one.
                let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
                header.msg_name = (&raw mut self.peers[i]).cast();
                header.msg_namelen = std::mem::size_of::<libc::sockaddr_in>() as u32;
                header.msg_iov = &raw mut parts[i];
                header.msg_iovlen = 1;
                libc::mmsghdr { msg_hdr: header, msg_len: 0 }
            })
            .collect()
    }
}

const NO_PART: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

/// A bound socket with a batch each way.
pub struct Socket {
    socket: UdpSocket,
    pub local: SocketAddr,
    incoming: Batch,
    outgoing: Batch,
}

impl Socket {
    /// Listens on the address.
    pub fn bind(address: SocketAddr) -> Self {
        UdpSocket::bind(address)
            .and_then(Self::around)
            .unwrap_or_else(|e| fail(format_args!("cannot listen on {address}: {e}")))
    }

    /// Has the address and port from which packets to `peer` will go.
    pub fn towards(peer: SocketAddr) -> Self {
        let open = || {
            let asked = UdpSocket::bind("0.0.0.0:0")?;
            asked.connect(peer)?;
            UdpSocket::bind((asked.local_addr()?.ip(), 0))
        };
        open()
            .and_then(Self::around)
            .unwrap_or_else(|e| fail(format_args!("cannot reach {peer}: {e}")))
    }

    fn around(socket: UdpSocket) -> io::Result<Self> {
        for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
            // SAFETY: the value lives over the call; without more room than usual it works too.
            unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const BUFFER_BYTES).cast(),
                    std::mem::size_of_val(&BUFFER_BYTES) as u32,
                );
            }
        }
        let local = socket.local_addr()?;
        Ok(Socket { socket, local, incoming: Batch::new(), outgoing: Batch::new() })
    }

    /// Blocks until a datagram is there (true), or the time has come or a signal (false).
    pub fn wait(&self, until: Option<Instant>) -> bool {
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.map(|d: Duration| libc::timespec {
            tv_sec: d.as_secs() as libc::time_t,
            tv_nsec: d.subsec_nanos().into(),
        });
        let timeout = left.as_ref().map_or(std::ptr::null(), |t| t as *const _);
        let mut watched =
            libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: all pointers live over the call.
        unsafe { libc::ppoll(&raw mut watched, 1, timeout, std::ptr::null()) == 1 }
    }

    /// Hands every datagram that is there to `take`, in order; false when there was none.
    pub fn receive(&mut self, mut take: impl FnMut(&mut [u8], SocketAddr)) -> bool {
        let mut parts = [NO_PART; BATCH];
        self.incoming.lengths = [DATAGRAM_BYTES; BATCH];
        let mut headers = self.incoming.headers(&mut parts, 0, BATCH);
        // SAFETY: the headers point into the batch and the parts, which live over the call.
        let got = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).unwrap_or(0);
        for (i, header) in headers.iter().enumerate().take(got) {
            let peer = from_c(&self.incoming.peers[i]);
            take(&mut self.incoming.bytes[i][..header.msg_len as usize], peer);
        }
        got > 0
    }

    /// Queues a datagram that `write` puts into the buffer: it gives length and receiver, or none.
    pub fn queue(&mut self, write: impl FnOnce(&mut [u8]) -> Option<(usize, SocketAddr)>) -> bool {
        let batch = &mut self.outgoing;
        let Some((length, peer)) = write(&mut batch.bytes[batch.used]) else { return false };
        batch.lengths[batch.used] = length;
        batch.peers[batch.used] = to_c(peer);
        batch.used += 1;
        if batch.used == BATCH {
            self.flush();
        }
        true
    }

    /// Sends what is queued; blocks while the socket is full.
    pub fn flush(&mut self) {
        let mut parts = [NO_PART; BATCH];
        let (mut first, end) = (0, self.outgoing.used);
        while first < end {
            let mut headers = self.outgoing.headers(&mut parts, first, end);
            // SAFETY: as in `receive`.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    headers.as_mut_ptr(),
                    headers.len() as u32,
                    0,
                )
            };
            match sent {
                // What cannot be sent is lost, as on any network.
                ..=0 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => {
                    first += 1
                }
                ..=0 => {}
                n => first += n as usize,
            }
        }
        self.outgoing.used = 0;
    }
}

fn from_c(address: &libc::sockaddr_in) -> SocketAddr {
    let ip = u32::from_be(address.sin_addr.s_addr);
    SocketAddrV4::new(ip.into(), u16::from_be(address.sin_port)).into()
}

fn to_c(address: SocketAddr) -> libc::sockaddr_in {
    let SocketAddr::V4(address) = address else { fail("only IPv4 addresses are known here") };
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}
