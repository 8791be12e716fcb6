package page_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// counts are the numbers of a run as one view of it shows them.
type counts struct {
	Steps, Tokens, Failures int
	Nodes                   string // a line for each: id, visits, tokens, failures; empty in a view that has none
}

func (c counts) String() string {
	return fmt.Sprintf("%d super-steps, %d tokens, %d failures\n%s", c.Steps, c.Tokens, c.Failures, c.Nodes)
}

func countsOf(r api.RunDetail) counts {
	c := counts{Steps: r.Steps, Tokens: r.Tokens, Failures: r.Failures}
	for _, n := range r.Nodes {
		c.Nodes += fmt.Sprintln(n.Node, n.Visits, n.Tokens, n.Failures)
	}
	return c
}

// TestCounts compares the numbers of runs in everything that shows them: the command line, its machine output, the API, the page of the run
// and the page that compares runs, while a run waits, after each answer, after a resume, and at its end.
func TestCounts(t *testing.T) {
	b := browser(t)
	s := servertest.Program(t, files(t, ""))
	p := newTab(t, b, s.URL)
	same := func(id, when string, want map[string]int) {
		t.Helper()
		p := newTab(t, b, s.URL)
		var detail api.RunDetail
		s.Get("/v1/runs/"+id).JSON(t, &detail)
		truth := countsOf(detail)
		for _, n := range detail.Nodes {
			if visits, known := want[n.Node]; !known || visits != n.Visits {
				t.Errorf("%s: %d visits of %s, want %d", when, n.Visits, n.Node, visits)
			}
		}
		if len(detail.Nodes) != len(want) {
			t.Errorf("%s: the nodes are %+v, want those of %v", when, detail.Nodes, want)
		}
		sum := 0
		for _, n := range detail.Nodes {
			sum += n.Tokens
		}
		if sum != detail.Tokens {
			t.Errorf("%s: the nodes used %d tokens, the run %d", when, sum, detail.Tokens)
		}
		seen := make(map[string]bool)
		for _, v := range detail.Visits {
			key := fmt.Sprint(v.Step, v.Node, v.Number)
			if seen[key] {
				t.Errorf("%s: visit %d of %s in super-step %d is shown twice", when, v.Number, v.Node, v.Step)
			}
			seen[key] = true
		}
		views := map[string]counts{"--run": textCounts(t, s.Run("--run", id), truth.Failures)}
		var list struct{ Data []api.Run }
		s.Get("/v1/runs").JSON(t, &list)
		views["GET /v1/runs"] = listed(list.Data, id)
		var rows []api.Run
		unmarshal(t, s.Run("--runs", "--output", "json"), &rows)
		views["--runs"] = listed(rows, id)
		var shown api.RunDetail
		unmarshal(t, s.Run("--run", id, "--output", "json"), &shown)
		views["--run --output json"] = countsOf(shown)
		p.open("#/runs/" + id)
		p.until(`document.querySelector(".details table.nodes") !== null`)
		views["page"] = eval[counts](p, pageCounts)
		p.open("#/compare/" + id + "/" + id)
		p.until(`document.querySelector("table.nodes") !== null`)
		views["compare, left"] = eval[counts](p, fmt.Sprintf(compareCounts, 0, truth.Steps))
		views["compare, right"] = eval[counts](p, fmt.Sprintf(compareCounts, 1, truth.Steps))
		for name, got := range views {
			if got.Nodes == "" {
				got.Nodes = truth.Nodes
			}
			if got != truth {
				t.Errorf("%s: %s has\n%s, GET /v1/runs/ID has\n%s", when, name, got, truth)
			}
		}
		table := s.Run("--runs")
		row := regexp.MustCompile(`(?m)^` + id + `.*$`).FindString(table)
		if !regexp.MustCompile(fmt.Sprintf(`\b%d\b.*\b%d\b`, truth.Steps, truth.Tokens)).MatchString(row) || truth.Failures > 0 && detail.Status == "done" && !strings.Contains(row, fmt.Sprintf("%d failures", truth.Failures)) {
			t.Errorf("%s: --runs shows %q for\n%s", when, row, truth)
		}
	}
	answer := func(id, question, text string) {
		t.Helper()
		s.Post("/v1/runs/"+id+"/answers", `{"`+question+`": "`+text+`"}`)
		rests(p, id)
	}

	// Each time the same graph: a run that is answered on the server, and one that its budget stops before.
	id := begin(t, s, "counts", "some words")
	rests(p, id)
	visits := map[string]int{"draft": 3, "each": 1, "inner": 1, "side": 1, "title": 1}
	same(id, "waiting", visits)
	answer(id, "title", "Boats")
	visits["review"] = 1
	same(id, "waiting again", visits)
	answer(id, "review", "publish")
	visits["done"] = 1
	same(id, "done", visits)
	var detail api.RunDetail
	s.Get("/v1/runs/"+id).JSON(t, &detail)
	if detail.Failures != 3 { // two items, and a node of the subgraph
		t.Errorf("%d failures", detail.Failures)
	}

	p = newTab(t, b, s.URL)
	p.open("#/runs/" + id)
	p.until(`document.querySelector('.edge.taken[data-to="done"]') !== null`)
	taken := eval[[]string](p, `[...document.querySelectorAll(".edge.taken[data-edges]")].map((e) => e.getAttribute("data-edges"))`)
	slices.Sort(taken)
	want := []string{"draft.next[0]", "draft.next[1]", "each.branch", "each.next", "inner.next[0]", "inner.next[1]", "review.routes.publish\nreview.routes.drop\nreview.on_other", "side.next", "title.next"}
	if !slices.Equal(taken, want) {
		t.Errorf("the page colors the edges %q, want %q", taken, want)
	}
	if class := eval[string](p, `document.querySelector('[data-node="check"]').getAttribute("class")`); !slices.Contains(strings.Fields(class), "failed") {
		t.Errorf("the branch of the map has the classes %q", class)
	}
	var g api.Graph
	s.Get("/v1/runs/"+id+"/graph?format=json").JSON(t, &g)
	if i := slices.IndexFunc(g.Nodes, func(n api.GraphNode) bool { return n.ID == "check" }); g.Nodes[i].State != "failed" {
		t.Errorf("the API has the branch of the map as %q", g.Nodes[i].State)
	}
	var recorded []string
	for _, e := range g.Edges {
		if e.Taken {
			recorded = append(recorded, e.ID)
		}
	}
	slices.Sort(recorded)
	if want := []string{"draft.next[0]", "draft.next[1]", "each.branch", "each.next", "inner.next[0]", "inner.next[1]", "review.routes.publish", "side.next", "title.next"}; !slices.Equal(recorded, want) {
		t.Errorf("the API has the edges %q as taken, want %q", recorded, want)
	}
	drawing := s.Get("/v1/runs/" + id + "/graph?format=svg").Body
	if n := strings.Count(drawing, " taken\" data-from="); n != len(want) {
		t.Errorf("the drawing has %d edges as taken, want %d", n, len(want))
	}

	p = newTab(t, b, s.URL)
	var made struct{ ID string }
	s.Post("/v1/agents/counts/runs", `{"prompt": "some words", "budget": {"tokens": 9}, "wait": 60}`).JSON(t, &made)
	s.Get("/v1/runs/"+made.ID).JSON(t, &detail)
	if detail.Code != "limit" {
		t.Fatalf("the run ended with %q %s", detail.Code, detail.Error)
	}
	stopped := make(map[string]int)
	for _, n := range detail.Nodes {
		stopped[n.Node] = n.Visits
	}
	same(made.ID, "stopped by its budget", stopped)
	s.Post("/v1/runs/"+made.ID+"/resume", `{"budget": {"tokens": 100000}}`)
	rests(p, made.ID)
	answer(made.ID, "title", "Boats")
	answer(made.ID, "review", "again")
	same(made.ID, "resumed", visits)
	var again api.Graph
	s.Get("/v1/runs/"+made.ID+"/graph?format=json").JSON(t, &again)
	for _, e := range again.Edges {
		if e.From == "review" && e.Taken != (e.ID == "review.on_other") {
			t.Errorf("edge %s: taken %t", e.ID, e.Taken)
		}
	}
}

