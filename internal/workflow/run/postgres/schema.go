package postgres

// schema has the statements that lead from each version of the tables to the next, see
// [loki/internal/service/postgres.DB.Migrate].
var schema = []string{schema1, schema2, schema3, schema4, schema5, schema6, schema7}

// Times are nanoseconds since 1970, by the clocks of the processes; what is said of documents holds for package
// record. A writer of a run first locks the run's row in leases, so that writers of one run follow each
// other. What changes with every write is in that small row only.
const schema1 = `
CREATE TABLE loki.runs (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text COLLATE "C" NOT NULL UNIQUE, -- the id that people know
	agent text NOT NULL,
	dir text NOT NULL,
	owner text,                   -- the subject; null for a run of the command line
	owner_key text,               -- id of the key that it was started with
	served boolean NOT NULL,      -- it belongs to the servers
	status text NOT NULL,
	code text NOT NULL DEFAULT '', -- of the error that it rests with
	until bigint,                 -- when its provider is back; null for none
	due bigint,                   -- from when on a server may go on with it if no process holds it: 0 for at once; null for never
	started bigint NOT NULL,
	rested bigint NOT NULL,       -- since when it waits
	about bytea NOT NULL,         -- document: the rest of what the run was created with
	ending bytea,                 -- document: output and error
	gap bytea                     -- JSON: a run.Gap; null for none
);
CREATE INDEX runs_owner ON loki.runs (owner, id);
CREATE INDEX runs_due ON loki.runs (due) WHERE served AND due IS NOT NULL;

CREATE TABLE loki.leases (
	run bigint PRIMARY KEY,
	member bigint,                -- who holds it, see loki.members; null, or one that is not there, for nobody
	epoch bigint NOT NULL,        -- how often the run was opened
	opened bigint NOT NULL,       -- when it was opened last
	answered boolean NOT NULL DEFAULT false, -- since then, other than by the journal
	writes bigint NOT NULL,       -- number of the last write of the epoch
	canceled bigint NOT NULL DEFAULT 0, -- the epoch that is to be canceled; negative if what the run did is not undone
	made integer NOT NULL DEFAULT 0, -- number of the last step
	step integer NOT NULL,        -- the last super-step committed
	updated bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX leases_member ON loki.leases (member) WHERE member IS NOT NULL;

CREATE TABLE loki.checkpoints (
	run bigint, step integer,
	doc bytea NOT NULL,           -- document: the checkpoint without its state
	visits bytea NOT NULL,        -- document: the visits of the super-step
	PRIMARY KEY (run, step)
);
CREATE TABLE loki.state (
	run bigint, key bytea, step integer,
	full_step integer NOT NULL,   -- the step that wrote the whole value; additions follow it
	doc bytea,                    -- document: the value or what was added; null if it is gone
	PRIMARY KEY (run, key, step)
);
CREATE TABLE loki.tasks (
	run bigint, step integer, node text,
	doc bytea NOT NULL,           -- document: result and visit
	writes bytea NOT NULL,        -- document: the keys it writes
	PRIMARY KEY (run, step, node)
);
CREATE TABLE loki.steps (
	run bigint, n integer,
	step integer NOT NULL, node text NOT NULL, key text NOT NULL,
	kind text NOT NULL, name text NOT NULL,
	at bigint NOT NULL,
	size integer NOT NULL,
	result bytea,                 -- document; null if it is not done
	PRIMARY KEY (run, n),
	UNIQUE (run, step, node, key)
);
CREATE TABLE loki.questions (
	run bigint, id text,
	n integer NOT NULL,
	step integer NOT NULL, node text NOT NULL, key text NOT NULL,
	answered boolean NOT NULL,
	deadline bigint,              -- null for none
	doc bytea NOT NULL,           -- document: the rest of the question
	PRIMARY KEY (run, id)
);
CREATE TABLE loki.events (
	run bigint,
	first integer,                -- number of the first event of the batch
	batch bytea NOT NULL,         -- document: those that were written together
	PRIMARY KEY (run, first)
);
CREATE TABLE loki.blobs (
	run bigint, hash bytea,
	data bytea NOT NULL,
	PRIMARY KEY (run, hash)
);
CREATE TABLE loki.deleted (run bigint PRIMARY KEY); -- runs of which rows may be left

-- hold checks that the lease of a run has an epoch, and that a write follows the one before it.
CREATE FUNCTION loki.hold(the_run bigint, of_epoch bigint, before bigint, write bigint, steps integer, at bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	UPDATE loki.leases SET writes = write, made = made + steps, updated = greatest(updated, at)
		WHERE run = the_run AND epoch = of_epoch AND writes = before;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'another write came before this one' USING ERRCODE = 'LK001';
	END IF;
END $$;
`

const schema2 = `
ALTER TABLE loki.leases
	ADD COLUMN working boolean NOT NULL DEFAULT false, -- the holder's work has begun
	ADD COLUMN takeovers integer NOT NULL DEFAULT 0,   -- see run.Info
	ADD COLUMN progress text NOT NULL DEFAULT '';      -- when the last one was counted
`

// schema3 is for lists in the order in which runs were started. Ids do not have it: runs may be copied into the database in any order.
const schema3 = `
DROP INDEX loki.runs_owner;
CREATE INDEX runs_owner ON loki.runs (owner, started, id);
CREATE INDEX runs_started ON loki.runs (started, id);
`

const schema4 = `
CREATE TABLE loki.signals (
	run bigint, n integer,        -- in the order in which they came, from 1
	name text NOT NULL,
	at bigint NOT NULL,
	doc bytea NOT NULL,           -- document: the value
	taken text,                   -- names the wait that took it; null for none
	PRIMARY KEY (run, n)
);
`

const schema5 = `
ALTER TABLE loki.signals ADD COLUMN key text NOT NULL DEFAULT ''; -- of the request that sent it; empty for none
`

const schema6 = `
ALTER TABLE loki.runs ADD COLUMN origin text; -- see run.Origin; null for a run that a user started
CREATE INDEX runs_origin ON loki.runs (origin, started) WHERE origin IS NOT NULL;
CREATE TABLE loki.entries (
	key text COLLATE "C" PRIMARY KEY,
	version integer NOT NULL,
	at bigint NOT NULL,
	run text NOT NULL,            -- name of a run, which may be deleted; empty for none
	doc bytea                     -- JSON; null for none
);
`

const schema7 = `
ALTER TABLE loki.runs ADD COLUMN rank integer NOT NULL DEFAULT 0; -- its priority: that of a run that comes first is higher
`

// outOfTurn is the error of loki.hold.
const outOfTurn = "LK001"

// rowsOf are the tables whose rows belong to a run, less runs and leases.
var rowsOf = [...]string{"questions", "signals", "tasks", "events", "steps", "state", "checkpoints", "blobs"}
