package rag

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"loki/internal/llm/event"
)

// Limits of a build.
const (
	readers    = 4        // documents that are read at once
	width      = 4        // requests at once
	ahead      = 1 << 16  // documents that are found before they are read
	queued     = 256      // documents that were read and not looked at
	maxOpen    = 16 << 20 // bytes of the same
	maxPending = 32 << 20 // bytes of chunks that wait for vectors
	flushEvery = 3 * time.Second
	long       = 200 * time.Millisecond // of a request: its vectors are made safe at once
	maxTries   = 10                     // of a request, while others work
	lastWait   = 30 * time.Second       // for the requests that are under way when a build fails
	tickEvery  = 200 * time.Millisecond // between two progress events
	maxPassed  = 20                     // documents that were skipped and are named
	maxWarned  = 20                     // documents that are warned about one by one
	maxUnread  = 3                      // documents of which the parts that were not read are named
	maxEncoded = 5                      // files in other encodings that are named
)

// work is one build. A goroutine finds the documents, several read and split them, others ask the
// model. The one that called Build looks at the documents in their order, makes batches of their
// chunks and puts the documents into the index; all that is not said to be shared is its own.
type work struct {
	*Builder
	requests
	name       string
	set        Settings
	model      Embedder
	now        func() time.Time
	started    time.Time
	dimensions int // of all vectors; 0 until there are any

	mu    sync.Mutex // one call of build at a time
	build Build

	found    atomic.Int64 // documents, including failed ones
	foundAll atomic.Bool  // no more will be found
	held     *gate        // what documents that were found and not read take
	open     *gate        // what documents that were read and not looked at take

	// Documents that were looked at and wait for vectors, or for those before them.
	pending []*document
	size    int // of their chunks and vectors, in bytes

	queue    []ref         // chunks that have to be embedded
	again    [][]ref       // batches that a model has refused, in halves
	inFlight int           // batches, including ones that wait for another try or are stuck
	stuck    []*batch      // have failed so often that they wait for another one to work
	answered int           // requests that worked, or were refused for their texts
	asked    int           // requests without a reply
	replies  chan reply    // with room for all of them
	failing  chan struct{} // closed when the build fails: no request is repeated

	present  map[string]string // sources of the paths that stay
	unread   map[string]bool   // sources that may lead to more documents than were found
	firstErr error             // of a document or a source
	blocked  bool              // a failure was not that of a file that was deleted
	rebuilds bool              // the index in use has the same sources
	unsaid   int               // failed documents that were not warned about

	report event.IndexFinished // what the build says at its end
	chunks int                 // of the documents that were added
	counts map[string]count    // by source

	partly  int      // documents of which parts were not read
	encoded []string // files that look like text in another encoding

	embedded int  // chunks, by this build
	directed bool // a vector of theirs is not zero

	ticked time.Time

	// The first document that had changed: when it was looked at, and how many were before it.
	changed time.Time
	before  int

	unsafe bool // documents were put since the last flush
	dear   bool // vectors that took long or cost money came since the last flush
}

// count says how many documents of a source were found, the source itself included if it failed, and
// how many of them were skipped, and of these how many since a rule keeps them from models.
type count struct{ found, passed, denied int }

// documents reads the sources and puts their documents into the build. All goroutines have ended
// when it returns.
func (w *work) documents(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the goroutines
	w.present, w.unread, w.counts = make(map[string]string), make(map[string]bool), make(map[string]count)
	w.held, w.open, w.replies = newGate(), newGate(), make(chan reply, width)
	w.failing = make(chan struct{})
	list, inOrder, jobs := make(chan *document, ahead), make(chan *document, queued), make(chan *document)
	wg.Go(func() { w.find(ctx, list) })
	wg.Go(func() { w.dispatch(ctx, list, inOrder, jobs) })
	for range readers {
		wg.Go(func() {
			for d := range jobs {
				w.read(ctx, d)
				close(d.ready)
			}
		})
	}
	if err := w.loop(ctx, &wg, inOrder); err != nil {
		defer time.AfterFunc(lastWait, cancel).Stop()
		w.salvage(ctx)
		return err
	}
	return w.progress(ctx, "", true)
}

