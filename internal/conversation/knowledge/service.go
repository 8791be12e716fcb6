// Package knowledge builds, opens, searches, changes and describes knowledge bases as the configuration and agents say. A
// [Service] knows where they are and what builds them; package rag is what they are.
package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"loki/internal/agent"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/process/tempdir"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/postgres"
	"loki/internal/knowledge/rag/source"
	"loki/internal/knowledge/rag/sqlite"
	"loki/internal/llm/catalog"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/setup/config"
)

// Service builds, opens, searches, changes and describes the knowledge bases that the user has and agents declare.
type Service struct {
	Config  *config.Config
	Paths   config.Paths
	Catalog *catalog.Catalog
	Models  rag.Models
	Loader  func() *input.Loader
	Hide    func(text string) string // hides secrets
	Retry   retry.Policy             // of requests of builds and searches
	Trusted func(of agent.Agent) bool
	StandIn bool // another model answers in place of all
	Playing bool // a cassette is played, which has what was found
	Pool    *Pool
}

// Library returns the named knowledge bases.
func (s *Service) Library() rag.Library {
	return rag.Library{Dir: s.Paths.RAGsDir, TempDir: s.Pool.temps.path(), Store: s.storeAt}
}

// Temporary returns a name for a knowledge base that is kept in a file until the app is closed.
func (s *Service) Temporary() (name string, err error) { return s.Pool.temps.name() }

// temps are the temporary knowledge bases of a process. The zero temps has none and is ready.
type temps struct {
	mu   sync.Mutex
	dir  string // "" before the first; guarded by mu
	last int    // number of the one that was named last; guarded by mu
}

// path returns the directory that they are in, "" for none.
func (t *temps) path() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dir
}

// name returns a new name, and makes the directory if there is none.
func (t *temps) name() (name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == "" {
		if t.dir, err = tempdir.Make("", "rag"); err != nil {
			return "", fault.Wrap(fault.Failure, err, "making a place for a temporary knowledge base")
		}
	}
	t.last++
	if t.last == 1 {
		return rag.TempPrefix, nil
	}
	return rag.TempPrefix + strconv.Itoa(t.last), nil
}

// remove removes all of them.
func (t *temps) remove() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == "" {
		return nil
	}
	defer func() { t.dir = "" }()
	return os.RemoveAll(t.dir)
}

// storeAt returns the place of the knowledge base whose file is, or would be, file: with rag_store, it is in a
// database under the path of the file, unless it is temporary.
func (s *Service) storeAt(file string) (rag.Store, error) {
	temporary := filepath.Dir(file) == s.Pool.temps.path()
	if s.Config.RAGStore == nil || *s.Config.RAGStore == "" || temporary {
		return sqlite.New(file), nil
	}
	address, err := s.Config.Expand("rag_store", *s.Config.RAGStore)
	if err != nil {
		return nil, err
	}
	return postgres.New(address, s.nameIn(file))
}

// nameIn returns the name in a database of the knowledge base whose file would be file.
func (s *Service) nameIn(file string) string {
	name := strings.TrimSuffix(config.Absolute(file), rag.Extension)
	if rel, err := filepath.Rel(config.Absolute(s.Paths.ConfigDir), name); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	return filepath.ToSlash(name)
}

// Names returns the names of the knowledge bases that [Service.Open] opens, ascending: with
// rag_store those in the database.
func (s *Service) Names(ctx context.Context) ([]string, error) {
	store, err := s.storeAt(filepath.Join(s.Paths.RAGsDir, rag.Extension))
	if err != nil {
		return nil, err
	}
	database, ok := store.(interface {
		Names(ctx context.Context) ([]string, error)
	})
	if !ok {
		return s.Library().Names()
	}
	stored, err := database.Names(ctx)
	var names []string
	for _, name := range stored {
		if file, err := s.Library().File(path.Base(name)); err == nil && s.nameIn(file) == name { // those of agents are elsewhere
			names = append(names, path.Base(name))
		}
	}
	return names, err
}

// Builder returns what builds knowledge bases. Its events go to events; a nil budget bounds nothing.
func (s *Service) Builder(events event.Scope, budget engine.Budget) *rag.Builder {
	return &rag.Builder{
		Models: s.Models, Source: s.loaderOfBases(),
		Retry: s.Retry, Budget: budget, Events: events,
	}
}

