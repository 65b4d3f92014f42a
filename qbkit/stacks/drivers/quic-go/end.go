package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quic-go/quic-go"
)

const lostConnection = 3 // exit status, see docs/howto/own-stack.md

// end is how a connection ended before its time.
type end struct {
	TimeNs int64   `json:"time_ns"`
	By     string  `json:"by"`
	Kind   string  `json:"kind,omitempty"`
	Code   *uint64 `json:"code,omitempty"`
	Reason string  `json:"reason,omitempty"`
}

// endOf is the end that an error reports to the end of the flow with this role; nil if it is none.
func endOf(err error, role string) *end {
	var transport *quic.TransportError
	var application *quic.ApplicationError
	var idle *quic.IdleTimeoutError
	var reset *quic.StatelessResetError
	switch {
	case errors.As(err, &transport):
		return closed(transport.Remote, role, "transport", uint64(transport.ErrorCode), transport.ErrorMessage)
	case errors.As(err, &application):
		return closed(application.Remote, role, "application", uint64(application.ErrorCode), application.ErrorMessage)
	case errors.As(err, &idle):
		return &end{By: "timeout"}
	case errors.As(err, &reset):
		return &end{By: "reset"}
	}
	return nil
}

func closed(remote bool, role, kind string, code uint64, reason string) *end {
	by := role
	if remote {
		by = map[string]string{"sender": "receiver", "receiver": "sender"}[role]
	}
	return &end{By: by, Kind: kind, Code: &code, Reason: reason}
}

// isDone tells whether a sender closed its connection because its upload is over.
func (e *end) isDone() bool {
	return e.By == "sender" && (e.Code == nil || *e.Code == 0)
}

// within says what failed, and why.
//
// What reports an end stays out of the functions that move data, and takes the folder rather than
// all arguments. In them it would enlarge their stacks, and the size of stacks and heap decides when
// Go collects garbage: flows of quic-go would send packets at other times than published ones.
//
//go:noinline
func within(what string, err error) error {
	return fmt.Errorf("%s: %w", what, err)
}

// said is an error with this text.
//
//go:noinline
func said(text string) error {
	return errors.New(text)
}

// write writes the report of one end of the flow into the folder out.
func (e *end) write(out, role string) {
	e.TimeNs = time.Now().UnixNano()
	text, err := json.Marshal(e)
	path := filepath.Join(out, role+"-end.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		fail("cannot write %s: %v", path, err)
	}
}

// leave ends the program on an error that is not nil: as a lost connection if it is one.
func leave(err error, ended *end, out, role string) {
	if ended == nil {
		fail("%v", err)
	}
	ended.write(out, role)
	os.Exit(lostConnection)
}
