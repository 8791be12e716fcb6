package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/catalog"
	"loki/internal/display"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/logging"
	"loki/internal/rag/source"
	"loki/internal/redact"
	"loki/internal/session"
	"loki/internal/text"
	"loki/internal/value"
)

// printLines prints a list, one item a line.
func printLines(w io.Writer, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = display.Line(line)
	}
	_, err := fmt.Fprintln(w, strings.Join(shown, "\n"))
	return err
}

// escape returns a JSON text in which characters that a terminal would obey are written as escapes,
// so that programs read the same value.
func escape(text []byte) []byte {
	hidden := func(r rune) bool {
		return r >= 0x7f && r <= 0x9f || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029
	}
	if bytes.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// printTable prints a table, see [display.Table].
func (c *command) printTable(rows [][]string, right ...int) error {
	_, err := io.WriteString(c.Out, display.Table(rows, right...))
	return err
}

// printJSON prints v as indented JSON.
func printJSON(w io.Writer, v any) error {
	doc, err := value.MarshalLines(v)
	if err == nil {
		_, err = w.Write(escape(doc))
	}
	return err
}

func (c *command) listModels(context.Context) error {
	if c.opts.output == outputText {
		return printLines(c.Out, c.app.Catalog.IDs(catalog.Chat))
	}
	models := []catalog.Info{}
	for m := range c.app.Catalog.Models(catalog.Chat) {
		models = append(models, m.Info())
	}
	return printJSON(c.Out, models)
}

// listAgents lists the agents: their names for programs, with what they are for at a terminal.
func (c *command) listAgents(context.Context) error {
	if c.opts.output == outputText && !c.OutTerminal {
		names, err := c.app.Agents.Names()
		if err != nil {
			return err
		}
		return printLines(c.Out, names)
	}
	list, err := c.app.Agents.List()
	if err != nil {
		return err
	}
	if c.opts.output != outputText {
		return printJSON(c.Out, list)
	}
	rows := make([][]string, len(list))
	width := 0
	for i, e := range list {
		rows[i] = []string{e.Name, e.Description}
		if e.Error != "" {
			rows[i][1] = "cannot be used: " + e.Error
		}
		width = max(width, ansi.StringWidth(display.Line(e.Name)))
	}
	for _, r := range rows {
		r[1] = text.CutColumns(display.Line(r[1]), max(helpWidth(c.Out)-width-2, 20))
	}
	return c.printTable(rows)
}

func (c *command) listRoles(context.Context) error {
	names, err := c.app.Roles().Names()
	if err != nil {
		return err
	}
	return c.printNames(names)
}

func (c *command) listSessions(ctx context.Context) error {
	if c.opts.output == outputText && !c.OutTerminal {
		names, err := c.sessionNames(ctx)
		if err != nil {
			return err
		}
		return printLines(c.Out, names)
	}
	scope, err := c.sessionScope()
	if err != nil {
		return err
	}
	list, err := c.app.Conversations().Summaries(ctx, scope)
	if err != nil {
		return err
	}
	if c.opts.output != outputText {
		return printJSON(c.Out, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(c.Err, "there are no sessions yet: loki -s NAME begins one")
		return nil
	}
	rows := [][]string{{"NAME", "USED", "TURNS", "BEGINS WITH"}}
	for _, s := range list {
		rows = append(rows, []string{s.Name, display.Age(time.Since(s.Modified)), strconv.Itoa(s.Turns), firstWords(cmp.Or(s.Error, s.First))})
	}
	return c.printTable(rows, 2)
}

// firstWords returns the beginning of s, on one line.
func firstWords(s string) string {
	return text.CutRunes(strings.Join(strings.Fields(text.Printable(s)), " "), 50)
}

// sessionScope returns whose sessions are meant: those of the agent of -a, or of none.
func (c *command) sessionScope() (session.Scope, error) {
	if c.opts.agent == "" {
		return "", nil
	}
	ref, err := c.app.Agents.Find(c.opts.agent)
	return c.app.SessionScope(ref), err
}

// sessionNames returns the names of the sessions, or the ids of those without one.
func (c *command) sessionNames(ctx context.Context) ([]string, error) {
	scope, err := c.sessionScope()
	if err != nil {
		return nil, err
	}
	store, err := c.app.Sessions()
	if err != nil {
		return nil, err
	}
	list, err := store.List(ctx, scope)
	names := make([]string, 0, len(list))
	for _, m := range list {
		names = append(names, cmp.Or(string(m.Alias), string(m.ID)))
	}
	return names, err
}

func (c *command) printNames(names []string) error {
	if c.opts.output == outputText {
		return printLines(c.Out, names)
	}
	return printJSON(c.Out, append([]string{}, names...))
}

// syncModels fetches the list of known models.
func (c *command) syncModels(ctx context.Context) error {
	synced, err := c.app.SyncModels(ctx)
	c.warnProblems(synced.Warnings)
	if err != nil {
		return err
	}
	return c.say("%d models of %d providers are known now: %s", synced.Models, synced.Providers, c.app.Paths.ModelsOverrideFile)
}

// tailLogs follows the log file.
func (c *command) tailLogs(ctx context.Context) error {
	file := c.app.Paths.LogFile
	err := logging.Follow(ctx, file, c.Out, logging.FollowOptions{Color: c.outColor() && !c.opts.plainLogs})
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "there is no log file at %s yet", file).WithHint("it is made when there is something to log; LOKI_LOG_LEVEL=debug logs more")
	}
	return err
}

