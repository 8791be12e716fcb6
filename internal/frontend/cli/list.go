package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/agent"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/frontend/command/display"
	"loki/internal/llm/catalog"
	"loki/internal/llm/event/logging"
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

// print prints a result: v in machine output, otherwise the text.
func (c *command) print(v any, text string) error {
	if c.opts.output != outputText {
		return printJSON(c.Out, v)
	}
	_, err := io.WriteString(c.Out, text)
	return err
}

// printList is print for a list with its table. Users read on standard error why there is none.
func printList[T any](c *command, list []T, none, table string) error {
	if len(list) == 0 && c.opts.output == outputText {
		fmt.Fprintln(c.Err, none)
		return nil
	}
	return c.print(list, table)
}

// forUser returns where a text for the user goes beside the result: standard output, unless that is for programs.
func (c *command) forUser() io.Writer {
	if c.opts.output != outputText {
		return c.Err
	}
	return c.Out
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
		ids := c.app.Catalog.IDs(catalog.Chat)
		if m, err := c.app.Catalog.Resolve(c.app.Config.Model, catalog.Chat); err == nil && c.OutTerminal {
			if i := slices.Index(ids, m.ID()); i >= 0 {
				ids[i] += " (default)"
			}
		}
		return printLines(c.Out, ids)
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
	width := 0
	for _, e := range list {
		width = max(width, ansi.StringWidth(display.Line(e.Name)))
	}
	return c.print(list, display.List(nil, list, func(e agent.Entry) []string {
		about := e.Description
		if e.Error != "" {
			about = "cannot be used: " + e.Error
		}
		return []string{e.Name, text.CutColumns(display.Line(about), max(helpWidth(c.Out)-width-2, 20))}
	}))
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
		names, err := c.sessionNames(ctx, math.MaxInt)
		if err != nil {
			return err
		}
		return printLines(c.Out, names)
	}
	scope, err := c.sessionScope()
	if err != nil {
		return err
	}
	most := mostUnnamed
	if c.opts.output != outputText {
		most = math.MaxInt
	}
	list, more, err := c.app.Conversations().Summaries(ctx, scope, most)
	if err != nil {
		return err
	}
	widest := 0
	for _, s := range list {
		widest = max(widest, ansi.StringWidth(s.Name))
	}
	room := mostColumns
	if width := c.outWidth(); width > 0 {
		room = max(20, min(room, width-widest-len("  10 mo  TURNS  ")-1))
	}
	table := display.List([]string{"NAME", "USED", "TURNS", "BEGINS WITH"}, list, func(s conversation.Summary) []string {
		return []string{s.Name, display.Age(time.Since(s.Modified)), strconv.Itoa(s.Turns), firstWords(cmp.Or(s.Error, s.First), room)}
	}, 2)
	if err := printList(c, list, "there are no sessions yet: loki -s NAME begins one", table); err != nil || more == 0 || c.opts.quiet {
		return err
	}
	fmt.Fprintf(c.Err, "%s without a name are not shown: loki --search TEXT finds them\n", text.Count(more, "older session"))
	return nil
}

// mostUnnamed is how many sessions without a name are listed for people.
const mostUnnamed = 20

// mostColumns is how much of a text a list shows.
const mostColumns = 50

// firstWords returns the beginning of s, on one line of at most so many columns.
func firstWords(s string, columns int) string {
	return text.CutColumns(strings.Join(strings.Fields(text.Printable(s)), " "), columns)
}

// sessionScope returns whose sessions are meant: those of the agent of -a, or of none.
func (c *command) sessionScope() (session.Scope, error) {
	if c.opts.agent == "" {
		return "", nil
	}
	ref, err := c.app.Agents.Find(c.opts.agent)
	return c.app.SessionScope(ref), err
}

// sessionNames returns the names of the sessions, or the ids of sessions without one: of the latest, at most unnamed.
func (c *command) sessionNames(ctx context.Context, unnamed int) ([]string, error) {
	scope, err := c.sessionScope()
	if err != nil {
		return nil, err
	}
	store, err := c.app.Sessions()
	if err != nil {
		return nil, err
	}
	list, err := store.List(ctx, scope)
	list, _ = session.Latest(list, unnamed)
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
	synced, err := c.app.Models.SyncModels(ctx)
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
	conv := c.app.Conversations().Begin(conversation.Options{Settings: c.opts.settings(), MaxOutputTokens: c.opts.sampling.maxOutput, NoStream: c.opts.noStream})
	info := display.Info(c.app, conv)
	return c.print(info.Value(), display.Fit(display.InfoText(info), c.outWidth()))
}
