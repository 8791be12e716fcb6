// Package export makes a document of a conversation, to keep or to show to others: Markdown, or a page of HTML that is one
// file, loads nothing and runs nothing.
package export

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/conversation/session/plan"
	"loki/internal/frontend/render"
	"loki/internal/llm/chat"
	"loki/internal/llm/event/redact"
)

// The formats of documents.
const (
	Markdown = "md"
	HTML     = "html"
)

// Formats returns the formats of documents.
func Formats() []string { return []string{Markdown, HTML} }

// FormatOf returns the format of a file by the ending of its name.
func FormatOf(file string) string {
	if lower := strings.ToLower(file); strings.HasSuffix(lower, ".html") || strings.HasSuffix(lower, ".htm") {
		return HTML
	}
	return Markdown
}

// maxPicture is how many bytes a picture has at most that is part of a document.
const maxPicture = 5 << 20

// Talk is a conversation.
type Talk struct {
	Title   string
	Facts   [][2]string // names and values, below the title
	Entries []Entry
	Usage   chat.Usage
}

// Entry is a message of a conversation.
type Entry struct {
	chat.Message
	By string // what said it, such as the node of a graph; "" for the model itself
}

// Options say how a document is made.
type Options struct {
	Format    string                   // "" is Markdown
	Reasoning bool                     // show it, too
	Hide      func(text string) string // returns a text without secrets that are known
}

// ContentType returns the type of a document in a format.
func ContentType(format string) string {
	if format == HTML {
		return "text/html; charset=utf-8"
	}
	return "text/markdown; charset=utf-8"
}

// Document returns the document of a conversation. It is an error with code Usage if nothing was said.
func Document(t Talk, o Options) ([]byte, error) {
	d := document{title: o.displayText(t.Title), sections: o.sections(t.Entries)}
	if len(d.sections) == 0 {
		return nil, fault.New(fault.Usage, "%s has no messages, so there is nothing to export", t.Title)
	}
	for _, f := range append(t.Facts, [2]string{"used", usage(t.Usage)}) {
		if f[1] != "" {
			d.facts = append(d.facts, [2]string{f[0], o.displayText(f[1])})
		}
	}
	if o.Format == HTML {
		return d.html(), nil
	}
	return d.markdown(), nil
}

// Write writes a document to a file that only its owner can read. It is an error with code Usage if the file is there already.
func Write(file string, doc []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, atomicfile.Private)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Usage, "%s is there already, so nothing was written", text.Visible(file)).WithHint("remove it first, or name another file")
	}
	if err == nil {
		_, err = f.Write(doc)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fault.Wrap(fault.Usage, err, "the document was not written")
	}
	return nil
}

// usage returns what a conversation used in words, "" if that is not known.
func usage(u chat.Usage) string {
	if u.Total() == 0 {
		return ""
	}
	used := fmt.Sprintf("%s in, %s out", text.Count(u.InputTokens, "token"), text.Count(u.OutputTokens, "token"))
	if cost := render.Dollars(u); cost != "" {
		used += ", " + cost
	}
	return used
}

// document is a conversation that is ready to be written: without secrets and without characters that control what is shown.
type document struct {
	title    string
	facts    [][2]string
	sections []section
}

// section is what one party says.
type section struct {
	role  chat.Role
	who   string
	parts []part
}

// part is a piece of a section.
type part struct {
	fold string // what is shown of a part that is folded; "" for one that is not
	text string
	code bool   // text is code, and no Markdown
	lang string // of code
	url  string // of a picture
}

