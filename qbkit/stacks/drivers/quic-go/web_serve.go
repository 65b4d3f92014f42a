package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/quic-go/quic-go/http3"
)

// page is a file of the site, in memory.
type page struct {
	content []byte
	kind    string
}

// webServe answers the paths of a folder's files by HTTP/2 (TCP) and HTTP/3 (UDP), on one port
// number, until SIGTERM.
func webServe(a arguments) {
	certificate, err := tls.LoadX509KeyPair(a.cert, a.key)
	if err != nil {
		fail("cannot use the certificate %s: %v", a.cert, err)
	}
	os.Setenv(controllerEnv, a.controller)
	pages := readSite(a.site)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", found.kind)
		w.Header().Set("Content-Length", strconv.Itoa(len(found.content)))
		w.Write(found.content)
	})
	settings := &tls.Config{
		Certificates:     []tls.Certificate{certificate},
		MinVersion:       tls.VersionTLS13,
		CurvePreferences: []tls.CurveID{tls.X25519},
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	listener, err := net.Listen("tcp4", a.address)
	if err != nil {
		fail("cannot listen on %s: %v", a.address, err)
	}
	h2 := &http.Server{Handler: handler, TLSConfig: settings}
	h3 := &http3.Server{Handler: handler, TLSConfig: http3.ConfigureTLSConfig(settings), QUICConfig: config(qlogTracer(a))}
	go run("h2", func() error { return h2.ServeTLS(listener, "", "") })
	conn := listenOn(a.address)
	go run("h3", func() error { return h3.Serve(conn) })
	fmt.Println("ready")
	<-signals
	h3.Close()
	h2.Shutdown(context.Background())
}

func run(protocol string, serve func() error) {
	if err := serve(); err != http.ErrServerClosed {
		fail("cannot serve %s: %v", protocol, err)
	}
}

func readSite(folder string) map[string]page {
	pages := map[string]page{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		kind := mime.TypeByExtension(filepath.Ext(path))
		if kind == "" {
			kind = "application/octet-stream"
		}
		name, _ := filepath.Rel(folder, path)
		pages["/"+filepath.ToSlash(name)] = page{content, kind}
		return err
	})
	if err != nil {
		fail("cannot read the site %s: %v", folder, err)
	}
	return pages
}
