package graph

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
)

// Fingerprint returns 16 hexadecimal digits that are the same for definitions that
// make runs take the same course: nodes with their edges, templates and policies,
// models and tools, reducers, initial state, variables, sandboxes, and on_failure.
//
// It does not change with comments, formatting, the order of nodes, names and
// descriptions, conversation starters, and defaults that are written out. Nor does it
// change with what only bounds or records a run as a whole (the other settings), so that
// a run that used up its budget can resume with a larger one. What is not in the
// definition, such as the text of a script, is not looked at.
func Fingerprint(g *Graph) string {
	h := sha256.New()
	put := func(text string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		h.Write(size[:])
		h.Write([]byte(text))
	}
	put("graph " + Version)
	for _, a := range topAspects(g) {
		put(a.path)
		put(a.text)
	}
	for _, n := range byID(g) {
		put("nodes." + n.ID)
		for _, a := range nodeMeaning(n) {
			put(a.path)
			put(a.text)
		}
		if n.Sub != nil {
			put("graph " + Fingerprint(n.Sub.Graph))
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Diff says in what old and next differ, one line for each difference, for people. It
// is empty exactly if both have the same [Fingerprint].
func Diff(old, next *Graph) []string { return diff("", old, next) }

// diff is [Diff] with a prefix for all paths.
func diff(prefix string, old, next *Graph) []string {
	lines := changes(prefix, topAspects(old), topAspects(next))
	for _, n := range old.Nodes {
		if next.Node(n.ID) == nil {
			lines = append(lines, fmt.Sprintf("%snodes.%s (%s) was removed", prefix, n.ID, n.Type))
		}
	}
	for _, n := range next.Nodes {
		before := old.Node(n.ID)
		switch {
		case before == nil:
			lines = append(lines, fmt.Sprintf("%snodes.%s (%s) was added", prefix, n.ID, n.Type))
		case before.Type != n.Type:
			lines = append(lines, fmt.Sprintf("%snodes.%s.type changed from %s to %s", prefix, n.ID, before.Type, n.Type))
		default:
			lines = append(lines, changes(prefix+"nodes."+n.ID+".", nodeMeaning(before), nodeMeaning(n))...)
			if n.Sub != nil {
				lines = append(lines, diff(prefix+"nodes."+n.ID+".", before.Sub.Graph, n.Sub.Graph)...)
			}
		}
	}
	return lines
}

// longest is the number of bytes up to which a difference shows the two texts.
const longest = 80

// changes compares two lists that are sorted by path.
func changes(prefix string, old, next []aspect) []string {
	var lines []string
	for len(old) > 0 || len(next) > 0 {
		order := 0
		switch {
		case len(old) == 0:
			order = 1
		case len(next) == 0:
			order = -1
		default:
			order = byPath(old[0], next[0])
		}
		switch {
		case order < 0:
			lines = append(lines, prefix+old[0].path+" was removed")
			old = old[1:]
			continue
		case order > 0:
			lines = append(lines, prefix+next[0].path+" was added")
			next = next[1:]
			continue
		case old[0].text == next[0].text:
		case len(old[0].text) <= longest && len(next[0].text) <= longest:
			lines = append(lines, fmt.Sprintf("%s%s changed from %s to %s", prefix, old[0].path, old[0].text, next[0].text))
		default:
			lines = append(lines, prefix+old[0].path+" changed")
		}
		old, next = old[1:], next[1:]
	}
	return lines
}

// byID returns the nodes ascending by id.
func byID(g *Graph) []*Node {
	return slices.SortedFunc(slices.Values(g.Nodes), func(a, b *Node) int { return strings.Compare(a.ID, b.ID) })
}

// aspect is something about a graph or node that bears on runs. What is not set, such
// as a node without fallback, has no aspect.
type aspect struct {
	path string // as in the definition
	text string // the value; equal texts mean the same
}

func byPath(a, b aspect) int { return cmp.Compare(a.path, b.path) }

// aspects collects what is set.
type aspects []aspect

func (l *aspects) add(path, text string) { *l = append(*l, aspect{path, text}) }

func (l *aspects) text(path, text string) {
	if text != "" {
		l.add(path, strconv.Quote(text))
	}
}

func (l *aspects) template(path string, t *Template) {
	if t != nil {
		l.add(path, strconv.Quote(t.Source))
	}
}

// texts adds a list; nil and a list without elements differ.
func (l *aspects) texts(path string, list []string) {
	if list != nil {
		l.add(path, fmt.Sprintf("%q", list))
	}
}

func (l *aspects) float(path string, f *float64) {
	if f != nil {
		l.add(path, strconv.FormatFloat(*f, 'g', -1, 64))
	}
}

func (l *aspects) int(path string, i *int) {
	if i != nil {
		l.add(path, strconv.Itoa(*i))
	}
}

func (l *aspects) sandbox(d sandbox.Declaration) { l.text("sandbox", d.String()) }

func (l *aspects) span(path string, d time.Duration) { l.add(path, seconds(d)) }

func (l *aspects) value(path string, v *value.Value) {
	if v != nil {
		l.add(path, v.String())
	}
}

// topAspects returns the aspects of g except its nodes, by path.
func topAspects(g *Graph) aspects {
	var l aspects
	l.text("start", g.Start)
	l.text("model", g.Model)
	l.text("default_model", g.DefaultModel)
	l.float("temperature", g.Temperature)
	l.float("top_p", g.TopP)
	l.text("reasoning_effort", string(g.Effort))
	for _, list := range []struct {
		path  string
		items []string
	}{{"global_tools", g.GlobalTools}, {"mcp_servers", g.MCPServers}, {"environment", g.Environment}} {
		if len(list.items) > 0 { // an empty list is the default
			l.texts(list.path, list.items)
		}
	}
	l.sandbox(g.Sandbox)
	for _, v := range g.Variables {
		text := "required"
		if v.Default != nil {
			text = strconv.Quote(*v.Default)
		}
		l.add("variables."+v.Name, text)
	}
	for i, h := range g.Hooks {
		h.Where = "" // comments move it
		l.add("hooks["+strconv.Itoa(i)+"]", fmt.Sprintf("%#v", h))
	}
	policy := FailContinue
	if g.Settings.FailureWritten {
		policy = g.Settings.OnFailure
	}
	l.text("settings.on_failure", string(policy))
	for key, v := range g.InitialState.All() {
		l.initial(g.Schema, key, v)
	}
	l.state(g.Schema)
	for key, reducer := range g.Reducers {
		l.add("reducers."+key, string(reducer))
	}
	slices.SortStableFunc(l, byPath)
	return l
}

// nodeMeaning returns the aspects of n, by path.
func nodeMeaning(n *Node) aspects {
	var l aspects
	l.text("type", string(n.Type))
	if n.HasNext && n.Choices["next"] == nil {
		l.add("next", fmt.Sprintf("%q", n.Next))
	}
	for place, c := range n.choices {
		l.add(place, c.text())
	}
	switch n.Join { // the words are the ones in recorded fingerprints
	case JoinEach:
		l.text("join", "any")
	case JoinAny:
		l.text("join", "any, and the others are canceled")
	default:
		l.text("join", n.Join.String())
	}
	if n.Defer {
		l.add("defer", "true")
	}
	if n.HasUpdates {
		l.add("state_updates", updatesText(n.Updates))
	}
	if n.HasTimeout {
		l.span("timeout", n.Timeout)
	}
	l.template("expires", n.Expires)
	if n.Choices["fallback"] == nil {
		l.text("fallback", n.Fallback)
	}
	l.text("compensate", n.Compensate)
	if r := n.Retry; r != nil {
		l.add("retry", fmt.Sprintf("%d attempts, backoff %s x %g up to %s, jitter %g", r.Attempts, seconds(r.Backoff), r.Factor, seconds(r.MaxBackoff), r.Jitter))
	}
	l.text("on_uncertain", string(n.OnUncertain))
	if n.Cache != nil {
		l.span("cache.ttl", n.Cache.TTL)
		l.template("cache.key", n.Cache.Key)
	}
	l.sandbox(n.Sandbox)
	l.typeFields(n)
	slices.SortStableFunc(l, byPath)
	return l
}

// typeFields adds the fields of the type of n.
func (l *aspects) typeFields(n *Node) {
	switch {
	case n.Agent != nil:
		l.text("agent", n.Agent.Agent)
		l.template("prompt", &n.Agent.Prompt)
		l.value("output_schema", n.Agent.OutputSchema)
		if w := n.Agent.Worktree; w != nil {
			l.value("worktree", &w.Written)
		}
		l.text("skills", n.Agent.Skills)
	case n.Script != nil:
		l.text("script", n.Script.Script)
	case n.Approval != nil:
		l.template("question", &n.Approval.Question)
		l.texts("options", n.Approval.Options)
		for _, r := range n.Approval.Routes {
			if n.Choices[r.place()] == nil {
				l.add(r.place(), strconv.Quote(r.Target))
			}
		}
		if n.Choices["on_other"] == nil {
			l.text("on_other", n.Approval.OnOther)
		}
		l.template("default", n.Approval.Default)
		l.texts("assignees", n.Approval.Assignees)
	case n.Input != nil:
		l.template("question", &n.Input.Question)
		l.template("default", n.Input.Default)
		l.text("validation", n.Input.Validation)
		l.texts("assignees", n.Input.Assignees)
	case n.LLM != nil:
		l.llm(n.LLM)
	case n.RAG != nil:
		l.rag(n.RAG)
	case n.Map != nil:
		l.template("over", &n.Map.Over)
		l.text("as", n.Map.As)
		l.text("branch", n.Map.Branch)
		l.text("output_key", n.Map.OutputKey)
		l.text("collect_into", n.Map.CollectInto)
		if n.Map.HasMaxConcurrency {
			l.int("max_concurrency", &n.Map.MaxConcurrency)
		}
		l.items(n.Map)
	case n.Sub != nil:
		l.sub(n.Sub)
	case n.Tool != nil:
		l.tool(n.Tool)
	case n.Wait != nil:
		l.wait(n.Wait)
	case n.End != nil:
		l.template("output", &n.End.Output)
	}
}

func (l *aspects) llm(m *LLM) {
	l.template("prompt", &m.Prompt)
	l.template("instructions", m.Instructions)
	l.texts("tools", m.Tools)
	l.text("skills", m.Skills)
	l.text("memory", string(m.Memory))
	l.text("model", m.Model)
	l.float("temperature", m.Temperature)
	l.float("top_p", m.TopP)
	l.text("reasoning_effort", string(m.Effort))
	l.int("max_attempts", &m.MaxAttempts)
	l.int("max_iterations", &m.MaxIterations)
	l.value("output_schema", m.OutputSchema)
}

func (l *aspects) rag(r *RAG) {
	l.texts("documents", r.Documents)
	l.template("query", &r.Query)
	if r.TopK > 0 {
		l.int("top_k", &r.TopK)
	}
	l.text("embedding_model", r.EmbeddingModel)
	l.text("reranker_model", r.RerankerModel)
	l.int("chunk_size", r.ChunkSize)
	l.int("chunk_overlap", r.ChunkOverlap)
	l.int("batch_size", r.BatchSize)
}

// items adds what a map says of its items.
func (l *aspects) items(m *Map) {
	if m.Batch > 0 {
		l.int("batch", &m.Batch)
	}
	if m.OnError != ItemsFail {
		l.text("on_error", string(m.OnError))
	}
	if m.MinSuccess != nil {
		l.add("min_success", m.MinSuccess.String())
	}
	if m.ItemIf != nil {
		l.text("item_if", m.ItemIf.String())
	}
	if m.Enough != nil {
		l.text("enough", m.Enough.String())
	}
}

// updatesText writes state_updates in their order, which matters.
func updatesText(updates []Update) string {
	parts := make([]string, len(updates))
	for i, u := range updates {
		parts[i] = fmt.Sprintf("%q: %q", u.Key, u.Template.Source)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
