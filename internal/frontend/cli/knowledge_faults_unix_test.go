//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// embeddings is a server that turns texts into vectors of 4 dimensions.
type embeddings struct {
	*httptest.Server

	requests atomic.Int64
	mu       sync.Mutex
	reply    answer
	texts    map[string]int // how often each was sent
}

// answer takes the place of the regular reply to a request, by its number from 1, unless it returns
// false.
type answer func(w http.ResponseWriter, r *http.Request, n int64) bool

// set makes the server answer in another way from now on.
func (e *embeddings) set(reply answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reply = reply
}

func newEmbeddings(t *testing.T, reply answer) *embeddings {
	t.Helper()
	e := &embeddings{reply: reply, texts: make(map[string]int)}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *embeddings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := e.requests.Add(1)
	var body struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	for _, text := range body.Input {
		e.texts[text]++
	}
	reply := e.reply
	e.mu.Unlock()
	if reply != nil && reply(w, r, n) {
		return
	}
	vectors := make([][]float32, len(body.Input))
	for i, text := range body.Input {
		vectors[i] = []float32{1, float32(len(text) % 7), float32(strings.Count(text, "a")), float32(strings.Count(text, "e"))}
	}
	writeVectors(w, vectors)
}

func writeVectors(w http.ResponseWriter, vectors [][]float32) {
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	items := make([]item, len(vectors))
	for i, v := range vectors {
		items[i] = item{i, v}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": items, "usage": map[string]int{"prompt_tokens": 1}}) // a client that has gone
}

// librarian is a user with a home, a model of e and a directory of documents.
type librarian struct {
	dir string
	env []string
}

func newLibrarian(t *testing.T, e *embeddings) librarian {
	t.Helper()
	dir := t.TempDir()
	if e != nil {
		write(t, filepath.Join(dir, "home", "config", "config.yaml"), fmt.Sprintf(`
rag_embedding_model: emb:vectors
clients:
  - {type: openai-compatible, name: emb, api_base: '%s', models: [{name: vectors, type: embedding, max_batch_size: 4, default_chunk_size: 200}]}
`, e.URL))
	}
	return librarian{dir, emptyHome(dir)}
}

func (k librarian) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "loki", args...)
	cmd.Dir, cmd.Env = k.dir, k.env
	return cmd
}

