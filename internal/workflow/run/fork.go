package run

import (
	"context"
	"fmt"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/service/auth"
)

// Fork says from which step of an old run a new one begins, and how.
type Fork struct {
	Continuation
	Step int // of the old run, 0 for its start, -1 for the last committed

	Owner *auth.Owner // of the new run; nil on the command line
}

// Fork begins a new run with the state and the frontier that an old one had after a
// super-step. The old run is left as it is.
func (s *Service) Fork(ctx context.Context, f Fork) (Outcome, error) {
	info, start, err := s.forkPoint(ctx, f.ID, f.Step)
	if err != nil {
		return Outcome{}, err
	}
	job, err := s.ForkJob(ctx, info, start, f)
	if err != nil {
		return Outcome{}, err
	}
	return s.Start(ctx, job)
}

// ForkJob returns the job of a run that begins with the state and the frontier that another one had at a checkpoint. f names neither.
func (s *Service) ForkJob(ctx context.Context, info Info, start Checkpoint, f Fork) (Job, error) {
	if info.Kind != GraphRun {
		err := fault.New(fault.Usage, "run %s is the answer to one question, which has no super-steps to begin from", info.ID)
		if info.Status.Resumable() {
			return Job{}, err.WithHint("resume it: loki --resume %s; or ask again", info.ID)
		}
		return Job{}, err.WithHint("ask again")
	}
	if start.Done {
		return Job{}, fault.New(fault.Usage, "run %s ended with step %d, so there is nothing to run after it", info.ID, start.Step).
			WithHint("fork an earlier step: loki --fork %s@%d", info.ID, max(0, start.Step-1))
	}
	if start.Undoing != nil {
		return Job{}, UndoneRefusal(info.ID, start)
	}
	origin := fmt.Sprintf("%s@%d", info.ID, start.Step)
	f.Command = "loki --fork " + origin
	job, err := s.JobOf(ctx, info, start, f.Continuation)
	if err != nil {
		return Job{}, err
	}
	start.State = withSet(start.State, f.Set)
	start.Usage, start.Failures, start.Unhandled = chat.Usage{}, 0, 0
	t := Terms{Yes: f.Yes, NoStream: f.NoStream, NoCompensate: f.Keep, Budget: f.Budget}
	if info.Terms != nil {
		t.Origins = info.Terms.Origins
	}
	if t != (Terms{}) {
		job.Info.Terms = &t
	}
	job.Info.Parent, job.Info.Owner, job.Start = origin, f.Owner, start
	return job, nil
}

func (s *Service) forkPoint(ctx context.Context, id string, step int) (Info, Checkpoint, error) {
	store, err := s.openWhole()
	if err != nil {
		return Info{}, Checkpoint{}, err
	}
	defer store.Close()
	h, err := store.History(ctx, id)
	if err != nil {
		return Info{}, Checkpoint{}, err
	}
	if h.Info.Kind != GraphRun {
		return h.Info, Checkpoint{}, nil
	}
	c, err := store.Checkpoint(ctx, h.Info.ID, step)
	if err == nil && c.Undoing == nil && len(c.Effects) > 0 {
		var last Checkpoint
		if last, err = store.Checkpoint(ctx, h.Info.ID, -1); last.Undoing != nil {
			c.Effects = nil // they are undone, or are about to be
		}
	}
	return h.Info, c, err
}
