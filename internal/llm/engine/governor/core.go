package governor

import (
	"maps"
	"math"
	"slices"
	"time"
)

const (
	firstAtOnce = 2                     // calls at once of an account of which nothing is known
	accepted    = 50 * time.Millisecond // after so long without a refusal the first calls count as accepted
	shortest    = 10 * time.Millisecond // the same for many calls
	firstProbe  = 5 * time.Second
	lastProbe   = 30 * time.Second
	rateWait    = 5 * time.Second // a refusal that asks for more is about a rate
	shortGuess  = 5 * time.Second // that a call waits because of header fields of an account that never refused
	longGuess   = time.Minute     // the same for one that did
	longestWait = 24 * time.Hour

	outages     = 5                // calls that were not answered, one after another
	outagesIn   = time.Minute      // within which they open the breaker
	shortOutage = 10 * time.Second // for which it is open first
	longOutage  = 5 * time.Minute  // the same for later ones
)

// state is what is known of a limit: that of an account for a model. Its methods read no clock and wait for nothing.
type state struct {
	AtOnce  int           `json:"at_once"`           // calls
	Refused bool          `json:"refused,omitempty"` // a call was refused once, so AtOnce grows by probes
	Step    int           `json:"step,omitempty"`    // by which AtOnce grows with the next success, 0 for not
	Probe   time.Duration `json:"probe,omitempty"`   // from the last refusal until one more call is tried
	ProbeAt time.Time     `json:"probe_at,omitzero"` // when that is

	Begun       time.Time `json:"begun,omitzero"`        // the last call
	LastRefusal time.Time `json:"last_refusal,omitzero"` // of a call
	Streak      time.Time `json:"streak,omitzero"`       // the first refusal after which no call succeeded
	InARow      int       `json:"in_a_row,omitempty"`    // refusals since Streak of calls that began after another one
	Proven      bool      `json:"proven,omitempty"`      // a call that began after LastRefusal has succeeded
	Paused      time.Time `json:"paused,omitzero"`       // until then no call begins
	AskAt       time.Time `json:"ask_at,omitzero"`       // in a long pause: when one call asks all the same

	Buckets map[string]*bucket `json:"buckets,omitempty"`
	Shares  map[string]*share  `json:"shares,omitempty"` // of the processes, by their ids

	Outages  []time.Time   `json:"outages,omitempty"` // calls that the provider could not answer, since one succeeded
	Open     time.Time     `json:"open,omitzero"`     // until then the provider counts as out of reach
	OpenTime time.Duration `json:"open_time,omitempty"`

	Client   string `json:"client,omitempty"` // its name where it was used last
	Model    string `json:"model,omitempty"`
	Calls    int    `json:"calls"`
	Refusals int    `json:"refusals"`
	Output   int    `json:"output,omitempty"` // average length of a reply, in tokens
}

// share is what a process has of a limit.
type share struct {
	Held    int `json:"held"`    // calls under way
	Waiting int `json:"waiting"` // calls that have not begun
}

// bucket is a limit of so much in a time. It fills by itself.
type bucket struct {
	Limit   float64   `json:"limit"`
	Level   float64   `json:"level"` // at At
	Rate    float64   `json:"rate"`  // per second; 0 is unknown
	At      time.Time `json:"at"`
	Taken   float64   `json:"taken"`             // by all calls
	Own     bool      `json:"own,omitempty"`     // configured
	Doubted bool      `json:"doubted,omitempty"` // a call succeeded where the bucket was empty

	Recent map[int64]float64 `json:"recent,omitempty"` // taken from an own one by calls that began in a second, in Unix time
}

// ownMinute is how many seconds it takes until what a call took of an own bucket is back. The call may have begun at the end of its second.
const ownMinute = 61

// recent reports whether a second is in the last minute, by the clock of any process.
func recent(second int64, now time.Time) bool {
	age := now.Unix() - second
	return age > -ownMinute && age < ownMinute
}

// level returns how much is in the bucket.
func (b *bucket) level(now time.Time) float64 {
	if b.Own {
		level := b.Limit
		for second, n := range b.Recent {
			if recent(second, now) {
				level -= n
			}
		}
		return level
	}
	passed := max(0, now.Sub(b.At).Seconds())
	return min(b.Limit, b.Level+b.Rate*passed)
}

