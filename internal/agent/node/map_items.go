package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/expr"
	"loki/internal/workflow/run"
)

// item is what the branch of a map gets at once.
type item struct {
	number int // of the element, or of the batch, from 0
	value  value.Value
	name   string // for people: [3], [3] (key "rome"), [1] (items 4 to 7)
}

// itemsOf returns the items for which the branch of a map runs.
func (r *Runner) itemsOf(ctx context.Context, t *run.Task, over value.Value) ([]item, error) {
	m := t.Node.Map
	all, err := elements(m, over)
	if err != nil {
		return nil, err
	}
	if m.ItemIf != nil {
		if all, err = r.filterItems(ctx, t, all); err != nil {
			return nil, err
		}
	}
	if m.Batch == 0 {
		return all, nil
	}
	var batches []item
	for begin := 0; begin < len(all); begin += m.Batch {
		part := all[begin:min(begin+m.Batch, len(all))]
		values := make([]value.Value, len(part))
		for i, it := range part {
			values[i] = it.value
		}
		n := len(batches)
		batches = append(batches, item{n, value.ListOf(values...).Value(), fmt.Sprintf("[%d] (items %d to %d)", n, part[0].number, part[len(part)-1].number)})
	}
	return batches, nil
}

// elements returns the elements of a list, or the members of an object as objects of key and value.
func elements(m *graph.Map, over value.Value) ([]item, error) {
	if list, ok := over.AsList(); ok {
		all := make([]item, list.Len())
		for i := range all {
			all[i] = item{i, list.At(i), fmt.Sprintf("[%d]", i)}
		}
		return all, nil
	}
	if over.Kind() != value.ObjectKind {
		return nil, fmt.Errorf("over: %s is not an array but a %s", m.Over.Source, over.Kind())
	}
	var all []item
	for key, v := range over.AsObject().All() {
		pair := value.ObjectOf(value.Member{Name: "key", Value: value.Of(key)}, value.Member{Name: "value", Value: v})
		all = append(all, item{len(all), pair.Value(), fmt.Sprintf("[%d] (key %q)", len(all), key)})
	}
	return all, nil
}

// filterItems returns the items for which item_if holds.
func (r *Runner) filterItems(ctx context.Context, t *run.Task, all []item) ([]item, error) {
	now, err := r.clock(ctx, t, t.Node.Map.ItemIf.UsesClock(), steps.Step{Key: "item_if"})
	if err != nil {
		return nil, err
	}
	var some []item
	for _, it := range all {
		holds, err := t.Node.Map.ItemIf.BoolWith(graph.Overlay{Lookup: t.Draft, Key: t.Node.Map.As, Value: it.value}, expr.Env{Now: now})
		if err != nil {
			return nil, fmt.Errorf("item_if: item %s: %w", it.name, err)
		}
		if holds {
			some = append(some, it)
		}
	}
	return some, nil
}

// errEnough ends the items that are at work when the results will do.
var errEnough = errors.New("the results so far are enough")

// mapping is a map at work.
type mapping struct {
	*Runner
	task  *run.Task
	state graph.State // that the items begin with
	items []item

	mu          sync.Mutex
	ends        []itemEnd // by index of items; guarded by mu
	finished    int       // guarded by mu, and so is the rest
	failed      int
	failedItems []string // the names of the first of them
	broken      bool     // an item failed, and so does the map
	stopped     bool     // the results are enough
	stop        context.CancelCauseFunc

	try   int  // of the retry, from 1
	again bool // too few items succeeded in the last try, so the failed ones are run again
}

// itemEnd is how an item ended.
type itemEnd struct {
	begun  bool // in this execution
	over   bool // it has a result, or a failure that is tolerated
	failed bool // the latter
	result value.Value
	inner  graph.Failed // tolerated in an item that did not fail
	err    error        // why it failed, or is not over
}

// itemRecord is the end of an item on record. A resumed map does not run it again.
type itemRecord struct {
	Result value.Value `json:"result"`
	Error  string      `json:"error,omitempty"` // of a failed item
	Usage  chat.Usage  `json:"usage,omitzero"`

	Inner graph.Failed `json:"inner,omitzero"` // tolerated in an item that did not fail
}

