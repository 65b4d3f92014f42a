package main

import "github.com/quic-go/quic-go/logging"

const reportsSpurious = false

var states = map[logging.CongestionState]string{
	logging.CongestionStateSlowStart:           "slow_start",
	logging.CongestionStateCongestionAvoidance: "congestion_avoidance",
	logging.CongestionStateRecovery:            recovery,
	logging.CongestionStateApplicationLimited:  "application_limited",
}

// metricsOf are the metrics of a logging tracer's report.
func metricsOf(rtt *logging.RTTStats, window, inFlight logging.ByteCount) metrics {
	return metrics{int(window), int(inFlight), rtt.SmoothedRTT(), rtt.LatestRTT(), rtt.MinRTT()}
}

func qlogTracer(arguments) tracer { return nil }
