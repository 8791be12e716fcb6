package knowledge

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/agent"
	"loki/internal/agent/node"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/source"
	"loki/internal/llm/catalog"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// agentBase is a knowledge base of an agent: that of its documents, or that of a rag node.
type agentBase struct {
	place
	of   agent.Agent
	node *graph.Member // nil for that of the agent's documents
	set  rag.Settings  // what the definition says; see [Service.New]
}

// agentBases returns the knowledge bases that an agent declares. The error, with code Config, is
// about a source.
func (s *Service) agentBases(of agent.Agent) ([]agentBase, error) {
	paths := s.Paths.Agent(of.Name)
	paths.Dir = of.Dir
	var list []agentBase
	add := func(b agentBase, documents []string) error {
		b.of = of
		for _, d := range documents {
			stored, err := s.DocumentAt(of.Dir, d)
			if err != nil {
				return fault.Wrap(fault.Config, err, "%s", b)
			}
			if !slices.Contains(b.set.Documents, stored) { // a build lists each once, too
				b.set.Documents = append(b.set.Documents, stored)
			}
		}
		list = append(list, b)
		return nil
	}
	if of.Graph == nil {
		own := agentBase{place: place{name: of.Name, file: s.standInBase(paths.RAGFile())}, set: rag.Settings{ChunkOverlap: -1}}
		return list, add(own, of.InForce.Documents)
	}
	for n := range of.Graph.All() {
		if n.RAG == nil {
			continue
		}
		b := agentBase{place: place{name: of.Name + "/" + n.Name, file: s.standInBase(paths.NodeRAGFile(strings.ReplaceAll(n.Name, "/", "%2F")))}, node: &n, set: rag.Settings{
			EmbeddingModel: n.RAG.EmbeddingModel, RerankerModel: n.RAG.RerankerModel, TopK: n.RAG.TopK,
			ChunkSize: *cmp.Or(n.RAG.ChunkSize, new(0)), ChunkOverlap: *cmp.Or(n.RAG.ChunkOverlap, new(-1)),
		}}
		if err := add(b, n.RAG.Documents); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// String names the knowledge base for messages.
func (b agentBase) String() string {
	if b.node == nil {
		return "agent " + b.of.Name
	}
	return fmt.Sprintf("agent %s, node %q", b.of.Name, b.node.Name)
}

// rebuild returns the command that builds the knowledge bases of the agent.
func (b agentBase) rebuild() string { return "loki -a " + text.Word(b.of.Arg) + " --rebuild-rag" }

// Unbuilt calls f for each knowledge base of an agent that is not there and is not built without a question: with its node, nil for
// that of the agent's documents, and how to build it. A database is not asked, and sources that are wrong are left out.
func (s *Service) Unbuilt(of agent.Agent, f func(n *graph.Member, hint string)) {
	list, err := s.agentBases(of)
	if err != nil || s.Config.RAGStore != nil {
		return
	}
	for _, b := range list {
		if _, err := os.Stat(b.file); !errors.Is(err, fs.ErrNotExist) || b.specified() || len(b.set.Documents) == 0 {
			continue
		}
		hint := "build it: " + b.rebuild()
		if b.node != nil {
			hint += "; or set embedding_model, chunk_size and chunk_overlap, so that it is built unasked"
		}
		f(b.node, hint)
	}
}

// specified reports whether the node says all that a build needs, so that nothing is asked.
func (b agentBase) specified() bool {
	return b.node != nil && b.node.RAG.EmbeddingModel != "" && b.node.RAG.ChunkSize != nil && b.node.RAG.ChunkOverlap != nil
}

// DocumentAt returns a source of an agent's definition as it is stored. A path is relative to the
// agent's directory, and does not lead out of it.
func (s *Service) DocumentAt(dir, document string) (string, error) {
	l := &source.Loader{Input: s.Loader()}
	l.Input.Dir = dir
	path, prefix := document, ""
	if name, rest, _ := strings.Cut(document, ":"); l.Input.Serves(document) {
		if path, prefix = rest, name+":"; strings.Contains(rest, "://") {
			return document, nil
		}
	}
	if !strings.Contains(path, "://") && !filepath.IsAbs(path) && slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") {
		return "", fault.New(fault.Config, "the document %q leads out of the agent's directory", document).
			WithHint("put it below %s, or write its absolute path", dir)
	}
	stored, err := l.Absolute(path)
	return prefix + stored, err
}

// limit returns the budget of the agent for a build, nil for none.
func (b agentBase) limit() engine.Budget {
	limit, in := b.of.InForce.Budget, "budget in "
	if b.of.Graph != nil {
		limit, in = b.of.Graph.Settings.Budget, "settings.budget in "
	}
	if budget := run.NewBudget(limit, chat.Usage{}); budget != nil {
		return budget.SetIn(in + b.of.Definition.File)
	}
	return nil
}

// find opens the knowledge base, and warns if its definition says something else by now, which it
// does if another model answers in place of all: then the agent may be a copy as well. The error has
// code NotFound if it was not built.
func (s *Service) find(ctx context.Context, events event.Scope, b agentBase) (*rag.Base, func(), error) {
	base, release, err := s.open(ctx, events, b.place)
	if err != nil {
		return nil, nil, err
	}
	if what := s.differs(b, base.Settings()); what != "" && !s.StandIn {
		warning := fmt.Sprintf("%s: %s changed since the knowledge base was built, which is used as it is; build it again: %s", b, what, b.rebuild())
		if err := events.Emit(ctx, event.Warning{Text: warning, Once: true}); err != nil {
			release()
			return nil, nil, err
		}
	}
	return base, release, nil
}

// differs names the first setting of a definition that its knowledge base does not have, "" for none.
func (s *Service) differs(b agentBase, is rag.Settings) string {
	other := func(id, stored string, of catalog.Type) bool { // stored is a full id
		if m, err := s.Catalog.Resolve(id, of); err == nil {
			id = m.ID()
		}
		return id != stored
	}
	switch {
	case len(b.set.Documents) > 0 && !slices.Equal(b.set.Documents, is.Documents):
		return "documents"
	case b.set.EmbeddingModel != "" && other(b.set.EmbeddingModel, is.EmbeddingModel, catalog.Embedding):
		return "embedding_model"
	case b.set.ChunkSize > 0 && b.set.ChunkSize != is.ChunkSize:
		return "chunk_size"
	case b.set.ChunkOverlap >= 0 && b.set.ChunkOverlap != is.ChunkOverlap:
		return "chunk_overlap"
	case b.set.RerankerModel != "" && other(b.set.RerankerModel, is.RerankerModel, catalog.Reranker):
		return "reranker_model"
	}
	return ""
}

// ready sees to it that the knowledge base exists. It builds one that does not if its node says all
// that a build needs, or if the user, at a terminal, wants it. It returns false if the knowledge base
// does not exist and the user did not want it built, or cannot be asked.
func (s *Service) ready(ctx context.Context, events event.Scope, b agentBase, asker ask.Asker) (built bool, err error) {
	_, release, err := s.find(ctx, events, b)
	if err == nil {
		release()
		return true, nil
	}
	if fault.CodeOf(err) != fault.NotFound {
		return false, err
	}
	if !s.Trusted(b.of) { // a build reads what the definition names, and may fetch it
		event.Warn(ctx, trust.Refusal(b.of, "the knowledge base was not built"))
		return false, nil
	}
	if !b.specified() {
		if asker == nil || !ask.AtTerminal(asker) {
			return false, nil
		}
		answer, err := asker.Ask(ctx, ask.Question{
			Kind: ask.Select, Text: fmt.Sprintf("The knowledge base of %s was not built yet. Build it now?", b),
			Options: []string{"yes", "no"}, Default: "yes", HasDefault: true,
		})
		if err != nil || answer != "yes" {
			return false, err
		}
	}
	set, err := s.New(ctx, events, asker, b.set, false)
	if err != nil {
		return false, fault.Wrap(fault.CodeOf(err), err, "the knowledge base of %s", b).WithHint("%s", fault.HintOf(err))
	}
	return true, s.build(ctx, events, b, set, false)
}

// build builds the knowledge base. Other runs, also of other processes, wait for it; one that waited
// does not build it again, unless anew is set.
func (s *Service) build(ctx context.Context, events event.Scope, b agentBase, set rag.Settings, anew bool) error {
	if !s.Trusted(b.of) {
		return trust.Refusal(b.of, "the knowledge base was not built")
	}
	if len(set.Documents) == 0 {
		return fault.New(fault.Config, "%s lists no documents", b).WithHint("list files, directories or addresses under documents")
	}
	if b.node != nil && b.node.RAG.BatchSize != nil {
		if err := events.Emit(ctx, event.Warning{Text: fmt.Sprintf("%s: batch_size has no effect anymore and can be left out: max_batch_size of the embedding model counts", b), Once: true}); err != nil {
			return err
		}
	}
	unlock, err := atomicfile.Lock(ctx, b.file+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if !anew {
		if _, release, err := s.Pool.acquire(ctx, s, b.place); err == nil {
			release()
			return nil
		}
	}
	if err := s.buildBase(ctx, events, b.limit(), b.place, set); err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "building the knowledge base of %s", b).WithHint("%s", fault.HintOf(err))
	}
	return nil
}

