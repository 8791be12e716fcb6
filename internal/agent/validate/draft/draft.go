// Package draft holds graph agents that a model has written and that are not installed yet: how they are taken out of a
// reply, what they must not have, what they are likely to cost, and how they are written to the directory of an agent.
//
// A reply holds the definition and each script in a fenced block of Markdown whose first line names the file:
//
//	```yaml graph.yaml
//	name: greet
//	...
//	```
//
//	```sh scripts/fetch.sh
//	...
//	```
//
// Nothing in a draft is run, and nothing of it is written before [Draft.Write].
package draft

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"loki/internal/workflow/graph"
)

// The rules of findings about drafts, beside those of package graph.
const (
	RuleReply graph.Rule = "reply" // a reply does not hold a graph
	RuleDraft graph.Rule = "draft" // an agent that a model has written must not have it
)

// Draft is a graph agent that is not installed.
type Draft struct {
	Graph string `json:"graph"`           // text of graph.yaml, which ends in a line feed; empty if there is none
	Files []File `json:"files,omitempty"` // scripts, by path
}

// File is a script of a draft.
type File struct {
	Path string `json:"path"` // with slashes; whether it may be used says [Draft.Check]
	Text string `json:"text"` // ends in a line feed
}

// Read takes a draft out of a reply, or out of what a user has edited. Of several files of one name the last counts. The findings
// are errors that keep the reply from being understood.
func Read(reply string) (Draft, graph.Findings) {
	var (
		d        Draft
		findings graph.Findings
		unnamed  string // the last block that looks like a graph and has another name, or none
	)
	reply = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(reply)
	for _, b := range blocks(reply) {
		path := b.path()
		switch {
		case isDefinition(path):
			d.Graph = b.text
		case isGraph(b.text):
			unnamed = b.text
		case path == "":
			continue
		default:
			d.put(File{clean(path), b.text})
		}
		if !b.closed {
			findings = append(findings, fault(RuleReply, "end each block with a line of the same backquotes", "the block of %s is not closed", cmp.Or(path, graph.FileName)))
		}
	}
	if d.Graph == "" {
		d.Graph = unnamed
	}
	if d.Graph == "" && !strings.Contains(reply, "```") && isGraph(reply) {
		d.Graph = bare(reply)
	}
	if d.Graph == "" {
		findings = append(findings, fault(RuleReply, "answer with a block that begins with ```yaml "+graph.FileName, "the reply has no graph"))
	}
	return d, findings
}

// EndOnFailure returns the text of a definition with settings.on_failure: fail, which it does not have, if a line of text can say
// that, and otherwise the text.
func EndOnFailure(text string) string {
	const setting = "on_failure: fail"
	var b strings.Builder
	inSettings, done := false, false
	for line := range strings.Lines(text) {
		fields, indent := strings.TrimSpace(line), len(line)-len(strings.TrimLeft(line, " "))
		switch rest, found := strings.CutPrefix(line, "settings:"); {
		case done:
		case found && strings.HasPrefix(strings.TrimSpace(rest), "{}"):
			line, done = "settings: {"+setting+"}\n", true
		case found && strings.HasPrefix(strings.TrimSpace(rest), "{"):
			line, done = "settings: {"+setting+", "+strings.TrimLeft(rest, " {"), true
		case found:
			inSettings = true
		case inSettings && indent > 0 && fields != "" && fields[0] != '#':
			line, done = line[:indent]+setting+"\n"+line, true
		}
		b.WriteString(line)
	}
	if !done && !inSettings { // at the end, so that findings name the lines of the reply
		b.WriteString("settings: {" + setting + "}\n")
	}
	return b.String()
}

func fault(rule graph.Rule, hint, format string, args ...any) graph.Finding {
	return graph.Finding{Severity: graph.SeverityError, Rule: rule, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// put adds a file, in place of one of the same path.
func (d *Draft) put(f File) {
	i, found := slices.BinarySearchFunc(d.Files, f.Path, func(f File, path string) int { return strings.Compare(f.Path, path) })
	if found {
		d.Files[i] = f
		return
	}
	d.Files = slices.Insert(d.Files, i, f)
}

// File returns the text of the script at path, as it is written in the graph.
func (d Draft) File(path string) (text string, ok bool) {
	for _, f := range d.Files {
		if clean(f.Path) == clean(path) {
			return f.Text, true
		}
	}
	return "", false
}

// String returns the draft in the form that [Read] reads.
func (d Draft) String() string {
	var b strings.Builder
	writeBlock(&b, "yaml", graph.FileName, d.Graph)
	for _, f := range d.Files {
		b.WriteByte('\n')
		writeBlock(&b, strings.TrimPrefix(graph.ScriptExtension(f.Path), "."), f.Path, f.Text)
	}
	return b.String()
}

// Sum returns 8 hexadecimal digits that are those of this draft.
func (d Draft) Sum() string {
	sum := sha256.Sum256([]byte(d.String()))
	return hex.EncodeToString(sum[:4])
}

func writeBlock(b *strings.Builder, language, path, text string) {
	fence := "```"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if n := len(line) - len(strings.TrimLeft(line, "`")); n >= len(fence) {
			fence = strings.Repeat("`", n+1)
		}
	}
	fmt.Fprintf(b, "%s%s\n%s%s\n", fence, strings.TrimSpace(language+" "+path), text, fence)
}
