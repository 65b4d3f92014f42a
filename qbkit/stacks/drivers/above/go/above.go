package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	chunkBytes = 16384 // written at once above an application, as with TCP (tcp/app.c)
	lateBy     = 10 * time.Millisecond
	never      = math.MaxInt64
)

// application is what a sender has to send, and when: qbkit/spec/app.py. It writes objects.csv, a
// row when an object is released, or when an on-time ends.
type application struct {
	kind           string
	objects        [][2]int64 // time after the start in ns, and bytes
	on, off, think int64      // ns
	size           int64      // of a response
	seed           uint64
	start, offAt   int64 // ns; of the flow, or of the present or next on-time, or response
	left, sentInOn int64
	asked, isOn    bool
	rows           *os.File
}

// newApplication reads QBKIT_APP; the application begins now.
func newApplication(text string) *application {
	words := strings.Split(text, " ")
	a := &application{kind: words[0], start: time.Now().UnixNano(), rows: newTable("objects.csv")}
	switch a.kind {
	case "onoff":
		a.on, a.off, a.seed = number(words[1]), number(words[2]), uint64(number(words[3]))
	case "requests":
		a.size, a.think, a.seed = number(words[1]), number(words[2]), uint64(number(words[3]))
	default:
		for _, word := range words[1:] {
			at, bytes, _ := strings.Cut(word, ":")
			a.objects = append(a.objects, [2]int64{number(at), number(bytes)})
		}
	}
	return a
}

// due is how many bytes it wants to write now; if none, when it does, or that it waits for an
// answer.
func (a *application) due() (bytes, at int64, wantsAnswer bool) {
	now := time.Now().UnixNano()
	switch {
	case a.kind == "onoff":
		return a.dueOn(now)
	case a.left > 0:
		return a.left, 0, false
	case a.kind == "requests" && a.asked:
		return 0, 0, true
	case a.kind == "requests" && now < a.start:
		return 0, a.start, false
	case a.kind == "requests":
		a.asked = true
		return a.release(now, a.size), 0, false
	case len(a.objects) == 0:
		return 0, never, false
	case now < a.start+a.objects[0][0]:
		return 0, a.start + a.objects[0][0], false
	}
	next := a.objects[0]
	a.objects = a.objects[1:]
	return a.release(a.start+next[0], next[1]), 0, false
}

func (a *application) dueOn(now int64) (bytes, at int64, wantsAnswer bool) {
	if a.isOn && now >= a.offAt {
		a.row(a.start, a.sentInOn)
		a.start, a.isOn, a.sentInOn = a.offAt+a.drawn(a.off), false, 0
	}
	if !a.isOn && now < a.start {
		return 0, a.start, false
	}
	if !a.isOn {
		a.start, a.offAt, a.isOn = now, now+a.drawn(a.on), true
	}
	return math.MaxInt64, 0, false
}

func (a *application) written(bytes int64) {
	if a.kind == "onoff" {
		a.sentInOn += bytes
	} else {
		a.left -= bytes
	}
}

func (a *application) answered() {
	a.asked = false
	a.start = time.Now().UnixNano() + a.drawn(a.think)
}

func (a *application) release(at, bytes int64) int64 {
	a.row(at, bytes)
	a.left = bytes
	return bytes
}

func (a *application) row(at, bytes int64) { fmt.Fprintf(a.rows, "%d,%d\n", at, bytes) }

// drawn is a time of this mean, exponential if there is a seed: xorshift64*, as in c/above.c.
func (a *application) drawn(mean int64) int64 {
	if a.seed == 0 {
		return mean
	}
	a.seed ^= a.seed >> 12
	a.seed ^= a.seed << 25
	a.seed ^= a.seed >> 27
	part := float64((a.seed*2685821657736338717)>>11) / (1 << 53)
	return int64(-math.Log(1-part) * float64(mean))
}

// feed sends what the application has, when it has it, until the connection ends.
func feed(connection connection, _ int64) error {
	a := newApplication(os.Getenv("QBKIT_APP"))
	chunk := make([]byte, chunkBytes)
	stream, err := open(connection)
	for err == nil {
		bytes, at, wantsAnswer := a.due()
		switch {
		case bytes > 0:
			var n int
			n, err = stream.Write(chunk[:min(bytes, chunkBytes)])
			a.written(int64(n))
		case !wantsAnswer:
			time.Sleep(time.Duration(at - time.Now().UnixNano()))
		default:
			stream.Close()
			if _, err = io.Copy(io.Discard, stream); err == nil {
				a.answered()
				stream, err = open(connection)
			}
		}
	}
	return within("cannot send", err)
}

func open(connection connection) (stream, error) {
	stream, err := connection.OpenStream()
	if err == nil {
		_, err = stream.Write(make([]byte, headerBytes))
	}
	return stream, err
}

// reading is what a receiver's application does with what comes: it reads no faster than
// QBKIT_READ_MBPS says, and writes arrived.csv, a row of each read.
type reading struct {
	arrived           *os.File
	nsPerByte         float64
	total, sinceBytes int64
	since             time.Time
}

// newReading is nil where a receiver just reads.
func newReading() *reading {
	r := &reading{}
	if os.Getenv("QBKIT_APP_OUT") != "" {
		r.arrived = newTable("arrived.csv")
	}
	if text := os.Getenv("QBKIT_READ_MBPS"); text != "" {
		mbps, err := strconv.ParseFloat(text, 64)
		if err != nil {
			fail("QBKIT_READ_MBPS=%s is no number", text)
		}
		r.nsPerByte = 8e3 / mbps
	}
	if r.arrived == nil && r.nsPerByte == 0 {
		return nil
	}
	return r
}

// took notes that so many bytes were read; it returns when the application reads again. Time in
// which there was nothing to read is not made up for.
func (r *reading) took(bytes int) {
	now := time.Now()
	r.total += int64(bytes)
	if r.arrived != nil {
		fmt.Fprintf(r.arrived, "%d,%d\n", now.UnixNano(), r.total)
	}
	if now.Sub(r.ready()) > lateBy {
		r.since, r.sinceBytes = now, 0
	}
	r.sinceBytes += int64(bytes)
	time.Sleep(r.ready().Sub(now))
}

func (r *reading) ready() time.Time {
	return r.since.Add(time.Duration(float64(r.sinceBytes) * r.nsPerByte))
}

func newTable(name string) *os.File {
	path := filepath.Join(os.Getenv("QBKIT_APP_OUT"), name)
	file, err := os.Create(path)
	if err != nil {
		fail("cannot write %s: %v", path, err)
	}
	fmt.Fprintln(file, "time_ns,bytes")
	return file
}

func number(word string) int64 {
	value, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		fail("QBKIT_APP has %q for a number", word)
	}
	return value
}
