package shapes

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"loki/internal/base/text/sample"
)

// TestKill ends the process that runs a shape at a write of its journal, and the one that resumes the run soon after. What comes of it is
// the same as undisturbed. It tries a sample of the writes; LOKI_TEST=full tries each, as is always done with the saga: each of its compensations is on record once, and the run fails with its own error.
func TestKill(t *testing.T) {
	each(t, func(t *testing.T, s shape, how scheduling) {
		var calm outcome
		var calls map[string]int
		var moments []moment
		play(t, s, how, func(w *world) {
			for number := 0; !w.over(); number++ {
				w.next(0)
				for write := range w.writes {
					moments = append(moments, moment{number, write + 1})
				}
			}
			calm, calls = w.outcome(), w.calls
		})
		if len(moments) < len(calm.Visits) {
			t.Fatalf("only %d writes", len(moments))
		}
		rnd := rand.New(rand.NewPCG(1, uint64(len(moments))))
		if !sample.Full() && s.name != "saga" { // which is short, and undoes itself in its last writes
			rnd.Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
			moments = moments[:min(4, len(moments))]
		}
		for _, m := range moments {
			play(t, s, how, func(w *world) { w.disturb(m, 1+rnd.IntN(4), calm, calls) })
		}
	})
}

// moment is a write of a process of a run.
type moment struct {
	process int // from 0
	write   int // from 1
}

// disturb ends the process of a run at a moment, and the next one at a later write if it has so many.
func (w *world) disturb(m moment, again int, calm outcome, calls map[string]int) {
	for range m.process {
		w.next(0)
	}
	if !w.next(m.write) && w.writes >= m.write { // how much a node writes that is canceled depends on its speed
		w.t.Errorf("%+v: the process did not end", m)
		return
	}
	if !w.over() {
		w.next(again)
	}
	begun := w.made()
	recorded := w.recorded()
	for !w.over() {
		w.next(0)
	}
	got := w.outcome()
	if w.Traces != nil {
		w.check(w.t, w.how, got)
		return
	}
	if fmt.Sprint(got) != fmt.Sprint(calm) {
		w.t.Errorf("%+v, again at %d:\n%v\nwant\n%v", m, again, got, calm)
	}
	for place, n := range w.made() {
		if after := n - begun[place]; after+recorded[place] > calls[place] {
			w.t.Errorf("%+v, again at %d: the model is called %d times at %s after that, but of %d calls %d are on record", m, again, after, place, calls[place], recorded[place])
		}
	}
}
