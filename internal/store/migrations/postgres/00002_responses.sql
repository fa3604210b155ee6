-- +goose Up
-- Bodies stay in their row: each is a turn's own, so that keeping them apart would save
-- nothing, and an eviction is one statement.
CREATE TABLE responses (
    tenant     TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    previous   TEXT    NOT NULL, -- id of the response before it; empty when there is none
    session    TEXT    NOT NULL, -- id of its session; empty when there is none
    status     TEXT    NOT NULL,
    size       BIGINT  NOT NULL, -- as the owner's bound counts it
    created_at BIGINT  NOT NULL, -- in milliseconds since 1970
    updated_at BIGINT  NOT NULL,
    request    BYTEA   NOT NULL, -- JSON, as all bodies; empty when there is none
    input      BYTEA   NOT NULL,
    output     BYTEA   NOT NULL,
    body       BYTEA   NOT NULL,
    PRIMARY KEY (tenant, owner, id)
);

CREATE INDEX responses_latest ON responses (tenant, owner, updated_at DESC, id, size);
CREATE INDEX responses_updated ON responses (updated_at);
CREATE INDEX responses_running ON responses (tenant, owner, id) WHERE status IN ('queued', 'in_progress');

-- +goose Down
DROP TABLE responses;
