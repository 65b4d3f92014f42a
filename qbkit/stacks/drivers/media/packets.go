package main

import (
	"encoding/binary"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
)

// A frame travels in RTP packets of one timestamp, of which the last has the marker. Each payload
// begins with a descriptor: number of the frame, index of the packet, packets of the frame, and
// whether it is a key frame.
const (
	ssrc            = 0x71626b74
	twccID          = 1
	twccURI         = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
	clockHz         = 90000
	packetBytes     = 1200 // as in WebRTC: RTP header with its extension, and payload
	payloadBytes    = packetBytes - 20
	descriptorBytes = 9
)

type packet struct {
	header  rtp.Header
	payload []byte
}

func (p packet) size() int { return p.header.MarshalSize() + len(p.payload) }

// numbering gives packets their sequence numbers as they get into line, and keeps the latest. One
// that is sent again gets a new number, so that a second loss of it is seen, too.
type numbering struct {
	next uint16
	kept [4096]packet
}

func (n *numbering) number(p packet) packet {
	p.header.SequenceNumber = n.next
	n.kept[int(n.next)%len(n.kept)] = p
	n.next++
	return p
}

func (n *numbering) find(sequence uint16) (packet, bool) {
	p := n.kept[int(sequence)%len(n.kept)]
	return p, p.payload != nil && p.header.SequenceNumber == sequence
}

// packetizer makes packets of frames.
type packetizer struct{ frame uint32 }

func (p *packetizer) packets(bytes int, timestamp uint32, isKey bool) []packet {
	count := (bytes + payloadBytes - 1) / payloadBytes
	found := make([]packet, count)
	for i := range found {
		size := max(descriptorBytes, min(payloadBytes, bytes-i*payloadBytes))
		payload := make([]byte, size)
		binary.BigEndian.PutUint32(payload, p.frame)
		binary.BigEndian.PutUint16(payload[4:], uint16(i))
		binary.BigEndian.PutUint16(payload[6:], uint16(count))
		if isKey {
			payload[8] = 1
		}
		found[i] = packet{rtp.Header{
			Version: 2, Marker: i == count-1, PayloadType: 96, Timestamp: timestamp, SSRC: ssrc,
		}, payload}
	}
	p.frame++
	return found
}

type descriptor struct {
	frame        uint32
	index, count int
	isKey        bool
}

func describe(payload []byte) (d descriptor, ok bool) {
	if len(payload) < descriptorBytes {
		return d, false
	}
	return descriptor{
		binary.BigEndian.Uint32(payload), int(binary.BigEndian.Uint16(payload[4:])),
		int(binary.BigEndian.Uint16(payload[6:])), payload[8] == 1,
	}, true
}

// stream describes the flow to pion's interceptors: with transport-wide sequence numbers or without.
func stream(hasTransportSequence bool) *interceptor.StreamInfo {
	info := &interceptor.StreamInfo{SSRC: ssrc, ClockRate: clockHz}
	if hasTransportSequence {
		info.RTPHeaderExtensions = []interceptor.RTPHeaderExtension{{URI: twccURI, ID: twccID}}
	}
	return info
}
