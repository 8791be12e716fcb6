package draw

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/workflow/graph"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// node returns a node of the type with these successors.
func def(id string, typ graph.Type, next ...string) *graph.Node {
	return &graph.Node{ID: id, Type: typ, Next: next, HasNext: next != nil, FanOut: len(next) > 1}
}

func script(id string, next ...string) *graph.Node { return def(id, graph.ScriptNode, next...) }
func llm(id string, next ...string) *graph.Node    { return def(id, graph.LLMNode, next...) }
func end(id string) *graph.Node                    { return def(id, graph.EndNode) }

func orElse(n *graph.Node, fallback string) *graph.Node {
	n.Fallback = fallback
	return n
}

func mapOver(id, branch string, next ...string) *graph.Node {
	n := def(id, graph.MapNode, next...)
	n.Map = &graph.Map{Branch: branch}
	return n
}

// approval takes answers and targets in turn; the last target is the one for other
// answers.
func approval(id string, routes ...string) *graph.Node {
	n := def(id, graph.ApprovalNode)
	n.Approval = &graph.Approval{}
	for len(routes) > 1 {
		n.Approval.Routes = append(n.Approval.Routes, graph.Route{Answer: routes[0], Target: routes[1]})
		n.Approval.Options = append(n.Approval.Options, routes[0])
		routes = routes[2:]
	}
	n.Approval.OnOther = routes[0]
	return n
}

func graphOf(name string, nodes ...*graph.Node) *graph.Graph {
	return &graph.Graph{Name: name, Start: nodes[0].ID, Nodes: nodes}
}

func graphs() map[string]*graph.Graph {
	join := llm("merge", "check")
	join.Join = graph.JoinAll
	chain := make([]*graph.Node, 0, 40)
	deep := make([]*graph.Node, 0, 40)
	for i := range 20 {
		chain = append(chain, llm(fmt.Sprintf("step_%d", i), fmt.Sprintf("step_%d", i+1)))
		deep = append(deep, approval(fmt.Sprintf("ask_%d", i), "no", fmt.Sprintf("stop_%d", i), fmt.Sprintf("ask_%d", i+1)), end(fmt.Sprintf("stop_%d", i)))
	}
	return map[string]*graph.Graph{
		"chain": graphOf("chain", append(chain, end("step_20"))...),
		"types": graphOf("one of each",
			def("question", graph.InputNode, "research"),
			def("research", graph.AgentNode, "passages"),
			def("passages", graph.RAGNode, "each"),
			mapOver("each", "grade", "tidy"),
			llm("grade"),
			orElse(script("tidy", "answer"), "sorry"),
			orElse(llm("answer", "approve"), "sorry"),
			approval("approve", "yes", "publish", "no", "question2", "sure", "done", "done"),
			def("question2", graph.InputNode, "route"),
			script("route"),
			orElse(def("publish", graph.ToolNode, "pause"), "sorry"),
			def("pause", graph.WaitNode, "done"),
			end("sorry"),
			end("done"),
		),
		"diamond": graphOf("diamond",
			script("top", "left", "right"),
			script("left", "merge"),
			llm("right", "deeper"),
			orElse(llm("deeper", "merge"), "bottom"),
			join,
			llm("check", "bottom"),
			end("bottom"),
		),
		"unreachable": graphOf("unreachable",
			script("route"),
			llm("plan", "act", "watch"),
			llm("act", "done"),
			llm("watch", "done"),
			end("done"),
			script("loop_a", "loop_b"),
			script("loop_b", "loop_a"),
			llm("self", "self"),
			llm("lost", "nowhere"),
		),
		"names": graphOf(`The "best" graph: 100% of it`+"\n%%{init: {}}%%",
			approval("end", `say "hi"`, "graph", "", "subgraph", "1. first", "a|b", "# <b>*bold*</b> `x` ;", "zeilen\numbruch",
				"ÄÖ ✓ 日本語", "日本語", "R&amp;D", "日本語", strings.Repeat("long ", 30), "o", "x"),
			llm("graph", "default"), llm("subgraph", "default"), llm("a|b", "default"), llm("zeilen\numbruch", "default"),
			llm("日本語", "default"), llm("o", "default"), llm("x", "style"), llm("style", "default"),
			llm(`back\slash"`, "class", "click"), llm("class", "default"), llm("click", "default"), llm("", "default"),
			end("default"),
		),
		"missing":   graphOf("missing", llm("a", "b", "nope"), orElse(llm("b", "end"), "gone"), end("end")),
		"no_start":  {Name: "", Start: "begin", Nodes: []*graph.Node{end("done")}},
		"cycle":     graphOf("cycle", llm("a", "b"), approval("b", "again", "a", "c"), end("c")),
		"deep":      graphOf("deep", append(deep, end("ask_20"))...),
		"choices":   parsed(choices),
		"subgraphs": parsed(subgraphs),
		"fan_twice": graphOf("fan", llm("a", "b", "b"), end("b")),
	}
}

