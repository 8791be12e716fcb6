package sqlite

// Identity of the file, in its header.
const (
	applicationID = 0x4c6f6b69 // "Loki"
	schemaVersion = 8
)

// schema has the steps from each version of the schema to the next, beginning with
// that of an empty file. A step that was released does not change any more, and leaves
// older processes, which may have the file open, able to write: it only adds.
//
// Tables that begin with run hold a run's rows next to each other, in order, so that
// new rows go to the end and a run is read, or deleted, in one piece. Times are
// nanoseconds since 1970.
var schema = [schemaVersion]string{schema1, schema2, schema3, schema4, schema5, schema6, schema7, schema8}

const schema1 = `
CREATE TABLE runs (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	name    TEXT NOT NULL UNIQUE,  -- the id that people know
	agent   TEXT NOT NULL,
	dir     TEXT NOT NULL,
	status  TEXT NOT NULL,
	started INTEGER NOT NULL,
	updated INTEGER NOT NULL,      -- see also checkpoints and steps
	about   BLOB NOT NULL,         -- document: the rest of what the run was created with
	ending  BLOB                   -- document: output and error
);
CREATE TABLE leases (
	run     INTEGER PRIMARY KEY,
	token   BLOB NOT NULL,         -- random, of the journal that holds the lease
	host    TEXT NOT NULL,
	machine TEXT NOT NULL,
	pid     INTEGER NOT NULL,
	born    TEXT NOT NULL,         -- when the process was started
	until   INTEGER NOT NULL
);
CREATE TABLE checkpoints (
	run    INTEGER NOT NULL,
	step   INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	doc    BLOB NOT NULL,          -- document: the checkpoint without its state
	visits BLOB NOT NULL,          -- document: the visits of the super-step
	PRIMARY KEY (run, step)
) WITHOUT ROWID;
CREATE TABLE state (
	run  INTEGER NOT NULL,
	key  TEXT NOT NULL,
	step INTEGER NOT NULL,
	full INTEGER NOT NULL,         -- the step that wrote the whole value; additions follow it
	doc  BLOB,                     -- document: the value or what was added; null if it is gone
	PRIMARY KEY (run, key, step)
) WITHOUT ROWID;
CREATE TABLE tasks (
	run    INTEGER NOT NULL,
	step   INTEGER NOT NULL,
	node   TEXT NOT NULL,
	doc    BLOB NOT NULL,          -- document: result and visit
	writes BLOB NOT NULL,          -- document: the keys it writes
	PRIMARY KEY (run, step, node)
) WITHOUT ROWID;
CREATE TABLE steps (
	run    INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	step   INTEGER NOT NULL,
	node   TEXT NOT NULL,
	key    TEXT NOT NULL,
	kind   TEXT NOT NULL,
	name   TEXT NOT NULL,
	at     INTEGER NOT NULL,
	size   INTEGER NOT NULL,
	result BLOB,                   -- document; null if it is not done
	PRIMARY KEY (run, n)
) WITHOUT ROWID;
CREATE TABLE questions (
	run      INTEGER NOT NULL,
	id       TEXT NOT NULL,
	n        INTEGER NOT NULL,
	step     INTEGER NOT NULL,
	node     TEXT NOT NULL,
	key      TEXT NOT NULL,
	answered INTEGER NOT NULL,
	doc      BLOB NOT NULL,        -- document: the rest of the question
	PRIMARY KEY (run, id)
) WITHOUT ROWID;
CREATE TABLE events (
	run   INTEGER NOT NULL,
	n     INTEGER NOT NULL,
	batch BLOB NOT NULL,           -- document: those that were written together
	PRIMARY KEY (run, n)
) WITHOUT ROWID;
CREATE TABLE blobs (
	id   INTEGER PRIMARY KEY,
	hash BLOB NOT NULL UNIQUE,
	refs INTEGER NOT NULL,         -- runs that use it
	size INTEGER NOT NULL
);
CREATE TABLE pieces (
	id   INTEGER PRIMARY KEY,      -- id of the blob times 65536, plus the number of the piece
	data BLOB NOT NULL
);
CREATE TABLE uses (
	run  INTEGER NOT NULL,
	blob INTEGER NOT NULL,
	PRIMARY KEY (run, blob)
) WITHOUT ROWID;
`

const schema2 = `
ALTER TABLE runs ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0; -- of the last lease
ALTER TABLE runs ADD COLUMN gap BLOB;                         -- JSON: a run.Gap; null for none
ALTER TABLE leases ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE leases ADD COLUMN boot TEXT NOT NULL DEFAULT '';  -- start of the holder's system
ALTER TABLE leases ADD COLUMN ends INTEGER NOT NULL DEFAULT 0; -- by the live clock of that system
ALTER TABLE leases ADD COLUMN beats INTEGER NOT NULL DEFAULT 0; -- signs of life of the holder
ALTER TABLE leases ADD COLUMN watcher TEXT NOT NULL DEFAULT ''; -- start of the system of a process that waits for the lease
ALTER TABLE leases ADD COLUMN watched INTEGER NOT NULL DEFAULT 0; -- signs of life the watcher saw
ALTER TABLE leases ADD COLUMN since INTEGER NOT NULL DEFAULT 0; -- when, by the watcher's live clock
`

const schema3 = `
ALTER TABLE events ADD COLUMN first INTEGER NOT NULL DEFAULT 0; -- number of the first event of the batch; 0 if it was not counted
`

const schema4 = `
ALTER TABLE runs ADD COLUMN owner TEXT;     -- the subject; null for a run of the command line
ALTER TABLE runs ADD COLUMN owner_key TEXT; -- id of the key that it was started with
CREATE INDEX runs_by_owner ON runs (owner);
`

const schema5 = `
ALTER TABLE leases ADD COLUMN working INTEGER NOT NULL DEFAULT 0; -- the holder's work has begun
ALTER TABLE runs ADD COLUMN takeovers INTEGER NOT NULL DEFAULT 0; -- see run.Info
ALTER TABLE runs ADD COLUMN progress TEXT NOT NULL DEFAULT '';    -- when the last one was counted
`

const schema6 = `
CREATE TABLE signals (
	run   INTEGER NOT NULL,
	n     INTEGER NOT NULL,        -- in the order in which they came, from 1
	name  TEXT NOT NULL,
	at    INTEGER NOT NULL,
	doc   BLOB NOT NULL,           -- document: the value
	taken TEXT,                    -- names the wait that took it; null for none
	PRIMARY KEY (run, n)
) WITHOUT ROWID;
`

const schema7 = `
ALTER TABLE signals ADD COLUMN key TEXT NOT NULL DEFAULT ''; -- of the request that sent it; empty for none
`

const schema8 = `
ALTER TABLE runs ADD COLUMN origin TEXT; -- see run.Origin; null for a run that a user started
CREATE INDEX runs_by_origin ON runs (origin) WHERE origin IS NOT NULL;
CREATE TABLE entries (
	key     TEXT PRIMARY KEY,
	version INTEGER NOT NULL,
	at      INTEGER NOT NULL,
	run     TEXT NOT NULL,         -- name of a run, which may be deleted; empty for none
	doc     BLOB                   -- JSON; null for none
) WITHOUT ROWID;
`
