package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent"
	"loki/internal/agent/draft"
	"loki/internal/agent/validate"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Planner is the name of the agent that writes graphs, and the keys of its state that a face sets or reads.
const (
	Planner       = "planner"
	PlannerAgent  = "agent"   // name or directory of the agent that is to be changed; empty for a new one
	PlannerRounds = "rounds"  // how often a draft may be mended
	plannerChecks = "checked" // how often it was checked
)

// Plan is a draft of an agent with what there is to say about it.
type Plan struct {
	Draft    draft.Draft
	Agent    agent.Agent    // as it would be; its Graph is nil if the draft has none that can be read
	Findings graph.Findings // the plan can be used if there is no error among them

	// Abilities and Price are those of a plan whose graph can be read.
	Abilities []validate.Ability
	Price     draft.Price
}

// Mended returns how often the planner was asked to mend its graph, in a run that ended with this state.
func Mended(s graph.State) int {
	v, _ := s.Get(plannerChecks)
	n, _ := v.AsInt()
	return max(int(n)-1, 0)
}

// Valid reports whether the plan can be used.
func (p Plan) Valid() bool { return p.Agent.Graph != nil && len(p.Findings.Errors()) == 0 }

// Examine returns the plan in a reply of the planner, or in what a user has made of it. The agent that it changes is nil for a new
// one. Nothing is written or run.
func (a *App) Examine(ctx context.Context, reply string, changed *agent.Agent) Plan {
	d, findings := draft.Read(reply)
	p := Plan{Draft: d, Findings: findings}
	ref := agent.Ref{Name: Planner, Arg: Planner, Dir: a.PlanDir("")} // where no script is
	if changed != nil {
		ref = changed.Ref
	}
	if p.Agent.Ref = ref; d.Graph == "" {
		return p
	}
	g, warnings, err := graph.Read(graph.FileName, []byte(d.Graph), p.files())
	p.Findings = append(p.Findings, warnings...)
	if err != nil {
		p.Findings = append(p.Findings, graph.ErrorFindings(err)...)
		return p
	}
	ends := changed == nil || changed.Graph.Settings.FailureWritten && changed.Graph.Settings.OnFailure == graph.FailStop
	if ended := draft.EndOnFailure(d.Graph); ends && !g.Settings.FailureWritten {
		if with, _, err := graph.Read(graph.FileName, []byte(ended), p.files()); err == nil && with.Settings.FailureWritten {
			g, d.Graph = with, ended
			p.Draft = d
		}
	}
	kept := func(path string) bool {
		return changed != nil && namesScript(changed.Graph, path) && isFile((&graph.Script{Script: path}).Path(ref.Dir))
	}
	if changed == nil {
		kept = nil
	}
	p.Agent, _ = a.Agents.OfGraph(ref, g)
	p.Findings = append(p.Findings, d.Check(g, kept)...)
	p.Findings = append(p.Findings, a.Validator().Findings(ctx, p.Agent, func(path string) bool {
		return slices.ContainsFunc(d.Scripts(g), func(f draft.File) bool {
			return filepath.Join(ref.Dir, filepath.FromSlash(f.Path)) == filepath.Clean(path)
		}) || changed != nil && isFile(path)
	})...)
	p.Abilities = a.Validator().Abilities(ctx, p.Agent)
	p.Price = draft.Estimate(g, a.priceFacts(ctx, p.Agent))
	return p
}

