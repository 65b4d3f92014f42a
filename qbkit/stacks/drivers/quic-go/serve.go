package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// serve takes uploads by HTTP/3 until SIGTERM and counts their bytes: the receiver of a flow whose
// sender is a browser. It answers a GET with the page.
func serve(a arguments) {
	certificate, err := tls.LoadX509KeyPair(a.cert, a.key)
	if err != nil {
		fail("cannot use the certificate %s: %v", a.cert, err)
	}
	counted := newCounter(filepath.Join(a.out, "receiver.csv"))
	server := http3.Server{
		TLSConfig:   http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate}}),
		QUICConfig:  config(qlogTracer(a)),
		ConnContext: reporter(a.out),
		Handler:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, a, counted) }),
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	conn := listenOn(a.address)
	go func() {
		if err := server.Serve(conn); err != http.ErrServerClosed {
			fail("cannot serve on %s: %v", a.address, err)
		}
	}()
	fmt.Println("ready")
	<-signals
	counted.close()
	server.Close()
}

// http3End is endOf for a connection whose application is HTTP/3.
func http3End(err error, role string) *end {
	var application *http3.Error
	ended := endOf(err, role)
	if errors.As(err, &application) {
		ended = closed(application.Remote, role, "http3", uint64(application.ErrorCode), application.ErrorMessage)
	}
	if ended != nil && ended.Kind == "application" {
		ended.Kind = "http3"
	}
	return ended
}

// reporter makes each connection report its end into the folder out.
//
//go:noinline
func reporter(out string) func(context.Context, *quic.Conn) context.Context {
	return func(ctx context.Context, connection *quic.Conn) context.Context {
		context.AfterFunc(connection.Context(), func() { reportEnd(connection, out) })
		return ctx
	}
}

// reportEnd reports the end of an upload's connection, unless its sender was done.
func reportEnd(connection *quic.Conn, out string) {
	ended := http3End(context.Cause(connection.Context()), "receiver")
	if ended == nil || ended.isDone() || ended.By == "sender" && *ended.Code == uint64(http3.ErrCodeNoError) {
		return
	}
	ended.write(out, "receiver")
}

func answer(w http.ResponseWriter, r *http.Request, a arguments, counted *counter) {
	switch r.Method {
	case http.MethodPost, http.MethodPut:
		drain(r.Body, counted)
	case http.MethodGet:
		w.Header().Set("Content-Type", "text/html")
		http.ServeFile(w, r, a.page)
	}
}

// fetch downloads by HTTP/3 for a time or so many bytes: the receiver of a flow whose sender is a
// server.
func fetch(a arguments) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if a.size == 0 {
		ctx, stop = context.WithTimeout(ctx, a.duration)
		defer stop()
	}
	counted := newCounter(filepath.Join(a.out, "receiver.csv"))
	sendConnectionOptions(a.connectionOptions)
	transport := http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "qbkit"},
		QUICConfig:      config(qlogTracer(a)),
		Dial:            dialEarly,
	}
	problem := download(ctx, &transport, a, counted)
	counted.close()
	transport.Close()
	if problem != nil {
		leave(problem, http3End(problem, "receiver"), a.out, "receiver")
	}
}

// dialEarly does what http3.Transport does by itself, on a socket of ours.
func dialEarly(ctx context.Context, address string, settings *tls.Config, config *quic.Config) (*quic.Conn, error) {
	local, peer := bindAny(address)
	transport := quic.Transport{Conn: local}
	return transport.DialEarly(ctx, peer, settings, config)
}

func download(ctx context.Context, transport *http3.Transport, a arguments, counted *counter) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s%s", a.address, a.path), nil)
	if err != nil {
		return within(fmt.Sprintf("cannot ask %s for %s", a.address, a.path), err)
	}
	response, err := transport.RoundTrip(request)
	if ctx.Err() != nil {
		return nil // the flow is over
	}
	if isTimeout(err) {
		return said(fmt.Sprintf("cannot connect to %s within %.0f s", a.address, connectLimit.Seconds()))
	}
	if err != nil {
		return within(fmt.Sprintf("cannot download from %s", a.address), err)
	}
	if response.StatusCode != http.StatusOK {
		return said(fmt.Sprintf("%s answered %s", a.address, response.Status))
	}
	body := io.Reader(response.Body)
	if a.size > 0 {
		body = io.LimitReader(body, a.size)
	}
	if err := drain(body, counted); err != nil && ctx.Err() == nil {
		return within("the download broke", err)
	}
	return nil
}

// drain counts a body to its end.
func drain(body io.Reader, counted *counter) error {
	buffer := make([]byte, bufferBytes)
	for {
		n, err := body.Read(buffer)
		counted.add(n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// origin answers every request by HTTP/1.1 with zeroes without end: what stands behind a server
// that only forwards.
func origin(a arguments) {
	zeroes := make([]byte, bufferBytes)
	handler := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(zeroes); err != nil {
				return
			}
		}
	}
	listener, err := net.Listen("unix", a.address)
	if err != nil {
		fail("cannot serve on %s: %v", a.address, err)
	}
	fail("cannot serve on %s: %v", a.address, http.Serve(listener, http.HandlerFunc(handler)))
}
