package a2a

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// This file is about agents that cannot be reached for a while: one that is started anew, or a gateway before it that
// has too much to do. What was asked is asked again, and is the same message by its id, so an agent that has done it
// already can tell.

const (
	// attempts is how often something is asked, and firstWait and maxWait how long it is waited before the second time
	// and at most before another one: 25 seconds in all.
	attempts  = 7
	firstWait = 500 * time.Millisecond
	maxWait   = 10 * time.Second
)

// passing is an error that may be of a moment. After is how long the other side wants to be left alone; 0 if it does
// not say.
type passing struct {
	error
	after time.Duration
}

func (p passing) Unwrap() error { return p.error }

// errElsewhere is the error of an answer that is a redirection.
var errElsewhere = errors.New("it sends us elsewhere, which is not followed")

// ofMoment is the error of a request that was not answered.
func ofMoment(err error) error {
	if _, wrong := errors.AsType[*tls.CertificateVerificationError](err); wrong || errors.Is(err, errElsewhere) {
		return err
	}
	return passing{error: err}
}

// refused is the error of an answer with a status that is not the right one.
func refused(resp *http.Response) error {
	err := errors.New("it answers " + resp.Status)
	if !slices.Contains([]int{
		http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}, resp.StatusCode) {
		return err
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // A date is no number, and is not looked at.
	return passing{err, time.Duration(min(max(seconds, 0), int(maxWait/time.Second))) * time.Second}
}

// insist does something, and again if what is in its way may be of a moment.
func (c *Client) insist(ctx context.Context, do func() error) error {
	wait := c.wait
	for n := 1; ; n++ {
		err := do()
		p, again := errors.AsType[passing](err)
		if err == nil || !again || n == attempts || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(max(wait, p.after)):
		case <-ctx.Done():
			return err
		}
		wait = min(2*wait, maxWait)
	}
}
