package draft

import (
	"path"
	"strings"

	"loki/internal/base/text"
	"loki/internal/workflow/graph"
)

// block is a fenced block of a reply.
type block struct {
	info   string // behind the fence
	before string // the last line with text above it
	text   string // ends in a line feed unless it is empty
	closed bool
}

// blocks returns the fenced blocks of a reply. Other than in Markdown, a fence that is indented further than the one that
// opened the block does not close it: texts in YAML hold fences of their own, which are always indented.
func blocks(reply string) []block {
	var (
		list   []block
		open   *block
		fence  string // that opened the block
		indent string // in front of it
		text   strings.Builder
		before string
	)
	end := func(closed bool) {
		open.text, open.closed = text.String(), closed
		list, open = append(list, *open), nil
		text.Reset()
	}
	for line := range strings.Lines(reply) {
		line = strings.TrimSuffix(line, "\n")
		trimmed := strings.TrimLeft(line, " \t")
		margin := line[:len(line)-len(trimmed)]
		if open != nil {
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]+" \t") == "" && len(margin) <= len(indent) {
				end(true)
				continue
			}
			text.WriteString(strings.TrimPrefix(line, indent) + "\n")
			continue
		}
		if f := fenceOf(trimmed); f != "" {
			fence, indent = f, margin
			open = &block{info: strings.TrimSpace(trimmed[len(f):]), before: before}
			before = ""
			continue
		}
		if trimmed != "" {
			before = trimmed
		}
	}
	if open != nil {
		end(false)
	}
	return list
}

// fenceOf returns the fence that a line begins a block with, "" if it does not.
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		n := len(line) - len(strings.TrimLeft(line, mark))
		if n >= 3 && !(mark == "`" && strings.Contains(line[n:], mark)) {
			return line[:n]
		}
	}
	return ""
}

// A name of a file has an extension, and no character that Markdown or shells give a meaning.
var fileName = text.Regexp(`^[^\s"'` + "`" + `{}()\[\]<>|*?=,;#]*\.[A-Za-z][A-Za-z0-9]{0,7}$`)

// languages are words in front of a name of a file that are not a part of it.
var languages = text.Regexp(`(?i)^(ya?ml|sh|bash|shell|zsh|python3?|py|typescript|ts|title|file|filename|path|name)[:=]`)

// path returns the name of the file that a block holds, "" if it has none: in its first line, in the line above
// it, or in a comment that begins its text.
func (b block) path() string {
	for word := range strings.FieldsSeq(b.info) {
		if name := asFileName(word); name != "" {
			return name
		}
	}
	lines := strings.SplitN(b.text, "\n", 3)
	if strings.HasPrefix(lines[0], "#!") && len(lines) > 1 {
		lines = lines[1:]
	}
	for _, mark := range []string{"# ", "// "} {
		if comment, ok := strings.CutPrefix(lines[0], mark); ok && isCode(asFileName(comment)) {
			return asFileName(comment)
		}
	}
	words := strings.Fields(b.before)
	for i := len(words) - 1; i >= 0; i-- {
		if name := asFileName(words[i]); isCode(name) {
			return name
		}
	}
	return ""
}

// asFileName returns the name of a file that a word of a reply is, "" if it is not one.
func asFileName(word string) string {
	word = strings.Trim(word, "`*\"'{}()[],;:#")
	word = languages().ReplaceAllString(word, "")
	word = strings.Trim(word, "`\"'")
	if !fileName().MatchString(word) {
		return ""
	}
	return word
}

// isCode reports whether a file is a definition or a script by its name: only these are looked for in prose.
func isCode(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".sh", ".py", ".ts":
		return true
	}
	return false
}

// isDefinition reports whether a file is that of the graph.
func isDefinition(name string) bool { return path.Base(name) == graph.FileName }

// clean returns a path without what has no effect in it, such as a leading ./.
func clean(name string) string { return path.Clean(name) }

var (
	nodesLine = text.Regexp(`(?m)^nodes:(\s|$)`)
	firstLine = text.Regexp(`(?m)^[a-z_]+:(\s|$)`)
)

// isGraph reports whether a text looks like a definition.
func isGraph(text string) bool { return nodesLine().MatchString(text) }

// bare returns the definition in a reply without blocks: from the first line that has a key.
func bare(reply string) string {
	return strings.TrimRight(reply[firstLine().FindStringIndex(reply)[0]:], "\n") + "\n"
}
