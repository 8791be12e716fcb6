package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/base/text"
	"loki/internal/base/text/rank"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation/knowledge"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/render"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/event"
)

// listBases lists the knowledge bases: their names for programs, with what they hold at a terminal.
func (c *command) listBases(ctx context.Context) error {
	names, err := c.app.Knowledge().Names(ctx)
	if err != nil {
		return err
	}
	if c.opts.output == outputText && !c.OutTerminal {
		return printLines(c.Out, names)
	}
	list := make([]knowledge.Summary, len(names))
	for i, name := range names {
		file, err := c.app.Knowledge().Library().File(name)
		if err != nil {
			return err
		}
		list[i] = c.app.Knowledge().Summary(ctx, name, file)
	}
	table := display.List([]string{"NAME", "DOCUMENTS", "CHUNKS", "SIZE", "BUILT", "MODEL"}, list, func(b knowledge.Summary) []string {
		if b.Error != "" {
			return []string{b.Name, "", "", "", "", firstWords(b.Error, mostColumns)}
		}
		return []string{b.Name, strconv.Itoa(b.Documents), strconv.Itoa(b.Chunks), bytesText(b.Bytes), display.Age(time.Since(b.Built)), b.Model}
	}, 1, 2, 3)
	return printList(c, list, "there are no knowledge bases yet: loki --rag NAME --rag-add DIR makes one", table)
}

// bytesText writes a size: 512 B, 3.4 MB.
func bytesText(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// baseInfo prints the knowledge base of --rag as a YAML document, or the same as JSON.
func (c *command) baseInfo(ctx context.Context) error {
	info, err := c.app.Knowledge().Info(ctx, c.opts.knowledge.base)
	if err != nil {
		return err
	}
	var w yamldoc.Writer
	w.Members(0, info)
	return c.print(info.Value(), text.Printable(w.String()))
}

// watch returns what shows the progress of work that prints its own result, and ends it.
func (c *command) watch() (events event.Scope, screen *render.Screen) {
	d := c.display()
	return c.app.Events(d.Narrator()), d.Screen()
}

// explanation is what --rag-query prints in machine output.
type explanation struct {
	rag.Found
	Settings rag.Settings `json:"settings"`
	Seconds  float64      `json:"seconds"`
}

// queryBase shows what would be retrieved for the text of --rag-query, and why.
func (c *command) queryBase(ctx context.Context) error {
	events, screen := c.watch()
	defer screen.Close()
	ctx = event.NewContext(ctx, events)
	base, release, err := c.openBase(ctx, events)
	if err != nil {
		return err
	}
	defer release()
	change, err := c.baseChange(strings.Join(c.opts.knowledge.set, ","))
	if err != nil {
		return err
	}
	set, err := base.Settings().Set(ctx, c.app.Models, change)
	if err != nil {
		return err
	}
	budget := c.opts.budgetBound()
	of, releaseVariant, err := c.variant(ctx, base, set, events, budget)
	if err != nil {
		return err
	}
	defer releaseVariant()
	stop := screen.Spin("Searching")
	start := time.Now()
	found, err := of.Search(ctx, rag.Query{Text: c.opts.knowledge.query, Settings: &set, Budget: budget, Retry: c.app.Knowledge().Builder(events, nil).Retry})
	took := time.Since(start)
	stop()
	if err != nil {
		return err
	}
	return c.print(explanation{found, set, float64(took.Microseconds()) / 1e6}, c.explain(found, set))
}

// explainLines is how many lines of a passage are shown.
const explainLines = 6

// explain describes what was found, for people, in the width of the terminal.
func (c *command) explain(f rag.Found, set rag.Settings) string {
	width := min(helpWidth(c.Out), 100)
	if len(f.Hits) == 0 {
		return "Nothing was found in knowledge base " + display.Line(f.Base) + ".\n"
	}
	dir, _ := os.Getwd()
	fused := "fused"
	if set.RerankerModel != "" {
		fused = "reranked"
	}
	var b strings.Builder
	for i, h := range f.Hits {
		where := h.Source()
		if rel, err := filepath.Rel(dir, h.Path); err == nil && filepath.IsAbs(h.Path) && len(rel) < len(h.Path) {
			where = strings.Replace(where, h.Path, rel, 1)
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%2d. %s\n", i+1, display.Line(where))
		if h.Heading != "" && !strings.HasSuffix(where, ", "+h.Heading) {
			fmt.Fprintf(&b, "    %s\n", text.CutColumns(display.Line(h.Heading), width-4))
		}
		if h.Unread != "" {
			fmt.Fprintf(&b, "    %s\n", text.CutColumns("not read: "+display.Line(h.Unread), width-4))
		}
		why := fmt.Sprintf("%s %s, vector %s, words %s", fused, score(h.Score), place(h.Vector), place(h.Keyword))
		fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(text.WrapWords(why, width-4), "\n", "\n    "))
		b.WriteString(excerpt(h.Text, c.opts.knowledge.query, headLines(h), width, c.opts.verbose > 0))
	}
	return b.String()
}

// place writes where a passage is in one list: "#3 (0.8120)", or "-" if it is not there.
func place(r rag.Rank) string {
	if r.Rank == 0 {
		return "-"
	}
	return fmt.Sprintf("#%d (%s)", r.Rank, score(r.Score))
}

// score writes a score with about four digits that matter.
func score(x float64) string {
	if x >= 10 || x <= -10 {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 4, 64)
}

// excerpt returns the text of a passage behind bars, in lines of so many columns. Unless all of it is wanted, these are the beginning or,
// if more words of the query are on a later line, the head lines of a table and the lines around that one, with notes of what is left out.
func excerpt(s, query string, head, width int, whole bool) string {
	s = strings.TrimRight(text.Printable(s), "\n")
	lines := strings.Split(ansi.Wrap(strings.ReplaceAll(s, "\t", "    "), width-6, ""), "\n")
	var b strings.Builder
	show := func(lines []string) {
		for _, line := range lines {
			b.WriteString(strings.TrimRight("    | "+line, " ") + "\n")
		}
	}
	if whole || len(lines) <= explainLines+1 {
		show(lines)
		return b.String()
	}
	from := 0
	if at := head + mostWords(lines[head:], query); at < explainLines {
		head = 0
	} else {
		from = min(at-1, len(lines)-explainLines+head)
		show(lines[:head])
		fmt.Fprintf(&b, "    | %s %s\n", text.Mark, text.Count(from-head, "line"))
	}
	to := from + explainLines - head
	show(lines[from:to])
	if to < len(lines) {
		fmt.Fprintf(&b, "    | %s %s; -v shows them\n", text.Mark, text.Count(len(lines)-to, "more line"))
	}
	return b.String()
}

// headLines returns how many lines of a passage name the columns of a table.
func headLines(h rag.Hit) int {
	switch ext := strings.ToLower(filepath.Ext(h.Path)); {
	case strings.HasPrefix(h.Text, "|"):
		return 2
	case ext == ".csv", ext == ".tsv":
		return 1
	}
	return 0
}

// mostWords returns the first line with the most words of a query.
func mostWords(lines []string, query string) (at int) {
	wanted, most := rank.Tokens(query), 0
	for i, line := range lines {
		has, n := rank.Tokens(line), 0
		for _, word := range wanted {
			if slices.Contains(has, word) {
				n++
			}
		}
		if n > most {
			at, most = i, n
		}
	}
	return at
}
