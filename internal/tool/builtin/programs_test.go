//go:build unix

package builtin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/process/environ"
	"loki/internal/tool/builtin"
)

func TestExecutePyCode(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no Python")
	}
	o := at(files(t, map[string]string{"helper.py": "def f(): return 'helped'\n"}))
	for _, tt := range []struct{ name, code, want string }{
		{"expression", "x = 20\nx * 2 + 2", "42"},
		{"printed_and_value", "print('a')\n'b'", `{"output":"a\nb\n"}`},
		{"assignment", "a = [1, 2]", "[1,2]"},
		{"none", "None", ""},
		{"print_is_none", "print('x')", `{"output":"x\n"}`},
		{"functions_see_each_other", "def f(): return g()\ndef g(): return 'é'\nf()", `{"output":"é\n"}`},
		{"module_in_the_directory", "import helper\nhelper.f()", `{"output":"helped\n"}`},
		{"no_input", "import sys\nsys.stdin.read() == ''", `{"output":"True\n"}`},
		{"status", "import sys\nprint('half')\nsys.exit(3)", `{"tool_call_error":"Tool call 'execute_py_code' exited with code 3","output":"half\n"}`},
		{"exception", "def f():\n  return 1/0\nf()", `{"tool_call_error":"Tool call 'execute_py_code' exited with code 1","stderr":"Traceback (most recent call last):\n  File \"\u003ccode\u003e\", line 3, in \u003cmodule\u003e\n    f()\n  File \"\u003ccode\u003e\", line 2, in f\n    return 1/0\nZeroDivisionError: division by zero"}`},
		{"ids", "import os\nos.environ['LOKI_RUN_ID']", `{"output":"run-1\n"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, _, question := asks(t, o, "execute_py_code", m{"code": tt.code})
			// Newer Pythons underline the place.
			text = strings.ReplaceAll(strings.ReplaceAll(text, `\n    ~^~`, ""), `\n           ~^~`, "")
			if text != tt.want && !(tt.name == "exception" && strings.HasSuffix(text, `ZeroDivisionError: division by zero"}`)) {
				t.Errorf("got %s, want %s", text, tt.want)
			}
			if want := "Run this Python code?\n\n" + shownLines(tt.code); question != want {
				t.Errorf("asked %q, want %q", question, want)
			}
		})
	}
}

func TestExecuteSQLCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := at(dir)
	o.Getenv = env(map[string]string{"USQL_DSN": "sqlite:my data.db"})
	for _, tt := range []struct{ name, code, want, ask string }{
		{"no_database", "select 1", `{"tool_call_error":"there is no database at ` + filepath.Join(dir, "my data.db") + `"}`, ""},
		{"create", "create table t (id integer primary key, name text); insert into t (name) values ('a;b'), (null)", `[{"rows_affected":0},{"rows_affected":2}]`, "Run this SQL?\n\n    create table t (id integer primary key, name text); insert into t (name) values ('a;b'), (null)"},
		{"select", "select * from t", `{"columns":["id","name"],"rows":[[1,"a;b"],[2,null]]}`, ""},
		{"values", "select x'ff00', x'61', 1.5, 9e999", `{"columns":["x'ff00'","x'61'","1.5","9e999"],"rows":[["x'ff00'","a",1.5,"+Inf"]]}`, ""},
		{"no_rows", "select * from t where 0", `{"columns":["id","name"],"rows":[]}`, ""},
		{"returning", "delete from t where id = 1 returning name", `{"columns":["name"],"rows":[["a;b"]]}`, "Run this SQL?\n\n    delete from t where id = 1 returning name"},
		{"limit", "with recursive c(n) as (values(1) union all select n+1 from c) select n from c where n > 5", "", ""},
		{"second_fails", "select 1 as a; select nowhere", `{"tool_call_error":"statement 2 of 2: SQL logic error: no such column: nowhere (1)","output":"[{\"columns\":[\"a\"],\"rows\":[[1]]}]\n"}`, ""},
	} {
		text, _, question := asks(t, o, "execute_sql_code", m{"code": tt.code})
		if tt.name == "limit" {
			var got struct {
				Rows [][]int `json:"rows"`
				More bool    `json:"more_rows"`
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Rows) != 1000 || !got.More {
				t.Errorf("limit: %d rows, more %v, %v", len(got.Rows), got.More, err)
			}
			continue
		}
		if text != tt.want || question != tt.ask {
			t.Errorf("%s: got %s, asked %q; want %s, %q", tt.name, text, question, tt.want, tt.ask)
		}
	}
}

