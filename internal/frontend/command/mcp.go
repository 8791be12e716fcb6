package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation"
	"loki/internal/knowledge/input"
	"loki/internal/llm/chat"
	"loki/internal/tool/mcp"
)

func mcpCommands() []Command {
	return []Command{
		{
			Name: ".mcp", Args: "[SERVER]", Help: "Show the MCP servers in use, or what one offers", Group: Tools, Offered: always,
			do: (*Console).showServers, complete: first(completeServer),
		},
		{Name: ".info mcp", Help: "Count the connections to MCP servers", Group: Tools, Offered: always, do: (*Console).infoServers},
		{Name: ".reload mcp", Help: "Read mcp.json again", Group: Tools, Offered: always, do: (*Console).reloadServers},
		{
			Name: ".mcp prompt", Args: "SERVER/NAME [KEY=VALUE...]", Help: "Ask what a prompt of an MCP server says", Group: Tools, Offered: always,
			do: (*Console).serverPrompt, complete: completePrompt,
		},
		{
			Name: ".mcp resource", Args: "SERVER URI [-- TEXT]", Help: "Send or attach a resource of an MCP server", Group: Tools, Offered: always,
			do: (*Console).serverResource, complete: completeResource,
		},
	}
}

// infoServers is for .info mcp.
func (c *Console) infoServers(context.Context, string) error {
	p := c.App.MCP.Pool()
	var b strings.Builder
	for _, row := range []struct {
		name  string
		count int64
	}{
		{"started", p.Started},
		{"active_hits", p.ActiveHits},
		{"idle_hits", p.IdleHits},
		{"misses", p.Misses},
		{"idle_evictions", p.IdleEvictions},
		{"cap_evictions", p.CapEvictions},
		{"health_ok", p.HealthOK},
		{"health_failed", p.HealthFailed},
		{"idle", int64(p.Idle)},
		{"in_use", int64(p.InUse)},
	} {
		fmt.Fprintf(&b, "%-15s %d\n", row.name, row.count)
	}
	fmt.Fprintf(&b, "%-15s %.2f\n", "hit_rate", p.HitRate())
	return c.printUnless(nil, b.String())
}

// reloadServers is for .reload mcp. Servers in use are replaced when their users are done.
func (c *Console) reloadServers(ctx context.Context, _ string) error {
	names, drain, err := c.App.MCP.Reload()
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, reloadGrace)
	defer cancel()
	return c.printUnless(drain(limit), text.Count(len(names), "server")+" in mcp.json")
}

// reloadGrace is how long servers that are in use may stay after mcp.json was read again.
const reloadGrace = 3 * time.Second

// servers returns the MCP servers in force. The caller closes them.
func (c *Console) servers(ctx context.Context) (*mcp.Scope, error) {
	scope, err := c.App.Servers(ctx, c.conv.WantedTools())
	if err == nil && scope == nil {
		err = fault.New(fault.Usage, "no MCP server is in use").WithHint(".set enabled_mcp_servers NAME")
	}
	return scope, err
}

// server returns the MCP servers in force; id must be one of them.
func (c *Console) server(ctx context.Context, id string) (*mcp.Scope, error) {
	scope, err := c.servers(ctx)
	if err != nil {
		return nil, err
	}
	if ids := scope.Servers(); !slices.Contains(ids, id) {
		scope.Close()
		return nil, fault.New(fault.NotFound, "no MCP server in use is called %q", id).WithHint("in use: %s", strings.Join(ids, ", "))
	}
	return scope, nil
}

// showServers is for .mcp.
func (c *Console) showServers(ctx context.Context, id string) error {
	if id != "" {
		return c.showServer(ctx, id)
	}
	scope, err := c.servers(ctx)
	if err != nil {
		return err
	}
	defer scope.Close()
	defer c.Busy("Looking at MCP servers")()
	ids := scope.Servers()
	width := 0
	for _, id := range ids {
		width = max(width, len(id))
	}
	for _, id := range ids {
		about := ""
		switch o, err := offerOf(ctx, scope, id); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			about = "does not work: " + err.Error()
		default:
			about = fmt.Sprintf("%s, %s, %s", text.Count(len(o.tools), "tool"), text.Count(len(o.prompts), "prompt"), text.Count(len(o.resources), "resource"))
		}
		c.Out.Print(fmt.Sprintf("%-*s  %s", width, id, about))
	}
	return nil
}

// offer is what a server offers.
type offer struct {
	tools     []mcp.Tool
	prompts   []mcp.Prompt
	resources []mcp.Resource
}