// rests waits until a run does not work any more.
func rests(p *tab, id string) {
	p.t.Helper()
	p.open("#/runs/" + id)
	p.until(`document.querySelector(".run-head .status") !== null && document.querySelector(".run-head .status.is-running") === null`)
}

func listed(runs []api.Run, id string) counts {
	i := slices.IndexFunc(runs, func(r api.Run) bool { return r.ID == id })
	if i < 0 {
		return counts{}
	}
	return counts{Steps: runs[i].Steps, Tokens: runs[i].Tokens, Failures: runs[i].Failures}
}

func unmarshal(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// textCounts reads what --run prints. It has the failures of nodes only.
func textCounts(t *testing.T, text string, failures int) counts {
	t.Helper()
	c := counts{Failures: failures}
	used := regexp.MustCompile(`(?m)^used +([\d,]+) super-steps?, ([\d,]+) tokens?`).FindStringSubmatch(text)
	if used == nil || !regexp.MustCompile(`(?m)^time +[\dhm.]+s$`).MatchString(text) {
		t.Fatalf("--run prints\n%s", text)
	}
	fmt.Sscan(strings.ReplaceAll(used[1], ",", ""), &c.Steps)
	fmt.Sscan(strings.ReplaceAll(used[2], ",", ""), &c.Tokens)
	_, table, _ := strings.Cut(text, "\nNODE")
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) >= 7 && f[0] != "TYPE" {
			c.Nodes += fmt.Sprintln(f[0], f[2], f[4], f[len(f)-1])
		} else if len(f) < 7 {
			break
		}
	}
	return c
}

// The counts that the page of a run and one half of the page that compares show.
const (
	pageCounts = `(() => {
		const fact = (name) => Number.parseInt([...document.querySelectorAll(".run-head dl.facts div:not([hidden])")].find((d) => d.querySelector("dt").innerText.toLowerCase() === name)?.querySelector("dd").innerText.replaceAll(",", "") ?? 0);
		const rows = [...document.querySelectorAll(".details table.nodes tbody tr")].map((r) => [...r.cells].map((c) => c.innerText));
		return { Steps: fact("steps"), Tokens: fact("tokens"), Failures: fact("failures"), Nodes: rows.map((c) => [c[0], c[1], c[3], c[5] || "0"].join(" ") + "\n").join("") };
	})()`
	compareCounts = `(() => {
		const rows = [...document.querySelectorAll("table.nodes tbody tr")].map((r) => [...r.cells].map((c) => c.innerText));
		const half = ([name, ...c]) => [name, ...c.slice(5 * %d)];
		const whole = half(rows[0]);
		return { Steps: %d, Tokens: Number(whole[3]), Failures: Number(whole[5] || 0), Nodes: rows.slice(1).map(half).map((c) => [c[0], c[1], c[3], c[5] || "0"].join(" ") + "\n").join("") };
	})()`
)
