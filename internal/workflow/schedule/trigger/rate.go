package trigger

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/base/value/yamldoc"
)

// Rate is how often something may happen, written as N/TIME.
type Rate struct {
	N   int
	Per time.Duration
}

// ParseRate reads a rate, such as 60/1m.
func ParseRate(text string) (r Rate, ok bool) {
	n, per, ok := strings.Cut(text, "/")
	var err, spanErr error
	r.N, err = strconv.Atoi(n)
	r.Per, spanErr = time.ParseDuration(per)
	return r, ok && err == nil && spanErr == nil && r.N > 0 && r.N <= 1_000_000 && r.Per >= time.Second && r.Per <= 24*time.Hour
}

func readRate(m *yamldoc.Map, key string, dst *Rate) {
	var text string
	if !m.Text(key, &text) {
		return
	}
	r, ok := ParseRate(text)
	if !ok {
		m.Get(key).Errorf("not a rate").Hint = "write how many in which time, such as 60/1m"
		return
	}
	*dst = r
}

// Meter has things happen no more often than a rate: it is a bucket that is full at first. The zero Meter is ready to use.
// Its methods may be called from several goroutines.
type Meter struct {
	mu   sync.Mutex
	used time.Duration // of Rate.Per, by what happened
	at   time.Time     // when that was so
}

// Take counts one more, unless that is too often; then it is possible again after wait.
func (m *Meter) Take(r Rate, now time.Time) (wait time.Duration, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if passed := now.Sub(m.at); passed > 0 {
		m.used, m.at = max(0, m.used-passed), now
	}
	one := r.Per / time.Duration(r.N)
	if m.used+one > r.Per {
		return m.used + one - r.Per, false
	}
	m.used += one
	return 0, true
}
