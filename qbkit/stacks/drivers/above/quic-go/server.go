package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

// The server sends: it gives its client what the client asks for.

func isServer(a arguments) bool { return a.listens && hasCertificate(a) }
func isClient(a arguments) bool { return !a.listens && hasEnd(a) }

// acceptFirst is the first client's connection.
func acceptFirst(a arguments, trace tracer) connection {
	listener := listen(a, trace)
	fmt.Println("ready")
	connection, err := listener.Accept(context.Background())
	if err != nil {
		fail("nobody connected: %v", err)
	}
	return connection
}

// give gives what the client asks for, then waits: a server never ends by itself, unless the
// connection does.
func give(connection connection, _ int64) error {
	err := respond(connection)
	if err == nil {
		<-connection.Context().Done()
		err = context.Cause(connection.Context())
	}
	ended := endOf(err, "sender")
	if ended == nil || ended.By == "receiver" && ended.Code != nil && *ended.Code == 0 {
		select {} // the client is done
	}
	return within("cannot send", err)
}

func respond(connection connection) error {
	stream, err := connection.AcceptStream(context.Background())
	if err != nil {
		return err
	}
	header, buffer := make([]byte, headerBytes), make([]byte, bufferBytes)
	_, err = io.ReadFull(stream, header)
	for left := binary.BigEndian.Uint64(header); err == nil && left > 0; {
		var n int
		n, err = stream.Write(buffer[:min(left, bufferBytes)])
		left -= uint64(n)
	}
	stream.Close()
	return err
}

// ask asks a server for data, and counts them, for a time or so many bytes.
func ask(a arguments) {
	started := time.Now()
	counted := newCounter(filepath.Join(a.out, "receiver.csv"))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	connection := connect(a, qlogTracer(a), counted.close, signals)
	ended := make(chan error, 3) // nil: as it should be
	go func() { ended <- downloadPlain(connection, a.size, counted) }()
	if a.size == 0 {
		time.AfterFunc(a.duration-time.Since(started), func() { ended <- nil })
	}
	var problem error
	select {
	case problem = <-ended:
	case <-signals:
	}
	connection.CloseWithError(0, "")
	counted.close()
	if problem != nil {
		leave(problem, endOf(problem, "receiver"), a.out, "receiver")
	}
}

// downloadPlain asks for size bytes, or (size 0) for more than it can get.
func downloadPlain(connection connection, size int64, counted *counter) error {
	stream, err := connection.OpenStream()
	if err != nil {
		return within("cannot open a stream", err)
	}
	wanted := uint64(size)
	if size == 0 {
		wanted = math.MaxUint64
	}
	if _, err = stream.Write(binary.BigEndian.AppendUint64(nil, wanted)); err != nil {
		return within("cannot ask", err)
	}
	if err = count(stream, counted, newReading(), 0); err != io.EOF {
		return within("the download broke", err)
	}
	return nil
}

func listen(a arguments, trace tracer) *quic.Listener {
	certificate, err := tls.LoadX509KeyPair(a.cert, a.key)
	if err != nil {
		fail("cannot use the certificate %s: %v", a.cert, err)
	}
	settings := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{alpn}}
	listener, err := quic.Listen(listenOn(a.address), settings, config(trace))
	if err != nil {
		fail("cannot listen on %s: %v", a.address, err)
	}
	return listener
}
