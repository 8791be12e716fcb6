package rag

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/text"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag/source"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
)

// Source finds documents. [source.Loader] is one, and [source.Texts] is another.
type Source interface {
	// Absolute returns a source as it is stored.
	Absolute(source string) (string, error)
	// Documents yields the documents of sources, which are absolute. An error is a [*source.Error] and
	// concerns one source or document, unless ctx has ended.
	Documents(ctx context.Context, sources []string) iter.Seq2[source.Document, error]
	// Covers reports whether the document at path may come from source, which is absolute, to judge by
	// their names.
	Covers(source, path string) bool
}

// Builder builds knowledge bases. It may be used from several goroutines.
type Builder struct {
	Models Models // required
	Source Source // required

	Retry  retry.Policy  // of requests to the embedding model
	Budget engine.Budget // nil bounds nothing
	Events event.Scope
	Now    func() time.Time // nil means time.Now
}

// Build brings the knowledge base in s to the state of its documents, which are those of
// set.Documents, or builds it. The name is for messages.
//
// A document whose bytes have not changed is neither converted nor split. Chunks that are known, also
// from another document, keep their vectors. What Build finds wrong with one document or one source
// is a warning: what the index holds of it stays, unless it is gone. Documents that a source does not
// lead to anymore are removed if the search for them was complete. Other errors end the build, as does
// a build without any document. The index in use then stays as it is, and the next build resumes
// where this one ended.
//
// The same documents give the same ids, no matter in which order models answer.
func (b *Builder) Build(ctx context.Context, name string, s Store, set Settings) (Stats, error) {
	w := work{Builder: b, name: name, now: b.Now}
	if w.now == nil {
		w.now = time.Now
	}
	w.requests = requests{budget: b.Budget, retry: b.Retry, events: b.Events}
	if err := w.begin(ctx, s, set); err != nil {
		return Stats{}, fmt.Errorf("building the knowledge base %s: %w", name, err)
	}
	stats, err := w.finish(ctx, w.documents(ctx))
	err = errors.Join(err, w.build.Close())
	done := w.report
	done.Base, done.Files, done.Chunks, done.Duration = name, stats.Files, stats.Chunks, w.now().Sub(w.started)
	if err != nil {
		err = fmt.Errorf("building the knowledge base %s: %w", name, err)
		done.Error = err.Error()
	}
	return stats, errors.Join(err, b.Events.Emit(context.WithoutCancel(ctx), done))
}

// begin opens the build.
func (w *work) begin(ctx context.Context, s Store, set Settings) error {
	var documents []string
	for _, d := range set.Documents {
		path, err := w.Source.Absolute(d)
		if err != nil {
			return err
		}
		if !slices.Contains(documents, path) {
			documents = append(documents, path)
		}
	}
	set.Documents = documents
	if err := set.Validate(); err != nil {
		return err
	}
	if len(documents) == 0 {
		return fault.New(fault.Config, "it lists no documents").WithHint("add some: loki --rag %s --rag-add DIR", w.name)
	}
	var err error
	if w.model, err = w.Models.Embedder(ctx, set.EmbeddingModel); err != nil {
		return err
	}
	inUse, err := statsOf(ctx, s)
	if err != nil {
		return err
	}
	if w.model.StandsIn {
		if is := inUse.Settings.EmbeddingModel; is != "" && is != w.model.ID {
			return fault.New(fault.Config, "it has vectors of %s, and %s, which replaces other models now, would replace them", is, w.model.ID).
				WithHint("unset LOKI_TEST_MODEL")
		}
	}
	set.EmbeddingModel = w.model.ID // the full one
	w.rebuilds = slices.Equal(inUse.Settings.Documents, documents)
	if inUse.Settings.SameChunks(set) {
		w.dimensions = inUse.Dimensions // those of the vectors that can stay
	}
	if w.build, err = s.Build(ctx, set); err != nil {
		return err
	}
	w.set, w.started = set, w.now()
	err = w.Events.Emit(ctx, event.IndexStarted{Base: w.name, Model: w.model.ID, Resumed: w.build.Resumed()})
	if err != nil {
		return errors.Join(err, w.build.Close())
	}
	return nil
}

// statsOf describes the index in use. The zero Stats mean that there is none, or a damaged one.
func statsOf(ctx context.Context, s Store) (Stats, error) {
	index, err := s.Open(ctx)
	if _, damaged := errors.AsType[*DamagedError](err); damaged || errors.Is(err, fs.ErrNotExist) {
		return Stats{}, nil
	}
	if err != nil {
		return Stats{}, err
	}
	stats, err := index.Stats(ctx)
	return stats, errors.Join(err, index.Close())
}

