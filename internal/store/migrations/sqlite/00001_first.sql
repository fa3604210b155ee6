-- +goose Up
CREATE TABLE sessions (
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    seq        INTEGER NOT NULL, -- of the last event
    fence      INTEGER NOT NULL, -- of the writer that may append
    holder     TEXT    NOT NULL, -- the process that has the session, until held_until
    held_until INTEGER NOT NULL, -- in milliseconds since 1970, as are all times but those of events
    summary    BLOB    NOT NULL, -- a fold of the events, as JSON
    form       INTEGER NOT NULL, -- of the summary: one of another form is folded anew
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_latest ON sessions (tenant, updated_at DESC, id DESC);
CREATE INDEX sessions_form ON sessions (form);
CREATE INDEX sessions_running ON sessions (held_until) WHERE status = 'running';

CREATE TABLE blobs (
    tenant     TEXT    NOT NULL,
    digest     TEXT    NOT NULL, -- SHA-256 of the bytes, in hexadecimal digits
    bytes      BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, digest)
) STRICT;

CREATE TABLE events (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    schema  INTEGER NOT NULL,
    at      INTEGER NOT NULL, -- in nanoseconds since 1970
    turn    TEXT    NOT NULL,
    anchor  TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    data    BLOB    NOT NULL, -- JSON; empty when it is in the blob
    blob    TEXT, -- digest of what is kept apart
    PRIMARY KEY (tenant, session, seq),
    FOREIGN KEY (tenant, session) REFERENCES sessions (tenant, id),
    FOREIGN KEY (tenant, blob) REFERENCES blobs (tenant, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX events_blob ON events (tenant, blob) WHERE blob IS NOT NULL;

CREATE TABLE continuity (
    tenant  TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    mark    BLOB    NOT NULL,
    size    INTEGER NOT NULL, -- as the owner's bound counts it
    used_at INTEGER NOT NULL,
    entry   BLOB    NOT NULL,
    PRIMARY KEY (tenant, owner, mark)
) STRICT;

CREATE INDEX continuity_oldest ON continuity (tenant, owner, used_at);
CREATE INDEX continuity_used ON continuity (used_at);

-- +goose Down
DROP TABLE continuity;
DROP TABLE events;
DROP TABLE blobs;
DROP TABLE sessions;
