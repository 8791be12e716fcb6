package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/process/environ"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/tooltest"
)

// key is what Twilio gets for the key of the call, run-1/tool/1/1/call.
const key = "85c8593188f2a88889bf4c0c94063f5f"

// services plays all services at once.
func services(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Slow") != "" || strings.Contains(r.URL.RequestURI(), "slow") {
		<-r.Context().Done()
		return
	}
	switch {
	case strings.Contains(r.URL.RequestURI(), "broken"):
		http.Error(w, "out of order, key-1", http.StatusInternalServerError)
	case r.URL.Path == "/w/api.php" && r.URL.Query().Get("list") == "search":
		if r.URL.Query().Get("srsearch") == "nothing" {
			fmt.Fprint(w, `{"query":{"search":[]}}`)
			return
		}
		fmt.Fprint(w, `{"query":{"search":[{"title":"Alan Turing","pageid":1208}]}}`)
	case r.URL.Path == "/w/api.php":
		fmt.Fprintf(w, `{"query":{"pages":[{"extract":"Turing was a mathematician (%s)."}]}}`, r.URL.Query().Get("pageids"))
	case r.URL.Path == "/v2/query":
		fmt.Fprint(w, `{"queryresult":{"pods":[{"title":"Result","subpods":[{"plaintext":"4"}]},{"title":"Plot","subpods":[{"plaintext":""}]}]}}`)
	case r.URL.Path == "/search":
		var body map[string]any
		json.NewDecoder(r.Body).Decode(&body)
		fmt.Fprintf(w, `{"answer":%q}`, fmt.Sprintf("%v for %v, %v", body["query"], r.Header.Get("Authorization"), body["include_answer"]))
	case r.URL.Path == "/v1/responses":
		var body struct{ Model, Preset, Input string }
		json.NewDecoder(r.Body).Decode(&body)
		fmt.Fprintf(w, `{"output":[{"type":"search_results","results":[]},{"type":"message","content":[{"type":"output_text","text":%q}]}]}`,
			body.Model+" "+body.Preset+": "+body.Input)
	case strings.HasSuffix(r.URL.Path, "/Messages.json"):
		r.ParseForm()
		user, pass, _ := r.BasicAuth()
		fmt.Fprintf(w, `{"sid":%q}`, strings.Join([]string{r.URL.Path, user, pass, r.Form.Get("From"), r.Form.Get("To"), r.Form.Get("Body"), r.Header.Get("Idempotency-Key")}, "|"))
	case r.URL.Path == "/api/query":
		fmt.Fprintf(w, "<feed>%s of %s</feed>", r.URL.Query().Get("max_results"), r.URL.Query().Get("search_query"))
	default:
		fmt.Fprintf(w, "%s %s", r.URL.RequestURI(), r.Header.Get("Authorization"))
	}
}

// online are options with services, keys and a database.
func online(t testing.TB, dir string) builtin.Options {
	at := site(t, services)
	return builtin.Options{
		Dir:   dir,
		Child: environ.Child{Environ: testEnviron()},
		Getenv: env(map[string]string{
			"TAVILY_API_KEY": "key-1", "PERPLEXITY_API_KEY": "key-1", "WOLFRAM_API_ID": "key-1", "JINA_API_KEY": "key-1",
			"TWILIO_ACCOUNT_SID": "AC1", "TWILIO_AUTH_TOKEN": "key-1", "TWILIO_FROM_NUMBER": "+1000",
			"USQL_DSN": "sqlite:test.db", "LOKI_FETCH_ALLOW": "127.0.0.1",
		}),
		Services: builtin.Services{Arxiv: at, Jina: at, Perplexity: at, Tavily: at, Twilio: at, Weather: at, Wikipedia: at, Wolfram: at},
	}
}

