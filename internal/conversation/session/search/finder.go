package search

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"loki/internal/base/text"
	"loki/internal/conversation/session"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// Kinds of what a search finds.
const (
	FoundSession = "session"
	FoundRun     = "run"
)

// Hit is a session or run that was found.
type Hit struct {
	Kind  string // FoundSession or FoundRun
	ID    string
	Agent string // whose session it is; the agent of a run; "" for none
	Open  string // the command that opens it
	Result
}

// Finder finds the sessions of all agents and of none, and the runs on record.
type Finder struct {
	Path     string // of the index, see [Index]
	Sessions func() (session.Store, error)
	Scopes   func() ([]session.Scope, error) // of sessions
	Runs     func() (run.Store, error)       // the caller closes it
}

// Find looks for a text, and returns the best of what has it, at most limit.
func (f *Finder) Find(ctx context.Context, query string, limit int) (list []Hit, of Found, err error) {
	runs, err := f.Runs()
	if err != nil {
		return nil, of, err
	}
	defer func() { err = errors.Join(err, runs.Close()) }()
	x := f.index()
	sessions := &sessionSource{finder: f}
	x.Sources = []Source{sessions, &runSource{store: runs}}
	x.Skipped = func(key string, err error) { event.Warn(ctx, fmt.Errorf("%s is left out of the search: %w", key, err)) }
	if of, err = x.Search(ctx, query, limit); err != nil {
		return nil, of, err
	}
	for _, r := range of.Results {
		kind, rest, _ := strings.Cut(r.Key, "/")
		hit := Hit{Kind: kind, ID: rest, Result: r}
		if kind == FoundSession {
			hit.Agent, hit.ID, _ = strings.Cut(rest, "/")
			name := cmp.Or(sessions.aliases[r.Key], hit.ID)
			hit.Name = name
			hit.Open = "loki -s " + text.Word(name)
			if hit.Agent != "" {
				hit.Open = "loki -a " + text.Word(hit.Agent) + " -s " + text.Word(name)
			}
		} else {
			hit.Agent, hit.Open = r.Name, "loki --run "+hit.ID
		}
		list = append(list, hit)
	}
	return list, of, nil
}

// Forget takes a session that was deleted out of the index.
func (f *Finder) Forget(ctx context.Context, scope session.Scope, id session.ID) error {
	return f.index().Forget(ctx, sessionKey(scope, id))
}

func (f *Finder) index() *Index { return &Index{Path: f.Path} }

func sessionKey(scope session.Scope, id session.ID) string {
	return FoundSession + "/" + string(scope) + "/" + string(id)
}

// sessionLogs is what a store of sessions has for those who follow them.
type sessionLogs interface {
	session.Store
	Log(ctx context.Context, scope session.Scope, id session.ID, offset int64) ([]byte, error)
}

// sessionSource are the sessions of all agents and of none.
type sessionSource struct {
	finder  *Finder
	aliases map[string]string // names by key
}

func (s *sessionSource) store() (sessionLogs, error) {
	store, err := s.finder.Sessions()
	if err != nil {
		return nil, err
	}
	logs, ok := store.(sessionLogs)
	if !ok {
		return nil, errors.New("the sessions are not in files")
	}
	return logs, nil
}

// List implements [Source].
func (s *sessionSource) List(ctx context.Context, _ map[string]string) (docs []Document, err error) {
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	scopes, err := s.finder.Scopes()
	if err != nil {
		return nil, err
	}
	s.aliases = make(map[string]string)
	for _, scope := range scopes {
		list, err := store.List(ctx, scope)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			key := sessionKey(scope, m.ID)
			s.aliases[key] = string(m.Alias)
			docs = append(docs, Document{
				Key: key, Stamp: fmt.Sprint(m.Modified.UnixNano(), " ", m.Size, " ", m.Alias), Name: string(m.Alias), At: m.Modified,
			})
		}
	}
	return docs, nil
}

// maxSearched is how much of one text is searched, in bytes. What tools return may be longer.
const maxSearched = 256 << 10

