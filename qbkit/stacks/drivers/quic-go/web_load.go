package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// webHost is the name that web clients ask for.
const webHost = "test.example"

// webReport is load.json (qbkit/traces/web/load.py): times in s since the client started.
type webReport struct {
	Version       int     `json:"version"`
	Client        string  `json:"client"`
	ClientVersion string  `json:"client_version"`
	Protocol      string  `json:"protocol"`
	StartedNs     int64   `json:"started_ns"`
	ConnectS      float64 `json:"connect_s"`
	HandshakeS    float64 `json:"handshake_s"`
	FirstByteS    float64 `json:"first_byte_s"`
	LastByteS     float64 `json:"last_byte_s"`
	Bytes         int64   `json:"bytes"`
	Status        int     `json:"status"`

	started time.Time
}

func (r *webReport) now() float64 { return time.Since(r.started).Seconds() }

// webLoad loads one object by HTTP/2 or HTTP/3 and writes load.json.
func webLoad(a arguments) {
	report := &webReport{Version: 1, Client: "go", ClientVersion: webVersion(a.protocol), started: time.Now()}
	report.StartedNs = report.started.UnixNano()
	_, port, _ := net.SplitHostPort(a.address)
	url := fmt.Sprintf("https://%s:%s%s", webHost, port, a.path)
	var transport http.RoundTripper
	if a.protocol == "h3" {
		transport = webH3(a, report)
	} else {
		transport = webH2(a)
	}
	trace := &httptrace.ClientTrace{
		ConnectDone:          func(_, _ string, _ error) { report.ConnectS = report.now() },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { report.HandshakeS = report.now() },
		GotFirstResponseByte: func() { report.FirstByteS = report.now() },
	}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), http.MethodGet, url, nil)
	if err != nil {
		fail("%s is not a path: %v", a.path, err)
	}
	response, err := transport.RoundTrip(request)
	if isTimeout(err) {
		fail("cannot connect to %s by %s within %.0f s", a.address, a.protocol, connectLimit.Seconds())
	}
	if err != nil {
		fail("cannot load %s from %s by %s: %v", a.path, a.address, a.protocol, err)
	}
	if report.FirstByteS == 0 {
		report.FirstByteS = report.now()
	}
	report.Status, report.Protocol = response.StatusCode, webProtocol(response)
	if report.Bytes, err = io.CopyBuffer(io.Discard, struct{ io.Reader }{response.Body}, make([]byte, bufferBytes)); err != nil {
		fail("the load of %s broke after %d bytes: %v", a.path, report.Bytes, err)
	}
	report.LastByteS = report.now()
	text, _ := json.Marshal(report)
	if err := os.WriteFile(filepath.Join(a.out, "load.json"), text, 0o644); err != nil {
		fail("cannot write load.json: %v", err)
	}
	if closer, ok := transport.(io.Closer); ok {
		closer.Close()
	}
}

// webTLS is the same for both protocols: one group, so that the client's first flight is one packet.
func webTLS(protocols ...string) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true,
		ServerName:         webHost,
		NextProtos:         protocols,
		MinVersion:         tls.VersionTLS13,
		CurvePreferences:   []tls.CurveID{tls.X25519},
	}
}

func webH2(a arguments) http.RoundTripper {
	dialer := net.Dialer{Timeout: connectLimit}
	return &http.Transport{
		TLSClientConfig:    webTLS("h2", "http/1.1"),
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, a.address)
		},
	}
}

func webH3(a arguments, report *webReport) http.RoundTripper {
	return &http3.Transport{
		TLSClientConfig:    webTLS(),
		QUICConfig:         config(qlogTracer(a)),
		DisableCompression: true,
		Dial: func(ctx context.Context, _ string, settings *tls.Config, config *quic.Config) (*quic.Conn, error) {
			conn, err := dialEarly(ctx, a.address, settings, config)
			if err == nil {
				<-conn.HandshakeComplete()
				report.ConnectS = report.now()
				report.HandshakeS = report.ConnectS
			}
			return conn, err
		},
	}
}

// webProtocol is what the handshake agreed on.
func webProtocol(response *http.Response) string {
	if response.TLS != nil && response.TLS.NegotiatedProtocol != "" {
		return response.TLS.NegotiatedProtocol
	}
	return response.Proto
}

func webVersion(protocol string) string {
	if protocol == "h3" {
		if build, ok := debug.ReadBuildInfo(); ok {
			for _, module := range build.Deps {
				if module.Path == "github.com/quic-go/quic-go" {
					return "quic-go " + module.Version
				}
			}
		}
	}
	return runtime.Version()
}
