package summary

import (
	"cmp"
	"slices"
	"strings"

	"loki/internal/frontend/api"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// path gathers from the events of a graph's run what its visits on record do not say: the visits inside subgraphs, those of the super-step
// that is not over, and what compensations undo.
type path struct {
	visits []*visit // of the outermost graph, in the order in which they began
	known  map[visitKey]*visit
	open   map[string]*visit // the last one of each node, by its name
	agents map[string]string // names of the nodes that child agents work for, by the ids of the agents
}

// visit is a visit of a node.
type visit struct {
	api.Visit
	within string   // as in [event.Source]
	inner  []*visit // those of its subgraph, in the order in which they began
	ended  bool
}

// visitKey tells a visit from all others of its run.
type visitKey struct {
	outer  *visit // whose subgraph it is in, nil for none
	step   int
	node   string
	number int
}

func newPath() *path {
	return &path{known: make(map[visitKey]*visit), open: make(map[string]*visit), agents: make(map[string]string)}
}

// add takes note of an event.
func (p *path) add(ev event.Event) {
	name := ev.Node
	if ev.AgentID != "" {
		if b, ok := ev.Body.(event.Started); ok {
			p.agents[ev.AgentID] = cmp.Or(p.agents[b.Parent], b.ParentNode)
		}
		name = p.agents[ev.AgentID]
	}
	switch b := ev.Body.(type) {
	case event.Reply:
		for v := p.open[name]; v != nil; v = p.around(v.within) {
			v.Usage = v.Usage.Add(b.Usage)
		}
	case event.Retry:
		if v := p.open[name]; v != nil && ev.AgentID == "" {
			v.Retries++
		}
	case event.NodeStarted:
		if ev.AgentID == "" && ev.Item == nil {
			p.begin(ev, b)
		}
	case event.NodeFinished:
		if v := p.open[name]; v != nil && ev.AgentID == "" && ev.Item == nil {
			v.Seconds, v.Targets, v.ended = b.Duration.Seconds(), b.Targets, true
			v.Failed, v.Error, v.Tolerated, v.Canceled, v.Waiting = b.Error != "", b.Error, b.Tolerated, b.Canceled, b.Waiting
		}
	}
}

// begin notes that a visit begins. An interrupted visit begins again.
func (p *path) begin(ev event.Event, b event.NodeStarted) {
	visits, outer := &p.visits, p.around(ev.Within)
	if outer != nil {
		visits = &outer.inner
	} else if ev.Within != "" {
		return
	}
	key := visitKey{outer, ev.Step, ev.Node, b.Visit}
	v := p.known[key]
	if v == nil {
		v = &visit{within: ev.Within, Visit: api.Visit{
			Step: ev.Step, Node: ev.Node, Type: b.NodeType, Number: b.Visit, Started: ev.Time.UTC(), Undoes: b.Undoes,
		}}
		*visits = append(*visits, v)
		p.known[key] = v
	}
	v.ended = false
	p.open[ev.Node] = v
}

// around returns the visit whose subgraph has a name, nil for none. The subgraph of an item of a map is that of the map.
func (p *path) around(within string) *visit {
	if v := p.open[within]; v != nil {
		return v
	}
	if i := strings.LastIndexByte(within, '#'); i >= 0 {
		return p.open[within[:i]]
	}
	return nil
}

// complete returns the visits on record, and those after so many super-steps that have ended since, or wait. Of a super-step that is not
// over, the visits that ended are on record as well.
func (p *path) complete(recorded []run.Visit, steps int) []api.Visit {
	visits, known := []api.Visit{}, make(map[visitKey]bool)
	for _, r := range recorded {
		v := api.Visit{
			Step: r.Step, Node: r.Node, Type: string(r.Type), Number: r.Number, Started: r.Started.UTC(), Seconds: r.Duration.Seconds(), Targets: r.Targets,
			Usage: r.Usage, Retries: r.Retries, Failed: r.Failed, Error: r.Error, Tolerated: r.Tolerated, Canceled: r.Canceled,
		}
		key := visitKey{nil, r.Step, r.Node, r.Number}
		known[key] = true
		if of := p.known[key]; of != nil {
			v.Undoes, v.Inner = of.Undoes, endedVisits(of.inner)
		}
		visits = append(visits, v)
	}
	later := slices.DeleteFunc(slices.Clone(p.visits), func(v *visit) bool {
		return v.Step <= steps || known[visitKey{nil, v.Step, v.Node, v.Number}]
	})
	return append(visits, endedVisits(later)...)
}

// endedVisits returns those of visits that ended, or wait: of one subgraph after the other, by super-step.
func endedVisits(visits []*visit) (list []api.Visit) {
	order := make(map[string]int)
	for _, v := range visits {
		if _, known := order[v.within]; !known {
			order[v.within] = len(order)
		}
	}
	sorted := slices.Clone(visits)
	slices.SortStableFunc(sorted, func(a, b *visit) int {
		return cmp.Or(cmp.Compare(order[a.within], order[b.within]), cmp.Compare(a.Step, b.Step))
	})
	for _, v := range sorted {
		if v.ended {
			v.Inner = endedVisits(v.inner)
			list = append(list, v.Visit)
		}
	}
	return list
}