// choices has conditions and bounds on every kind of edge.
const choices = `
name: choices
start: draft
nodes:
  draft: {type: llm, prompt: p, next: review, fallback: {to: draft, max: 2}}
  review:
    type: script
    script: s.sh
    next: [{when: score >= 8, to: sort}, {when: urgent, to: sort}, {to: draft, max: 3}, {to: give_up}]
    fallback: [{when: "_last_error.message contains 'busy'", to: review, max: 5}, {to: give_up}]
  sort: {type: llm, prompt: p, next: {on: "{{kind}}", routes: {bug: fan, idea: {to: draft, max: 1}}, otherwise: ask}}
  fan: {type: script, script: s.sh, pick: all, next: [{when: n > 1, to: left}, {to: right}]}
  left: {type: llm, prompt: p, next: done}
  right: {type: llm, prompt: p, next: done}
  ask: {type: approval, question: q, options: [again], routes: {again: [{when: tries < 3, to: draft, max: 3}, {to: done}]}, on_other: {to: sort, max: 2}}
  give_up: {type: end}
  done: {type: end}
`

// subgraphs has subgraphs in a fan-out, in a map, in each other, without a way to them, and with names that mean something elsewhere.
const subgraphs = `
name: subgraphs
start: research
nodes:
  research:
    type: graph
    start: plan
    nodes:
      plan: {type: llm, prompt: p, next: [web, books]}
      web: {type: llm, prompt: p, next: merge}
      books:
        type: graph
        start: shelf
        nodes:
          shelf:
            type: graph
            start: book
            nodes: {book: {type: end}}
            next: read
          read: {type: script, script: s.sh}
        fallback: merge
        next: merge
      merge: {type: llm, prompt: p, next: done}
      done: {type: end}
    fallback: sorry
    next: each
  each: {type: map, over: "{{list}}", as: item, branch: "a/b", collect_into: out, next: again}
  "a/b":
    type: graph
    start: "[1]"
    nodes: {"[1]": {type: end}}
  again:
    type: graph
    start: done
    nodes: {done: {type: end}}
    next: [{when: n < 3, to: again, max: 3}, {to: done}]
  lost:
    type: graph
    start: wait
    nodes: {wait: {type: llm, prompt: p, next: done}, done: {type: end}}
    next: done
  sorry: {type: end}
  done: {type: end}
`

func parsed(text string) *graph.Graph {
	g, _, err := graph.Parse("graph.yaml", []byte(text))
	if err != nil {
		panic(err)
	}
	return g
}

