//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// tooLarge returns a text of some 15,000 tokens that says one thing.
func tooLarge(about, sentence string) string {
	var b strings.Builder
	for i := range 600 {
		if i == 300 {
			b.WriteString(sentence + "\n\n")
		}
		fmt.Fprintf(&b, "Of the %s on day %d there is nothing to say but that it was as it is on any other day of a year.\n\n", about, i)
	}
	return b.String()
}

// TestNarrow attaches texts that are longer than the input of the model, and looks at what the model
// gets.
func TestNarrow(t *testing.T) {
	t.Parallel()
	type part struct {
		Type, Text string
	}
	type request struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	var last atomic.Pointer[request]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := new(request)
		if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, req) != nil {
			http.Error(w, "malformed", http.StatusBadRequest)
			return
		}
		last.Store(req)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"\u0060\u0060\u0060sh\necho Marguerite.\n\u0060\u0060\u0060"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	k := librarian{dir, emptyHome(dir)}
	for name, text := range map[string]string{
		"home/config/config.yaml": fmt.Sprintf(`
model: local:small
clients:
  - {type: openai-compatible, name: local, api_base: '%s', models: [{name: small, max_input_tokens: 2000, supports_vision: true}]}
`, server.URL),
		"weather.txt":       tooLarge("weather", "The keeper of the lighthouse is called Marguerite."),
		"ships.txt":         tooLarge("ships", "The keeper of the lighthouse feeds the ships' cats."),
		"small.txt":         "A lantern is a lamp.\n",
		"guide/config.yaml": "name: guide\ninstructions: You know the harbor.\n",
		"lookup/graph.yaml": "name: lookup\nstart: ask\nnodes:\n  ask: {type: llm, prompt: '{{initial_prompt}}', next: done}\n  done: {type: end, output: '{{output}}'}\n",
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\x00IEND\xaeB`\x82"
	write(t, filepath.Join(dir, "dot.png"), png)

	// said returns the last message of the user, and how many pictures are in it.
	said := func(t *testing.T) (text string, pictures int) {
		t.Helper()
		req := last.Swap(nil)
		if req == nil {
			t.Fatal("the model was not asked")
		}
		content := req.Messages[len(req.Messages)-1].Content
		var parts []part
		if json.Unmarshal(content, &parts) != nil {
			if err := json.Unmarshal(content, &text); err != nil {
				t.Fatal(err)
			}
			return text, 0
		}
		for _, p := range parts {
			text += p.Text
			if p.Type == "image_url" {
				pictures++
			}
		}
		return text, pictures
	}
	const question = "Who is the keeper of the lighthouse?"
	warning := regexp.MustCompile(`warning: the attached texts \((.+), about (\d+) tokens\) are longer than the input of local:small \(2000 tokens\): it gets (\d+) passages?, chosen by the question\. `)
	for _, tt := range []struct {
		name      string
		args      []string
		documents string
		pictures  int
		want      []string
	}{
		{"one", []string{"-f", "weather.txt"}, "1 document", 0, []string{"weather.txt:", "called Marguerite."}},
		{"several", []string{"-f", "weather.txt", "-f", "ships.txt", "-f", "small.txt"}, "3 documents", 0, []string{"weather.txt:", "called Marguerite.", "ships.txt:", "ships' cats."}},
		{"picture", []string{"-f", "weather.txt", "-f", "dot.png"}, "1 document", 1, []string{"called Marguerite."}},
		{"session", []string{"-s", "harbor", "-f", "weather.txt"}, "1 document", 0, []string{"called Marguerite."}},
		{"agent", []string{"-a", "./guide", "-f", "weather.txt"}, "1 document", 0, []string{"called Marguerite."}},
		{"command", []string{"-e", "-f", "weather.txt"}, "1 document", 0, []string{"called Marguerite."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs := k.run(t, 0, append(tt.args, "-S", question)...)
			if !strings.Contains(out, "Marguerite.") {
				t.Errorf("answer %q", out)
			}
			m := warning.FindStringSubmatch(errs)
			if m == nil || m[1] != tt.documents || len(m[2]) < 5 {
				t.Fatalf("standard error: %s", errs)
			}
			text, pictures := said(t)
			if n := strings.Count(text, "============ FILE: "); fmt.Sprint(n) != m[3] {
				t.Errorf("%d passages, and the warning says %s", n, m[3])
			}
			if !strings.HasPrefix(text, question) || len(text) > 2000*4 || pictures != tt.pictures {
				t.Errorf("%d bytes, %d pictures: %.100s", len(text), pictures, text)
			}
			has(t, text, tt.want...)
		})
	}

	t.Run("session_goes_on", func(t *testing.T) {
		k.run(t, 0, "-s", "harbor", "-S", "And of what is she the keeper?")
		if text, _ := said(t); text != "And of what is she the keeper?" {
			t.Errorf("%q", text)
		}
	})
	t.Run("fits", func(t *testing.T) {
		_, errs := k.run(t, 0, "-S", "-f", "small.txt", question)
		if text, _ := said(t); !strings.Contains(text, "small.txt ====") || strings.Contains(errs, "warning") {
			t.Errorf("%q\n%s", text, errs)
		}
	})
	for name, args := range map[string][]string{"no_question": {"-f", "weather.txt"}, "graph": {"-a", "./lookup", "-f", "weather.txt", question}} {
		t.Run(name, func(t *testing.T) { // nothing to choose by, or no model that all is for
			cmd := k.command(t.Context(), append([]string{"-S"}, args...)...)
			out, err := cmd.CombinedOutput()
			if !strings.Contains(string(out), "at most 2000") || last.Swap(nil) != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "home", "config", "rags")); err == nil {
		t.Error("a knowledge base was kept")
	}
}
