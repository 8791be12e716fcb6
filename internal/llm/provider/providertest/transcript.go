package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"sync"
	"testing"

	"loki/internal/llm/provider/providertest/wiretest"
)

// Playback is a server on the loopback interface that plays a [Transcript].
type Playback struct {
	URL string // without a slash at the end; the recorded paths follow

	t      testing.TB
	script Transcript

	mu   sync.Mutex
	next int // the exchange that the next request belongs to
}

// Play reads the transcript in file and plays it until the test is over: the first
// request has to be the first one recorded, and so on. A request that differs, one
// too many and one too few are reported to t.
func Play(t testing.TB, file string) *Playback {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	script, err := ParseTranscript(data)
	if err != nil {
		t.Fatalf("%s:%v", file, err)
	}
	p := &Playback{t: t, script: script}
	server := httptest.NewServer(http.HandlerFunc(p.serve))
	p.URL = server.URL
	t.Cleanup(func() {
		server.Close()
		if n := len(p.script.Exchanges); p.next < n && !t.Failed() {
			t.Errorf("%s: %d of %d requests came", file, p.next, n)
		}
	})
	return p
}

func (p *Playback) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == len(p.script.Exchanges) {
		p.refuse(w, fmt.Sprintf("request %d is not in the transcript: %s %s", p.next+1, r.Method, r.URL))
		return
	}
	x := p.script.Exchanges[p.next]
	p.next++
	if err := wiretest.Record(p.script.Provider, p.script.API, r.URL.String(), body); err != nil {
		p.t.Error(err)
	}
	if wrong := x.Request.differs(r, body); wrong != "" {
		p.refuse(w, fmt.Sprintf("request %d: %s", p.next, wrong))
		return
	}
	x.Response.send(w)
}

func (p *Playback) refuse(w http.ResponseWriter, why string) {
	p.t.Error(why)
	http.Error(w, why, http.StatusNotImplemented)
}

// differs returns how a request is another than r, empty if it is the same.
func (r RecordedRequest) differs(got *http.Request, body []byte) string {
	if got.Method != r.Method || got.URL.String() != r.Target {
		return fmt.Sprintf("%s %s, want %s %s", got.Method, got.URL, r.Method, r.Target)
	}
	for name, want := range r.Header {
		if v := got.Header.Get(name); v != want[0] {
			return fmt.Sprintf("header %s is %q, want %q", name, v, want[0])
		}
	}
	if len(bytes.TrimSpace(r.Body)) == 0 && len(body) == 0 {
		return ""
	}
	var want, have any
	if err := json.Unmarshal(r.Body, &want); err != nil {
		return fmt.Sprintf("the recorded body: %v", err)
	}
	if err := json.Unmarshal(body, &have); err != nil || !reflect.DeepEqual(have, want) {
		return fmt.Sprintf("the body is\n%s\nwant\n%s", indented(body), indented(r.Body))
	}
	return ""
}

func indented(doc []byte) string {
	var v any
	if json.Unmarshal(doc, &v) != nil {
		return string(doc)
	}
	out, err := json.MarshalIndent(v, "", "  ") // sorts the members
	if err != nil {
		return string(doc)
	}
	return string(out)
}

// send sends the response, each chunk on its own.
func (r RecordedResponse) send(w http.ResponseWriter) {
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(r.Status)
	for body := r.Body; len(body) > 0; {
		n := len(body)
		if r.Chunk > 0 {
			n = min(n, r.Chunk)
		}
		if _, err := w.Write(body[:n]); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		body = body[n:]
	}
	if r.Cut {
		panic(http.ErrAbortHandler) // the documented way, see http.Handler
	}
}
