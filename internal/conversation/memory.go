package conversation

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"loki/internal/agent/memory"
	"loki/internal/base/process/sandbox"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/tool"
)

// Memory is what conversations remember, and what they may write.
type Memory struct {
	Of         func(owner *auth.Owner) *memory.Store // the facts of who owns a conversation, nil for who uses the program
	Place      func(scope string) memory.Place       // for the scope of an agent, "" for none
	Mode       chat.Memory                           // of conversations that have no other
	Off        bool                                  // of all conversations, whatever their mode is
	Tokens     int                                   // of what is recalled for a question
	TrustsPath func(path string) bool                // the user trusts what is in a file, given as an absolute path
	TrustsTool func(name string) bool                // a tool of an MCP server is trusted
}

// memoryRecord is what the memory gives a question, for the record.
type memoryRecord struct {
	Mode  chat.Memory        `json:"mode"`
	Text  string             `json:"text,omitempty"`
	Facts []event.MemoryFact `json:"facts,omitempty"`
}

// keeping is what the model does with the memory while a question is answered.
type keeping struct {
	mu        sync.Mutex
	untrusted string             // what the question has read that others wrote; "" for nothing
	proposed  []event.MemoryFact // that the user has to decide about
}

// memoryMode returns what the model of the question may do with the memory.
func (t *turn) memoryMode() chat.Memory {
	c := t.c
	own := t.q.Settings.Memory
	if c.agent != nil {
		own = cmp.Or(c.tuned.Memory, c.agent.InForce.Memory)
	}
	mode := cmp.Or(c.options.Memory, own)
	if mode == "" && t.kit.Calling && t.calls && (c.agent != nil || t.seesFiles()) {
		mode = c.service.Memory.Mode
	}
	if m := c.options.Member; m != nil && m.Parent != nil && mode == chat.MemoryWrite {
		mode = chat.MemoryPropose
	}
	return mode
}

// recall finds what the memory has for a question. A resumed question has it on record.
func (t *turn) recall(ctx context.Context) {
	m := t.c.service.Memory
	if t.resumed != nil || t.q.Aside || t.q.Command || t.q.Code || m == nil || m.Off {
		return
	}
	mode := t.memoryMode()
	if t.q.Memory = nil; mode == "" || mode == chat.MemoryOff {
		return
	}
	r := t.facts(ctx).Recall(t.c.context(ctx), m.Place(string(t.c.Scope())), cmp.Or(t.q.Text, t.q.User.Text()), m.Tokens)
	t.q.Memory = &memoryRecord{Mode: mode, Text: r.Text}
	for _, f := range r.Facts {
		t.q.Memory.Facts = append(t.q.Memory.Facts, memoryFact(f))
	}
}

// facts returns what is remembered for who asks.
func (t *turn) facts(ctx context.Context) *memory.Store {
	return t.c.service.Memory.Of(cmp.Or(t.c.options.Owner, auth.OwnerOf(ctx)))
}

func memoryFact(f memory.Fact) event.MemoryFact {
	return event.MemoryFact{ID: f.ID, Scope: f.Scope, Title: f.Title}
}

// noteSources notes where the question, and what was found for it, came from.
func (t *turn) noteSources() {
	if t.c.service.Memory == nil {
		return
	}
	for _, source := range t.q.Sources {
		t.readFile(source)
	}
	for _, what := range t.q.Foreign {
		t.read(what)
	}
	if t.kit.Knowledge != nil {
		for _, hit := range t.c.found.Hits {
			if strings.Contains(hit.Path, "://") {
				t.read(hit.Path)
			}
		}
	}
	if a := t.c.agent; a != nil {
		t.readFile(a.Dir)
	}
}

// remind puts what the memory has for a question in front of it, in the messages of the request only.
func (t *turn) remind(ctx context.Context) error {
	t.noteSources()
	m := t.q.Memory
	if m == nil || m.Text == "" {
		return nil
	}
	for i := len(t.req.Messages) - 1; i >= 0; i-- {
		if t.req.Messages[i].Question() {
			asked := t.req.Messages[i]
			asked.Parts = append([]chat.Part{{Type: chat.TextPart, Text: m.Text + "\n"}}, asked.Parts...)
			t.req.Messages[i] = asked
			break
		}
	}
	return t.rc.Events.Emit(ctx, event.Memory{Action: "recalled", Facts: m.Facts})
}

