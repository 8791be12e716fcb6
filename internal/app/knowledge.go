package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/ask"
	"loki/internal/catalog"
	"loki/internal/chat"
	"loki/internal/config"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/process/tempdir"
	"loki/internal/provider"
	"loki/internal/rag"
	"loki/internal/rag/postgres"
	"loki/internal/rag/source"
	"loki/internal/rag/sqlite"
	"loki/internal/retry"
)

// Embedder implements [rag.Models]: the default model is the one that is configured, else that of the
// program. If another model answers in place of all, it is that of the program.
func (a *App) Embedder(_ context.Context, id string) (rag.Embedder, error) {
	id = cmp.Or(id, *cmp.Or(a.Config.RAGEmbeddingModel, new("")), rag.HashModel)
	standsIn := a.standIn != "" && id != rag.HashModel
	if standsIn {
		id = rag.HashModel
	}
	m, err := a.knowledgeModel(id, catalog.Embedding)
	if err != nil {
		return rag.Embedder{}, err
	}
	p, err := a.connect(m.Client)
	if err != nil {
		return rag.Embedder{}, err
	}
	embedder, ok := p.(provider.Embedder)
	if !ok {
		return rag.Embedder{}, a.unable(m)
	}
	return rag.Embedder{
		ID: m.ID(), Name: m.Name, Embedder: hintedEmbedder{embedder, a.hinted(m), a.meterFor(m)}, Cost: a.cost(m),
		MaxTokens: m.MaxInputTokens, MaxBatch: m.MaxBatchSize, ChunkSize: m.DefaultChunkSize, StandsIn: standsIn,
	}, nil
}

// Reranker implements [rag.Models]. If another model answers in place of all, passages keep their order.
func (a *App) Reranker(_ context.Context, id string) (rag.Reranker, error) {
	if a.standIn != "" {
		return rag.Reranker{ID: id, Name: id, Reranker: unordered{}}, nil
	}
	m, err := a.knowledgeModel(id, catalog.Reranker)
	if err != nil {
		return rag.Reranker{}, err
	}
	p, err := a.connect(m.Client)
	if err != nil {
		return rag.Reranker{}, err
	}
	reranker, ok := p.(provider.Reranker)
	if !ok {
		return rag.Reranker{}, a.unable(m)
	}
	return rag.Reranker{ID: m.ID(), Name: m.Name, Reranker: hintedReranker{reranker, a.hinted(m), a.meterFor(m)}, Cost: a.cost(m)}, nil
}

// knowledgeModel returns the model of a type that knowledge bases need. The hint of the error lists
// those of the type.
func (a *App) knowledgeModel(id string, of catalog.Type) (catalog.Model, error) {
	m, err := a.Catalog.Resolve(id, of)
	if err == nil {
		return m, nil
	}
	ids := a.modelIDs(of)
	list := fmt.Sprintf("there are no %s models: add one to a client in %s", of, a.Config.File)
	if len(ids) > 0 {
		list = fmt.Sprintf("%s models: %s", of, strings.Join(ids, ", "))
	}
	if hint := fault.HintOf(err); hint != "" && len(ids) > 0 {
		list = hint + "; " + list
	}
	return m, fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", list)
}

// modelIDs lists the models of a type, those of the program first.
func (a *App) modelIDs(of catalog.Type) []string {
	ids := a.Catalog.IDs(of)
	own := func(id string) bool { return strings.HasPrefix(id, config.TypeBuiltin+":") }
	others := slices.DeleteFunc(slices.Clone(ids), own)
	return append(slices.DeleteFunc(ids, func(id string) bool { return !own(id) }), others...)
}

// unable is the error for a model whose client cannot do what its type says.
func (a *App) unable(m catalog.Model) error {
	return fault.New(fault.Config, "client %s, of type %s, has no %s models, so %s cannot be used", m.Client, m.ClientType, m.Type, m.ID()).
		WithHint("%s models: %s", m.Type, strings.Join(a.modelIDs(m.Type), ", "))
}

// cost returns what adds the price to a usage of a model, nil for one that costs nothing.
func (a *App) cost(m catalog.Model) func(chat.Usage) chat.Usage {
	if m.ClientType == catalog.Builtin || m.InputPrice == nil && a.Config.Client(m.Client).Local() {
		return nil
	}
	return func(u chat.Usage) chat.Usage {
		usd, known := m.Cost(u)
		if !known {
			usd = 0
		}
		u.Cost, u.CostUnknown = usd, !known
		return u
	}
}

// hinted returns what adds a hint to the errors of a model's provider.
func (a *App) hinted(m catalog.Model) func(error) error {
	client := a.Config.Client(m.Client)
	return func(err error) error {
		if err == nil || client.Type == config.TypeBuiltin || fault.HintOf(err) != "" {
			return err
		}
		if hint := a.advice(client, "", err); hint != "" {
			return fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", hint)
		}
		return err
	}
}

