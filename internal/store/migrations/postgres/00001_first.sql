-- +goose Up
CREATE TABLE sessions (
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    seq        BIGINT  NOT NULL, -- of the last event
    fence      BIGINT  NOT NULL, -- of the writer that may append
    holder     TEXT    NOT NULL, -- the process that has the session, until held_until
    held_until BIGINT  NOT NULL, -- in milliseconds since 1970, as are all times but those of events
    summary    BYTEA   NOT NULL, -- a fold of the events, as JSON
    form       BIGINT  NOT NULL, -- of the summary: one of another form is folded anew
    created_at BIGINT  NOT NULL,
    updated_at BIGINT  NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX sessions_latest ON sessions (tenant, updated_at DESC, id DESC);
CREATE INDEX sessions_form ON sessions (form);
CREATE INDEX sessions_running ON sessions (held_until) WHERE status = 'running';

CREATE TABLE blobs (
    tenant     TEXT    NOT NULL,
    digest     TEXT    NOT NULL, -- SHA-256 of the bytes, in hexadecimal digits
    bytes      BYTEA   NOT NULL,
    created_at BIGINT  NOT NULL,
    PRIMARY KEY (tenant, digest)
);

CREATE TABLE events (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    seq     BIGINT  NOT NULL,
    schema  BIGINT  NOT NULL,
    at      BIGINT  NOT NULL, -- in nanoseconds since 1970
    turn    TEXT    NOT NULL,
    anchor  TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    data    BYTEA   NOT NULL, -- JSON; empty when it is in the blob
    blob    TEXT, -- digest of what is kept apart
    PRIMARY KEY (tenant, session, seq),
    FOREIGN KEY (tenant, session) REFERENCES sessions (tenant, id),
    FOREIGN KEY (tenant, blob) REFERENCES blobs (tenant, digest)
);

CREATE INDEX events_blob ON events (tenant, blob) WHERE blob IS NOT NULL;

CREATE TABLE continuity (
    tenant  TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    mark    BYTEA   NOT NULL,
    size    BIGINT  NOT NULL, -- as the owner's bound counts it
    used_at BIGINT  NOT NULL,
    entry   BYTEA   NOT NULL,
    PRIMARY KEY (tenant, owner, mark)
);

CREATE INDEX continuity_oldest ON continuity (tenant, owner, used_at);
CREATE INDEX continuity_used ON continuity (used_at);

-- +goose Down
DROP TABLE continuity;
DROP TABLE events;
DROP TABLE blobs;
DROP TABLE sessions;
