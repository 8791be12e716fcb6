package draft_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/agent/validate/draft"
	"loki/internal/workflow/graph"
)

const hello = `name: hello
start: done
nodes:
  done: {type: end, output: hi}
`

// block returns a fenced block.
func block(info, text string) string { return "```" + info + "\n" + text + "```\n" }

func TestRead(t *testing.T) {
	t.Parallel()
	script := []draft.File{{Path: "scripts/a.sh", Text: "echo '{}'\n"}}
	for _, tt := range []struct {
		name, reply string
		want        draft.Draft
		finding     string
	}{
		{"named", block("yaml graph.yaml", hello) + block("sh scripts/a.sh", "echo '{}'\n"), draft.Draft{Graph: hello, Files: script}, ""},
		{"prose", "Here it is:\n\n" + block("yaml", hello) + "\nI hope it helps.\n", draft.Draft{Graph: hello}, ""},
		{"bare", hello, draft.Draft{Graph: hello}, ""},
		{"bare_after_prose", "Sure: it is easy.\n\n" + hello, draft.Draft{Graph: hello}, ""},
		{"title", block(`yaml title="graph.yaml"`, hello) + block("bash:scripts/a.sh", "echo '{}'\n"), draft.Draft{Graph: hello, Files: script}, ""},
		{"heading", "### `graph.yaml`\n" + block("yaml", hello) + "\n**scripts/a.sh**:\n\n" + block("bash", "echo '{}'\n"), draft.Draft{Graph: hello, Files: script}, ""},
		{
			"comment", block("", hello) + block("bash", "#!/bin/bash\n# scripts/a.sh\necho '{}'\n"),
			draft.Draft{Graph: hello, Files: []draft.File{{Path: "scripts/a.sh", Text: "#!/bin/bash\n# scripts/a.sh\necho '{}'\n"}}},
			"",
		},
		{"tilde", "~~~yaml graph.yaml\n" + hello + "~~~\n", draft.Draft{Graph: hello}, ""},
		{"in_a_list", "1. The graph:\n   ```yaml\n   " + strings.ReplaceAll(strings.TrimSuffix(hello, "\n"), "\n", "\n   ") + "\n   ```\n", draft.Draft{Graph: hello}, ""},
		{
			"fence_in_a_text", block("yaml graph.yaml", "name: x\nnodes:\n  a:\n    prompt: |\n      ```\n      code\n      ```\n"),
			draft.Draft{Graph: "name: x\nnodes:\n  a:\n    prompt: |\n      ```\n      code\n      ```\n"},
			"",
		},
		{"crlf", strings.ReplaceAll(block("yaml graph.yaml", hello), "\n", "\r\n"), draft.Draft{Graph: hello}, ""},
		{"the_last_counts", block("yaml graph.yaml", "name: old\nnodes: {}\n") + block("yaml graph.yaml", hello), draft.Draft{Graph: hello}, ""},
		{"named_before_unnamed", block("yaml graph.yaml", hello) + "For example:\n" + block("yaml", "nodes:\n  x: 1\n"), draft.Draft{Graph: hello}, ""},
		{"another_name", "The script scripts/a.sh feeds this graph:\n" + block("yaml", hello), draft.Draft{Graph: hello}, ""},
		{"hostile_path", block("yaml graph.yaml", hello) + block("sh ../../.bashrc.sh", "x\n"), draft.Draft{Graph: hello, Files: []draft.File{{Path: "../../.bashrc.sh", Text: "x\n"}}}, ""},
		{"not_closed", "```yaml graph.yaml\n" + hello, draft.Draft{Graph: hello}, "the block of graph.yaml is not closed"},
		{"prose_only", "I cannot do that.", draft.Draft{}, "the reply has no graph"},
		{"other_block", block("json", `{"nodes": 1}`+"\n"), draft.Draft{}, "the reply has no graph"},
		{"empty", "", draft.Draft{}, "the reply has no graph"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, findings := draft.Read(tt.reply)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if (findings.Err() == nil) != (tt.finding == "") || tt.finding != "" && findings[0].Message != tt.finding {
				t.Errorf("findings %v, want %q", findings, tt.finding)
			}
		})
	}
}

// FuzzRead takes drafts out of any text: what is found is found again in the form that people edit.
func FuzzRead(f *testing.F) {
	f.Add(block("yaml graph.yaml", hello) + block("sh scripts/a.sh", "echo\n"))
	f.Add("~~~ yaml\n" + hello + "~~~")
	f.Add("text\n" + hello)
	f.Add("````yaml title='graph.yaml'\n```\n````\n**a.py**\n```\n#!x\n# b.sh\n")
	f.Fuzz(func(t *testing.T, reply string) {
		d, findings := draft.Read(reply)
		if d.Graph == "" {
			if findings.Err() == nil {
				t.Fatal("there is neither a graph nor an error")
			}
			return
		}
		again, findings := draft.Read(d.String())
		if diff := cmp.Diff(d, again); diff != "" || findings.Err() != nil {
			t.Fatalf("%v\n%s\nof\n%s", findings, diff, d)
		}
		g, _, err := graph.Parse(graph.FileName, []byte(d.Graph))
		if err != nil {
			return
		}
		if d.Check(g, nil).Err() != nil {
			return
		}
		for _, f := range d.Scripts(g) {
			if !filepath.IsLocal(f.Path) {
				t.Fatalf("%q would be written", f.Path)
			}
		}
	})
}