// hintedEmbedder adds hints to errors, and records what was used.
type hintedEmbedder struct {
	provider.Embedder
	hint  func(error) error
	meter func(chat.Usage)
}

// Embed implements [provider.Embedder].
func (h hintedEmbedder) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	vectors, used, err := h.Embedder.Embed(ctx, req)
	h.meter(used)
	return vectors, used, h.hint(err)
}

// hintedReranker adds hints to errors, and records what was used.
type hintedReranker struct {
	provider.Reranker
	hint  func(error) error
	meter func(chat.Usage)
}

// Rerank implements [provider.Reranker].
func (h hintedReranker) Rerank(ctx context.Context, req provider.RerankRequest) ([]provider.Ranked, chat.Usage, error) {
	ranked, used, err := h.Reranker.Rerank(ctx, req)
	h.meter(used)
	return ranked, used, h.hint(err)
}

// embeddingTries is the variable with how often a request of a build or a search is made at most.
const embeddingTries = "LOKI_EMBEDDINGS_RETRY_LIMIT"

// knowledgeRetry says when requests for knowledge bases are made again.
func (a *App) knowledgeRetry() retry.Policy {
	tries, err := strconv.Atoi(a.Env.Get(embeddingTries))
	if err != nil || tries < 1 {
		tries = 2
	}
	return retry.Policy{Attempts: tries, Backoff: time.Second, Factor: 2, MaxBackoff: time.Minute}
}

// Library returns the named knowledge bases.
func (a *App) Library() rag.Library {
	return rag.Library{Dir: a.Paths.RAGsDir, TempDir: a.temps.path(), Store: a.storeAt}
}

// TempBase returns a name for a knowledge base that is kept in a file until the app is closed.
func (a *App) TempBase() (name string, err error) { return a.temps.name() }

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
func (a *App) storeAt(file string) (rag.Store, error) {
	temporary := filepath.Dir(file) == a.temps.path()
	if a.Config.RAGStore == nil || *a.Config.RAGStore == "" || temporary {
		return sqlite.New(file), nil
	}
	address, err := a.Config.Expand("rag_store", *a.Config.RAGStore)
	if err != nil {
		return nil, err
	}
	return postgres.New(address, a.nameIn(file))
}

// nameIn returns the name in a database of the knowledge base whose file would be file.
func (a *App) nameIn(file string) string {
	name := strings.TrimSuffix(absolute(file), rag.Extension)
	if rel, err := filepath.Rel(absolute(a.Paths.ConfigDir), name); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	return filepath.ToSlash(name)
}

// BaseNames returns the names of the knowledge bases that [App.OpenBase] opens, ascending: with
// rag_store those in the database.
func (a *App) BaseNames(ctx context.Context) ([]string, error) {
	store, err := a.storeAt(filepath.Join(a.Paths.RAGsDir, rag.Extension))
	if err != nil {
		return nil, err
	}
	database, ok := store.(interface {
		Names(ctx context.Context) ([]string, error)
	})
	if !ok {
		return a.Library().Names()
	}
	stored, err := database.Names(ctx)
	var names []string
	for _, name := range stored {
		if file, err := a.Library().File(path.Base(name)); err == nil && a.nameIn(file) == name { // those of agents are elsewhere
			names = append(names, path.Base(name))
		}
	}
	return names, err
}

// Builder returns what builds knowledge bases. Its events go to events; a nil budget bounds nothing.
func (a *App) Builder(events event.Scope, budget engine.Budget) *rag.Builder {
	return &rag.Builder{
		Models: a, Source: a.loaderOfBases(),
		Retry: a.knowledgeRetry(), Budget: budget, Events: events,
	}
}

// loaderOfBases returns what finds the documents of knowledge bases.
func (a *App) loaderOfBases() *source.Loader {
	return &source.Loader{Input: a.Loader(), Retry: a.knowledgeRetry()}
}

