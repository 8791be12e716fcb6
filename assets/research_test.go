package assets_test

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// research runs a script of deep-research in dir with a state, and returns what it prints.
func research(t *testing.T, dir, name string, state map[string]any, env ...string) map[string]any {
	t.Helper()
	interpreter := lookPath(t, "python3")
	if filepath.Ext(name) == ".sh" {
		interpreter = lookPath(t, "bash")
	}
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	file, err := filepath.Abs(filepath.Join("agents", "deep-research", "scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), interpreter, file)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "LLM_AGENT_DATA_DIR=" + filepath.Dir(filepath.Dir(file))}, env...)
	if len(text) < 32<<10 {
		cmd.Env = append(cmd.Env, "GRAPH_STATE="+string(text))
	} else {
		write(t, dir, ".state.json", text)
		cmd.Env = append(cmd.Env, "GRAPH_STATE_FILE="+filepath.Join(dir, ".state.json"))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, stderr.String())
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "__pycache__")); err == nil {
		t.Error("the script left __pycache__ in the agent's directory")
	}
	return got
}

func TestResearchFlow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for prompt, next := range map[string]any{"": "ask_topic", "  \n\t": "ask_topic", " bees\n": nil, "n": nil, `\n`: nil, `,"initial_prompt":""`: nil} {
		if got := research(t, dir, "take_topic.sh", map[string]any{"a": 1, "initial_prompt": prompt}); got["_next"] != next {
			t.Errorf("the prompt %q: %v", prompt, got)
		}
	}
	long := strings.Repeat("long ", 10_000) // of a state in a file
	got := research(t, dir, "gather.py", map[string]any{
		"findings":  []any{map[string]any{"question": "first?", "answer": "one"}},
		"questions": []string{"second?", "third?"}, "answers": []any{"two (https://a.org/x).", long},
	})
	if text := got["findings_text"].(string); !strings.HasPrefix(text, "### first?\n\none\n\n### second?\n\ntwo (https://a.org/x).\n\n### third?\n\nlong long") || len(got["findings"].([]any)) != 3 {
		t.Errorf("gather: %.200s", text)
	}
	got = research(t, dir, "classify.py", map[string]any{
		"findings_text":     "a (https://a.org/x). b https://www.nist.gov/b, c (https://en.wikipedia.org/wiki/C_(language)); again https://a.org/x and doi:10.1000/182.",
		"knowledge_sources": []string{"knowledge/x.md"},
	})
	const want = "- high: https://www.nist.gov/b\n- medium: https://a.org/x\n- medium: https://doi.org/10.1000/182\n- tertiary: https://en.wikipedia.org/wiki/C_(language)\n- own file: knowledge/x.md"
	if got["source_table"] != want {
		t.Errorf("sources:\n%s\nwant:\n%s", got["source_table"], want)
	}
}

// Links are probed on the loopback interface, with HEAD alone, and only where that is allowed.
func TestResearchLinks(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.RequestURI()
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/gone", http.StatusFound)
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/refused":
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
	defer server.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := "http://" + closed.Addr().String() + "/silent"
	_ = closed.Close()
	report := "Fine [1], " + server.URL + "/fine?q=ä, moved (" + server.URL + "/moved). Refused: <" + server.URL + "/refused>; gone " + server.URL + "/gone and " + silent + "."
	dir := t.TempDir()
	got := research(t, dir, "check_links.py", map[string]any{"report": report}, "LOKI_FETCH_ALLOW=10.0.0.0/8, 127.0.0.1")
	want := "Links: 3 of 5 answer. Check these by hand:\n- " + server.URL + "/gone: status 404\n- " + silent + ": no answer (ConnectionRefusedError)"
	if got["link_note"] != want {
		t.Errorf("got %q, want %q", got["link_note"], want)
	}
	close(asked)
	var requests []string
	for r := range asked {
		requests = append(requests, r)
	}
	slices.Sort(requests)
	if want := []string{"HEAD /fine?q=%C3%A4", "HEAD /gone", "HEAD /moved", "HEAD /refused"}; !slices.Equal(requests, want) {
		t.Errorf("requests: %q, want %q", requests, want)
	}

	got = research(t, dir, "check_links.py", map[string]any{"report": server.URL + "/fine http://169.254.169.254/latest http://localhost:1/x"})
	if note := got["link_note"].(string); strings.Count(note, "not asked: it is not a public address") != 3 {
		t.Errorf("private addresses: %q", note)
	}
	if got := research(t, dir, "check_links.py", map[string]any{"report": "no links"}); got["link_note"] != "Links: the report has none." {
		t.Errorf("no links: %q", got["link_note"])
	}
}