// loaderOfBases returns what finds the documents of knowledge bases.
func (s *Service) loaderOfBases() *source.Loader {
	return &source.Loader{Input: s.Loader(), Retry: s.Retry}
}

// New returns the settings of a knowledge base that is about to be built: those of set, else
// those of the configuration, else what the user says at a terminal, else the defaults. Fields of
// set that are zero are not set. ChunkOverlap is not set if it is negative, or if it and ChunkSize are 0. If no
// embedding model is named, and the user cannot be asked, it is that of the program with fallback,
// and otherwise an error with code Config.
func (s *Service) New(ctx context.Context, events event.Scope, asker ask.Asker, set rag.Settings, fallback bool) (rag.Settings, error) {
	cfg := s.Config
	q := quiz{asker: asker, asks: asker != nil && ask.AtTerminal(asker)}
	if set.ChunkOverlap == 0 && set.ChunkSize == 0 {
		set.ChunkOverlap = -1
	}
	configured := *cmp.Or(cfg.RAGEmbeddingModel, new(""))
	switch {
	case set.EmbeddingModel != "":
	case configured != "":
		set.EmbeddingModel = configured
	case q.asks:
		set.EmbeddingModel = q.model(ctx, s)
	case fallback:
		set.EmbeddingModel = rag.HashModel
		text := "no embedding model is configured: using " + set.EmbeddingModel + ", which compares words, not meanings. rag_embedding_model chooses another one"
		if err := events.Emit(ctx, event.Warning{Text: text, Once: true}); err != nil {
			return set, err
		}
	default:
		return set, fault.New(fault.Config, "no embedding model is configured").WithHint("set rag_embedding_model in %s: %s", cfg.File, strings.Join(s.Catalog.ListIDs(catalog.Embedding), ", "))
	}
	if q.err != nil {
		return set, q.err
	}
	m, err := s.Models.Embedder(ctx, set.EmbeddingModel)
	if err != nil {
		return set, err
	}
	if !m.StandsIn {
		set.EmbeddingModel = m.ID
	}
	defaults := rag.Defaults(m)
	if set.ChunkSize == 0 {
		set.ChunkSize = q.number(ctx, "Chunk size, in characters", cfg.RAGChunkSize, defaults.ChunkSize, rag.CheckChunkSize)
	}
	if set.ChunkOverlap < 0 {
		set.ChunkOverlap = q.number(ctx, "Overlap of chunks, in characters", cfg.RAGChunkOverlap, rag.DefaultOverlap(set.ChunkSize), func(int) error { return nil })
	}
	set.TopK = cmp.Or(set.TopK, cfg.RAGTopK, defaults.TopK)
	set.RerankerModel = cmp.Or(set.RerankerModel, *cmp.Or(cfg.RAGRerankerModel, new("")))
	set.Threshold = cmp.Or(set.Threshold, *cmp.Or(cfg.RAGThreshold, new(0.)))
	if set.RerankerModel != "" && q.err == nil {
		m, err := s.Models.Reranker(ctx, set.RerankerModel)
		if err != nil {
			return set, err
		}
		set.RerankerModel = m.ID
	}
	return set, cmp.Or(q.err, rag.CheckChunkSize(set.ChunkSize), set.Validate())
}

// quiz asks the user about settings, up to the first question that is not answered.
type quiz struct {
	asker ask.Asker
	asks  bool // the user is at a terminal
	err   error
}

func (q *quiz) ask(ctx context.Context, question ask.Question) string {
	if q.err != nil {
		return ""
	}
	answer, err := q.asker.Ask(ctx, question)
	q.err = err
	return answer
}

// model returns the embedding model that the user chooses. The default is that of the program, which is always there.
func (q *quiz) model(ctx context.Context, s *Service) string {
	var options []string
	for _, id := range s.Catalog.ListIDs(catalog.Embedding) {
		m, err := s.Catalog.Resolve(id, catalog.Embedding)
		if err != nil {
			continue
		}
		about := m.Description()
		if m.ID() == rag.HashModel {
			about = "compares words, not meanings; offline"
		}
		options = append(options, id+" "+about)
	}
	chosen, _, _ := strings.Cut(q.ask(ctx, ask.Question{Kind: ask.Select, Text: "Which embedding model?", Options: options, Default: options[0], HasDefault: true}), " ")
	return chosen
}

