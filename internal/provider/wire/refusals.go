package wire

import "sync"

// Refusals remembers, by model, that servers have refused something, so that it is not sent
// again. The zero value has none; it may be used from several goroutines.
type Refusals struct {
	mu     sync.Mutex
	models map[string]bool
}

// Add remembers the refusal of a model.
func (r *Refusals) Add(model string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.models == nil {
		r.models = make(map[string]bool)
	}
	r.models[model] = true
}

// Has reports whether the model has refused.
func (r *Refusals) Has(model string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.models[model]
}
