package main

import (
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// socket is a UDP socket that quic-go reads by batches. A batch that is not full has emptied it, so
// the next one waits at once; ipv4.PacketConn, which quic-go would use, first asks in vain.
type socket struct {
	*net.UDPConn
	wanted chan []ipv4.Message
	filled chan filled
}

// filled is how many messages were received, or why none.
type filled struct {
	messages int
	err      error
}

// listenOn binds IP:PORT.
func listenOn(address string) *socket {
	conn, err := net.ListenUDP("udp4", resolve(address))
	if err != nil {
		fail("cannot listen on %s: %v", address, err)
	}
	return newSocket(conn)
}

// bindAny binds any port to send from to IP:PORT, which it also returns.
func bindAny(address string) (*socket, *net.UDPAddr) {
	peer := resolve(address)
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		fail("cannot connect to %s: %v", address, err)
	}
	return newSocket(conn), peer
}

func resolve(address string) *net.UDPAddr {
	resolved, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		fail("%s is not IP:PORT: %v", address, err)
	}
	return resolved
}

func newSocket(conn *net.UDPConn) *socket {
	raw, err := conn.SyscallConn()
	if err != nil {
		fail("cannot use a UDP socket: %v", err)
	}
	s := &socket{UDPConn: conn, wanted: make(chan []ipv4.Message), filled: make(chan filled)}
	go s.fill(raw)
	return s
}

// ReadBatch waits for datagrams and returns how many it took.
func (s *socket) ReadBatch(messages []ipv4.Message, _ int) (int, error) {
	s.wanted <- messages
	done := <-s.filled
	return done.messages, done.err
}

// fill works off the batches that are wanted. All of them are received in one RawConn.Read, as long
// as nothing fails: only so does a datagram that comes between two batches end the wait.
func (s *socket) fill(raw syscall.RawConn) {
	for messages := range s.wanted {
		var failure error
		err := raw.Read(func(descriptor uintptr) bool {
			for {
				n, errno := receiveBatch(descriptor, messages)
				switch errno {
				case 0:
					emptied := n < len(messages)
					s.filled <- filled{messages: n}
					messages = <-s.wanted
					if emptied {
						return false
					}
				case unix.EAGAIN:
					return false
				case unix.EINTR:
				default:
					failure = s.failed(os.NewSyscallError("recvmmsg", errno))
					return true
				}
			}
		})
		if err == nil {
			err = failure
		}
		s.filled <- filled{err: err}
	}
}

func (s *socket) failed(err error) error {
	return &net.OpError{Op: "read", Net: "udp", Source: s.LocalAddr(), Err: err}
}

// batchHeader is Linux's struct mmsghdr.
type batchHeader struct {
	unix.Msghdr
	length uint32
	_      [4]byte
}

// receiveBatch takes what has arrived, without waiting.
func receiveBatch(descriptor uintptr, messages []ipv4.Message) (int, syscall.Errno) {
	headers := make([]batchHeader, len(messages))
	parts := make([]unix.Iovec, len(messages))
	peers := make([]unix.RawSockaddrInet4, len(messages))
	for i := range messages {
		m, h := &messages[i], &headers[i]
		parts[i].Base = &m.Buffers[0][0]
		parts[i].SetLen(len(m.Buffers[0]))
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&peers[i])), unix.SizeofSockaddrInet4
		h.Iov, h.Iovlen = &parts[i], 1
		h.Control = &m.OOB[0]
		h.SetControllen(len(m.OOB))
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, descriptor, uintptr(unsafe.Pointer(&headers[0])),
		uintptr(len(headers)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	for i := range int(n) {
		m, h, port := &messages[i], &headers[i], (*[2]byte)(unsafe.Pointer(&peers[i].Port))
		m.N, m.NN, m.Flags = int(h.length), int(h.Controllen), int(h.Flags)
		m.Addr = &net.UDPAddr{IP: net.IP(peers[i].Addr[:]), Port: int(port[0])<<8 | int(port[1])}
	}
	return int(n), 0
}