func offerOf(ctx context.Context, scope *mcp.Scope, id string) (o offer, err error) {
	if o.tools, err = scope.List(ctx, id); err != nil {
		return o, err
	}
	if o.prompts, err = scope.Prompts(ctx, id); err != nil {
		return o, err
	}
	o.resources, err = scope.Resources(ctx, id)
	return o, err
}

// showServer shows what a server offers.
func (c *Console) showServer(ctx context.Context, id string) error {
	scope, err := c.server(ctx, id)
	if err != nil {
		return err
	}
	defer scope.Close()
	o, err := offerOf(ctx, scope, id)
	if err != nil {
		return err
	}
	return c.printUnless(nil,
		offerText("Tools", o.tools, func(t mcp.Tool) (name, about string) { return t.Name, t.Description })+
			offerText("Prompts", o.prompts, func(p mcp.Prompt) (name, about string) { return usageOf(p), p.Description })+
			offerText("Resources", o.resources, func(r mcp.Resource) (name, about string) { return r.URI + r.Template, r.Name }))
}

// offerText returns a part of what a server offers with its title, "" if there is none.
func offerText[T any](title string, list []T, line func(T) (name, about string)) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintln(&b, title)
	for _, item := range list {
		name, about := line(item)
		fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(text.OneLine(name, 80)+"  "+text.OneLine(about, 100)))
	}
	return b.String()
}

// usageOf returns a prompt with its arguments, as that of a macro.
func usageOf(p mcp.Prompt) string {
	usage := p.Name
	for _, a := range p.Arguments {
		if a.Required {
			usage += " <" + a.Name + ">"
		} else {
			usage += " [" + a.Name + "]"
		}
	}
	return usage
}

// serverPrompt is for .mcp prompt.
func (c *Console) serverPrompt(ctx context.Context, args string) error {
	list, rest := words(args)
	if rest != "" {
		list = append(list, rest)
	}
	if len(list) == 0 {
		list = []string{""}
	}
	id, name, ok := strings.Cut(list[0], "/")
	if !ok {
		return fault.New(fault.Usage, "%q does not name a prompt of a server", list[0]).WithHint(".mcp prompt SERVER/NAME; all of a server: .mcp SERVER")
	}
	given, err := keyValues(list[1:], ".mcp prompt SERVER/NAME [KEY=VALUE...]")
	if err != nil {
		return err
	}
	scope, err := c.server(ctx, id)
	if err != nil {
		return err
	}
	defer scope.Close()
	if err := checkPrompt(ctx, scope, id, name, given); err != nil {
		return err
	}
	messages, err := scope.Prompt(ctx, id, name, given)
	if err != nil {
		return err
	}
	attached, prompt := asQuestion(messages)
	c.Out.Note(">> " + strings.ReplaceAll(strings.TrimRight(prompt, "\n"), "\n", "\n.. "))
	asked := conversation.NewAsked(attached, prompt, nil)
	asked.Foreign = append(asked.Foreign, "a prompt of MCP server "+id)
	if asked.Blank() {
		return fault.New(fault.Usage, "prompt %s of MCP server %s is empty", name, id)
	}
	_, err = c.conv.Tell(ctx, conversation.Question{Asked: asked})
	return err
}

// checkPrompt reports a prompt that the server does not have, and arguments that do not go with it.
func checkPrompt(ctx context.Context, scope *mcp.Scope, id, name string, given map[string]string) error {
	prompts, err := scope.Prompts(ctx, id)
	if err != nil {
		return err
	}
	names := make([]string, len(prompts))
	for i, p := range prompts {
		names[i] = p.Name
	}
	i := slices.Index(names, name)
	if i < 0 {
		err := fault.New(fault.NotFound, "MCP server %s has no prompt %q", id, name)
		if near := yamldoc.Nearest(name, names); near != "" {
			return err.WithHint("did you mean %s/%s?", id, near)
		}
		return err.WithHint("its prompts: %s", strings.Join(names, ", "))
	}
	usage := fmt.Sprintf("usage: .mcp prompt %s/%s (KEY=VALUE for each)", id, usageOf(prompts[i]))
	for _, a := range prompts[i].Arguments {
		if _, ok := given[a.Name]; a.Required && !ok {
			return fault.New(fault.Usage, "prompt %s needs a value for %s", name, a.Name).WithHint("%s", usage)
		}
	}
	for key := range given {
		if !slices.ContainsFunc(prompts[i].Arguments, func(a mcp.PromptArgument) bool { return a.Name == key }) {
			return fault.New(fault.Usage, "prompt %s has no argument %q", name, key).WithHint("%s", usage)
		}
	}
	return nil
}

