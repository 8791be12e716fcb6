package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/fault/steps"
	"loki/internal/service/auth"
	"loki/internal/service/postgres"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// Topics of news, see [postgres.DB.Notify]. Names are those of runs.
const (
	changes  = "runs"
	canceled = "canceled" // requests to cancel
)

// notify has those hear of a run who listen.
func (s *Store) notify(name string) { s.db.Notify(changes, name) }

// Changes calls changed for runs of which something was written.
func (s *Store) Changes(ctx context.Context, changed func(id string)) error {
	return s.db.Listen(ctx, changes, changed)
}

// Create begins a run.
func (s *Store) Create(ctx context.Context, info run.Info, start run.Checkpoint) (run.Journal, error) {
	about, err := s.seal().About(info)
	if err != nil {
		return nil, fmt.Errorf("recording a run: %w", err)
	}
	first, err := s.seal().Checkpoint(nil, start, nil)
	if err != nil {
		return nil, fmt.Errorf("recording a run: %w", err)
	}
	var subject, key *string
	if o := info.Owner; o != nil {
		a, b := postgres.Text(o.Subject), postgres.Text(o.KeyID)
		subject, key = &a, &b
	}
	origin := originOf(info)
	ctx, cancel := within(ctx)
	defer cancel()
	m, err := s.member(ctx)
	if err != nil {
		return nil, err
	}
	j := s.newJournal(m)
	s.hook("create")
	defer s.hook("create")
	for j.id == 0 { // until there is a name that no run has
		j.name = run.NewID()
		err := s.transaction(ctx, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
			now := s.now()
			err := tx.QueryRow(ctx, `INSERT INTO loki.runs (name, agent, dir, owner, owner_key, served, status, due, started, rested, about, origin, rank) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $8, $9, $10, $11)
				ON CONFLICT (name) DO NOTHING RETURNING id`,
				j.name, postgres.Text(info.Agent), postgres.Text(info.Dir), subject, key, info.Served, string(run.Running), now, about.Data, origin, info.Rank()).Scan(&j.id)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.putEntries(ctx, tx, info.ClaimsOf(j.name)); err != nil {
				return err
			}
			b := &pgx.Batch{}
			b.Queue(`INSERT INTO loki.leases (run, member, epoch, writes, step, opened, updated) VALUES ($1, $2, $3, 0, $4, $5, $5)`, j.id, m.ID(), j.epoch, start.Step, now)
			fresh := j.queueBlobs(b, append(checkpointDocs(&first), about))
			queueCheckpoint(b, j.id, &first)
			for _, h := range fresh {
				j.blobs[h] = true
			}
			return tx.SendBatch(ctx, b).Close()
		})
		if err != nil {
			if errors.Is(err, run.ErrPassing) { // it may be there
				s.leave(lease{name: j.name, claims: len(info.Claims) > 0, epoch: j.epoch, member: m.ID()})
			}
			return nil, err
		}
	}
	start.Visits = first.Visited
	j.last = record.Snapshot{Checkpoint: start, Places: first.Places}
	return s.start(j)
}

// member returns what leases name.
func (s *Store) member(ctx context.Context) (*postgres.Member, error) {
	err := s.ready(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	m, err := s.db.Member(ctx)
	return m, s.explain(err)
}

// start keeps a journal whose lease was taken.
func (s *Store) start(j *journal) (run.Journal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, errClosed
	}
	lost := j.member.LostContext()
	j.leave = context.AfterFunc(lost, func() { j.loseLease(context.Cause(lost)) })
	s.journals[j.id] = j
	if !s.watching {
		s.watching = true
		s.running.Go(s.watchCanceled)
	}
	return j, nil
}

// forget drops a journal that is closed.
func (s *Store) forget(run int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.journals, run)
}

// leave gives a lease back once the database can be reached, unless it turns out that it was not taken.
func (s *Store) leave(l lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return // it ends with the member
	}
	s.left = append(s.left, l)
	if len(s.left) == 1 {
		s.running.Go(s.giveBack)
	}
}

