// Package config holds what an operator can set: the one table of limits, and
// how a setting is found (flag, environment, file, default).
//
// It opens no connection and starts nothing. A limit that is not in [Limits] does
// not exist (DESIGN 5.8); flags, documentation and errors are made from it.
//
// Start at [Limits].
package config

import (
	"fmt"
	"strconv"
	"time"
)

// Unit says what a limit counts.
type Unit string

// The units.
const (
	Bytes   Unit = "bytes"
	Count   Unit = "count"
	Seconds Unit = "seconds"
)

// Words are what follows a number of the unit, or the name of what it counts.
func (u Unit) Words() string {
	if u == Count {
		return ""
	}
	return ", in " + string(u)
}

// Name identifies a limit, as in metier.toml and in errors.
type Name string

// The names.
const (
	RequestBody     Name = "request-body"
	RequestTime     Name = "request-time"
	RequestMessages Name = "request-messages"
	RequestTools    Name = "request-tools"
	RequestModel    Name = "request-model"
	KeepAlive       Name = "keep-alive"
	Drain           Name = "drain"
	MaxRounds       Name = "skills-max-rounds"
	CallsPerRound   Name = "skills-max-calls"
	PageSize        Name = "skills-page"
	ManifestSize    Name = "skills-manifest"
	SkillFiles      Name = "skills-files"
	SkillBytes      Name = "skills-bytes"
	SkillCount      Name = "skills-count"
	ScanDepth       Name = "skills-depth"
	SkillView       Name = "skills-view"
	UpstreamDial    Name = "upstream-dial"
	UpstreamHeaders Name = "upstream-headers"
	UpstreamStall   Name = "upstream-stall"
	UpstreamEvent   Name = "upstream-event"
	UpstreamReply   Name = "upstream-reply"
	UpstreamCalls   Name = "upstream-calls"
	UpstreamChoices Name = "upstream-choices"
	UpstreamEnd     Name = "upstream-end"
	RescueHold      Name = "rescue-hold"
	ContinuityBytes Name = "continuity"
	ContinuityAge   Name = "continuity-age"
	UpstreamRounds  Name = "upstream-rounds"
	UpstreamQueue   Name = "upstream-queue"
	UpstreamAsk     Name = "upstream-ask"
	UpstreamWord    Name = "upstream-word"
	UpstreamModels  Name = "upstream-models"
	UpstreamSlots   Name = "upstream-slots"
	ScriptTime      Name = "skills-run-time"
	ScriptOutput    Name = "skills-run-output"
	ScriptArgs      Name = "skills-run-args"
	SandboxMemory   Name = "sandbox-memory"
	SandboxProcs    Name = "sandbox-processes"
	SandboxDisk     Name = "sandbox-disk"
	SandboxLaunches Name = "sandbox-launches"
	SandboxQueue    Name = "sandbox-queue"
	SandboxSetUp    Name = "sandbox-set-up"
	EgressHead      Name = "egress-head"
	EgressWait      Name = "egress-wait"
	EgressIdle      Name = "egress-idle"
	EgressAtOnce    Name = "egress-connections"
	ArtifactBytes   Name = "artifact-bytes"
	ArtifactCount   Name = "artifact-count"
	ArtifactEntries Name = "artifact-entries"
	ArtifactDepth   Name = "artifact-depth"
	ArtifactTotal   Name = "artifacts"
	ArtifactAge     Name = "artifacts-age"
	CodeTime        Name = "code-exec-timeout"
	CodeLongest     Name = "code-exec-longest"
	CodeOutput      Name = "code-exec-max-output"
	CodeRounds      Name = "code-exec-rounds"
	CodeLine        Name = "code-exec-line"
	CodeState       Name = "code-exec-state"
	CodeWrappers    Name = "code-exec-wrappers"
	CodeRepeats     Name = "code-exec-repeats"
	JobsAtOnce      Name = "code-exec-jobs"
	JobLog          Name = "code-exec-job-log"
	WorkspaceBytes  Name = "workspace"
	FileSize        Name = "file-size"
	FileLines       Name = "file-lines"
	FilePage        Name = "file-page"
	SeenFiles       Name = "seen-files"
	SeenBytes       Name = "seen-bytes"
	SeenKept        Name = "seen-kept"
	PatchBytes      Name = "patch"
	PatchFiles      Name = "patch-files"
	PatchTotal      Name = "patch-total"
	PatchTime       Name = "patch-time"
	InstallNames    Name = "install-packages"
	InstallTime     Name = "install-time"
	InstallAuto     Name = "install-auto"
	InstallBytes    Name = "install-bytes"
	PackagesTotal   Name = "packages"
	PackagesFresh   Name = "packages-fresh"
	RegistryPage    Name = "registry-page"
	RegistryFile    Name = "registry-file"
	ProbeTime       Name = "probe-time"
	ProbeOutput     Name = "probe-output"
	SyntaxTime      Name = "syntax-time"
	Certificates    Name = "certificates"
	AttachCount     Name = "attachments"
	AttachBytes     Name = "attachment-bytes"
	WebSessions     Name = "web-sessions"
	WebOwned        Name = "web-sessions-key"
	WebIdle         Name = "web-session-idle"

	StoreReaders     Name = "store-readers"
	StoreConnections Name = "store-connections"
	StoreWait        Name = "store-wait"
	StorePoll        Name = "store-poll"
	StoreInline      Name = "store-inline"
	SessionHold      Name = "session-hold"
	SessionPage      Name = "session-page"
	SessionRows      Name = "session-rows"
	ContinuityCount  Name = "continuity-entries"
	ResponsesCount   Name = "responses"
	ResponsesBytes   Name = "responses-bytes"
	ResponsesAge     Name = "responses-age"
	BackgroundOwned  Name = "background-key"
	BackgroundCount  Name = "background"
	BackgroundEvents Name = "background-events"
	SocketLife       Name = "socket-life"
	SocketLanes      Name = "socket-lanes"
	SocketQueue      Name = "socket-queue"
)

