package app

import (
	"os"

	"loki/internal/agent/cases/cassette"
	"loki/internal/setup/config"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/memstore"
)

// Record has the runs that follow recorded in a cassette. It must be called before any of them.
func (a *App) Record() *cassette.Recorder {
	a.Recorder = cassette.NewRecorder(a.marks(), nil)
	id := ""
	if m, err := a.Models.Resolve(a.Config.Model); err == nil {
		id = m.ID()
	}
	a.Recorder.UseModels(a.model, id)
	return a.Recorder
}

// Replay has the runs that follow answered from a cassette, which source names. Nothing reaches models, tools, scripts,
// servers or the user then, and nothing is recorded. It must be called before any of them.
func (a *App) Replay(c *cassette.Cassette, source string) *cassette.Player {
	a.Models.Replayed, a.Ground.Replayed = true, true
	a.Player = cassette.NewPlayer(c, source, a.marks())
	if c.Model != "" {
		a.Config.Model = c.Model
	}
	return a.Player
}

// marks are what cassettes have in place of secrets and directories.
func (a *App) marks() cassette.Marks {
	dirs := make(map[string]string)
	if dir, err := os.Getwd(); err == nil {
		dirs["work"] = dir
	}
	if dir, err := os.UserHomeDir(); err == nil {
		dirs["home"] = dir
	}
	dirs["agents"] = config.Absolute(a.Paths.AgentsDir)
	beside := func(dir string) map[string]string { return a.Agents.For(a.Agents.At(dir, dir)).DirsBeside() }
	return cassette.Marks{Hide: a.Hide, Dirs: dirs, Beside: beside}
}

// openTaped opens the store of runs as it is while a cassette is recorded or played.
func (a *App) openTaped(d graph.Durability) (run.Store, error) {
	if a.Player != nil {
		return a.Player.Store(), nil
	}
	if d == graph.DurabilityOff || d == "" {
		return a.Recorder.Store(memstore.New(nil)), nil
	}
	store, err := a.openRuns(d, a.sealedSecret)
	if err != nil {
		return nil, err
	}
	return a.Recorder.Store(store), nil
}