// memoryTools returns the tools by which the model of the question uses the memory.
func (t *turn) memoryTools(ctx context.Context) []tool.Tool {
	m := t.c.service.Memory
	if t.q.Memory == nil || m == nil || !t.kit.Calling || !t.calls && t.c.agent == nil {
		return nil
	}
	o := memory.Options{
		Store: t.facts(ctx), Place: m.Place(string(t.c.Scope())), Mode: t.q.Memory.Mode, Source: memory.Source{Model: t.model},
		Untrusted: t.untrustedSources, Wrote: t.wrote,
	}
	if s := t.c.session; s != nil {
		o.Source.Session = cmp.Or(string(s.Alias()), string(s.ID()))
	}
	return memory.Tools(o)
}

// wrote reports what the model wrote into the memory. Proposals are counted at the end.
func (t *turn) wrote(ctx context.Context, action string, f memory.Fact) error {
	if action != memory.Proposed {
		return event.FromContext(ctx).Emit(ctx, event.Memory{Action: action, Facts: []event.MemoryFact{memoryFact(f)}})
	}
	t.keeping.mu.Lock()
	defer t.keeping.mu.Unlock()
	t.keeping.proposed = append(t.keeping.proposed, memoryFact(f))
	return nil
}

// countProposals reports what the model has proposed to remember.
func (t *turn) countProposals(ctx context.Context) {
	t.keeping.mu.Lock()
	defer t.keeping.mu.Unlock()
	if n := len(t.keeping.proposed); n > 0 {
		_ = t.rc.Events.Emit(ctx, event.Memory{Action: memory.Proposed, Facts: t.keeping.proposed}) // they are kept if it cannot be shown
		t.keeping.proposed = nil
	}
}

// reads notes what a call brings into the conversation, see [tool.Options].
func (t *turn) reads(call tool.Call, paths []string) {
	m := t.c.service.Memory
	files, program := strings.HasPrefix(call.Name, "fs_"), strings.HasPrefix(call.Name, "execute_")
	confined := call.Sandbox.Level == sandbox.Read || call.Sandbox.Level == sandbox.Write
	switch {
	case memory.Safe(call.Name), m.TrustsTool(call.Name):
	case files, program && confined:
		if program || len(paths) == 0 {
			paths = append(paths[:len(paths):len(paths)], ".")
		}
		for _, path := range paths {
			t.readFile(path)
		}
	default:
		t.read(call.Name)
	}
}

// readFile notes that a file is part of the conversation, or what is at an address.
func (t *turn) readFile(path string) {
	full, err := filepath.Abs(path)
	if strings.Contains(path, "://") || err != nil {
		t.read(path)
	} else if !t.c.service.Memory.TrustsPath(full) {
		t.read(full + ", which is in no directory that the user trusts")
	}
}

// read notes that the conversation has read what others wrote.
func (t *turn) read(what string) {
	if home, err := os.UserHomeDir(); err == nil {
		what = strings.ReplaceAll(what, home+string(filepath.Separator), "~/")
	}
	t.keeping.mu.Lock()
	defer t.keeping.mu.Unlock()
	if t.keeping.untrusted != "" {
		return
	}
	t.keeping.untrusted = strings.Join(strings.Fields(what), " ")
	if s := t.c.session; s != nil && !t.q.Aside {
		s.Sync(func(s *session.Settings) { s.Untrusted = t.keeping.untrusted })
	}
}

// untrustedSources returns what the conversation has read that others wrote, "" for nothing.
func (t *turn) untrustedSources() string {
	if s := t.c.session; s != nil {
		if what := s.Settings().Untrusted; what != "" {
			return what
		}
	}
	for _, m := range t.q.History {
		if m.Role == chat.ToolRole {
			return "results of tools"
		}
	}
	t.keeping.mu.Lock()
	defer t.keeping.mu.Unlock()
	return t.keeping.untrusted
}
