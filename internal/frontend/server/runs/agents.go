package runs

import (
	"context"
	"net/http"

	"loki/internal/agent"
	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
)

// agents adds the endpoints about one agent.
func (e *endpoints) agents(a *rest.API) {
	read := func(path, summary string) rest.Operation {
		return rest.Operation{Method: http.MethodGet, Path: path, Summary: summary, Tag: "Agents", Scope: auth.ReadAgents}
	}
	rest.Register(a, read("/v1/agents/{name}", "An agent, with its variables and starters"), rest.About(e.agent, e.showAgent))
	graph := read("/v1/agents/{name}/graph", "The graph of an agent")
	graph.Answer = api.Graph{}
	rest.Register(a, graph, rest.About(e.agent, e.agentGraph))
}

// agentRequest is a request about one agent.
type agentRequest struct {
	Name string `path:"name" maxLength:"256" doc:"of the agent"`
}

// Of returns the name.
func (a *agentRequest) Of() string { return a.Name }

// agent returns an installed agent. An agent at a path does not belong to the server.
func (e *endpoints) agent(_ context.Context, name string) (agent.Agent, error) {
	of, err := e.App.Background.InstalledAgent(name)
	if fault.CodeOf(err) == fault.NotFound {
		err = rest.NotFound("agent", name).WithHint("GET /v1/agents lists the agents")
	}
	return of, err
}

func (e *endpoints) showAgent(_ context.Context, _ *agentRequest, of agent.Agent) (*api.AgentDetail, error) {
	d := &api.AgentDetail{
		Name: of.Name, Kind: "plain", Version: of.InForce.Version, Description: of.InForce.Description, Model: of.InForce.Model,
		Variables: []api.AgentVariable{}, Starters: append([]string{}, of.InForce.Starters...),
	}
	if of.Graph != nil {
		d.Kind, d.Asks = "graph", of.Graph.Asks()
	}
	for _, v := range of.InForce.Variables {
		d.Variables = append(d.Variables, api.AgentVariable{Name: v.Name, Description: v.Description, Default: v.Default})
	}
	return d, nil
}

// agentGraphRequest asks for the graph of an agent.
type agentGraphRequest struct {
	agentRequest
	graphFormat
}

func (e *endpoints) agentGraph(_ context.Context, in *agentGraphRequest, of agent.Agent) (*rest.Reply, error) {
	if of.Graph == nil {
		return nil, rest.Conflict("agent %s is defined by config.yaml and has no graph", of.Name)
	}
	return drawing(of.Graph, in.Format, course{}), nil
}