// parse returns the graph of a text.
func parse(t *testing.T, text string) *graph.Graph {
	t.Helper()
	g, _, err := graph.Parse(graph.FileName, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// withScript returns a graph whose only script is at a path.
func withScript(path string) string {
	return "name: x\nstart: a\nnodes:\n  a: {type: script, script: '" + path + "', next: b}\n  b: {type: end}\n"
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for path, fault := range map[string]string{
		"scripts/a.sh": "", "a.py": "", "./b/c.ts": "",
		"/etc/profile.sh": "not a path relative", "~/a.sh": "not a path relative", `..\a.sh`: "not a path relative", "C:/a.sh": "not a path relative",
		"../a.sh": "outside", "scripts/../../a.sh": "outside",
		".bashrc.sh": "begins with a dot", ".git/hooks/a.sh": "begins with a dot", "nul.sh": "device", "tools.sh": "has the tools", "./Tools.SH": "has the tools", "a\u202eb.sh": "control character",
	} {
		g := parse(t, withScript(path))
		d := draft.Draft{Graph: withScript(path), Files: []draft.File{{Path: path, Text: "x\n"}}}
		findings := d.Check(g, nil).Errors()
		if (len(findings) > 0) != (fault != "") || fault != "" && !strings.Contains(findings[0].Message, fault) {
			t.Errorf("%s: %v, want %q", path, findings, fault)
		}
		if fault != "" && findings[0].Line != 4 {
			t.Errorf("%s: the finding is at line %d", path, findings[0].Line)
		}
		if fault == "" {
			continue
		}
		dir := filepath.Join(t.TempDir(), "agent")
		if err := d.Write(dir, g); err == nil {
			t.Errorf("%s was written", path)
		}
		if _, err := os.Stat(filepath.Join(dir, graph.FileName)); err == nil {
			t.Errorf("%s: the graph was written although its script was not", path)
		}
	}
	old := parse(t, withScript("/opt/own.sh"))
	if findings := (draft.Draft{}).Check(old, func(path string) bool { return path == "/opt/own.sh" }); len(findings) > 0 {
		t.Errorf("the user's own script: %v", findings)
	}
	hooks := parse(t, "hooks: {before_tool: [{command: rm -r x}]}\n"+hello)
	if findings := (draft.Draft{}).Check(hooks, nil).Errors(); len(findings) != 1 || findings[0].Line != 1 {
		t.Errorf("hooks: %v", findings)
	}
	extra := draft.Draft{Files: []draft.File{{Path: "config.yaml", Text: "x"}, {Path: ".env", Text: "x"}}}
	if findings := extra.Check(parse(t, hello), nil); len(findings.Warnings()) != 2 || findings.Err() != nil || len(extra.Scripts(parse(t, hello))) > 0 {
		t.Errorf("files that no node names: %v", findings)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	g := parse(t, withScript("./scripts/a.sh"))
	d := draft.Draft{Graph: withScript("./scripts/a.sh"), Files: []draft.File{{Path: "config.yaml", Text: "x"}, {Path: "scripts/a.sh", Text: "echo '{}'\n"}}}
	dir := filepath.Join(t.TempDir(), "agent")
	for range 2 { // the second time over what is there
		if err := d.Write(dir, g); err != nil {
			t.Fatal(err)
		}
	}
	var files []string
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && !e.IsDir() {
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	if diff := cmp.Diff([]string{"graph.yaml", "scripts/a.sh"}, files); diff != "" {
		t.Error(diff)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "scripts", "a.sh")); err != nil || string(text) != "echo '{}'\n" {
		t.Errorf("the script is %q, %v", text, err)
	}
}

// TestWriteStaysInside: a link in the directory of an agent does not lead out of it.
func TestWriteStaysInside(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "scripts")); err != nil {
		t.Skip(err)
	}
	d := draft.Draft{Graph: withScript("scripts/a.sh"), Files: []draft.File{{Path: "scripts/a.sh", Text: "x\n"}}}
	if err := d.Write(dir, parse(t, d.Graph)); err == nil {
		t.Error("it was written through the link")
	}
	if found, _ := os.ReadDir(outside); len(found) > 0 {
		t.Errorf("%s was written", found[0])
	}
}