// run runs the program and checks its exit status.
func (k librarian) run(t *testing.T, status int, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := k.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the status says it
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("loki %q: exit status %d, want %d\n%s%s", args, got, status, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// note writes a document of some 20 chunks.
func (k librarian) note(t *testing.T, name string) {
	t.Helper()
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "Paragraph %d of %s is about bees. They make honey, wax and royal jelly. It is long enough to be a chunk of its own, since a chunk has about two hundred characters here.\n\n", i, name)
	}
	write(t, filepath.Join(k.dir, "docs", name), b.String())
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// TestKnowledgeHostileFiles builds from a directory of everything that is not a document: what
// can be read is found, what is broken is named, and nothing hangs.
func TestKnowledgeHostileFiles(t *testing.T) {
	k := newLibrarian(t, nil)
	docs := filepath.Join(k.dir, "docs")
	for name, text := range map[string]string{
		"good.md":             "# Bees\n\nThe queen lays two thousand eggs a day.\n",
		"empty.txt":           "",
		"broken.pdf":          "%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\nxref\n0 99999999\ntrailer\n<< /Size 4 /Root 1 0 R /Prev 9 >>\nstartxref\n9\n%%EOF\n",
		"broken.docx":         "PK\x03\x04\x14\x00\x00\x00\x08\x00 not an archive at all",
		"program":             "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00",
		"two\nlines.md":       "A name of two lines: the smoker calms the hive.\n",
		`it's "quoted".md`:    "Quoted names: drones have no sting.\n",
		"latin-\xe9.md":       "Names in Latin-1: propolis seals the gaps.\n",
		"deep/er/comb.md":     "Below: a comb has hexagonal cells.\n",
		".hidden/secret.md":   "Hidden: the waggle dance shows the way.\n",
		".git/objects/aa.md":  "objects of git are not documents",
		"escape\x1b[31mes.md": "Escape sequences: a swarm leaves in May.\n",
	} {
		write(t, filepath.Join(docs, filepath.FromSlash(name)), text)
	}
	for old, name := range map[string]string{docs: "loop", "nowhere": "dangling", "../deep": "deep/up"} {
		if err := os.Symlink(old, filepath.Join(docs, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(docs, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	sparse := filepath.Join(docs, "sparse.txt")
	write(t, sparse, "x")
	if err := os.Truncate(sparse, 2<<30); err != nil {
		t.Skipf("the file system of the test has no files with holes: %v", err)
	}
	if err := os.Chmod(filepath.Join(docs, "empty.txt"), 0); err != nil { // the superuser reads it all the same
		t.Fatal(err)
	}

	begin := time.Now()
	_, stderr := k.run(t, 0, "--rag", "bees", "--rag-add", "docs")
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	has(t, stderr, "broken.pdf", "broken.docx")
	if strings.Contains(stderr, "\x1b[31m") || strings.Contains(stderr, "two\nlines") {
		t.Errorf("a name of a file reaches the terminal: %q", stderr)
	}
	for query, name := range map[string]string{
		"how many eggs does the queen lay": "good.md", "the smoker calms": `two\nlines.md`, "do drones sting": `it's "quoted".md`,
		"propolis gaps": "latin-", "hexagonal comb": "deep/er/comb.md", "waggle dance": ".hidden/secret.md", "when does a swarm leave": "escape",
	} {
		stdout, _ := k.run(t, 0, "--rag", "bees", "--rag-query", query, "--output", "json")
		var reply struct{ Hits []struct{ Path string } }
		if err := json.Unmarshal([]byte(stdout), &reply); err != nil || len(reply.Hits) == 0 {
			t.Fatalf("%s: %v in %s", query, err, stdout)
		}
		if !strings.Contains(reply.Hits[0].Path, name) {
			t.Errorf("%s: found %q, not %q", query, reply.Hits[0].Path, name)
		}
	}
	if stdout, _ := k.run(t, 0, "--rag", "bees", "--rag-query", "objects of git are not documents", "--output", "json"); strings.Contains(stdout, ".git/") {
		t.Errorf("what is in .git is a document: %s", stdout)
	}

	// Nothing there at all.
	if err := os.Mkdir(filepath.Join(k.dir, "none"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, stderr = k.run(t, 4, "--rag", "none", "--rag-add", "none")
	has(t, stderr, "there are no documents at ")
}

// TestKnowledgeGrowingFile builds while a document grows: a build ends, and the next one that finds
// it at rest has all of it.
func TestKnowledgeGrowingFile(t *testing.T) {
	k := newLibrarian(t, nil)
	k.note(t, "log.txt")
	file, err := os.OpenFile(filepath.Join(k.dir, "docs", "log.txt"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // until stop is closed, and far below what a document may have
		defer close(done)
		for range 20_000 {
			select {
			case <-stop:
				return
			default:
				_, _ = file.WriteString("One more line about bees and honey.\n") // a full disk is no concern of the test
			}
		}
	}()
	k.run(t, 0, "--rag", "log", "--rag-add", "docs/log.txt")
	close(stop)
	<-done
	if _, err := file.WriteString("At last the harvest of honey was weighed.\n"); err != nil {
		t.Fatal(err)
	}
	k.run(t, 0, "--rag", "log", "--rebuild-rag")
	stdout, _ := k.run(t, 0, "--rag", "log", "--rag-query", "weighed harvest", "--output", "json")
	has(t, stdout, "harvest of honey was weighed")
}

// TestKnowledgeServers builds with embedding models that misbehave.
func TestKnowledgeServers(t *testing.T) {
	fail := func(w http.ResponseWriter, code int) bool {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"error":{"message":"the server has hiccups"}}`)) // a client that has gone
		return true
	}
	for _, tt := range []struct {
		name   string
		reply  answer
		status int
		stderr string
	}{
		{name: "every_third_fails", reply: func(w http.ResponseWriter, _ *http.Request, n int64) bool { return n%3 == 0 && fail(w, 500) }},
		{name: "always_fails", reply: func(w http.ResponseWriter, _ *http.Request, _ int64) bool { return fail(w, 501) }, status: 5, stderr: "the server has hiccups"},
		{name: "too_few", reply: func(w http.ResponseWriter, _ *http.Request, _ int64) bool {
			writeVectors(w, [][]float32{{1, 2, 3, 4}})
			return true
		}, status: 5, stderr: "1"},
		{name: "other_dimensions", reply: func(w http.ResponseWriter, _ *http.Request, n int64) bool {
			if n == 1 {
				return false
			}
			writeVectors(w, [][]float32{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}})
			return true
		}, status: 5, stderr: "3"},
		{name: "not_a_number", reply: func(w http.ResponseWriter, _ *http.Request, _ int64) bool {
			_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":"AADAfwAAwH8="},{"index":1,"embedding":"AADAfwAAwH8="},{"index":2,"embedding":"AADAfwAAwH8="},{"index":3,"embedding":"AADAfwAAwH8="}]}`))
			return true
		}, status: 5, stderr: "number"},
		{name: "not_json", reply: func(w http.ResponseWriter, _ *http.Request, _ int64) bool {
			_, _ = w.Write([]byte("<html>Bad gateway</html>"))
			return true
		}, status: 5, stderr: "Bad gateway"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newEmbeddings(t, tt.reply)
			k := newLibrarian(t, e)
			for i := range 3 {
				k.note(t, fmt.Sprintf("note-%d.md", i))
			}
			_, stderr := k.run(t, tt.status, "--rag", "bees", "--rag-add", "docs")
			has(t, stderr, tt.stderr)
			if tt.status == 0 {
				k.run(t, 0, "--rag", "bees", "--rag-query", "honey")
				return
			}
			// Nothing half built is in use.
			k.run(t, 4, "--rag", "bees", "--rag-query", "honey")
		})
	}
}

// startBuild starts a build with a server that stops answering after some requests, and returns
// when it has. The returned function lets it answer again.
func startBuild(t *testing.T, k librarian, e *embeddings, before int64) (cmd *exec.Cmd, stderr *bytes.Buffer, resume func()) {
	t.Helper()
	reached, held := make(chan struct{}), make(chan struct{})
	var first sync.Once
	var once sync.Once
	resume = func() { once.Do(func() { close(held) }) }
	t.Cleanup(resume)
	e.set(func(_ http.ResponseWriter, r *http.Request, n int64) bool {
		if n > before {
			first.Do(func() { close(reached) })
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		return false
	})
	cmd = k.command(t.Context(), "--rag", "bees", "--rag-add", "docs")
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reached:
	case <-time.After(20 * time.Second):
		t.Fatalf("the build does not ask for vectors: %s", stderr)
	}
	return cmd, stderr, resume
}

// TestKnowledgeInterrupted ends builds by kill -9 and by Ctrl-C. The base that was there is in use
// until a build has ended, and the next build pays for nothing twice that was safe.
func TestKnowledgeInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		t.Run(strings.ReplaceAll(sig.String(), " ", "_"), func(t *testing.T) {
			t.Parallel()
			e := newEmbeddings(t, nil)
			k := newLibrarian(t, e)
			k.note(t, "first.md")
			k.run(t, 0, "--rag", "bees", "--rag-add", "docs")
			for i := range 20 {
				k.note(t, fmt.Sprintf("note-%02d.md", i))
			}
			cmd, stderr, resume := startBuild(t, k, e, e.requests.Load()+60)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the status says it
			if got := cmd.ProcessState.ExitCode(); sig == syscall.SIGINT && got != 130 {
				t.Errorf("exit status %d: %s", got, stderr)
			}
			resume()
			stdout, _ := k.run(t, 0, "--rag", "bees", "--rag-query", "honey")
			has(t, stdout, "first.md")
			if strings.Contains(stdout, "note-") {
				t.Errorf("half a build is in use: %s", stdout)
			}
			k.run(t, 0, "--rag", "bees", "--rebuild-rag")
			stdout, _ = k.run(t, 0, "--rag", "bees", "--rag-query", "Paragraph 7 of note-19.md")
			has(t, stdout, "note-19.md")
			e.mu.Lock()
			defer e.mu.Unlock()
			again := 0
			for _, n := range e.texts {
				if n > 1 {
					again++
				}
			}
			t.Logf("%d of %d texts were sent again", again, len(e.texts))
			// What was done in the seconds before a kill is not safe yet.
			if sig == syscall.SIGINT && again > len(e.texts)/10 {
				t.Errorf("%d of %d texts were sent again", again, len(e.texts))
			}
		})
	}
}

