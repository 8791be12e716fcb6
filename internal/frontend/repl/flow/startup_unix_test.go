//go:build unix

package flow_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// faces are the terminals and bindings under which users work.
var faces = []struct {
	name    string
	columns int
	config  string
}{
	{"emacs_80", 80, "keybindings: emacs\n"},
	{"vi_120", 120, "keybindings: vi\n"},
}

// eachFace runs a test for each terminal and binding. Golden screens are those of the name and the columns.
func eachFace(t *testing.T, o setup, test func(t *testing.T, u *user, name string)) {
	for _, f := range faces {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			o := o
			o.columns, o.config = f.columns, o.config+f.config
			u := begin(t, o)
			test(t, u, fmt.Sprintf("%s_%d", strings.ToLower(strings.TrimPrefix(strings.Split(t.Name(), "/")[0], "Test")), f.columns))
		})
	}
}

// coder is a role of the user.
var coder = map[string]string{"config/roles/writer.md": "You write letters.", "config/roles/painter.md": "You paint."}

func TestStart(t *testing.T) {
	t.Parallel()
	eachFace(t, setup{}, func(t *testing.T, u *user, name string) {
		u.sees(`loki .*\d`, `\.help`)
		u.prompted("builtin:script)>")
		u.typed("half a line")
		u.sees(`half a line$`)
		u.keys("C-c")
		u.sees(`(Ctrl-D|\.exit)`) // the hint
		u.idle(2)
		u.golden(name)
		u.keys("C-d")
		u.leaves(0)
	})
}

// TestLocalServer begins a chat without any configuration: a model server of the machine answers, and the user reads which it is.
func TestLocalServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/tags":
			fmt.Fprint(w, `{"models": [{"name": "gemma3:latest", "digest": "d1"}]}`)
		case "/v1/chat/completions":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"a local answer"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	u := start(t, setup{environ: []string{"LOKI_CONFIG_DIR=" + t.TempDir(), "OLLAMA_HOST=" + server.URL}})
	u.until("the prompt", func(all string) bool {
		return strings.Contains(all, "The model is gemma3:latest, of ollama on this machine.") && strings.HasSuffix(strings.TrimSpace(all), "ollama:gemma3:latest)>")
	})
	u.enter("hello")
	u.until("the answer", func(all string) bool { return strings.Contains(all, "\na local answer\n") })
}

func TestExit(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{})
	u.enter(".exit")
	u.leaves(0)
	if strings.Contains(u.joined(), "continues this conversation") {
		t.Error("nothing was said, and it is said how to continue it")
	}
	u = begin(t, setup{})
	u.do("hello", `hello`)
	u.enter(".exit")
	u.sees(`^loki -C continues this conversation\.$`)
	u.leaves(0)
}

func TestPreludeRole(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{config: "repl_prelude: role:writer\n", files: coder})
	u.prompted("builtin:script)writer>")
}

func TestPreludeSession(t *testing.T) {
	t.Parallel()
	u := begin(t, setup{config: "repl_prelude: letters:writer\n", files: coder})
	u.prompted("builtin:script)letters/writer)")
}

func TestPreludeWrong(t *testing.T) {
	t.Parallel()
	u := start(t, setup{config: "repl_prelude: writer\n"})
	u.sees(`repl_prelude: "writer" is neither`)
	u.leaves(3)
}