// Limit is one row of the table.
type Limit struct {
	Name    Name
	Default int64
	Unit    Unit
	// Min and Max bound what an operator may set.
	Min, Max int64
	// Flag is the command-line flag, without dashes; empty when the limit is
	// fixed.
	Flag string
	// Code is the detail of the error that a breach gives; empty when nothing
	// fails.
	Code string
	// Help says what is limited, in a few words.
	Help string
}

const (
	kib = 1 << 10
	mib = 1 << 20
	day = 24 * 60 * 60
)

// Limits is the table, in the order in which documentation lists it.
func Limits() []Limit {
	return []Limit{
		{RequestBody, 32 * mib, Bytes, kib, 1024 * mib, "max-body", "request_too_large", "size of a request's body"},
		{RequestTime, 300, Seconds, 1, day, "", "request_timeout", "time to send a request's body"},
		{RequestMessages, 16384, Count, 1, 1 << 20, "", "too_many_messages", "messages in a request"},
		{RequestTools, 1024, Count, 1, 1 << 16, "", "too_many_tools", "tools in a request"},
		{RequestModel, 512, Bytes, 64, 64 * kib, "", "model_name_too_long", "name of a model in a request"},
		{KeepAlive, 15, Seconds, 1, 300, "keep-alive", "", "silence on a stream before a keep-alive comment"},
		{Drain, 30, Seconds, 0, day, "drain", "server_stopping", "time that open streams get when the server stops"},
		{MaxRounds, 8, Count, 1, 64, "skills-max-rounds", "", "rounds in a row that the host answers before it asks for the answer"},
		{CallsPerRound, 8, Count, 1, 8, "", "", "host calls answered in one round"},
		{PageSize, 48 * kib, Bytes, kib, mib, "", "", "bytes of one page of skills_read"},
		{ManifestSize, 4 * mib, Bytes, kib, 64 * mib, "", "", "size of a SKILL.md"},
		{SkillFiles, 4096, Count, 1, 1 << 20, "", "", "files in a skill"},
		{SkillBytes, 256 * mib, Bytes, kib, 4096 * mib, "", "", "bytes in a skill"},
		{SkillCount, 512, Count, 1, 1 << 16, "skills-count", "", "skills in all roots"},
		{ScanDepth, 3, Count, 1, 8, "", "", "levels below a root at which a skill is found"},
		{SkillView, 512 * kib, Bytes, kib, 64 * mib, "", "", "bytes of a bundled file that /api/skills shows at once"},
		{UpstreamDial, 10, Seconds, 1, 300, "upstream-dial", "upstream_unreachable", "time to connect to the upstream"},
		{UpstreamHeaders, 600, Seconds, 1, day, "upstream-headers", "upstream_timeout", "time until the upstream begins to answer, the loading of a model included"},
		{UpstreamStall, 300, Seconds, 1, day, "upstream-stall", "upstream_stalled", "silence inside an upstream's stream"},
		{UpstreamEvent, 8 * mib, Bytes, kib, 1024 * mib, "", "upstream_event_too_large", "size of one event of an upstream's stream"},
		{UpstreamReply, 64 * mib, Bytes, kib, 1024 * mib, "", "upstream_reply_too_large", "size of one whole reply of an upstream"},
		{UpstreamCalls, 256, Count, 1, 1 << 16, "", "upstream_too_many_calls", "calls in one reply of an upstream"},
		{UpstreamChoices, 128, Count, 1, 1024, "", "upstream_too_many_choices", "alternatives in one reply of an upstream"},
		{UpstreamEnd, 1, Seconds, 1, 60, "", "", "time between an answer's end mark and the end of its body, after which the connection is given up"},
		{RescueHold, 32 * kib, Bytes, kib, 256 * kib, "", "", "text held back while it may still become a call"},
		{ContinuityBytes, 64 * mib, Bytes, 0, 1 << 40, "continuity", "", "hidden rounds remembered for one key; 0 remembers none"},
		{ContinuityCount, 4096, Count, 1, 1 << 24, "", "", "answers for whose hidden rounds that is kept"},
		{ContinuityAge, day, Seconds, 1, 365 * day, "continuity-age", "", "time since its last use that a hidden round is remembered"},
		{UpstreamRounds, 16, Count, 1, 1 << 16, "upstream-rounds", "", "rounds that the upstream works on at once"},
		{UpstreamQueue, 64, Count, 0, 1 << 20, "upstream-queue", "upstream_busy", "rounds that wait for the upstream"},
		{UpstreamAsk, 3, Seconds, 1, 60, "upstream-ask", "", "time for the upstream to say what a model can carry"},
		{UpstreamWord, 300, Seconds, 1, day, "", "", "time for which the upstream's word about a model is believed"},
		{UpstreamModels, 1024, Count, 1, 1 << 20, "", "", "models about which the upstream's word is kept"},
		{UpstreamSlots, 256, Count, 0, 1 << 16, "upstream-slots", "", "slots of a llama.cpp server that turns are kept on; with 0 the server chooses"},
		{ScriptTime, 60, Seconds, 1, day, "skills-run-time", "", "time that a skill's script may run"},
		{ScriptOutput, 32 * kib, Bytes, kib, 8 * mib, "", "", "bytes kept of what a skill's script writes to one stream"},
		{ScriptArgs, 64 * kib, Bytes, kib, 1 * mib, "", "", "bytes of the arguments of one skill's script"},
		{SandboxMemory, 2048 * mib, Bytes, 64 * mib, 1 << 50, "sandbox-memory", "", "memory of one launch and all its children"},
		{SandboxProcs, 512, Count, 16, 1 << 16, "sandbox-processes", "", "processes and threads of one launch at one time"},
		{SandboxDisk, 1024 * mib, Bytes, mib, 1 << 50, "sandbox-disk", "", "bytes in a launch's working directory"},
		{SandboxLaunches, 16, Count, 1, 4096, "sandbox-launches", "", "launches that run at once"},
		{SandboxQueue, 64, Count, 0, 1 << 16, "", "", "launches that wait for their turn"},
		{SandboxSetUp, 20, Seconds, 1, 600, "", "", "time to set up the confinement of a launch"},
		{EgressHead, 16 * kib, Bytes, kib, mib, "", "", "bytes of a request to the proxy of a launch, and of a TLS greeting behind it"},
		{EgressWait, 10, Seconds, 1, 300, "", "", "time for a request to the proxy of a launch, and for a connection to its target"},
		{EgressIdle, 300, Seconds, 1, day, "", "", "silence on a connection through the proxy of a launch"},
		{EgressAtOnce, 64, Count, 1, 4096, "", "", "connections at once through the proxy of a launch"},
		{ArtifactBytes, 32 * mib, Bytes, kib, 1 << 40, "artifact-bytes", "", "size of one file that is kept of what a launch wrote"},
		{ArtifactCount, 64, Count, 1, 4096, "", "", "files that are kept of one launch"},
		{ArtifactEntries, 1 << 16, Count, 1, 1 << 24, "", "", "files and folders of a working directory that are looked at for what a launch wrote"},
		{ArtifactDepth, 32, Count, 1, 256, "", "", "levels of a working directory that are looked at for what a launch wrote"},
		{ArtifactTotal, 256 * mib, Bytes, kib, 1 << 50, "artifacts", "", "bytes kept of what launches wrote, the oldest go first"},
		{ArtifactAge, day, Seconds, 1, 365 * day, "artifacts-age", "", "time for which files that a launch wrote are kept"},
		{CodeTime, 120, Seconds, 1, day, "code-exec-timeout", "", "time that a command of the model may run if its call does not say"},
		{CodeLongest, 600, Seconds, 1, day, "", "", "time that a call may ask for a command, if code-exec-timeout is not longer"},
		{CodeOutput, 32 * kib, Bytes, kib, 8 * mib, "code-exec-max-output", "", "bytes kept of what a command writes to one stream"},
		{CodeRounds, 24, Count, 1, 64, "", "", "rounds in place of skills-max-rounds where code may run, unless that is set"},
		{CodeLine, 256 * kib, Bytes, kib, 8 * mib, "", "", "size of one command line"},
		{CodeState, 128 * kib, Bytes, kib, mib, "", "", "bytes of exported variables that are remembered between commands"},
		{CodeWrappers, 16, Count, 1, 1024, "", "", "scripts of past commands that are kept for their line numbers"},
		{CodeRepeats, 200, Count, 1, 1 << 16, "", "", "commands that are remembered to notice that one is tried again"},
		{JobsAtOnce, 4, Count, 0, 64, "", "", "background commands of one conversation at once"},
		{JobLog, 8 * mib, Bytes, kib, 1024 * mib, "", "", "bytes of a background command's log"},
		{WorkspaceBytes, 1024 * mib, Bytes, mib, 1 << 50, "workspace", "", "bytes in the workspace of one conversation"},
		{FileSize, 8 * mib, Bytes, kib, 64 * mib, "", "", "size of a file that the file tools take"},
		{FileLines, 400, Count, 1, 1 << 16, "", "", "lines of one page of read_file if its call does not say"},
		{FilePage, 48 * kib, Bytes, kib, mib, "", "", "bytes of one page of read_file"},
		{SeenFiles, 32, Count, 1, 4096, "", "", "files of which is remembered what the model has seen in a command"},
		{SeenBytes, 512 * kib, Bytes, kib, 64 * mib, "", "", "size of a file that is looked at for what a command wrote"},
		{SeenKept, 4096, Count, 1, 1 << 20, "", "", "files of a conversation of which is remembered what the model has seen, the oldest go first"},
		{PatchBytes, mib, Bytes, kib, 8 * mib, "", "", "size of one patch"},
		{PatchFiles, 256, Count, 1, 4096, "", "", "files that one patch changes"},
		{PatchTotal, 64 * mib, Bytes, mib, 1024 * mib, "", "", "bytes of all files of one patch together, before and after"},
		{PatchTime, 10, Seconds, 1, 300, "", "", "time for finding where the hunks of one patch belong"},
		{InstallNames, 16, Count, 1, 256, "", "", "packages of one install"},
		{InstallTime, 120, Seconds, 1, day, "", "", "time for one install"},
		{InstallAuto, 5, Count, 0, 64, "", "", "missing packages that are installed for one command unasked"},
		{InstallBytes, 1024 * mib, Bytes, mib, 1 << 40, "", "", "bytes of one set of installed packages"},
		{PackagesTotal, 8192 * mib, Bytes, mib, 1 << 50, "packages", "", "bytes kept of installed packages, those unused the longest go first"},
		{PackagesFresh, day, Seconds, 0, 365 * day, "", "", "time for which an install is answered from what is kept without asking the registry"},
		{RegistryPage, 64 * mib, Bytes, kib, 1024 * mib, "", "", "bytes of one index page of a registry"},
		{RegistryFile, 1024 * mib, Bytes, mib, 1 << 40, "", "", "bytes of one package of a registry"},
		{ProbeTime, 8, Seconds, 1, 60, "", "", "time for a look at what a package offers"},
		{ProbeOutput, 8 * kib, Bytes, kib, mib, "", "", "bytes kept of a look at what a package offers"},
		{SyntaxTime, 10, Seconds, 1, 60, "", "", "time for a look at whether a file parses"},
		{Certificates, 16 * mib, Bytes, kib, 64 * mib, "", "", "bytes of a file of certificates that launches with this host's network are told of"},
		{AttachCount, 64, Count, 0, 4096, "", "too_many_attachments", "files of a request, or of a session of the web stream, that are put into its workspace"},
		{AttachBytes, 32 * mib, Bytes, kib, 1024 * mib, "", "attachment_too_large", "size of one of them"},
		{WebSessions, 256, Count, 1, 1 << 16, "web-sessions", "too_many_sessions", "sessions of the web stream"},
		{WebOwned, 32, Count, 1, 1 << 16, "web-sessions-key", "too_many_sessions", "sessions of one caller; beyond it, the one unused the longest ends"},
		{WebIdle, 4 * 60 * 60, Seconds, 1, 365 * day, "web-session-idle", "", "time since its last request after which a session ends, and its workspace with it"},
		{StoreReaders, 8, Count, 1, 256, "", "", "connections that read an SQLite database"},
		{StoreConnections, 16, Count, 2, 1024, "store-connections", "", "connections to a PostgreSQL database, that which listens apart"},
		{StoreWait, 5, Seconds, 1, 300, "store-wait", "store_unavailable", "time that a write waits for other programs that have the database, and for a connection to it"},
		{StorePoll, 1, Seconds, 1, 300, "", "", "time between looks for events of other processes that the database did not tell of"},
		{StoreInline, 16 * kib, Bytes, kib, 64 * mib, "", "", "size of an event's data beyond which it is kept apart, once for all events that hold the same"},
		{SessionHold, 15, Seconds, 3, 600, "", "session_busy", "time after which a session is free again whose process has died in a turn"},
		{SessionPage, 50, Count, 1, 1000, "", "", "sessions or events of one page of a list, if it does not say"},
		{ResponsesCount, 1024, Count, 1, 1 << 20, "responses", "", "responses kept for one key, those unchanged the longest go first"},
		{ResponsesBytes, 256 * mib, Bytes, kib, 1 << 40, "responses-bytes", "response_too_large", "bytes of the responses kept for one key"},
		{ResponsesAge, 30 * day, Seconds, 1, 365 * day, "responses-age", "", "time since it last changed that a response is kept"},
		{BackgroundOwned, 8, Count, 0, 1 << 16, "background-key", "too_many_responses", "responses that are worked on in the background at once for one key"},
		{BackgroundCount, 64, Count, 0, 1 << 16, "background", "too_many_responses", "the same for all keys, and how many that have ended can still be streamed again"},
		{BackgroundEvents, 8 * mib, Bytes, kib, 1024 * mib, "", "", "bytes of a background response's events that are kept for who streams it again, the oldest go first"},
		{SocketLife, 3600, Seconds, 1, day, "", "websocket_connection_limit_reached", "time for which a WebSocket stays open"},
		{SocketLanes, 16, Count, 1, 1024, "", "websocket_stream_limit_reached", "streams of one WebSocket that are answered at once"},
		{SocketQueue, 16, Count, 0, 1024, "", "websocket_queue_limit_reached", "requests of one WebSocket that wait for their stream"},
		{SessionRows, 1000, Count, 1, 1 << 20, "", "", "sessions or events of one page that a request may ask for"},
	}
}