// branches runs the branch for every item, side by side, until all are done or their results are enough, and returns the
// results. The error is that of the first item that failed, or else of the first that waits. Each further try of a retry is about
// the items that have no result yet.
func (r *Runner) branches(ctx context.Context, t *run.Task, items []item) (collection, error) {
	m := &mapping{Runner: r, task: t, state: t.Draft.State(), items: items, ends: make([]itemEnd, len(items))}
	record := t.Steps
	return tryNode(ctx, r, t, func(ctx context.Context) (collection, error) {
		t.Steps = record // the ends of items are kept for all tries, see sub
		m.begin(t.Retries + 1)
		return within(ctx, t.Node, m.work)
	})
}

// begin prepares a try.
func (m *mapping) begin(try int) {
	m.try, m.finished, m.failed, m.broken = try, 0, 0, false
	for i, e := range m.ends {
		if !e.over || e.failed && m.again {
			m.ends[i] = itemEnd{}
			continue
		}
		m.finished++
		if e.failed {
			m.failed++
		}
	}
	m.again = false
}

// sub returns the task of the item at index i.
func (m *mapping) sub(i int) *run.Task {
	t := m.subTask(m.task, m.state, m.items[i].number, m.items[i].value)
	if m.try > 1 {
		t.Steps = t.Steps.At(fmt.Sprintf("again/%d", m.try))
	}
	return t
}

// work makes one try.
func (m *mapping) work(ctx context.Context) (c collection, err error) {
	r, t, items := m.Runner, m.task, m.items
	ctx, m.stop = context.WithCancelCause(ctx)
	defer m.stop(nil)
	answered, err := m.recall(ctx)
	if err != nil {
		return c, err
	}
	turns := make([]*run.Turn, len(items))
	if r.Plan.Graph().IsQuestion(t.Node) {
		turns = t.Turn.Turns(len(items))
	}
	for _, i := range answered { // one by one, so that what is enough does not depend on their speed
		if err := m.run(ctx, i, turns[i]); err != nil {
			return c, err
		}
	}
	width := min(max(1, cmp.Or(t.Node.Map.MaxConcurrency, r.Plan.Graph().Settings.MaxConcurrency)), len(items))
	next, failures := make(chan int), make([]error, width)
	var wg sync.WaitGroup
	for w := range width {
		wg.Go(func() { // ends when next is closed
			for i := range next {
				if err := m.run(ctx, i, turns[i]); err != nil && failures[w] == nil {
					failures[w] = err
				}
			}
		})
	}
	for i := range items {
		next <- i
	}
	close(next)
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		return c, err
	}
	return m.collect(ctx)
}

// recall reads which items were over before the run was interrupted, and returns the indexes of the items whose question
// was answered since.
func (m *mapping) recall(ctx context.Context) (answered []int, err error) {
	if !m.task.Steps.Recording() {
		return nil, nil
	}
	if _, m.stopped, err = steps.ReadNote[bool](ctx, m.task.Steps, enoughKey); err != nil {
		return nil, err
	}
	round, err := m.round(ctx)
	if err != nil {
		return nil, err
	}
	asks := m.Plan.Graph().IsQuestion(m.task.Node)
	for i, it := range m.items {
		if m.ends[i].over {
			continue
		}
		s := m.task.Steps.At(itemKey(it.number))
		rec, over, err := steps.ReadNote[itemRecord](ctx, s, itemDone)
		if err == nil && !over && m.tolerates() {
			rec, over, err = steps.ReadNote[itemRecord](ctx, s, itemFailed(round))
		}
		switch {
		case err != nil:
			return nil, err
		case over:
			m.charge(m.task, rec.Usage)
			m.end(i, rec)
		case asks && !m.stopped:
			if answered, err = m.addAnswered(ctx, answered, i); err != nil {
				return nil, err
			}
		}
	}
	if m.finished > 0 {
		return answered, errors.Join(m.progress(ctx), m.judge(ctx))
	}
	return answered, nil
}

// addAnswered adds an item whose question is answered.
func (m *mapping) addAnswered(ctx context.Context, list []int, i int) ([]int, error) {
	known, err := m.questions(m.sub(i)).Answered(ctx)
	if known {
		list = append(list, i)
	}
	return list, err
}

