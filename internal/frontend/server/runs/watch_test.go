package runs_test

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"loki/internal/frontend/server/servertest"
)

// watcher reads the events of a run while it works.
type watcher struct {
	t     *testing.T
	res   *http.Response
	lines *bufio.Scanner
}

func watch(t *testing.T, s *servertest.Server, path string, headers ...string) *watcher {
	t.Helper()
	return answered(t, s.Request(http.MethodGet, path, "", headers...))
}

// answered sends a request that is answered with events.
func answered(t *testing.T, request *http.Request) *watcher {
	t.Helper()
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return &watcher{t, res, lines}
}

// next returns the next event; its name is empty when the stream has ended.
func (w *watcher) next() (f frame) {
	w.t.Helper()
	var text strings.Builder
	for w.lines.Scan() {
		if line := w.lines.Text(); line != "" {
			text.WriteString(line + "\n")
			continue
		}
		if list := frames(w.t, text.String()); len(list) > 0 {
			return list[0]
		}
		text.Reset() // a comment
	}
	if err := w.lines.Err(); err != nil {
		w.t.Error(err)
	}
	return frame{}
}

// until reads events up to one with a name.
func (w *watcher) until(name string) (list []frame) {
	w.t.Helper()
	for {
		f := w.next()
		if f.name == "" {
			w.t.Fatalf("the stream ends before %s: %+v", name, list)
		}
		if list = append(list, f); f.name == name {
			return list
		}
	}
}

// TestEvents watches a run from its beginning to its end, from several places on.
func TestEvents(t *testing.T) {
	s := start(t)
	r := begin(t, s, "gate", `{"prompt": "x"}`)
	path := "/v1/runs/" + r.ID + "/events"
	begun(t, s, "x")
	live := watch(t, s, path)
	if live.res.Header.Get("Content-Type") != "text/event-stream" || live.res.Header.Get("X-Accel-Buffering") != "no" || live.res.Header.Get("Cache-Control") == "" {
		t.Errorf("the header is %v", live.res.Header)
	}
	before := live.until("node_started")
	last := before[len(before)-1].id
	late := watch(t, s, path, "Last-Event-ID", strconv.Itoa(last))
	var all, rest []frame
	var both sync.WaitGroup
	both.Go(func() { all = append(before, live.until("end")...) })
	both.Go(func() { rest = late.until("end") })
	open(t, s, "x")
	both.Wait()
	if f := live.next(); f.name != "" {
		t.Errorf("after the end comes %+v", f)
	}
	count := numbered(t, all, 1)
	if recorded := get(t, s, r.ID).Events; count != recorded {
		t.Errorf("%d events, and on record are %d", count, recorded)
	}
	numbered(t, rest, last+1)
	if first, second := withNumbers(all[len(before):]), withNumbers(rest); first != second {
		t.Errorf("one is shown\n%sand the other one\n%s", first, second)
	}
	// Later it is the same list, from any place on, without the pieces.
	whole := frames(t, s.Get(path).Body)
	if withNumbers(whole) != withNumbers(all) || len(whole) != count+1 {
		t.Errorf("later it is\n%sand was\n%s", withNumbers(whole), withNumbers(all))
	}
	for n := range count + 2 {
		id := strconv.Itoa(n)
		for _, a := range []servertest.Answer{s.Get(path, "Last-Event-ID", id), s.Get(path + "?after=" + id), s.Get(path+"?after=1", "Last-Event-ID", id)} {
			list := frames(t, a.Body)
			if expected := withNumbers(whole[min(n, count):]); a.Status != http.StatusOK || withNumbers(list) != expected {
				t.Errorf("after %d: %d\n%swant\n%s", n, a.Status, withNumbers(list), expected)
			}
		}
	}
	for _, wrong := range []string{"x", "-1", "1.5"} {
		refused(t, s.Get(path, "Last-Event-ID", wrong), 400, "invalid_request", "Last-Event-ID")
	}
	refused(t, s.Get(path+"?after=-1"), 400, "invalid_request", "after")
}

// withNumbers returns the events that have numbers, and the end, one a line.
func withNumbers(list []frame) string {
	var b strings.Builder
	for _, f := range list {
		if f.id > 0 || f.name == "end" {
			b.WriteString(strconv.Itoa(f.id) + " " + f.name + " " + f.data + "\n")
		}
	}
	return b.String()
}

// TestWatchQuestions: a watcher stays while the run waits for answers.
func TestWatchQuestions(t *testing.T) {
	s := start(t)
	r := begin(t, s, "asker", `{"wait": 60}`)
	w := watch(t, s, "/v1/runs/"+r.ID+"/events")
	all := w.until("question")
	answer(t, s, r.ID, "who", "Ada")
	all = append(all, w.until("answer")...)
	all = append(all, w.until("question")...)
	answer(t, s, r.ID, "review", "yes")
	all = append(all, w.until("end")...)
	numbered(t, all, 1)
	if last := all[len(all)-1]; !strings.Contains(last.data, `"output":"Hello, Ada 1."`) {
		t.Errorf("the end is %+v", last)
	}
	// One that is canceled while it waits ends for its watchers as well.
	r = begin(t, s, "asker", `{"wait": 60}`)
	w = watch(t, s, "/v1/runs/"+r.ID+"/events")
	w.until("question")
	want(t, s.Post("/v1/runs/"+r.ID+"/cancel", ""), 200)
	if list := w.until("end"); !strings.Contains(list[len(list)-1].data, `"status":"canceled"`) {
		t.Errorf("it ends with %+v", list)
	}
}
