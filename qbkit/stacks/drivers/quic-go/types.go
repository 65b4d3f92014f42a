package main

import "github.com/quic-go/quic-go"

// What quic-go calls them; before 0.53 they were interfaces.
type (
	connection = *quic.Conn
	stream     = *quic.Stream
)
