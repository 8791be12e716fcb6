package rag

import (
	"context"
	"fmt"
	"time"

	"loki/internal/base/text"
	"loki/internal/llm/event"
)

func (w *work) warnf(ctx context.Context, format string, args ...any) error {
	return w.Events.Emit(ctx, event.Warning{Text: "knowledge base " + w.name + ": " + fmt.Sprintf(format, args...)})
}

// doneCount returns the number of documents that are through.
func (w *work) doneCount() int {
	return w.report.Added + w.report.Kept + w.report.Passed + w.report.Failed
}

// progress reports how far the build has come, unless it did a moment ago. last reports in any case.
func (w *work) progress(ctx context.Context, path string, last bool) error {
	now := w.now()
	if w.Events.Silent() || !last && now.Sub(w.ticked) < tickEvery {
		return nil
	}
	w.ticked = now
	done, total := w.doneCount(), int(w.found.Load())
	chunks, missing := w.chunks, 0
	for _, d := range w.pending {
		chunks, missing = chunks+len(d.chunks)-d.missing, missing+d.missing
	}
	p := event.IndexProgress{
		Base: w.name, Document: text.Name(path), Done: done, Total: total, Kept: w.report.Kept, Chunks: chunks,
		Usage: w.report.Usage, Elapsed: now.Sub(w.started),
	}
	// Unchanged documents, of which a resumed build has many at the beginning, say nothing about the
	// others.
	n := done - w.before
	switch {
	case !w.foundAll.Load() || w.changed.IsZero():
	case done+len(w.pending) == total && w.embedded > 0: // all chunks are known
		p.Left = time.Duration(float64(now.Sub(w.changed)) / float64(w.embedded) * float64(missing))
	case n > 0:
		p.Left = time.Duration(float64(now.Sub(w.changed)) / float64(n) * float64(total-done))
	}
	return w.Events.Emit(ctx, p)
}
