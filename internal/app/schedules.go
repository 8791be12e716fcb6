package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"loki/internal/agent"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/fault"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/schedule"
)

// rescheduling has the schedules of files.
type rescheduling struct {
	rescheduled atomic.Pointer[[]*schedule.Schedule] // of a configuration that was read again; nil before

	ownMu sync.Mutex
	own   map[string]ownSchedules // by the files of agents, as they were read last; guarded by ownMu
}

// ownSchedules are those in the file of an agent.
type ownSchedules struct {
	size     int64
	modified time.Time
	looked   time.Time // at what else the agent consists of
	all      []*schedule.Schedule
}

// lookAgain is how often all that an agent consists of is looked at. The files are looked at before each run, too.
const lookAgain = 5 * time.Second

// agentSchedules returns the schedules in the files of installed agents. Files that cannot be read have none: --validate says why.
func (a *App) agentSchedules(ctx context.Context) (all []*schedule.Schedule, err error) {
	names, err := a.Agents.Names()
	if err != nil {
		return nil, err
	}
	a.ownMu.Lock()
	defer a.ownMu.Unlock()
	found := make(map[string]ownSchedules)
	for _, name := range names {
		ref := agent.Ref{Name: name, Dir: a.Paths.Agent(name).Dir, Arg: name}
		file, err := a.Agents.File(ref)
		if err != nil {
			continue
		}
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		own := a.own[file]
		if own.size != info.Size() || !own.modified.Equal(info.ModTime()) || len(own.all) > 0 && time.Since(own.looked) > lookAgain {
			own = ownSchedules{size: info.Size(), modified: info.ModTime(), looked: time.Now(), all: a.readOwn(ctx, ref, file)}
		}
		found[file] = own
		all = append(all, own.all...)
	}
	a.own = found
	return all, nil
}

// readOwn reads the schedules in the file of an agent.
func (a *App) readOwn(ctx context.Context, ref agent.Ref, file string) []*schedule.Schedule {
	src, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(src, []byte("schedules")) {
		return nil
	}
	own, _, err := schedule.ReadAgent(file, src, ref.Name)
	if err != nil || len(own) == 0 {
		return nil
	}
	content, err := trust.Read(ctx, ref.Dir)
	if err != nil {
		return nil
	}
	for _, s := range own {
		s.Own = content.Sum
	}
	return own
}

// Schedules returns the schedules, over a store of runs. Without a manager, m is nil, they start nothing.
func (a *App) Schedules(store run.Store, m *manager.Manager) *schedule.Service {
	s := &schedule.Service{Store: store, Configured: a.configuredSchedules, Log: a.Log(), Now: time.Now}
	if m != nil {
		s.Start, s.Cancel = m.Start, m.Cancel
		s.Job = func(ctx context.Context, s *schedule.Schedule, owner *auth.Owner) (run.Job, error) {
			of, err := a.InstalledAgent(s.Agent)
			if err != nil {
				return run.Job{}, err
			}
			if s.Own != "" {
				if now, err := trust.Read(ctx, of.Dir); err != nil || now.Sum != s.Own {
					return run.Job{}, errors.Join(fault.New(fault.Config, "agent %s has changed since its schedule was switched on", of.Name), err)
				}
			}
			return a.BackgroundJob(ctx, Background{Agent: of, Prompt: s.Prompt, Variables: s.Variables, Model: s.Model, Terms: s.Terms(), Events: m.Events(), Start: Start{Rules: s.StartRules(), Place: "schedule/" + s.Name, Owner: owner}})
		}
	}
	return s
}

// InstalledAgent returns the agent with a name. One at a path is not installed.
func (a *App) InstalledAgent(name string) (agent.Agent, error) {
	ref, err := a.Agents.Find(name)
	if err == nil && !ref.ByName() {
		err = fault.New(fault.NotFound, "there is no agent called %q", name).WithHint("loki --list agents")
	}
	if err != nil {
		return agent.Agent{}, err
	}
	of, _, err := a.Agents.Load(ref)
	return of, err
}

// CheckSchedule returns the schedule that a document describes, if it can start runs here.
func (a *App) CheckSchedule(name string, d schedule.Doc) (*schedule.Schedule, error) {
	if err := schedule.CheckName(name); err != nil {
		return nil, err
	}
	s, err := schedule.Check(name, d)
	if err == nil {
		err = a.checkZone(s)
	}
	if err == nil {
		err = s.CheckDue(time.Now())
	}
	if wrong, ok := errors.AsType[*schedule.FieldError](err); ok {
		return nil, fault.Wrap(fault.Usage, wrong, "schedule %s", name)
	}
	if err != nil {
		return nil, err
	}
	_, err = a.InstalledAgent(d.Agent)
	return s, err
}

// checkZone returns an error if a schedule would be due at other times on other servers.
func (a *App) checkZone(s *schedule.Schedule) error {
	if a.Config.Store == nil || s.Timezone != "" || s.Every != "" {
		return nil
	}
	return &schedule.FieldError{Field: "timezone", Err: errors.New("is required with a database, which servers in several time zones may share")}
}

// Reschedule replaces the schedules of config.yaml, which was read again.
func (a *App) Reschedule(all []*schedule.Schedule) { a.rescheduled.Store(&all) }

// configuredSchedules returns the schedules of config.yaml and of agents.
func (a *App) configuredSchedules(ctx context.Context) ([]*schedule.Schedule, error) {
	all := a.Config.Schedules
	if now := a.rescheduled.Load(); now != nil {
		all = *now
	}
	own, err := a.agentSchedules(ctx)
	if err != nil {
		return nil, err
	}
	own = slices.DeleteFunc(own, func(o *schedule.Schedule) bool {
		return a.checkZone(o) != nil || slices.ContainsFunc(all, func(s *schedule.Schedule) bool { return s.Name == o.Name })
	})
	for _, s := range all {
		if err := a.checkZone(s); err != nil {
			return nil, fault.Wrap(fault.Config, err, "%s: schedule %s", a.Config.File, s.Name)
		}
	}
	return slices.Concat(all, own), nil
}
