package workload

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// Class is why a request failed.
type Class string

// The classes of failure.
const (
	Timeout Class = "timeout" // no response in time
	Refused Class = "refused" // nobody listens
	Reset   Class = "reset"   // the connection broke
	DNS     Class = "dns"     // the name could not be resolved
	HTTP5xx Class = "5xx"
	HTTP4xx Class = "4xx"
	Status  Class = "status"  // another status than expected
	Body    Class = "body"    // another body than expected
	Dropped Class = "dropped" // not sent: too many requests were under way
	Other   Class = "other"
)

// Classes lists all classes.
var Classes = []Class{Timeout, Refused, Reset, DNS, HTTP5xx, HTTP4xx, Status, Body, Dropped, Other}

// classify tells why a request got no response.
func classify(err error) Class {
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case errors.As(err, &dns):
		return DNS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout(),
		errors.Is(err, syscall.ETIMEDOUT):
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		strings.Contains(err.Error(), "server closed idle connection"):
		return Reset
	}
	return Other
}

// sampleSize is how much of a body is kept to show.
const sampleSize = 256

// excerpt is the beginning of a body on one line.
func excerpt(body []byte) string {
	text := string(body[:min(len(body), sampleSize)])
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if text == "" {
		return "(empty)"
	}
	return text
}