// finish puts the build in the place of the index, given the error of reading the documents.
func (w *work) finish(ctx context.Context, err error) (Stats, error) {
	if w.unsaid > 0 {
		_ = w.warnf(context.WithoutCancel(ctx), "%s could not be read either", text.Count(w.unsaid, "document"))
	}
	switch {
	case ctx.Err() != nil:
		return Stats{}, addHint(ctx.Err(), goOn)
	case err != nil:
		return Stats{}, addHint(err, goOn)
	case w.report.Added+w.report.Kept == 0 && w.rebuilds && !w.blocked: // all of its documents were deleted
	case w.report.Added+w.report.Kept == 0 && w.firstErr != nil:
		return Stats{}, fault.Wrap(fault.CodeOf(w.firstErr), w.firstErr, "none of its documents could be read")
	case w.report.Added+w.report.Kept == 0 && w.report.Passed > 0:
		var all count
		for _, c := range w.counts {
			all.passed, all.denied = all.passed+c.passed, all.denied+c.denied
		}
		err := fault.New(fault.NotFound, "%s", all.noText(w.set.Documents...))
		if all.denied > 0 {
			return Stats{}, err.WithHint("the rules are those under permission in config.yaml")
		}
		return Stats{}, err.WithHint("binary files are not indexed, and links out of a directory are not followed; document_loaders in config.yaml can convert further formats")
	case w.report.Added+w.report.Kept == 0:
		return Stats{}, fault.New(fault.NotFound, "%s", noDocuments(w.set.Documents...)).
			WithHint("check the path and its pattern: 'DIR/**/*.md' has all Markdown files below DIR; what .gitignore names is left out")
	}
	if err := w.warnOfEmpty(ctx); err != nil {
		return Stats{}, err
	}
	if err := w.warnOfUnread(ctx); err != nil {
		return Stats{}, err
	}
	if w.embedded > 0 && !w.directed {
		if err := w.warnf(ctx, "all vectors of %s are zeros, so what was embedded now is found by its words only", w.model.ID); err != nil {
			return Stats{}, err
		}
	}
	return w.build.Commit(ctx, func(f File) (source string, stays bool) {
		if source, stays = w.present[f.Path]; stays {
			return source, true
		}
		if !w.unread[f.Source] {
			w.report.Removed++
		}
		return f.Source, w.unread[f.Source]
	})
}

// warnOfEmpty warns about sources without documents.
func (w *work) warnOfEmpty(ctx context.Context) error {
	for _, s := range w.set.Documents {
		c := w.counts[input.WithoutPassword(s)]
		var err error
		switch {
		case c.passed > 0 && c.passed == c.found:
			err = w.warnf(ctx, "%s", c.noText(s))
		case c.found == 0 && !w.covers(s):
			err = w.warnf(ctx, "%s", noDocuments(s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// warnOfUnread warns of what was found and is not in the index, and was not named one by one.
func (w *work) warnOfUnread(ctx context.Context) error {
	if more := w.partly - maxUnread; more > 0 {
		if err := w.warnf(ctx, "of %s more parts were not read: loki --info --rag %s names them", text.Count(more, "document"), text.Word(w.name)); err != nil {
			return err
		}
	}
	if n := len(w.encoded); n > 0 {
		names, look := strings.Join(w.encoded[:min(n, maxEncoded)], ", "), "look"
		if n > maxEncoded {
			names += ", ..."
		}
		if n == 1 {
			look = "looks"
		}
		return w.warnf(ctx, "%s %s like text in another encoding: %s; convert them: iconv -f ISO-8859-1 -t UTF-8", text.Count(n, "file"), look, names)
	}
	return nil
}

// covers reports whether a document that stays, and was found in another source, may come from this one.
func (w *work) covers(source string) bool {
	for path := range w.present {
		if w.Source.Covers(source, path) {
			return true
		}
	}
	return false
}

func noDocuments(sources ...string) string {
	return "there are no documents at " + list(sources)
}

// noText says that all documents at sources were skipped, and how many of them for a rule.
func (c count) noText(sources ...string) string {
	was := "were"
	if c.passed == 1 {
		was = "was"
	}
	why := ""
	if c.denied > 0 {
		why = fmt.Sprintf(", and a rule keeps %s of them from models", map[bool]string{true: "all", false: fmt.Sprint(c.denied)}[c.denied == c.passed])
	}
	return fmt.Sprintf("there is no text at %s: %s %s skipped%s", list(sources), text.Count(c.passed, "file"), was, why)
}

// list returns sources for people, without the passwords of addresses.
func list(sources []string) string {
	shown := make([]string, len(sources))
	for i, s := range sources {
		shown[i] = input.WithoutPassword(s)
	}
	return strings.Join(shown, ", ")
}

// goOn is the hint for a build that ended early.
const goOn = "what is done is kept: run the same command again to continue"
