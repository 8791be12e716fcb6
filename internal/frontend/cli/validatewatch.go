package cli

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"loki/internal/agent"
	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/frontend/command/display"
)

const (
	watchInterval = 500 * time.Millisecond // between looks at the files
	maxWatched    = 10_000                 // files of an agent that are looked at
)

// stamp tells whether a file has changed. The zero stamp is that of a file that is not there.
type stamp struct {
	size     int64
	modified time.Time
}

// validateOnChange checks an agent's definition now and whenever a file of the agent changes, until ctx ends. It returns what
// the last check returned.
func (c *command) validateOnChange(ctx context.Context, ref agent.Ref) (result error) {
	var (
		seen    map[string]stamp
		scripts []string
	)
	for {
		if !maps.Equal(c.stamps(ref, scripts), seen) {
			scripts = c.scripts(ref)
			seen = c.stamps(ref, scripts)
			c.announceCheck(ref)
			err := c.validateOnce(ctx, ref)
			if err != nil && !isFindings(err) && ctx.Err() != nil { // it was interrupted
				return result
			}
			if result = err; err != nil && !isFindings(err) {
				c.report(err)
				result = &fault.Error{Code: fault.CodeOf(err), Err: &findingsError{1}} // which is not reported again
			}
		}
		if retry.Sleep(ctx, watchInterval) != nil {
			return result
		}
	}
}

// announceCheck prints when a check begins, at a terminal as a line across it.
func (c *command) announceCheck(ref agent.Ref) {
	line := time.Now().Format("15:04:05") + " checking " + display.Line(ref.Dir)
	if c.OutTerminal {
		line = "── " + line + " "
		line += strings.Repeat("─", max(2, helpWidth(c.Out)-1-utf8.RuneCountInString(line)))
	}
	fmt.Fprintln(c.Out, line)
}

// scripts returns the paths of the scripts and subgraphs that the graph of an agent names.
func (c *command) scripts(ref agent.Ref) (paths []string) {
	of, _, err := c.app.Agents.Load(ref)
	if err != nil || of.Graph == nil {
		return nil
	}
	for name := range of.Graph.Files {
		paths = append(paths, filepath.Join(of.Dir, filepath.FromSlash(name)))
	}
	for n := range of.Graph.All() {
		if n.Script != nil {
			paths = append(paths, n.Script.Path(of.Dir))
		}
	}
	return paths
}

// stamps returns those of the files that a check of an agent looks at: its definition, what is in its directory, and scripts.
func (c *command) stamps(ref agent.Ref, scripts []string) map[string]stamp {
	stamps := make(map[string]stamp)
	add := func(path string) {
		var s stamp
		if info, err := os.Stat(path); err == nil {
			s = stamp{info.Size(), info.ModTime()}
		}
		stamps[path] = s
	}
	if file, err := c.app.Agents.File(ref); err == nil {
		add(file)
	}
	for _, path := range scripts {
		add(path)
	}
	_ = filepath.WalkDir(ref.Dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read is not watched
		switch {
		case err != nil:
			return nil
		case d.IsDir() && path != ref.Dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "__pycache__"):
			return fs.SkipDir
		case len(stamps) >= maxWatched:
			return fs.SkipAll
		case !d.IsDir():
			add(path)
		}
		return nil
	})
	return stamps
}
