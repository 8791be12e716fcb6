package app

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"loki/internal/agent"
	"loki/internal/base/fault"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/schedule/trigger"
	"loki/internal/workflow/schedule/trigger/watch"
)

// Triggers returns what starts the runs of the triggers of the configuration. They belong to a manager or, if that is nil, to this
// process: each is over when its start returns.
func (a *App) Triggers(store run.Store, m *manager.Manager) (*trigger.Service, error) {
	o := trigger.Options{Triggers: a.Config.Triggers, Entries: store, Check: a.CheckTrigger}
	events, active := a.Events(event.Tee()), func() []manager.Activity { return nil }
	start := func(ctx context.Context, job run.Job) (string, error) {
		out, err := a.Runs().Start(ctx, job)
		if out.Run != "" { // how it ended is on record
			err = nil
		}
		return out.Run, err
	}
	if m != nil {
		start, events, active = m.Start, m.Events(), m.Active
		o.Secret = func(t *trigger.Trigger, text string) (string, error) {
			return a.Config.Expand("triggers."+t.Name+".webhook.secret", text)
		}
	}
	o.Begin = func(ctx context.Context, t *trigger.Trigger, s trigger.Start, b run.Beginning) (string, error) {
		of, err := a.triggerAgent(t, s)
		if err != nil {
			return "", err
		}
		job, err := a.BackgroundJob(ctx, Background{
			Agent: of, Prompt: s.Prompt, Variables: s.Variables, State: s.State, Model: t.Model,
			Terms: run.Terms{Yes: t.Yes, Budget: t.Budget}, Beginning: b, Events: events,
			Start: Start{Rules: t.Rules, Place: "trigger/" + t.Name, Names: s.Of},
		})
		if err != nil {
			return "", err
		}
		return start(ctx, job)
	}
	o.Queued = func(ctx context.Context, t *trigger.Trigger) (n int, err error) {
		queued := make(map[string]bool)
		for _, r := range active() {
			queued[r.ID] = r.Queued
		}
		infos, err := store.Runs(ctx, run.Query{Unfinished: true, Origin: run.OfTrigger + "/" + t.Name})
		for _, info := range infos {
			if info.Queued || queued[info.ID] {
				n++
			}
		}
		return n, err
	}
	return trigger.New(o)
}

// CheckTrigger returns an error if a trigger cannot start its agent like this.
func (a *App) CheckTrigger(t *trigger.Trigger, s trigger.Start) error {
	of, err := a.triggerAgent(t, s)
	if err == nil {
		_, err = backgroundVariables(of, s.Variables)
	}
	return err
}

// triggerAgent returns the agent of a trigger. The error says why the trigger cannot start it.
func (a *App) triggerAgent(t *trigger.Trigger, s trigger.Start) (agent.Agent, error) {
	ref, err := a.Agents.Find(t.Agent)
	if err != nil {
		return agent.Agent{}, err
	}
	of, _, err := a.Agents.Load(ref)
	if err != nil || of.Graph != nil { // variables of a graph reach its scripts only
		return of, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Variables)) {
		if strings.Contains(of.InForce.Instructions, "{{"+name+"}}") {
			return of, fault.New(fault.Config, "the instructions of agent %s have {{%s}}, and data from outside is never in a system message", of.Name, name).
				WithHint("take it out of the instructions, and put the data into the prompt of triggers.%s", t.Name)
		}
	}
	return of, nil
}

// WatchFiles starts the runs of the triggers that watch files, until ctx ends.
func (a *App) WatchFiles(ctx context.Context, s *trigger.Service) {
	dir, err := workingDir()
	if err != nil {
		a.Log().Error("files are not watched", "error", err)
		return
	}
	var work sync.WaitGroup
	defer work.Wait()
	for _, t := range s.Triggers() {
		if t.Watch == nil {
			continue
		}
		work.Go(func() { // ends with ctx
			err := watch.Run(ctx, watch.Options{
				Dir: dir, Paths: t.Watch.Paths, Create: t.Watch.Create, Change: t.Watch.Change, Missed: t.Watch.Missed, Debounce: t.Watch.Debounce,
				State: filepath.Join(a.Paths.StateDir, "watch", t.Name+".json"), Log: a.Log(),
			}, func(files []watch.File) error { return s.StartFiles(ctx, t, files) })
			if err != nil && !errors.Is(err, context.Canceled) {
				a.Log().Error("files are not watched", "trigger", t.Name, "error", err)
			}
		})
	}
}
