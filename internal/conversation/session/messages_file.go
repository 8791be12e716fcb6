package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/base/file/atomicfile"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// MessagesFile keeps the turns outside sessions as Markdown, for people to read and search.
// Its method may be called from several goroutines and processes.
type MessagesFile struct {
	Path string              // made when it is needed, with the directories above
	Now  func() time.Time    // nil means time.Now; the entry has its time zone
	Hide func(string) string // what of an entry is written; nil means all
}

// MessagesEntry is a turn in a [MessagesFile].
type MessagesEntry struct {
	Role    string         // the role in force; "" for none, and for agents
	RAG     string         // the knowledge base in use; "" for none, and for agents
	Input   string         // what the user typed
	Sources []string       // files and addresses that came with it, local ones as absolute paths
	Reply   []chat.Message // what the model added: tool calls, their results, the answer
}

// lockTimeout bounds how long to wait for other processes.
const lockTimeout = 10 * time.Second

// Append adds an entry, even if ctx is canceled. One without an answer and without
// tool calls is left out.
func (f MessagesFile) Append(ctx context.Context, e MessagesEntry) error {
	now := f.Now
	if now == nil {
		now = time.Now
	}
	text := e.format(now())
	if text == "" {
		return nil
	}
	if f.Hide != nil {
		text = f.Hide(text)
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockTimeout)
	defer cancel()
	file, err := atomicfile.OpenLocked(ctx, f.Path)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// format returns the text of an entry, "" for an empty one.
func (e MessagesEntry) format(at time.Time) string {
	tools, output := e.reply()
	if tools == "" && output == "" {
		return ""
	}
	input := e.Input
	if len(e.Sources) > 0 {
		input = ".file " + strings.Join(e.Sources, " ") + " -- " + input
	}
	return fmt.Sprintf("# CHAT: %s [%s]%s\n%s\n--------\n%s%s\n--------\n\n",
		headline(e.Input), at.Format(time.RFC3339), e.scope(), input, tools, output)
}

func (e MessagesEntry) scope() string {
	switch {
	case e.Role != "" && e.RAG != "":
		return " (" + e.Role + "#" + e.RAG + ")"
	case e.Role != "":
		return " (" + e.Role + ")"
	case e.RAG != "":
		return " (#" + e.RAG + ")"
	}
	return ""
}

// callResult is a call with its result.
type callResult struct {
	Call   namedCall `json:"call"`
	Output string    `json:"output"`
}

type namedCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	ID        string          `json:"id"`
}

// reply returns the block of tool calls, "" if there are none, and the answer.
func (e MessagesEntry) reply() (tools, output string) {
	var texts []string
	var results []callResult
	at := make(map[string]int) // by the id of the call
	for i, m := range e.Reply {
		switch m.Role {
		case chat.Assistant:
			if len(m.ToolCalls) == 0 && i == len(e.Reply)-1 {
				output = m.Text()
				continue
			}
			if text := m.Text(); text != "" {
				texts = append(texts, text)
			}
			for _, c := range m.ToolCalls {
				at[c.ID] = len(results)
				results = append(results, callResult{Call: namedCall{Name: c.Name, Arguments: arguments(c.Arguments), ID: c.ID}})
			}
		case chat.ToolRole:
			if i, ok := at[m.ToolCallID]; ok {
				results[i].Output = m.Text()
			}
		}
	}
	if len(results) == 0 {
		return "", strings.Join(append(texts, output), "")
	}
	doc, err := value.Marshal(results)
	if err != nil { // impossible: the arguments were checked
		return "", output
	}
	texts = append(texts, string(doc))
	return "<tool_calls>\n" + strings.Join(texts, "\n") + "\n</tool_calls>\n", output
}

// arguments returns a model's JSON text, as a JSON string if it is malformed.
func arguments(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a string never fails
	return quoted
}

// The width of a headline, in columns of a terminal.
const (
	maxHeadline = 80
	ellipsis    = "..."
)

// headline returns text as one line of at most 80 columns.
func headline(text string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
	if ansi.StringWidth(line) <= maxHeadline {
		return line
	}
	return ansi.Truncate(line, maxHeadline, ellipsis)
}
