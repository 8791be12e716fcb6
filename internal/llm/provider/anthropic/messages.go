package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider/normalize"
)

// translation is a conversation in the API's form.
type translation struct {
	system   string
	messages []message // none is empty, no two neighbors of the same role
	blocks   bool      // there are thinking blocks

	// thoughtless says that the tool loop at the end began without thinking, after
	// which a budget for thinking is rejected.
	thoughtless bool
}

// translate translates a conversation, with or without its thinking blocks. The error
// is of kind [provider.Invalid].
func translate(messages []chat.Message, thinking bool) (*translation, error) {
	loop := 0 // where the last tool loop begins: after the last user message
	for i, m := range messages {
		if m.Role == chat.User && !(m.Steer && messages[i-1].Role == chat.ToolRole) {
			loop = i + 1
		}
	}
	t := &translation{}
	begun := false // the last tool loop has
	for i, m := range messages {
		role, blocks := userRole, []content(nil)
		var err error
		switch m.Role {
		case chat.System:
			t.addSystem(m)
		case chat.Assistant:
			role = assistantRole
			var thoughts bool
			blocks, thoughts = assistantBlocks(m, thinking && i >= loop, i == len(messages)-1)
			t.blocks = t.blocks || thoughts
			if i >= loop && !begun {
				begun, t.thoughtless = true, !thoughts
			}
		case chat.ToolRole:
			blocks, err = toolResult(m)
		default:
			blocks, err = contentBlocks(m.Parts)
		}
		if err != nil {
			return nil, err
		}
		t.add(role, blocks)
	}
	return t, nil
}

// addSystem appends the text of m to the system prompt, its parts set off by blank
// lines.
func (t *translation) addSystem(m chat.Message) {
	for _, p := range m.Parts {
		if p.Type != chat.TextPart || isBlank(p.Text) {
			continue
		}
		if t.system != "" {
			t.system += "\n\n"
		}
		t.system += p.Text
	}
}

func (t *translation) add(role string, blocks []content) {
	if len(blocks) == 0 {
		return
	}
	if n := len(t.messages); n > 0 && t.messages[n-1].Role == role {
		t.messages[n-1].Content = append(t.messages[n-1].Content, blocks...)
		return
	}
	t.messages = append(t.messages, message{Role: role, Content: blocks})
}

// assistantBlocks translates a message of the assistant. thoughts says that it holds
// thinking blocks, which are left out unless thinking. A message without words or calls
// is left out, since neither the API nor the model can do anything with it. The last
// message of a conversation is one that the model must continue.
func assistantBlocks(m chat.Message, thinking, last bool) (blocks []content, thoughts bool) {
	said := 0 // length of blocks up to the last that is not thinking
	first := true
	for _, p := range m.Parts {
		switch p.Type {
		case chat.ReasoningPart:
			block, ok := thinkingBlock(p.Text, p.Signature)
			if ok && thinking {
				blocks = append(blocks, block)
			}
		case chat.TextPart:
			text := p.Text
			if first && !last {
				text = chat.WithoutThinking(text)
			}
			first = false
			if last {
				text = strings.TrimRight(text, space) // the API rejects white space at the very end
			}
			if !isBlank(text) {
				blocks = append(blocks, textOf(text))
				said = len(blocks)
			}
		}
	}
	for _, c := range m.ToolCalls {
		blocks = append(blocks, content{
			Type: callBlock, ID: callID(c.ID), Name: callName(c.Name), Input: normalize.Arguments(strings.ToValidUTF8(c.Arguments, "\uFFFD")),
		})
		said = len(blocks)
	}
	blocks = blocks[:said] // a message must not end in thinking
	for _, b := range blocks {
		thoughts = thoughts || b.Type == thinkBlock || b.Type == redactedBlock
	}
	return blocks, thoughts
}

// contentBlocks translates text and images.
func contentBlocks(parts []chat.Part) ([]content, error) {
	var blocks []content
	for _, p := range parts {
		switch {
		case p.Type == chat.TextPart && !isBlank(p.Text):
			blocks = append(blocks, textOf(p.Text))
		case p.Type == chat.ImagePart:
			block, err := media(p.URL)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, block)
		}
	}
	return blocks, nil
}

// silentFailure is the result of a tool that failed without a word, which the API does
// not take.
const silentFailure = "the tool failed and said nothing"

// toolResult translates the answer to a call.
func toolResult(m chat.Message) ([]content, error) {
	blocks, err := contentBlocks(m.Parts)
	if err != nil {
		return nil, err
	}
	if m.Failed && len(blocks) == 0 {
		blocks = []content{textOf(silentFailure)}
	}
	return []content{{Type: resultBlock, ToolUseID: callID(m.ToolCallID), Content: blocks, IsError: m.Failed}}, nil
}

// space is the white space of JSON, which is also what models put between their lines.
const space = " \t\r\n"

// isBlank reports whether text has no character that shows, which the API takes for no
// text at all.
func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// callID returns the id of a call in the letters that the API allows. The same id
// always gives the same result, so that calls and their results stay together.
func callID(id string) string {
	if id != "" && !strings.ContainsFunc(id, notInName) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// callName returns the name of a call, which a model may have made up, in the letters
// that the API allows.
func callName(name string) string {
	name = strings.Map(func(r rune) rune {
		if notInName(r) {
			return '_'
		}
		return r
	}, name)
	if name == "" {
		return "_"
	}
	return name
}

func notInName(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-'
}