// TestKnowledgeTwoBuilders starts a build while another one is under way.
func TestKnowledgeTwoBuilders(t *testing.T) {
	e := newEmbeddings(t, nil)
	k := newLibrarian(t, e)
	k.note(t, "note.md")
	cmd, stderr, resume := startBuild(t, k, e, 1)
	_, other := k.run(t, 2, "--rag", "bees", "--rag-add", "docs")
	has(t, other, "bees", fmt.Sprint(cmd.Process.Pid))
	resume()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	stdout, _ := k.run(t, 0, "--rag", "bees", "--rag-query", "honey")
	has(t, stdout, "note.md")
}

// TestKnowledgeGoneWhileInUse deletes and replaces a base while a search waits for its model.
func TestKnowledgeGoneWhileInUse(t *testing.T) {
	for _, name := range []string{"deleted", "replaced"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEmbeddings(t, nil)
			k := newLibrarian(t, e)
			k.note(t, "note.md")
			k.run(t, 0, "--rag", "bees", "--rag-add", "docs")
			base := filepath.Join(k.dir, "home", "config", "rags", "bees.db")
			e.set(func(http.ResponseWriter, *http.Request, int64) bool {
				if err := os.Remove(base); err != nil {
					t.Error(err)
				}
				if name == "replaced" {
					write(t, base, "not a database")
				}
				return false
			})
			stdout, _ := k.run(t, 0, "--rag", "bees", "--rag-query", "honey")
			has(t, stdout, "note.md")
			e.set(nil)
			if name == "deleted" {
				_, stderr := k.run(t, 4, "--rag", "bees", "--rag-query", "honey")
				has(t, stderr, `"bees"`, "hint:")
				return
			}
			_, stderr := k.run(t, 1, "--rag", "bees", "--rag-query", "honey")
			has(t, stderr, base+" is damaged", "hint: remove it")
			if err := os.Remove(base); err != nil {
				t.Fatal(err)
			}
			k.run(t, 0, "--rag", "bees", "--rag-add", "docs")
		})
	}
}

