package auth

import (
	"sync"
	"time"
)

// Rates bound how often each of many may do something: about PerMinute times a minute, and Burst times more after a quiet
// minute. The zero value bounds nothing. Rates must not be copied once used. The methods may be called from several
// goroutines.
//
// There are two buckets, one for this minute and one for the last, each with a count for all that did something in it. The
// rate of the last 60 seconds is the count of this minute, and as much of that of the last as still overlaps. So it may
// be off for one who did all at the end of the last minute, but by less than twice. What was not seen for two minutes is
// forgotten.
type Rates[K comparable] struct {
	Of         string     // what is counted, for errors, such as requests
	mu         sync.Mutex // guards what follows
	per, burst int
	now, last  map[K]count
	begun      time.Time // when this minute began
}

// count is how often something was done in a minute.
type count struct {
	n    int
	over int // how much of the burst was used up before
}

const (
	minute   = time.Minute
	maxRates = 100_000 // that are counted, in both buckets
)

// Set sets how often each may do something. perMinute of 0 means as often as it wants to. What was counted stays.
func (r *Rates[K]) Set(perMinute, burst int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.per, r.burst = perMinute, burst
}

// Take counts k, unless it did too much in the last minute. Then it returns a [*TooManyError].
func (r *Rates[K]) Take(k K) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.per == 0 {
		return nil
	}
	now := time.Now()
	r.turn(now)
	passed := now.Sub(r.begun)
	this, known := r.now[k]
	last := r.last[k]
	if !known {
		this.over = r.over(last)
	}
	most := float64(r.per + r.burst - this.over)
	if before := float64(last.n) * (1 - float64(passed)/float64(minute)); before+float64(this.n)+1 > most {
		return &TooManyError{Of: r.Of, After: max(r.wait(this, last, most)-passed, time.Second)}
	}
	if !known {
		r.room()
	}
	this.n++
	r.now[k] = this
	return nil
}

// over returns how much of the burst is used up after a minute.
func (r *Rates[K]) over(c count) int { return min(max(c.over+c.n-r.per, 0), r.burst) }

// wait returns the time from the beginning of this minute at which one more is possible.
func (r *Rates[K]) wait(this, last count, most float64) time.Duration {
	begin, full := time.Duration(0), last.n
	room := most - 1 - float64(this.n)
	if room < 0 || full == 0 { // not in this minute
		begin, full = minute, this.n
		room = float64(r.per+r.burst-r.over(this)) - 1
	}
	return begin + time.Duration((1-min(room/float64(full), 1))*float64(minute)) + time.Millisecond
}

// turn makes this minute the last one once it is over.
func (r *Rates[K]) turn(now time.Time) {
	switch passed := now.Sub(r.begun); {
	case r.now == nil || passed >= 2*minute:
		r.last, r.now, r.begun = nil, make(map[K]count), now
	case passed >= minute:
		r.last, r.now, r.begun = r.now, make(map[K]count), r.begun.Add(minute)
	}
}

// room forgets one that was counted in this minute, if there are too many.
func (r *Rates[K]) room() {
	if len(r.now) < maxRates/2 {
		return
	}
	for k := range r.now {
		delete(r.now, k)
		return
	}
}
