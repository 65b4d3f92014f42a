package main

import (
	"context"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/logging"
)

type tracer = func(context.Context, logging.Perspective, quic.ConnectionID) logging.ConnectionTracer

// trace passes what the stack reports on to the sampler.
type trace struct {
	logging.NullConnectionTracer
	*sampler
}

func (s *sampler) tracer(arguments) tracer {
	return func(context.Context, logging.Perspective, quic.ConnectionID) logging.ConnectionTracer {
		return trace{sampler: s}
	}
}

func (t trace) UpdatedMetrics(rtt *logging.RTTStats, window, inFlight logging.ByteCount, _ int) {
	t.update(metricsOf(rtt, window, inFlight))
}

func (t trace) LostPacket(logging.EncryptionLevel, logging.PacketNumber, logging.PacketLossReason) {
	t.countLost()
}

func (t trace) UpdatedCongestionState(state logging.CongestionState) { t.change(states[state]) }