// number returns the configured number, else what the user says and check has no error for, else the default.
func (q *quiz) number(ctx context.Context, text string, configured *int, otherwise int, check func(int) error) int {
	if configured != nil {
		return *configured
	}
	if !q.asks {
		return otherwise
	}
	answer := q.ask(ctx, ask.Question{Kind: ask.Line, Text: text, Default: strconv.Itoa(otherwise), HasDefault: true, Validate: func(answer string) error {
		n, err := strconv.Atoi(answer)
		if err != nil || n < 0 {
			return errors.New("a whole number is needed")
		}
		return check(n)
	}})
	n, err := strconv.Atoi(answer)
	if err != nil && q.err == nil {
		q.err = err
	}
	return n
}

// Open opens the knowledge base called name for as long as the caller needs it. All users of it
// in the process share it. One of an older version is rebuilt. The error has code NotFound if there
// is none.
func (s *Service) Open(ctx context.Context, events event.Scope, name string) (b *rag.Base, release func(), err error) {
	file, err := s.Library().File(name)
	if err != nil {
		return nil, nil, err
	}
	b, release, err = s.open(ctx, events, place{name, file})
	if _, old := os.Stat(rag.OldFile(file)); old != nil && fault.CodeOf(err) == fault.NotFound {
		err = s.Library().NotBuiltError(name)
	}
	return b, release, err
}

// place is where a knowledge base is.
type place struct {
	name string // for messages
	file string
}

// open opens the knowledge base at a place. One of an older version, which has a YAML file in
// its stead, is rebuilt from the sources in it.
func (s *Service) open(ctx context.Context, events event.Scope, p place) (*rag.Base, func(), error) {
	b, release, err := s.Pool.acquire(ctx, s, p)
	if fault.CodeOf(err) != fault.NotFound {
		return b, release, err
	}
	old := rag.OldFile(p.file)
	set, oldErr := rag.ReadOld(old)
	if oldErr != nil {
		if errors.Is(oldErr, fs.ErrNotExist) || filepath.Dir(p.file) != s.Paths.RAGsDir { // where a file of that name is something else
			oldErr = err
		}
		return nil, nil, oldErr
	}
	if err := events.Emit(ctx, event.Warning{Text: fmt.Sprintf("%s is a knowledge base of an older version: it is built anew as %s, and the old file stays", old, p.file), Once: true}); err != nil {
		return nil, nil, err
	}
	if err := s.buildBase(ctx, events, nil, p, set); err != nil {
		return nil, nil, err
	}
	return s.Pool.acquire(ctx, s, p)
}

// buildBase builds or syncs the knowledge base at a place.
func (s *Service) buildBase(ctx context.Context, events event.Scope, budget engine.Budget, p place, set rag.Settings) error {
	store, err := s.storeAt(p.file)
	if err == nil {
		_, err = s.Builder(events, budget).Build(ctx, p.name, store, set)
	}
	return err
}

// searcher is a knowledge base as questions and nodes search it.
type searcher struct {
	name  string
	open  func(ctx context.Context) (b *rag.Base, release func(), err error) // for each search
	retry retry.Policy
	topK  int // 0 leaves it to the base

	reranker *string // id, "" for none; nil leaves it to the base
}

// Name implements [rag.Searcher].
func (k searcher) Name() string { return k.name }

// Search implements [rag.Searcher].
func (k searcher) Search(ctx context.Context, q rag.Query) (rag.Found, error) {
	base, release, err := k.open(ctx)
	if err != nil {
		return rag.Found{}, err
	}
	defer release()
	q.Retry = k.retry
	set := base.Settings()
	set.TopK = cmp.Or(k.topK, set.TopK)
	set.RerankerModel = *cmp.Or(k.reranker, &set.RerankerModel)
	q.Settings = &set
	return base.Search(ctx, q)
}

// openAlready is the open of a searcher whose knowledge base is open already.
func openAlready(b *rag.Base) func(context.Context) (*rag.Base, func(), error) {
	return func(context.Context) (*rag.Base, func(), error) { return b, func() {}, nil }
}

// openNothing is the open of a searcher while a cassette is played, which has what was found.
func openNothing(context.Context) (*rag.Base, func(), error) {
	return nil, nil, fault.New(fault.Failure, "knowledge bases are not searched while a cassette is played")
}
