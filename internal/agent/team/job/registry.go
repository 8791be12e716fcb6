package job

import (
	"sync"

	"loki/internal/base/fault"
)

// Registry knows the lists of a program that have jobs, for users who look at them from outside, such as through a server.
type Registry struct {
	mu    sync.Mutex
	lists map[*List]bool // guarded by mu
}

// keep adds a list, or removes it. A nil Registry knows none.
func (r *Registry) keep(l *List, has bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists == nil {
		r.lists = make(map[*List]bool)
	}
	if r.lists[l] = true; !has {
		delete(r.lists, l)
	}
}

// jobs returns the jobs of a run, or of a session.
func (r *Registry) jobs(run, session string) []*job {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*job
	for l := range r.lists {
		for _, j := range l.all() {
			if run != "" && j.run == run || session != "" && j.session == session {
				found = append(found, j)
			}
		}
	}
	return found
}

// All lists the jobs of a run, or of a session, the oldest first.
func (r *Registry) All(run, session string) []Info {
	return infos(r.jobs(run, session))
}

// Output returns a part of the output of a job of a run, or of a session, and how the job is. A job that is not there is an error with code NotFound.
func (r *Registry) Output(run, session, id string, since int64) (Info, Part, error) {
	j, err := r.find(run, session, id)
	if err != nil {
		return Info{}, Part{}, err
	}
	info := j.info() // before the output, so that one that has ended has all of it
	return info, j.log.read(since, window), nil
}

// Kill ends a job of a run, or of a session.
func (r *Registry) Kill(run, session, id string) error {
	j, err := r.find(run, session, id)
	if err == nil {
		j.end("a user killed it")
	}
	return err
}

func (r *Registry) find(run, session, id string) (*job, error) {
	for _, j := range r.jobs(run, session) {
		if j.id == id {
			return j, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no job %q", id)
}
