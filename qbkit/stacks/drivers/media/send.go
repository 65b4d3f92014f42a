package main

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/rtpfb"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const never = time.Duration(math.MaxInt64)

// controller decides when packets leave, and how large frames are to be.
type controller interface {
	queue(frame []packet, now time.Time)
	resend(p packet, now time.Time)
	pump(now time.Time) time.Duration // send what may leave; how long until it is to be asked again
	hear(feedback []byte, now time.Time)
	isIdle() bool // nothing waits to be sent
	state() state
}

type state struct {
	targetBps, estimateBps float64
	window                 string // cwnd and bytes in flight in bytes, and the smoothed RTT in ms
}

// A controller is made with its link, the numbers of its packets, and how to ask for a key frame.
var controllers = map[string]func(arguments, *link, *numbering, func()) (controller, interceptor.RTCPReader){
	"gcc": newGoogle, "scream": newSelfClocked,
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// link is the socket, as pion's interceptors see it. It is not connected: ICMP errors, after which
// Go's runtime as changed by qbkit polls without end, do not reach it.
type link struct {
	socket *net.UDPConn
	peer   netip.AddrPort
	sent   atomic.Int64
}

func (l *link) Write(header *rtp.Header, payload []byte, _ interceptor.Attributes) (int, error) {
	text, err := header.Marshal()
	if err != nil {
		return 0, err
	}
	l.sent.Add(1)
	l.socket.WriteToUDPAddrPort(append(text, payload...), l.peer) // one that cannot be sent is lost
	return len(text) + len(payload), nil
}

func (l *link) Read(buffer []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
	n, _, err := l.socket.ReadFromUDPAddrPort(buffer)
	return n, a, err
}

func newReports() interceptor.Interceptor {
	factory, err := rtpfb.NewInterceptor()
	must(err)
	made, err := factory.NewInterceptor("")
	must(err)
	return made
}

// feedback is a compound of RTCP packets, and what it says of packets sent.
type feedback struct {
	text    []byte
	packets []rtcp.Packet
	report  rtpfb.Report
}

func listen(reader interceptor.RTCPReader, heard chan<- feedback) {
	buffer := make([]byte, 1500)
	for {
		attributes := interceptor.Attributes{}
		n, attributes, err := reader.Read(buffer, attributes)
		if err != nil {
			continue // a datagram that is no RTCP
		}
		packets, _ := attributes.GetRTCPPackets(buffer[:n])
		report, _ := attributes.Get(rtpfb.CCFBAttributesKey).(rtpfb.Report)
		heard <- feedback{append([]byte{}, buffer[:n]...), packets, report}
	}
}

// sender makes frames and writes objects.csv, a row for each, and sender.csv.
type sender struct {
	controller
	fps           float64
	left          int64 // bytes; negative: no limit
	source        *source
	numbers       *numbering
	packetizer    packetizer
	objects, rows table
	start         time.Time
	lost          int
	latest, least float64 // RTT in ms
}

func send(a arguments) {
	start := time.Now()
	newController, ok := controllers[a.controller]
	if !ok {
		fail("media has no controller %s; it has gcc, scream", a.controller)
	}
	peer, err := netip.ParseAddrPort(a.address)
	must(err)
	socket, err := net.ListenUDP("udp4", nil)
	must(err)
	frames, numbers := newSource(), &numbering{}
	control, reader := newController(a, &link{socket: socket, peer: peer}, numbers, frames.wantKey)
	s := &sender{
		controller: control, numbers: numbers, source: frames, fps: a.options["fps"], left: -1, start: start,
		objects: newTable(a, "objects.csv", "bytes"), least: math.Inf(1),
		rows: newTable(a, "sender.csv", "cwnd_bytes,bytes_in_flight,srtt_ms,latest_rtt_ms,min_rtt_ms,"+
			"pacing_rate_mbps,delivery_rate_mbps,lost_packets"),
	}
	if a.size > 0 {
		s.left = a.size
	}
	heard := make(chan feedback)
	go listen(reader, heard)
	s.run(heard, a.duration)
}

// run sends until its time is over, all bytes have left, or a signal.
func (s *sender) run(heard <-chan feedback, duration time.Duration) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	frame, paced := time.NewTimer(0), time.NewTimer(never)
	var over <-chan time.Time
	if s.left < 0 {
		over = time.After(duration - time.Since(s.start))
	}
	for k := int64(1); s.left != 0 || !s.isIdle(); {
		select {
		case <-frame.C:
			s.release()
			frame.Reset(time.Until(s.at(k)))
			k++
		case said := <-heard:
			s.learn(said)
		case <-paced.C:
		case <-over:
			return
		case <-signals:
			return
		}
		paced.Reset(s.pump(time.Now()))
	}
}

func (s *sender) at(frame int64) time.Time {
	return s.start.Add(time.Duration(float64(frame) / s.fps * float64(time.Second)))
}

// release makes the next frame, of a size for the target rate, in which RTP's headers count.
func (s *sender) release() {
	if s.left == 0 {
		return
	}
	at, target := s.at(int64(s.packetizer.frame)), s.state().targetBps
	scale, isKey := s.source.next()
	bytes := int64(target / 8 / s.fps * payloadBytes / packetBytes * scale)
	bytes = max(bytes, descriptorBytes)
	if s.left > 0 {
		bytes = min(bytes, s.left)
		s.left -= bytes
	}
	s.objects.row("%d,%d", at.UnixNano(), bytes)
	timestamp := uint32(at.Sub(s.start).Seconds() * clockHz)
	s.queue(s.packetizer.packets(int(bytes), timestamp, isKey), time.Now())
	s.sample()
}

func (s *sender) learn(said feedback) {
	s.hear(said.text, time.Now())
	for _, one := range said.packets {
		switch request := one.(type) {
		case *rtcp.PictureLossIndication:
			s.source.wantKey()
		case *rtcp.TransportLayerNack:
			s.repair(request)
		}
	}
	for _, one := range said.report.PacketReports {
		if !one.Arrived {
			s.lost++
		}
	}
	if said.report.RTT > 0 {
		s.latest = float64(said.report.RTT) / float64(time.Millisecond)
		s.least = min(s.least, s.latest)
	}
}

func (s *sender) repair(request *rtcp.TransportLayerNack) {
	for _, pair := range request.Nacks {
		for _, sequence := range pair.PacketList() {
			if p, known := s.numbers.find(sequence); known {
				s.resend(p, time.Now())
			}
		}
	}
}

// sample writes a row of what the controller says: its target as the pacing rate, since the frames
// are that large, and its estimate of what the path delivers.
func (s *sender) sample() {
	now, window, rtt := s.state(), ",,", ","
	if now.window != "" {
		window = now.window
	}
	if s.latest > 0 {
		rtt = fmt.Sprintf("%.3f,%.3f", s.latest, s.least)
	}
	s.rows.row("%d,%s,%s,%.3f,%.3f,%d", time.Now().UnixNano(), window, rtt,
		now.targetBps/1e6, now.estimateBps/1e6, s.lost)
}