// giveBack gives back what is left of leases, until nothing is.
func (s *Store) giveBack() {
	for {
		s.mu.Lock()
		left := slices.Clone(s.left)
		s.mu.Unlock()
		given := 0
		for _, l := range left {
			if s.giveBackOne(l) != nil {
				break
			}
			given++
		}
		s.mu.Lock()
		s.left = slices.Delete(s.left, 0, given)
		none := len(s.left) == 0
		s.mu.Unlock()
		if none || retry.Sleep(s.ctx, time.Second) != nil {
			return
		}
	}
}

func (s *Store) giveBackOne(l lease) error {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if l.name != "" && !l.claims { // its creation was reported as failed
		_, err := s.db.Pool().Exec(ctx, `WITH gone AS (
				DELETE FROM loki.runs r USING loki.leases l WHERE l.run = r.id AND r.name = $1 AND l.epoch = $2 AND l.member = $3 RETURNING r.id
			), kept AS (DELETE FROM loki.leases l USING gone WHERE l.run = gone.id)
			INSERT INTO loki.deleted SELECT id FROM gone`, l.name, l.epoch, l.member)
		return err
	}
	var name string
	err := s.db.Pool().QueryRow(ctx, `UPDATE loki.leases l SET member = NULL FROM loki.runs r WHERE r.id = l.run AND (l.run = $1 OR r.name = $4) AND l.epoch = $2 AND l.member = $3 RETURNING r.name`, l.run, l.epoch, l.member, l.name).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		s.notify(name)
	}
	return err
}

// Open resumes a run.
func (s *Store) Open(ctx context.Context, id string, unless ...run.Status) (run.Journal, run.Recovery, error) {
	reading, cancel := within(ctx)
	defer cancel()
	m, err := s.member(reading)
	if err != nil {
		return nil, run.Recovery{}, err
	}
	j := s.newJournal(m)
	var found run.Recovery
	err = s.change(ctx, "open", id, func(ctx context.Context, tx pgx.Tx, r locked) error {
		j.id, j.name, j.epoch = r.id, r.name, r.epoch+1
		if r.held != nil && !s.isLeft(r) {
			return r.held
		}
		if slices.Contains(unless, r.status) {
			return &run.EndedError{ID: r.name, Status: r.status}
		}
		v := s.view(tx)
		if err := v.recover(ctx, j, &found); err != nil {
			return err
		}
		if found.Info.Gap != nil {
			return &run.GapError{ID: j.name, Gap: *found.Info.Gap}
		}
		b := &pgx.Batch{}
		progress := j.progress(found)
		found.Info.Takeovers = record.Takeovers(found.Info, r.left, progress != r.progress)
		b.Queue(`UPDATE loki.leases SET member = $2, epoch = $3, writes = 0, canceled = 0, opened = $4, answered = false, working = false, takeovers = $5, progress = $6, updated = $4 WHERE run = $1`,
			j.id, m.ID(), j.epoch, s.now(), found.Info.Takeovers, progress)
		b.Queue(`UPDATE loki.runs SET status = $2, code = '', until = NULL, due = 0, ending = NULL WHERE id = $1`, j.id, string(run.Running))
		return tx.SendBatch(ctx, b).Close()
	})
	if errors.Is(err, run.ErrPassing) && j.id != 0 { // it may have been taken
		s.leave(lease{run: j.id, member: m.ID(), epoch: j.epoch})
	}
	if err != nil {
		return nil, run.Recovery{}, s.explainDamage(j.name, err)
	}
	opened, err := s.start(j)
	return opened, found, err
}

// isLeft reports whether a lease is one that this store took without an answer, and is about to give back.
func (s *Store) isLeft(r locked) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.left, lease{run: r.id, member: r.member, epoch: r.epoch})
}