// Values holds the limits in force. The zero Values has every default.
type Values struct{ set map[Name]int64 }

// Set is v with one limit changed. It fails on an unknown name and on a value
// out of range.
func (v Values) Set(name Name, value int64) (Values, error) {
	l, ok := find(name)
	if !ok {
		return v, fmt.Errorf("limit %s: no such limit", name)
	}
	if value < l.Min || value > l.Max {
		return v, fmt.Errorf("limit %s: %d is out of range: give %d to %d%s", name, value, l.Min, l.Max, l.Unit.Words())
	}
	set := map[Name]int64{name: value}
	for n, x := range v.set {
		if n != name {
			set[n] = x
		}
	}
	return Values{set: set}, nil
}

// Get is the value in force, for constructors: it goes through the table. It
// panics on a name that is not in the table,
// which is a defect of the caller.
func (v Values) Get(name Name) int64 {
	if x, ok := v.set[name]; ok {
		return x
	}
	l, ok := find(name)
	if !ok {
		panic("config: no limit " + strconv.Quote(string(name)))
	}
	return l.Default
}

// IsSet reports whether the value was set, also to the default.
func (v Values) IsSet(name Name) bool {
	_, ok := v.set[name]
	return ok
}

// Int is Get as an int.
func (v Values) Int(name Name) int { return int(v.Get(name)) }

// Duration is Get of a limit in seconds.
func (v Values) Duration(name Name) time.Duration {
	return time.Duration(v.Get(name)) * time.Second
}

func find(name Name) (Limit, bool) {
	for _, l := range Limits() {
		if l.Name == name {
			return l, true
		}
	}
	return Limit{}, false
}
