package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"loki/internal/conversation/session/search"
	"loki/internal/frontend/command/display"
)

// mostFound is how many results --search prints.
const mostFound = 20

// foundInfo is a result of --search in machine output.
type foundInfo struct {
	Kind     string    `json:"kind"` // session or run
	ID       string    `json:"id"`
	Name     string    `json:"name,omitempty"`  // of a session
	Agent    string    `json:"agent,omitempty"` // whose session it is, or that of the run
	Modified time.Time `json:"modified"`
	Hits     int       `json:"hits"` // texts that were found

	Role    string     `json:"role"` // of the best text
	At      *time.Time `json:"at,omitempty"`
	Snippet string     `json:"snippet"`
	Marks   [][2]int   `json:"marks"` // from and to, in characters of the snippet
	Score   float64    `json:"score"`
	Open    string     `json:"open"` // the command that shows it
}

func newFoundInfo(f search.Hit) foundInfo {
	i := foundInfo{
		Kind: f.Kind, ID: f.ID, Agent: f.Agent, Modified: f.Result.At, Hits: f.Hits, Role: f.Role,
		Snippet: f.Snippet.Text, Marks: append([][2]int{}, f.Snippet.Marks...), Score: f.Score, Open: f.Open,
	}
	if f.Kind == search.FoundSession {
		i.Name = f.Name
	}
	if f.Role == "" {
		i.Role = "name"
	}
	if f.TextAt.Unix() > 0 {
		i.At = &f.TextAt
	}
	return i
}

// searchRecords prints the sessions and runs in which the text of --search is found.
func (c *command) searchRecords(ctx context.Context) error {
	text := strings.Join(append([]string{c.opts.value}, c.opts.text...), " ") // words without quotes, too
	screen := c.display().Screen()
	stop := screen.Spin("Searching")
	list, of, err := c.app.Search().Find(ctx, text, mostFound)
	stop()
	screen.Close()
	if err != nil {
		return err
	}
	infos := []foundInfo{}
	for _, f := range list {
		infos = append(infos, newFoundInfo(f))
	}
	mark := display.Brackets
	if c.outColor() {
		mark = display.Bold
	}
	err = c.print(infos, display.Fit(display.FoundText(list, mark), c.outWidth()))
	if note := display.FoundNote(len(list), of); err == nil && note != "" && !c.opts.quiet && c.opts.output == outputText {
		fmt.Fprintln(c.Err, note)
	}
	return err
}
