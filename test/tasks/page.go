package main

// What docs/recovery.md says around the numbers.
const (
	pageHead = `# What recovery saves

` + "```" + `
make tasks                                   # all of this; writes nothing
go run ./test/tasks -update                  # the same, and writes this page
go run ./test/tasks -fault fenced-patch      # one class of mistakes, in all tasks
go run ./test/tasks -run 09-crlf-settings+fenced-patch@1 -off   # one run, told whole, recovery off
go run ./test/tasks -model NAME -upstream http://127.0.0.1:11434/v1   # the tasks with a real model
` + "```" + `

Small models make the same mistakes again and again, and each one costs a round or several. The host takes back what it can
without asking, and where it cannot, its refusal names the next step. This page counts what that is worth.

## What is measured

There are 30 tasks in ` + "`test/tasks/testdata/tasks`" + `: a prompt, the files of the beginning, a checker, and the recorded rounds that
do the task right. A scripted model walks through these rounds and makes one mistake of one class on the way, at a place that a
seed decides. Then it reads the answer as a small model does, by rules that are data
(` + "`test/tasks/model/faults.toml`" + `): where the effect is there it goes on; where the text names what to do, it does that, one round
later; where the text names nothing, it flounders as the logs of such models show, and gets it right two to five rounds later. A
task that has no place for a class begins with a detour that has one; the column "right" has the same detour without the mistake.

Each run is one request of a client to a whole Metier, with the host's own sandbox, package front and checkers of syntax, and
is played twice: with recovery, and on a host that takes every call literally (` + "`code.Options.NoRecovery`" + `): no other names
for tools and arguments, no ` + "`python`" + ` where there is only ` + "`python3`" + `, no patch whose envelope is not as declared, no look at a command
before it runs, no install or second run unasked, no verdict on syntax, no rewriting of paths, no meaning of a status, no hint,
and refusals of one sentence. In the end the checker looks at the workspace. The numbers are the same in every run; ` + "`make tasks`" + `
fails when a task is not done, when a run takes more with recovery than without, or when a class saves nothing.

## Rounds

The columns are sums over all tasks: a model's rounds for the recorded way, with the mistake and recovery, and with the mistake and
no recovery. "Done" counts the runs whose checker was content, with and without recovery together.

`
	tableHead = "| the mistake | class | right | with recovery | without | saved | done |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
	pageTable = `
The seed is %d. "(bytes)" counts what the model wrote in its calls, because that mistake costs output and no round; such a row is in
no sum. A class may take fewer rounds than the right way: a model that forgets an install is spared the round for it. In
` + "`out-of-rounds`" + ` most of the rounds are those that the mistake itself uses up. Pairs are two classes in one task; both are drawn by
chance, and every class and task comes as often as the others.

`
	fixedHead   = "## What cannot be switched off\n\nThe classes with a star cost the same on both hosts:\n\n"
	sourcesHead = "\n## Where the classes come from\n\n\"Seed\" is the recovery table that this part of the house was built from, B1 the record of how it behaved there.\n\n| class | source |\n| --- | --- |\n"
)
