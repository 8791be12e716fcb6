package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loki/internal/agent/team/todo"
	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/workflow/graph"
)

// values are the settings of the configuration as a conversation has them. It may set others for
// itself.
type values struct {
	settings    chat.Settings  // below those of a role, an agent and a session
	todo        todo.Settings  // likewise
	limits      map[string]int // tokens of a reply, by the model's id; not changed, but replaced
	noStream    bool
	save        bool // turns outside of sessions are kept
	promptLog   bool // they are kept as sessions without a name
	saveSession *bool
	threshold   *int // see [Compression]
	dryRun      bool
	highlight   bool
	switches    Switches
}

// Switches are settings of how tools and knowledge bases are used that a conversation may have for itself.
type Switches struct {
	NoTools   bool `json:"no_tools,omitempty"`   // models are offered no tools
	NoServers bool `json:"no_servers,omitempty"` // models are offered no MCP servers

	// Of the knowledge base that the user named, over its own settings.
	Reranker *string `json:"reranker,omitempty"` // id of the model, "" for none; nil leaves it to the knowledge base
	TopK     int     `json:"top_k,omitempty"`    // passages; 0 leaves it to the knowledge base
}

// setting is a key of [Conversation.Set].
type setting struct {
	key  string
	null bool   // null unsets it
	want string // what a value is, for messages
	get  func(c *Conversation) string
	set  func(ctx context.Context, c *Conversation, value string) error // value is "" for null
}

// null is the value that unsets a setting.
const null = "null"

// SettingKeys returns the keys of [Conversation.Set], ascending.
func (c *Conversation) SettingKeys() []string {
	var keys []string
	for _, s := range settings() {
		keys = append(keys, s.key)
	}
	slices.Sort(keys)
	return keys
}

// Setting returns the value that is in force for a key of [Conversation.Set]: "null" if there is none.
func (c *Conversation) Setting(key string) string {
	for _, s := range settings() {
		if s.key == key {
			return s.get(c)
		}
	}
	return null
}

// SettingWants returns, for people, what the value of a key of [Conversation.Set] is; "" if there is no such key.
func (c *Conversation) SettingWants(key string) string {
	for _, s := range settings() {
		if s.key == key {
			return s.want
		}
	}
	return ""
}

// Set changes a setting for the conversation: that of the session, the agent or the role in force, where
// these have it, or else what the configuration says, which stays as it is for others. The
// value null unsets it where that is possible. An unknown key and a wrong value are errors with
// code Usage.
func (c *Conversation) Set(ctx context.Context, key, value string) error {
	value = strings.TrimSpace(value)
	if key == "model" {
		return c.SetModel(ctx, value)
	}
	all := settings()
	i := slices.IndexFunc(all, func(s setting) bool { return s.key == key })
	if i < 0 {
		err := fault.New(fault.Usage, "there is no setting %q", key)
		if near := yamldoc.Nearest(key, c.SettingKeys()); near != "" {
			return err.WithHint("did you mean %s?", near)
		}
		return err.WithHint("the settings: %s", strings.Join(c.SettingKeys(), ", "))
	}
	if c.withGraph() && slices.Contains(ofNodes[:], key) {
		return fault.New(fault.Usage, "agent %s is a graph: its nodes set %s", c.agent.Name, key).WithHint("write it into %s, or leave the agent first: .exit agent", graph.FileName)
	}
	s := all[i]
	wrong := fault.New(fault.Usage, "%s: want %s, found %q", key, s.want, value).WithHint(".set %s VALUE", key)
	switch {
	case value == "", strings.ContainsAny(value, " \t\n") && key != "continuation_prompt":
		return wrong
	case value == null && !s.null:
		return wrong
	case value == null:
		value = ""
	}
	c.fold()
	err := s.set(ctx, c, value)
	if errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
		return wrong
	}
	return err
}

// ofNodes are the settings that have no effect on a graph, whose nodes set them.
var ofNodes = [...]string{"temperature", "top_p", "max_output_tokens", "enabled_tools", "enabled_mcp_servers"}

// SetModel switches the conversation to another chat model.
func (c *Conversation) SetModel(ctx context.Context, id string) error {
	rc := engine.RequestContext{Model: id, Events: c.options.Events}
	m, err := c.engine().Model(c.context(ctx), &rc, "")
	if err != nil {
		return err
	}
	c.fold()
	c.tune(func(s *chat.Settings) { s.Model = m.ID })
	return nil
}

