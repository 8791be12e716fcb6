package knowledge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
)

// Edit says how a knowledge base is built or changed.
type Edit struct {
	Name        string
	Add, Remove []string   // sources
	Set         rag.Change // of its settings
	Rebuild     bool       // all documents are read anew

	Asker   ask.Asker     // asks for the settings of a new one
	Budget  engine.Budget // nil bounds nothing
	AddedBy string        // precedes messages about a source in Add
}

// Change builds the knowledge base that is named, or changes it: its sources, its settings, its
// index. Its events go to events.
func (s *Service) Change(ctx context.Context, events event.Scope, c Edit) error {
	library := s.Library()
	file, err := library.File(c.Name)
	if err != nil {
		return err
	}
	store, err := library.Store(file)
	if err != nil {
		return err
	}
	builder := s.Builder(events, c.Budget)
	old, built, err := knownBase(ctx, store, file)
	if damaged, ok := errors.AsType[*rag.DamagedError](err); ok && damaged.Settings != nil && (c.Rebuild || len(c.Add)+len(c.Remove) > 0) {
		old, err = *damaged.Settings, nil
		warning := event.Warning{Text: "knowledge base " + c.Name + " is damaged: it is built anew from its documents"}
		if err := events.Emit(ctx, warning); err != nil {
			return err
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	set, change := old, c.Set
	if err != nil {
		if len(c.Add) == 0 {
			return library.NotBuiltError(c.Name)
		}
		var wanted rag.Settings
		wanted, change = change.New()
		if set, err = s.New(ctx, events, c.Asker, wanted, true); err != nil {
			return err
		}
	}
	if set, err = set.Set(ctx, s.Models, change); err != nil {
		return err
	}
	if set.Documents, err = s.sourcesOf(set.Documents, c, builder.Source.Absolute); err != nil {
		return err
	}
	if built && old.SameChunks(set) && !c.Rebuild && len(c.Add)+len(c.Remove) == 0 {
		return store.Configure(ctx, set)
	}
	_, err = builder.Build(ctx, c.Name, store, set)
	return BuildError(err)
}

// Files returns the files that the local sources of a knowledge base lead to now. What cannot be read has none.
func (s *Service) Files(ctx context.Context, name string) (paths []string) {
	file, err := s.Library().File(name)
	if err != nil {
		return nil
	}
	stats, err := s.Stats(ctx, name, file)
	if err != nil {
		return nil
	}
	loader := s.loaderOfBases()
	for d, err := range loader.Documents(ctx, loader.Local(stats.Settings.Documents)) {
		if err == nil {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

// BuildError returns the error of a build; if the user interrupted it, with how to resume it.
func BuildError(err error) error {
	if fault.CodeOf(err) != fault.Canceled {
		return err
	}
	return fault.Wrap(fault.Canceled, err, "").WithHint("what is done is kept: run the same command again to continue")
}

// knownBase returns the settings of the knowledge base in store or, if it was not built, of the one that an
// older version wrote beside file. The error is a fs.ErrNotExist if there is neither.
func knownBase(ctx context.Context, store rag.Store, file string) (set rag.Settings, built bool, err error) {
	index, err := store.Open(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		set, err = rag.ReadOld(rag.OldFile(file))
		return set, false, err
	}
	if err != nil {
		return set, false, err
	}
	stats, err := index.Stats(ctx)
	return stats.Settings, true, errors.Join(err, index.Close())
}

// sourcesOf returns the list of sources after a change, each once.
func (s *Service) sourcesOf(list []string, c Edit, absolute func(string) (string, error)) ([]string, error) {
	list = slices.Clone(list)
	for _, source := range c.Remove {
		as, err := absolute(source)
		i := slices.IndexFunc(list, func(s string) bool { return s == source || err == nil && s == as })
		if i < 0 {
			return nil, fault.New(fault.NotFound, "%q is not a source of knowledge base %s", source, c.Name).WithHint("its sources: loki --info --rag %s", text.Word(c.Name))
		}
		list = slices.Delete(list, i, i+1)
	}
	for _, source := range c.Add {
		as, err := absolute(source)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "%s%s", c.AddedBy, source)
		}
		if err := s.exists(c, source, as); err != nil {
			return nil, err
		}
		if !slices.Contains(list, as) {
			list = append(list, as)
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Usage, "knowledge base %s would have no source left", c.Name).WithHint("add another one with --rag-add SOURCE")
	}
	return list, nil
}

// exists returns an error if a source that the user has just written is a path where nothing is.
func (s *Service) exists(c Edit, source, absolute string) error {
	if !filepath.IsAbs(absolute) {
		return nil
	}
	pattern, err := input.ParsePattern(absolute)
	if err == nil {
		_, err = os.Stat(pattern.Base)
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fault.New(fault.NotFound, "%sthere is nothing at %s", c.AddedBy, source).WithHint("%s", s.MissingHint(source, filepath.Clean(pattern.Base)))
}

// MissingHint returns what may be wrong with a source that begins at a path where nothing is.
func (s *Service) MissingHint(source, path string) string {
	if loader, _, ok := strings.Cut(source, ":"); ok && len(loader) > 1 && !strings.ContainsAny(loader, `/\`) {
		return fmt.Sprintf("if %s is meant to be a document loader, add it to document_loaders in %s", loader, s.Config.File)
	}
	if first, _, several := strings.Cut(source, " "); several {
		if _, err := os.Stat(first); err == nil {
			return "write --rag-add before each of several sources, and quote a path with blanks or a pattern as a whole"
		}
	}
	dir, name := filepath.Dir(path), filepath.Base(path)
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir, name = filepath.Dir(dir), filepath.Base(dir)
	}
	hint := fmt.Sprintf("%s exists, but has no %s in it", dir, name)
	entries, _ := os.ReadDir(dir) // only for the hint
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	if near := yamldoc.Nearest(name, names); near != "" {
		hint += "; did you mean " + near + "?"
	}
	return hint
}

// Delete deletes the knowledge base called name, also one of an older version.
func (s *Service) Delete(ctx context.Context, name string) error {
	library := s.Library()
	file, err := library.File(name)
	if err != nil {
		return err
	}
	store, err := library.Store(file)
	if err != nil {
		return err
	}
	if err := os.Remove(rag.OldFile(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.Delete(ctx)
}
