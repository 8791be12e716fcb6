package knowledge_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/conversation/launch"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
)

// terminal is a user at a terminal whose answers are prepared.
type terminal struct{ *asktest.Scripted }

func (terminal) AtTerminal() bool { return true }

// library returns a program with files in its configuration directory.
func library(t *testing.T, files ...string) (a *app.App, dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := app.New(app.Options{Environ: []string{"HOME=" + dir, "LOKI_CONFIG_DIR=" + dir, "LOKI_STATE_DIR=" + filepath.Join(dir, "state"), "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, dir
}

// build builds the knowledge base called notes of documents.
func build(t *testing.T, a *app.App, documents ...string) {
	t.Helper()
	set, err := a.Knowledge().New(t.Context(), event.Scope{}, nil, rag.Settings{Documents: documents}, true)
	if err != nil {
		t.Fatal(err)
	}
	file, err := a.Knowledge().Library().File("notes")
	if err != nil {
		t.Fatal(err)
	}
	store, err := a.Knowledge().Library().Store(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Knowledge().Builder(event.Scope{}, nil).Build(t.Context(), "notes", store, set); err != nil {
		t.Fatal(err)
	}
}

// TestBasesAreShared: all users of a knowledge base have the same one, until it is built again.
func TestBasesAreShared(t *testing.T) {
	a, dir := library(t, "bees.md", "Bees make honey.", "ants.md", "Ants keep aphids.")
	if _, _, err := a.Knowledge().Open(t.Context(), event.Scope{}, "notes"); fault.CodeOf(err) != fault.NotFound {
		t.Fatalf("before the build: %v", err)
	}
	build(t, a, filepath.Join(dir, "bees.md"))
	open := func() (*rag.Base, func()) {
		b, release, err := a.Knowledge().Open(t.Context(), event.Scope{}, "notes")
		if err != nil {
			t.Fatal(err)
		}
		return b, release
	}
	first, releaseFirst := open()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // ends with the search
			b, release, err := a.Knowledge().Open(t.Context(), event.Scope{}, "notes")
			if err != nil || b != first {
				t.Errorf("another base: %v", err)
				return
			}
			defer release()
			if found, err := b.Search(t.Context(), rag.Query{Text: "honey"}); err != nil || len(found.Hits) != 1 {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
	wg.Wait()

	build(t, a, filepath.Join(dir, "bees.md"), filepath.Join(dir, "ants.md"))
	second, releaseSecond := open()
	if second == first {
		t.Error("the base is the old one")
	}
	if found, err := first.Search(t.Context(), rag.Query{Text: "honey"}); err != nil || len(found.Hits) != 1 {
		t.Errorf("the old base, which is in use: %+v, %v", found, err)
	}
	if found, err := second.Search(t.Context(), rag.Query{Text: "aphids"}); err != nil || len(found.Hits) == 0 || found.Hits[0].Text != "Ants keep aphids." {
		t.Errorf("the new base: %+v, %v", found, err)
	}
	releaseFirst()
	releaseSecond()
	if third, release := open(); third != second {
		t.Error("a base without users was not kept for the next one")
	} else {
		release()
	}
}

// TestRunsShareBases: runs that begin at the same time build a knowledge base once and share it.
func TestRunsShareBases(t *testing.T) {
	a, _ := library(t, "agents/look/docs/bees.md", "Bees make honey.", "agents/look/graph.yaml", `
name: look
start: find
nodes:
  find: {type: rag, documents: [docs], embedding_model: "builtin:hash", chunk_size: 100, chunk_overlap: 0, state_updates: {found: "{{output.context}}"}, next: done}
  done: {type: end, output: "{{found}}"}
`)
	ref, err := a.Agents.Find("look")
	if err != nil {
		t.Fatal(err)
	}
	of, _, err := a.Agents.Load(ref)
	if err != nil {
		t.Fatal(err)
	}
	events := new(eventtest.Collector)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { // ends with the run
			job, err := a.AgentJob(t.Context(), launch.Run{Agent: of, Prompt: "what do bees make", Events: a.Events(events), Asker: ask.Unavailable{}})
			if err != nil {
				t.Error(err)
				return
			}
			if out, err := a.Runs().Start(t.Context(), job); err != nil || !strings.HasSuffix(out.Output, "docs/bees.md:1]\nBees make honey.") {
				t.Errorf("output %q, %v", out.Output, err)
			}
		})
	}
	wg.Wait()
	if built, found := len(eventtest.Bodies[event.IndexStarted](events)), len(eventtest.Bodies[event.Retrieved](events)); built != 1 || found != 4 {
		t.Errorf("%d builds and %d searches", built, found)
	}
}

// TestAgentAsksToBuild: at a terminal the user decides, and says what the node leaves open.
func TestAgentAsksToBuild(t *testing.T) {
	a, dir := library(t, "agents/look/docs/bees.md", "Bees make honey.", "agents/look/graph.yaml", `
name: look
start: find
nodes:
  find: {type: rag, documents: [docs], state_updates: {found: "{{output.context}}"}, next: done}
  done: {type: end, output: "{{found}}"}
`)
	ref, err := a.Agents.Find("look")
	if err != nil {
		t.Fatal(err)
	}
	of, _, err := a.Agents.Load(ref)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(ctx context.Context, user *asktest.Scripted) error {
		_, err := a.AgentJob(ctx, launch.Run{Agent: of, Prompt: "x", Events: a.Events(new(eventtest.Collector)), Asker: terminal{user}})
		return err
	}
	if err := begin(t.Context(), asktest.NewScripted("no")); fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "loki -a look --rebuild-rag") {
		t.Errorf("an answer of no: %v", err)
	}
	if err := begin(t.Context(), asktest.NewScripted("yes", "builtin:hash", "many")); err == nil {
		t.Error("a chunk size that is not a number is accepted")
	}
	user := asktest.NewScripted("yes", "builtin:hash max-tokens:-", "300", "10")
	if err := begin(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	asked := user.Asked()
	if len(asked) != 4 || !strings.HasPrefix(asked[1].Options[0], "builtin:hash ") || asked[2].Default != "2000" || asked[3].Default != "15" {
		t.Errorf("asked %+v", asked)
	}
	if _, err := os.Stat(filepath.Join(dir, "agents", "look", "find.db")); err != nil {
		t.Error(err)
	}
	base, release, err := a.Knowledge().OpenOf(t.Context(), event.Scope{}, of, "")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if s := base.Settings(); s.ChunkSize != 300 || s.ChunkOverlap != 10 || s.TopK != 5 {
		t.Errorf("settings %+v", s)
	}
}
