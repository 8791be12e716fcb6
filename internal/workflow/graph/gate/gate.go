// Package gate has the rules about when runs start: priorities, concurrency keys, throttles and debounces.
//
// [Rules] are what users write at an agent, a schedule, a trigger or a request. With a key filled in they are a [Gate], which a run has on
// record: all runs of a store with gates of one name share what it allows. Package run holds them to it.
package gate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
)

// What happens at the start of a run if as many runs with its key are at work as the limit allows.
const (
	Skip   = "skip"   // it is not started
	Queue  = "queue"  // it waits
	Cancel = "cancel" // the others are canceled
	Allow  = "allow"  // it starts all the same
)

// Priorities of runs.
const (
	High   = "high"
	Normal = "normal"
	Low    = "low"
)

// Rules say when a run starts, as users write them.
type Rules struct {
	Priority string `json:"priority,omitempty" enum:"high,normal,low" doc:"of its model calls, and in the queue of the server; absent: high for chats, low for schedules, else normal"`
	Key      string `json:"concurrency_key,omitempty" maxLength:"1000" doc:"runs with the same key share the limits below, over all servers; a template"`
	Limit    int    `json:"concurrency_limit,omitempty" minimum:"1" maximum:"100" doc:"how many of them work at the same time, by default 1 if there is a key"`
	Overlap  string `json:"overlap,omitempty" enum:"skip,queue,cancel,allow" doc:"what happens if so many are at work; of a schedule also while its last run has not ended. By default queue, for a schedule skip"`
	Throttle string `json:"throttle,omitempty" maxLength:"30" doc:"at most so many starts in a time, such as 10/1m; others wait"`
	Debounce string `json:"debounce,omitempty" maxLength:"30" doc:"a run waits for this span, such as 30s, and a newer one replaces it"`
}

// Bounds of rules.
const (
	MaxLimit = 100
	maxRate  = 1000
	maxKey   = 1000 // bytes
	maxSpan  = 24 * time.Hour
)

// Keys are the names of the rules.
func Keys() []string {
	return []string{"priority", "concurrency_key", "concurrency_limit", "overlap", "throttle", "debounce"}
}

// Error is what is wrong with a rule.
type Error struct {
	Key string // one of [Keys]
	Msg string
}

func (e *Error) Error() string { return e.Key + ": " + e.Msg }

// Check returns what of the rules cannot be followed.
func (r Rules) Check() (all []*Error) {
	for {
		_, _, err := r.Gate("", "place", nil)
		wrong, ok := errors.AsType[*Error](err)
		if !ok {
			return all
		}
		switch all = append(all, wrong); wrong.Key { // and what else
		case "priority":
			r.Priority = ""
		case "concurrency_key":
			r.Key = ""
		case "concurrency_limit":
			r.Limit = 0
		case "overlap":
			r.Overlap = ""
		case "throttle":
			r.Throttle = ""
		case "debounce":
			r.Debounce = ""
		}
	}
}

// Idle reports whether the overlap has no effect, because nothing limits how many runs are at work.
func (r Rules) Idle() bool {
	return r.Key == "" && r.Limit == 0 && (r.Overlap == Skip || r.Overlap == Cancel && r.Throttle == "" && r.Debounce == "")
}

