package main

import (
	"context"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/logging"
)

type tracer = func(context.Context, logging.Perspective, quic.ConnectionID) *logging.ConnectionTracer

func (s *sampler) tracer(arguments) tracer {
	return func(context.Context, logging.Perspective, quic.ConnectionID) *logging.ConnectionTracer {
		return &logging.ConnectionTracer{
			UpdatedMetrics: func(rtt *logging.RTTStats, window, inFlight logging.ByteCount, _ int) {
				s.update(metricsOf(rtt, window, inFlight))
			},
			LostPacket: func(logging.EncryptionLevel, logging.PacketNumber, logging.PacketLossReason) {
				s.countLost()
			},
			UpdatedCongestionState: func(state logging.CongestionState) { s.change(states[state]) },
		}
	}
}
