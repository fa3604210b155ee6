package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// table is what came out, for a terminal.
func table(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %-10s %-24s %-16s %8s  %s\n", "client", "version", "dialect", "skill by", "seconds", "verdict")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-20s %-10s %-24s %-16s %8.1f  %s\n",
			r.agent.name, r.agent.version, r.agent.speaks, r.agent.by, r.took.Seconds(), r.word())
	}
	return b.String()
}

func (r row) word() string {
	if r.passed() {
		return "passed"
	}
	return "FAILED"
}

// The lines of the page between which the table of agents stands.
const (
	tableBegins = "<!-- make clients: begins -->"
	tableEnds   = "<!-- make clients: ends -->"
)

// writePage puts the rows into the page's table. Rows of agents that were not asked
// this time stay as they are.
func writePage(page string, rows []row, now time.Time) error {
	data, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	text, err := withRows(string(data), rows, now)
	if err != nil {
		return fmt.Errorf("write the table of %s: %w", page, err)
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

func withRows(page string, rows []row, now time.Time) (string, error) {
	before, rest, ok := strings.Cut(page, tableBegins+"\n")
	old, after, closed := strings.Cut(rest, tableEnds)
	if !ok || !closed {
		return "", fmt.Errorf("it has no lines %s and %s: put them back, with the table between them", tableBegins, tableEnds)
	}
	lines := map[string]string{}
	for line := range strings.Lines(old) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok {
			lines[name] = line
		}
	}
	for _, r := range rows {
		lines[r.agent.name] = fmt.Sprintf("| %s | `%s` %s | %s | %s | %s | %s |\n",
			r.agent.name, r.agent.pkg, r.agent.version, r.agent.speaks, r.agent.by, r.result(), now.Format(time.DateOnly))
	}
	var b strings.Builder
	b.WriteString(before + tableBegins + "\n")
	b.WriteString("| client | package | dialect | skill selected by | verdict | date |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, a := range agents() {
		b.WriteString(lines[a.name])
	}
	b.WriteString(tableEnds + after)
	return b.String(), nil
}

// result is the verdict with its first reason, on one line.
func (r row) result() string {
	if r.passed() {
		return "passed"
	}
	return "failed: " + strings.ReplaceAll(flat(r.problems[0]), "|", "\\|")
}
