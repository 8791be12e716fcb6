package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
)

// Breakpoints are where the run of a graph is suspended so that its user can look at it. A run stops between two super-steps only. The
// zero Breakpoints never stop it.
type Breakpoints struct {
	Before []string // nodes: before the super-step in which one of them is to run
	After  []string // nodes: after the super-step in which one of them ran
	Steps  int      // after so many super-steps, counted from where the run begins or resumes; 0 for no bound
}

// afterSuffix is behind the name of a node after which a run stops.
const afterSuffix = ":after"

// ParseBreakpoints reads the nodes at which a run of g stops: NODE, or NODE:after.
func ParseBreakpoints(g *graph.Graph, places []string) (b Breakpoints, err error) {
	for _, place := range places {
		id, after := strings.CutSuffix(place, afterSuffix)
		n := g.Node(id)
		switch {
		case n == nil:
			return Breakpoints{}, cmp.Or(innerNode(g, id), unknownNode(g, id))
		case mapOf(g, id) != "":
			return Breakpoints{}, fault.New(fault.Usage, "a run cannot stop at node %q, which map %q runs for each item", id, mapOf(g, id)).WithHint("%s", stopAt(mapOf(g, id)))
		case after && n.Type == graph.EndNode:
			return Breakpoints{}, fault.New(fault.Usage, "a run cannot stop after node %q, which ends it", id).WithHint("stop before it: %s", id)
		case after:
			b.After = append(b.After, id)
		default:
			b.Before = append(b.Before, id)
		}
	}
	return b, nil
}

// mapOf returns the map of g whose branch is the node called id, "" for none.
func mapOf(g *graph.Graph, id string) string {
	for _, n := range g.Nodes {
		if n.Type == graph.MapNode && n.Map.Branch == id {
			return n.ID
		}
	}
	return ""
}

// stopAt says how a run is stopped at a node instead of inside it.
func stopAt(id string) string {
	return fmt.Sprintf("stop before the whole of it, %s, or after it, %[1]s%s", id, afterSuffix)
}

// innerNode refuses a node of a subgraph of g: by its name, also written with dots, or by its id. The error is nil if there is none.
func innerNode(g *graph.Graph, id string) error {
	for _, outer := range g.Nodes {
		if outer.Sub == nil {
			continue
		}
		for m := range outer.Sub.Graph.All() {
			if id != m.Name && id != strings.ReplaceAll(m.Name, "/", ".") && id != m.ID {
				continue
			}
			return fault.New(fault.Usage, "a run cannot stop at node %s, which is inside the subgraph of node %q: it stops between the super-steps of graph %s itself", m.Name, outer.ID, g.Name).
				WithHint("%s", stopAt(cmp.Or(mapOf(g, outer.ID), outer.ID)))
		}
	}
	return nil
}

func unknownNode(g *graph.Graph, id string) error {
	ids := make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		ids[i] = n.ID
	}
	err := fault.New(fault.Usage, "a run cannot stop at node %q, which the graph %s does not have", id, g.Name).ThatMisses("node")
	if near := yamldoc.Nearest(id, ids); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("its nodes: %s", strings.Join(ids, ", "))
}

// none reports whether b never stops a run.
func (b Breakpoints) none() bool { return len(b.Before)+len(b.After)+b.Steps == 0 }

// at returns where a run stops that has come to pr, "" if it does not: such as "before publish". ran are the nodes of the last of the
// super-steps that it has done since it began or resumed; steps is their number.
func (b Breakpoints) at(pr graph.Progress, ran []string, steps int) (place string) {
	in := func(nodes []string) func(string) bool {
		return func(id string) bool { return slices.Contains(nodes, id) }
	}
	if i := slices.IndexFunc(b.After, in(ran)); i >= 0 {
		return "after " + b.After[i]
	}
	if i := slices.IndexFunc(b.Before, in(pr.Frontier)); i >= 0 {
		return "before " + b.Before[i]
	}
	if b.Steps > 0 && steps >= b.Steps {
		return "after " + superStep(pr.Step)
	}
	return ""
}

func superStep(n int) string { return fmt.Sprintf("super-step %d", n) }

// BreakError is the error of a run that stopped at a breakpoint. It is wrapped in one with code [fault.Suspended].
type BreakError struct {
	Place string   // such as "before publish"
	Step  int      // super-steps done
	Next  []string // nodes of the next one
}

func (e *BreakError) Error() string {
	where := e.Place
	if e.Step > 0 && where != "after "+superStep(e.Step) {
		where += ", after " + superStep(e.Step)
	}
	return fmt.Sprintf("the run is at a breakpoint %s; next: %s", where, strings.Join(e.Next, ", "))
}

// stop returns the error of a run that stops at pr, nil if it does not. A run that is not recorded any more does not stop: it could not
// be resumed.
func (d *driver) stop(pr *graph.Progress, ran []string, steps int) error {
	if d.Stops.none() || pr.Done || steps == 0 && d.Past || !d.keeper.works() {
		return nil
	}
	place := d.Stops.at(*pr, ran, steps)
	if place == "" {
		return nil
	}
	return fault.Wrap(fault.Suspended, &BreakError{place, pr.Step, slices.Clone(pr.Frontier)}, "").WithHint("%s", FromBreakpoint(d.Events.Run))
}

// FromBreakpoint returns what the user of a run that stopped at a breakpoint can do, in lines.
func FromBreakpoint(id string) string {
	return fmt.Sprintf("look at its state: loki --run %s --state\ngo on: loki --resume %[1]s, with --step for one super-step, with --set KEY=JSON with another state", id)
}

// stops reports whether breakpoints are asked for.
func (c Continuation) stops() bool { return len(c.Break)+c.Steps > 0 }

// onlyGraphsStop is the failure of breakpoints for what is no graph.
func onlyGraphsStop(agent string) error {
	return fault.New(fault.Usage, "only the run of a graph stops at breakpoints, and %s is not a graph agent", agent).WithHint("leave out --break and --step")
}

// mayStop refuses breakpoints of a job that could not resume from them.
func (s *Service) mayStop(job Job) error {
	why := ""
	switch {
	case job.Stops.none():
		return nil
	case job.Graph == nil:
		return onlyGraphsStop(job.Info.Agent)
	case s.Unrecorded:
		why = "leave out --dry-run, and set dry_run: false in config.yaml"
	case s.Volatile:
		why = "leave out --replay"
	case !s.Always && (job.Durability == graph.DurabilityOff || job.Durability == ""):
		why = "leave out settings.durability: off in " + job.Graph.File
	default:
		return nil
	}
	return fault.New(fault.Usage, "a run that is not recorded cannot stop at breakpoints, because it could not resume").WithHint("%s", why)
}
