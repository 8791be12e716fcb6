package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/redact"
	"loki/internal/run"
	"loki/internal/run/sqlite"
)

// storeFile is the name of the file that holds the runs, in the state directory.
const storeFile = "runs.db"

// Runs opens the store of runs for people to read: secrets in the records stay marks. The
// caller closes it.
func (a *App) Runs(durability graph.Durability) (run.Store, error) {
	return a.openRuns(durability, nil)
}

// wholeRuns opens the store of runs to go on with them: marks become the secrets again.
func (a *App) wholeRuns(durability graph.Durability) (run.Store, error) {
	return a.openRuns(durability, a.sealedSecret)
}

func (a *App) openRuns(durability graph.Durability, look func(string) (string, bool)) (run.Store, error) {
	return sqlite.Open(filepath.Join(a.Paths.StateDir, storeFile), sqlite.Options{
		Durability: sqlite.Durability(durability), Hook: a.journalHook,
		Seal: a.used.Seal, Unseal: func(text string) string { return redact.Unseal(text, look) },
	})
}

// newJournal begins the record of a run. A run that cannot be recorded runs all the
// same: then the journal is nil, and the user is warned. A dry run is not recorded.
func (a *App) newJournal(ctx context.Context, r GraphRun, start run.Checkpoint, parent string) (run.Journal, func(), error) {
	none := func() {}
	durability := r.Graph.Settings.Durability
	if durability == graph.DurabilityOff || a.dryRun {
		return nil, none, nil
	}
	journal, store, err := a.createRun(ctx, durability, r, start, parent)
	if err != nil {
		if parent != "" || ctx.Err() != nil {
			return nil, none, err
		}
		return nil, none, warnUnrecorded(ctx, r, err)
	}
	return journal, func() { closeAll(journal, store) }, nil
}

func (a *App) createRun(ctx context.Context, d graph.Durability, r GraphRun, start run.Checkpoint, parent string) (run.Journal, run.Store, error) {
	store, err := a.wholeRuns(d)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	info := run.Info{
		Agent: r.Agent.Name, AgentDir: r.Agent.Dir, Dir: dir, Graph: r.Graph.Name,
		Fingerprint: graph.Fingerprint(r.Graph), Definition: r.Graph.Text,
		Prompt: r.Prompt, Variables: r.Variables, Model: r.Model, Parent: parent,
		ByName: r.Agent.ByName(), Files: r.files,
	}
	var journal run.Journal
	err = patiently(ctx, r.Agent.Name, r.Emitter, func() (err error) {
		journal, err = store.Create(ctx, info, start)
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return journal, store, nil
}

// closeAll gives the lease of a run back. What fails here was told before, or costs
// no more than the time until the lease expires.
func closeAll(j run.Journal, s run.Store) {
	_ = j.Close()
	_ = s.Close()
}

func warnUnrecorded(ctx context.Context, r GraphRun, err error) error {
	text := fmt.Sprintf("the run is not recorded and cannot be resumed: %v", err)
	if hint := fault.HintOf(err); hint != "" {
		text += "; " + hint
	}
	return warn(ctx, r.Agent.Name, r.Emitter, text)
}
