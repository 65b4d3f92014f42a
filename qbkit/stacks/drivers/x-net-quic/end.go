package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"golang.org/x/net/quic"
)

const lostConnection = 3 // exit status, see docs/howto/own-stack.md

// endOf is the report of one end of the flow on how its connection ended; nil while it stands, and
// where this end closed it.
func endOf(connection *quic.Conn, role, other string) map[string]any {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	err := connection.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		return map[string]any{"by": other, "kind": "application", "code": 0}
	case err.Error() == "idle timeout":
		return map[string]any{"by": "timeout"}
	case err.Error() == "received stateless reset":
		return map[string]any{"by": "reset"}
	}
	// The package keeps the types of transport errors to itself, and has renamed the other one.
	value := reflect.Indirect(reflect.ValueOf(err))
	by, kind, field := other, "transport", "code"
	switch value.Type().Name() {
	case "peerTransportError":
	case "localTransportError":
		by = role
	case "ApplicationError", "ConnectionCloseError":
		kind, field = "application", "Code"
	default:
		return map[string]any{"by": "unknown", "reason": err.Error()}
	}
	reason := value.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, "reason") })
	return map[string]any{"by": by, "kind": kind, "code": value.FieldByName(field).Uint(), "reason": reason.String()}
}

// writeEnd writes such a report.
func writeEnd(report map[string]any, a arguments, role string) {
	report["time_ns"] = time.Now().UnixNano()
	text, err := json.Marshal(report)
	path := filepath.Join(a.out, role+"-end.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		fail("cannot write %s: %v", path, err)
	}
}
