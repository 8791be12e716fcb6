package planner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/validate/draft"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
	"loki/internal/workflow/graph"
)

// arguments are those of the tools of the planner.
type arguments struct {
	Reply string `json:"reply"`
	Agent string `json:"agent"`
	Final bool   `json:"final"`
}

// plannerTool is a tool of the planner, whose result is JSON.
type plannerTool struct {
	declaration chat.Tool
	hints       tool.Hints
	call        func(ctx context.Context, args arguments) (any, error)
}

// Declaration implements [tool.Tool].
func (t *plannerTool) Declaration() chat.Tool { return t.declaration }

// Hints implements [tool.Tool].
func (t *plannerTool) Hints() tool.Hints { return t.hints }

// Call implements [tool.Tool].
func (t *plannerTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := tool.Decode[arguments](call)
	if err != nil {
		return tool.Result{}, err
	}
	result, err := t.call(ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	data, err := json.Marshal(result)
	return tool.Result{Output: string(data)}, err
}

// changeTarget returns the graph agent that a plan changes, nil for none.
func (s *Service) changeTarget(name string) (*agent.Agent, error) {
	if name == "" {
		return nil, nil
	}
	ref, err := s.Validator.Tools.Agents.Find(name)
	if err != nil {
		return nil, err
	}
	of, _, err := s.Validator.Tools.Agents.Load(ref)
	if err == nil && of.Graph == nil {
		err = fault.New(fault.Usage, "agent %s is defined by config.yaml and has no graph to change", of.Name)
	}
	return &of, err
}

// check is what graph__check does.
func (s *Service) check(ctx context.Context, args arguments) (any, error) {
	changed, err := s.changeTarget(args.Agent)
	if err != nil {
		return nil, err
	}
	p := s.Examine(ctx, args.Reply, changed)
	if args.Final && !p.Valid() {
		return nil, fault.New(fault.Provider, "the graph of the model cannot be used:\n%s", findingLines(p.Findings.Errors()))
	}
	mend := p.toMend()
	result := struct {
		Valid    bool   `json:"valid"`
		Mend     bool   `json:"mend"`
		Feedback string `json:"feedback"` // for the model
	}{Valid: p.Valid(), Mend: len(mend) > 0}
	if result.Mend {
		result.Feedback = "Your answer before was this:\n\n" + args.Reply + "\n\nIt cannot be used as it is. The checker found, with line and column in graph.yaml:\n\n" +
			findingLines(mend) + "\nAnswer again with all files, corrected."
	}
	return result, nil
}

// findingLines returns findings for a model, a line each.
func findingLines(findings graph.Findings) string {
	var b strings.Builder
	for _, f := range findings {
		if f.File != "" {
			b.WriteString(f.File + ":")
		}
		if f.Line > 0 {
			fmt.Fprintf(&b, "%d:%d: ", f.Line, f.Column)
		}
		fmt.Fprintf(&b, "%s [%s] %s", f.Severity, f.Rule, f.String())
		if f.Hint != "" {
			b.WriteString("; " + f.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// offered is the result of graph__offer, and a part of the state of the planner.
type offered struct {
	Guide   string `json:"guide"`
	Offer   string `json:"offer"`
	Current string `json:"current"` // empty for a new agent
}

// Offer returns the planner, as it is without its first node, and what that node would leave in the state: a dry run
// calls no tools.
func (s *Service) Offer(ctx context.Context, planner agent.Agent, changed string) (agent.Agent, []value.Member, error) {
	offer, err := s.offer(ctx, arguments{Agent: changed})
	if err != nil {
		return planner, nil, err
	}
	g := *planner.Graph
	if i := slices.IndexFunc(g.Nodes, func(n *graph.Node) bool { return n.LLM != nil }); i >= 0 {
		g.Start = g.Nodes[i].ID
	}
	planner.Graph = &g
	return planner, []value.Member{
		{Name: "guide", Value: value.Of(offer.Guide)}, {Name: "offer", Value: value.Of(offer.Offer)}, {Name: "current", Value: value.Of(offer.Current)},
	}, nil
}

// offer is what graph__offer does.
func (s *Service) offer(ctx context.Context, args arguments) (offered, error) {
	result := offered{Guide: graph.Reference()}
	changed, err := s.changeTarget(args.Agent)
	if err != nil {
		return result, err
	}
	var b strings.Builder
	s.offerModels(&b)
	if err := s.offerAgents(&b); err != nil {
		return result, err
	}
	if err := s.offerTools(ctx, &b); err != nil {
		return result, err
	}
	s.offerServers(&b)
	result.Offer = s.Hide(b.String())
	if changed != nil {
		result.Current = s.Hide("This agent, " + changed.Name + ", is to be changed. Keep what the description does not mention. Its files:\n\n" + FilesOf(*changed).String())
	}
	return result, nil
}

// FilesOf returns the files of a graph agent as a draft. Scripts that cannot be read, or are too long for a model, are left out.
func FilesOf(of agent.Agent) draft.Draft {
	const most = 64 << 10
	d := draft.Draft{Graph: strings.TrimRight(string(of.Graph.Text), "\n") + "\n"}
	for _, name := range slices.Sorted(maps.Keys(of.Graph.Files)) {
		d.Files = append(d.Files, draft.File{Path: name, Text: strings.TrimRight(string(of.Graph.Files[name]), "\n") + "\n"})
	}
	for n := range of.Graph.All() {
		if n.Script == nil {
			continue
		}
		if _, ok := d.File(n.Script.Script); ok {
			continue
		}
		if src, err := os.ReadFile(n.Script.Path(of.Dir)); err == nil && len(src) <= most {
			d.Files = append(d.Files, draft.File{Path: n.Script.Script, Text: strings.TrimRight(string(src), "\n") + "\n"})
		}
	}
	return d
}

// maxOffered is how many models are described to the planner.
const maxOffered = 40

func (s *Service) offerModels(b *strings.Builder) {
	b.WriteString("Models (US dollars for a million tokens, input / output). A node that names none uses the user's, which is usually right.\n")
	standard := ""
	if m, err := s.Validator.Catalog.Resolve(cmp.Or(s.Model, s.Validator.Tools.Config.Model), catalog.Chat); err == nil {
		standard = m.ID()
	}
	n := 0
	for m := range s.Validator.Catalog.Models(catalog.Chat) {
		if n++; n > maxOffered && m.ID() != standard {
			continue
		}
		price := "price unknown"
		if m.InputPrice != nil && m.OutputPrice != nil {
			price = strconv.FormatFloat(*m.InputPrice, 'g', -1, 64) + " / " + strconv.FormatFloat(*m.OutputPrice, 'g', -1, 64)
		}
		fmt.Fprintf(b, "- %s: %s", m.ID(), price)
		if m.ID() == standard {
			b.WriteString(", the user's")
		}
		if !m.SupportsFunctionCalling {
			b.WriteString(", no tools")
		}
		if m.ClientType == catalog.Builtin {
			b.WriteString(", for tests and work offline")
		}
		b.WriteByte('\n')
	}
	if n > maxOffered {
		fmt.Fprintf(b, "and %d more\n", n-maxOffered)
	}
}

func (s *Service) offerAgents(b *strings.Builder) error {
	list, err := s.Validator.Tools.Agents.List()
	if err != nil {
		return err
	}
	b.WriteString("\nAgents, for nodes of the type agent:\n")
	for _, e := range list {
		if e.Error == "" && e.Name != Name {
			fmt.Fprintf(b, "- %s: %s\n", e.Name, text.OneLine(e.Description, 200))
		}
	}
	return nil
}

func (s *Service) offerTools(ctx context.Context, b *strings.Builder) error {
	set, err := s.All(ctx)
	if err != nil {
		return err
	}
	b.WriteString("\nTools: list them in global_tools, and in tools of the llm nodes that may call them (those that begin with user__ only there). Each with its arguments as JSON Schema:\n")
	names := set.Names()
	slices.Sort(names)
	for _, name := range names {
		t, _ := set.Lookup(name)
		if _, own := t.(*plannerTool); own {
			continue
		}
		d, asks := t.Declaration(), ""
		if t.Hints().Destructive {
			asks = " (asks the user)"
		}
		fmt.Fprintf(b, "- %s%s: %s %s\n", name, asks, text.OneLine(d.Description, 300), d.Parameters)
	}
	return nil
}

func (s *Service) offerServers(b *strings.Builder) {
	if !s.Validator.Tools.Config.MCPServerSupport {
		return
	}
	servers, err := s.Validator.Servers()
	if err != nil {
		return // a graph that names one would not be valid, and the validator says why
	}
	list := slices.DeleteFunc(slices.Clone(servers.Servers), func(s mcp.Server) bool { return s.Disabled || s.Err != nil })
	if len(list) == 0 {
		return
	}
	b.WriteString("\nMCP servers, for mcp_servers, and as mcp:ID in tools of llm nodes. They are not started for a plan, so their tools are not listed:\n")
	for _, s := range list {
		fmt.Fprintf(b, "- %s\n", s.ID)
	}
}

// Tools returns the tools of the planner. The service is needed when they are called.
func Tools(service func() *Service) []tool.Tool {
	const large = 1 << 20 // bytes; what is cut cannot be read
	of := func(name, description, parameters string, call func(ctx context.Context, args arguments) (any, error)) tool.Tool {
		return &plannerTool{chat.Tool{Name: name, Description: description, Parameters: []byte(parameters)}, tool.Hints{ReadOnly: true, MaxOutput: large}, call}
	}
	return []tool.Tool{
		of("graph__offer", "Describe the format of graph agents, and what there is for them here: models with prices, agents, tools and MCP servers.",
			`{"type":"object","properties":{"agent":{"type":"string","description":"Name of a graph agent that is to be changed; its files are described too."}}}`,
			func(ctx context.Context, args arguments) (any, error) { return service().offer(ctx, args) }),
		of("graph__check", "Check a graph agent that was written in fenced blocks: a graph.yaml, and its scripts. Nothing is written or run.",
			`{"type":"object","properties":{"reply":{"type":"string","description":"The blocks, each with the name of its file in its first line."},`+
				`"agent":{"type":"string","description":"Name of the graph agent that is changed, if there is one."},`+
				`"final":{"type":"boolean","description":"Fail if the graph cannot be used."}},"required":["reply"]}`,
			func(ctx context.Context, args arguments) (any, error) { return service().check(ctx, args) }),
	}
}