// ReadyBases sees to it that the knowledge bases of a graph's nodes exist. The error has code Config
// if one was not built and cannot be.
func (s *Service) ReadyBases(ctx context.Context, events event.Scope, of agent.Agent, asker ask.Asker) error {
	if s.Playing {
		return nil
	}
	list, err := s.agentBases(of)
	if err != nil {
		return err
	}
	for _, b := range list {
		if err := s.need(ctx, events, b, asker); err != nil {
			return err
		}
	}
	return nil
}

// need is ready for a knowledge base that a node cannot do without.
func (s *Service) need(ctx context.Context, events event.Scope, b agentBase, asker ask.Asker) error {
	built, err := s.ready(ctx, events, b, asker)
	if err == nil && !built {
		err = fault.New(fault.Config, "%s: the knowledge base was not built yet", b).
			WithHint("build it: %s; or set embedding_model, chunk_size and chunk_overlap of the node, so that it is built unasked", b.rebuild())
	}
	return err
}

// NodeBases opens the knowledge bases of a graph's nodes for as long as the run needs them. If the run
// resumes from its record, one that cannot be opened is looked for when a search is not on record.
func (s *Service) NodeBases(ctx context.Context, events event.Scope, of agent.Agent, asker ask.Asker, recorded bool) (open map[string]node.Knowledge, release func(), err error) {
	open = make(map[string]node.Knowledge)
	var releases []func()
	release = func() {
		for _, done := range releases {
			done()
		}
	}
	list, err := s.agentBases(of)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range list {
		if s.Playing {
			open[b.node.Name] = node.Knowledge{Searcher: searcher{name: b.name, open: openNothing}}
			continue
		}
		base, done, err := s.find(ctx, events, b)
		if err != nil && recorded && ctx.Err() == nil {
			searched := searcher{name: b.name, retry: s.Retry, topK: b.node.RAG.TopK, open: func(ctx context.Context) (*rag.Base, func(), error) {
				if err := s.need(ctx, events, b, asker); err != nil {
					return nil, nil, err
				}
				return s.open(ctx, events, b.place)
			}}
			open[b.node.Name] = node.Knowledge{Searcher: searched, Version: rand.Text()} // results of another are not its own
			continue
		}
		if err != nil {
			release()
			return nil, nil, err
		}
		releases = append(releases, done)
		k := searcher{name: b.name, open: openAlready(base), retry: s.Retry, topK: b.node.RAG.TopK}
		open[b.node.Name] = node.Knowledge{Searcher: k, Version: fmt.Sprintf("%d %d %+v", base.Stats().Built.UnixNano(), k.topK, base.Settings())}
	}
	return open, release, nil
}

