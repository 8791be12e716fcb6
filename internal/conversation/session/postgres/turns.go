package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/conversation/session"
	"loki/internal/service/postgres"
)

// topic is that of the news about sessions that were given back, by their ids.
const topic = "turns"

// turnPoll is how often a process that waits for a session looks whether that is free, should no news come.
const turnPoll = 2 * time.Second

// ours is the condition that a member $2 may take a turn: what it did not give back, as the database was away, is its own.
const ours = `(t.member = $2 OR NOT EXISTS (SELECT FROM loki.members m WHERE m.id = t.member))`

// claim takes the turn, or has its holder give notice when it gives it back.
const claim = `INSERT INTO loki.session_turns AS t (id, member, token) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET
	member = CASE WHEN ` + ours + ` THEN $2 ELSE t.member END, token = CASE WHEN ` + ours + ` THEN $3 ELSE t.token END,
	waiting = t.waiting OR NOT ` + ours + ` RETURNING token = $3`

// Enter waits until no other process has the turn of a session, and takes it. leave gives it back; the end of the process does
// so, too. A process calls Enter for one session at one place at a time.
func (st *Store) Enter(ctx context.Context, id session.ID) (leave func(), err error) {
	member, err := st.db.Member(ctx)
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	enter := func() (entered bool, err error) {
		st.db.BuryAtTimes(ctx)
		err = st.tables.Scan(ctx, []any{&entered}, claim, id, member.ID(), token)
		return entered, err
	}
	entered, err := enter()
	if err == nil && !entered {
		err = st.queue(ctx, id, enter)
	}
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { st.leave(member, id, token) }), nil
}

// queue calls enter until that has entered a session, when the turn of it is given back and from time to time.
func (st *Store) queue(ctx context.Context, id session.ID, enter func() (bool, error)) error {
	listening, stop := context.WithCancel(ctx)
	var listener sync.WaitGroup
	defer listener.Wait()
	defer stop()
	free := make(chan struct{}, 1)
	listener.Go(func() { // ends with stop; when it ends before, there is the clock
		_ = st.db.Listen(listening, topic, func(name string) {
			if name == "" || name == string(id) {
				select {
				case free <- struct{}{}:
				default:
				}
			}
		})
	})
	poll := time.NewTicker(turnPoll)
	defer poll.Stop()
	for {
		select {
		case <-free:
		case <-poll.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if entered, err := enter(); entered || err != nil {
			return err
		}
	}
}

// leave gives a turn back, if that takes long because the database is away: a member that cannot is lost after some time, and
// with it the turn.
func (st *Store) leave(member *postgres.Member, id session.ID, token string) {
	for member.LostContext().Err() == nil {
		var waiting bool
		err := st.tables.Scan(context.Background(), []any{&waiting}, `DELETE FROM loki.session_turns WHERE id = $1 AND token = $2 RETURNING waiting`, id, token)
		if waiting {
			st.db.Notify(topic, string(id))
		}
		if err == nil || errors.Is(err, pgx.ErrNoRows) || !postgres.Passing(err) {
			return
		}
	}
}
