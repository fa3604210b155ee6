package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/metier-run/metier/internal/app"
	"github.com/metier-run/metier/internal/interpreter"
	"github.com/metier-run/metier/internal/launch"
	"github.com/metier-run/metier/internal/sandbox"
)

// sayDiagnosis says a diagnosis to a person who has never heard of a namespace. What is
// most important comes first.
func sayDiagnosis(w io.Writer, d finding, files []string) {
	fmt.Fprintf(w, "Scripts of skills on this machine (%s)\n", d.System)
	sayVerdict(w, d.Diagnosis)
	fmt.Fprintf(w, "\nFiles and commands of models on this machine\n")
	sayCodeVerdict(w, d)
	fmt.Fprintf(w, "\nWhat can confine a script or a command here\n")
	if len(d.Backends) == 0 {
		item(w, "None was tried: there is no place to try one in (see METIER_HOME below).")
	}
	for _, row := range d.Backends {
		sayBackend(w, row, row.Name == d.Chosen)
	}
	fmt.Fprintf(w, "\nPrograms that run scripts\n")
	for _, p := range d.Programs {
		sayProgram(w, p)
	}
	fmt.Fprintf(w, "\nWhere Metier keeps its files (METIER_HOME)\n")
	sayHome(w, d.Diagnosis)
	fmt.Fprintf(w, "\nModel\n")
	if d.UpstreamProblem != nil {
		item(w, d.UpstreamProblem.Error())
		item(w, "metier serve lists the commands that would help.")
	} else {
		item(w, "upstream: "+d.Upstream)
	}
	fmt.Fprintf(w, "\nConfiguration\n")
	if len(files) == 0 {
		item(w, "no file was read; flags and METIER_... variables count")
	}
	for _, f := range files {
		item(w, shownPath(f))
	}
}

// item is one line below a heading. Texts of other programs are in it.
func item(w io.Writer, text string) { fmt.Fprintf(w, "  %s\n", printable(text)) }

// sayVerdict says whether scripts run, what is asked, and whether that can be had.
func sayVerdict(w io.Writer, d app.Diagnosis) {
	policy := d.Scripts.Policy
	if d.Scripts.Allowed {
		item(w, "A model may run them (--"+flagAllowExec+").")
	} else {
		item(w, "They are off: no model can run one. --"+flagAllowExec+" turns them on.")
	}
	switch policy.Mode {
	case sandbox.Required:
		item(w, fmt.Sprintf("Rule: with %s confinement or better, or not at all (--%s required, --%s %s).", policy.Minimum, flagSandbox, flagMinimum, policy.Minimum))
	case sandbox.Preferred:
		item(w, fmt.Sprintf("Rule: with the best confinement there is, even if that is none (--%s preferred).", flagSandbox))
	case sandbox.Off:
		item(w, fmt.Sprintf("Rule: with no confinement (--%s off). A script can do whatever you can do.", flagSandbox))
	}
	if policy.Backend != "" {
		item(w, fmt.Sprintf("Only %s may confine them (--%s).", policy.Backend, flagBackend))
	}
	sayNetwork(w, d.Scripts.Network, flagAllowNetwork, flagDomains)
	if d.Problem != nil {
		sayRefused(w, d)
		return
	}
	item(w, "Possible here: "+d.Chosen+" would be used.")
	for _, row := range d.Backends {
		if gaps := row.Capabilities.Gaps(sandbox.Network{Mode: d.Scripts.NetworkMode()}); row.Name == d.Chosen && len(gaps) > 0 {
			item(w, notConfined+"a script "+strings.Join(gaps, "; ")+".")
		}
	}
}

// sayRefused says why scripts cannot be confined as asked, and each thing that would
// change that.
func sayRefused(w io.Writer, d app.Diagnosis) {
	policy := d.Scripts.Policy
	reason := "each script would be refused. " + d.Problem.Error()
	if _, ok := errors.AsType[*sandbox.Refusal](d.Problem); ok {
		// What each backend lacks stands below, in its own block.
		reason = fmt.Sprintf("nothing on this machine gives %s confinement, so each script would be refused.", policy.Minimum)
		if policy.Backend != "" {
			reason = fmt.Sprintf("%s gives no %s confinement on this machine, so each script would be refused.", policy.Backend, policy.Minimum)
		}
	}
	item(w, "NOT POSSIBLE HERE: "+reason)
	for _, row := range d.Backends {
		if policy.Backend == "" || row.Name == policy.Backend {
			sayHelp(w, policy, row)
		} else if row.Problem == nil && row.Capabilities.Tier >= policy.Minimum && (d.Scripts.NetworkMode() != sandbox.NetworkProxied || row.Capabilities.Holds(sandbox.Domains)) {
			item(w, fmt.Sprintf("What would help: %s is here and can do it: leave out --%s, or give it %s.", row.Name, flagBackend, row.Name))
		}
	}
}

// sayHelp says what would make a backend confine as asked.
func sayHelp(w io.Writer, policy sandbox.Policy, row launch.Row) {
	tier := row.Capabilities.Tier
	switch _, fix := why(row.Problem); {
	case fix != "":
		item(w, fmt.Sprintf("What would help (%s): %s", row.Name, fix))
	case row.Problem == nil && tier > sandbox.TierNone && tier < policy.Minimum:
		item(w, fmt.Sprintf("%s is here and confines less: --%s %s would accept it.", row.Name, flagMinimum, tier))
	}
}