// progress returns how far the run, as it was found, has come.
func (j *journal) progress(found run.Recovery) string {
	results := 0
	for _, done := range j.steps {
		if done {
			results++
		}
	}
	return record.Progress(found.Info.Steps, results, len(found.Tasks))
}

// recover reads what a journal needs to resume, and what Open returns.
func (v *view) recover(ctx context.Context, j *journal, found *run.Recovery) (err error) {
	if *found, j.last, err = record.Recover(ctx, v, j.id); err != nil {
		return err
	}
	for _, t := range found.Tasks {
		j.tasks = max(j.tasks, t.Step)
	}
	var k stepKey
	var done bool
	err = v.Each(ctx, `SELECT step, node, key, result IS NOT NULL FROM loki.steps WHERE run = $1 AND step > $2`, []any{j.id, j.last.Step}, []any{&k.step, &k.node, &k.key, &done}, func() error {
		j.steps[stepKey{k.step, postgres.Original(k.node), postgres.Original(k.key)}] = done
		return nil
	})
	if err != nil {
		return err
	}
	err = v.Each(ctx, `SELECT step, node, key FROM loki.questions WHERE run = $1 AND NOT answered`, []any{j.id}, []any{&k.step, &k.node, &k.key}, func() error {
		j.asked[stepKey{k.step, postgres.Original(k.node), postgres.Original(k.key)}] = true
		return nil
	})
	j.written = found.Info.Events
	j.events.From(j.written)
	return err
}

// AcceptGap makes a run with a gap one that can be opened.
func (s *Store) AcceptGap(ctx context.Context, id string) error {
	var name string
	err := s.change(ctx, "accept_gap", id, func(ctx context.Context, tx pgx.Tx, r locked) error {
		name = r.name
		if r.held != nil {
			return r.held
		}
		_, err := tx.Exec(ctx, `UPDATE loki.runs SET gap = NULL WHERE id = $1`, r.id)
		return err
	})
	if err == nil {
		s.notify(name)
	}
	return err
}

