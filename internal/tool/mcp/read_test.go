package mcp_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/oauth"
)

func parse(t *testing.T, text string) *mcp.File {
	t.Helper()
	f, err := mcp.Parse("mcp.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseServers(t *testing.T) {
	f := parse(t, `{"theme": "dark", "mcpServers": {
		"files": {"command": "npx", "args": ["-y", "server", "/tmp"], "env": {"A": "x", "B": true, "C": -7}, "cwd": "/srv"},
		"remote": {"url": "https://example.com/mcp", "headers": {"X-Key": "{{KEY}}"}, "oauth": {"client_id": "me"}},
		"old": {"type": "sse", "url": "http://localhost:1/sse", "expose": "direct", "timeout_seconds": 1.5, "idle_timeout_seconds": 0},
		"off": {"type": "stdio", "command": "x", "disabled": true, "env": null}}}`)
	if got := f.IDs(); !slices.Equal(got, []string{"files", "remote", "old", "off"}) {
		t.Errorf("ids %v", got)
	}
	for _, s := range f.Servers {
		if s.Err != nil {
			t.Error(s.Err)
		}
	}
	files, remote, old := f.Servers[0], f.Servers[1], f.Servers[2]
	if files.Type != mcp.Stdio || files.Dir != "/srv" || len(files.Args) != 3 || files.Expose != mcp.Meta {
		t.Errorf("files: %+v", files)
	}
	if diff := cmp.Diff(map[string]string{"A": "x", "B": "true", "C": "-7"}, files.Env); diff != "" {
		t.Error(diff)
	}
	if remote.Type != mcp.HTTP || string(remote.OAuth) != `{"client_id": "me"}` || remote.HasIdleTimeout {
		t.Errorf("remote: %+v", remote)
	}
	if old.Type != mcp.SSE || old.Expose != mcp.Direct || old.Timeout != 1500*time.Millisecond || !old.HasIdleTimeout {
		t.Errorf("old: %+v", old)
	}
	if len(f.Warnings) != 0 {
		t.Errorf("warnings: %v", f.Warnings)
	}
}

// What is wrong with one server is the business of who uses it.
func TestParseServerErrors(t *testing.T) {
	for _, tt := range []struct{ name, entry, want string }{
		{"neither", `{}`, `mcp.json:2:3: server "x" has neither a command nor a url`},
		{"both", `{"command": "a", "url": "b"}`, `mcp.json:2:25: server "x" has both a command and a url`},
		{"http_without_url", `{"type": "http"}`, `server "x" of type http has no url`},
		{"http_with_args", `{"type": "http", "url": "u", "args": []}`, `mcp.json:2:37: server "x": args is not for servers of type http`},
		{"sandbox_level", `{"command": "c", "sandbox": "some"}`, `sandbox the string "some" is not one of read, write, network, full`},
		{"sandbox_hosts", `{"command": "c", "sandbox": {"level": "write", "hosts": ["a.com"]}}`, `hosts need the level network`},
		{"sandbox_of_http", `{"url": "u", "sandbox": "read"}`, `sandbox is not for servers of type http`},
		{"sse_with_cwd", `{"type": "sse", "url": "u", "cwd": "/"}`, `cwd is not for servers of type sse`},
		{"stdio_without_command", `{"type": "stdio"}`, `of type stdio has no command`},
		{"stdio_with_headers", `{"command": "a", "headers": {}}`, `headers is not for servers of type stdio`},
		{"unknown_type", `{"type": "ws", "url": "u"}`, `type must be one of stdio, http, sse`},
		{"env_float", `{"command": "a", "env": {"N": 1.5}}`, `env must hold strings, booleans and integers, and "N" is something else`},
		{"env_null", `{"command": "a", "env": {"N": null}}`, `"N" is something else`},
		{"env_name", `{"command": "a", "env": {"A=B": ""}}`, `cannot be the name of a variable`},
		{"args_number", `{"command": "a", "args": ["x", 1]}`, `args must be a list of strings, and number 2 is not a string`},
		{"header_number", `{"url": "u", "headers": {"N": 1}}`, `headers must be an object of strings`},
		{"no_object", `[]`, `not an object`},
		{"twice", `{"command": "a", "command": "b"}`, `"command" appears twice`},
		{"timeout", `{"command": "a", "timeout_seconds": 0}`, `timeout_seconds must be`},
		{"oauth", `{"url": "u", "oauth": true}`, `oauth must be an object`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, "{\"mcpServers\": {\n  \"x\": "+tt.entry+",\n  \"good\": {\"command\": \"c\"}}}")
			if err := f.Servers[0].Err; err == nil || !strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) != fault.Config {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if f.Servers[1].Err != nil {
				t.Errorf("the other server: %v", f.Servers[1].Err)
			}
		})
	}
}

func TestParseFileErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"syntax", "{\n  \"mcpServers\": {,}\n}", "mcp.json:2:18:"},
		{"cut_off", `{"mcpServers": {`, "mcp.json:1:1"},
		{"no_servers", `{"inputs": []}`, "mcpServers is missing"},
		{"list", `{"mcpServers": []}`, "mcpServers is not an object"},
		{"list_of_other_name", `{"servers": []}`, "servers is not an object"},
		{"double_id", `{"mcpServers": {"a": {"command":"x"}, "a": {"command":"x"}}}`, `server "a" appears twice`},
		{"no_object", `[]`, "not an object"},
		{"not_utf8", "{\"\xff\"}", "not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := mcp.Parse("mcp.json", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) || fault.CodeOf(err) != fault.Config {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	_, err := mcp.Parse("mcp.json", []byte(`{"mcpServers": {"a": {"command": {{SECRET}}}}}`))
	if !strings.Contains(fault.HintOf(err), `"{{NAME}}"`) {
		t.Errorf("hint for a secret without quotes: %q (%v)", fault.HintOf(err), err)
	}
}

func TestUnknownMembersWarn(t *testing.T) {
	f := parse(t, "{\"mcpServers\": {\"a\": {\n \"comand\": \"x\", \"command\": \"y\", \"zzz\": 1}}}")
	var got []string
	for _, w := range f.Warnings {
		got = append(got, w.String())
	}
	want := []string{
		`mcp.json:2:2: server "a": unknown member "comand"; did you mean "command"?`,
		`mcp.json:2:33: server "a": unknown member "zzz"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if f.Servers[0].Err != nil {
		t.Error(f.Servers[0].Err)
	}
}

// TestOtherPrograms reads what configurations of other programs have.
func TestOtherPrograms(t *testing.T) {
	f := parse(t, `{"inputs": [], "servers": {
		"a": {"type": "streamable-http", "url": "https://a.example/mcp", "headers": {"X": "${input:token} ${env:HOME}"}},
		"b": {"type": "streamableHttp", "url": "https://b.example/mcp"},
		"c": {"command": "sh", "args": ["-c", "echo ${HOME:0:1} ${X:-y} ${workspaceFolder}"]}}}`)
	if len(f.Servers) != 3 || f.Servers[0].Type != mcp.HTTP || f.Servers[1].Type != mcp.HTTP || f.Servers[0].Err != nil || f.Servers[1].Err != nil {
		t.Errorf("%+v", f.Servers)
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].String(), `server "a": headers has ${input:token}, which is passed on as it is`) {
		t.Errorf("warnings %v", f.Warnings)
	}
	if f = parse(t, `{"servers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "x"}}}`); !slices.Equal(f.IDs(), []string{"b"}) {
		t.Errorf("ids %v", f.IDs())
	}
}

func TestReadMissingAndBlank(t *testing.T) {
	dir := t.TempDir()
	blank := filepath.Join(dir, "blank.json")
	if err := os.WriteFile(blank, []byte("\ufeff \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{blank, filepath.Join(dir, "none.json")} {
		if f, err := mcp.Read(path); err != nil || len(f.Servers) != 0 {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
	if _, err := mcp.Read(dir); err == nil {
		t.Error("a directory was read")
	}
}

func TestSelect(t *testing.T) {
	f := parse(t, `{"mcpServers": {"b": {"command":"x"}, "a": {"command":"x"}, "off": {"command":"x","disabled":true}, "broken": {}}}`)
	aliases := map[string]string{"both": " a , b,lost", "a": "b", "nested": "both", "none": "off"}
	for _, tt := range []struct {
		name, setting string
		want          []string
		warnings      int
	}{
		{"all", " all ", []string{"b", "a", "broken"}, 0},
		{"file_order", "a, b ,", []string{"b", "a"}, 0},
		{"id_before_alias", "a", []string{"a"}, 0},
		{"alias", "both", []string{"b", "a"}, 1},
		{"aliases_do_not_nest", "nested", nil, 1},
		{"all_in_a_list", "all,a", []string{"a"}, 1},
		{"unknown_once", "x,x,b,b", []string{"b"}, 1},
		{"disabled", "off,none", nil, 1},
		{"optional", "a?, lost?, off?", []string{"a"}, 0},
		{"nothing", "", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sel := f.Select(tt.setting, aliases)
			var got []string
			for _, s := range sel.Servers {
				got = append(got, s.ID)
			}
			if !slices.Equal(got, tt.want) || len(sel.Warnings) != tt.warnings {
				t.Errorf("got %v, warnings %q", got, sel.Warnings)
			}
		})
	}
}

func TestMissingSecret(t *testing.T) {
	f := parse(t, `{"mcpServers": {"a": {"command": "x", "env": {"KEY": "a {{ FIRST }} and {{SECOND}}"}}, "b": {"command": "true"}}}`)
	lookup := func(name string) (string, error) {
		if name == "FIRST" {
			return "1", nil
		}
		return "", fault.New(fault.NotFound, "no such secret")
	}
	p := mcp.NewPool(mcp.Options{Secrets: lookup})
	_, err := p.Acquire(t.Context(), f.Servers[0])
	if err == nil || fault.CodeOf(err) != fault.Config || fault.HintOf(err) != "loki --secret add SECOND" {
		t.Fatalf("got %v, hint %q", err, fault.HintOf(err))
	}
	for _, part := range []string{"mcp.json", `"a"`, "env.KEY", `"SECOND"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	broken := errors.New("vault is locked")
	p = mcp.NewPool(mcp.Options{Secrets: func(string) (string, error) { return "", broken }})
	if _, err := p.Acquire(t.Context(), f.Servers[0]); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestLogin(t *testing.T) {
	f := parse(t, `{"mcpServers": {
		"a": {"url": "http://x", "oauth": {"client_id": "me", "client_secret": "{{S}}", "scopes": ["r"]}},
		"b": {"url": "http://x"},
		"others": {"url": "http://x", "oauth": {"clientId": "me", "clientSecret": "s", "callbackPort": 8085, "flow": "device_code", "more": 1}},
		"wrong": {"url": "http://x", "oauth": {"client_id": "me", "flow": "post"}}}}`)
	lookup := func(string) (string, error) { return `quoted "secret"`, nil }
	for i, want := range []*oauth.Provider{
		{ClientID: "me", ClientSecret: `quoted "secret"`, Scopes: []string{"r"}},
		nil,
		{ClientID: "me", ClientSecret: "s", Flow: oauth.Device, RedirectURI: "http://127.0.0.1:8085/callback"},
	} {
		got, err := f.Servers[i].Login(lookup)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", f.Servers[i].ID, err, diff)
		}
	}
	if _, err := f.Servers[0].Login(nil); err == nil {
		t.Error("a secret was found without a vault")
	}
	if _, err := f.Servers[3].Login(lookup); fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), "flow: want browser, paste") {
		t.Errorf("got %v", err)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	f, err := mcp.Parse("mcp.json", []byte(`{"mcpServers": {
		"my-local": {"command": "x", "env": {"API_KEY": "literal", "OTHER_TOKEN": "${FROM_TOKEN}", "VAULT_KEY": "{{SECRET}}", "MODE": "plain"}},
		"remote": {"url": "https://example.com/?api_key=in-query&page=2", "headers": {"Authorization": "Bearer in-header", "X-Title": "plain"}}
	}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := maps.Collect(f.Credentials(func(name string) (string, bool) { return "value of " + name, true }))
	want := map[string]string{"MY_LOCAL_API_KEY": "literal", "FROM_TOKEN": "value of FROM_TOKEN", "REMOTE_API_KEY": "in-query", "REMOTE_AUTHORIZATION": "in-header"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"mcpServers": {"a": {"command": "x", "args": ["{{A}}"]}}}`, "\ufeff{\"mcpServers\":{\"é\": {\"url\": 1}}}",
		`{"mcpServers":{"a":{"env":{"A":1e400}}}}`, `{"mcpServers":{"a":null,"b":[],"c":{"type":"sse","url":"x","zz":{}}}}`,
		"{\n\"mcpServers\"\n:\n{ \"a\" : { \"oauth\" : { \"x\" : [ ] } , } } }",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := mcp.Parse("f", []byte(text))
		if err != nil {
			if fault.CodeOf(err) != fault.Config || !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error without a place: %v", err)
			}
			return
		}
		for _, s := range file.Servers {
			switch {
			case s.Err != nil:
			case s.Type == mcp.Stdio && (s.Command == "" || s.URL != ""), s.Type != mcp.Stdio && (s.URL == "" || s.Command != ""):
				t.Errorf("inconsistent server: %+v", s)
			}
		}
		if all := file.Select("all", nil); len(all.Servers) > len(file.Servers) {
			t.Error("more servers than there are")
		}
	})
}
