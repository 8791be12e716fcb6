// Package webhook notifies other programs of what happens in runs, and makes links that answer questions.
//
// A hook is an address and the events that it is notified of. A notice is one thing that happened in a run, with a
// key that is unique in it. A [Desk] sends each notice to each hook that wants it until the address has
// taken it, or the tries are used up, also after the process was killed: what must be sent follows from the record of
// the run, and what was sent is in a file of the run's own. Servers that share a database have all that in it,
// and each notice is sent by one of them.
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault/retry"
	"loki/internal/service/postgres"
)

// Hook is an address that is notified of a run.
type Hook struct {
	URL    string   `json:"url"`
	Secret string   `json:"secret,omitempty"` // signs what is sent, see [Sign]; empty for no signature
	Events []string `json:"events,omitempty"` // types of notices; empty for all of them

	// Trusted says that the hook is the configuration's: its texts may refer to secrets, and its
	// address may be a private one.
	Trusted bool `json:"trusted,omitempty"`

	// Form is what the address takes, see [Options.Form]; "" for a notice as Standard Webhooks has it.
	Form string `json:"form,omitempty"`
}

// same reports whether both hooks are one.
func (h Hook) same(o Hook) bool {
	return h.URL == o.URL && h.Secret == o.Secret && h.Trusted == o.Trusted && h.Form == o.Form && slices.Equal(h.Events, o.Events)
}

// Notice is one thing that happened in a run.
type Notice struct {
	Key  string // unique in the run, the same whenever the run is looked at
	Type string // such as "question"
	At   time.Time
	Data any // JSON
}

// Types of notices about runs.
const (
	Question  = "question"  // one that waits for its answer
	Suspended = "suspended" // at a budget, or until a provider is back
	Finished  = "finished"
	Failed    = "failed"
	Canceled  = "canceled"
)

// Types returns the types of notices.
func Types() []string { return []string{Question, Suspended, Finished, Failed, Canceled} }

// Policy says how often a notice is tried: nine times in a bit over a day.
func Policy() retry.Policy {
	return retry.Policy{Attempts: 9, Backoff: 5 * time.Second, Factor: 8, MaxBackoff: 6 * time.Hour, Jitter: 0.1}
}

// Options configure a Desk.
type Options struct {
	Dir string       // of the files; not used with DB
	DB  *postgres.DB // that servers share; nil for files
	// Notices returns what there is to say of a run, and whether there will be more. The error is an
	// [fs.ErrNotExist] if the record of the run is gone.
	Notices func(ctx context.Context, run string) (all []Notice, more bool, err error)
	Fill    func(text string) (string, error) // puts secrets into texts of trusted hooks
	Trusted *http.Client                      // for trusted hooks
	Guarded *http.Client                      // for all others
	Agent   string                            // the header User-Agent; "" for that of Go

	// Form returns what a hook with a form gets, after secrets were filled in. A message without a body has been delivered. Nil
	// knows no forms.
	Form func(ctx context.Context, h Hook, n Notice) (Message, error)

	Log   *slog.Logger
	Now   func() time.Time // nil means time.Now
	Every time.Duration    // how often to look in DB what is due; 0 means 5 s
}

// Message is what an address gets by POST.
type Message struct {
	URL  string
	Body []byte // JSON; nil if it was delivered in another way
}

// Desk sends notices. Its methods may be called from several goroutines.
type Desk struct {
	o   Options
	ctx context.Context // ends with Close
	end context.CancelFunc

	book   book
	shared *shared // the book, if others have it too; else nil
	files  *files  // the book otherwise

	mu     sync.Mutex
	runs   map[string]chan bool // holds a value when a run needs a look, true if something may have happened; by id
	closed bool
	work   sync.WaitGroup // goroutines: one for each of runs, sweep and scan
}

// book keeps the files of runs. Its methods may be called from several goroutines.
type book interface {
	// read returns the file of a run, an empty one if there is none.
	read(run string) (file, error)
	// change changes it, while no other process does, and schedules a look at the run. One without hooks is not kept.
	change(run string, change func(*file)) error
	// remove removes the file of a run whose record is gone.
	remove(run string)
}

