package permission_test

import (
	"encoding/json"
	"testing"

	"loki/internal/tool/permission"
)

// TestHosts judges requests to hosts that a model chose, before and after answers of the user.
func TestHosts(t *testing.T) {
	t.Parallel()
	fetch := func(j *permission.Judge, host string) permission.Verdict {
		return j.Judge(permission.Call{Tool: "fetch_url_via_curl", Arguments: json.RawMessage(`{"url": "x"}`), ReadOnly: true, Host: host})
	}
	for _, tt := range []struct{ name, rules, host, want string }{
		{"asked", ``, "example.com", "ask"},
		{"no_host", ``, "", "allow"},
		{"tool", `fetch_url_via_curl: allow`, "example.com", "allow"},
		{"tools_deny", `"fetch_*": deny`, "example.com", "deny"},
		{"host", `rules: [{tool: "fetch_*", action: allow, host: Example.com}]`, "example.com", "allow"},
		{"other_host", `rules: [{tool: "fetch_*", action: allow, host: example.com}]`, "example.com.evil.net", "ask"},
		{"below", `rules: [{tool: "*", action: allow, host: ["*.example.com", b.net]}]`, "docs.example.com", "allow"},
		{"not_below", `rules: [{tool: "*", action: allow, host: "*.example.com"}]`, "notexample.com", "ask"},
		{"deny_wins", `rules: [{tool: fetch_url_via_curl, action: allow, host: "*"}, {tool: "*", action: deny, host: "*.evil.net"}]`, "a.evil.net", "deny"},
		{"specific_asks", `rules: [{tool: fetch_url_via_curl, action: ask, host: a.example.com}, {tool: fetch_url_via_curl, action: allow, host: "*.example.com"}]`, "a.example.com", "ask"},
		{"default_allow", `default: allow`, "example.com", "allow"},
		{"default_deny", `default: deny`, "example.com", "deny"},
	} {
		j := judge(t, permission.Options{Root: t.TempDir(), Rules: read(t, "x: allow\n"+tt.rules)})
		if v := fetch(j, tt.host); string(v.Action) != tt.want || v.Action != permission.Allow && v.Reason == "" {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}

	// A rule for hosts says nothing about calls that send to none.
	j := judge(t, permission.Options{Root: t.TempDir(), Rules: read(t, `rules: [{tool: "*", action: allow, host: "*"}]`)})
	for _, c := range []permission.Call{
		{Tool: "execute_command", Arguments: json.RawMessage(`{"command": "rm x"}`)},
		{Tool: "fs_rm", Arguments: json.RawMessage(`{"path": "x"}`), Destructive: true},
		{Tool: "mcp__invoke_s", Arguments: json.RawMessage(`{"tool": "t", "arguments": {}}`)},
	} {
		if v := j.Judge(c); v.Action != permission.Ask {
			t.Errorf("%s: %+v", c.Tool, v)
		}
	}

	// A grant is for the host, or for all of them.
	m := permission.NewMemory("")
	j = judge(t, permission.Options{Root: t.TempDir(), Memory: m})
	v := fetch(j, "example.com")
	if len(v.Always) != 1 || v.Always[0].String() != "fetch_url_via_curl from example.com" || len(v.Wider) != 1 || v.Wider[0].String() != "all calls of fetch_url_via_curl" {
		t.Fatalf("%+v", v)
	}
	if err := m.Add(t.Context(), permission.Session, "", v.Always); err != nil {
		t.Fatal(err)
	}
	if a, b := fetch(j, "example.com").Action, fetch(j, "example.net").Action; a != permission.Allow || b != permission.Ask {
		t.Errorf("after a grant: %s, and elsewhere %s", a, b)
	}
	if err := m.Add(t.Context(), permission.Session, "", v.Wider); err != nil {
		t.Fatal(err)
	}
	if v := fetch(j, "example.net"); v.Action != permission.Allow {
		t.Errorf("after a grant of all: %+v", v)
	}
	if v := fetch(j, "*.com"); v.Action != permission.Allow {
		t.Errorf("%+v", v)
	}
	if v := fetch(judge(t, permission.Options{Root: t.TempDir()}), "*.com"); len(v.Always) != 0 {
		t.Errorf("a pattern is granted: %+v", v)
	}
}