// TestKnowledgeDamaged rebuilds a base whose file was cut off from the settings that are left in it.
func TestKnowledgeDamaged(t *testing.T) {
	e := newEmbeddings(t, nil)
	k := newLibrarian(t, e)
	k.note(t, "note.md")
	k.run(t, 0, "--rag", "bees", "--rag-add", "docs", "--rag-set", "top_k=3")
	base := filepath.Join(k.dir, "home", "config", "rags", "bees.db")
	if err := os.Truncate(base, 30_000); err != nil {
		t.Fatal(err)
	}
	_, stderr := k.run(t, 1, "--rag", "bees", "--rag-query", "honey")
	has(t, stderr, base+" is damaged", "--rebuild-rag")
	_, stderr = k.run(t, 0, "--rag", "bees", "--rebuild-rag")
	has(t, stderr, "is damaged: it is built anew", "1 added")
	stdout, _ := k.run(t, 0, "--rag", "bees", "--rag-query", "honey")
	has(t, stdout, "note.md")
	stdout, _ = k.run(t, 0, "--rag", "bees", "--info")
	has(t, stdout, "top_k: 3", filepath.Join(k.dir, "docs"))
}

// TestKnowledgeDamagedInside rebuilds a base that can be opened, and not searched.
func TestKnowledgeDamagedInside(t *testing.T) {
	e := newEmbeddings(t, nil)
	k := newLibrarian(t, e)
	for i := range 40 {
		k.note(t, fmt.Sprintf("note-%d.md", i))
	}
	k.run(t, 0, "--rag", "bees", "--rag-add", "docs")
	base := filepath.Join(k.dir, "home", "config", "rags", "bees.db")
	data, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[len(data)/2:])
	if err := os.WriteFile(base, data, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _ := k.run(t, 0, "--list-rags")
	has(t, stdout, "bees")
	_, stderr := k.run(t, 1, "--rag", "bees", "--rag-query", "honey")
	has(t, stderr, base+" is damaged", "hint: build it again with --rebuild-rag")
	k.run(t, 0, "--rag", "bees", "--rebuild-rag")
	stdout, _ = k.run(t, 0, "--rag", "bees", "--rag-query", "honey")
	has(t, stdout, "note-")
}

