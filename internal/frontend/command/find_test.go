package command

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/conversation/launch"
	"loki/internal/conversation/session/search"
)

// TestFind searches, lists and resumes as the user of a REPL does.
func TestFind(t *testing.T) {
	c, out := newConsole(t, map[string]string{"agents/trees/graph.yaml": `
name: trees
version: "1.0"
start: which
nodes:
  which:
    type: input
    question: Which tree?
    state_updates: {tree: "{{input}}"}
    next: end
  end:
    type: end
    output: "planted {{tree}}"
`})
	dir := t.TempDir()
	t.Chdir(dir)
	ctx := t.Context()
	check := func(command, want string) {
		t.Helper()
		*out = nil
		if err := c.Do(ctx, command); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		if got := strings.Join(*out, "\n"); !regexp.MustCompile("(?s)" + want).MatchString(got) {
			t.Errorf("%s prints\n%s\nwant %s", command, got, want)
		}
	}
	check(".runs", "^no run is on record here$")
	if err := c.Do(ctx, ".resume"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("resuming nothing: %v", err)
	}

	ref, err := c.App.Agents.Find("trees")
	if err != nil {
		t.Fatal(err)
	}
	of, _, err := c.App.Agents.Load(ref)
	if err != nil {
		t.Fatal(err)
	}
	job, err := c.App.AgentJob(ctx, launch.Run{Agent: of, Prompt: "go to the orchard", Events: c.Scope, Asker: ask.Unavailable{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.App.Runs().Start(ctx, job); fault.CodeOf(err) != fault.Suspended {
		t.Fatalf("the run ends with %v", err)
	}
	check(".runs", "trees +suspended .* go to the orchard$")
	check(".runs trees", "suspended")
	check(".runs nobody", "^no run is on record here$")
	found := completeRun(c, ctx, nil)
	if len(found) != 1 || !strings.Contains(found[0].Description, "trees, suspended: go to the orchard") {
		t.Errorf("completed to %v", found)
	}

	// It goes on where it was begun, and this process stays where it is.
	t.Chdir(t.TempDir())
	c.Asker = ask.Func(func(_ context.Context, q ask.Question) (string, error) { return "a birch for: " + q.Text, nil })
	check(".resume "+found[0].Value, "^planted a birch for: Which tree\\?$")
	check(".runs", "^no run")
	t.Chdir(dir)
	check(".runs", "done")

	check(".search orch", "run of trees, .*go to the \\S*orchard.*!loki --run "+found[0].Value)
	check(".search nowhere", "^nothing was found$")
	check(".search", "^Usage: .search TEXT$")
	check("two words", "two words")
	check(".usage", "last answer +- .*conversation .*today +1 .*7 days +1 ")
}

// TestOpening: the commands for what was found work from where the user is.
func TestOpening(t *testing.T) {
	c, _ := talk(t, map[string]string{"agents/guide/config.yaml": guide, "agents/other/config.yaml": guide}, nil, "")
	found := func(agent string) search.Hit {
		f := search.Hit{Kind: search.FoundSession, Agent: agent, ID: "1"}
		f.Name = "garden"
		return f
	}
	run := search.Hit{Kind: search.FoundRun, ID: "7"}
	for _, s := range []struct{ line, bare, guide, other string }{
		{"", ".session garden", ".agent guide garden", ".agent other garden"},
		{".session talk", ".exit session, then .session garden", ".exit session, then .agent guide garden", ".exit session, then .agent other garden"},
		{".exit session", ".session garden", ".agent guide garden", ".agent other garden"},
		{".agent guide town=Graz", ".exit agent, then .session garden", ".session garden", ".exit agent, then .agent other garden"},
		{".session talk", ".exit agent, then .session garden", ".exit session, then .session garden", ".exit agent, then .agent other garden"},
	} {
		if err := c.Do(t.Context(), s.line); err != nil {
			t.Fatalf("%s: %v", s.line, err)
		}
		got := [4]string{c.openCommands(found("")), c.openCommands(found("guide")), c.openCommands(found("other")), c.openCommands(run)}
		if want := [4]string{s.bare, s.guide, s.other, "!loki --run 7"}; got != want {
			t.Errorf("after %q: %q, want %q", s.line, got, want)
		}
	}
	f := found("guide")
	f.ID = string(c.conv.Session().ID())
	if got := c.openCommands(f); got != "in use now" {
		t.Error(got)
	}
}
