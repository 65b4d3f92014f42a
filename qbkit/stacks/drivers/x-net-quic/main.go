// Command x-net-quic sends and receives one flow of golang.org/x/net/quic by the IETF perf protocol
// (draft-banks-quic-performance), for qbkit; see qbkit/stacks/base.py for its command line.
package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/net/quic"
)

const (
	alpn         = "perf"
	windowBytes  = 32 << 20 // of receiver and sender, whose buffer also holds what is in flight
	chunkBytes   = 1 << 20
	connectLimit = 10 * time.Second
	closeLimit   = time.Second
	headerBytes  = 8 // of a perf stream: how many bytes the client wants back
	usage        = "usage: x-net-quic recv --listen IP:PORT --cert FILE --key FILE --out DIR\n       x-net-quic send --connect IP:PORT --controller reno (--duration-s X | --bytes N) --out DIR"
)

type arguments struct {
	role, address, cert, key, controller, out string
	duration                                  time.Duration
	size                                      int64
	qlog                                      bool
}

func fail(format string, words ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", words...)
	os.Exit(1)
}

func parse(words []string) arguments {
	if len(words)%2 == 0 {
		fail(usage)
	}
	a := arguments{role: words[0], out: "."}
	texts := map[string]*string{
		"--listen": &a.address, "--connect": &a.address, "--cert": &a.cert, "--key": &a.key,
		"--controller": &a.controller, "--out": &a.out,
	}
	for i := 1; i < len(words); i += 2 {
		name, value := words[i], words[i+1]
		var err error
		switch text := texts[name]; {
		case text != nil:
			*text = value
		case name == "--duration-s":
			var seconds float64
			seconds, err = strconv.ParseFloat(value, 64)
			a.duration = time.Duration(seconds * float64(time.Second))
		case name == "--bytes":
			a.size, err = strconv.ParseInt(value, 10, 64)
		case name == "--option" && (value == "qlog=true" || value == "qlog=false"):
			a.qlog = value == "qlog=true"
		case name == "--option":
			fail("unknown option %s; supported: qlog=true, qlog=false", value)
		default:
			fail("unknown argument %s\n%s", name, usage)
		}
		if err != nil {
			fail("%s %s is no number", name, value)
		}
	}
	return a
}

func config(settings *tls.Config, events slog.Handler) *quic.Config {
	settings.MinVersion, settings.NextProtos = tls.VersionTLS13, []string{alpn}
	return &quic.Config{
		TLSConfig:                settings,
		MaxStreamReadBufferSize:  windowBytes,
		MaxStreamWriteBufferSize: windowBytes,
		MaxConnReadBufferSize:    windowBytes,
		HandshakeTimeout:         -1, // send has its own
		MaxIdleTimeout:           time.Minute,
		QLogLogger:               slog.New(events),
	}
}

func main() {
	runtime.GOMAXPROCS(1) // the guest has one processor
	debug.SetGCPercent(400)
	if len(os.Args) < 2 {
		fail(usage)
	}
	a := parse(os.Args[1:])
	switch {
	case a.role == "recv" && a.address != "" && a.cert != "" && a.key != "":
		receive(a)
	case a.role == "send" && a.address != "" && (a.duration > 0 || a.size > 0):
		send(a)
	default:
		fail(usage)
	}
}