// file is what is kept of a run, until its record is gone.
type file struct {
	Hooks []Hook          `json:"hooks"`
	Done  map[string]done `json:"done,omitempty"` // by number of the hook and key of the notice
	Own   *Notice         `json:"own,omitempty"`  // the only one, of what is no run, see [Desk.Post]
}

// done is the state of the delivery of a notice.
type done struct {
	Type     string    `json:"type"`
	At       time.Time `json:"at"` // of the last try
	Attempts int       `json:"attempts"`
	Status   int       `json:"status,omitempty"` // of the last answer; 0 for none
	Error    string    `json:"error,omitempty"`  // of the last try
	Again    time.Time `json:"again,omitzero"`   // of the next try; zero if it was taken or given up
}

// Delivery is how far a notice to an address has come.
type Delivery struct {
	Type     string
	Host     string // scheme and host of the address, whose other parts may be secrets; empty if these are secrets, too
	At       time.Time
	Attempts int
	Status   int       // of the last HTTP answer; 0 if there was none
	Error    string    // of the last try; empty if it was taken
	Again    time.Time // of the next try; zero if it was taken or given up
}

// Open returns a desk that continues with what an earlier one did not send. It works until ctx ends or it is closed.
func Open(ctx context.Context, o Options) (*Desk, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Desk{o: o, runs: make(map[string]chan bool)}
	d.ctx, d.end = context.WithCancel(ctx)
	if o.DB != nil {
		d.shared = &shared{ctx: d.ctx, tables: sharedTables(o.DB)}
		d.book = d.shared
		d.work.Go(d.scan) // ends with d.ctx
		return d, nil
	}
	d.files = &files{dir: o.Dir}
	d.book = d.files
	names, err := d.files.list("")
	if err != nil {
		return nil, err
	}
	rested, err := d.files.list(restedDir)
	if err != nil {
		return nil, err
	}
	for _, run := range names {
		d.Look(run)
	}
	d.work.Go(func() { d.sweep(rested) }) // ends with the list, or with d.ctx
	return d, nil
}

// sweep removes the files of the runs whose record is gone.
func (d *Desk) sweep(runs []string) {
	for _, run := range runs {
		if d.ctx.Err() != nil {
			return
		}
		if f, err := d.book.read(run); err == nil && f.Own != nil && d.o.Now().Sub(f.Own.At) < ownAge {
			continue
		}
		if _, _, err := d.o.Notices(d.ctx, run); errors.Is(err, fs.ErrNotExist) {
			d.book.remove(run)
		}
	}
}

// scan looks at the runs that are due, whichever server had them before.
func (d *Desk) scan() {
	if rested, err := d.shared.sentRuns(); err == nil {
		d.sweep(rested)
	}
	for retry.Sleep(d.ctx, cmp.Or(d.o.Every, dueEvery)) == nil {
		runs, err := d.shared.due()
		if err != nil && d.ctx.Err() == nil {
			d.o.Log.Warn("the notices that are due cannot be found", "error", err)
		}
		for _, run := range runs {
			d.look(run, false)
		}
	}
}

// Close waits until nothing is being sent any more.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.end()
	d.work.Wait()
}

// Add notifies hooks of a run, besides its present ones, and also of what happens from now on in a run that
// was over and resumes. It returns once that is kept.
func (d *Desk) Add(run string, hooks ...Hook) error {
	err := d.book.change(run, func(f *file) {
		for _, h := range hooks {
			if !slices.ContainsFunc(f.Hooks, h.same) {
				f.Hooks = append(f.Hooks, h)
			}
		}
	})
	if err == nil {
		d.Look(run)
	}
	return err
}

// ownAge is how long a notice of what is no run is kept.
const ownAge = 30 * 24 * time.Hour

// Post sends a notice that is about no run, once for each id, which names no run. It returns once that is kept.
func (d *Desk) Post(id string, n Notice, hooks ...Hook) error {
	err := d.book.change(id, func(f *file) {
		if f.Own == nil {
			f.Own, f.Hooks = &n, hooks
		}
	})
	if err == nil {
		d.Look(id)
	}
	return err
}

