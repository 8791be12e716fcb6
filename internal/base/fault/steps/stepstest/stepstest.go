// Package stepstest has the record of a task for tests.
package stepstest

import (
	"context"
	"errors"
	"maps"
	"sync"

	"loki/internal/base/fault/steps"
)

// ErrDied is the error of a record whose process is dead.
var ErrDied = errors.New("the process has died")

// Recorder is a [steps.Recorder] that keeps steps in memory. The zero Recorder is ready; it may be
// used from several goroutines.
type Recorder struct {
	// Lose is the key of steps whose results are lost, because the process dies before they are
	// recorded; empty for none. Set it while nothing is recorded.
	Lose string

	Mu      sync.Mutex
	Records map[string]steps.Record // guarded by Mu; nil for none
}

// Lookup implements [steps.Recorder].
func (r *Recorder) Lookup(_ context.Context, key string, _ steps.Step) (steps.Record, error) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return r.Records[key], nil
}

// Begin implements [steps.Recorder].
func (r *Recorder) Begin(_ context.Context, key string, _ steps.Step) error {
	r.put(key, steps.Record{Begun: true})
	return nil
}

// Forget implements [steps.Recorder].
func (r *Recorder) Forget(_ context.Context, key string) error {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	delete(r.Records, key)
	return nil
}

// Record implements [steps.Recorder].
func (r *Recorder) Record(_ context.Context, key string, _ steps.Step, result []byte) error {
	if r.Lose != "" && key == r.Lose {
		return ErrDied
	}
	r.put(key, steps.Record{Done: true, Result: result})
	return nil
}

func (r *Recorder) put(key string, rec steps.Record) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Records == nil {
		r.Records = make(map[string]steps.Record)
	}
	r.Records[key] = rec
}

// Keys returns a copy of what is on record, by key.
func (r *Recorder) Keys() map[string]steps.Record {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return maps.Clone(r.Records)
}
