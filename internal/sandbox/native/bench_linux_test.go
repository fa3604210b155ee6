package native

import (
	"context"
	"os/exec"
	"syscall"
	"testing"

	"github.com/metier-run/metier/internal/sandbox"
)

func cpu() int64 {
	var c, s syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &c)
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &s)
	return c.Utime.Nano() + c.Stime.Nano() + s.Utime.Nano() + s.Stime.Nano()
}

func BenchmarkTrue(b *testing.B) {
	for _, c := range []struct {
		name string
		o    Options
	}{{"warm", Options{}}, {"cold", Options{Cold: true}}} {
		b.Run(c.name, func(b *testing.B) {
			be := open(b, c.o)
			l := line(b, "")
			l.Line, l.Argv = "", []string{"/usr/bin/true"}
			for b.Loop() {
				if r, err := sandbox.Run(context.Background(), be, l); err != nil || !r.OK() {
					b.Fatal(r, err)
				}
			}
		})
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/usr/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	if p, err := exec.LookPath("bwrap"); err == nil {
		b.Run("bwrap", func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command(p, "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/lib", "/lib", "--symlink", "usr/bin", "/bin",
					"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent", "--new-session", "/usr/bin/true")
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatal(err, string(out))
				}
			}
		})
	}
}