// salvage keeps what a build that ends early has paid for: it waits for the requests that are under
// way, puts the documents that have all vectors, without those before them, and has the vectors of the
// others remembered.
func (w *work) salvage(ctx context.Context) {
	close(w.failing)
	for ; w.asked > 0; w.asked-- {
		r := <-w.replies
		w.report.Usage = w.report.Usage.Add(r.used)
		if r.err == nil && w.take(r) != nil {
			return // these vectors fit no others
		}
	}
	ctx = context.WithoutCancel(ctx)
	w.pending = slices.DeleteFunc(w.pending, func(d *document) bool {
		return d.missing == 0 && d.err == nil && w.store(ctx, d) == nil
	})
	_ = w.remember(ctx) // the build has an error already, and what is lost can be embedded again
}

// loop looks at the documents in their order, until all are in the build.
func (w *work) loop(ctx context.Context, wg *sync.WaitGroup, inOrder <-chan *document) error {
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	var head *document // the next one to look at
	for inOrder != nil || head != nil || len(w.pending) > 0 {
		hungry := w.size < maxPending && len(w.again) == 0 && len(w.queue) < w.model.batchSize()
		next, ready := inOrder, (<-chan struct{})(nil)
		switch {
		case head != nil && hungry:
			next, ready = nil, head.ready
		case head != nil || !hungry:
			next = nil
		}
		embedded := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d, ok := <-next:
			if !ok {
				inOrder = nil
			}
			head = d
		case <-ready:
			if err := w.look(ctx, head); err != nil {
				return err
			}
			head = nil
		case r := <-w.replies:
			w.asked--
			if err := w.receive(ctx, wg, r); err != nil {
				return err
			}
			embedded = true
		case <-flush.C:
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
		if err := w.put(ctx); err != nil {
			return err
		}
		if embedded { // also of a document that is not through
			if err := w.progress(ctx, "", false); err != nil {
				return err
			}
		}
		if w.dear {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
		w.send(ctx, wg, inOrder == nil && head == nil || w.size >= maxPending)
	}
	return nil
}

// put puts the documents that have all vectors into the build, in their order.
func (w *work) put(ctx context.Context) error {
	for len(w.pending) > 0 && (w.pending[0].missing == 0 || w.pending[0].err != nil) {
		d := w.pending[0]
		w.pending = w.pending[1:]
		w.size -= d.size(w.dimensions)
		if d.err != nil {
			if err := w.lose(ctx, d); err != nil {
				return err
			}
			continue
		}
		if err := w.store(ctx, d); err != nil {
			return err
		}
		if err := w.progress(ctx, d.Path, false); err != nil {
			return err
		}
	}
	return nil
}

// store puts a document into the build.
func (w *work) store(ctx context.Context, d *document) error {
	w.mu.Lock()
	err := w.build.Put(ctx, File{Path: d.Path, Hash: d.hash, Source: d.Source, Unread: d.unread}, d.chunks)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	w.unsafe = true
	w.report.Added++
	w.chunks += len(d.chunks)
	w.present[d.Path] = d.Source
	return nil
}

// remember gives the build the vectors of the documents that are not in it yet.
func (w *work) remember(ctx context.Context) error {
	var chunks []Chunk
	for _, d := range w.pending {
		for _, i := range d.loose {
			chunks = append(chunks, d.chunks[i])
		}
		d.loose = nil
	}
	if len(chunks) == 0 {
		return nil
	}
	w.unsafe = true
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.build.Remember(ctx, chunks)
}

// flush makes what the build was given safe. Vectors that can be had again at once are not worth more
// than that.
func (w *work) flush(ctx context.Context) error {
	if w.dear {
		if err := w.remember(ctx); err != nil {
			return err
		}
	}
	w.dear = false
	if !w.unsafe {
		return nil
	}
	w.unsafe = false
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.build.Flush(ctx)
}
