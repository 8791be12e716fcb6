package app_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"loki/internal/agent"
	"loki/internal/app"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
)

var update = flag.Bool("update", false, "rewrite the expected texts under testdata")

// TestUsersAgents: agent directories of every shape that users have are read unchanged, and
// mean what is written in them. What is expected of each is in testdata/agents.yaml.
func TestUsersAgents(t *testing.T) {
	home := t.TempDir()
	if err := os.CopyFS(filepath.Join(home, "agents"), os.DirFS("../agent/testdata/agents")); err != nil {
		t.Fatal(err)
	}
	config := "mapping_tools: {fs: 'fs_cat,fs_ls,fs_of_old'}\nmodel: builtin:echo\n"
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(app.Options{Environ: []string{
		"LOKI_CONFIG_DIR=" + home, "HOME=" + home, "PATH=" + os.Getenv("PATH"),
		// By the name in the file, and by that of the directory. The former counts.
		"MY_HELPER_MODEL=builtin:echo", "MY_HELPER_TEMPERATURE=0.1", "MY_HELPER_TOP_P=null", "MY_HELPER_AGENT_SESSION=null",
		`MY_HELPER_VARIABLES=[{"name":"city","value":"Graz"},{"day":"tomorrow"},{"name":"unit","description":"Which","default":"C"}]`,
		"CODE_HELPER_MODEL=builtin:nothing", "CODE_HELPER_INSTRUCTIONS=From the environment.", `CODE_HELPER_GLOBAL_TOOLS=["fs_ls"]`,
		"REVIEW_GRAPH_TEMPERATURE=0.9", "ANOTHER NAME_TEMPERATURE=0.8",
	}})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(home, "agents"))
	if err != nil || len(entries) < 10 {
		t.Fatalf("%d agents, %v", len(entries), err)
	}
	t.Run("sections", func(t *testing.T) { checkSections(t, a) })
	var w yamldoc.Writer
	for _, e := range entries {
		w.Members(0, value.ObjectOf(value.Member{Name: e.Name(), Value: meaning(t, a, e.Name()).Value()}))
	}
	got := strings.ReplaceAll(w.String(), home, "HOME")
	const golden = "testdata/agents.yaml"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("agents mean something else (-update rewrites what is expected):\n%s", got)
	}
	// Loading changes nothing but what is made of scripts.
	for _, e := range entries {
		for _, name := range []string{"config.yaml", "graph.yaml", "tools.sh", "tools.py", "tools.ts", "bin/" + e.Name()} {
			before, _ := os.ReadFile(filepath.Join("../agent/testdata/agents", e.Name(), name))
			after, _ := os.ReadFile(filepath.Join(home, "agents", e.Name(), name))
			if string(before) != string(after) {
				t.Errorf("%s of %s was changed", name, e.Name())
			}
		}
	}
}

// meaning returns what an agent is set to, the tools it brings, and what is found about it.
func meaning(t *testing.T, a *app.App, name string) *value.Object {
	t.Helper()
	ctx := context.Background()
	ref, err := a.Agents.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	of, findings, err := a.Agents.Load(ref)
	if err != nil {
		t.Fatal(err)
	}
	kind := "plain"
	if of.Graph != nil {
		kind = "graph"
	}
	members := []value.Member{{Name: "kind", Value: value.Of(kind)}, {Name: "settings", Value: of.InForce.Settings().Value()}}
	tools, err := a.ToolNames(ctx, of)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	members = append(members, value.Member{Name: "tools", Value: value.Of(strings.Join(tools, " "))})
	var found []value.Value
	for _, f := range append(findings, a.Validator().Findings(ctx, of, nil)...) {
		if f.Severity == graph.SeverityError {
			t.Errorf("%s cannot be started: %s", name, f)
		}
		found = append(found, value.Of(fmt.Sprintf("%d:%d %s", f.Line, f.Column, f)))
	}
	return value.ObjectOf(append(members, value.Member{Name: "findings", Value: value.ListOf(found...).Value()})...)
}

// checkSections: the system prompt names tools that are there, and parameters that they have.
func checkSections(t *testing.T, a *app.App) {
	ref, err := a.Agents.Find("orchestrator")
	if err != nil {
		t.Fatal(err)
	}
	of, _, err := a.Agents.Load(ref)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := a.Declarations(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]string)
	for _, declared := range tools {
		known[declared.Name] = string(declared.Parameters)
	}
	prompt := of.InForce.SystemPrompt(agent.Prompt{Tools: tools})
	named := make(map[string]bool)
	for _, match := range regexp.MustCompile(`(\w+__\w+)(?: \{([^}]*)\})?`).FindAllStringSubmatch(prompt, -1) {
		parameters, ok := known[match[1]]
		if !ok {
			t.Errorf("there is no tool %s", match[1])
		}
		named[match[1]] = true
		for _, p := range regexp.MustCompile(`(?:^|, )"(\w+)"`).FindAllStringSubmatch(match[2], -1) {
			if !strings.Contains(parameters, `"`+p[1]+`":`) {
				t.Errorf("%s has no parameter %s: %s", match[1], p[1], parameters)
			}
		}
	}
	for name := range known {
		if strings.Contains(name, "__") && !named[name] {
			t.Errorf("no section names %s", name)
		}
	}
}