// Try sends a notice to a hook once, and keeps nothing.
func (d *Desk) Try(h Hook, n Notice) error {
	_, err := d.post("test", h, n)
	return err
}

// Deliveries returns the deliveries of the notices of a run, in the order of the last tries.
func (d *Desk) Deliveries(run string) ([]Delivery, error) {
	f, err := d.book.read(run)
	var list []Delivery
	for key, n := range f.Done {
		number, _, _ := strings.Cut(key, " ")
		i, convErr := strconv.Atoi(number)
		if convErr != nil || i < 0 || i >= len(f.Hooks) {
			continue
		}
		list = append(list, Delivery{n.Type, f.Hooks[i].host(), n.At, n.Attempts, n.Status, n.Error, n.Again})
	}
	slices.SortFunc(list, func(a, b Delivery) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Type, b.Type))
	})
	return list, err
}

// host returns the part of the address that is not a secret.
func (h Hook) host() string {
	u, err := url.Parse(h.URL)
	if err != nil || u.Host == "" || strings.ContainsAny(u.Host, "{}") {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Look is called when something may have happened in a run.
func (d *Desk) Look(run string) { d.look(run, true) }

func (d *Desk) look(run string, news bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	wake := d.runs[run]
	if wake == nil {
		if d.closed || d.files != nil && !d.files.waits(run) {
			return
		}
		wake = make(chan bool, 1)
		d.runs[run] = wake
		if d.shared != nil {
			defer d.work.Go(func() { d.visit(run, wake) }) // ends when the run was looked at, or with d.ctx
		} else {
			d.work.Go(func() { d.follow(run, wake) }) // ends with the run, or with d.ctx
		}
	}
	select {
	case wake <- news:
	case old := <-wake:
		wake <- old || news // only here is something sent
	}
}

// follow sends the notices of a run until there will be none any more.
func (d *Desk) follow(run string, wake <-chan bool) {
	for {
		next, over, err := d.send(run)
		gone := d.failed(run, err)
		d.mu.Lock()
		if over || gone || d.ctx.Err() != nil {
			if len(wake) == 0 || gone || d.ctx.Err() != nil {
				switch {
				case gone:
					d.book.remove(run)
				case over:
					d.files.rest(run)
				}
				delete(d.runs, run)
				d.mu.Unlock()
				return
			}
		}
		d.mu.Unlock()
		timer := time.NewTimer(cmp.Or(next, time.Hour))
		select {
		case <-wake:
		case <-timer.C:
		case <-d.ctx.Done():
		}
		timer.Stop()
	}
}

// failed reports whether an error says that the record of a run is gone. Another one is logged.
func (d *Desk) failed(run string, err error) (gone bool) {
	gone = errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone && d.ctx.Err() == nil {
		d.o.Log.Warn("the notices of a run cannot be sent", "run_id", run, "error", err)
	}
	return gone
}

// visit sends what is due now of a run that other servers look at, too.
func (d *Desk) visit(run string, wake <-chan bool) {
	for again := false; ; {
		news := false
		if !again {
			news = <-wake // there is something in it now
		}
		var err error
		if again, err = d.attend(run, news); d.failed(run, err) {
			d.book.remove(run)
		}
		d.mu.Lock()
		if d.ctx.Err() != nil || len(wake) == 0 && !again {
			delete(d.runs, run)
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
	}
}

// attend sends what is due now of a run, unless another server does. again says that something has happened meanwhile.
func (d *Desk) attend(run string, news bool) (again bool, err error) {
	if news {
		if waits, err := d.shared.heard(run); err != nil || !waits {
			return false, err
		}
	}
	c, ok, err := d.shared.claim(run)
	if err != nil || !ok {
		return false, err
	}
	next, over, err := d.send(run)
	if errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	switch {
	case d.ctx.Err() != nil:
		next = time.Nanosecond // another server continues
	case next == 0 && !over:
		next = dueAtAll
	}
	again, releaseErr := d.shared.release(c, next)
	return again, errors.Join(err, releaseErr)
}

// send tries what is due. It returns after what time to try again, 0 for not before the run has changed, and
// whether all is over.
func (d *Desk) send(run string) (next time.Duration, over bool, err error) {
	f, err := d.book.read(run)
	if err != nil {
		return 0, false, err
	}
	var notices []Notice
	more := false
	if f.Own != nil {
		notices = []Notice{*f.Own}
	} else if notices, more, err = d.o.Notices(d.ctx, run); err != nil {
		return time.Minute, false, err
	}
	for i, hook := range f.Hooks {
		for _, n := range notices {
			key := strconv.Itoa(i) + " " + n.Key
			last, tried := f.Done[key]
			if tried && last.Again.IsZero() || len(hook.Events) > 0 && !slices.Contains(hook.Events, n.Type) {
				continue
			}
			if wait := last.Again.Sub(d.o.Now()); wait > 0 {
				next = cmp.Or(min(next, wait), wait)
				continue
			}
			status, sendErr := d.post(run, hook, n)
			if sendErr != nil && d.ctx.Err() != nil {
				return 0, false, d.ctx.Err()
			}
			result := done{Type: n.Type, At: d.o.Now(), Attempts: last.Attempts + 1, Status: status}
			if sendErr != nil {
				result.Error = reason(status, sendErr)
				d.o.Log.Warn("a notice was not delivered", "run_id", run, "host", hook.host(), "type", n.Type, "attempt", result.Attempts, "error", sendErr)
				if wait, again := Policy().Wait(result.Attempts, 0, 0.5); again {
					next = cmp.Or(min(next, wait), wait)
					result.Again = result.At.Add(wait)
				}
			}
			if err := d.note(run, key, result); err != nil {
				return time.Minute, false, err
			}
		}
	}
	return next, next == 0 && !more, nil
}

// note keeps the result of a notice.
func (d *Desk) note(run, key string, result done) error {
	return d.book.change(run, func(f *file) {
		if f.Done == nil {
			f.Done = make(map[string]done)
		}
		f.Done[key] = result
	})
}

// reason is why a try failed, for those who may see the run: not what only the operator of the server is to know, such as what its
// resolver says or which addresses it may use. That is in the log.
func reason(status int, err error) string {
	switch {
	case status != 0:
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	}
	return "it could not be reached"
}

// timeout bounds a try.
const timeout = 20 * time.Second

// post sends a notice once. It returns the status of the answer, 0 for none. The error names no address, since
// that may hold a secret.
func (d *Desk) post(run string, hook Hook, n Notice) (status int, err error) {
	client := d.o.Guarded
	if hook.Trusted {
		client = d.o.Trusted
		for _, text := range []*string{&hook.URL, &hook.Secret} {
			filled, err := d.o.Fill(*text)
			if err != nil {
				return 0, err
			}
			*text = filled
		}
	}
	ctx, cancel := context.WithTimeout(d.ctx, timeout)
	defer cancel()
	body, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{n.Type, n.At.UTC(), n.Data})
	if hook.Form != "" && err == nil {
		var m Message
		m, err = d.o.Form(ctx, hook, n)
		if hook.URL, body = m.URL, m.Body; err == nil && body == nil {
			return 0, nil
		}
	}
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("its address is not valid")
	}
	sum := sha256.Sum256([]byte(run + " " + n.Key))
	id, now := "msg_"+hex.EncodeToString(sum[:12]), d.o.Now()
	req.Header.Set("Content-Type", "application/json")
	if d.o.Agent != "" {
		req.Header.Set("User-Agent", d.o.Agent)
	}
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	if hook.Secret != "" {
		req.Header.Set("Webhook-Signature", Sign(hook.Secret, id, now, body))
	}
	resp, err := client.Do(req)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return resp.StatusCode, fmt.Errorf("it answered with status %d", resp.StatusCode)
	}
	return resp.StatusCode, nil
}