func TestGolden(t *testing.T) {
	for name, g := range graphs() {
		for ext, got := range map[string]string{"mmd": Mermaid(g, 2), "dot": DOT(g, 2), "txt": Text(g, 60, 2)} {
			t.Run(name+"_"+ext, func(t *testing.T) {
				file := filepath.Join("testdata", name+"."+ext)
				if *update {
					if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// TestNothingForTerminals draws names that would command a terminal.
func TestNothingForTerminals(t *testing.T) {
	odd := "\x1b[2J\x07\u009b1m\u202e"
	g := graphOf(odd, approval("a", "ask", odd, odd), script(odd, "done"), end("done"))
	for form, got := range map[string]string{"mermaid": Mermaid(g, 2), "dot": DOT(g, 2), "text": Text(g, 60, 2)} {
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s has a character that no terminal shows: %.30q", form, got[i:])
		}
	}
	if !strings.Contains(DOT(g, 2), `"node:\\x1b[2J`) {
		t.Errorf("the id is gone:\n%s", DOT(g, 2))
	}
}

// drawn returns the nodes of a picture and those inside them.
func drawn(p *picture) []*node {
	nodes := slices.Clone(p.nodes)
	for _, n := range p.nodes {
		if n.inside != nil {
			nodes = append(nodes, drawn(n.inside)...)
		}
	}
	return nodes
}

// TestDepth makes sure that subgraphs are open down to the depth, and folded below it.
func TestDepth(t *testing.T) {
	g := parsed(subgraphs)
	const inner, innermost, folded = "research/plan", "research/books/read", "graph, 5 nodes"
	for depth, want := range [][3]bool{{false, false, true}, {true, false, false}, {true, true, false}} {
		svg := string(SVG(g, SVGOptions{Depth: depth}))
		for form, text := range map[string]string{"mermaid": Mermaid(g, depth), "dot": DOT(g, depth), "text": Text(g, 100, depth), "svg": svg} {
			got := [3]bool{strings.Contains(text, inner), strings.Contains(text, innermost), strings.Contains(text, folded)}
			if got != want {
				t.Errorf("%s of depth %d: %q, %q and %q are there: %v, want %v", form, depth, inner, innermost, folded, got, want)
			}
		}
	}
}

func TestTextFitsAndIsComplete(t *testing.T) {
	for name, g := range graphs() {
		for _, width := range []int{20, 40, 80} {
			text := Text(g, width, 2)
			for line := range strings.Lines(text) {
				if w := ansi.StringWidth(strings.TrimRight(line, "\n")); w > width {
					t.Errorf("%s: a line of %d columns where %d are allowed: %s", name, w, width, line)
				}
			}
			if width < 80 {
				continue // ids may be cut
			}
			for _, n := range drawn(newPicture(g, 2)) {
				if !n.missing() && !strings.Contains(text, printable(n.id)+" ("+string(n.def.Type)) {
					t.Errorf("%s: node %q has no line in\n%s", name, n.id, text)
				}
			}
		}
	}
}

// TestOrderOfChoice makes sure that a picture says in which order the conditions of a choice are looked at.
func TestOrderOfChoice(t *testing.T) {
	for _, tt := range []struct {
		name, next string
		want       []string
	}{
		{"neighbors", `[{when: n == 1, to: a}, {when: n == 2, to: a}, {to: b}]`, []string{"n == 1 or n == 2 -> a", "otherwise -> b"}},
		{"one_between", `[{when: n == 1, to: a}, {when: n == 2, to: b}, {to: a}]`, []string{"n == 1 -> a", "n == 2 -> b", "otherwise -> a"}},
		{"some_neighbors", `[{when: n == 1, to: a}, {to: b, max: 2}, {when: n == 3, to: a}, {to: a}]`, []string{"n == 1 -> a", "max 2 -> b", "n == 3 or otherwise -> a"}},
		{"values", `{on: "{{n}}", routes: {"1": a, "2": b, "3": a}, otherwise: a}`, []string{"1 or 3 -> a", "2 -> b", "otherwise -> a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := parsed("name: order\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: " + tt.next + "}\n  a: {type: end}\n  b: {type: end}\n")
			var got []string
			for _, e := range newPicture(g, 0).start.out {
				got = append(got, e.label+" -> "+e.to.id)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			svg := string(SVG(g, SVGOptions{}))
			if edges := strings.Count(svg, `data-from="s"`); edges != len(tt.want) {
				t.Errorf("the SVG has %d edges, want %d:\n%s", edges, len(tt.want), svg)
			}
		})
	}
	// Where all that hold are taken there is no order.
	g := parsed("name: all\nstart: s\nnodes:\n  s: {type: script, script: s.sh, pick: all, next: [{when: n > 1, to: a}, {when: n > 2, to: b}, {when: n > 3, to: a}]}\n  a: {type: end}\n  b: {type: end}\n")
	if out := newPicture(g, 0).start.out; len(out) != 2 || out[0].label != "n > 1 or n > 3" {
		t.Errorf("got %+v", out)
	}
}

// TestOnlyScriptsThatChooseAreNoted draws scripts without a next: one has to choose its successor, the others do not.
func TestOnlyScriptsThatChooseAreNoted(t *testing.T) {
	g := parsed(`
name: notes
start: each
nodes:
  each: {type: map, over: "{{list}}", as: item, branch: item, collect_into: out, next: book}
  item: {type: script, script: s.sh}
  book: {type: script, script: s.sh, compensate: cancel, next: pick}
  cancel: {type: script, script: s.sh}
  pick: {type: script, script: s.sh}
  clean: {type: script, script: s.sh, defer: true}
  done: {type: end}
`)
	for format, picture := range map[string]string{"text": Text(g, 0, 0), "mermaid": Mermaid(g, 0), "dot": DOT(g, 0)} {
		if n := strings.Count(picture, "chosen by the script (_next)"); n != 1 {
			t.Errorf("%s: %d scripts are noted, want only pick:\n%s", format, n, picture)
		}
	}
	if text := Text(g, 0, 0); !strings.Contains(text, "pick (script) -> chosen by the script (_next)") {
		t.Error(text)
	}
}
