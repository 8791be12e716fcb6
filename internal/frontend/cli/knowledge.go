package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/text"
	"loki/internal/conversation/knowledge"
	"loki/internal/frontend/command/display"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
)

// knowledgeOptions is what the command line says of knowledge bases.
type knowledgeOptions struct {
	base    string   // name
	add     []string // sources
	remove  []string // likewise
	set     []string // KEY=VALUE[,KEY=VALUE...]
	rebuild bool
	watch   bool // rebuild whenever documents change
	query   string
	eval    string // path of a file
}

// builds reports whether to build or change a knowledge base before a question is asked.
func (o *options) builds() bool {
	k := &o.knowledge
	return k.rebuild || k.watch || len(k.add) > 0 || len(k.remove) > 0 || len(k.set) > 0
}

// onlyBuilds reports whether no question follows.
func (o *options) onlyBuilds() bool { return o.builds() && len(o.text) == 0 && len(o.files) == 0 }

// checkKnowledge finds combinations of options about knowledge bases that make no sense, and has
// builds without a question do without a model.
func (o *options) checkKnowledge() error {
	k := &o.knowledge
	shows := k.query != "" || k.eval != ""
	switch {
	case shows && len(o.text) > 0:
		return fault.New(fault.Usage, "there is no text with %s, but %q was given", flagText(o.action.flag), strings.Join(o.text, " ")).
			WithHint("quote what is one value: loki ... --%s \"SEVERAL WORDS\"", o.action.flag)
	case shows && k.base == "" && o.agent == "":
		return fault.New(fault.Usage, "flag --%s goes with --rag or --agent", o.action.flag)
	case len(k.set) > 0 && k.base == "" && !shows:
		return fault.New(fault.Usage, "flag --rag-set does not change the knowledge base of an agent").
			WithHint("the settings of an agent are in its config.yaml; --rag-query and --rag-eval try others")
	}
	if o.onlyBuilds() && !shows {
		o.action.needs = needConfig
	}
	return nil
}

// useBase builds the knowledge base of --rag, if that is asked for, and answers from it.
func (c *command) useBase(ctx context.Context, face *face) error {
	if c.opts.builds() {
		if err := c.buildBase(ctx, c.app.Events(face.emitter), face); err != nil {
			return err
		}
		if c.opts.knowledge.watch {
			return c.watchBase(ctx, face)
		}
		if c.opts.onlyBuilds() {
			return nil
		}
	}
	return c.answer(ctx, face)
}

// watchBase rebuilds the knowledge base of --rag, which was built, whenever its files change, until ctx ends. Changes that follow each
// other make one build.
func (c *command) watchBase(ctx context.Context, face *face) error {
	k := &c.opts.knowledge
	k.add, k.remove, k.set = nil, nil, nil // done
	look := func() (map[string]stamp, time.Duration) {
		began := time.Now()
		stamps := make(map[string]stamp)
		for _, path := range c.app.Knowledge().Files(ctx, k.base) {
			if info, err := os.Stat(path); err == nil {
				stamps[path] = stamp{info.Size(), info.ModTime()}
			}
		}
		return stamps, max(watchInterval, 10*time.Since(began)) // a large directory is looked at less often
	}
	built, wait := look()
	c.printWithTime("watching %s of %s", text.Count(len(built), "file"), display.Line(k.base))
	for retry.Sleep(ctx, wait) == nil {
		var now map[string]stamp
		if now, wait = look(); maps.Equal(now, built) {
			continue
		}
		for settled := false; !settled; {
			if retry.Sleep(ctx, watchInterval) != nil {
				return nil
			}
			before := now
			now, wait = look()
			settled = maps.Equal(now, before)
		}
		c.printWithTime("%s", changes(built, now))
		built = now
		if err := c.buildBase(ctx, c.app.Events(face.emitter), face); err != nil && ctx.Err() == nil {
			c.report(err)
		}
	}
	return nil
}

// printWithTime prints a line with the time, unless --quiet is given.
func (c *command) printWithTime(format string, args ...any) {
	if !c.opts.quiet {
		fmt.Fprintln(c.Err, time.Now().Format("15:04:05")+" "+fmt.Sprintf(format, args...))
	}
}