// Gate returns the gate of a run; ok is false if the rules set no bound. Without a key, the gate is that of a place, such as
// "agent/NAME"; scope keeps keys of different users apart. A nil fill takes the key as it is.
func (r Rules) Gate(scope, place string, fill func(template string) (string, error)) (g Gate, ok bool, err error) {
	wrong := func(key, format string, args ...any) (Gate, bool, error) {
		return Gate{}, false, &Error{key, fmt.Sprintf(format, args...)}
	}
	if r.Priority != "" && !slices.Contains([]string{High, Normal, Low}, r.Priority) {
		return wrong("priority", "%q is none of %s, %s, %s", r.Priority, High, Normal, Low)
	}
	if r.Overlap != "" && !slices.Contains([]string{Skip, Queue, Cancel, Allow}, r.Overlap) {
		return wrong("overlap", "%q is none of %s, %s, %s, %s", r.Overlap, Skip, Queue, Cancel, Allow)
	}
	if r.Limit < 0 || r.Limit > MaxLimit {
		return wrong("concurrency_limit", "a number from 1 to %d is expected", MaxLimit)
	}
	g = Gate{Key: r.Key, Limit: r.Limit, Overlap: cmp.Or(r.Overlap, Queue)}
	if r.Key != "" {
		g.Limit = cmp.Or(r.Limit, 1)
	}
	if r.Throttle != "" {
		n, per, both := strings.Cut(r.Throttle, "/")
		g.Starts, err = strconv.Atoi(n)
		span, spanErr := time.ParseDuration(per)
		if g.Per = span; !both || err != nil || spanErr != nil || g.Starts < 1 || g.Starts > maxRate || span < time.Second || span > maxSpan {
			return wrong("throttle", "%q is not a number of starts, from 1 to %d, and a time, from 1s to 24h, such as 10/1m", r.Throttle, maxRate)
		}
	}
	if r.Debounce != "" {
		if g.Debounce, err = time.ParseDuration(r.Debounce); err != nil || g.Debounce < 0 || g.Debounce > maxSpan {
			return wrong("debounce", "%q is not a span such as 30s, of at most 24h", r.Debounce)
		}
	}
	if g.Overlap == Allow {
		g.Limit = 0
	}
	if place == "" && r.Idle() {
		return wrong("concurrency_key", "a key is expected beside overlap: %s", r.Overlap)
	}
	if r.Key == "" && r.Limit == 0 && g.Starts == 0 && g.Debounce == 0 {
		return Gate{}, false, nil
	}
	if fill != nil && r.Key != "" {
		if g.Key, err = fill(r.Key); err != nil {
			return wrong("concurrency_key", "%v", err)
		}
		if g.Key == "" {
			return Gate{}, false, nil
		}
	}
	if len(g.Key) > maxKey {
		return wrong("concurrency_key", "it has more than %d bytes", maxKey)
	}
	name := "place\n" + place
	if r.Key != "" {
		name = "key\n" + scope + "\n" + g.Key
	} else if place == "" {
		return wrong("concurrency_key", "a key is expected beside concurrency_limit, throttle and debounce")
	}
	sum := sha256.Sum256([]byte(name))
	g.Name = hex.EncodeToString(sum[:12])
	return g, true, nil
}

// Gate is what a run needs to be let through before it works.
type Gate struct {
	Name     string        `json:"name"`          // what its runs share, a hash
	Key      string        `json:"key,omitempty"` // as people know it
	Limit    int           `json:"limit,omitempty"`
	Overlap  string        `json:"overlap"`
	Starts   int           `json:"starts,omitempty"` // so many in each Per; 0 for no bound
	Per      time.Duration `json:"per,omitempty"`
	Debounce time.Duration `json:"debounce,omitempty"`
}

// String returns what people call the runs of a gate: runs "with the key ...".
func (g Gate) String() string {
	if g.Key == "" {
		return "of the same agent, schedule or trigger"
	}
	return "with the key " + strconv.Quote(text.CutRunes(g.Key, 80))
}

// Read reads the rules in a mapping, and does not check them. Values of another type are reported to its document.
func Read(m *yamldoc.Map) (r Rules) {
	yamldoc.Choice(m, "priority", &r.Priority, High, Normal, Low)
	m.Text("concurrency_key", &r.Key)
	m.Int("concurrency_limit", &r.Limit, 1, MaxLimit)
	yamldoc.Choice(m, "overlap", &r.Overlap, Skip, Queue, Cancel, Allow)
	if m.Text("throttle", &r.Throttle) && r.Throttle == "" {
		m.Get("throttle").Errorf("a number of starts and a time are expected, such as 10/1m")
	}
	var span time.Duration
	if m.Span("debounce", &span) {
		r.Debounce = span.String()
	}
	return r
}

// Rank returns a priority as a number: that of what comes first is higher.
func Rank(priority string) int {
	switch priority {
	case High:
		return 1
	case Low:
		return -1
	}
	return 0
}
