package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

const (
	sampleEvery = 10 * time.Millisecond
	header      = "time_ns,cwnd_bytes,bytes_in_flight,srtt_ms,latest_rtt_ms,min_rtt_ms,lost_packets,spurious_losses,state\n"
)

type tracer = func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace

// qlogTracer writes the stack's own qlog into the folder, if that was asked for.
func qlogTracer(a arguments) tracer {
	if !a.qlog {
		return nil
	}
	os.Setenv("QLOGDIR", a.out)
	return qlog.DefaultConnectionTracer
}

// sampler keeps the recovery metrics that the stack reports to its qlog, a row each 10 ms and
// at the begin and end of a recovery. It is a qlogwriter.Trace and its only Recorder.
type sampler struct {
	sync.Mutex
	path           string
	rows           bytes.Buffer
	metrics        qlog.MetricsUpdated
	state          qlog.CongestionState
	lost, spurious int
	next           time.Time
	full           qlogwriter.Trace
}

func newSampler(path string) *sampler {
	s := &sampler{path: path}
	s.rows.WriteString(header)
	return s
}

func (s *sampler) tracer(a arguments) tracer {
	full := qlogTracer(a)
	return func(ctx context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
		if full != nil {
			s.full = full(ctx, isClient, id)
		}
		return s
	}
}

func (s *sampler) SupportsSchemas(schema string) bool { return schema == qlog.EventSchema }

func (s *sampler) AddProducer() qlogwriter.Recorder {
	if s.full == nil {
		return recorder{sampler: s}
	}
	return recorder{sampler: s, full: s.full.AddProducer()}
}

// recorder is one producer of events.
type recorder struct {
	*sampler
	full qlogwriter.Recorder
}

func (r recorder) RecordEvent(event qlogwriter.Event) {
	if r.full != nil {
		r.full.RecordEvent(event)
	}
	switch e := event.(type) {
	case qlog.MetricsUpdated:
		r.update(e)
	case qlog.CongestionStateUpdated:
		r.change(e.State)
	case qlog.PacketLost:
		r.Lock()
		r.lost++
		r.Unlock()
	case qlog.SpuriousLoss:
		r.Lock()
		r.spurious++
		r.Unlock()
	}
}

func (r recorder) Close() error {
	if r.full != nil {
		return r.full.Close()
	}
	return nil
}

// update takes over the metrics; each event carries all of them.
func (s *sampler) update(e qlog.MetricsUpdated) {
	s.Lock()
	defer s.Unlock()
	s.metrics = e
	if now := time.Now(); !now.Before(s.next) {
		s.row(now)
	}
}

// change notes a new state. The begin and the end of a recovery get a row of their own; whether the
// application limits the sender changes with nearly every packet.
func (s *sampler) change(state qlog.CongestionState) {
	s.Lock()
	defer s.Unlock()
	recovering := state == qlog.CongestionStateRecovery || s.state == qlog.CongestionStateRecovery
	s.state = state
	if recovering {
		s.row(time.Now())
	}
}

func (s *sampler) row(now time.Time) {
	m := &s.metrics
	if m.CongestionWindow == 0 {
		return // nothing is known yet
	}
	fmt.Fprintf(&s.rows, "%d,%d,%d,%s,%s,%s,%d,%d,%s\n", now.UnixNano(), m.CongestionWindow,
		m.BytesInFlight, ms(m.SmoothedRTT), ms(m.LatestRTT), ms(m.MinRTT), s.lost, s.spurious, s.state)
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
