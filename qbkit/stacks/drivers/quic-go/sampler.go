package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	sampleEvery = 10 * time.Millisecond
	header      = "time_ns,cwnd_bytes,bytes_in_flight,srtt_ms,latest_rtt_ms,min_rtt_ms,lost_packets,spurious_losses,state\n"
	recovery    = "recovery"
)

// metrics of loss recovery, as the stack reports them.
type metrics struct {
	window, inFlight        int
	smoothed, latest, least time.Duration
}

// sampler keeps what the stack reports, a row each 10 ms and at the begin and end of a recovery.
type sampler struct {
	sync.Mutex
	path           string
	rows           bytes.Buffer
	metrics        metrics
	state          string
	lost, spurious int
	next           time.Time
}

func newSampler(path string) *sampler {
	s := &sampler{path: path}
	s.rows.WriteString(header)
	return s
}

// update takes over the metrics; each report carries all of them.
func (s *sampler) update(m metrics) {
	s.Lock()
	defer s.Unlock()
	s.metrics = m
	if now := time.Now(); !now.Before(s.next) {
		s.row(now)
	}
}

// change notes a new state. The begin and the end of a recovery get a row of their own; whether the
// application limits the sender changes with nearly every packet.
func (s *sampler) change(state string) {
	s.Lock()
	defer s.Unlock()
	recovering := state == recovery || s.state == recovery
	s.state = state
	if recovering {
		s.row(time.Now())
	}
}

func (s *sampler) countLost() {
	s.Lock()
	s.lost++
	s.Unlock()
}

func (s *sampler) countSpurious() {
	s.Lock()
	s.spurious++
	s.Unlock()
}

func (s *sampler) row(now time.Time) {
	m := &s.metrics
	if m.window == 0 {
		return // nothing is known yet
	}
	spurious := ""
	if reportsSpurious {
		spurious = strconv.Itoa(s.spurious)
	}
	fmt.Fprintf(&s.rows, "%d,%d,%d,%s,%s,%s,%d,%s,%s\n", now.UnixNano(), m.window, m.inFlight,
		ms(m.smoothed), ms(m.latest), ms(m.least), s.lost, spurious, s.state)
	s.next = now.Add(sampleEvery)
}

func ms(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond))
}

func (s *sampler) write() {
	s.Lock()
	defer s.Unlock()
	if err := os.WriteFile(s.path, s.rows.Bytes(), 0o644); err != nil {
		fail("cannot write %s: %v", s.path, err)
	}
}
