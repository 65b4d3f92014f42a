package main

import (
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/interceptor/pkg/twcc"
)

// google is pion's Google congestion control, whose own pacer sends what it is given.
type google struct {
	estimator cc.BandwidthEstimator
	paced     interceptor.RTPWriter
	link      *link
	numbers   *numbering
	queued    int64
}

func newGoogle(a arguments, l *link, n *numbering, _ func()) (controller, interceptor.RTCPReader) {
	g := &google{link: l, numbers: n}
	factory, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) {
		return gcc.NewSendSideBWE(
			gcc.SendSideBWEInitialBitrate(int(a.options["start_kbps"]*1e3)),
			gcc.SendSideBWEMinBitrate(int(a.options["min_kbps"]*1e3)),
			gcc.SendSideBWEMaxBitrate(int(a.options["max_mbps"]*1e6)),
		)
	})
	must(err)
	factory.OnNewPeerConnection(func(_ string, e cc.BandwidthEstimator) { g.estimator = e })
	control, err := factory.NewInterceptor("")
	must(err)
	// The last one sees a packet first: it is numbered, paced, and noted when it leaves.
	chain := interceptor.NewChain([]interceptor.Interceptor{
		newReports(), control, &twcc.HeaderExtensionInterceptor{},
	})
	g.paced = chain.BindLocalStream(stream(true), l)
	return g, chain.BindRTCPReader(l)
}

func (g *google) queue(packets []packet, _ time.Time) {
	for _, p := range packets {
		g.resend(p, time.Time{})
	}
}

func (g *google) resend(p packet, _ time.Time) {
	p = g.numbers.number(p)
	g.paced.Write(&p.header, p.payload, nil)
	g.queued++
}

func (g *google) hear([]byte, time.Time) {} // the interceptors have heard it

func (g *google) pump(time.Time) time.Duration { return never }

func (g *google) isIdle() bool { return g.link.sent.Load() == g.queued }

func (g *google) state() state {
	limit, _ := g.estimator.GetStats()["delayTargetBitrate"].(int)
	return state{targetBps: float64(g.estimator.GetTargetBitrate()), estimateBps: float64(limit)}
}