// What is taken for reading cannot change anything, even if it was taken wrongly.
func TestReadingSQLIsEnforced(t *testing.T) {
	t.Parallel()
	o := at(t.TempDir())
	o.Getenv = env(map[string]string{"USQL_DSN": "sqlite::memory:"})
	if text, failed, _ := asks(t, o, "execute_sql_code", m{"code": "pragma query_only"}); failed || text != `{"columns":["query_only"],"rows":[[1]]}` {
		t.Errorf("got %s", text)
	}
}

func TestUsql(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// It prints its arguments, which every user of the computer can read, and complains about an address with the password.
	script := "#!/bin/sh\nfor a; do printf '%s|' \"$a\"; done\nread pass <$USQLPASS\necho \"oops pg://me:pw@host/db, $pass\" >&2\n"
	if err := os.WriteFile(filepath.Join(dir, "usql"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	o := builtin.Options{Dir: dir, Child: environ.Child{Environ: []string{"PATH=" + dir}}, Getenv: env(map[string]string{"USQL_DSN": "pg://me:pw@host/db"})}
	text, failed, question := asks(t, o, "execute_sql_code", m{"code": "drop table t"})
	if want := `{"output":"-X|-w|-q|-c|drop table t|USQL_DSN|","stderr":"oops USQL_DSN, *:*:*:*:me:pw"}`; failed || text != want || !strings.Contains(question, "    drop table t") {
		t.Errorf("got %s, asked %q", text, question)
	}
	if _, _, question = asks(t, o, "execute_sql_code", m{"code": "select 1"}); question != "" {
		t.Errorf("asked %q", question)
	}
	o.Child.Environ = []string{"PATH=" + t.TempDir()}
	if text, failed, _ = asks(t, o, "execute_sql_code", m{"code": "select 1"}); !failed || !strings.Contains(text, "usql, which is not installed") {
		t.Errorf("got %s", text)
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	home := site(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
			w.Write([]byte("<html><head><title>T</title><style>x{}</style></head><body><script>alert(1)</script><h1>Caf\xe9</h1><p>See <a href='/b'>b</a>" +
				"<a href='/c'><img src='c.png' alt='c'></a><svg><path/></svg>.</p><table><tr><th>k</th></tr><tr><td>v</td></tr></table></body></html>"))
		case "/text":
			w.Write([]byte("plain <b>text</b>\n"))
		case "/away":
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/image":
			w.Write([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00"))
		case "/huge":
			for range 11 {
				w.Write([]byte(strings.Repeat("x", 1<<20)))
			}
		default:
			http.NotFound(w, r)
		}
	})
	o := builtin.Options{Dir: t.TempDir(), Child: environ.Child{Environ: testEnviron()}, Getenv: env(map[string]string{"LOKI_FETCH_ALLOW": "127.0.0.1"})}
	if got, want := output(t, o, "fetch_url_via_curl", m{"url": home + "/page"}), "# Café\n\nSee [b]("+home+"/b).\n\n| k |\n|---|\n| v |\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := output(t, o, "fetch_url_via_curl", m{"url": home + "/text"}); got != "plain <b>text</b>\n" {
		t.Errorf("got %q", got)
	}
	for path, want := range map[string]string{
		"/none": "404 Not Found", "/away": "on another host and was not fetched", "/file": "only http and https", "/round": "more than 10 redirects", "/image": "not text but image/png", "/huge": "too large",
	} {
		if text, failed, _ := asks(t, o, "fetch_url_via_curl", m{"url": home + path}); !failed || !strings.Contains(text, want) {
			t.Errorf("%s: got %.300s, want %s", path, text, want)
		}
	}
	o.Getenv = env(nil)
	text, failed, _ := asks(t, o, "fetch_url_via_curl", m{"url": home + "/text"})
	if !failed || !strings.Contains(text, "not an address of the public internet") || !strings.Contains(text, "LOKI_FETCH_ALLOW=127.0.0.1") {
		t.Errorf("got %s", text)
	}
	// A proxy does not lead around it.
	o.Getenv = env(map[string]string{"HTTP_PROXY": home})
	if text, failed, _ = asks(t, o, "fetch_url_via_curl", m{"url": "http://169.254.169.254/latest/meta-data"}); !failed || !strings.Contains(text, "169.254.169.254 is at 169.254.169.254") {
		t.Errorf("got %s", text)
	}
}

// shownLines is how a question shows what is to be run.
func shownLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if len(lines) > 1 {
			line = fmt.Sprintf("%d  %s", i+1, line)
		}
		lines[i] = "    " + line
	}
	return strings.Join(lines, "\n")
}