// sayNetwork names a network, and the flag that gives all or a part of it.
func sayNetwork(w io.Writer, n launch.Network, all, part string) {
	switch {
	case n.Open:
		item(w, fmt.Sprintf("Network: everything that this machine reaches, itself included (--%s).", all))
	case len(n.Domains) > 0:
		item(w, fmt.Sprintf("Network: %s and nothing else (--%s).", strings.Join(n.Domains, ", "), part))
	default:
		item(w, "Network: none.")
	}
}

// sayBackend is the block of one way of confining.
func sayBackend(w io.Writer, row launch.Row, chosen bool) {
	if row.Problem != nil {
		problem, fix := why(row.Problem)
		item(w, row.Name+": not available")
		item(w, "  why: "+problem)
		if fix != "" {
			item(w, "  to change it: "+fix)
		}
		return
	}
	if row.Capabilities.Tier == sandbox.TierNone && !chosen {
		item(w, fmt.Sprintf("%s: no confinement. A script can do whatever you can do; only --%s preferred or off take it, or for commands --%s.", row.Name, flagSandbox, flagUnconfined))
		return
	}
	head := fmt.Sprintf("%s: %s", row.Name, tierWords(row.Capabilities.Tier))
	if row.Capabilities.Version != "" {
		head += ", " + row.Capabilities.Version
	}
	if chosen {
		head += " [used]"
	}
	item(w, head)
	for _, c := range row.Capabilities.All {
		held, open := aspectWords(c.Aspect)
		text := "  ok  " + held
		if !c.Held {
			text = "  NO  " + open
		}
		if c.Note != "" {
			text += " (" + c.Note + ")"
		}
		item(w, text)
	}
}

// tierWords say how much a tier is worth.
func tierWords(t sandbox.Tier) string {
	switch t {
	case sandbox.TierStrong:
		return "strong confinement, with an operating system of its own"
	case sandbox.TierFull:
		return "full confinement, in which the rest of the machine is not there"
	case sandbox.TierPartial:
		return "partial confinement, by rules and under a user of its own"
	case sandbox.TierWeak:
		return "weak confinement, by rules and under your own user"
	}
	return "no confinement"
}

// aspectWords say what an aspect means for the owner of the machine, held and not
// held.
func aspectWords(a sandbox.Aspect) (held, open string) {
	switch a {
	case sandbox.Writes:
		return "it can change files in its own working folder only", "it can change every file that you can change"
	case sandbox.Home:
		return "it cannot read your home folder or other people's files", "it can read every file that you can read"
	case sandbox.NoNetwork:
		return "it can be kept off the network", "it cannot be kept off the network"
	case sandbox.Domains:
		return "its network can be limited to the hosts that you name", "its network cannot be limited to the hosts that you name"
	case sandbox.Tree:
		return "whatever it has started is gone when it ends", "something that it has started may go on when it has ended"
	case sandbox.Hidden:
		return "it cannot see, stop or read other programs", "it can see, stop and read your other programs"
	case sandbox.Kernel:
		return "it cannot use the risky parts of the operating system", "it can use all of the operating system that you can"
	case sandbox.Memory:
		return "the memory that it takes is limited", "the memory that it takes is not limited as a whole"
	case sandbox.Processes:
		return "the number of programs that it starts is limited", "the number of programs that it starts is not limited"
	case sandbox.Disk:
		return "what it writes to the disk is limited", "what it writes to the disk is not limited everywhere"
	}
	return string(a), "not " + string(a)
}

func sayProgram(w io.Writer, p app.Program) {
	if p.Problem != nil {
		item(w, string(p.Kind)+": not found, so no script of this kind runs")
		item(w, "  why: "+p.Problem.Error())
		item(w, "  for example: "+packages(p.Kind))
		return
	}
	head := string(p.Kind) + ": " + p.Path
	if p.Version != "" {
		head += " (version " + p.Version + ")"
	}
	item(w, head)
	if len(p.Read) > 0 {
		item(w, "  a script sees this of it, to read only: "+strings.Join(p.Read, ", "))
	}
}

// packages says how a program is installed on the usual systems.
func packages(k interpreter.Kind) string {
	switch k {
	case interpreter.Python:
		return "apt-get install python3, dnf install python3, brew install python, winget install Python.Python.3.13"
	case interpreter.Node:
		return "apt-get install nodejs, dnf install nodejs, brew install node, winget install OpenJS.NodeJS"
	}
	return "apt-get install bash, dnf install bash, brew install bash, winget install Git.Git"
}

func sayHome(w io.Writer, d app.Diagnosis) {
	item(w, shownPath(d.Home.Dir))
	if d.Home.Problem != nil {
		item(w, "  It cannot be written: "+d.Home.Problem.Error()+". Mend that, or set METIER_HOME to a folder of yours.")
		return
	}
	text := "  It can be written"
	if d.Home.FileSystem != "" {
		text += ", on " + d.Home.FileSystem
	}
	if d.Home.Free >= 0 {
		text += fmt.Sprintf(", with %d MiB free", d.Home.Free>>20)
	}
	item(w, text+".")
	confines := func(r launch.Row) bool { return r.Problem == nil && r.Capabilities.Tier > sandbox.TierNone }
	if slices.ContainsFunc(d.Backends, confines) {
		item(w, "  The sandboxes above were tried in it, and its file system does what they need.")
	}
}
