package rag

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/provider"
	"loki/internal/rag/source"
	"loki/internal/rag/split"
	"loki/internal/text"
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
	maxPassed  = 20                     // documents that were passed over and are named
	maxWarned  = 20                     // documents that are warned about one by one
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

	found    atomic.Int64 // documents, those that failed included
	foundAll atomic.Bool  // no more will be found
	held     *gate        // what documents that were found and not read take
	open     *gate        // what documents that were read and not looked at take

	// Documents that were looked at and wait for vectors, or for those before them.
	pending []*document
	size    int // of their chunks and vectors, in bytes

	queue    []ref         // chunks that have to be embedded
	again    [][]ref       // batches that a model has refused, in halves
	inFlight int           // batches, those that wait for another try or are stuck included
	stuck    []*batch      // have failed so often that they wait for another one to work
	answered int           // requests that worked, or were refused for their texts
	asked    int           // requests without a reply
	replies  chan reply    // with room for all of them
	failing  chan struct{} // closed when the build fails: no request is made again

	present  map[string]string // sources of the paths that stay
	unread   map[string]bool   // sources that may lead to more documents than were found
	firstErr error             // of a document or a source
	unsaid   int               // failed documents that were not warned about

	added, kept, removed, passed, failed, chunks int
	counts                                       map[string]count // by source

	embedded   int      // chunks, by this build
	directed   bool     // a vector of theirs is not zero
	passedOver []string // the first documents that were passed over

	used   chat.Usage
	ticked time.Time

	// The first document that had changed: when it was looked at, and how many were before it.
	changed time.Time
	before  int

	unsafe bool // documents were put since the last flush
	dear   bool // vectors that took long or cost money came since the last flush
}

// count says how many documents of a source were found, the source itself included if it failed, and
// how many of them were passed over.
type count struct{ found, passed int }

// gate holds a goroutine up while things take too much memory.
type gate struct {
	bytes atomic.Int64
	less  chan struct{} // has an element if bytes has become less
}

func newGate() *gate { return &gate{less: make(chan struct{}, 1)} }

func (g *gate) add(n int) { g.bytes.Add(int64(n)) }

// sub is add for what is no longer there.
func (g *gate) sub(n int) {
	g.bytes.Add(int64(-n))
	select {
	case g.less <- struct{}{}:
	default:
	}
}

