package main

import _ "unsafe" // for go:linkname

// additionalParameters is quic-go's own hook for transport parameters that it does not know.
//
//go:linkname additionalParameters github.com/quic-go/quic-go/internal/wire.AdditionalTransportParametersClient
var additionalParameters map[uint64][]byte

// googleConnectionOptions is the transport parameter by which a client of Google QUICHE asks for
// things of the server: tags of four letters, one after the other.
const googleConnectionOptions = 0x3128

func sendConnectionOptions(tags string) {
	if tags != "" {
		additionalParameters = map[uint64][]byte{googleConnectionOptions: []byte(tags)}
	}
}
