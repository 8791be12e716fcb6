package conversations

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/service/auth"
	"loki/internal/service/postgres"
)

// boardSchema makes the table of the jobs of servers that share a database. One job works on a target at a time.
const boardSchema = `
CREATE TABLE loki.jobs (
	id      text PRIMARY KEY,
	target  text NOT NULL,
	at      timestamptz NOT NULL DEFAULT now(),
	member  bigint NOT NULL, -- of the server that works on it
	running boolean NOT NULL DEFAULT true,
	state   bytea NOT NULL,  -- JSON
	owners  bytea NOT NULL   -- JSON
);
CREATE UNIQUE INDEX jobs_running ON loki.jobs (target) WHERE running;`

// saveEvery is how often the progress of a job is written, and looked for at other servers.
const saveEvery = time.Second

// board has the jobs of all servers that share a database.
type board struct {
	tables postgres.Part
	apart  bool // each server has targets of its own
}

func newBoard(db *postgres.DB, apart bool) *board {
	return &board{tables: postgres.Part{DB: db, Name: "jobs", Steps: []string{boardSchema}}, apart: apart}
}

// posted is what the board has of a job.
type posted struct {
	id            string
	state, owners []byte
	alive         bool // its server lives
}

// columns are those of posted.
const columns = `SELECT id, state, owners, EXISTS (SELECT FROM loki.members m WHERE m.id = j.member) FROM loki.jobs j `

func (p *posted) fields() []any { return []any{&p.id, &p.state, &p.owners, &p.alive} }

// decode returns how far the job has come, and whose it is.
func (p *posted) decode() (state api.Job, owners []*auth.Owner, err error) {
	err = errors.Join(json.Unmarshal(p.state, &state), json.Unmarshal(p.owners, &owners))
	if err == nil && state.Status == running && !p.alive {
		state.Status = "failed"
		state.Error = &api.ErrorBody{Code: string(fault.Failure), Message: "the server that worked on it ended"}
	}
	return state, owners, err
}

// encode returns v as JSON.
func encode(v any) []byte {
	text, _ := json.Marshal(v) // texts, numbers and times
	return text
}

// post adds a job. If another one works on its target that is returned, and is owner's too from then on.
func (b *board) post(ctx context.Context, state api.Job, owner *auth.Owner) (other *api.Job, err error) {
	member, err := b.tables.DB.Member(ctx)
	if err != nil {
		return nil, err
	}
	target := postgres.Text(state.Target)
	if b.apart {
		target = strconv.FormatInt(member.ID(), 10) + " " + target
	}
	for other == nil {
		n, err := b.tables.Exec(ctx, `INSERT INTO loki.jobs AS j (id, target, member, state, owners) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (target) WHERE running DO UPDATE SET state = excluded.state WHERE j.id = $1`,
			state.ID, target, member.ID(), encode(state), encode([]*auth.Owner{owner}))
		if err != nil || n > 0 {
			return nil, err
		}
		if other, err = b.join(ctx, target, owner); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, err
		}
	}
	return other, nil
}

// join makes the job that works on a target that of an owner, too. It is nil if its server has ended, and a [pgx.ErrNoRows] if there
// is none.
func (b *board) join(ctx context.Context, target string, owner *auth.Owner) (other *api.Job, err error) {
	var p posted
	err = b.tables.Transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, columns+`WHERE target = $1 AND running FOR UPDATE`, target).Scan(p.fields()...)
	}, func(ctx context.Context, tx pgx.Tx) error {
		state, owners, err := p.decode()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(owners, func(o *auth.Owner) bool { return o == owner || o != nil && owner != nil && *o == *owner }) {
			owners = append(owners, owner)
		}
		if p.alive {
			other = &state
		}
		_, err = tx.Exec(ctx, `UPDATE loki.jobs SET owners = $2, state = $3, running = $4 WHERE id = $1`, p.id, encode(owners), encode(state), p.alive)
		return err
	})
	return other, b.tables.DB.Explain(err)
}

// save writes how far a job of this server has come. The last ones that have ended are kept.
func (b *board) save(ctx context.Context, state api.Job) error {
	_, err := b.tables.Exec(ctx, `UPDATE loki.jobs SET state = $2, running = $3 WHERE id = $1`, state.ID, encode(state), state.Status == running)
	if err == nil && state.Status != running {
		_, err = b.tables.Exec(ctx, `DELETE FROM loki.jobs WHERE NOT running AND id NOT IN (SELECT id FROM loki.jobs WHERE NOT running ORDER BY at DESC LIMIT $1)`, keptJobs)
	}
	return err
}

// find returns a job of any server, a [pgx.ErrNoRows] if there is none with that id.
func (b *board) find(ctx context.Context, id string) (state api.Job, owners []*auth.Owner, err error) {
	var p posted
	if err := b.tables.Scan(ctx, p.fields(), columns+`WHERE id = $1`, postgres.Text(id)); err != nil {
		return state, nil, err
	}
	return p.decode()
}
