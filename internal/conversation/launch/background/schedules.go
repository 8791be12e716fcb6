package background

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"loki/internal/agent"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/fault"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/schedule"
)

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
func (s *Service) agentSchedules(ctx context.Context) (all []*schedule.Schedule, err error) {
	names, err := s.Agents.Names()
	if err != nil {
		return nil, err
	}
	s.ownMu.Lock()
	defer s.ownMu.Unlock()
	found := make(map[string]ownSchedules)
	for _, name := range names {
		ref := agent.Ref{Name: name, Dir: s.Paths.Agent(name).Dir, Arg: name}
		file, err := s.Agents.File(ref)
		if err != nil {
			continue
		}
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		own := s.own[file]
		if own.size != info.Size() || !own.modified.Equal(info.ModTime()) || len(own.all) > 0 && time.Since(own.looked) > lookAgain {
			own = ownSchedules{size: info.Size(), modified: info.ModTime(), looked: time.Now(), all: s.readOwn(ctx, ref, file)}
		}
		found[file] = own
		all = append(all, own.all...)
	}
	s.own = found
	return all, nil
}

// readOwn reads the schedules in the file of an agent.
func (s *Service) readOwn(ctx context.Context, ref agent.Ref, file string) []*schedule.Schedule {
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
	for _, one := range own {
		one.Own = content.Sum
	}
	return own
}

// Schedules returns the schedules, over a store of runs. Without a manager, m is nil, they start nothing.
func (s *Service) Schedules(store run.Store, m *manager.Manager) *schedule.Service {
	all := &schedule.Service{Store: store, Configured: s.configuredSchedules, Log: s.Log(), Now: time.Now}
	if m != nil {
		all.Start, all.Cancel = m.Start, m.Cancel
		all.Job = func(ctx context.Context, of *schedule.Schedule, owner *auth.Owner) (run.Job, error) {
			who, err := s.InstalledAgent(of.Agent)
			if err != nil {
				return run.Job{}, err
			}
			if of.Own != "" {
				if now, err := trust.Read(ctx, who.Dir); err != nil || now.Sum != of.Own {
					return run.Job{}, errors.Join(fault.New(fault.Config, "agent %s has changed since its schedule was switched on", who.Name), err)
				}
			}
			return s.Job(ctx, Run{
				Agent: who, Prompt: of.Prompt, Variables: of.Variables, Model: of.Model, Terms: of.Terms(), Events: m.Events(),
				Start: Start{Rules: of.StartRules(), Place: "schedule/" + of.Name, Owner: owner},
			})
		}
	}
	return all
}

// InstalledAgent returns the agent with a name. One at a path is not installed.
func (s *Service) InstalledAgent(name string) (agent.Agent, error) {
	ref, err := s.Agents.Find(name)
	if err == nil && !ref.ByName() {
		err = fault.New(fault.NotFound, "the agent at %s is not installed: a schedule needs an agent with a name", name).
			WithHint("the installed agents: loki --list agents; to install one, move its directory to the agents directory, which loki --info names")
	}
	if err != nil {
		return agent.Agent{}, err
	}
	of, _, err := s.Agents.Load(ref)
	return of, err
}

// CheckSchedule returns the schedule that a document describes, if it can start runs here.
func (s *Service) CheckSchedule(name string, d schedule.Doc) (*schedule.Schedule, error) {
	if err := schedule.CheckName(name); err != nil {
		return nil, err
	}
	checked, err := schedule.Check(name, d)
	if err == nil {
		err = s.checkZone(checked)
	}
	if err == nil {
		err = checked.CheckDue(time.Now())
	}
	if wrong, ok := errors.AsType[*schedule.FieldError](err); ok {
		return nil, fault.Wrap(fault.Usage, wrong, "schedule %s", name)
	}
	if err != nil {
		return nil, err
	}
	_, err = s.InstalledAgent(d.Agent)
	return checked, err
}

// checkZone returns an error if a schedule would be due at other times on other servers.
func (s *Service) checkZone(of *schedule.Schedule) error {
	if s.Config.Store == nil || of.Timezone != "" || of.Every != "" {
		return nil
	}
	return &schedule.FieldError{Field: "timezone", Err: errors.New("is required with a database, which servers in several time zones may share")}
}

// Reschedule replaces the schedules of config.yaml, which was read again.
func (s *Service) Reschedule(all []*schedule.Schedule) { s.rescheduled.Store(&all) }

// configuredSchedules returns the schedules of config.yaml and of agents.
func (s *Service) configuredSchedules(ctx context.Context) ([]*schedule.Schedule, error) {
	all := s.Config.Schedules
	if now := s.rescheduled.Load(); now != nil {
		all = *now
	}
	own, err := s.agentSchedules(ctx)
	if err != nil {
		return nil, err
	}
	own = slices.DeleteFunc(own, func(o *schedule.Schedule) bool {
		return s.checkZone(o) != nil || slices.ContainsFunc(all, func(one *schedule.Schedule) bool { return one.Name == o.Name })
	})
	for _, one := range all {
		if err := s.checkZone(one); err != nil {
			return nil, fault.Wrap(fault.Config, err, "%s: schedule %s", s.Config.File, one.Name)
		}
	}
	return slices.Concat(all, own), nil
}
