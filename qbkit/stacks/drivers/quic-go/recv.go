package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

const rowEvery = 100 * time.Millisecond

// counter writes receiver.csv: the bytes received so far, about each 100 ms.
type counter struct {
	sync.Mutex
	file  *os.File
	rows  *bufio.Writer
	total int64
	next  time.Time
}

func newCounter(path string) *counter {
	file, err := os.Create(path)
	if err != nil {
		fail("cannot write %s: %v", path, err)
	}
	c := &counter{file: file, rows: bufio.NewWriterSize(file, bufferBytes)}
	fmt.Fprintln(c.rows, "time_ns,bytes")
	return c
}

func (c *counter) add(n int) {
	c.Lock()
	defer c.Unlock()
	c.total += int64(n)
	now := time.Now()
	if now.Before(c.next) {
		return
	}
	fmt.Fprintf(c.rows, "%d,%d\n", now.UnixNano(), c.total)
	c.next = now.Add(rowEvery)
}

func (c *counter) close() {
	c.Lock()
	defer c.Unlock()
	fmt.Fprintf(c.rows, "%d,%d\n", time.Now().UnixNano(), c.total)
	if c.rows.Flush() != nil || c.file.Close() != nil {
		fail("cannot write %s", c.file.Name())
	}
}

// receive counts what comes until SIGTERM.
func receive(a arguments) {
	certificate, err := tls.LoadX509KeyPair(a.cert, a.key)
	if err != nil {
		fail("cannot use the certificate %s: %v", a.cert, err)
	}
	settings := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{alpn}}
	listener, err := quic.Listen(listenOn(a.address), settings, config(qlogTracer(a)))
	if err != nil {
		fail("cannot listen on %s: %v", a.address, err)
	}
	counted := newCounter(filepath.Join(a.out, "receiver.csv"))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go accept(listener, counted)
	fmt.Println("ready")
	<-signals
	counted.close()
	listener.Close()
}

func accept(listener *quic.Listener, counted *counter) {
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					reportLost(err, counted)
					return
				}
				go count(stream, counted)
			}
		}()
	}
}

// reportLost reports the end of an upload's connection beside its rows, unless its sender was done.
//
//go:noinline
func reportLost(err error, counted *counter) {
	if ended := endOf(err, "receiver"); ended != nil && !ended.isDone() {
		ended.write(filepath.Dir(counted.file.Name()), "receiver")
	}
}

// count reads a perf stream to its end and answers with an empty one.
func count(stream stream, counted *counter) {
	buffer := make([]byte, bufferBytes)
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
