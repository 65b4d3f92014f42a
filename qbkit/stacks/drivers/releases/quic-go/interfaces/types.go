package main

import "github.com/quic-go/quic-go"

// Until 0.52 both were interfaces.
type (
	connection = quic.Connection
	stream     = quic.Stream
)
