package conversation

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"unicode"

	"loki/internal/base/fault"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
)

// takeCode returns the reply with its code alone, and warns of blocks that are left out.
// A reply without a fence is all code, unless a command was wanted and it plainly is prose:
// that is an error with code Provider.
func takeCode(ctx context.Context, events event.Scope, reply engine.Reply, command bool) (engine.Reply, error) {
	blocks := CodeBlocks(reply.Text)
	switch {
	case len(blocks) == 0 && command && isProse(reply.Text):
		return reply, fault.New(fault.Provider, "the model wrote no command").WithHint("say more precisely what the command is to do")
	case len(blocks) == 0:
		return reply, nil
	case len(blocks) > 1:
		text := fmt.Sprintf("the answer has %d blocks of code; only the first is taken", len(blocks))
		if err := events.Emit(ctx, event.Warning{Text: text}); err != nil {
			return reply, err
		}
	}
	return replaceText(reply, blocks[0]), nil
}

// CodeBlocks returns the contents of the fenced blocks of a Markdown text, without white
// space around it. A block begins at a line that starts with three backticks or more, or
// tildes, and ends at a line of as many, at the end of the text, or on the same line. A
// block in a longer fence may hold shorter ones.
func CodeBlocks(text string) []string {
	var blocks []string
	var block strings.Builder
	open := "" // the fence of the block
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if open != "" {
			if len(trimmed) >= len(open) && strings.Trim(trimmed, open[:1]) == "" {
				blocks, open = append(blocks, strings.TrimSpace(block.String())), ""
				block.Reset()
				continue
			}
			block.WriteString(line)
			continue
		}
		fence := fenceOf(trimmed)
		rest := trimmed[len(fence):]
		switch inner, _, closed := strings.Cut(rest, fence); {
		case fence == "":
		case closed: // all on one line
			blocks = append(blocks, strings.TrimSpace(inner))
		default:
			open = fence
		}
	}
	if open != "" {
		blocks = append(blocks, strings.TrimSpace(block.String()))
	}
	return blocks
}

// fenceOf returns the fence that a line begins with, empty if it begins with none.
func fenceOf(line string) string {
	for _, mark := range [...]string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, mark)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// isProse reports whether a text without a fence is plainly no command: it begins like a
// sentence, with a capital letter or one that commands have not, and no program has that
// name. Names such as Get-ChildItem, and variables that are set, are commands.
func isProse(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	word := strings.TrimRight(first, ",.:;!?")
	for _, r := range word {
		if r != '\'' && r != '’' && !unicode.IsLetter(r) {
			return false
		}
	}
	if word == "" || strings.TrimSpace(rest) == "" && word == first {
		return false
	}
	if r := []rune(word)[0]; r <= unicode.MaxASCII && !unicode.IsUpper(r) {
		return false
	}
	_, err := exec.LookPath(word)
	return err != nil
}
