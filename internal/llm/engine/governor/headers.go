package governor

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The kinds of limit.
const (
	requests     = "requests"
	tokens       = "tokens"
	inputTokens  = "input-tokens"
	outputTokens = "output-tokens"
	ownRequests  = "requests_per_minute" // those of the configuration
	ownTokens    = "tokens_per_minute"
)

// reading is what a reply says about a limit.
type reading struct {
	kind             string
	limit, remaining float64
	reset            time.Duration // until nothing is used of it; 0 is unknown
}

// readings returns what the header fields of a reply, which are text from outside, say about limits. What makes no
// sense is left out.
func readings(h http.Header, now time.Time) []reading {
	if date, err := http.ParseTime(h.Get("Date")); err == nil && h.Get("Date") != "" {
		now = date // times are those of the server's clock
	}
	var list []reading
	for _, kind := range []string{requests, tokens, inputTokens, outputTokens} {
		for _, names := range [][3]string{
			{"Anthropic-Ratelimit-" + kind + "-Limit", "Anthropic-Ratelimit-" + kind + "-Remaining", "Anthropic-Ratelimit-" + kind + "-Reset"},
			{"X-Ratelimit-Limit-" + kind, "X-Ratelimit-Remaining-" + kind, "X-Ratelimit-Reset-" + kind},
		} {
			limit, known := number(h.Get(names[0]))
			remaining, left := number(h.Get(names[1]))
			if known && left && limit >= 1 {
				list = append(list, reading{kind, limit, min(remaining, limit), resetIn(h.Get(names[2]), now)})
				break
			}
		}
	}
	return list
}

// usedUp reports whether a limit has nothing left.
func usedUp(list []reading) bool {
	for _, r := range list {
		if r.remaining < 1 {
			return true
		}
	}
	return false
}

// number reads a number that is not negative.
func number(text string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil && !math.IsNaN(n) && n >= 0 && n <= 1e15
}

// resetIn reads how long a limit needs: a time, a duration such as 6m0s or 12ms, seconds, or a Unix time. It is 0 for
// a time in the past and for what cannot be read, and a day at most.
func resetIn(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return min(max(0, at.Sub(now)), longestWait)
	}
	if d, err := time.ParseDuration(text); err == nil {
		return min(max(0, d), longestWait)
	}
	n, ok := number(text)
	switch {
	case !ok:
		return 0
	case n > 1e12:
		n = n/1e3 - float64(now.Unix())
	case n > 1e9:
		n -= float64(now.Unix())
	}
	return seconds(n)
}