func TestConformance(t *testing.T) {
	dir := files(t, map[string]string{"a.txt": "one\ntwo\n", "bin": "\x00\x01", "sub/b.go": "package b\n"})
	o := online(t, dir)
	page := site(t, services)
	path := func(p string) string { return fmt.Sprintf(`{"path": %q}`, p) }
	query := tooltest.Case{Good: []string{`{"query": "two plus two"}`}, Bad: []string{`{"query": " "}`, `{"query": "broken"}`}, Slow: `{"query": "slow"}`}
	cases := map[string]tooltest.Case{
		"execute_py_code":    {Good: []string{`{"code": "1+1"}`, `{"code": "pass"}`}, Bad: []string{`{"code": "1/0"}`, `{"code": ")"}`, `{"code": 1}`}, Slow: `{"code": "import time; time.sleep(600)"}`},
		"execute_sql_code":   {Good: []string{`{"code": "create table if not exists t (a)"}`}, Bad: []string{`{"code": "select"}`, `{"code": ";"}`}, Slow: `{"code": "with recursive c(n) as (values(1) union all select n+1 from c) select count(*) from c"}`},
		"fetch_url_via_curl": {Good: []string{fmt.Sprintf(`{"url": %q}`, page)}, Bad: []string{`{"url": "ftp://x"}`, `{"url": "file:///etc/passwd"}`, fmt.Sprintf(`{"url": %q}`, page+"/broken")}, Slow: fmt.Sprintf(`{"url": %q}`, page+"/slow")},
		"fetch_url_via_jina": {Good: []string{`{"url": "https://example.com/x"}`}, Bad: []string{`{"url": "https://example.com/broken"}`, `{"url": "ftp://x"}`}, Slow: `{"url": "https://example.com/slow"}`},
		"fs_cat":             {Good: []string{path("a.txt")}, Bad: []string{path("b.txt"), path("bin"), path("sub"), path("\x00"), path(" ")}},
		"fs_glob":            {Good: []string{`{"pattern": "*.go"}`, `{"pattern": "x", "path": "sub"}`}, Bad: []string{`{"pattern": "[a"}`, `{"pattern": "*", "path": "nowhere"}`}},
		"fs_grep":            {Good: []string{`{"pattern": "two"}`, `{"pattern": "two", "include": "*.txt"}`}, Bad: []string{`{"pattern": "("}`, `{"pattern": ""}`, `{"pattern": "a", "path": "nowhere"}`, `{"pattern": "a", "include": "["}`}},
		"fs_ls":              {Good: []string{path("."), path("sub")}, Bad: []string{path("nowhere")}},
		"fs_mkdir":           {Good: []string{path("new/deep")}, Bad: []string{path("a.txt"), path("a.txt/x")}},
		"fs_patch":           {Good: []string{`{"path": "a.txt", "contents": "@@ @@\n one\n"}`}, Bad: []string{`{"path": "a.txt", "contents": "@@ @@\n-three\n"}`, `{"path": "a.txt", "contents": "nothing"}`, `{"path": "none", "contents": "@@ @@\n+x\n"}`}},
		"fs_read":            {Good: []string{path("a.txt"), path("sub"), `{"path": "a.txt", "offset": "2", "limit": 1}`}, Bad: []string{path("bin"), path("none"), `{"path": "a.txt", "offset": 9}`, `{"path": "a.txt", "offset": -1}`, `{"path": "a.txt", "limit": "x"}`}},
		"fs_write":           {Good: []string{`{"path": "w/new.txt", "contents": "x"}`}, Bad: []string{`{"path": "sub", "contents": "x"}`, `{"path": "a.txt/x", "contents": "x"}`}},
		"get_current_time":   {Good: []string{`{}`}},

		"get_current_weather":   {Good: []string{`{"location": "London"}`}, Bad: []string{`{"location": "broken"}`}, Slow: `{"location": "slow"}`},
		"search_arxiv":          query,
		"search_wikipedia":      query,
		"search_wolframalpha":   query,
		"send_twilio":           {Good: []string{`{"to_number": "1", "message": "x"}`}, Bad: []string{`{"to_number": "", "message": "x"}`}},
		"web_search_perplexity": {Good: []string{`{"query": "x"}`}},
		"web_search_tavily":     {Good: []string{`{"query": "x"}`}},
	}
	// These have tests of their own, as a call of them does not succeed twice, needs a
	// shell, a mail server or a model.
	apart := []string{"execute_command", "fs_rm", "send_mail", "web_search_loki"}
	for _, subject := range builtin.Tools(o) {
		name := subject.Declaration().Name
		c, ok := cases[name]
		if !ok {
			if !slices.Contains(apart, name) {
				t.Errorf("%s is not tested", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			if name == "execute_py_code" {
				if _, err := exec.LookPath("python3"); err != nil {
					t.Skip("there is no Python")
				}
			}
			c.New = func(testing.TB) tool.Tool { return subject }
			tooltest.Run(t, c)
		})
	}
	if read(t, filepath.Join(dir, "w", "new.txt")) != "x" {
		t.Error("nothing was written")
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	o := online(t, t.TempDir())
	o.Ask = func(_ context.Context, model, query string) (string, error) { return model + ": " + query, nil }
	for _, tt := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"get_current_weather", map[string]any{"location": "New York"}, "/New%20York?format=4&M "},
		{"search_arxiv", map[string]any{"query": `a "b" & c`}, `<feed>3 of all:a "b" & c</feed>`},
		{"search_wikipedia", map[string]any{"query": "turing"}, "Alan Turing\n\nTuring was a mathematician (1208).\n\n" + o.Services.Wikipedia + "/wiki/Alan_Turing\n"},
		{"search_wolframalpha", map[string]any{"query": "2+2"}, `[{"title":"Result","values":["4"]}]`},
		{"web_search_tavily", map[string]any{"query": `say "hi"`}, `say "hi" for Bearer key-1, true`},
		{"web_search_perplexity", map[string]any{"query": `say "hi"`}, `perplexity/sonar fast: say "hi"`},
		{"web_search_loki", map[string]any{"query": "hi"}, "gemini:gemini-3.5-flash-lite: hi"},
		{"fetch_url_via_jina", map[string]any{"url": "https://example.com/a?b=c"}, "/https://example.com/a?b=c Bearer key-1"},
		{"send_twilio", map[string]any{"to_number": "123", "message": "a&b"}, "the message to +123 was sent (/2010-04-01/Accounts/AC1/Messages.json|AC1|key-1|+1000|+123|a&b|" + key + ")"},
		{"send_twilio", map[string]any{"to_number": "whatsapp:+9", "message": "x"}, "the message to whatsapp:+9 was sent (/2010-04-01/Accounts/AC1/Messages.json|AC1|key-1|whatsapp:+1000|whatsapp:+9|x|" + key + ")"},
	} {
		if got := output(t, o, tt.tool, tt.args); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.tool, got, tt.want)
		}
	}
}