// namesScript reports whether a node of a graph has the script at a path.
func namesScript(g *graph.Graph, path string) bool {
	_, ok := g.Find(func(n *graph.Node) bool { return n.Script != nil && n.Script.Script == path })
	return ok
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// files returns the definitions of subgraphs in the plan. Those that it does not have are the agent's.
func (p Plan) files() graph.Files {
	return func(path string) ([]byte, error) {
		if text, ok := p.Draft.File(path); ok {
			return []byte(text), nil
		}
		return graph.Beside(p.Agent.Dir)(path)
	}
}

// toMend returns the findings that a model is to mend: errors, and warnings about what it meant and what is not done.
func (p Plan) toMend() graph.Findings {
	return slices.DeleteFunc(slices.Clone(p.Findings), func(f graph.Finding) bool {
		switch f.Rule {
		case graph.RuleUnknownKey, graph.RuleUndefinedRead, graph.RulePlaceholder, graph.RuleMissingNext:
			return false
		}
		return f.Severity != graph.SeverityError
	})
}

// priceFacts are what an estimate for an agent has to know.
func (a *App) priceFacts(ctx context.Context, of agent.Agent) draft.Facts {
	return draft.Facts{
		Model: func(id string) draft.Model {
			m, err := a.Catalog.Resolve(cmp.Or(id, a.graphModel(AgentRun{Agent: of, Model: a.model})), catalog.Chat)
			if err != nil {
				return draft.Model{ID: id}
			}
			known := draft.Model{ID: m.ID(), Input: m.InputPrice, Output: m.OutputPrice, OutputLimit: a.Catalog.OutputLimit(m)}
			if m.InputPrice == nil && (m.ClientType == catalog.Builtin || a.Config.Client(m.Client).Local()) {
				known.Input, known.Output = new(0.0), new(0.0)
			}
			return known
		},
		Tools: func(n *graph.Node) (tokens int) {
			tools, err := a.Tools.Of(ctx, of, nil, nil)
			if err != nil {
				return 0
			}
			if set, err := tools.ForNode(of.Name, slices.DeleteFunc(slices.Clone(n.LLM.Tools), func(name string) bool { return strings.HasPrefix(name, "mcp:") })); err == nil {
				tools = set
			}
			for _, t := range tools.All() {
				d := t.Declaration()
				tokens += chat.EstimateTokens(d.Name + d.Description + string(d.Parameters))
			}
			return tokens
		},
	}
}

// PlanDir is where plans are that run without being installed, each in a directory of its own. They stay there, so that
// their runs can be resumed.
func (a *App) PlanDir(name string) string {
	return filepath.Join(config.Absolute(a.Paths.StateDir), "plans", name)
}

// planGrace is for how long a plan is kept that no run belongs to: it may be about to be run.
const planGrace = time.Hour

// PrunePlans removes the plans in [App.PlanDir] that belong to none of the runs, and returns how many those were. Plans that
// were written within the last hour stay.
func (a *App) PrunePlans(runs []run.Info) (removed int, err error) {
	plans, err := os.ReadDir(a.PlanDir(""))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, plan := range plans {
		dir := a.PlanDir(plan.Name())
		info, infoErr := plan.Info()
		used := slices.ContainsFunc(runs, func(r run.Info) bool { return r.AgentDir == dir })
		if infoErr != nil || used || time.Since(info.ModTime()) < planGrace {
			continue
		}
		if removeErr := os.RemoveAll(dir); removeErr != nil {
			err = errors.Join(err, removeErr)
			continue
		}
		removed++
	}
	return removed, err
}

// WritePlan writes a plan that can be used to a directory, and returns the agent that is there then. The user has seen all
// of the plan and consented, so a directory that holds nothing else, or was trusted before, is trusted as it is then.
func (a *App) WritePlan(ctx context.Context, p Plan, dir, arg string) (agent.Agent, error) {
	ref := a.Agents.At(dir, arg)
	trusted := filepath.Dir(dir) == filepath.Clean(a.PlanDir("")) || a.Trust.OfRef(ctx, ref).Trusted
	if err := p.Draft.Write(dir, p.Agent.Graph); err != nil {
		return agent.Agent{}, err
	}
	of, _, err := a.Agents.Load(ref)
	if err != nil || !trusted {
		return of, err
	}
	if t := a.Trust.Of(ctx, of); !t.Trusted && t.Err == nil {
		err = a.Trust.Add(ctx, t.Content)
	}
	return of, err
}

// Holds reports whether a graph agent has these files now, see [FilesOf].
func (a *App) Holds(ref agent.Ref, files draft.Draft) bool {
	now, _, err := a.Agents.Load(ref)
	return err == nil && now.Graph != nil && FilesOf(now).String() == files.String()
}

// planTools are the tools of the planner.
func (a *App) planTools() []tool.Tool {
	const large = 1 << 20 // bytes; what is cut cannot be read
	of := func(name, description, parameters string, call func(ctx context.Context, args planArguments) (any, error)) tool.Tool {
		return &planTool{chat.Tool{Name: name, Description: description, Parameters: []byte(parameters)}, tool.Hints{ReadOnly: true, MaxOutput: large}, call}
	}
	return []tool.Tool{
		of("graph__offer", "Describe the format of graph agents, and what there is for them here: models with prices, agents, tools and MCP servers.",
			`{"type":"object","properties":{"agent":{"type":"string","description":"Name of a graph agent that is to be changed; its files are described too."}}}`,
			func(ctx context.Context, args planArguments) (any, error) { return a.offer(ctx, args) }),
		of("graph__check", "Check a graph agent that was written in fenced blocks: a graph.yaml, and its scripts. Nothing is written or run.",
			`{"type":"object","properties":{"reply":{"type":"string","description":"The blocks, each with the name of its file in its first line."},`+
				`"agent":{"type":"string","description":"Name of the graph agent that is changed, if there is one."}},"required":["reply"]}`, a.checkPlan),
	}
}
