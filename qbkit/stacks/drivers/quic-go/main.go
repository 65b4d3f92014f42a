// Command quic-go sends and receives one QUIC flow by the IETF perf protocol
// (draft-banks-quic-performance), for qbkit; see qbkit/stacks/base.py for its command line. It is
// also the other end of stacks that only speak HTTP/3 (it serves browsers and fetches from servers),
// and a web server and a web client by HTTP/2 and HTTP/3.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	alpn          = "perf"
	windowBytes   = 128 << 20 // flow control never limits a sender
	bufferBytes   = 1 << 20   // a system call costs the guest 8 µs: few, large ones
	connectLimit  = 10 * time.Second
	headerBytes   = 8                    // of a perf stream: how many bytes the client wants back
	controllerEnv = "QUIC_GO_CONTROLLER" // read by quic-go itself, see qbkit/stacks/quic_go.py
)

// role is what the program can be asked to do.
type role struct {
	complete func(arguments) bool // whether the arguments beside the address suffice
	run      func(arguments)
}

func hasCertificate(a arguments) bool { return a.cert != "" && a.key != "" }
func hasEnd(a arguments) bool         { return a.duration > 0 || a.size > 0 }

type arguments struct {
	role, address, cert, key, controller, out string
	page, path, connectionOptions             string
	site, protocol                            string
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
	a := arguments{role: words[0], out: ".", path: "/"}
	for i := 1; i < len(words); i += 2 {
		name, value := words[i], words[i+1]
		var err error
		switch name {
		case "--listen", "--connect":
			a.address = value
		case "--cert":
			a.cert = value
		case "--key":
			a.key = value
		case "--controller":
			a.controller = value
		case "--page":
			a.page = value
		case "--site":
			a.site = value
		case "--protocol":
			a.protocol = value
		case "--path":
			a.path = value
		case "--connection-options":
			a.connectionOptions = value
		case "--out":
			a.out = value
		case "--duration-s":
			var seconds float64
			seconds, err = strconv.ParseFloat(value, 64)
			a.duration = time.Duration(seconds * float64(time.Second))
		case "--bytes":
			a.size, err = strconv.ParseInt(value, 10, 64)
		case "--option":
			key, setting, _ := strings.Cut(value, "=")
			if key != "qlog" {
				fail("unknown option %s; supported: qlog", key)
			}
			a.qlog = setting == "true"
		default:
			fail("unknown argument %s\n%s", name, usage)
		}
		if err != nil {
			fail("%s %s is no number", name, value)
		}
	}
	return a
}

func config(trace tracer) *quic.Config {
	return &quic.Config{
		InitialStreamReceiveWindow:     windowBytes,
		MaxStreamReceiveWindow:         windowBytes,
		InitialConnectionReceiveWindow: windowBytes,
		MaxConnectionReceiveWindow:     windowBytes,
		HandshakeIdleTimeout:           connectLimit,
		MaxIdleTimeout:                 time.Minute,
		Tracer:                         trace,
	}
}

func main() {
	runtime.GOMAXPROCS(1) // the guest has one processor
	debug.SetGCPercent(400)
	if len(os.Args) < 2 {
		fail(usage)
	}
	a := parse(os.Args[1:])
	wanted, ok := roles[a.role]
	if !ok || a.address == "" || !wanted.complete(a) {
		fail(usage)
	}
	wanted.run(a)
}