// NewBase returns the settings of a knowledge base that is about to be built: those of set, else
// those of the configuration, else what the user says at a terminal, else the defaults. Fields of
// set that are zero are not set. ChunkOverlap is not set if it is negative, or if it and ChunkSize are 0. If no
// embedding model is named, and the user cannot be asked, it is that of the program with fallback,
// and otherwise an error with code Config.
func (a *App) NewBase(ctx context.Context, events event.Scope, asker ask.Asker, set rag.Settings, fallback bool) (rag.Settings, error) {
	cfg := a.Config
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
		set.EmbeddingModel = q.model(ctx, a)
	case fallback:
		set.EmbeddingModel = rag.HashModel
		text := "no embedding model is configured: using " + set.EmbeddingModel + ", which compares words, not meanings. rag_embedding_model chooses another one"
		if err := events.Emit(ctx, event.Warning{Text: text, Once: true}); err != nil {
			return set, err
		}
	default:
		return set, fault.New(fault.Config, "no embedding model is configured").WithHint("set rag_embedding_model in %s: %s", cfg.File, strings.Join(a.modelIDs(catalog.Embedding), ", "))
	}
	if q.err != nil {
		return set, q.err
	}
	m, err := a.Embedder(ctx, set.EmbeddingModel)
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
		m, err := a.Reranker(ctx, set.RerankerModel)
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
func (q *quiz) model(ctx context.Context, a *App) string {
	var options []string
	for _, id := range a.modelIDs(catalog.Embedding) {
		m, err := a.Catalog.Resolve(id, catalog.Embedding)
		if err != nil {
			continue
		}
		options = append(options, id+" "+m.Description())
	}
	chosen, _, _ := strings.Cut(q.ask(ctx, ask.Question{Kind: ask.Select, Text: "Embedding model", Options: options, Default: options[0], HasDefault: true}), " ")
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

// OpenBase opens the knowledge base called name for as long as the caller needs it. All users of it
// in the process share it. One of an older version is rebuilt. The error has code NotFound if there
// is none.
func (a *App) OpenBase(ctx context.Context, events event.Scope, name string) (b *rag.Base, release func(), err error) {
	file, err := a.Library().File(name)
	if err != nil {
		return nil, nil, err
	}
	b, release, err = a.openBase(ctx, events, place{name, file})
	if _, old := os.Stat(rag.OldFile(file)); old != nil && fault.CodeOf(err) == fault.NotFound {
		err = a.Library().Missing(name)
	}
	return b, release, err
}

// place is where a knowledge base is.
type place struct {
	name string // for messages
	file string
}

// openBase opens the knowledge base at a place. One of an older version, which has a YAML file in
// its stead, is rebuilt from the sources in it.
func (a *App) openBase(ctx context.Context, events event.Scope, p place) (*rag.Base, func(), error) {
	b, release, err := a.bases.acquire(ctx, a, p)
	if fault.CodeOf(err) != fault.NotFound {
		return b, release, err
	}
	old := rag.OldFile(p.file)
	set, oldErr := rag.ReadOld(old)
	if oldErr != nil {
		if errors.Is(oldErr, fs.ErrNotExist) || filepath.Dir(p.file) != a.Paths.RAGsDir { // where a file of that name is something else
			oldErr = err
		}
		return nil, nil, oldErr
	}
	text := fmt.Sprintf("%s is a knowledge base of an older version: it is built anew as %s, and the old file stays", old, p.file)
	if err := events.Emit(ctx, event.Warning{Text: text, Once: true}); err != nil {
		return nil, nil, err
	}
	if err := a.buildBase(ctx, events, nil, p, set); err != nil {
		return nil, nil, err
	}
	return a.bases.acquire(ctx, a, p)
}

// buildBase builds or syncs the knowledge base at a place.
func (a *App) buildBase(ctx context.Context, events event.Scope, budget engine.Budget, p place, set rag.Settings) error {
	store, err := a.storeAt(p.file)
	if err == nil {
		_, err = a.Builder(events, budget).Build(ctx, p.name, store, set)
	}
	return err
}

// knowledge is an open knowledge base as questions and nodes search it.
type knowledge struct {
	base  *rag.Base
	retry retry.Policy
	topK  int // 0 leaves it to the base

	reranker *string // id, "" for none; nil leaves it to the base
}

// Name implements [rag.Searcher].
func (k knowledge) Name() string { return k.base.Name() }

// Search implements [rag.Searcher].
func (k knowledge) Search(ctx context.Context, q rag.Query) (rag.Found, error) {
	q.Retry = k.retry
	set := k.base.Settings()
	set.TopK = cmp.Or(k.topK, set.TopK)
	set.RerankerModel = *cmp.Or(k.reranker, &set.RerankerModel)
	q.Settings = &set
	return k.base.Search(ctx, q)
}

// recalled is the knowledge base of a question or a node that goes on from its record. It is opened if
// what was found is not on record: until then it may be gone.
type recalled struct {
	name  string
	retry retry.Policy
	topK  int // see knowledge

	reranker *string // likewise
	open     func(ctx context.Context) (b *rag.Base, release func(), err error)
}

// Name implements [rag.Searcher].
func (r recalled) Name() string { return r.name }

// Search implements [rag.Searcher].
func (r recalled) Search(ctx context.Context, q rag.Query) (rag.Found, error) {
	base, release, err := r.open(ctx)
	if err != nil {
		return rag.Found{}, err
	}
	defer release()
	return knowledge{base: base, retry: r.retry, topK: r.topK, reranker: r.reranker}.Search(ctx, q)
}

// unsearched is the name of a knowledge base that is not searched: the cassette that is played has what was found.
type unsearched string

// Name implements [rag.Searcher].
func (u unsearched) Name() string { return string(u) }

// Search implements [rag.Searcher].
func (u unsearched) Search(context.Context, rag.Query) (rag.Found, error) {
	return rag.Found{}, fault.New(fault.Failure, "knowledge bases are not searched while a cassette is played")
}
