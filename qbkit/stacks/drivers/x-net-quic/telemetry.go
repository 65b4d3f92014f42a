package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/net/quic"
	"golang.org/x/net/quic/qlog"
)

const (
	sampleEvery = 10 * time.Millisecond
	header      = "time_ns,cwnd_bytes,bytes_in_flight,ssthresh_bytes,srtt_ms,latest_rtt_ms,min_rtt_ms,lost_packets,state\n"
)

// fullLog writes the stack's own qlog into the folder, if that was asked for.
func fullLog(a arguments) slog.Handler {
	if !a.qlog {
		return slog.DiscardHandler
	}
	return qlog.NewJSONHandler(qlog.HandlerOptions{Level: quic.QLogLevelFrame, Dir: a.out})
}

// samples are the rows of sender.csv: the recovery metrics that the stack reports to its qlog with
// each ACK, a row each 10 ms and at the begin and end of a recovery.
type samples struct {
	sync.Mutex
	path    string
	rows    bytes.Buffer
	metrics metrics
	state   string
	lost    int
	next    time.Time
}

type metrics struct {
	window, inFlight, threshold int64
	smoothed, latest, least     time.Duration
}

func newSamples(path string) *samples {
	s := &samples{path: path, state: "slow_start"}
	s.rows.WriteString(header)
	return s
}

// watcher is the handler of the stack's log; the stack's own qlog, if wanted, is behind it.
type watcher struct {
	*samples
	full slog.Handler
}

func (w watcher) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= quic.QLogLevelPacket || w.full.Enabled(ctx, level)
}

func (w watcher) WithAttrs(attributes []slog.Attr) slog.Handler {
	return watcher{w.samples, w.full.WithAttrs(attributes)}
}

func (w watcher) WithGroup(name string) slog.Handler {
	return watcher{w.samples, w.full.WithGroup(name)}
}

func (w watcher) Handle(ctx context.Context, event slog.Record) error {
	switch event.Message {
	case "recovery:metrics_updated":
		w.update(event)
	case "recovery:congestion_state_updated":
		event.Attrs(w.change)
	case "recovery:packet_lost":
		w.Lock()
		w.lost++
		w.Unlock()
	}
	if w.full.Enabled(ctx, event.Level) {
		return w.full.Handle(ctx, event)
	}
	return nil
}

// update takes over the metrics; an event after a sent packet carries the bytes in flight alone.
func (s *samples) update(event slog.Record) {
	s.Lock()
	defer s.Unlock()
	m := &s.metrics
	event.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "congestion_window":
			m.window = a.Value.Int64()
		case "bytes_in_flight":
			m.inFlight = a.Value.Int64()
		case "ssthresh":
			m.threshold = a.Value.Int64()
		case "smoothed_rtt":
			m.smoothed = a.Value.Duration()
		case "latest_rtt":
			m.latest = a.Value.Duration()
		case "min_rtt":
			m.least = a.Value.Duration()
		}
		return true
	})
	if now := time.Now(); !now.Before(s.next) {
		s.row(now)
	}
}

// change notes the new state. The begin and the end of a recovery get a row of their own.
func (s *samples) change(a slog.Attr) bool {
	if a.Key != "new" {
		return true
	}
	s.Lock()
	defer s.Unlock()
	const recovery = "recovery"
	state := a.Value.String()
	edge := (state == recovery) != (s.state == recovery)
	s.state = state
	if edge {
		s.row(time.Now())
	}
	return false
}

func (s *samples) row(now time.Time) {
	m := &s.metrics
	if m.window == 0 {
		return // nothing is known before the first ACK
	}
	threshold := ""
	if m.threshold > 0 {
		threshold = fmt.Sprint(m.threshold)
	}
	fmt.Fprintf(&s.rows, "%d,%d,%d,%s,%s,%s,%s,%d,%s\n", now.UnixNano(), m.window, m.inFlight,
		threshold, ms(m.smoothed), ms(m.latest), ms(m.least), s.lost, s.state)
	s.next = now.Add(sampleEvery)
}

func ms(d time.Duration) string {
	return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond))
}

func (s *samples) write() {
	s.Lock()
	defer s.Unlock()
	if err := os.WriteFile(s.path, s.rows.Bytes(), 0o644); err != nil {
		fail("cannot write %s: %v", s.path, err)
	}
}