// spend takes n, also if it is less than 0, for a call that began at a time.
func (b *bucket) spend(began, now time.Time, n float64) {
	maps.DeleteFunc(b.Recent, func(second int64, _ float64) bool { return !recent(second, now) })
	if b.Recent == nil {
		b.Recent = make(map[int64]float64)
	}
	b.Recent[began.Unix()] += n
}

// wait returns how long b needs until it has n, or as much as it can have.
func (b *bucket) wait(now time.Time, n float64) (wait time.Duration) {
	lacking := min(n, b.Limit) - b.level(now)
	switch {
	case lacking <= 0 || b.Rate <= 0 || b.Doubted:
		return 0
	case !b.Own:
		return max(time.Millisecond, seconds(lacking/b.Rate))
	}
	for _, second := range slices.Sorted(maps.Keys(b.Recent)) {
		if recent(second, now) && lacking > 0 {
			lacking -= b.Recent[second]
			wait = time.Unix(second+ownMinute, 0).Sub(now)
		}
	}
	return max(wait, time.Millisecond)
}

// amount is what a call takes, by the kind of bucket.
type amount struct{ input, output float64 }

// of returns what a call takes from a bucket.
func (a amount) of(kind string) float64 {
	switch kind {
	case requests, ownRequests:
		return 1
	case inputTokens:
		return a.input
	case outputTokens:
		return a.output
	}
	return a.input + a.output
}

// ticket is a call under way.
type ticket struct {
	began   time.Time
	among   int                // calls under way with it
	probe   bool               // one more than AtOnce
	guessed bool               // it began although a bucket seemed to be empty
	need    amount             // taken from the buckets
	taken   map[string]float64 // by all calls when it began, from each bucket
}

// Limits is what the configuration says about the limits of a client.
type Limits struct {
	Learn             bool          // from the replies of the provider; otherwise refusals are errors like others
	Share             bool          // what is known with the other processes of the user
	Concurrency       int           // most calls at once; 0 leaves it to the provider
	ParkAfter         time.Duration // longest wait for a provider
	RequestsPerMinute int           // 0 leaves it to the provider
	TokensPerMinute   int           // likewise
}

// DefaultLimits are those of a client without any of its own.
func DefaultLimits() Limits { return Limits{Learn: true, Share: true, ParkAfter: time.Minute} }

// None reports whether no call has to wait.
func (l Limits) None() bool {
	return !l.Learn && l.Concurrency == 0 && l.RequestsPerMinute == 0 && l.TokensPerMinute == 0
}

// reason says why a call waits.
type reason string

// The reasons.
const (
	slots  reason = "concurrency" // as many calls as the account allows are under way
	rate   reason = "rate"        // a limit of requests or tokens is used up
	paused reason = "refused"     // the provider refused a call and said when to come back
	outage reason = "outage"      // the provider did not answer the last calls
)

// heldCalls returns how many calls are under way.
func (s *state) heldCalls() int {
	n := 0
	for _, p := range s.Shares {
		n += p.Held
	}
	return n
}

// admit begins a call of the process id that has waited since a time, if it may begin now. Otherwise it returns why
// not, and when it is worth asking again.
func (s *state) admit(now time.Time, id string, r Limits, need amount, since time.Time) (*ticket, reason, time.Duration) {
	s.AtOnce = max(s.AtOnce, 1)
	if now.Sub(s.LastRefusal) > r.ParkAfter+longGuess { // what was then says nothing about now
		s.Streak, s.InARow = time.Time{}, 0
	}
	t := &ticket{began: now, need: need}
	if wait := s.Paused.Sub(now); wait > 0 {
		if s.AskAt.IsZero() || now.Before(s.AskAt) {
			return nil, paused, wait
		}
		s.AskAt = now.Add(longGuess)
	}
	held, limit := s.heldCalls(), s.AtOnce
	switch {
	case !r.Learn && r.Concurrency == 0:
		limit = math.MaxInt
	case !r.Learn || r.Concurrency > 0 && r.Concurrency < limit:
		limit = r.Concurrency
	}
	if held >= limit {
		wait := s.ProbeAt.Sub(now)
		if !s.Refused {
			wait = s.Begun.Add(max(accepted*firstAtOnce/time.Duration(held), shortest)).Sub(now)
		}
		switch {
		case wait > 0 || r.Concurrency > 0 && held >= r.Concurrency || !r.Learn:
			return nil, slots, max(wait, shortest)
		case !s.Refused:
			s.AtOnce = 2 * held
		case held > limit || s.Step > 0:
			return nil, slots, firstProbe
		default:
			t.probe = true
		}
	}
	if s.unfair(id, limit) {
		return nil, slots, accepted
	}
	s.own(now, r)
	wait, guess := s.empty(now, need), shortGuess
	if s.Refused {
		guess = longGuess
	}
	if wait.own > 0 {
		return nil, rate, wait.own
	}
	if left := guess - now.Sub(since); wait.learned > 0 {
		if left > 0 {
			return nil, rate, min(wait.learned, left)
		}
		t.guessed = true
	}
	t.taken = s.take(now, need)
	s.share(id).Held++
	s.Begun, t.among = now, held+1
	if t.probe {
		s.ProbeAt = now.Add(s.Probe)
	}
	s.Calls++
	return t, "", 0
}

