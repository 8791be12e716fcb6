package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
)

// Look says how [Session.Info] presents what it shows. nil functions change nothing.
type Look struct {
	Facts
	Markdown func(text string) string // renders a reply or the instructions
	Dim      func(text string) string // makes a line stand back
	ToolName func(name string) string // how a tool is shown, such as with its agent's name in front
}

// Info returns the session as a person reads it: the settings that are set, a line
// each, and then the live messages.
func (s *Session) Info(look Look) string {
	s.mu.Lock()
	settings, list := s.state.Settings.clone(), s.view.history.messages()
	title, urls := s.state.Title, s.state.DataURLs
	s.mu.Unlock()

	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%-19s %s\n", name, value) }
	if look.Path != "" {
		line("path", look.Path)
	}
	if title != "" {
		line("autoname", title)
	}
	for _, f := range settings.list() {
		switch f.Key {
		case "role_name", "agent_variables", "agent_instructions":
			continue
		}
		if v, ok := f.Value(); ok {
			line(f.Key, display(v))
		}
	}
	if look.MaxInputTokens > 0 {
		line("max_input_tokens", fmt.Sprint(look.MaxInputTokens))
	}
	if len(list) == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	for _, m := range list {
		look.message(&b, m, urls)
	}
	return b.String()
}

func display(v any) string {
	if f, ok := v.(float64); ok {
		return strings.TrimSuffix(yamldoc.FloatText(f), ".0")
	}
	return fmt.Sprint(v)
}

func (l Look) message(b *strings.Builder, m chat.Message, urls map[string]string) {
	switch m.Role {
	case chat.System:
		b.WriteString(apply(l.Markdown, m.Text()) + "\n")
	case chat.User:
		b.WriteString(">> " + strings.ReplaceAll(typedText(m, urls), "\n", "\n.. ") + "\n")
	case chat.Assistant:
		text := m.Text()
		if text != "" || len(m.ToolCalls) == 0 {
			b.WriteString(apply(l.Markdown, text) + "\n")
		}
		for _, c := range m.ToolCalls {
			b.WriteString(apply(l.Dim, "Call "+apply(l.ToolName, c.Name)+" "+c.Arguments) + "\n")
		}
		if len(m.ToolCalls) == 0 {
			b.WriteByte('\n')
		}
	}
}

func apply(f func(string) string, text string) string {
	if f == nil {
		return text
	}
	return f(text)
}

// typedText returns a message of the user as the user may have typed it: images, which are
// looked up in urls, see [State], become the paths of a .file command.
func typedText(m chat.Message, urls map[string]string) string {
	var files []string
	for _, p := range m.Parts {
		if p.Type == chat.ImagePart {
			files = append(files, imageSource(p.URL, urls))
		}
	}
	if len(files) == 0 {
		return m.Text()
	}
	return ".file " + strings.Join(files, " ") + " -- " + m.Text()
}

// imageSource returns where an image came from, or its URL if that is not known.
func imageSource(url string, urls map[string]string) string {
	if strings.HasPrefix(url, "data:") {
		if source, ok := urls[DataURLHash(url)]; ok {
			return source
		}
	}
	return url
}

// DataURLHash returns what a data: URL is called in [State].
func DataURLHash(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}