// Searcher returns the knowledge base that a question is answered from, nil for none: that which the
// user named, or that of the agent. One that the agent has not built yet is left out with a warning,
// unless the user wants it.
func (s *Service) Searcher(ctx context.Context, w conversation.Wanted) (_ rag.Searcher, release func(), err error) {
	ctx = event.NewContext(ctx, w.Events)
	none := func() {}
	k := searcher{name: w.Knowledge, retry: s.Retry, topK: w.TopK, reranker: w.Reranker}
	k.open = func(ctx context.Context) (*rag.Base, func(), error) { return s.Open(ctx, w.Events, w.Knowledge) }
	if w.Agent != nil {
		k.name, k.open = w.Agent.Name, func(ctx context.Context) (*rag.Base, func(), error) {
			return s.OpenOf(ctx, w.Events, w.Agent.Agent, "")
		}
	}
	switch {
	case w.Agent == nil && w.Knowledge == "", s.Playing && w.Agent != nil && len(w.Agent.InForce.Documents) == 0:
		return nil, none, nil
	case s.Playing:
		k.open = openNothing
		return k, none, nil
	case w.Recorded: // it is opened if what was found is not on record: until then it may be gone
		return k, none, nil
	case w.Agent == nil:
		base, release, err := k.open(ctx)
		if err != nil {
			return nil, none, err
		}
		k.open = openAlready(base)
		return k, release, nil
	}
	list, err := s.agentBases(w.Agent.Agent)
	if err != nil {
		return nil, none, err
	}
	own := list[0]
	if len(own.set.Documents) > 0 {
		built, err := s.ready(ctx, w.Events, own, w.Asker)
		if err == nil && !built {
			warning := fmt.Sprintf("%s lists documents, but its knowledge base was not built yet, so they are not searched; build it: %s", own, own.rebuild())
			err = w.Events.Emit(ctx, event.Warning{Text: warning, Once: true})
		}
		if err != nil || !built {
			return nil, none, err
		}
	}
	base, release, err := s.open(ctx, w.Events, own.place)
	if fault.CodeOf(err) == fault.NotFound { // it never had one
		return nil, none, nil
	}
	if err != nil {
		return nil, none, err
	}
	k.open = openAlready(base)
	return k, release, nil
}

