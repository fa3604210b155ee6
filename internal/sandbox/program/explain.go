package program

import (
	"os"
	"strings"
)

// Fix is a sentence that says what would change the error of a program that sets
// up namespaces, with the command; empty if nothing is known.
//
// The programs have no codes, so their words are looked at; what the kernel is set
// to decides where the words fit several causes.
func Fix(text string) string { return fix(strings.ToLower(text), setting) }

func fix(text string, set func(path string) string) string {
	denied := strings.Contains(text, "permission denied") || strings.Contains(text, "not permitted") || strings.Contains(text, "no permissions")
	namespace := strings.Contains(text, "namespace") || strings.Contains(text, "rtm_newaddr") || strings.Contains(text, "uid map") ||
		strings.Contains(text, "make / slave") || strings.Contains(text, "unshare") || strings.Contains(text, "clone")
	proc := strings.Contains(text, "mount proc") || strings.Contains(text, `mount "proc`) || strings.Contains(text, `mounting "proc"`) || strings.Contains(text, "mount `proc`")
	switch {
	case strings.Contains(text, "enospc") || strings.Contains(text, "no space left") && namespace:
		return "raise the limit: sysctl -w user.max_user_namespaces=15000"
	case denied && namespace && set("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"
	case denied && namespace && set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor restricts user namespaces here: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give the program an AppArmor profile with userns"
	case denied && proc:
		return "/proc is masked here, as in a container: start it with --security-opt systempaths=unconfined, or run Metier outside of it"
	case denied && namespace:
		return "inside a container, start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or run Metier outside of it"
	case strings.Contains(text, "idmap") || strings.Contains(text, "id-map") || strings.Contains(text, "mount_setattr"):
		return "put METIER_HOME on ext4, xfs, btrfs or tmpfs, or run Metier as an ordinary user"
	case strings.Contains(text, "cgroup"):
		return "mount a cgroup v2 hierarchy alone (systemd.unified_cgroup_hierarchy=1), or use another backend"
	}
	return ""
}

func setting(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// LastLine is the last line of what a program said that is not empty, or what is
// given in place of one.
func LastLine(text, other string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return other
}
