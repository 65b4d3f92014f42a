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

	"golang.org/x/net/quic"
)

// send uploads for a time or so many bytes, and writes sender.csv.
func send(a arguments) {
	if a.controller != "reno" {
		fail("x-net-quic has no controller %s; it has reno", a.controller)
	}
	started := time.Now()
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	rows := newSamples(filepath.Join(a.out, "sender.csv"))
	endpoint, err := quic.Listen("udp4", ":0", nil)
	if err != nil {
		fail("cannot connect to %s: %v", a.address, err)
	}
	settings := &tls.Config{InsecureSkipVerify: true, ServerName: "qbkit"}
	problem, ended := "", map[string]any(nil)
	if connection := connect(stopped, endpoint, a, config(settings, watcher{rows, fullLog(a)})); connection != nil {
		problem = flow(stopped, connection, a, a.duration-time.Since(started))
		if problem != "" {
			ended = endOf(connection, "sender", "receiver")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	endpoint.Close(ctx)
	rows.write()
	if ended != nil {
		writeEnd(ended, a, "sender")
		os.Exit(lostConnection)
	}
	if problem != "" {
		fail("%s", problem)
	}
}

// connect dials; it returns nil if a signal ends the program meanwhile.
func connect(stopped context.Context, endpoint *quic.Endpoint, a arguments, settings *quic.Config) *quic.Conn {
	ctx, cancel := context.WithTimeout(stopped, connectLimit)
	defer cancel()
	connection, err := endpoint.Dial(ctx, "udp4", a.address, settings)
	switch {
	case stopped.Err() != nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		fail("cannot connect to %s within %.0f s", a.address, connectLimit.Seconds())
	case err != nil:
		fail("cannot connect to %s: %v", a.address, err)
	}
	return connection
}

// flow uploads until its end, the end of its time, or a signal; it returns what went wrong.
func flow(stopped context.Context, connection *quic.Conn, a arguments, left time.Duration) string {
	ended := make(chan string, 1)
	go func() { ended <- upload(connection, a.size) }()
	var over <-chan time.Time
	if a.size == 0 {
		over = time.After(left)
	}
	select {
	case problem := <-ended:
		return problem
	case <-over:
	case <-stopped.Done():
	}
	return ""
}

// upload writes size bytes and waits until they have arrived, or (size 0) writes without end.
func upload(connection *quic.Conn, size int64) string {
	stream, err := connection.NewStream(context.Background())
	if err != nil {
		return "cannot open a stream: " + err.Error()
	}
	buffer := make([]byte, chunkBytes)
	if _, err := stream.Write(buffer[:headerBytes]); err != nil {
		return "cannot send: " + err.Error()
	}
	for left := size; size == 0 || left > 0; {
		chunk := buffer
		if size > 0 && left < chunkBytes {
			chunk = buffer[:left]
		}
		n, err := stream.Write(chunk)
		if err != nil {
			return "cannot send: " + err.Error()
		}
		left -= int64(n)
	}
	stream.CloseWrite()
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return "the receiver did not answer: " + err.Error()
	}
	return ""
}
