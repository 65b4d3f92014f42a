package main

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mengelbart/scream-go"
	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
)

// Time in SCReAM's unit, 1/65536 s. It begins with the program, a second late because 0 is no time.
var begin = time.Now().Add(-time.Second)

func ntp(t time.Time) uint64 { return uint64(t.Sub(begin).Seconds() * 65536) }

// rtpQueue is the queue of packets from which SCReAM says when to send.
type rtpQueue struct {
	packets        []packet
	since          []time.Time
	lastFrameBytes int
	numbers        *numbering
	wantsKey       func()
}

func (q *rtpQueue) SizeOfNextRTP() int {
	if len(q.packets) == 0 {
		return -1
	}
	return q.packets[0].size()
}

func (q *rtpQueue) SeqNrOfNextRTP() uint16  { return q.numbers.next }
func (q *rtpQueue) BytesInQueue() int       { return sizeOf(q.packets) }
func (q *rtpQueue) SizeOfQueue() int        { return len(q.packets) }
func (q *rtpQueue) GetSizeOfLastFrame() int { return q.lastFrameBytes }

// Clear is how SCReAM discards what has waited too long; the next frame has to be a key frame.
func (q *rtpQueue) Clear() {
	if len(q.packets) > 0 {
		q.wantsKey()
	}
	q.packets, q.since = nil, nil
}

func (q *rtpQueue) GetDelay(nowS float64) float64 {
	if len(q.packets) == 0 {
		return 0
	}
	return nowS - q.since[0].Sub(begin).Seconds()
}

func (q *rtpQueue) pop() packet {
	first := q.packets[0]
	q.packets, q.since = q.packets[1:], q.since[1:]
	return q.numbers.number(first)
}

func sizeOf(packets []packet) int {
	bytes := 0
	for _, p := range packets {
		bytes += p.size()
	}
	return bytes
}

// selfClocked is SCReAM, which paces by telling when to ask again.
type selfClocked struct {
	tx      *scream.Tx
	waiting rtpQueue
	out     interceptor.RTPWriter
	due     time.Time // when the next packet may leave
	target  float64
}

func newSelfClocked(a arguments, l *link, n *numbering, wantsKey func()) (controller, interceptor.RTCPReader) {
	s := &selfClocked{
		tx: scream.NewTx(), target: a.options["start_kbps"] * 1e3,
		waiting: rtpQueue{numbers: n, wantsKey: wantsKey},
	}
	s.tx.RegisterNewStream(&s.waiting, ssrc, 1, a.options["min_kbps"]*1e3, s.target, a.options["max_mbps"]*1e6)
	reports := newReports()
	s.out = reports.BindLocalStream(stream(false), l)
	return s, reports.BindRTCPReader(l)
}

func (s *selfClocked) queue(packets []packet, now time.Time) {
	s.waiting.packets = append(s.waiting.packets, packets...)
	for range packets {
		s.waiting.since = append(s.waiting.since, now)
	}
	s.waiting.lastFrameBytes = sizeOf(packets)
	s.tx.NewMediaFrame(ntp(now), ssrc, s.waiting.lastFrameBytes)
}

// resend puts a packet in front of those that wait.
func (s *selfClocked) resend(p packet, now time.Time) {
	s.waiting.packets = append([]packet{p}, s.waiting.packets...)
	s.waiting.since = append([]time.Time{now}, s.waiting.since...)
}

func (s *selfClocked) hear(feedback []byte, now time.Time) {
	isReport := feedback[0]&0x1f == feedbackFormat && feedback[1] == uint8(rtcp.TypeTransportSpecificFeedback)
	if isReport && len(feedback) == feedbackBytes {
		s.tx.IncomingStandardizedFeedback(ntp(now), toDraft(feedback))
	}
}

// pump sends what may leave now. A timer of Go is up to a millisecond late; a packet then counts as
// sent when it was due, so that the pace is kept.
func (s *selfClocked) pump(now time.Time) time.Duration {
	at := now
	if late := now.Sub(s.due); late > 0 && late < 2*time.Millisecond {
		at = s.due
	}
	for {
		wait := s.tx.IsOkToTransmit(ntp(at), ssrc)
		if wait < 0 || len(s.waiting.packets) == 0 {
			s.due = time.Time{}
			return never
		}
		at = at.Add(time.Duration(wait * float64(time.Second)))
		if at.After(now) {
			s.due = at
			return at.Sub(now)
		}
		if wait > 0 {
			continue
		}
		p := s.waiting.pop()
		s.out.Write(&p.header, p.payload, nil)
		s.tx.AddTransmitted(ntp(at), ssrc, p.size(), p.header.SequenceNumber, p.header.Marker)
	}
}

func (s *selfClocked) isIdle() bool { return len(s.waiting.packets) == 0 }

// state reads the statistics: queue delay, its maximum and mean minimum, sRTT, cwnd, bytes in flight,
// rate sent, fast start; then delay of the RTP queue, target, rates of media, sent and acknowledged.
func (s *selfClocked) state() state {
	// -1 says that packets were lost, of which the receiver knows.
	if target := s.tx.GetTargetBitrate(ssrc); target > 0 {
		s.target = target
	}
	words := strings.Split(s.tx.GetStatistics(ntp(time.Now())), ",")
	number := func(i int) float64 {
		value, err := strconv.ParseFloat(strings.TrimSpace(words[i]), 64)
		must(err)
		return value
	}
	return state{
		targetBps: s.target, estimateBps: number(12) * 1e3,
		window: fmt.Sprintf("%.0f,%.0f,%.0f", number(4), number(5), number(3)*1e3),
	}
}

// Feedback of SCReAM's own receiver and sender is that of draft-ietf-avtcore-cc-feedback-message-02.
// On the wire it is RFC 8888: its format has a number, the count of reports is not one less, and a
// stream is reported once.
const (
	reports        = 64
	reportBytes    = 4 + 4 + 2*reports
	feedbackBytes  = 8 + reportBytes + 4
	countAt        = 8 + 6
	feedbackFormat = uint8(rtcp.FormatCCFB)
)

func toRFC8888(draft []byte) []byte {
	text := append([]byte{}, draft[:8+reportBytes]...)
	text = append(text, draft[len(draft)-4:]...)
	text[0] |= feedbackFormat
	binary.BigEndian.PutUint16(text[2:], feedbackBytes/4-1)
	binary.BigEndian.PutUint16(text[countAt:], reports)
	return text
}

func toDraft(text []byte) []byte {
	draft := append([]byte{}, text...)
	binary.BigEndian.PutUint16(draft[countAt:], reports-1)
	return draft
}
