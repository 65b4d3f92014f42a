package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/quic"
)

const rowEvery = 100 * time.Millisecond

// counter keeps the rows of receiver.csv: the bytes received so far, about each 100 ms.
type counter struct {
	sync.Mutex
	rows  bytes.Buffer
	total int
	next  time.Time
}

func (c *counter) add(n int) {
	c.Lock()
	defer c.Unlock()
	c.total += n
	if now := time.Now(); !now.Before(c.next) {
		c.row(now)
	}
}

func (c *counter) row(now time.Time) {
	fmt.Fprintf(&c.rows, "%d,%d\n", now.UnixNano(), c.total)
	c.next = now.Add(rowEvery)
}

func (c *counter) write(path string) {
	c.Lock()
	defer c.Unlock()
	c.row(time.Now())
	text := append([]byte("time_ns,bytes\n"), c.rows.Bytes()...)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		fail("cannot write %s: %v", path, err)
	}
}

// receive counts what comes until SIGTERM.
func receive(a arguments) {
	certificate, err := tls.LoadX509KeyPair(a.cert, a.key)
	if err != nil {
		fail("cannot use the certificate %s: %v", a.cert, err)
	}
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	settings := &tls.Config{Certificates: []tls.Certificate{certificate}}
	endpoint, err := quic.Listen("udp4", a.address, config(settings, fullLog(a)))
	if err != nil {
		fail("cannot listen on %s: %v", a.address, err)
	}
	var counted counter
	go accept(endpoint, &counted, a)
	fmt.Println("ready")
	<-stopped.Done()
	counted.write(filepath.Join(a.out, "receiver.csv"))
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	endpoint.Close(ctx)
}

func accept(endpoint *quic.Endpoint, counted *counter, a arguments) {
	for {
		connection, err := endpoint.Accept(context.Background())
		if err != nil {
			return
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					ended := endOf(connection, "receiver", "sender")
					if ended != nil && !(ended["by"] == "sender" && ended["code"] == 0) {
						writeEnd(ended, a, "receiver")
					}
					return
				}
				go count(stream, counted)
			}
		}()
	}
}

// count reads a perf stream to its end and answers with an empty one.
func count(stream *quic.Stream, counted *counter) {
	buffer := make([]byte, chunkBytes)
	header := headerBytes
	for {
		n, err := stream.Read(buffer)
		skipped := min(n, header)
		header -= skipped
		counted.add(n - skipped)
		if err != nil {
			stream.Close()
			return
		}
	}
}
