package graph_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/value"
	"loki/internal/workflow/graph"
)

// files are those of a map.
func files(texts map[string]string) graph.Files {
	return func(path string) ([]byte, error) {
		text, ok := texts[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
}

const research = `name: x
start: research
nodes:
  research:
    type: graph
    with: {topic: "{{initial_prompt}}", limit: 3, list: ["{{n}}"]}
    start: search
    initial_state: {found: []}
    reducers: {found: append}
    settings: {max_loop_iterations: 5, budget: {tokens: 100}, on_failure: fail}
    nodes:
      search: {type: llm, prompt: "find {{topic}}", state_updates: {found: "{{output}}"}, next: [{when: "len(found) > 2", to: done}, {to: search, max: 3}, {to: done}]}
      done: {type: end, output: "{{found}}"}
    outputs: {papers: found, first: "found[0]"}
    state_updates: {summary: "{{output}}"}
    timeout: 60
    retry: {attempts: 2}
    fallback: done
    next: done
  done: {type: end, output: "{{summary}}"}
`

func TestParseSubgraph(t *testing.T) {
	g := parse(t, research)
	n := g.Node("research")
	s := n.Sub
	if s == nil || s.Graph.Start != "search" || len(s.Graph.Nodes) != 2 || s.Graph.Settings.MaxLoopIterations != 5 || s.Graph.Settings.Budget.Tokens != 100 ||
		s.Graph.Settings.OnFailure != graph.FailStop || s.Graph.Reducers["found"] != "append" || !n.HasTimeout || n.Retry.Attempts != 2 || n.Fallback != "done" {
		t.Fatalf("the subgraph is %+v of %+v", s.Graph, n)
	}
	outer := graph.NewState(value.ObjectOf(value.Member{Name: "initial_prompt", Value: value.Of("bees")}, value.Member{Name: "n", Value: value.Of(7)}))
	begin, err := s.Initial(outer)
	if err != nil || string(begin.AppendJSON(nil)) != `{"found":[],"limit":3,"list":[7],"topic":"bees"}` {
		t.Errorf("it begins with %s, %v", begin.AppendJSON(nil), err)
	}
	if _, err := s.Initial(graph.State{}); err == nil || !strings.Contains(err.Error(), "initial_prompt") || !strings.Contains(err.Error(), "n") {
		t.Errorf("without what it is given: %v", err)
	}
	last := begin.With(value.Member{Name: "found", Value: value.ListOf(value.Of("a"), value.Of("b")).Value()})
	results, err := s.Results(last)
	if err != nil || fmt.Sprint(results) != `[{papers ["a","b"]} {first "a"}]` {
		t.Errorf("its results are %v, %v", results, err)
	}
	if _, err := s.Results(begin); err == nil || !strings.Contains(err.Error(), "found[0]") {
		t.Errorf("a result that is missing: %v", err)
	}
	var all []string
	for m := range g.All() {
		all = append(all, m.Name)
	}
	if got := strings.Join(all, " "); got != "research research/search research/done done" {
		t.Errorf("all nodes are %s", got)
	}
	if pos := s.Graph.Pos("nodes.search.next[1].max"); pos.Line != 12 || g.Pos("nodes.research.nodes.search.prompt").Line != 12 {
		t.Errorf("max stands at %+v", pos)
	}
}

func TestSubgraphProblems(t *testing.T) {
	const end = "\n  done: {type: end}\n"
	sub := func(fields string) string {
		return "name: x\nstart: a\nnodes:\n  a: {type: graph, next: done, " + fields + "}" + end
	}
	for _, tt := range []struct {
		name, text, want string
		files            map[string]string
	}{
		{name: "no_nodes", text: sub("start: b"), want: `g.yaml:4:3: nodes.a: required field "nodes" is missing`},
		{name: "no_start", text: sub("start: c, nodes: {b: {type: end}}"), want: `nodes.a.start: start node "c" does not exist, available nodes: b`},
		{name: "bad_inner_type", text: sub("start: b, nodes: {b: {type: nap}}"), want: `g.yaml:4:60: nodes.a.nodes.b.type: unknown node type "nap"`},
		{name: "bad_path", text: sub("start: b, nodes: {b: {type: end}}, outputs: {x: '{{y}}'}"), want: `nodes.a.outputs.x: "{{y}}" is not the path`},
		{name: "file_and_nodes", text: sub("file: f.yaml, start: b"), want: "nodes.a.start: start stands beside file", files: map[string]string{"f.yaml": "start: b\nnodes: {b: {type: end}}"}},
		{name: "absolute", text: sub("file: /etc/passwd"), want: `nodes.a.file: "/etc/passwd" is not a path in the agent's directory`},
		{name: "parent", text: sub("file: sub/../../f.yaml"), want: `is not a path in the agent's directory`},
		{name: "inside_parent", text: sub("file: sub/../f.yaml"), want: `is not a path in the agent's directory`},
		{name: "missing", text: sub("file: f.yaml"), want: "nodes.a.file: the definition f.yaml cannot be read: file does not exist"},
		{name: "syntax", text: sub("file: f.yaml"), files: map[string]string{"f.yaml": "start: ["}, want: "f.yaml:1:"},
		{name: "in_the_file", text: sub("file: f.yaml"), files: map[string]string{"f.yaml": "start: b\nnodes:\n  b: {type: llm}\n"}, want: `f.yaml:3:3: nodes.b: required field "prompt" is missing`},
		{name: "version", text: sub("file: f.yaml"), files: map[string]string{"f.yaml": "version: 2\nstart: b\nnodes:\n  b: {type: end}\n"}, want: `f.yaml:1:10: version: unsupported version "2"`},
		{name: "agent_field", text: sub("file: f.yaml"), files: map[string]string{"f.yaml": "sandbox: read\nstart: b\nnodes:\n  b: {type: end}\n"}, want: "f.yaml:1:10: sandbox: sandbox is about the agent"},
		{name: "itself", text: sub("file: f.yaml"), files: map[string]string{"f.yaml": "start: b\nnodes:\n  b: {type: graph, file: f.yaml}\n"}, want: "f.yaml:3:26: nodes.b.file: the files run each other in a circle: f.yaml -> f.yaml"},
		{name: "the_outermost", text: sub("file: f.yaml"), files: map[string]string{"f.yaml": "start: b\nnodes:\n  b: {type: graph, file: g.yaml}\n"}, want: "in a circle: g.yaml -> f.yaml -> g.yaml"},
		{
			name: "circle", text: sub("file: p/f.yaml"), want: "p/f.yaml -> p/h.yaml -> p/f.yaml",
			files: map[string]string{"p/f.yaml": "start: b\nnodes:\n  b: {type: graph, file: p/h.yaml}\n", "p/h.yaml": "start: b\nnodes:\n  b: {type: graph, file: p/f.yaml}\n"},
		},
		{
			name: "too_many", text: sub("file: f0.yaml"), want: "name more than 200 definitions", files: func() map[string]string {
				texts := map[string]string{"f9.yaml": "start: b\nnodes: {b: {type: end}}"}
				for i := range 9 {
					f := fmt.Sprintf("type: graph, file: f%d.yaml", i+1)
					texts[fmt.Sprintf("f%d.yaml", i)] = "start: b\nnodes: {b: {" + f + "}, c: {" + f + "}}"
				}
				return texts
			}(),
		},
		{name: "too_deep", text: sub(strings.Repeat("start: b, nodes: {b: {type: graph, ", 20) + "start: b, nodes: {b: {type: end}}" + strings.Repeat("}}", 20)), want: "more than 16 levels"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := graph.Read("g.yaml", []byte(tt.text), files(tt.files))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
		})
	}
}

// TestFilesOfSubgraphs reads them from a directory, from which nothing leads out.
func TestFilesOfSubgraphs(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "agent")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const inner = "start: b\nnodes:\n  b: {type: llm, prompt: \"{{topic}}\", next: c}\n  c: {type: end}\n"
	write(filepath.Join(root, "secret.yaml"), inner)
	write(filepath.Join(dir, "parts", "sub.yaml"), inner)
	for link, to := range map[string]string{"in.yaml": "parts/sub.yaml", "out.yaml": "../secret.yaml"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	load := func(file string) (*graph.Graph, graph.Findings, error) {
		write(filepath.Join(dir, "graph.yaml"), "name: x\nstart: a\nnodes:\n  a: {type: graph, file: "+file+", next: z}\n  z: {type: end}\n")
		return graph.Load(filepath.Join(dir, "graph.yaml"))
	}
	for _, file := range []string{"parts/sub.yaml", "in.yaml"} {
		g, _, err := load(file)
		if err != nil {
			t.Fatal(err)
		}
		findings := graph.Validate(g, graph.ValidateEnv{})
		if len(findings) != 1 || findings[0].File != filepath.Join(dir, file) || findings[0].Node != "a/b" || findings[0].Path != "nodes.b.prompt" || findings[0].Line != 3 {
			t.Errorf("the findings are %+v", findings)
		}
	}
	if _, _, err := load("out.yaml"); err == nil || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("a link out of the directory: %v", err)
	}
	_, _, err := load("parts")
	if err == nil {
		t.Error("a directory was read")
	}
	write(filepath.Join(dir, "bad.yaml"), "start: b\n")
	_, _, err = load("bad.yaml")
	if found := graph.ErrorFindings(err); len(found) != 1 || found[0].File != filepath.Join(dir, "bad.yaml") {
		t.Errorf("what is wrong: %+v", found)
	}
}

