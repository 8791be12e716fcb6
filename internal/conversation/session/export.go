package session

import (
	"strconv"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
)

// exported are the settings that [Session.Export] shows.
var exported = []string{
	"model", "temperature", "top_p", "reasoning_effort", "enabled_tools", "enabled_mcp_servers", "sandbox", "save_session", "auto_continue",
	"max_auto_continues", "inject_todo_instructions", "continuation_prompt",
}

// Facts are data from elsewhere about a session that is shown.
type Facts struct {
	Path           string // where it is stored; "" if it is not
	MaxInputTokens int    // of the model; 0 if that is not known
}

// Export returns the session as a YAML document, for machines and people: where it is,
// the settings that are set, how many tokens its live messages count, what the model
// calls used, the recap, and the live messages. A message has its role and a content: a text, or a list of parts of type
// "text" and "image_url". The calls of a reply are its tool_calls, and a message of
// role "tool" says which of them it answers.
func (s *Session) Export(f Facts) string {
	s.mu.Lock()
	settings, list, tokens := s.state.Settings.clone(), s.view.history.messages(), s.view.history.tokens()
	usage, recap := s.view.history.usage, s.view.history.recap
	s.mu.Unlock()

	var w yamldoc.Writer
	if f.Path == "" {
		w.Pair(0, "path", nil)
	} else {
		w.Pair(0, "path", f.Path)
	}
	writeSettings(&w, &settings, exported...)
	w.Pair(0, "total_tokens", tokens)
	if f.MaxInputTokens > 0 {
		w.Pair(0, "max_input_tokens", f.MaxInputTokens)
		if p := Percent(tokens, f.MaxInputTokens); p != "0" {
			w.Pair(0, "total/max", p+"%")
		}
	}
	writeUsage(&w, usage)
	if recap != "" {
		w.Pair(0, "recap", recap)
	}
	w.Key(0, "messages")
	if len(list) == 0 {
		w.WriteString(" []\n")
		return w.String()
	}
	w.WriteByte('\n')
	for _, m := range list {
		writeMessage(&w, m)
	}
	return w.String()
}

// writeUsage writes what the session used, if that is known.
func writeUsage(w *yamldoc.Writer, u chat.Usage) {
	if u == (chat.Usage{}) {
		return
	}
	w.Key(0, "usage")
	w.WriteByte('\n')
	w.Pair(2, "input_tokens", u.InputTokens)
	if u.CachedInputTokens > 0 {
		w.Pair(2, "cached_input_tokens", u.CachedInputTokens)
	}
	w.Pair(2, "output_tokens", u.OutputTokens)
	if u.Cost > 0 {
		w.Pair(2, "cost", u.Cost)
	}
	if u.CostUnknown {
		w.Pair(2, "cost_unknown", true)
	}
	if u.Estimated {
		w.Pair(2, "estimated", true)
	}
}

// Percent returns the share of total that n is, in percent with at most two decimals
// and without the sign; "0" if total is not known.
func Percent(n, total int) string {
	if total <= 0 {
		return "0"
	}
	hundredths := (int64(n)*10_000 + int64(total)/2) / int64(total)
	return strconv.FormatFloat(float64(hundredths)/100, 'f', -1, 64)
}

func writeMessage(w *yamldoc.Writer, m chat.Message) {
	w.WriteString("- role: " + string(m.Role) + "\n")
	if m.Role == chat.ToolRole {
		w.Pair(2, "tool_call_id", m.ToolCallID)
		w.Pair(2, "tool_name", m.ToolName)
		if m.Failed {
			w.Pair(2, "failed", true)
		}
	}
	var parts []chat.Part
	for _, p := range m.Parts {
		if p.Type == chat.TextPart || p.Type == chat.ImagePart {
			parts = append(parts, p)
		}
	}
	switch {
	case len(parts) == 0:
		w.Pair(2, "content", "")
	case len(parts) == 1 && parts[0].Type == chat.TextPart:
		w.Pair(2, "content", parts[0].Text)
	default:
		w.WriteString("  content:\n")
		for _, p := range parts {
			if p.Type == chat.ImagePart {
				w.WriteString("  - type: image_url\n    image_url:\n")
				w.Pair(6, "url", p.URL)
				continue
			}
			w.WriteString("  - type: text\n")
			w.Pair(4, "text", p.Text)
		}
	}
	if len(m.ToolCalls) == 0 {
		return
	}
	w.WriteString("  tool_calls:\n")
	for _, c := range m.ToolCalls {
		w.WriteString("  - id: ")
		w.Scalar(4, c.ID)
		w.Pair(4, "name", c.Name)
		w.Pair(4, "arguments", c.Arguments)
	}
}