// TestKnowledgeOldFile opens a base that an older version wrote.
func TestKnowledgeOldFile(t *testing.T) {
	e := newEmbeddings(t, nil)
	k := newLibrarian(t, e)
	k.note(t, "note.md")
	old := filepath.Join(k.dir, "home", "config", "rags", "bees.yaml")
	text := fmt.Sprintf(`
embedding_model: emb:vectors
chunk_size: 300
chunk_overlap: 15
reranker_model: null
top_k: 3
batch_size: null
next_file_id: 1
document_paths:
- %[1]s/docs/**/*.md
files:
  0:
    hash: 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
    path: %[1]s/docs/note.md
    documents:
    - page_content: an old chunk
      metadata: {}
vectors:
  0-0: AACAPwAAAEAAAEBAAACAQA==
`, k.dir)
	write(t, old, text)
	stdout, stderr := k.run(t, 0, "--rag", "bees", "--rag-query", "honey")
	has(t, stdout, "note.md")
	has(t, stderr, "bees.yaml")
	if data, err := os.ReadFile(old); err != nil || string(data) != text {
		t.Errorf("the old file was changed: %v", err)
	}
	stdout, stderr = k.run(t, 0, "--info", "--rag", "bees")
	has(t, stdout, "300", "emb:vectors")
	if strings.Contains(stderr, "bees.yaml") {
		t.Errorf("it is said again: %s", stderr)
	}
}

// TestEvaluationCosts asks questions of an embedding model with a price.
func TestEvaluationCosts(t *testing.T) {
	t.Parallel()
	e := newEmbeddings(t, nil)
	k := newLibrarian(t, e)
	config := filepath.Join(k.dir, "home", "config", "config.yaml")
	data, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, strings.Replace(string(data), "type: embedding,", "type: embedding, input_price: 1000,", 1))
	write(t, filepath.Join(k.dir, "docs", "a.md"), "The harbor is open all day.\n")
	write(t, filepath.Join(k.dir, "q.jsonl"), `{"question": "When is the harbor open?", "sources": ["a.md"]}`+"\n")
	k.run(t, 0, "--rag", "harbor", "--rag-add", "docs")
	out, _ := k.run(t, 0, "--rag", "harbor", "--rag-eval", "q.jsonl", "--rag-set", "top_k=1")
	has(t, out, "\nsearching took 4 tokens, $0.0040\n") // by vectors and by both, twice
	out, _ = k.run(t, 0, "--rag", "harbor", "--rag-eval", "q.jsonl", "--output", "json")
	has(t, out, `"cost": 0.002`)
}
