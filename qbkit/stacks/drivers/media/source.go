package main

import (
	crypto "crypto/rand"
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// The statistical encoder of RFC 8593, section 5, with its example values. A key frame is the first
// of a burst of eight frames that together are as large as eight usual ones. Two things differ: frames
// keep their times, and each frame follows the latest target rate.
const (
	keyFrameScale = 13500.0 / 4170
	burstFrames   = 8
	sizeScale     = 0.15 // of the Laplace distribution of the sizes of other frames
	leastScale    = 0.1
)

// source draws the sizes of frames; its seed is that of the run, by way of the guest's getrandom.
type source struct {
	random   *rand.Rand
	sinceKey int
}

func newSource() *source {
	var seed [16]byte
	crypto.Read(seed[:])
	return &source{random: rand.New(rand.NewPCG(
		binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])))}
}

// wantKey makes the next frame a key frame; the first one always is.
func (s *source) wantKey() { s.sinceKey = 0 }

// next is the size of the next frame in usual frames, and whether it is a key frame.
func (s *source) next() (scale float64, isKey bool) {
	k := s.sinceKey
	s.sinceKey++
	switch {
	case k == 0:
		return keyFrameScale, true
	case k < burstFrames:
		return (burstFrames - keyFrameScale) / (burstFrames - 1), false
	}
	u := s.random.Float64() - 0.5
	noise := -sizeScale * math.Copysign(math.Log(1-2*math.Abs(u)), u)
	return max(leastScale, 1+noise), false
}