// asQuestion returns the messages of a prompt as one question: its text, and its pictures. If the model's part of a
// talk is among them, each message says whose it is.
func asQuestion(messages []chat.Message) (attached input.Attachments, prompt string) {
	talk := slices.ContainsFunc(messages, func(m chat.Message) bool { return m.Role != chat.User })
	var parts []string
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Type == chat.ImagePart {
				attached.Images = append(attached.Images, input.Image{Name: fmt.Sprintf("picture %d", len(attached.Images)+1), URL: p.URL})
			}
		}
		text := m.Text()
		switch {
		case text == "":
			continue
		case talk && m.Role == chat.User:
			text = "User: " + text
		case talk:
			text = "Assistant: " + text
		}
		parts = append(parts, text)
	}
	return attached, strings.Join(parts, "\n\n")
}

// resourceKind is what the banner above a resource says.
const resourceKind input.Kind = "RESOURCE"

// serverResource is for .mcp resource.
func (c *Console) serverResource(ctx context.Context, args string) error {
	list, prompt := words(args)
	if len(list) != 2 {
		return fault.New(fault.Usage, "a server and the URI of one of its resources are needed").WithHint(".mcp resource SERVER URI [-- TEXT]")
	}
	id, uri := list[0], list[1]
	scope, err := c.server(ctx, id)
	if err != nil {
		return err
	}
	defer scope.Close()
	content, err := scope.Resource(ctx, id, uri)
	if err != nil {
		return err
	}
	c.attached = append(c.attached, input.Document{Kind: resourceKind, Name: uri, Text: content})
	if strings.TrimSpace(prompt) == "" {
		c.Out.Print(fmt.Sprintf("✓ %s is attached to the next question (%s)", uri, text.Count(len(content), "byte")))
		return nil
	}
	return c.send(ctx, prompt, nil, nil, "")
}

// listLimit is how long completion waits for what a server offers.
const listLimit = 2 * time.Second

// offeredByServers returns what list returns for the servers in force, nothing if that takes long or fails.
func (c *Console) offeredByServers(ctx context.Context, list func(ctx context.Context, scope *mcp.Scope, id string) []Candidate) (found []Candidate) {
	scope, err := c.App.Servers(ctx, c.conv.WantedTools())
	if err != nil || scope == nil {
		return nil
	}
	defer scope.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, listLimit, errors.New("completion does not wait longer"))
	defer cancel()
	missing := scope.Unconnected()
	for _, id := range scope.Servers() {
		if !slices.Contains(missing, id) { // completion starts no server
			found = append(found, list(ctx, scope, id)...)
		}
	}
	return found
}

func completeServer(c *Console, ctx context.Context, _ []string) []Candidate {
	scope, err := c.App.Servers(ctx, c.conv.WantedTools())
	if err != nil || scope == nil {
		return nil
	}
	defer scope.Close()
	return append(candidatesOf(scope.Servers()), Candidate{Value: "prompt", Space: true}, Candidate{Value: "resource", Space: true})
}

// completePrompt completes the name of a prompt, and then its arguments.
func completePrompt(c *Console, ctx context.Context, words []string) []Candidate {
	return c.offeredByServers(ctx, func(ctx context.Context, scope *mcp.Scope, id string) (found []Candidate) {
		prompts, _ := scope.Prompts(ctx, id)
		for _, p := range prompts {
			if len(words) == 1 {
				found = append(found, Candidate{Value: id + "/" + p.Name, Description: p.Description})
			} else if words[0] == id+"/"+p.Name {
				found = append(found, arguments(p, words[1:len(words)-1])...)
			}
		}
		return found
	})
}

// arguments returns the arguments of a prompt that the words do not have yet.
func arguments(p mcp.Prompt, words []string) (found []Candidate) {
	for _, a := range p.Arguments {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, a.Name+"=") }) {
			found = append(found, Candidate{Value: a.Name + "=", Description: a.Description})
		}
	}
	return found
}

// completeResource completes a server, and then the URI of one of its resources.
func completeResource(c *Console, ctx context.Context, words []string) []Candidate {
	if len(words) > 2 {
		return nil
	}
	return c.offeredByServers(ctx, func(ctx context.Context, scope *mcp.Scope, id string) (found []Candidate) {
		if len(words) == 1 {
			return []Candidate{{Value: id, Space: true}}
		}
		if words[0] != id {
			return nil
		}
		resources, _ := scope.Resources(ctx, id)
		for _, r := range resources {
			if r.URI != "" {
				found = append(found, Candidate{Value: r.URI, Description: r.Name})
			}
		}
		return found
	})
}