// OpenOf opens a knowledge base of an agent, as [Service.Open] does: that of its documents, or
// that of the rag node called id. Without an id it is the only one of a graph.
func (s *Service) OpenOf(ctx context.Context, events event.Scope, of agent.Agent, id string) (*rag.Base, func(), error) {
	list, err := s.agentBases(of)
	if err != nil {
		return nil, nil, err
	}
	b, err := choose(list, of, id)
	if err != nil {
		return nil, nil, err
	}
	base, release, err := s.find(ctx, events, b)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil, fault.New(fault.NotFound, "%s has no knowledge base yet", b).WithHint("build it: %s", b.rebuild())
	}
	return base, release, err
}

// choose returns the knowledge base of the rag node called id, and without an id the only one.
func choose(list []agentBase, of agent.Agent, id string) (agentBase, error) {
	var ids []string
	for _, b := range list {
		if b.node == nil && id == "" || b.node != nil && b.node.ID == id {
			return b, nil
		}
		if b.node != nil {
			ids = append(ids, b.node.ID)
		}
	}
	switch {
	case len(ids) == 0 && of.Graph == nil:
		return agentBase{}, fault.New(fault.NotFound, "agent %s is not a graph, so it has no node %q", of.Name, id).WithHint("the knowledge base of its documents: -a %s", text.Word(of.Arg))
	case len(ids) == 0:
		return agentBase{}, fault.New(fault.Usage, "agent %s has no knowledge base: its graph has no rag node", of.Name)
	case id == "" && len(ids) == 1:
		return list[0], nil
	case id == "":
		return agentBase{}, fault.New(fault.Usage, "agent %s has %d knowledge bases, and one is searched at a time", of.Name, len(ids)).
			WithHint("name the node behind the agent: -a %s; the rag nodes are %s", text.Word(of.Arg+"/"+ids[0]), strings.Join(ids, ", "))
	}
	hint := "its rag nodes are " + strings.Join(ids, ", ")
	if near := yamldoc.Nearest(id, ids); near != "" {
		hint = "did you mean " + near + "?"
	}
	return agentBase{}, fault.New(fault.NotFound, "agent %s has no rag node %q", of.Name, id).WithHint("%s", hint)
}

// Rebuild builds the knowledge bases that an agent declares, without questions: existing ones keep
// the settings that the definition does not mention.
func (s *Service) Rebuild(ctx context.Context, of agent.Agent, events event.Scope) error {
	ctx = event.NewContext(ctx, events)
	list, err := s.agentBases(of)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(b agentBase) bool { return b.node == nil && len(b.set.Documents) == 0 })
	if len(list) == 0 {
		return fault.New(fault.Usage, "agent %s has no knowledge base: it lists neither documents nor rag nodes", of.Name)
	}
	for _, b := range list {
		set := b.set
		if base, release, err := s.open(ctx, events, b.place); err == nil {
			set = b.over(base.Settings())
			release()
		} else if fault.CodeOf(err) != fault.NotFound {
			return err
		}
		if set, err = s.New(ctx, events, nil, set, true); err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "the knowledge base of %s", b).WithHint("%s", fault.HintOf(err))
		}
		if err := s.build(ctx, events, b, set, true); err != nil {
			return err
		}
	}
	return nil
}

// over returns the settings of the definition over those of a knowledge base.
func (b agentBase) over(s rag.Settings) rag.Settings {
	s.Documents = b.set.Documents
	s.EmbeddingModel = cmp.Or(b.set.EmbeddingModel, s.EmbeddingModel)
	s.RerankerModel = cmp.Or(b.set.RerankerModel, s.RerankerModel)
	s.TopK = cmp.Or(b.set.TopK, s.TopK)
	if b.set.ChunkSize > 0 {
		s.ChunkSize, s.ChunkOverlap = b.set.ChunkSize, -1
	}
	if b.set.ChunkOverlap >= 0 {
		s.ChunkOverlap = b.set.ChunkOverlap
	}
	return s
}

// standInBase returns the file of a knowledge base of an agent while another model answers in place
// of all: the file itself if it is there, or else one apart from those of the agent's own models.
func (s *Service) standInBase(file string) string {
	if _, err := os.Stat(file); err == nil || !s.StandIn {
		return file
	}
	sum := sha256.Sum256([]byte(filepath.Dir(file)))
	return filepath.Join(s.Paths.StateDir, "knowledge", hex.EncodeToString(sum[:8]), filepath.Base(file))
}
