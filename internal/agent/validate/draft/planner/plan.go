// Package planner examines and writes the plans of the agent that writes graphs, and has the tools that it uses.
package planner

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
	"loki/internal/agent/validate"
	"loki/internal/agent/validate/draft"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Name is the name of the agent that writes graphs, and the keys of its state that a face sets or reads.
const (
	Name      = "planner"
	AgentKey  = "agent"    // name or directory of the agent to change; empty for a new one
	RoundsKey = "rounds"   // how often a draft may be corrected
	ReplayKey = "replayed" // a draft that cannot be used is the result, too: a failed call is not on record
	checksKey = "checked"  // how often it was checked
	replyKey  = "reply"    // the last draft
	validKey  = "valid"    // whether it can be used
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

// CorrectionCount returns how often the planner was asked to correct its graph, in a run that ended with this state.
func CorrectionCount(s graph.State) int {
	v, _ := s.Get(checksKey)
	n, _ := v.AsInt()
	return max(int(n)-1, 0)
}

// Unusable returns the last reply of a planner that failed since it cannot be used; ok is false if it failed otherwise.
func Unusable(s graph.State) (reply string, ok bool) {
	v, _ := s.Get(validKey)
	valid, checked := v.AsBool()
	v, _ = s.Get(replyKey)
	reply, written := v.AsString()
	return reply, checked && !valid && written
}

// Valid reports whether the plan can be used.
func (p Plan) Valid() bool { return p.Agent.Graph != nil && len(p.Findings.Errors()) == 0 }

// Service examines plans, and writes them.
type Service struct {
	Validator *validate.Service                           // of the agents that plans are
	All       func(ctx context.Context) (tool.Set, error) // the tools there are, but for those of MCP servers
	Model     string                                      // the model that the command names, if any
	ModelOf   func(of agent.Agent) string                 // id of the model of the nodes of an agent that name none
	Hide      func(text string) string                    // takes secrets out
}

// Examine returns the plan in a reply of the planner, or in what a user has made of it. The agent that it changes is nil for a new
// one. Nothing is written or run.
func (s *Service) Examine(ctx context.Context, reply string, changed *agent.Agent) Plan {
	d, findings := draft.Read(reply)
	p := Plan{Draft: d, Findings: findings}
	ref := agent.Ref{Name: Name, Arg: Name, Dir: s.Dir("")} // where no script is
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
	p.Agent, _ = s.Validator.Tools.Agents.OfGraph(ref, g)
	p.Findings = append(p.Findings, d.Check(g, kept)...)
	p.Findings = append(p.Findings, s.Validator.Findings(ctx, p.Agent, func(path string) bool {
		return slices.ContainsFunc(d.Scripts(g), func(f draft.File) bool {
			return filepath.Join(ref.Dir, filepath.FromSlash(f.Path)) == filepath.Clean(path)
		}) || changed != nil && isFile(path)
	})...)
	p.Abilities = s.Validator.Abilities(ctx, p.Agent)
	p.Price = draft.Estimate(g, s.facts(ctx, p.Agent))
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

// files returns the definitions of subgraphs in the plan. The others are the agent's.
func (p Plan) files() graph.Files {
	return func(path string) ([]byte, error) {
		if text, ok := p.Draft.File(path); ok {
			return []byte(text), nil
		}
		return graph.Beside(p.Agent.Dir)(path)
	}
}

// toMend returns the findings that a model has to correct: errors, and warnings about what it meant and what is not done.
func (p Plan) toMend() graph.Findings {
	return slices.DeleteFunc(slices.Clone(p.Findings), func(f graph.Finding) bool {
		switch f.Rule {
		case graph.RuleUnknownKey, graph.RuleUndefinedRead, graph.RulePlaceholder, graph.RuleMissingNext:
			return false
		}
		return f.Severity != graph.SeverityError
	})
}

// facts are what an estimate for an agent has to know.
func (s *Service) facts(ctx context.Context, of agent.Agent) draft.Facts {
	return draft.Facts{
		Model: func(id string) draft.Model {
			m, err := s.Validator.Catalog.Resolve(cmp.Or(id, s.ModelOf(of)), catalog.Chat)
			if err != nil {
				return draft.Model{ID: id}
			}
			known := draft.Model{ID: m.ID(), Input: m.InputPrice, Output: m.OutputPrice, OutputLimit: s.Validator.Catalog.OutputLimit(m)}
			if m.InputPrice == nil && (m.ClientType == catalog.Builtin || s.Validator.Tools.Config.Client(m.Client).Local()) {
				known.Input, known.Output = new(0.0), new(0.0)
			}
			return known
		},
		Tools: func(n *graph.Node) (tokens int) {
			tools, err := s.Validator.Tools.Of(ctx, of, nil, nil)
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

// Dir is where plans are that run without being installed, each in a directory of its own. They stay there, so that
// their runs can be resumed.
func (s *Service) Dir(name string) string {
	return filepath.Join(config.Absolute(s.Validator.Tools.Agents.Paths.StateDir), "plans", name)
}

// planGrace is for how long a plan is kept that no run belongs to: it may be about to be run.
const planGrace = time.Hour

// Prune removes the plans in [Service.Dir] that belong to none of the runs, and returns how many those were. Plans that
// were written within the last hour stay.
func (s *Service) Prune(runs []run.Info) (removed int, err error) {
	plans, err := os.ReadDir(s.Dir(""))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, plan := range plans {
		dir := s.Dir(plan.Name())
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

// Write writes a plan that can be used to a directory, and returns the agent that is there then. The user has seen all
// of the plan and consented, so a directory that holds nothing else, or was trusted before, is trusted as it is then.
func (s *Service) Write(ctx context.Context, p Plan, dir, arg string) (agent.Agent, error) {
	ref := s.Validator.Tools.Agents.At(dir, arg)
	trusted := filepath.Dir(dir) == filepath.Clean(s.Dir("")) || s.Validator.Tools.Trust.OfRef(ctx, ref).Trusted
	if err := p.Draft.Write(dir, p.Agent.Graph); err != nil {
		return agent.Agent{}, err
	}
	of, _, err := s.Validator.Tools.Agents.Load(ref)
	if err != nil || !trusted {
		return of, err
	}
	if t := s.Validator.Tools.Trust.Of(ctx, of); !t.Trusted && t.Err == nil {
		err = s.Validator.Tools.Trust.Add(ctx, t.Content)
	}
	return of, err
}

// Holds reports whether a graph agent has these files now, see [FilesOf].
func (s *Service) Holds(ref agent.Ref, files draft.Draft) bool {
	now, _, err := s.Validator.Tools.Agents.Load(ref)
	return err == nil && now.Graph != nil && FilesOf(now).String() == files.String()
}