// fold makes what was asked for with the command a setting like others.
func (c *Conversation) fold() {
	asked := c.options.Settings
	if asked == (chat.Settings{}) {
		return
	}
	c.options.Settings = chat.Settings{}
	c.tune(func(s *chat.Settings) { *s = asked.Over(*s) })
	if c.enteredSession() == nil && (c.agent != nil || c.role != nil) {
		c.values.settings = asked.Over(c.values.settings)
	}
}

// tune changes settings of what is in force: of the session, else the agent, else the role, else of
// the configuration.
func (c *Conversation) tune(do func(*chat.Settings)) {
	switch {
	case c.enteredSession() != nil:
		c.session.Set(func(s *session.Settings) { do(&s.Settings) })
	case c.agent != nil:
		do(&c.tuned)
	case c.role != nil:
		r := *c.role
		do(&r.Settings)
		c.role = &r
	default:
		do(&c.values.settings)
	}
}

// settings returns the settings that can be set.
func settings() []setting {
	return slices.Concat(samplingSettings(), toolSettings(), sessionSettings(), todoSettings(), knowledgeSettings(), switchSettings())
}

// samplingSettings are those of a model.
func samplingSettings() []setting {
	return []setting{
		{"temperature", true, chat.NumberRange("temperature") + ", or null", func(c *Conversation) string { return show(c.Settings().Temperature) }, tuneFloat("temperature", func(s *chat.Settings) **float64 { return &s.Temperature })},
		{"top_p", true, chat.NumberRange("top_p") + ", or null", func(c *Conversation) string { return show(c.Settings().TopP) }, tuneFloat("top_p", func(s *chat.Settings) **float64 { return &s.TopP })},
		{"max_output_tokens", true, "a number of tokens, or null", func(c *Conversation) string {
			if n := c.outputLimit(c.Settings().Model); n > 0 {
				return strconv.Itoa(n)
			}
			return null
		}, setOutputLimit},
	}
}

// tuneFloat returns what sets the number of the settings of a chat that is called key.
func tuneFloat(key string, field func(*chat.Settings) **float64) func(context.Context, *Conversation, string) error {
	return func(_ context.Context, c *Conversation, value string) error {
		p, err := parse(value, func(text string) (float64, error) {
			x, err := strconv.ParseFloat(text, 64)
			if err == nil && chat.CheckNumber(key, x) != nil {
				err = strconv.ErrRange
			}
			return x, err
		})
		if err == nil {
			c.tune(func(s *chat.Settings) { *field(s) = p })
		}
		return err
	}
}

// outputLimit returns how many tokens a reply of a model may have, 0 for what the model does by itself.
func (c *Conversation) outputLimit(model string) int {
	return cmp.Or(c.values.limits[model], c.options.MaxOutputTokens)
}

// setOutputLimit sets how long the replies of the model in force may be.
func setOutputLimit(_ context.Context, c *Conversation, value string) error {
	p, err := parse(value, parseUint)
	if err != nil {
		return err
	}
	limits := make(map[string]int, len(c.values.limits)+1)
	for id, n := range c.values.limits {
		limits[id] = n
	}
	if delete(limits, c.Settings().Model); p != nil && *p > 0 {
		limits[c.Settings().Model] = *p
	}
	c.values.limits = limits
	return nil
}

// toolSettings are those of tools.
func toolSettings() []setting {
	return []setting{
		{"enabled_tools", true, "tool names with commas, all, or null", func(c *Conversation) string { return show(c.Settings().EnabledTools) }, func(_ context.Context, c *Conversation, value string) error {
			c.tune(func(s *chat.Settings) { s.EnabledTools = text(value) })
			return nil
		}},
		{"enabled_mcp_servers", true, "server names with commas, all, or null", func(c *Conversation) string { return show(c.Settings().EnabledMCPServers) }, func(ctx context.Context, c *Conversation, value string) error {
			if err := c.checkServers(value); err != nil {
				return err
			}
			return c.change(ctx, func() { c.tune(func(s *chat.Settings) { s.EnabledMCPServers = text(value) }) })
		}},
		{"function_calling_support", false, "true or false", func(c *Conversation) string { return strconv.FormatBool(!c.values.switches.NoTools) }, setSwitch(func(v *values, on bool) { v.switches.NoTools = !on })},
		{"mcp_server_support", false, "true or false", func(c *Conversation) string { return strconv.FormatBool(!c.values.switches.NoServers) }, func(ctx context.Context, c *Conversation, value string) error {
			on, err := parseBool(value)
			if err != nil {
				return err
			}
			return c.change(ctx, func() { c.values.switches.NoServers = !on })
		}},
	}
}