func TestValidateSubgraph(t *testing.T) {
	with := func(fields, nodes string) string {
		return "name: x\nstart: a\nnodes:\n  a:\n    type: graph\n    next: z\n    " + fields + "\n    start: b\n    nodes:\n" + nodes + "\n  z: {type: end}\n"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"fine", with(`with: {k: "{{initial_prompt}}"}
    settings: {on_failure: fail}`, `      b: {type: llm, prompt: "{{k}}", state_updates: {r: "{{output}}"}, next: c}
      c: {type: end, output: "{{r}}"}`), ""},
		{"prompt", with(`with: {}`, `      b: {type: end, output: "{{initial_prompt}}"}`), `10:30 [a/b] nodes.a.nodes.b.output undefined-read {{initial_prompt}} is read`},
		{"outer_key", "name: x\nstart: a\ninitial_state: {k: 1}\nnodes: {a: {type: graph, next: z, start: b, nodes: {b: {type: end, output: '{{k}}'}}}, z: {type: end}}", `[a/b] nodes.a.nodes.b.output undefined-read {{k}} is read`},
		{"no_end", with("description: d", "      b: {type: llm, prompt: p}"), "[a] nodes.a.nodes no-end there is no end node"},
		{"target", with("description: d", "      b: {type: llm, prompt: p, next: y}\n      c: {type: end}"), `10:39 [a/b] nodes.a.nodes.b.next unknown-target next leads to "y", which is not a node`},
		{"cycle", with("description: d", "      b: {type: llm, prompt: p, next: c}\n      c: {type: llm, prompt: p, next: b}\n      d: {type: end}"), "[a] nodes.a.nodes.c.next cycle the declared edges form a cycle: b -> c -> b"},
		{"output", with("outputs: {k: rr.t}", "      b: {type: llm, prompt: p, state_updates: {r: '{{output}}'}, next: c}\n      c: {type: end}"), `[a] nodes.a.outputs.k outputs rr.t is read of the subgraph, but nothing in it writes "rr"`},
		{"condition", with("with: {n: 1}", "      b: {type: llm, prompt: p, next: [{when: 'nn > 1', to: c}, {to: c}]}\n      c: {type: end}"), `10:48 [a/b] nodes.a.nodes.b.next[0].when undefined-read`},
		{"outer_read", with(`with: {k: "{{gone}}"}`, "      b: {type: end}"), "[a] nodes.a.with.k undefined-read {{gone}} is read, but nothing writes"},
		{"no_next", "name: x\nstart: a\nnodes: {a: {type: graph, start: b, nodes: {b: {type: end}}}, z: {type: end}}", "[a] nodes.a missing-next a node of type graph needs next"},
		{"parallel_writes", "name: x\nstart: s\nnodes: {s: {type: llm, prompt: p, next: [a, c]}, a: {type: graph, start: b, nodes: {b: {type: llm, prompt: p, state_updates: {r: x}, next: e}, e: {type: end}}, outputs: {k: r}, next: z}, c: {type: llm, prompt: p, state_updates: {k: y}, next: z}, z: {type: end}}", `parallel nodes [a, c] all write "k"`},
		{"parallel_reads", "name: x\nstart: s\nnodes: {s: {type: llm, prompt: p, next: [a, c]}, a: {type: graph, with: {k: '{{k}}'}, start: b, nodes: {b: {type: end}}, next: z}, c: {type: llm, prompt: p, state_updates: {k: y}, next: z}, z: {type: end}}", `"a" reads k, which "c" writes in parallel`},
		{"branch_wait", "name: x\nstart: m\ninitial_state: {l: []}\nnodes: {m: {type: map, over: '{{l}}', as: i, branch: a, collect_into: r, next: z}, a: {type: graph, start: b, nodes: {b: {type: wait, for: 1, next: c}, c: {type: end}}}, z: {type: end}}", `branch "a" has a node that waits, a/b, which a map cannot run`},
		{"branch_output", "name: x\nstart: m\ninitial_state: {l: []}\nnodes: {m: {type: map, over: '{{l}}', as: i, branch: a, collect_into: r, next: z}, a: {type: graph, start: b, initial_state: {q: 1}, outputs: {k: q}, nodes: {b: {type: end}}}, z: {type: end}}", `delivers "output" alone, what it writes to "k" is lost`},
		{"branch", "name: x\nstart: m\ninitial_state: {l: []}\nnodes: {m: {type: map, over: '{{l}}', as: i, output_key: k, branch: a, collect_into: r, next: z}, a: {type: graph, with: {i: '{{i}}'}, start: b, initial_state: {q: 1}, outputs: {k: q}, nodes: {b: {type: end, output: '{{i}}'}}}, z: {type: end}}", ""},
		{"setting", with("settings: {durability: off}", "      b: {type: end}"), "7:16 [a] nodes.a.settings unknown-key unknown key \"durability\""},
		{"unknown_key", with("description: d", "      b: {type: end, outputt: x}"), "10:22 [a/b] nodes.a.nodes.b unknown-key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, findings, err := graph.Parse("g.yaml", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, f := range append(findings, graph.Validate(g, graph.ValidateEnv{})...) {
				fmt.Fprintf(&got, "%d:%d [%s] %s %s %s\n", f.Line, f.Column, f.Node, f.Path, f.Rule, f.Message)
			}
			if tt.want == "" && got.Len() > 0 || !strings.Contains(got.String(), tt.want) {
				t.Errorf("got\n%s\nwant\n%s", &got, tt.want)
			}
		})
	}
}

