package background

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
func (s *Service) Triggers(store run.Store, m *manager.Manager) (*trigger.Service, error) {
	o := trigger.Options{Triggers: s.Config.Triggers, Entries: store, Check: s.CheckTrigger}
	events, active := s.Events(event.Tee()), func() []manager.Activity { return nil }
	begin := func(ctx context.Context, job run.Job) (string, error) {
		out, err := s.Runs().Start(ctx, job)
		if out.Run != "" { // how it ended is on record
			err = nil
		}
		return out.Run, err
	}
	if m != nil {
		begin, events, active = m.Start, m.Events(), m.Active
		o.Secret = func(t *trigger.Trigger, text string) (string, error) {
			return s.Config.Expand("triggers."+t.Name+".webhook.secret", text)
		}
	}
	o.Begin = func(ctx context.Context, t *trigger.Trigger, start trigger.Start, b run.Beginning) (string, error) {
		of, err := s.triggerAgent(t, start)
		if err != nil {
			return "", err
		}
		job, err := s.Job(ctx, Run{
			Agent: of, Prompt: start.Prompt, Variables: start.Variables, State: start.State, Model: t.Model,
			Terms: run.Terms{Yes: t.Yes, Budget: t.Budget}, Beginning: b, Events: events,
			Start: Start{Rules: t.Rules, Place: "trigger/" + t.Name, Names: start.Of},
		})
		if err != nil {
			return "", err
		}
		return begin(ctx, job)
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
func (s *Service) CheckTrigger(t *trigger.Trigger, start trigger.Start) error {
	of, err := s.triggerAgent(t, start)
	if err == nil {
		_, err = values(of, start.Variables)
	}
	return err
}

// triggerAgent returns the agent of a trigger. The error says why the trigger cannot start it.
func (s *Service) triggerAgent(t *trigger.Trigger, start trigger.Start) (agent.Agent, error) {
	ref, err := s.Agents.Find(t.Agent)
	if err != nil {
		return agent.Agent{}, err
	}
	of, _, err := s.Agents.Load(ref)
	if err != nil || of.Graph != nil { // variables of a graph reach its scripts only
		return of, err
	}
	for _, name := range slices.Sorted(maps.Keys(start.Variables)) {
		if strings.Contains(of.InForce.Instructions, "{{"+name+"}}") {
			return of, fault.New(fault.Config, "the instructions of agent %s have {{%s}}, and data from outside is never in a system message", of.Name, name).
				WithHint("take it out of the instructions, and put the data into the prompt of triggers.%s", t.Name)
		}
	}
	return of, nil
}

// WatchFiles starts the runs of the triggers that watch files, until ctx ends.
func (s *Service) WatchFiles(ctx context.Context, triggers *trigger.Service) {
	dir, err := s.Dir()
	if err != nil {
		s.Log().Error("files are not watched", "error", err)
		return
	}
	var work sync.WaitGroup
	defer work.Wait()
	for _, t := range triggers.Triggers() {
		if t.Watch == nil {
			continue
		}
		work.Go(func() { // ends with ctx
			err := watch.Run(ctx, watch.Options{
				Dir: dir, Paths: t.Watch.Paths, Create: t.Watch.Create, Change: t.Watch.Change, Missed: t.Watch.Missed, Debounce: t.Watch.Debounce,
				State: filepath.Join(s.Paths.StateDir, "watch", t.Name+".json"), Log: s.Log(),
			}, func(files []watch.File) error { return triggers.StartFiles(ctx, t, files) })
			if err != nil && !errors.Is(err, context.Canceled) {
				s.Log().Error("files are not watched", "trigger", t.Name, "error", err)
			}
		})
	}
}