// sections returns the messages as they are shown. Instructions of a system are not part of what was said.
func (o Options) sections(entries []Entry) (list []section) {
	results := make(map[string][]chat.Message) // by the call, in order
	called := make(map[string]int)
	for _, e := range entries {
		if e.Role == chat.ToolRole {
			results[e.ToolCallID] = append(results[e.ToolCallID], e.Message)
		}
		for _, c := range e.ToolCalls {
			called[c.ID]++
		}
	}
	for _, e := range entries {
		s := section{role: e.Role, who: o.who(e)}
		switch {
		case e.Role == chat.System, e.Role == chat.ToolRole && called[e.ToolCallID] > 0:
			continue
		case e.Role == chat.ToolRole:
			s.role = chat.Assistant
			s.parts = o.call(chat.ToolCall{Name: e.ToolName}, []chat.Message{e.Message})
		default:
			s.parts = o.messageParts(e.Message)
		}
		for _, c := range e.ToolCalls {
			answers := results[c.ID]
			if called[c.ID] > 1 && len(answers) > 0 { // ids that were used again: each call has the next result
				answers, results[c.ID] = answers[:1], answers[1:]
			}
			s.parts = append(s.parts, o.call(c, answers)...)
		}
		if n := len(list); n > 0 && list[n-1].role == chat.Assistant && list[n-1].role == s.role && list[n-1].who == s.who {
			list[n-1].parts = append(list[n-1].parts, s.parts...)
		} else if len(s.parts) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// who returns the heading of an entry.
func (o Options) who(e Entry) string {
	switch {
	case e.Role == chat.User && e.Continuation:
		return "Loki"
	case e.Role == chat.User:
		return "User"
	case e.By != "":
		return "Assistant: " + o.line(e.By)
	}
	return "Assistant"
}

// messageParts returns the parts of a message itself.
func (o Options) messageParts(m chat.Message) (list []part) {
	for _, p := range m.Parts {
		shown := o.displayText(p.Text)
		switch {
		case p.Type == chat.ImagePart:
			list = append(list, o.picture(p.URL))
		case strings.TrimSpace(shown) == "":
		case p.Type == chat.TextPart:
			list = append(list, part{text: shown, code: m.Role == chat.User})
		case p.Type == chat.ReasoningPart && o.Reasoning:
			list = append(list, part{fold: "Reasoning", text: shown, code: true})
		}
	}
	return list
}

// call returns the parts of a call of a tool with its results.
func (o Options) call(c chat.ToolCall, answers []chat.Message) (list []part) {
	if c.Name == plan.Tool {
		answer := ""
		if len(answers) > 0 {
			answer = answers[0].Text()
		}
		if told := plan.DescribeCall(c.Arguments, answer); told != "" {
			return []part{{text: o.displayText(told)}}
		}
	}
	name := o.line(c.Name)
	if args := o.displayText(c.Arguments); strings.TrimSpace(args) != "" {
		list = append(list, part{fold: name + " " + text.OneLine(args, 80), text: args, code: true, lang: "json"})
	}
	for _, m := range answers {
		fold := "result of " + name
		if m.Failed {
			fold = "failed: " + name
		}
		if answer := o.displayText(m.Text()); answer != "" {
			list = append(list, part{fold: fold, text: answer, code: true})
		}
		for _, p := range m.Parts {
			if p.Type == chat.ImagePart {
				list = append(list, o.picture(p.URL))
			}
		}
	}
	return list
}

// raster finds pictures that are no programs, as SVG can be.
var raster = text.Regexp(`^data:image/(?:png|jpeg|gif|webp);base64,`)

// picture returns a picture. One that is elsewhere is named only: to show it is to ask another host for it.
func (o Options) picture(url string) part {
	head := raster().FindString(url)
	if head == "" {
		if strings.HasPrefix(url, "data:") {
			return part{text: "(a picture of a type that is not shown)", code: true}
		}
		return part{text: "(picture: " + o.line(url) + ")", code: true}
	}
	data, err := base64.StdEncoding.DecodeString(url[len(head):])
	switch {
	case err != nil:
		return part{text: "(a picture that cannot be read)", code: true}
	case len(data) > maxPicture:
		return part{text: fmt.Sprintf("(a picture of %.1f MiB is left out)", float64(len(data))/(1<<20)), code: true}
	}
	return part{url: head + base64.StdEncoding.EncodeToString(data)}
}

// line returns a text on one line, as shown has it.
func (o Options) line(s string) string { return text.OneLine(o.displayText(s), 200) }

// displayText returns a text without secrets, and with nothing in it that controls how it is shown.
func (o Options) displayText(s string) string {
	if o.Hide != nil {
		s = o.Hide(s)
	}
	s = redact.MaskAddresses(s)
	for _, kind := range secrets {
		s = kind.pattern().ReplaceAllString(s, "***"+kind.name+"***")
	}
	return text.Printable(s)
}

// secrets are what keys look like that the configuration does not have, such as those in a file that a tool has read.
var secrets = []struct {
	name    string
	pattern func() *regexp.Regexp
}{
	{"PRIVATE_KEY", text.Regexp(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)},
	{"JWT", text.Regexp(`\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}`)},
	{"KEY", text.Regexp(`\b(?:sk-[\w-]{20,}|[sr]k_live_\w{16,}|gh[oprsu]_\w{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}|xox[abeoprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}|AIza[\w-]{35})`)},
}
