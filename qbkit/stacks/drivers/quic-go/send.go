package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

// send uploads for a time or so many bytes, and writes sender.csv.
func send(a arguments) {
	if a.controller != "cubic" && a.controller != "reno" {
		fail("quic-go has no controller %s; it has cubic, reno", a.controller)
	}
	started := time.Now()
	os.Setenv(controllerEnv, a.controller)
	samples := newSampler(filepath.Join(a.out, "sender.csv"))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	connection := connect(a, samples, signals)
	ended := make(chan error, 3) // nil: as it should be
	go func() { ended <- upload(connection, a.size) }()
	if a.size == 0 {
		time.AfterFunc(a.duration-time.Since(started), func() { ended <- nil })
	}
	var problem error
	select {
	case problem = <-ended:
	case <-signals:
	}
	connection.CloseWithError(0, "")
	samples.write()
	if problem != nil {
		leave(problem, endOf(problem, "sender"), a.out, "sender")
	}
}

// connect dials; a signal meanwhile ends the program, as it does later.
func connect(a arguments, samples *sampler, signals <-chan os.Signal) connection {
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	connected := make(chan struct{})
	defer close(connected)
	go func() {
		select {
		case <-signals:
			samples.write()
			os.Exit(0)
		case <-connected:
		}
	}()
	settings := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}, ServerName: "qbkit"}
	local, peer := bindAny(a.address)
	connection, err := quic.Dial(ctx, local, peer, settings, config(samples.tracer(a)))
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		fail("cannot connect to %s within %.0f s", a.address, connectLimit.Seconds())
	}
	if err != nil {
		fail("cannot connect to %s: %v", a.address, err)
	}
	return connection
}

func isTimeout(err error) bool {
	var timeout *quic.IdleTimeoutError
	var handshake *quic.HandshakeTimeoutError
	return errors.As(err, &timeout) || errors.As(err, &handshake)
}

// upload writes size bytes and waits until they have arrived, or (size 0) writes without end.
func upload(connection connection, size int64) error {
	stream, err := connection.OpenStream()
	if err != nil {
		return within("cannot open a stream", err)
	}
	buffer := make([]byte, bufferBytes)
	if _, err := stream.Write(buffer[:headerBytes]); err != nil {
		return within("cannot send", err)
	}
	for left := size; size == 0 || left > 0; {
		chunk := buffer
		if size > 0 && left < bufferBytes {
			chunk = buffer[:left]
		}
		n, err := stream.Write(chunk)
		if err != nil {
			return within("cannot send", err)
		}
		left -= int64(n)
	}
	stream.Close()
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return within("the receiver did not answer", err)
	}
	return nil
}
