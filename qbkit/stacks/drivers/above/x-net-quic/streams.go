package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"golang.org/x/net/quic"
)

// What above.go has to know of x/net/quic.

const (
	unsentBytes = 65536 // an application has unsent at most, as with TCP (tcp/app.c)
	pollEvery   = time.Millisecond
)

type connection struct{ *quic.Conn }

func (c connection) OpenStream() (stream, error) {
	opened, err := c.NewStream(context.Background())
	return &sending{Stream: opened}, err
}

type stream = *sending

// sending is a stream that sends at once what is written.
type sending struct {
	*quic.Stream
	written int64
}

// Write returns once little is unsent. The package's own buffer must also hold what is in flight: it
// would take 32 MiB, and send them long after an application fell silent.
func (s *sending) Write(chunk []byte) (int, error) {
	n, err := s.Stream.Write(chunk)
	s.written += int64(n)
	for err == nil {
		if err = s.Flush(); err != nil || s.written-s.sent() <= unsentBytes {
			break
		}
		time.Sleep(pollEvery)
	}
	return n, err
}

// sent is how many bytes have left, which the package keeps to itself.
func (s *sending) sent() int64 {
	return reflect.ValueOf(s.Stream).Elem().FieldByName("outmaxsent").Int()
}

// Close ends what is sent; the package's own Close also refuses the answer.
func (s *sending) Close() error { return s.CloseWrite() }

// carry sends what the flow's application has, or uploads where it has none.
func carry(c *quic.Conn, size int64) string {
	if os.Getenv("QBKIT_APP") == "" {
		return upload(c, size)
	}
	return feed(connection{c}, size).Error()
}

func within(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }

// offered is the receive window that a flow sets, or one that never limits the sender.
func offered() int64 {
	if text := os.Getenv("QBKIT_WINDOW_BYTES"); text != "" {
		return number(text)
	}
	return windowBytes
}

// network is that of an address: of IPv6 if it stands in brackets.
func network(address string) string {
	if strings.HasPrefix(address, "[") {
		return "udp6"
	}
	return "udp4"
}