// pass waits until there is room, and reports whether there is; otherwise ctx has ended. One goroutine
// calls it.
func (g *gate) pass(ctx context.Context) bool {
	for g.bytes.Load() >= maxOpen {
		select {
		case <-g.less:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// document is one on its way into the index. A reader owns it until ready is closed.
type document struct {
	source.Document
	ready  chan struct{}
	hash   string
	chunks []Chunk
	bytes  int  // of the text
	kept   bool // it has not changed
	passed bool // it is not text
	err    error
	broken error // ends the build

	missing int   // vectors
	loose   []int // chunks that have been embedded, but were not given to the build
}

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
		w.used = w.used.Add(r.used)
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

// find sends the documents of the sources, and those whose err says what is wrong with a source.
func (w *work) find(ctx context.Context, list chan<- *document) {
	defer close(list)
	defer w.foundAll.Store(true)
	for doc, err := range w.Source.Documents(ctx, w.set.Documents) {
		if !isNote(err) {
			w.found.Add(1)
		}
		if !w.held.pass(ctx) {
			return
		}
		w.held.add(doc.Held)
		select {
		case list <- &document{Document: doc, err: err, ready: make(chan struct{})}:
		case <-ctx.Done():
			return
		}
	}
}

// dispatch has the readers read documents, unless too much of what they read is still to be looked at.
func (w *work) dispatch(ctx context.Context, list <-chan *document, inOrder, jobs chan<- *document) {
	defer close(jobs)
	defer close(inOrder)
	for d := range list {
		if w.held.sub(d.Held); !w.open.pass(ctx) {
			return
		}
		to := jobs
		if d.err != nil {
			to = nil
			close(d.ready)
		}
		select {
		case inOrder <- d:
		case <-ctx.Done():
			return
		}
		if to == nil {
			continue
		}
		select {
		case to <- d:
		case <-ctx.Done():
			return
		}
	}
}

// read reads and splits a document, unless it has not changed.
func (w *work) read(ctx context.Context, d *document) {
	content, err := d.Read(ctx)
	if err != nil {
		d.fail(err)
		return
	}
	w.mu.Lock()
	file, ok, err := w.build.File(ctx, d.Path)
	w.mu.Unlock()
	if err != nil {
		d.broken = err
		return
	}
	if d.hash = content.Hash; ok && file.Hash == d.hash {
		d.kept = true
		return
	}
	body, ext, lines, err := content.Text(ctx)
	if err != nil {
		d.fail(err)
		return
	}
	for _, p := range split.New(w.set.ChunkSize, w.set.ChunkOverlap, w.set.Chunker, ext).Split(body) {
		c := Chunk{Path: d.Path, Text: p.Text, Heading: p.Heading}
		if lines {
			c.Start, c.End = p.Line, p.LastLine
		}
		d.chunks = append(d.chunks, c)
	}
	d.bytes = len(body)
	w.open.add(d.bytes)
}

func (d *document) fail(err error) {
	if d.passed = errors.Is(err, source.ErrPassedOver); !d.passed {
		d.err = err
	}
}

// loop looks at the documents in their order, until all are in the build.
func (w *work) loop(ctx context.Context, wg *sync.WaitGroup, inOrder <-chan *document) error {
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	var head *document // the next one to look at
	for inOrder != nil || head != nil || len(w.pending) > 0 {
		hungry := w.size < maxPending && len(w.again) == 0 && len(w.queue) < w.model.batchSize(w.set.BatchSize)
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

// look takes note of a document that was read.
func (w *work) look(ctx context.Context, d *document) error {
	w.open.sub(d.bytes)
	if isNote(d.err) {
		return w.warnOf(ctx, "", "", d.err)
	}
	w.counted(d)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case d.broken != nil:
		return d.broken
	case d.err != nil:
		return w.lose(ctx, d)
	case d.passed:
		if w.passed++; w.passed <= maxPassed {
			w.passedOver = append(w.passedOver, d.Path)
		}
		return w.progress(ctx, d.Path, false)
	case d.kept:
		w.kept++
		w.present[d.Path] = d.Source
		return w.progress(ctx, d.Path, false)
	}
	if w.changed.IsZero() {
		w.changed, w.before = w.now(), w.done()
	}
	w.mu.Lock()
	known, err := w.build.Vectors(ctx, d.chunks)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	for i, v := range known {
		if v == nil {
			w.queue = append(w.queue, ref{d, i, chat.EstimateTokens(d.chunks[i].full())})
			d.missing++
			continue
		}
		if err := w.fit(v); err != nil {
			return err
		}
		d.chunks[i].Vector = v
	}
	w.pending = append(w.pending, d)
	w.size += d.size(w.dimensions)
	return nil
}

// counted counts a document for its source.
func (w *work) counted(d *document) {
	from := d.Source
	if e, ok := errors.AsType[*source.Error](d.err); ok {
		from = cmp.Or(e.Source, from)
	}
	c := w.counts[from]
	if c.found++; d.passed {
		c.passed++
	}
	w.counts[from] = c
}

// size estimates the bytes of the chunks, given the length of vectors.
func (d *document) size(dimensions int) int { return d.bytes + 4*dimensions*len(d.chunks) }

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
	n, full := w.model.batch(func(i int) int { return w.queue[i].tokens }, len(w.queue), w.model.batchSize(w.set.BatchSize))
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
	w.used = w.used.Add(r.used)
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
	err := w.build.Put(ctx, File{Path: d.Path, Hash: d.hash, Source: d.Source}, d.chunks)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	w.unsafe = true
	w.added++
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

// lose takes note of a document or source that failed.
func (w *work) lose(ctx context.Context, d *document) error {
	w.failed++
	gone := errors.Is(d.err, fs.ErrNotExist)
	path, from := d.Path, d.Source
	if e, ok := errors.AsType[*source.Error](d.err); ok {
		path, from = cmp.Or(e.Path, path), cmp.Or(e.Source, from)
	}
	if path != "" && !gone {
		w.present[path] = from
	}
	if d.Path == "" && !gone { // the search failed, at least behind this document
		w.unread[from] = true
	}
	if w.firstErr == nil {
		w.firstErr = d.err
	}
	if w.failed > maxWarned {
		w.unsaid++
		return nil
	}
	return w.warnOf(ctx, path, from, d.err)
}

// isNote reports whether err is a note about a source, and nothing failed.
func isNote(err error) bool {
	e, ok := errors.AsType[*source.Error](err)
	return ok && e.Note
}

// warnOf warns of what is wrong with the document at path, or with its source if path is "".
func (w *work) warnOf(ctx context.Context, path, from string, err error) error {
	name, why := cmp.Or(path, from), err.Error()
	if hint := fault.HintOf(err); hint != "" {
		why += "; " + hint
	}
	if strings.Contains(why, name) {
		return w.warnf(ctx, "%s", why)
	}
	if name != from && from != "" {
		name += " (" + from + ")"
	}
	return w.warnf(ctx, "%s: %s", name, why)
}

func (w *work) warnf(ctx context.Context, format string, args ...any) error {
	return w.Events.Emit(ctx, event.Warning{Text: "knowledge base " + w.name + ": " + fmt.Sprintf(format, args...)})
}

// done returns the number of documents that are through.
func (w *work) done() int { return w.added + w.kept + w.passed + w.failed }

// progress reports how far the build has come, unless it did a moment ago. last reports in any case.
func (w *work) progress(ctx context.Context, path string, last bool) error {
	now := w.now()
	if w.Events.Silent() || !last && now.Sub(w.ticked) < tickEvery {
		return nil
	}
	w.ticked = now
	done, total := w.done(), int(w.found.Load())
	chunks, missing := w.chunks, 0
	for _, d := range w.pending {
		chunks, missing = chunks+len(d.chunks)-d.missing, missing+d.missing
	}
	p := event.IndexProgress{
		Base: w.name, Document: text.Name(path), Done: done, Total: total, Kept: w.kept, Chunks: chunks,
		Usage: w.used, Elapsed: now.Sub(w.started),
	}
	// Documents that had not changed, of which a build that goes on has many at the beginning, say
	// nothing about the others.
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
