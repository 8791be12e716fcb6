package mcp_test

import (
	"slices"
	"testing"

	"loki/internal/tool"
	"loki/internal/tool/mcp"
)

// TestMore: tools that a server has only after a call, and its resources once it is known, are there in the next round.
func TestMore(t *testing.T) {
	t.Parallel()
	names := func(tools []tool.Tool) (names []string) {
		for _, t := range tools {
			names = append(names, t.Declaration().Name)
		}
		return names
	}
	p := pool(t, nil)
	direct := scope(t, p, mcp.ScopeOptions{}, fakeAs(t, "d", "unlocks", "expose", "direct"))
	if more := direct.More(t.Context(), nil); more != nil {
		t.Errorf("a server was started for %v", names(more))
	}
	tools, err := direct.Tools(t.Context())
	if err != nil || slices.Contains(names(tools), "mcp__d__secret") {
		t.Fatal(names(tools), err)
	}
	var more []string
	for range 50 { // the news may arrive after the result of the call
		if _, err := call(t.Context(), direct, "echo", `{}`); err != nil {
			t.Fatal(err)
		}
		if more = names(direct.More(t.Context(), []string{"d?"})); slices.Contains(more, "mcp__d__secret") {
			break
		}
	}
	if !slices.Contains(more, "mcp__d__secret") || !slices.Contains(more, "mcp__resources_d") {
		t.Errorf("there are %v", more)
	}
	if more := direct.More(t.Context(), []string{"e"}); more != nil {
		t.Errorf("of another server there are %v", names(more))
	}
	meta := scope(t, p, mcp.ScopeOptions{}, fakeAs(t, "m", "unlocks"))
	tools, err = meta.Tools(t.Context())
	if err != nil || slices.Contains(names(tools), "mcp__resources_m") {
		t.Fatal(names(tools), err)
	}
	if _, err := call(t.Context(), meta, "search_m", `{"query":"echo"}`); err != nil {
		t.Fatal(err)
	}
	if more := names(meta.More(t.Context(), nil)); !slices.Contains(more, "mcp__resources_m") {
		t.Errorf("there are %v", more)
	}
}

// TestThrough: the name that a tool would have with the other way to expose it leads to the function that runs it.
func TestThrough(t *testing.T) {
	t.Parallel()
	f, err := mcp.Parse("mcp.json", []byte(`{"mcpServers":{"ev":{"command":"x"},"d":{"command":"x","expose":"direct"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"mcp__ev__echo": "mcp__invoke_ev echo", "mcp__d__echo": " ", "mcp__ev__": " ", "echo": " "} {
		if invoke, of := f.Through(name); invoke+" "+of != want {
			t.Errorf("%s: %s %s", name, invoke, of)
		}
	}
}
