package rag

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/provider"
)

// ref is a chunk of a document.
type ref struct {
	doc    *document
	i      int
	tokens int // estimated
}

// batch is what a request embeds.
type batch struct {
	refs     []ref
	failures int           // tries that failed
	alone    int           // the last of them, between which no other request was answered
	answered int           // work.answered at the last failure
	err      error         // of the last try
	wait     time.Duration // before the next one
}

// reply is the answer of the model to a request.
type reply struct {
	*batch
	vectors [][]float32
	used    chat.Usage
	took    time.Duration
	err     error
}

// send sends requests, as many as may be made. A batch that is not full is sent if last is set.
func (w *work) send(ctx context.Context, wg *sync.WaitGroup, last bool) {
	for w.inFlight < width {
		refs := w.batch(last)
		if len(refs) == 0 {
			return
		}
		w.inFlight++
		w.request(ctx, wg, &batch{refs: refs})
	}
}

// request has the model embed a batch.
func (w *work) request(ctx context.Context, wg *sync.WaitGroup, b *batch) {
	texts := make([]string, len(b.refs))
	for i, r := range b.refs {
		texts[i] = r.doc.chunks[r.i].full()
	}
	w.asked++
	wg.Go(func() { // room for its reply is there
		r := reply{batch: b}
		if r.err = w.sleep(ctx, b.wait); r.err == nil {
			begun := time.Now()
			r.vectors, r.used, r.err = w.embed(ctx, w.model, texts, false)
			r.took = time.Since(begun)
		}
		w.replies <- r
	})
}

// sleep waits, unless the build fails.
func (w *work) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.failing:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// batch returns the chunks of the next request.
func (w *work) batch(last bool) []ref {
	for len(w.again) > 0 {
		batch := w.again[0]
		w.again = w.again[1:]
		if batch = alive(batch); len(batch) > 0 {
			return batch
		}
	}
	n, full := w.model.batch(func(i int) int { return w.queue[i].tokens }, len(w.queue), w.model.batchSize())
	if !full && !last {
		return nil
	}
	batch := w.queue[:n:n]
	w.queue = w.queue[n:]
	return batch
}

// alive returns the chunks of documents that have not failed.
func alive(list []ref) []ref {
	return slices.DeleteFunc(list, func(r ref) bool { return r.doc.err != nil })
}

// receive takes what the model answered. A text that it does not accept is looked for in halves of
// the batch. It concerns its document only.
func (w *work) receive(ctx context.Context, wg *sync.WaitGroup, r reply) error {
	w.report.Usage = w.report.Usage.Add(r.used)
	kind := provider.KindOf(r.err)
	refused := kind == provider.ContextOverflow || kind == provider.Refused
	switch {
	case r.err != nil && ctx.Err() == nil && w.retry.Attempts > 1 && provider.Retryable(r.err):
		return w.tryAgain(ctx, wg, r)
	case r.err != nil && (ctx.Err() != nil || !refused):
		return r.err
	case r.err == nil:
		w.dear = w.dear || r.took > long || r.used.Cost > 0
		if err := w.take(r); err != nil {
			return err
		}
	case len(r.refs) > 1:
		half := len(r.refs) / 2
		w.again = append(w.again, slices.Clone(r.refs[:half]), slices.Clone(r.refs[half:]))
	default:
		d, c := r.refs[0].doc, r.refs[0].doc.chunks[r.refs[0].i]
		d.err = fmt.Errorf("its part %q: %w", text.OneLine(c.Text, 40), r.err)
		w.queue = alive(w.queue)
	}
	w.inFlight--
	w.answered++
	stuck := w.stuck
	w.stuck = nil
	for _, b := range stuck {
		if err := w.repeat(ctx, wg, b); err != nil {
			return err
		}
	}
	return nil
}

// take gives the chunks of a request their vectors.
func (w *work) take(r reply) error {
	for i, v := range r.vectors {
		if err := w.fit(v); err != nil {
			return err
		}
		w.directed = w.directed || slices.ContainsFunc(v, func(x float32) bool { return x != 0 })
		d := r.refs[i].doc
		d.chunks[r.refs[i].i].Vector = v
		d.loose = append(d.loose, r.refs[i].i)
		d.missing--
	}
	w.embedded += len(r.vectors)
	return nil
}

// fit returns an error if a vector is not like those before it.
func (w *work) fit(v []float32) error {
	if w.dimensions == 0 {
		w.dimensions = len(v)
		w.size = 0
		for _, d := range w.pending {
			w.size += d.size(w.dimensions)
		}
	}
	if len(v) != w.dimensions {
		return otherVectors(w.name, w.model.ID, len(v), w.dimensions)
	}
	return nil
}

// tryAgain repeats a request that failed in passing. One that failed as often as the policy says, while
// no other one was answered, is stuck until one is. If all are, the model is out of reach.
func (w *work) tryAgain(ctx context.Context, wg *sync.WaitGroup, r reply) error {
	b := r.batch
	if b.answered != w.answered {
		b.answered, b.alone = w.answered, 0
	}
	b.failures++
	b.alone++
	policy := w.retry
	policy.Attempts = max(policy.Attempts, maxTries)
	var err error
	if b.wait, err = w.wait(ctx, r.err, b.failures, policy); err != nil {
		return err
	}
	if b.err = r.err; b.alone < w.retry.Attempts {
		return w.repeat(ctx, wg, b)
	}
	if w.stuck = append(w.stuck, b); len(w.stuck) == w.inFlight {
		return engine.WithTime(b.err, w.retry.Patience(), time.Now())
	}
	return nil
}

// repeat makes the next try of a batch.
func (w *work) repeat(ctx context.Context, wg *sync.WaitGroup, b *batch) error {
	if err := w.warn(ctx, b.err, b.wait); err != nil {
		return err
	}
	w.request(ctx, wg, b)
	return nil
}
