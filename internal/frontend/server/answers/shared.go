package answers

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/frontend/server/rest"
	"loki/internal/service/postgres"
)

// sharedSchema makes the table in a database. What is there is bytes, as a client may send any.
const sharedSchema = `
CREATE TABLE loki.answers (
	subject bytea NOT NULL,
	key     bytea NOT NULL,
	digest  bytea NOT NULL,
	at      timestamptz NOT NULL,
	member  bigint, -- of the server that is at work; NULL once it is answered
	request text NOT NULL, -- tells the one at work from others with its key
	status  integer NOT NULL DEFAULT 0,
	type    bytea NOT NULL DEFAULT '',
	place   bytea NOT NULL DEFAULT '', -- Location
	body    bytea NOT NULL DEFAULT '',
	PRIMARY KEY (subject, key)
);
CREATE INDEX answers_at ON loki.answers (at);`

// Shared keeps the answers of several servers in a database: a request with a key is done by one of them. It implements
// [rest.Answers].
type Shared struct {
	tables postgres.Part
	now    func() time.Time
	sweeps sweeps
}

// NewShared returns the answers in a database, which is the caller's. A nil now means time.Now.
func NewShared(db *postgres.DB, now func() time.Time) *Shared {
	if now == nil {
		now = time.Now
	}
	return &Shared{tables: postgres.Part{DB: db, Name: "answers", Steps: []string{sharedSchema}}, now: now}
}

// Begin says that a request is about to be done, see [rest.Answers].
func (s *Shared) Begin(ctx context.Context, subject, key string, digest []byte, again bool) (*rest.Kept, error) {
	member, err := s.tables.DB.Member(ctx)
	if err != nil {
		return nil, err
	}
	now := s.now()
	if s.sweeps.due(now) {
		if _, err := s.tables.Exec(ctx, `DELETE FROM loki.answers WHERE at <= $1`, now.Add(-keptFor)); err != nil {
			return nil, err
		}
	}
	n, err := s.tables.Exec(ctx, `INSERT INTO loki.answers AS a (subject, key, digest, at, member, request) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (subject, key) DO UPDATE SET digest = excluded.digest, at = excluded.at, member = excluded.member, request = excluded.request, status = 0, type = '', place = '', body = ''
		WHERE a.at <= $7 OR a.request = $6
			OR $8 AND a.digest = excluded.digest AND a.place = '' AND a.member IS NOT NULL AND NOT EXISTS (SELECT FROM loki.members m WHERE m.id = a.member)`,
		[]byte(subject), []byte(key), digest, now, member.ID(), rand.Text(), now.Add(-keptFor), again)
	if err != nil || n > 0 {
		return nil, err
	}
	k := &rest.Kept{}
	var kind, place []byte
	err = s.tables.Scan(ctx, []any{&k.Digest, &k.State, &k.Status, &kind, &place, &k.Body}, `SELECT digest,
		CASE WHEN member IS NULL THEN $3::integer WHEN EXISTS (SELECT FROM loki.members m WHERE m.id = a.member) THEN $4::integer ELSE $5::integer END,
		status, type, place, body FROM loki.answers a WHERE subject = $1 AND key = $2`,
		[]byte(subject), []byte(key), rest.KeptWhole, rest.KeptRunning, rest.KeptLost)
	if errors.Is(err, pgx.ErrNoRows) { // forgotten at this moment
		return &rest.Kept{Digest: digest, State: rest.KeptRunning}, nil
	}
	k.Type, k.Where = string(kind), string(place)
	return k, err
}

// Place keeps where a request has its effect, see [rest.Answers].
func (s *Shared) Place(ctx context.Context, subject, key, where string) error {
	return s.end(ctx, `UPDATE loki.answers SET place = $4 WHERE subject = $1 AND key = $2 AND member = $3`, subject, key, []byte(where))
}

// End keeps an answer, see [rest.Answers].
func (s *Shared) End(ctx context.Context, subject, key string, answer rest.Kept) error {
	return s.end(ctx, `UPDATE loki.answers SET member = NULL, status = $4, type = $5, place = $6, body = $7 WHERE subject = $1 AND key = $2 AND member = $3`,
		subject, key, answer.Status, []byte(answer.Type), []byte(answer.Where), append([]byte{}, answer.Body...))
}

// Forget says that a request was not done, see [rest.Answers].
func (s *Shared) Forget(ctx context.Context, subject, key string) error {
	return s.end(ctx, `DELETE FROM loki.answers WHERE subject = $1 AND key = $2 AND member = $3`, subject, key)
}

// end changes what is known of a request of this server. One that it began as another member is lost.
func (s *Shared) end(ctx context.Context, statement, subject, key string, args ...any) error {
	member, err := s.tables.DB.Member(ctx)
	if err == nil {
		_, err = s.tables.Exec(ctx, statement, append([]any{[]byte(subject), []byte(key), member.ID()}, args...)...)
	}
	return err
}

// Close does nothing: the database is not the store's.
func (s *Shared) Close() error { return nil }