// changes names the first of the files that differ.
func changes(before, now map[string]stamp) string {
	var paths []string
	for path, s := range now {
		if before[path] != s {
			paths = append(paths, path)
		}
	}
	for path := range before {
		if _, ok := now[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	const shown = 3
	list := text.Name(strings.Join(paths[:min(len(paths), shown)], ", "))
	if len(paths) > shown {
		list += ", ..."
	}
	return text.Count(len(paths), "file") + " changed: " + list
}

// buildBase does what the options say with the knowledge base of --rag, or makes it.
func (c *command) buildBase(ctx context.Context, events event.Scope, face *face) error {
	k := &c.opts.knowledge
	change, err := c.baseChange(strings.Join(k.set, ","))
	if err != nil {
		return err
	}
	return c.app.Knowledge().Change(ctx, events, knowledge.Edit{
		Name: k.base, Add: k.add, Remove: k.remove, Set: change, Rebuild: k.rebuild || k.watch,
		Asker: c.asker(face, false), Budget: c.opts.budgetBound(), AddedBy: "flag --rag-add: ",
	})
}

// baseChange returns what --rag-set says, with a warning of settings that older versions had.
func (c *command) baseChange(pairs string) (rag.Change, error) {
	if pairs == "" {
		return rag.Change{}, nil
	}
	change, err := rag.ParseChange(pairs)
	if len(change.Withdrawn) > 0 {
		c.warn("--rag-set: without effect now, and can be left out: " + strings.Join(change.Withdrawn, ", "))
	}
	return change, err
}

// rebuildAgent builds all knowledge bases of the agent of -a.
func (c *command) rebuildAgent(ctx context.Context, face *face) error {
	of, _, err := c.loadAgent(c.opts.agent)
	if err != nil {
		return err
	}
	return knowledge.BuildError(c.app.Knowledge().Rebuild(ctx, of, c.app.Events(face.emitter)))
}

// openBase opens the knowledge base that --rag or -a names: AGENT or, for a rag node, AGENT/NODE.
func (c *command) openBase(ctx context.Context, events event.Scope) (*rag.Base, func(), error) {
	name, node := c.opts.agent, ""
	if name == "" {
		return c.app.Knowledge().Open(ctx, events, c.opts.knowledge.base)
	}
	of, _, err := c.loadAgent(name)
	if i := strings.LastIndexByte(name, '/'); fault.CodeOf(err) == fault.NotFound && i > 0 {
		if owner, _, other := c.loadAgent(name[:i]); other == nil {
			of, node, err = owner, name[i+1:], nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return c.app.Knowledge().OpenOf(ctx, events, of, node)
}

// variant returns base with other settings: itself, or one beside it if they need another index. That
// is kept, so that building it again costs nothing.
func (c *command) variant(ctx context.Context, base *rag.Base, set rag.Settings, events event.Scope, budget engine.Budget) (*rag.Base, func(), error) {
	if set.SameChunks(base.Settings()) {
		return base, func() {}, nil
	}
	store, release, err := c.app.Knowledge().ScratchStore(base.Name(), set)
	if err != nil {
		return nil, nil, err
	}
	name := base.Name() + " (" + difference(base.Settings(), set) + ")"
	if _, err := c.app.Knowledge().Builder(events, budget).Build(ctx, name, store, set); err != nil {
		release()
		return nil, nil, knowledge.BuildError(err)
	}
	other, err := rag.Open(ctx, name, store, c.app.Models)
	if err != nil {
		release()
		return nil, nil, err
	}
	return other, func() {
		_ = other.Close() // it was only read
		release()
	}, nil
}

// difference names what an index with the settings b has that one with those of a has not.
func difference(a, b rag.Settings) string {
	var list []string
	for _, d := range []struct {
		key    string
		before any
		after  any
	}{
		{"embedding_model", a.EmbeddingModel, b.EmbeddingModel},
		{"chunk_size", a.ChunkSize, b.ChunkSize},
		{"chunk_overlap", a.ChunkOverlap, b.ChunkOverlap},
	} {
		if d.before != d.after {
			list = append(list, fmt.Sprintf("%s=%v", d.key, d.after))
		}
	}
	return strings.Join(list, ",")
}
