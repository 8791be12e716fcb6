package postgres

// version1 makes the tables. A session is a row of sessions, and its log the rows of session_log, whose at is the offset of
// their data: what is added to a log does not depend on how long that is.
const version1 = `
CREATE TABLE loki.sessions (
	number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	scope    text NOT NULL,
	id       text NOT NULL,
	alias    text,
	state    bytea NOT NULL, -- YAML, in which the alias does not count
	owner    text,           -- JSON
	size     bigint NOT NULL DEFAULT 0, -- of the log, in bytes
	modified timestamptz NOT NULL DEFAULT now(),
	write    text NOT NULL DEFAULT '', -- the last one
	UNIQUE (scope, id),
	CONSTRAINT sessions_alias UNIQUE (scope, alias)
);
CREATE TABLE loki.session_log (
	session bigint NOT NULL REFERENCES loki.sessions ON DELETE CASCADE,
	at      bigint NOT NULL,
	data    bytea NOT NULL,
	PRIMARY KEY (session, at)
);
CREATE TABLE loki.session_drafts (
	id      text PRIMARY KEY,
	session bigint NOT NULL REFERENCES loki.sessions ON DELETE CASCADE,
	member  bigint -- that holds it; NULL for none
);
CREATE INDEX session_drafts_session ON loki.session_drafts (session);
CREATE TABLE loki.session_draft_parts (
	draft text NOT NULL REFERENCES loki.session_drafts ON DELETE CASCADE,
	part  integer NOT NULL,
	data  bytea NOT NULL,
	PRIMARY KEY (draft, part)
);
CREATE TABLE loki.session_turns ( -- who has a session to itself, until the row goes or the member is dead
	id      text PRIMARY KEY,
	member  bigint NOT NULL,
	token   text NOT NULL,
	waiting boolean NOT NULL DEFAULT false
);`
