package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A second connection resumes the session of the first (qbkit/spec/resume.py).

var (
	resumption = asked(os.Getenv("QBKIT_RESUME")) // of both ends; nil: a flow is one connection
	tickets    = tls.NewLRUClientSessionCache(1)  // the client's
)

type resume struct {
	early bool // the server takes data before the handshake ends
	size  int64
	pause time.Duration
}

func asked(text string) *resume {
	if text == "" {
		return nil
	}
	words := strings.Split(text, " ")
	return &resume{words[0] == "0rtt", number(words[1]), time.Duration(number(words[2]))}
}

// first makes the first connection, and returns when the second one is to begin. A signal, or the
// end of the flow's time, ends the program meanwhile.
func (r *resume) first(a arguments, end func(), signals <-chan os.Signal) {
	var over <-chan time.Time
	if a.size == 0 {
		over = time.After(a.duration)
	}
	connection := connect(a, nil, end, signals)
	done := make(chan error, 1)
	go func() {
		err := upload(connection, r.size)
		connection.CloseWithError(0, "")
		if err == nil {
			time.Sleep(r.pause)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			return
		}
		end()
		leave(err, endOf(err, "sender"), a.out, "sender")
	case <-over:
	case <-signals:
	}
	connection.CloseWithError(0, "")
	end()
	os.Exit(0)
}

// note writes resumed.csv when the second connection's handshake is complete.
func note(connection connection, began time.Time, out string) {
	<-connection.HandshakeComplete()
	state := connection.ConnectionState()
	path := filepath.Join(out, "resumed.csv")
	row := fmt.Sprintf("%d,%d,%d", began.UnixNano(), digit(state.TLS.DidResume), digit(state.Used0RTT))
	if err := os.WriteFile(path, []byte("time_ns,session,early\n"+row+"\n"), 0o644); err != nil {
		fail("cannot write %s: %v", path, err)
	}
}

func digit(is bool) int {
	if is {
		return 1
	}
	return 0
}
