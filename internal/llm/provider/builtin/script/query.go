package script

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// Query is what the conditions of a rule look at.
type Query struct {
	Text       string // of the last user message
	System     string // of the system message
	ToolResult string // the results that answer the latest calls, one after the other on lines of their own
	Node       string // the graph node that asks
	Turn       int    // of the tool loop, from 1
}

// NewQuery returns the query that req makes.
func NewQuery(req provider.Request) Query {
	q := Query{Node: req.Origin.Node, Turn: req.Origin.Turn}
	for _, m := range req.Messages {
		switch m.Role {
		case chat.System:
			q.System = m.Text()
		case chat.User:
			q.Text = m.Text()
		}
	}
	var results []string
	for _, m := range slices.Backward(req.Messages) {
		if m.Role != chat.ToolRole {
			break
		}
		results = append(results, m.Text())
	}
	slices.Reverse(results)
	q.ToolResult = strings.Join(results, "\n")
	return q
}

// maxShown is how many characters of a message an error quotes, with the mark of a cut.
const maxShown = 121

// String describes q for an error message.
func (q Query) String() string {
	s := fmt.Sprintf("text %s", excerpt(q.Text))
	if q.ToolResult != "" {
		s += fmt.Sprintf(", tool result %s", excerpt(q.ToolResult))
	}
	if q.Node != "" {
		s += fmt.Sprintf(", node %q", q.Node)
	}
	if q.Turn != 0 {
		s += fmt.Sprintf(", turn %d", q.Turn)
	}
	return s
}

func excerpt(s string) string {
	return strconv.Quote(text.CutRunes(s, maxShown))
}

// conditions say when a rule applies. The zero value of a field is not a condition.
type conditions struct {
	text       string
	regex      *regexp.Regexp
	ofResult   bool // regex is one of the tool result, and not of the text
	system     string
	toolResult string
	nodes      []string // any of them
	turn       int
}

// hold reports whether all conditions hold for q, and returns what the groups of
// the regular expression matched, the whole match first.
func (c conditions) hold(q Query) (groups []string, ok bool) {
	switch {
	case !strings.Contains(q.Text, c.text),
		!strings.Contains(q.System, c.system),
		!strings.Contains(q.ToolResult, c.toolResult),
		len(c.nodes) > 0 && !slices.Contains(c.nodes, q.Node),
		c.turn != 0 && c.turn != q.Turn:
		return nil, false
	case c.regex == nil:
		return nil, true
	}
	of := q.Text
	if c.ofResult {
		of = q.ToolResult
	}
	groups = c.regex.FindStringSubmatch(of)
	return groups, groups != nil
}
