package main

import (
	"context"
	"os"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

const reportsSpurious = true

type tracer = func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace

// qlogTracer writes the stack's own qlog into the folder, if that was asked for.
func qlogTracer(a arguments) tracer {
	if !a.qlog {
		return nil
	}
	os.Setenv("QLOGDIR", a.out)
	return qlog.DefaultConnectionTracer
}

// trace passes the recovery metrics that the stack reports to its qlog on to the sampler.
type trace struct {
	*sampler
	full qlogwriter.Trace
}

func (s *sampler) tracer(a arguments) tracer {
	full := qlogTracer(a)
	return func(ctx context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
		if full == nil {
			return trace{sampler: s}
		}
		return trace{s, full(ctx, isClient, id)}
	}
}

func (t trace) SupportsSchemas(schema string) bool { return schema == qlog.EventSchema }

func (t trace) AddProducer() qlogwriter.Recorder {
	if t.full == nil {
		return recorder{sampler: t.sampler}
	}
	return recorder{t.sampler, t.full.AddProducer()}
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
		r.update(metrics{e.CongestionWindow, e.BytesInFlight, e.SmoothedRTT, e.LatestRTT, e.MinRTT})
	case qlog.CongestionStateUpdated:
		r.change(string(e.State))
	case qlog.PacketLost:
		r.countLost()
	case qlog.SpuriousLoss:
		r.countSpurious()
	}
}

func (r recorder) Close() error {
	if r.full != nil {
		return r.full.Close()
	}
	return nil
}
