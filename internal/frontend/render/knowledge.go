package render

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"loki/internal/frontend/render/markdown"
	"loki/internal/llm/event"
)

// buildKey is the key of the live line of a build.
func buildKey(base string) taskKey { return taskKey{node: "indexing " + base} }

// build returns the live line of the build of a knowledge base, nil if it has none.
func (n *Narrator) build(base string) *task { return n.screen.task(buildKey(base)) }

// indexStarted begins the live line of a build. Elsewhere a line says that it begins.
func (n *Narrator) indexStarted(b event.IndexStarted) {
	n.screen.begin(&task{key: buildKey(b.Base), since: n.screen.o.Now()})
	base := "knowledge base " + oneLine(b.Base, nameLimit)
	switch {
	case b.Resumed:
		n.say(dim, base+": resumes the interrupted build")
	case !n.screen.o.Terminal:
		n.say(dim, base+": building with "+oneLine(b.Model, nameLimit))
	}
}

func (n *Narrator) indexProgress(b event.IndexProgress) {
	t := n.build(b.Base)
	if t == nil {
		return
	}
	t.done, t.total, t.left = b.Done, b.Total, b.Left
	var notes []string
	if b.Chunks > 0 {
		notes = append(notes, count(b.Chunks, "chunk"))
	}
	notes = append(notes, embeddingUsage(b.Usage)...)
	if b.Kept > 0 {
		notes = append(notes, Thousands(b.Kept)+" kept")
	}
	t.note = strings.Join(notes, ", ")
}

// remainingText writes an estimated time: 7s, 1m05s, 2h03m.
func remainingText(d time.Duration) string {
	if d < time.Minute {
		return strconv.Itoa(max(1, int(d.Round(time.Second)/time.Second))) + "s"
	}
	return elapsedText(d)
}

// indexFinished sums a build up. Why one failed is the error of its caller.
func (n *Narrator) indexFinished(b event.IndexFinished) {
	if t := n.build(b.Base); t != nil {
		n.screen.end(t)
	}
	if b.Error == "" {
		n.say(dim, "knowledge base "+oneLine(b.Base, nameLimit)+": "+indexText(b))
	}
	if n.o.Verbose == 0 {
		return
	}
	for _, path := range b.PassedOver {
		n.say(dim, "skipped, not text, too large, or a link out of the directory: "+oneLine(path, nameLimit))
	}
	if more := b.Passed - len(b.PassedOver); more > 0 && len(b.PassedOver) > 0 {
		n.say(dim, "skipped: "+Thousands(more)+" more")
	}
}

// indexText returns what a knowledge base has after a build, and what the build did.
func indexText(b event.IndexFinished) string {
	var did []string
	for _, part := range []struct {
		n    int
		what string
	}{{b.Added, "added"}, {b.Kept, "kept"}, {b.Removed, "removed"}, {b.Passed, "skipped"}, {b.Failed, "failed"}} {
		if part.n > 0 {
			did = append(did, Thousands(part.n)+" "+part.what)
		}
	}
	if b.Added+b.Removed+b.Failed == 0 {
		did = []string{"nothing has changed"}
	}
	text := fmt.Sprintf("%s, %s (%s) in %s", count(b.Files, "document"), count(b.Chunks, "chunk"), strings.Join(did, ", "), duration(b.Duration))
	return strings.Join(append([]string{text}, embeddingUsage(b.Usage)...), ", ")
}

func (n *Narrator) showRetrieved(ev event.Event, b event.Retrieved) {
	if n.o.Verbose > 0 {
		n.say(dim, n.subject(ev)+fmt.Sprintf("%s of %s found in %s", count(len(b.Sources), "passage"), oneLine(b.Base, nameLimit), duration(b.Duration)))
	}
}

// SourceOptions say how the passages are listed that an answer was given from.
type SourceOptions struct {
	Dir      string // paths are relative to it where that is shorter
	Host     string // in addresses of files
	Scores   bool
	Terminal Capabilities
}

// Sources lists where passages come from, a line for each: number, path, lines. A place that several
// passages have is listed once. The numbers are those by which models know the places. Where the
// terminal can follow them, they are links.
func (o SourceOptions) Sources(passages []event.Passage) []string {
	var list []string
	seen := make(map[string]bool)
	for _, p := range passages {
		where := p.Path + placeIn(p)
		if seen[where] {
			continue
		}
		seen[where] = true
		line := fmt.Sprintf("%2d. ", len(list)+1) + o.link(p, oneLine(o.relative(p.Path), nameLimit)+placeIn(p))
		if o.Scores {
			line += fmt.Sprintf(" (%.3f)", p.Score)
		}
		list = append(list, line)
	}
	return list
}

// placeIn writes the lines of a passage, ":12-40" or ":12", or its pages, ", page 3" or ", pages 3-4"; "" if it has neither.
func placeIn(p event.Passage) string {
	switch {
	case p.Page > 0 && p.LastPage <= p.Page:
		return fmt.Sprintf(", page %d", p.Page)
	case p.Page > 0:
		return fmt.Sprintf(", pages %d-%d", p.Page, p.LastPage)
	case p.Start == 0:
		return ""
	case p.End <= p.Start:
		return ":" + strconv.Itoa(p.Start)
	}
	return ":" + strconv.Itoa(p.Start) + "-" + strconv.Itoa(p.End)
}

// relative returns the shorter one of a path and the way to it from o.Dir.
func (o SourceOptions) relative(path string) string {
	if !filepath.IsAbs(path) || o.Dir == "" {
		return path
	}
	if rel, err := filepath.Rel(o.Dir, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}

// link returns text as a link to a passage, if the terminal has links and the passage an address.
func (o SourceOptions) link(p event.Passage, text string) string {
	to := p.Path
	switch {
	case !o.Terminal.Hyperlinks:
		return text
	case filepath.IsAbs(to):
		path := filepath.ToSlash(to)
		if !strings.HasPrefix(path, "/") { // C:/notes
			path = "/" + path
		}
		u := url.URL{Scheme: "file", Host: o.Host, Path: path}
		if o.Terminal.LineAnchors && p.Start > 0 {
			u.Fragment = strconv.Itoa(p.Start)
		}
		to = u.String()
	case !markdown.Linkable(to):
		return text
	}
	return string(markdown.AppendLink(nil, to)) + text + markdown.LinkEnd
}