// checkServers returns the error for a name among servers, with commas between them, that is not one.
func (c *Conversation) checkServers(names string) error {
	if names == "" || c.service.ServerNames == nil {
		return nil
	}
	known, err := c.service.ServerNames()
	if err != nil {
		return err
	}
	if len(known) == 0 {
		return fault.New(fault.Usage, "there are no MCP servers").WithHint("add one to mcp.json: .edit mcp-config")
	}
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name != "all" && !slices.Contains(known, name) {
			return fault.New(fault.Usage, "there is no MCP server %q", name).WithHint("there are: %s", strings.Join(known, ", "))
		}
	}
	return nil
}

// sessionSettings are those of sessions, which without one are those of sessions to come.
func sessionSettings() []setting {
	return []setting{
		{"save_session", true, "true, false or null", func(c *Conversation) string {
			if c.enteredSession() != nil {
				return show(c.session.Settings().SaveSession)
			}
			return show(c.values.saveSession)
		}, func(_ context.Context, c *Conversation, value string) error {
			p, err := parse(value, parseBool)
			switch {
			case err != nil:
			case c.enteredSession() != nil:
				c.session.Set(func(s *session.Settings) { s.SaveSession = p })
			default:
				c.values.saveSession = p
			}
			return err
		}},
		{"compression_threshold", true, "a number of tokens, 0 for never, or null", func(c *Conversation) string {
			if c.enteredSession() != nil && c.session.Settings().CompressionThreshold != nil {
				return show(c.session.Settings().CompressionThreshold)
			}
			if c.agent != nil && c.agent.InForce.CompressionThreshold != nil {
				return show(c.agent.InForce.CompressionThreshold)
			}
			return show(c.values.threshold)
		}, func(_ context.Context, c *Conversation, value string) error {
			p, err := parse(value, parseUint)
			switch {
			case err != nil:
			case c.enteredSession() != nil:
				c.session.Set(func(s *session.Settings) { s.CompressionThreshold = p })
			default:
				c.values.threshold = p
				c.dropThreshold()
			}
			return err
		}},
	}
}

// dropThreshold takes back the threshold that the agent in force has, also in a session without a name.
func (c *Conversation) dropThreshold() {
	if c.agent == nil || c.agent.InForce.CompressionThreshold == nil {
		return
	}
	a, d := *c.agent, *c.agent.InForce
	d.CompressionThreshold = nil
	a.InForce = &d
	if c.agent = &a; c.session != nil {
		c.session.Set(func(s *session.Settings) { s.CompressionThreshold = nil })
	}
}

// todoSettings say whether the model continues by itself.
func todoSettings() []setting {
	return []setting{
		{"auto_continue", false, "true or false", func(c *Conversation) string { return strconv.FormatBool(c.todo().Enabled) }, func(_ context.Context, c *Conversation, value string) error {
			on, err := parseBool(value)
			if err == nil && on && c.values.switches.NoTools {
				return fault.New(fault.Usage, "auto_continue works with the tools of the todo list, but function_calling_support is off").
					WithHint("turn it on first: .set function_calling_support true")
			}
			c.continues = c.continues && (on || err != nil)
			return c.setTodo(err, func(s *chat.Settings) { s.AutoContinue = &on }, func(t *todo.Settings) { t.Enabled = on })
		}},
		{"max_auto_continues", false, "a number", func(c *Conversation) string { return strconv.Itoa(c.todo().Max) }, func(_ context.Context, c *Conversation, value string) error {
			n, err := parseUint(value)
			return c.setTodo(err, func(s *chat.Settings) { s.MaxAutoContinues = &n }, func(t *todo.Settings) { t.Max = n })
		}},
		{"inject_todo_instructions", false, "true or false", func(c *Conversation) string { return strconv.FormatBool(c.todo().Inject) }, func(_ context.Context, c *Conversation, value string) error {
			on, err := parseBool(value)
			return c.setTodo(err, func(s *chat.Settings) { s.InjectTodoInstructions = &on }, func(t *todo.Settings) { t.Inject = on })
		}},
		{"continuation_prompt", true, "a text, or null", func(c *Conversation) string { return show(text(c.todo().Prompt)) }, func(_ context.Context, c *Conversation, value string) error {
			return c.setTodo(nil, func(s *chat.Settings) { s.ContinuationPrompt = text(value) }, func(t *todo.Settings) { t.Prompt = value })
		}},
	}
}

