// Package retry says how often work that failed is tried again, and how long to wait before.
//
// provider.Retryable reports whether a failed call may succeed later.
package retry

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Policy says how often something is tried, and how long to wait between tries. The zero
// Policy tries once and waits for nothing.
type Policy struct {
	Attempts   int           // tries in all; 0 and 1 mean no repetition
	Backoff    time.Duration // wait before the second try; not negative
	Factor     float64       // by which each further wait is longer; at least 1
	MaxBackoff time.Duration // longest wait, before Jitter; not negative
	Jitter     float64       // part by which a wait is randomly shorter or longer, from 0 to 1
	Most       time.Duration // see [Policy.Patience]
}

// Wait returns how long to wait after failures in a row, at least 1, before the next try. ok is
// false if the tries are used up, or if the provider asks to wait for longer than
// [Policy.Patience]; asked is that time, 0 if it does not ask. The wait is not shorter than
// asked. random is a number from 0 up to 1.
func (p Policy) Wait(failures int, asked time.Duration, random float64) (wait time.Duration, ok bool) {
	if failures >= p.Attempts || asked > p.Patience() {
		return 0, false
	}
	most := float64(p.MaxBackoff)
	backoff := min(float64(p.Backoff), most)
	for range failures - 1 {
		if backoff *= p.Factor; backoff >= most {
			backoff = most
			break
		}
	}
	return max(time.Duration(backoff*(1+p.Jitter*(2*random-1))), asked), true
}

// Patience returns how long a provider may ask to wait: Most, or else a minute, or MaxBackoff if that is
// longer. Work whose provider asks for more ends instead.
func (p Policy) Patience() time.Duration {
	if p.Attempts == 0 {
		return 0
	}
	if p.Most > 0 {
		return p.Most
	}
	return max(p.MaxBackoff, time.Minute)
}

// Sleep waits for d. If ctx ends before, it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// longest bounds what a server may ask for.
const longest = 24 * time.Hour

// After returns how long the Retry-After of a reply asks to wait, 0 if it does not ask, at most a day. A
// date is counted from the reply's own Date, whose clock is the one that set it.
func After(h http.Header) time.Duration {
	asked := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(asked, 64); err == nil {
		if !(seconds > 0) { // also if it is not a number
			return 0
		}
		return time.Duration(min(seconds*float64(time.Second), float64(longest)))
	}
	at, err := http.ParseTime(asked)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(0, at.Sub(now)), longest)
}