func TestSubgraphDiff(t *testing.T) {
	before := parse(t, research)
	for _, tt := range []struct{ name, old, new, want string }{
		{"prompt", "find {{topic}}", "look for {{topic}}", `nodes.research.nodes.search.prompt changed from "find {{topic}}" to "look for {{topic}}"`},
		{"with", "limit: 3", "limit: 4", `nodes.research.with changed from`},
		{"outputs", "papers: found", "papers: list", `nodes.research.outputs.papers changed from "found" to "list"`},
		{"reducer", "found: append", "found: extend", "nodes.research.reducers.found changed from append to extend"},
		{"node", "      done: {type: end, output: \"{{found}}\"}\n", "      done: {type: end, output: \"{{found}}\"}\n      more: {type: end}\n", "nodes.research.nodes.more (end) was added"},
		{"budget", "tokens: 100", "tokens: 200", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after := parse(t, strings.Replace(research, tt.old, tt.new, 1))
			got := strings.Join(graph.Diff(before, after), "\n")
			if same := graph.Fingerprint(before) == graph.Fingerprint(after); same != (tt.want == "") || same != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("the same: %v, and the differences are %s", same, got)
			}
		})
	}
}

// TestBundle: what a run records has the files of its subgraphs, and means the same.
func TestBundle(t *testing.T) {
	const main = "name: x\nstart: a\nnodes:\n  a: {type: graph, file: f.yaml, next: z}\n  b: {type: graph, file: p/h.yaml, next: z}\n  z: {type: end}\n"
	texts := map[string]string{"f.yaml": "start: b\nnodes:\n  b: {type: graph, file: p/h.yaml, next: c}\n  c: {type: end}\n", "p/h.yaml": "start: e\nnodes: {e: {type: end, output: hello}}\n"}
	g, _, err := graph.Read("/d/graph.yaml", []byte(main), files(texts))
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := graph.ReadBundle("/d/graph.yaml", g.Bundle())
	if err != nil || graph.Fingerprint(back) != graph.Fingerprint(g) {
		t.Fatalf("the record reads as %v, %v", graph.Diff(g, back), err)
	}
	if string(back.Bundle()) != string(g.Bundle()) {
		t.Error("the record of a record differs")
	}
	texts["p/h.yaml"] = strings.Replace(texts["p/h.yaml"], "hello", "bye", 1)
	now, _, _ := graph.Read("/d/graph.yaml", []byte(main), files(texts))
	if got := strings.Join(graph.Diff(back, now), "; "); !strings.Contains(got, `nodes.a.nodes.b.nodes.e.output changed from "hello" to "bye"; nodes.b.nodes.e.output`) {
		t.Errorf("a change in a file is %q", got)
	}
	alone := parse(t, research)
	if string(alone.Bundle()) != research {
		t.Error("a text without files is not itself on record")
	}
}