// own makes the buckets of the configuration.
func (s *state) own(now time.Time, r Limits) {
	for kind, limit := range map[string]int{ownRequests: r.RequestsPerMinute, ownTokens: r.TokensPerMinute} {
		b := s.Buckets[kind]
		switch {
		case limit == 0:
			delete(s.Buckets, kind)
		case b == nil || b.Limit != float64(limit):
			s.bucket(kind).fill(now, float64(limit))
		}
	}
}

// fill makes b a full bucket of the configuration, of which no minute gets more than the limit.
func (b *bucket) fill(now time.Time, limit float64) {
	*b = bucket{Limit: limit, Rate: limit / 60, At: now, Own: true}
}

// bucket returns the one of a kind.
func (s *state) bucket(kind string) *bucket {
	return entry(&s.Buckets, kind)
}

// share returns that of a process.
func (s *state) share(id string) *share {
	return entry(&s.Shares, id)
}

// entry returns that of a name in a map, and adds an empty one if there is none.
func entry[V any](m *map[string]*V, name string) *V {
	if *m == nil {
		*m = make(map[string]*V)
	}
	if (*m)[name] == nil {
		(*m)[name] = new(V)
	}
	return (*m)[name]
}

// unfair reports whether a process has its share of the calls at once while another one waits for its own.
func (s *state) unfair(id string, limit int) bool {
	busy := 0
	for other, p := range s.Shares {
		if other == id || p.Held+p.Waiting > 0 {
			busy++
		}
	}
	part := (limit + busy - 1) / max(busy, 1)
	if busy < 2 || s.share(id).Held < part {
		return false
	}
	for other, p := range s.Shares {
		if other != id && p.Waiting > 0 && p.Held < part {
			return true
		}
	}
	return false
}

// waits are how long buckets need until they have enough.
type waits struct{ own, learned time.Duration }

func (s *state) empty(now time.Time, need amount) (w waits) {
	for kind, b := range s.Buckets {
		wait := b.wait(now, need.of(kind))
		if b.Own {
			w.own = max(w.own, wait)
		} else {
			w.learned = max(w.learned, wait)
		}
	}
	return w
}

// take takes what a call needs, and returns what all calls have taken by then.
func (s *state) take(now time.Time, need amount) map[string]float64 {
	if len(s.Buckets) == 0 {
		return nil
	}
	taken := make(map[string]float64, len(s.Buckets))
	for kind, b := range s.Buckets {
		if b.Own {
			b.spend(now, now, need.of(kind))
		}
		b.Level, b.At = b.level(now)-need.of(kind), now
		b.Taken += need.of(kind)
		taken[kind] = b.Taken
	}
	return taken
}

// outOfReach returns for how long no call begins, because the provider did not answer the last ones. When that time is over one
// call tries.
func (s *state) outOfReach(now time.Time) time.Duration {
	if s.OpenTime > 0 && now.Sub(s.Open) > longOutage { // that was long ago
		s.Outages, s.OpenTime = nil, 0
	}
	switch {
	case s.OpenTime == 0:
		return 0
	case now.Before(s.Open):
		return s.Open.Sub(now)
	case s.heldCalls() > 0 && now.Sub(s.Begun) < s.OpenTime:
		return accepted // another one tries
	}
	return 0
}

// endFailed ends a call that the provider could not answer.
func (s *state) endFailed(now time.Time, id string) {
	s.release(id)
	s.Outages = append(s.Outages, now)
	if s.Outages = s.Outages[max(0, len(s.Outages)-outages):]; len(s.Outages) < outages || now.Sub(s.Outages[0]) > outagesIn && s.OpenTime == 0 {
		return
	}
	if !now.Before(s.Open) {
		s.OpenTime = min(max(2*s.OpenTime, shortOutage), longOutage)
		s.Open = now.Add(s.OpenTime)
	}
}

