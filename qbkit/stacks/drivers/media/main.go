// Command media sends and receives one video flow over RTP, for qbkit; see qbkit/stacks/base.py for
// its command line. Its controllers are pion's Google congestion control, which learns from
// transport-wide feedback, and Ericsson's SCReAM, which learns from feedback of RFC 8888.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

const usage = "usage: media recv --listen IP:PORT --out DIR\n       media send --connect IP:PORT --controller CC (--duration-s X | --bytes N) --out DIR"

type arguments struct {
	role, address, controller, out string
	duration                       time.Duration
	size                           int64
	options                        map[string]float64
}

// A sender needs each of these; qbkit/stacks/media.py has their defaults.
var optionNames = []string{"fps", "max_mbps", "min_kbps", "start_kbps"}

func fail(format string, words ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", words...)
	os.Exit(1)
}

func parse(words []string) arguments {
	if len(words)%2 == 0 {
		fail(usage)
	}
	a := arguments{role: words[0], out: ".", options: map[string]float64{}}
	var ignored string // RTP in the clear shows no certificate
	texts := map[string]*string{
		"--listen": &a.address, "--connect": &a.address, "--controller": &a.controller,
		"--out": &a.out, "--cert": &ignored, "--key": &ignored,
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
		case name == "--option":
			key, number, _ := strings.Cut(value, "=")
			if !slices.Contains(optionNames, key) {
				fail("unknown option %s; supported: %s", key, strings.Join(optionNames, ", "))
			}
			a.options[key], err = strconv.ParseFloat(number, 64)
		default:
			fail("unknown argument %s\n%s", name, usage)
		}
		if err != nil {
			fail("%s %s is no number", name, value)
		}
	}
	return a
}

func main() {
	runtime.GOMAXPROCS(1) // the guest has one processor
	debug.SetGCPercent(400)
	if len(os.Args) < 2 {
		fail(usage)
	}
	a := parse(os.Args[1:])
	switch {
	case a.role == "recv" && a.address != "":
		receive(a)
	case a.role == "send" && a.address != "" && (a.duration > 0 || a.size > 0):
		for _, name := range optionNames {
			if !(a.options[name] > 0) {
				fail("give --option %s=NUMBER, above 0", name)
			}
		}
		send(a)
	default:
		fail(usage)
	}
}