// setTodo changes a setting of the session, the agent or the role in force or, without one, of the configuration, unless there
// is an error.
func (c *Conversation) setTodo(err error, own func(*chat.Settings), below func(*todo.Settings)) error {
	switch {
	case err != nil:
	case c.enteredSession() != nil, c.agent != nil, c.role != nil:
		c.tune(own)
	default:
		below(&c.values.todo)
	}
	return err
}

// knowledgeSettings are those of the knowledge base that the user named.
func knowledgeSettings() []setting {
	return []setting{
		{"rag_reranker_model", true, "the id of a reranker, or null", func(c *Conversation) string { return show(c.values.switches.Reranker) }, func(ctx context.Context, c *Conversation, value string) error {
			if value != "" && c.service.CheckReranker != nil {
				if err := c.service.CheckReranker(ctx, value); err != nil {
					return err
				}
			}
			c.values.switches.Reranker = &value
			return nil
		}},
		{"rag_top_k", false, "a number of passages", func(c *Conversation) string { return strconv.Itoa(c.topK()) }, func(_ context.Context, c *Conversation, value string) error {
			n, err := parseUint(value)
			if err == nil && n == 0 {
				err = strconv.ErrRange
			}
			if err == nil {
				c.values.switches.TopK = n
			}
			return err
		}},
	}
}

// topK returns how many passages are found for a question, 0 if that is not known.
func (c *Conversation) topK() int {
	if n := c.values.switches.TopK; n > 0 || c.service.TopK == nil {
		return n
	}
	return c.service.TopK(c.Knowledge())
}

// switchSettings are the ones that are on or off.
func switchSettings() []setting {
	return []setting{
		{"dry_run", false, "true or false", func(c *Conversation) string { return strconv.FormatBool(c.values.dryRun) }, setSwitch(func(v *values, on bool) { v.dryRun = on })},
		{"stream", false, "true or false", func(c *Conversation) string { return strconv.FormatBool(!c.values.noStream) }, setSwitch(func(v *values, on bool) { v.noStream = !on })},
		{"save", false, "true or false", func(c *Conversation) string { return strconv.FormatBool(c.values.save) }, setSwitch(func(v *values, on bool) { v.save = on })},
		{"prompt_log", false, "true or false", func(c *Conversation) string { return strconv.FormatBool(c.values.promptLog) }, setSwitch(func(v *values, on bool) { v.promptLog = on })},
		{"highlight", false, "true or false", func(c *Conversation) string { return strconv.FormatBool(c.values.highlight) }, setSwitch(func(v *values, on bool) { v.highlight = on })},
	}
}

// setSwitch returns what turns a setting on and off.
func setSwitch(turn func(v *values, on bool)) func(context.Context, *Conversation, string) error {
	return func(_ context.Context, c *Conversation, value string) error {
		on, err := parseBool(value)
		if err == nil {
			turn(&c.values, on)
		}
		return err
	}
}

// parse returns what a value means, nil for an empty one.
func parse[T any](value string, of func(string) (T, error)) (*T, error) {
	if value == "" {
		return nil, nil
	}
	v, err := of(value)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

func parseBool(value string) (bool, error) {
	switch value {
	case "true", "on":
		return true, nil
	case "false", "off":
		return false, nil
	}
	return false, strconv.ErrSyntax
}

func parseUint(value string) (int, error) {
	n, err := strconv.ParseUint(value, 10, 31)
	return int(n), err
}

// text returns a value as a setting that may be unset, nil for an empty one.
func text(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}

// show returns a value that may be unset as [Conversation.Set] takes it.
func show[T any](p *T) string {
	if p == nil {
		return null
	}
	return fmt.Sprint(*p)
}
