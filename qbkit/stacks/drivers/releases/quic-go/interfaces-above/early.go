package main

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/quic-go/quic-go"
)

// Until 0.52 a connection that may carry data before its handshake ends has a type of its own.

func dialEarly(ctx context.Context, local net.PacketConn, peer net.Addr, settings *tls.Config, c *quic.Config) (connection, error) {
	return quic.DialEarly(ctx, local, peer, settings, c)
}

func listenEarly(local net.PacketConn, settings *tls.Config, c *quic.Config) (listener, error) {
	early, err := quic.ListenEarly(local, settings, c)
	return earlyListener{early}, err
}

type earlyListener struct{ *quic.EarlyListener }

func (l earlyListener) Accept(ctx context.Context) (connection, error) {
	return l.EarlyListener.Accept(ctx)
}

func handshakeComplete(c connection) <-chan struct{} {
	return c.(quic.EarlyConnection).HandshakeComplete()
}