// Read implements [Source].
func (s *sessionSource) Read(ctx context.Context, key string, cursor []byte) (c Change, err error) {
	store, err := s.store()
	if err != nil {
		return c, err
	}
	parts := strings.Split(key, "/")
	scope, id := session.Scope(parts[1]), session.ID(parts[2])
	var f session.Follower
	if cursor != nil {
		if err := json.Unmarshal(cursor, &f); err != nil {
			return c, err
		}
	} else {
		c.Drop = -1
	}
	log, err := store.Log(ctx, scope, id, f.Offset)
	if err != nil {
		return c, err
	}
	for _, said := range f.Follow(log) {
		fresh := min(said.Drop, len(c.Add))
		c.Add = c.Add[:len(c.Add)-fresh]
		if c.Drop >= 0 {
			c.Drop += said.Drop - fresh
		}
		for _, m := range said.Messages {
			c.Add = append(c.Add, Text{Role: string(m.Role), At: said.At, Body: searchText(m)})
		}
	}
	c.Cursor, err = json.Marshal(f)
	return c, err
}

// searchText returns what a message says.
func searchText(m chat.Message) string {
	body := m.Text()
	for _, call := range m.ToolCalls {
		body += "\n" + call.Name + " " + call.Arguments
	}
	return text.Cut(strings.TrimSpace(body), maxSearched)
}

// runSource are the runs on record.
type runSource struct{ store run.Store }

// mostDescribed is how many changed runs are described one by one. Of more, all are listed.
const mostDescribed = 200

// List implements [Source]. It describes the runs that have changed; to describe all takes seconds for tens of thousands.
func (s *runSource) List(ctx context.Context, known map[string]string) (docs []Document, err error) {
	stamper, ok := s.store.(run.Stamper)
	if !ok {
		return s.describeAll(ctx, nil)
	}
	stamps, err := stamper.Stamps(ctx)
	if err != nil {
		return nil, err
	}
	var changed []string
	for id, stamp := range stamps {
		if key := FoundRun + "/" + id; known[key] == stamp {
			docs = append(docs, Document{Key: key, Stamp: stamp})
		} else {
			changed = append(changed, id)
		}
	}
	if len(changed) > mostDescribed {
		return s.describeAll(ctx, stamps)
	}
	for _, id := range changed {
		info, err := s.store.Info(ctx, id)
		if err != nil { // it was deleted meanwhile, or is damaged
			continue
		}
		docs = append(docs, describeRun(info, stamps))
	}
	return docs, ctx.Err()
}

// describeAll returns all runs as documents, those of stamps with these.
func (s *runSource) describeAll(ctx context.Context, stamps map[string]string) (docs []Document, err error) {
	infos, err := s.store.Runs(ctx, run.Query{})
	for _, i := range infos {
		if !i.Damaged {
			docs = append(docs, describeRun(i, stamps))
		}
	}
	return docs, err
}

func describeRun(i run.Info, stamps map[string]string) Document {
	name := i.Agent
	if name == string(i.Kind) { // a chat without a role
		name = ""
	}
	stamp := cmp.Or(stamps[i.ID], run.Stamp(i.Status, i.Updated.UnixNano()))
	return Document{Key: FoundRun + "/" + i.ID, Stamp: stamp, Name: name, At: i.Updated}
}

// Read implements [Source]. A run that has changed is read as a whole.
func (s *runSource) Read(ctx context.Context, key string, _ []byte) (c Change, err error) {
	h, err := s.store.History(ctx, strings.TrimPrefix(key, FoundRun+"/"))
	if err != nil {
		return c, err
	}
	c.Drop = -1
	add := func(role, body string, at time.Time) {
		if body = strings.TrimSpace(body); body != "" && (len(c.Add) == 0 || c.Add[len(c.Add)-1].Body != body) {
			c.Add = append(c.Add, Text{Role: role, At: at, Body: text.Cut(body, maxSearched)})
		}
	}
	add("prompt", h.Info.Prompt, h.Info.Started)
	var nodes []string
	for _, v := range h.Visits {
		if !slices.Contains(nodes, v.Node) {
			nodes = append(nodes, v.Node)
		}
	}
	add("nodes", strings.Join(nodes, " "), h.Info.Started)
	for _, raw := range h.Events {
		var e struct {
			Type string    `json:"type"`
			Text string    `json:"text"`
			Time time.Time `json:"time"`
		}
		if json.Unmarshal(raw, &e) == nil && (e.Type == "question" || e.Type == "answer" || e.Type == "reply") {
			add(e.Type, e.Text, e.Time)
		}
	}
	for _, p := range h.Pending {
		add("question", p.Text, p.Asked)
	}
	add("output", h.Info.Output, h.Info.Updated)
	add("error", h.Info.Error, h.Info.Updated)
	return c, nil
}
