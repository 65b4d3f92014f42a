package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mengelbart/scream-go"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/rtcp"
)

const (
	rowEvery     = 100 * time.Millisecond
	frameWait    = 3 * time.Second        // how long libwebrtc, too, waits for a frame,
	keyFrameWait = 200 * time.Millisecond // and for a key frame before it asks again
	feedbackWait = 11 * time.Millisecond  // SCReAM's receiver counts in 1/65536 s
)

// assembly is a frame of which some packets have come.
type assembly struct {
	has   map[int]bool
	count int
	isKey bool
}

func (a *assembly) isComplete() bool { return a != nil && len(a.has) == a.count }

// receiver asks for packets that are missing (NACK), and shows frames in order, as a decoder must. It
// goes on from a key frame when one has come whole, and asks for one (PLI) after a long wait. It
// writes frames.csv, a row when a frame can be shown, and receiver.csv.
type receiver struct {
	sync.Mutex
	socket       *net.UDPConn
	peer         netip.AddrPort
	screamRx     *scream.Rx
	frames, rows table
	total        int64
	nextRow      time.Time
	pending      map[uint32]*assembly
	next         uint32 // the frame to show next
	shown, asked time.Time
	expected     uint16 // sequence number that follows the highest one
}

func receive(a arguments) {
	address, err := net.ResolveUDPAddr("udp4", a.address)
	must(err)
	socket, err := net.ListenUDP("udp4", address)
	if err != nil {
		fail("cannot listen on %s: %v", a.address, err)
	}
	r := &receiver{
		socket: socket, screamRx: scream.NewRx(ssrc + 1), pending: map[uint32]*assembly{},
		frames: newTable(a, "frames.csv", "frame"), rows: newTable(a, "receiver.csv", "bytes"),
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go r.listen()
	fmt.Println("ready")
	<-signals
	r.Lock()
	r.row(time.Now())
}

// listen takes packets. Those with a transport-wide sequence number are answered by the interceptor
// that reads them, others by SCReAM.
func (r *receiver) listen() {
	factory, err := twcc.NewSenderInterceptor()
	must(err)
	answering, err := factory.NewInterceptor("")
	must(err)
	answering.BindRTCPWriter(r)
	reader := answering.BindRemoteStream(stream(true), r)
	buffer := make([]byte, 1500)
	for {
		n, attributes, err := reader.Read(buffer, nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.answer(false)
			continue
		}
		if err != nil {
			continue // a datagram that is no RTP packet
		}
		header, err := attributes.GetRTPHeader(buffer[:n])
		must(err)
		if header.GetExtension(twccID) == nil {
			r.screamRx.Receive(ntp(time.Now()), ssrc, n, header.SequenceNumber, 0)
			r.answer(header.Marker)
		}
		r.ask(header.SequenceNumber)
		if d, ok := describe(buffer[header.MarshalSize():n]); ok {
			r.take(d, n-header.MarshalSize())
		}
	}
}

// Read is the socket's, as pion's interceptors see it.
func (r *receiver) Read(buffer []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
	n, peer, err := r.socket.ReadFromUDPAddrPort(buffer)
	if err == nil && !r.peer.IsValid() {
		r.peer = peer
	}
	return n, a, err
}

// Write is the socket's for feedback.
func (r *receiver) Write(packets []rtcp.Packet, _ interceptor.Attributes) (int, error) {
	text, err := rtcp.Marshal(packets)
	must(err)
	return r.socket.WriteToUDPAddrPort(text, r.peer)
}

// answer sends SCReAM's feedback: after a frame, and within it each eight packets or 10 ms.
func (r *receiver) answer(isLast bool) {
	now := time.Now()
	wanted, text := r.screamRx.CreateStandardizedFeedback(ntp(now), isLast)
	if !wanted {
		r.socket.SetReadDeadline(now.Add(feedbackWait))
		return
	}
	r.socket.SetReadDeadline(time.Time{})
	r.socket.WriteToUDPAddrPort(toRFC8888(text), r.peer)
}

func (r *receiver) take(d descriptor, bytes int) {
	r.Lock()
	defer r.Unlock()
	now := time.Now()
	frame := r.pending[d.frame]
	if d.frame < r.next || frame != nil && frame.has[d.index] {
		return // sent twice, or its frame was skipped
	}
	r.total += int64(bytes)
	if !now.Before(r.nextRow) {
		r.row(now)
	}
	if frame == nil {
		frame = &assembly{map[int]bool{}, d.count, d.isKey}
		r.pending[d.frame] = frame
	}
	frame.has[d.index] = true
	if frame.isKey && frame.isComplete() {
		r.skipTo(d.frame)
	}
	r.show(now)
	if d.frame > r.next && now.Sub(r.shown) >= frameWait && now.Sub(r.asked) >= keyFrameWait {
		r.asked = now
		r.Write([]rtcp.Packet{&rtcp.PictureLossIndication{SenderSSRC: ssrc + 1, MediaSSRC: ssrc}}, nil)
	}
}

// ask sends a NACK of the packets before this one that have not come. Each is asked for once: sent
// again it has another number.
func (r *receiver) ask(sequence uint16) {
	if sequence-r.expected >= 1<<15 {
		return // it comes late
	}
	var missing []uint16
	for ; r.expected != sequence; r.expected++ {
		missing = append(missing, r.expected)
	}
	r.expected++
	if missing != nil {
		pairs := rtcp.NackPairsFromSequenceNumbers(missing)
		r.Write([]rtcp.Packet{&rtcp.TransportLayerNack{
			SenderSSRC: ssrc + 1, MediaSSRC: ssrc, Nacks: pairs,
		}}, nil)
	}
}

func (r *receiver) skipTo(frame uint32) {
	for ; r.next < frame; r.next++ {
		delete(r.pending, r.next)
	}
}

func (r *receiver) show(now time.Time) {
	for r.pending[r.next].isComplete() {
		r.frames.row("%d,%d", now.UnixNano(), r.next)
		r.shown = now
		r.skipTo(r.next + 1)
	}
}

func (r *receiver) row(now time.Time) {
	r.rows.row("%d,%d", now.UnixNano(), r.total)
	r.nextRow = now.Add(rowEvery)
}