func TestFailuresHideSecrets(t *testing.T) {
	t.Parallel()
	o := online(t, t.TempDir())
	text, failed, _ := asks(t, o, "search_wolframalpha", map[string]any{"query": "broken"})
	if want := `{"tool_call_error":"Wolfram Alpha: 500 Internal Server Error: out of order, [secret]"}`; !failed || text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestMissingKeys(t *testing.T) {
	t.Parallel()
	o := builtin.Options{Child: environ.Child{Environ: []string{}}, Getenv: env(nil), Dir: t.TempDir()}
	for tool, variable := range map[string]string{
		"execute_sql_code": "USQL_DSN", "search_wolframalpha": "WOLFRAM_API_ID", "send_mail": "EMAIL_SMTP_ADDR", "send_twilio": "TWILIO_ACCOUNT_SID",
		"web_search_perplexity": "PERPLEXITY_API_KEY", "web_search_tavily": "TAVILY_API_KEY",
	} {
		text, failed, _ := asks(t, o, tool, map[string]any{"query": "x", "code": "select 1", "recipient": "a@b.c", "subject": "s", "body": "b", "to_number": "1", "message": "m"})
		if want := `{"tool_call_error":"the user has not set the environment variable ` + variable + `, which this tool needs"}`; !failed || text != want {
			t.Errorf("%s: got %s, want %s", tool, text, want)
		}
	}
	if text, failed, _ := asks(t, o, "web_search_loki", map[string]any{"query": "x"}); !failed || !strings.Contains(text, "no search model") {
		t.Errorf("got %s", text)
	}
}