// release ends a call.
func (s *state) release(id string) {
	if p := s.share(id); p.Held > 0 {
		p.Held--
	}
}

// learn takes over what the header fields of a reply say.
func (s *state) learn(now time.Time, t *ticket, readings []reading) {
	for _, r := range readings {
		b := s.bucket(r.kind)
		b.Limit, b.At = r.limit, now
		b.Level = min(r.remaining, r.limit)
		if before, ok := t.taken[r.kind]; ok {
			b.Level -= max(0, b.Taken-before) // by calls that began later
		}
		if used := r.limit - r.remaining; used > 0 && r.reset > 0 {
			b.Rate = used / r.reset.Seconds()
		}
	}
}

// endSucceeded ends a call that the provider answered. output is the length of the reply in tokens, 0 if unknown.
func (s *state) endSucceeded(now time.Time, id string, t *ticket, used amount) {
	s.release(id)
	s.Streak, s.InARow = time.Time{}, 0
	s.Outages, s.Open, s.OpenTime = nil, time.Time{}, 0
	if t.began.After(s.LastRefusal) {
		s.Proven = true
		if t.began.After(s.Paused) || !s.AskAt.IsZero() {
			s.Paused, s.AskAt = time.Time{}, time.Time{}
		}
	}
	switch {
	case !s.Refused:
		s.AtOnce = max(s.AtOnce, min(2*t.among, maxAtOnce))
	case t.probe && t.among > s.AtOnce:
		s.AtOnce, s.Step = t.among, 1
		s.Probe = firstProbe
	case s.Step > 0 && t.among >= s.AtOnce:
		s.AtOnce = min(s.AtOnce+s.Step, maxAtOnce)
		s.Step = min(2*s.Step, maxAtOnce)
	}
	for kind, b := range s.Buckets {
		switch {
		case b.Own && used.output > 0:
			b.spend(t.began, now, used.of(kind)-t.need.of(kind))
		case t.guessed && b.level(now) < 0:
			b.Doubted = true
		}
	}
	if used.output > 0 {
		s.Output = int(0.8*float64(s.Output) + 0.2*used.output)
	}
}

// endRefused ends a call that the provider refused, and returns how long the call waits. after is what the provider asks
// for, 0 if it says nothing. usedUp says that a limit of requests or tokens has nothing left. If calls would be refused for longer
// than the longest wait, no other call waits either.
func (s *state) endRefused(now time.Time, id string, t *ticket, r Limits, after time.Duration, usedUp bool) time.Duration {
	s.release(id)
	s.Refusals++
	burst := !s.LastRefusal.IsZero() && !t.began.After(s.LastRefusal) // it is one of several at once
	tried := t.probe && s.heldCalls() > 0                             // nothing new was learned
	second := !s.Streak.IsZero() && !s.Proven && !burst && !tried
	if s.Streak.IsZero() {
		s.Streak = now
	}
	if !burst || s.InARow == 0 {
		s.InARow++
	}
	least := time.Second // doubled with each refusal in a row, up to 16 s
	if after > 0 {
		least /= 4
	}
	after = max(min(after, longestWait), least<<min(s.InARow-1, 4))
	if s.InARow > 1 && s.heldCalls() == 0 && now.Add(after).Sub(s.Streak) > r.ParkAfter {
		after = max(after, r.ParkAfter+time.Second)
	}
	switch {
	case usedUp || after > rateWait || second:
		if !burst {
			s.AtOnce = max(1, s.AtOnce/2)
		}
		if until := now.Add(after); until.After(s.Paused) {
			s.Paused = until
		}
		if s.AskAt = (time.Time{}); after > longGuess {
			s.AskAt = now.Add(longGuess)
		}
	default:
		s.AtOnce = max(1, min(s.AtOnce, s.heldCalls()))
	}
	for _, b := range s.Buckets {
		b.Doubted = false
	}
	switch {
	case t.probe || s.Step > 0:
		s.Probe = min(max(2*s.Probe, firstProbe), lastProbe)
	case !burst || s.Probe == 0:
		s.Probe = firstProbe
	}
	if !burst || !s.Refused {
		s.ProbeAt = now.Add(s.Probe)
	}
	s.Refused, s.Step, s.Proven, s.LastRefusal = true, 0, false, now
	return after
}

// seconds returns n seconds, a day at most.
func seconds(n float64) time.Duration {
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n*float64(time.Second), float64(longestWait)))
}