// Keys of the record of a map: that its results were enough; below those of an item, that it is over, and that it failed, in
// the round of the map, which begins anew each time it fails because too few succeeded.
const (
	enoughKey = "enough/done"
	itemDone  = "done"
)

func itemFailed(round int) string { return fmt.Sprintf("failed/%d/done", round) }
func roundKey(round int) string   { return fmt.Sprintf("round/%d/done", round) }

// round returns the number of times that the map failed because too few items succeeded.
func (m *mapping) round(ctx context.Context) (n int, err error) {
	if m.task.Node.Map.MinSuccess == nil {
		return 0, nil
	}
	for ; ; n++ {
		if _, failed, err := steps.ReadNote[bool](ctx, m.task.Steps, roundKey(n)); err != nil || !failed {
			return n, err
		}
	}
}

// tolerates reports whether a failed item is not yet a failure of the map.
func (m *mapping) tolerates() bool {
	policy := m.task.Node.Map.OnError
	return policy == graph.ItemsSkip || policy == graph.ItemsCollect
}

// run runs the branch for an item that is not over, unless the results are enough. The error is that of an emitter or of the
// record.
func (m *mapping) run(ctx context.Context, i int, turn *run.Turn) error {
	m.mu.Lock()
	done := m.stopped || m.ends[i].over || m.ends[i].begun
	m.ends[i].begun = true
	m.mu.Unlock()
	if done {
		turn.End()
		return nil
	}
	sub := m.sub(i)
	sub.Turn = turn
	result, inner, err := m.branch(ctx, sub, m.task.Node.Map.OutputKey)
	turn.End()
	m.mu.Lock()
	addUsage(m.task, sub.Usage)
	m.mu.Unlock()
	switch {
	case err == nil:
		return m.finish(ctx, i, sub, itemRecord{Result: result, Usage: sub.Usage, Inner: inner})
	case m.tolerates() && ctx.Err() == nil && isItemFailure(ctx, err):
		return m.finish(ctx, i, sub, itemRecord{Error: short(err), Usage: sub.Usage})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends[i].err = err
	if fault.CodeOf(err) == fault.Suspended || ctx.Err() != nil {
		return nil
	}
	m.finished++
	m.fail(i)
	m.broken = true
	return m.progress(ctx)
}

// isItemFailure reports whether err is the failure of an item, and nothing that ends all work.
func isItemFailure(ctx context.Context, err error) bool {
	return !is[*unfitError](asUnfit(err)) && (!isFinal(ctx, err) || is[*limitError](err) && ctx.Err() == nil)
}

// finish keeps the end of an item, and stops the others if the results are enough.
func (m *mapping) finish(ctx context.Context, i int, sub *run.Task, rec itemRecord) error {
	if m.task.Node.Map.Enough == nil {
		if err := m.record(ctx, i, rec); err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
	} else { // what is on record is what was judged
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.stopped {
			return nil
		}
		if err := m.record(ctx, i, rec); err != nil {
			return err
		}
	}
	m.end(i, rec)
	if rec.Error != "" {
		what := "is left out"
		if m.task.Node.Map.OnError == graph.ItemsCollect {
			what = "is collected as failed"
		}
		err := sub.Events.Emit(ctx, event.Warning{Text: fmt.Sprintf("item %s failed and %s: %s", m.items[i].name, what, rec.Error)})
		if err != nil {
			return err
		}
	}
	return errors.Join(m.progress(ctx), m.judge(ctx))
}

// record puts the end of an item on record.
func (m *mapping) record(ctx context.Context, i int, rec itemRecord) error {
	s := m.task.Steps.At(itemKey(m.items[i].number))
	if rec.Error == "" {
		return steps.WriteNote(ctx, s, itemDone, rec)
	}
	round, err := m.round(ctx)
	if err != nil {
		return err
	}
	return steps.WriteNote(ctx, s, itemFailed(round), rec)
}

// end notes the end of an item. The caller holds m.mu, or is alone.
func (m *mapping) end(i int, rec itemRecord) {
	m.finished++
	m.ends[i].over, m.ends[i].result, m.ends[i].inner = true, rec.Result, rec.Inner
	if rec.Error == "" {
		return
	}
	m.fail(i)
	m.ends[i].failed, m.ends[i].err = true, errors.New(rec.Error)
	m.ends[i].result = value.ObjectOf(value.Member{Name: graph.ItemErrorKey, Value: value.ObjectOf(
		value.Member{Name: "node", Value: value.Of(m.task.Node.Map.Branch)},
		value.Member{Name: "message", Value: value.Of(rec.Error)},
	).Value()}).Value()
}

// failedNamed bounds how many failed items are named while a map is at work.
const failedNamed = 5

// fail notes that an item failed. The caller holds m.mu, or is alone.
func (m *mapping) fail(i int) {
	if m.failed++; m.failed <= failedNamed {
		m.failedItems = append(m.failedItems, m.items[i].name)
	}
}

// progress says how far the map has come. The caller holds m.mu, or is alone.
func (m *mapping) progress(ctx context.Context) error {
	return m.task.Events.Emit(ctx, event.MapProgress{Done: m.finished, Total: len(m.items), Failed: m.failed, FailedItems: slices.Clone(m.failedItems)})
}

// judge stops the items if the results so far are enough. The caller holds m.mu, or is alone.
func (m *mapping) judge(ctx context.Context) error {
	enough := m.task.Node.Map.Enough
	if enough == nil || m.stopped || m.broken {
		return nil
	}
	results := value.ListOf(m.results()...).Value()
	holds, err := enough.BoolWith(graph.Overlay{Lookup: m.task.Draft, Key: graph.ResultsKey, Value: results}, expr.Env{Now: m.Now()})
	if err != nil {
		return fmt.Errorf("map node %q: enough: %w", m.task.Node.ID, err)
	}
	if !holds {
		return nil
	}
	m.stopped = true
	m.stop(errEnough)
	return steps.WriteNote(context.WithoutCancel(ctx), m.task.Steps, enoughKey, true)
}

// results returns the results so far, in the order of the items.
func (m *mapping) results() []value.Value {
	list := make([]value.Value, 0, len(m.ends))
	for _, e := range m.ends {
		if e.over && (!e.failed || m.task.Node.Map.OnError == graph.ItemsCollect) {
			list = append(list, e.result)
		}
	}
	return list
}

// collect returns the results of a map whose items have come to rest.
func (m *mapping) collect(ctx context.Context) (c collection, err error) {
	tolerated := -1 // the first
	var waits error
	for i, e := range m.ends {
		switch {
		case e.err == nil:
			c.failed = c.failed.Plus(e.inner)
		case e.over:
			c.failed.Failures++
			if tolerated < 0 {
				tolerated = i
			}
		case m.stopped: // it is not needed any more
		case fault.CodeOf(e.err) == fault.Suspended:
			waits = cmp.Or(waits, e.err)
		case ctx.Err() != nil:
			return c, context.Cause(ctx)
		default:
			return c, m.failure("", i)
		}
	}
	if waits != nil {
		return c, waits
	}
	if share := m.task.Node.Map.MinSuccess; share != nil {
		of := len(m.items)
		if m.stopped {
			of = m.finished
		}
		if succeeded := m.finished - m.failed; succeeded < share.Of(of) {
			return c, m.tooFew(ctx, succeeded, of, tolerated)
		}
	}
	c.results = m.results()
	return c, nil
}

// failure returns the failure of the map because of an item.
func (m *mapping) failure(why string, i int) error {
	return fmt.Errorf("map node %q: %sbranch %q failed for item %s: %w", m.task.Node.ID, why, m.task.Node.Map.Branch, m.items[i].name, m.ends[i].err)
}

// tooFew returns the failure of a map of which too few items succeeded, the first of the others being at the index failed, -1 for
// none. Failed items are run again in the next try, or if the run resumes.
func (m *mapping) tooFew(ctx context.Context, succeeded, of, failed int) error {
	m.again = true
	round, err := m.round(ctx)
	if err == nil {
		err = steps.WriteNote(ctx, m.task.Steps, roundKey(round), true)
	}
	if err != nil {
		return err
	}
	why := fmt.Sprintf("%d of %d items succeeded, and min_success is %s", succeeded, of, m.task.Node.Map.MinSuccess)
	if failed < 0 {
		return fmt.Errorf("map node %q: %s", m.task.Node.ID, why)
	}
	return m.failure(why+": ", failed)
}