// info prints the agent, session, role or knowledge base that is named, or else the settings and places
// in use, one a line, in two columns.
func (c *command) info(ctx context.Context) error {
	switch {
	case c.opts.agent != "":
		return c.agentInfo(ctx)
	case c.opts.knowledge.base != "":
		return c.baseInfo(ctx)
	case c.opts.hasSession:
		return c.sessionInfo(ctx)
	case c.opts.role != "" || c.opts.prompt != "":
		return c.roleInfo()
	}
	rows := c.settings()
	if c.opts.output != outputText {
		var members []value.Member
		for _, r := range rows {
			members = append(members, value.Member{Name: r.name, Value: r.value})
		}
		return printJSON(c.Out, value.ObjectOf(members...).Value())
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%-30s%s\n", r.name, infoText(r.value))
	}
	_, err := io.WriteString(c.Out, b.String())
	return err
}

// infoText shows a float without its point where it is whole.
func infoText(v value.Value) string {
	if v.Kind() == value.Float {
		f, _ := v.AsFloat()
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return v.Text()
}

type setting struct {
	name  string
	value value.Value
}

// settings lists what is in force, in an order that scripts rely on.
func (c *command) settings() []setting {
	cfg, p := c.app.Config, c.app.Paths
	model := cmp.Or(c.opts.model, cfg.Model)
	threshold := optional(cfg.CompressionThreshold)
	maxOutput := value.Value{}
	if m, err := c.app.Catalog.Resolve(model, catalog.Chat); err == nil {
		model = m.ID()
		if cfg.CompressionThreshold == nil {
			threshold = value.Of(strconv.Itoa(session.Threshold(m.MaxInputTokens)) + " (current model)")
		}
		if m.RequireMaxTokens && m.MaxOutputTokens > 0 {
			maxOutput = value.Of(strconv.Itoa(m.MaxOutputTokens) + " (current model)")
		}
	}
	return []setting{
		{"model", orNull(model)},
		{"temperature", optional(cfg.Temperature)},
		{"top_p", optional(cfg.TopP)},
		{"enabled_tools", optional(cfg.EnabledTools)},
		{"enabled_mcp_servers", optional(cfg.EnabledMCPServers)},
		{"max_output_tokens", maxOutput},
		{"save_session", optional(cfg.SaveSession)},
		{"chat_durability", value.Of(string(cmp.Or(cfg.ChatDurability, graph.DurabilityOff)))},
		{"compression_threshold", threshold},
		{"rag_reranker_model", optional(cfg.RAGRerankerModel)},
		{"rag_top_k", value.Of(cfg.RAGTopK)},
		{"rag_embedding_model", optional(cfg.RAGEmbeddingModel)},
		{"rag_chunk_size", optional(cfg.RAGChunkSize)},
		{"rag_chunk_overlap", optional(cfg.RAGChunkOverlap)},
		{"rag_chunker", optional(cfg.RAGChunker)},
		{"rag_quantization", optional(cfg.RAGQuantization)},
		{"rag_threshold", optional(cfg.RAGThreshold)},
		{"rag_neighbors", value.Of(cfg.RAGNeighbors)},
		{"rag_diversity", optional(cfg.RAGDiversity)},
		{"rag_max_pages", value.Of(cmp.Or(cfg.RAGMaxPages, source.DefaultMaxPages))},
		{"rag_store", orNull(redact.MaskAddress(c.app.Hide(*cmp.Or(cfg.RAGStore, new("")))))},
		{"dry_run", value.Of(c.app.DryRun())},
		{"function_calling_support", value.Of(cfg.FunctionCallingSupport)},
		{"mcp_server_support", value.Of(cfg.MCPServerSupport)},
		{"auto_continue", value.Of(cfg.AutoContinue)},
		{"max_auto_continues", value.Of(cfg.MaxAutoContinues)},
		{"stream", value.Of(cfg.Stream && !c.opts.noStream)},
		{"save", value.Of(cfg.Save)},
		{"keybindings", value.Of(string(cfg.Keybindings))},
		{"repl_history", value.Of(cfg.REPLHistory)},
		{"notify", value.Of(cfg.Notify)},
		{"wrap", value.Of(cfg.Wrap.String())},
		{"wrap_code", value.Of(cfg.WrapCode)},
		{"highlight", value.Of(cfg.Highlight)},
		{"theme", optional(cfg.Theme)},
		{"config_dir", orNull(p.ConfigDir)},
		{"config_file", orNull(p.ConfigFile)},
		{"env_file", orNull(p.EnvFile)},
		{"agents_dir", orNull(p.AgentsDir)},
		{"roles_dir", orNull(p.RolesDir)},
		{"sessions_dir", orNull(p.SessionsDir)},
		{"rags_dir", orNull(p.RAGsDir)},
		{"macros_dir", orNull(p.MacrosDir)},
		{"functions_dir", orNull(p.FunctionsDir)},
		{"messages_file", orNull(p.MessagesFile)},
		{"vault_password_file", orNull(cmp.Or(*cmp.Or(cfg.VaultPasswordFile, new("")), p.VaultPasswordFile))},
		{"state_dir", orNull(p.StateDir)},
		{"log_path", orNull(p.LogFile)},
	}
}

// orNull returns s, or null if it is empty.
func orNull(s string) value.Value {
	if s == "" {
		return value.Value{}
	}
	return value.Of(s)
}

func optional[T bool | int | float64 | string](p *T) value.Value {
	if p == nil {
		return value.Value{}
	}
	return value.Of(*p)
}