// Claim gives a run that has no owner to owner.
func (s *Store) Claim(ctx context.Context, id string, owner auth.Owner) (*auth.Owner, error) {
	var has auth.Owner
	err := s.change(ctx, "claim", id, func(ctx context.Context, tx pgx.Tx, r locked) error {
		if _, err := tx.Exec(ctx, `UPDATE loki.runs SET owner = $2, owner_key = $3 WHERE id = $1 AND owner IS NULL`, r.id, postgres.Text(owner.Subject), postgres.Text(owner.KeyID)); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT owner, owner_key FROM loki.runs WHERE id = $1`, r.id).Scan(&has.Subject, &has.KeyID)
	})
	if err != nil {
		return nil, err
	}
	return &auth.Owner{Subject: postgres.Original(has.Subject), KeyID: postgres.Original(has.KeyID)}, nil
}

// Answer answers a pending question, also of a run that is at work.
func (s *Store) Answer(ctx context.Context, id, question string, reply run.Reply) error {
	answer, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	doc := s.seal().EncodeJSON(answer)
	var name string
	err = s.change(ctx, "answer", id, func(ctx context.Context, tx pgx.Tx, r locked) error {
		name = r.name
		if !r.status.Resumable() {
			return &run.EndedError{ID: r.name, Status: r.status}
		}
		if r.gap != nil {
			return &run.GapError{ID: r.name, Gap: *r.gap}
		}
		var step int
		var node, key string
		var answered bool
		err := tx.QueryRow(ctx, `SELECT step, node, key, answered FROM loki.questions WHERE run = $1 AND id = $2`, r.id, postgres.Text(question)).Scan(&step, &node, &key, &answered)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return fault.New(fault.NotFound, "run %s has no question %q", r.name, question).ThatMisses("question").WithHint("loki --run %s lists the questions that wait", r.name)
		case err != nil:
			return err
		case answered:
			return fmt.Errorf("question %q of run %s: %w", question, r.name, run.ErrAnswered)
		}
		now := s.now()
		b := &pgx.Batch{}
		b.Queue(`UPDATE loki.leases SET made = made + 1, answered = true, updated = greatest(updated, $2) WHERE run = $1`, r.id, now)
		(&journal{id: r.id}).queueBlobs(b, []record.Document{doc})
		b.Queue(insertStep, r.id, step, node, key, string(steps.Question), postgres.Text(question), now, len(answer), doc.Data)
		b.Queue(`UPDATE loki.questions SET answered = true WHERE run = $1 AND id = $2`, r.id, postgres.Text(question))
		b.Queue(`UPDATE loki.runs SET due = 0, rested = $2 WHERE id = $1 AND status = $3`, r.id, now, string(run.Suspended))
		return tx.SendBatch(ctx, b).Close()
	})
	if err == nil {
		s.notify(name)
	}
	return err
}

// Cancel asks the process that holds a run to cancel it.
func (s *Store) Cancel(ctx context.Context, id string, keep bool) (asked bool, err error) {
	var r locked
	err = s.change(ctx, "cancel", id, func(ctx context.Context, tx pgx.Tx, found locked) error {
		if r = found; r.held == nil {
			return nil
		}
		_, err := tx.Exec(ctx, `UPDATE loki.leases SET canceled = CASE WHEN $2 AND canceled <> epoch THEN -epoch ELSE epoch END WHERE run = $1`, r.id, keep)
		return err
	})
	if err != nil || r.held == nil {
		return false, err
	}
	s.cancelHere(r.id, r.epoch, keep)
	s.db.Notify(canceled, r.name)
	s.notify(r.name)
	return true, nil
}

// cancelHere ends the context of the lease of a run that must be canceled, if this process holds it.
func (s *Store) cancelHere(id, epoch int64, keep bool) {
	s.mu.Lock()
	j := s.journals[id]
	s.mu.Unlock()
	if j != nil && j.epoch == epoch {
		j.lose(run.CancelCause(keep)) // as on one server
	}
}

// lookAgain is how often it is looked for requests to cancel of which nothing was heard.
const lookAgain = 5 * time.Second

// watchCanceled ends the contexts of leases of runs that are to be canceled.
func (s *Store) watchCanceled() {
	heard := make(chan struct{}, 1)
	s.running.Go(func() {
		_ = s.db.Listen(s.ctx, canceled, func(string) {
			select {
			case heard <- struct{}{}:
			default: // it is about to look
			}
		})
	})
	timer := time.NewTicker(lookAgain)
	defer timer.Stop()
	for {
		select {
		case <-heard:
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
		_ = s.lookForCanceled() // it is looked again
	}
}

func (s *Store) lookForCanceled() error {
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.journals))
	s.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	var id, epoch int64
	var keep bool
	const query = `SELECT run, epoch, canceled < 0 FROM loki.leases WHERE run = ANY($1) AND abs(canceled) = epoch`
	return each(ctx, s.db.Pool(), query, []any{ids}, []any{&id, &epoch, &keep}, func() error {
		s.cancelHere(id, epoch, keep)
		return nil
	})
}

// Ready returns runs of servers that no process holds and that can work now.
func (s *Store) Ready(ctx context.Context, limit int) (ids []string, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = s.transaction(ctx, oneMoment, func(ctx context.Context, tx pgx.Tx) error {
		ids, err = record.Collect(ctx, s.view(tx), `SELECT r.name FROM loki.runs r JOIN loki.leases l ON l.run = r.id
			WHERE r.served AND r.gap IS NULL AND r.due <= $2 AND NOT EXISTS (SELECT FROM loki.members m WHERE m.id = l.member)
			ORDER BY r.rank DESC, r.rested, r.id LIMIT $1`, []any{limit, s.now()}, func(name *string) []any { return []any{name} })
		return err
	})
	return ids, err
}
